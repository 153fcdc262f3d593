"""Text made short and plain, for places where there is little room or where it could play tricks.

Pure. What must never be here: HTML, which escapes by itself (render.py).
"""

import unicodedata

ZWJ = "\u200d"
JOINERS = "\u200c\u200d"
"""Not seen, but they make one letter or one emoji of several: they stay."""

FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
"""Two of them are one flag."""


def plain(text: str) -> str:
    """The text in one line, without what is not seen itself: control characters, and marks that turn its direction."""
    kept = (c for c in text if c.isspace() or c in JOINERS or unicodedata.category(c) not in {"Cc", "Cf", "Cs"})
    return " ".join("".join(kept).split())


def cut(text: str, most: int) -> str:
    """At most `most` characters of it, the last an ellipsis where it was cut; never cut inside what is read as one."""
    if len(text) <= most:
        return text
    return text[: whole(text, max(0, most - 1))].rstrip() + "…"


def whole(text: str, end: int) -> int:
    """The last place up to `end` at which the text may be cut."""
    while 0 < end < len(text) and not _parts(text, end):
        end -= 1
    return end


def _parts(text: str, at: int) -> bool:
    """May the text be cut before character `at`? A rough form of Unicode's rules for grapheme clusters (UAX #29)."""
    before, after = text[at - 1], text[at]
    if before == ZWJ or after in JOINERS or unicodedata.category(after).startswith("M"):
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff":  # a colour of skin
        return False
    if _is_flag_letter(before) and _is_flag_letter(after):
        run = len(text[:at]) - len(text[:at].rstrip(FLAG_LETTERS))
        return run % 2 == 0
    return True


def _is_flag_letter(character: str) -> bool:
    return character in FLAG_LETTERS
