"""Text that goes elsewhere is plain and short, and is never cut inside what is read as one."""

# ruff: noqa: RUF001 - letters of other scripts are what this is about

import pytest

from web.text import cut, plain


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Is it?", "Is it?"),
        ("  Is\n\tit?  ", "Is it?"),
        ("a\u2028b\u2029c\u3000d\u00a0e", "a b c d e"),
        ("evil \u202etxt.exe\u202c", "evil txt.exe"),
        ("\u2066a\u2067b\u2068c\u2069\u200e\u200f\u061c", "abc"),
        ("a\0b\x07c\x1bd\x7fe\x9bf\u200bg\ufeffh\u00adi", "abcdefghi"),
        ("a\ud800b", "ab"),
        ("\U000e0001\U000e0041hidden", "hidden"),
        ("👨\u200d👩\u200d👧 می\u200cخواهم", "👨\u200d👩\u200d👧 می\u200cخواهم"),
        ("e\u0301", "e\u0301"),
        ("\u202e\n\u2066", ""),
    ],
)
def test_what_is_not_seen_itself_is_taken_out_and_all_that_is_seen_stays(text: str, left: str) -> None:
    assert plain(text) == left


@pytest.mark.parametrize(
    ("text", "most", "left"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("abc def", 5, "abc…"),
        ("abe\u0301\u0302f", 5, "ab…"),
        ("ab👍🏽c", 4, "ab…"),
        ("ab❤\ufe0fc", 4, "ab…"),
        ("ab👨\u200d👩\u200d👧c", 7, "ab…"),
        ("ab👨\u200d👩\u200d👧c", 8, "ab👨\u200d👩\u200d👧c"),
        ("ab👨\u200d👩\u200d👧cd", 8, "ab👨\u200d👩\u200d👧…"),
        ("🇫🇷🇩🇪🇮🇹", 4, "🇫🇷…"),
        ("🇫🇷🇩🇪🇮🇹", 5, "🇫🇷🇩🇪…"),
        ("می\u200cخواهم", 3, "م…"),
        ("می\u200cخواهم", 4, "می\u200c…"),
        ("a" + "\u0301" * 200, 110, "…"),
        ("abc", 1, "…"),
        ("abc", 0, "…"),
    ],
)
def test_a_text_is_cut_between_what_is_read_as_one_and_says_that_it_was(text: str, most: int, left: str) -> None:
    assert cut(text, most) == left
