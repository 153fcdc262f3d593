"""Stored bytes as people read them: the very text, laid out and coloured lightly by markup around it.

Not a character is added, dropped or written anew; lines are broken by the style sheet. Pure. What must never be here:
bytes that are not escaped on their way to a page.
"""

import re
from itertools import groupby

import msgspec
from markupsafe import Markup

SHOWN_BYTES_MAX = 64 * 1024
"""Of longer bytes the page shows the beginning; the raw link has all of them."""

COLOURED_BYTES_MAX = 16 * 1024
"""Longer ones are left plain: the markup doubles what every open page is sent."""

DEPTH_MAX = 6
"""What stands deeper is not moved further in: there must be room for words on a phone."""

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*+"\s*:\s*)|(?P<text>"(?:[^"\\]|\\.)*+")|(?P<mark>[{}\[\],]\s*)|(?P<bare>[^"{}\[\],]+)',
    re.DOTALL,
)
"""A token of JSON (RFC 8259) with the spaces after it. It takes in every character, in one pass without going back."""

_FAINT = Markup("<i>{}</i>")
_WRITTEN = {"key": _FAINT, "mark": _FAINT, "text": Markup("{}"), "bare": Markup("<b>{}</b>")}
"""What holds the values together is faint, numbers stand out, texts are as they are."""


class Panel(msgspec.Struct, frozen=True):
    """What a page shows of some bytes, and a sentence where that is not simply all of them as text."""

    shown: str
    note: str = ""


def panel(data: bytes) -> Panel:
    """The bytes as text: U+FFFD for what is not UTF-8, the beginning where they are many, laid out where JSON."""
    cut = data[:SHOWN_BYTES_MAX]
    if len(cut) < len(data):
        return Panel(cut.decode("utf-8", "ignore"), f"The first {len(cut):,} bytes; raw has all of them.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Panel(data.decode("utf-8", "replace"), "Not text in UTF-8: what cannot be shown stands as \ufffd.")
    return Panel(_laid_out(text) if len(data) <= COLOURED_BYTES_MAX and _is_json(data) else text)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _laid_out(text: str) -> Markup:
    """JSON in lines, a member each, moved in by their depth; as it is where it has lines of its own."""
    has_lines = "\n" in text or "\r" in text
    lines: list[tuple[int, list[tuple[Markup, str]]]] = [(0, [])]
    around: list[str] = []
    for token in _TOKEN.finditer(text):
        kind, found = str(token.lastgroup), token[0]
        lines[-1][1].append((_WRITTEN[kind], found))
        if found[0] in "{[":
            around.append(found[0])
        elif found[0] in "}]":
            around.pop()
        elif found[0] == "," and around[-1] == "{" and not has_lines:
            lines.append((min(len(around), DEPTH_MAX), []))
    written = (Markup('<span class="l d{}">{}</span>').format(depth, _line(pieces)) for depth, pieces in lines)
    return _line(lines[0][1]) if has_lines else Markup().join(written)


def _line(pieces: list[tuple[Markup, str]]) -> Markup:
    runs = groupby(pieces, key=lambda piece: piece[0])
    return Markup().join(written.format("".join(text for _, text in run)) for written, run in runs)
