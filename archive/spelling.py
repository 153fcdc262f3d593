"""The spellings somebody's words take in a stored text, and whether a text holds them in any of these.

What is stored is JSON, forms, addresses, HTML and streams, one inside the other: the same words stand there raw, with
escapes of JSON (RFC 8259 §7), percent-encoded (RFC 3986 §2.1), as HTML references, and cut over the events of a stream.
Not found: words in other letters, other Unicode forms, or coded as a whole (base64, gzip, an image).
What must never be here: where texts are stored.
"""

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import cast
from urllib.parse import quote, quote_plus, unquote_to_bytes

from archive.naming import SEARCHED_BYTES_MIN
from archive.streams import said_in

ROUNDS_MAX = 6
"""How often escapes are undone: JSON in JSON in JSON, percent-encoded, and room to spare."""

_ESCAPE = re.compile(
    rb"(?:\\u[0-9a-fA-F]{4})+"
    rb'|\\["\\/bfnrt]'
    rb"|(?:%[0-9a-fA-F]{2})+"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)

_SHORT = {b'"': b'"', b"\\": b"\\", b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def holds(text: bytes, words: bytes) -> bool:
    """Does a text hold these words, in whichever spelling? Words under 12 bytes must be all of it, quotes aside."""
    if len(words) < SEARCHED_BYTES_MIN:
        wanted = {_bare(level) for level in _levels(words)}
        return any(_bare(level) in wanted for level in _levels(text))
    wanted = {level for level in _levels(words) if len(level) >= SEARCHED_BYTES_MIN}
    wanted |= {level.replace(b" ", b"+") for level in wanted}
    if any(one in level for level in _levels(text) for one in wanted):
        return True
    return any(one in level for said in _said(text) for level in _levels(said) for one in wanted)


def spellings(words: bytes) -> tuple[bytes, ...]:
    """The spellings these words take as a whole, for a search where nothing can be undone: in a file's raw bytes."""
    try:
        text = words.decode()
    except UnicodeDecodeError:
        return (words,)
    once = {text, *_spelled(text)}
    twice = {inner for one in once for inner in _in_json(one)}
    return tuple(sorted({one.encode("utf-8", "surrogatepass") for one in once | twice}))


def _levels(text: bytes) -> Iterator[bytes]:
    """A text as it is, then with its escapes undone once, twice and so on, until there are none."""
    yield text
    for _ in range(ROUNDS_MAX):
        if not (b"\\" in text or b"%" in text or b"&" in text):
            return
        before, text = text, _ESCAPE.sub(_undone, text)
        if text == before:
            return
        yield text


def _undone(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    if escape[:2] == b"\\u":
        units = bytes.fromhex(escape.replace(b"\\u", b"").decode())
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    if escape[:1] == b"\\":
        return _SHORT[escape[1:]]
    if escape[:1] == b"%":
        return unquote_to_bytes(escape)
    return html.unescape(escape.decode()).encode("utf-8", "surrogatepass")


def _bare(text: bytes) -> bytes:
    """Without the quotes of a JSON string around it."""
    return text[1:-1] if len(text) > 1 and text[:1] == text[-1:] == b'"' else text


def _said(text: bytes) -> Iterator[bytes]:
    """What a stream of events says bit by bit, put together: the strings that stand at one place of its objects."""
    if b"data:" not in text:
        return
    joined = defaultdict[str, list[str]](list)
    for event in said_in(text):
        for place, string in _strings(event):
            joined[place].append(string)
    for strings in joined.values():
        yield "".join(strings).encode("utf-8", "surrogatepass")


def _strings(event: object) -> Iterator[tuple[str, str]]:
    """Every string in a JSON value, with its place; a list's number is none, since only the last of it grows."""
    waiting: list[tuple[object, str]] = [(event, "")]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            inner = cast("dict[str, object]", value)
            at = f"{place}[{inner.get('index', '')}]"  # several answers may come in turns, each with its index
            waiting += [(one, f"{at}.{name}") for name, one in inner.items()]
        elif isinstance(value, list):
            waiting += [(one, place) for one in cast("list[object]", value)]


def _spelled(text: str) -> Iterator[str]:
    yield from _in_json(text)
    for coded in (_quoted(text, ""), _quoted(text, "/"), _quoted(text, None)):
        yield coded
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), coded)
    escaped = html.escape(text)
    yield from (html.escape(text, quote=False), escaped, escaped.replace("&#x27;", "&#39;"))


def _quoted(text: str, safe: str | None) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return quote_plus(data) if safe is None else quote(data, safe=safe)


def _in_json(text: str) -> Iterator[str]:
    for ascii_alone in (False, True):
        spelled = json.dumps(text, ensure_ascii=ascii_alone)[1:-1]
        yield spelled
        yield spelled.replace("/", "\\/")
        yield re.sub(r"\\u[0-9a-f]{4}", lambda found: "\\u" + found[0][2:].upper(), spelled)
