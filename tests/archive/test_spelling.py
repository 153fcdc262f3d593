"""Words are found in every spelling they take in a stored text, and in no other text."""

import html
import json
from urllib.parse import quote, quote_plus

import pytest

from archive.spelling import holds, spellings

WORDS = 'Zoë O\'Hara "Zo" <z@x.test> & 50% of C:\\new/table 😀'
TEXT = f"before {WORDS} after"


def ascii_json(text: str) -> str:
    return json.dumps(text)


def json_(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


SPELLED = {
    "raw": TEXT,
    "in JSON": json_(TEXT),
    "in JSON, ASCII alone": ascii_json(TEXT),
    "in JSON with capitals": ascii_json(TEXT).replace("00eb", "00EB").replace("ud83d\\ude00", "uD83D\\uDE00"),
    "in JSON with slashes escaped": json_(TEXT).replace("/", "\\/"),
    "in JSON in JSON": json_(json_(TEXT)),
    "in JSON in JSON in JSON, ASCII alone": ascii_json(ascii_json(ascii_json(TEXT))),
    "percent-encoded": quote(TEXT),
    "percent-encoded whole": quote(TEXT, safe=""),
    "percent-encoded in small letters": quote(TEXT, safe="").lower().replace("zo", "Zo").replace("o%27hara", "O%27Hara")
    .replace("c%3a", "C%3a"),
    "in a form": quote_plus(TEXT),
    "percent-encoded twice": quote(quote(TEXT)),
    "in HTML": html.escape(TEXT),
    "in HTML by numbers": "".join(f"&#{ord(c)};" for c in TEXT),
    "in HTML in JSON": ascii_json(html.escape(TEXT)),
    "percent-encoded in JSON": json_(quote(TEXT)),
    "every character escaped": "".join(f"\\u{ord(c):04x}" for c in "before Jane Doe of Ghent after"),
}  # fmt: skip


@pytest.mark.parametrize("how", SPELLED)
def test_words_are_found_however_they_are_spelled(how: str) -> None:
    words = "Jane Doe of Ghent" if how == "every character escaped" else WORDS
    assert holds(SPELLED[how].encode(), words.encode())
    assert not holds(SPELLED[how].encode(), (words[:-1] + "?").encode())


@pytest.mark.parametrize(
    "words", ["100%25 off, and \\u00e9 too", "\\\\server\\new", "a&amp;b&amp;amp;c", "C:\\temp\\x\\new"]
)
def test_words_that_look_like_escapes_are_found_too(words: str) -> None:
    for spelled in (words, f"\\{words}", json_(words), json_(f"a\\{words}"), json_(json_(f'"\\{words}'))):
        assert holds(spelled.encode(), words.encode()), spelled


def test_short_words_match_whole_texts_alone() -> None:
    for text in ("Bob", '"Bob"', "\\u0042ob", "%42ob"):
        assert holds(text.encode(), b"Bob")
    for text in ("Bobsled", '{"name":"Bob"}', "Bob ", ""):
        assert not holds(text.encode(), b"Bob")


def test_words_whose_escapes_undone_are_hardly_anything_do_not_find_everything() -> None:
    assert not holds(b"a text with     spaces", b"%20%20%20%20%20")


def test_words_that_a_stream_says_bit_by_bit_are_found() -> None:
    bits = ["Dear Ja", "ne D", "oe", " of Gh", "ent, no"]
    other = ["I ", "am ", "in", " be", "tween"]
    events = [
        json.dumps({"choices": [{"index": n, "delta": {"content": bit}}]})
        for pair in zip(bits, other, strict=True)
        for n, bit in enumerate(pair)
    ]
    body = "".join(f"data: {event}\n\n" for event in events) + "data: [DONE]\n\n"
    assert holds(body.encode(), b"Jane Doe of Ghent")
    assert holds(body.encode(), b"I am in between")
    assert not holds(body.encode(), b"Jane Doe of Bruges")


def test_bytes_that_are_no_text_are_looked_at_all_the_same() -> None:
    assert holds(b"\xff\xfe Jane Doe of Ghent \xff", b"Jane Doe of Ghent")
    assert holds(b"\\ud83d data: words\xff\n\n", b"\xed\xa0\xbd data: words")
    assert not holds(b"data: {" * 100 + b"\\u12", b"Jane Doe of Ghent")
    assert spellings(b"\xff\xfe") == (b"\xff\xfe",)


@pytest.mark.parametrize("how", [name for name in SPELLED if "JSON in JSON in" not in name and "twice" not in name])
def test_the_spellings_for_a_files_bytes_have_those_that_are_common(how: str) -> None:
    if how in {"in HTML by numbers", "every character escaped", "percent-encoded in small letters"}:
        return
    text = SPELLED[how].encode()
    assert any(one in text for one in spellings(WORDS.encode())), how


def test_plain_words_have_few_spellings() -> None:
    assert spellings(b"Is-it-a-sandwich") == (b"Is-it-a-sandwich",)
