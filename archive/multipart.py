"""Multipart bodies (RFC 7578): their boundary is random, so it is replaced by one that follows from what it parts.

Then the same parts are the same bytes, whoever put them together, and what names a request, what is kept and what is
sent are one (docs/decisions, on multipart boundaries). What must never be here: an opinion on the parts, a change to
any byte of them.
"""

import itertools
import re
from hashlib import sha256

import msgspec

_CONTENT_TYPE = re.compile(
    r"""(\s*multipart/form-data\s*;\s*boundary=)(?:"([ !#-\[\]-~]{1,70})"|([!#-'*+\-.-:<-\[\]-~]{1,70}))\s*""",
    re.IGNORECASE,
)
_JSON = re.compile(rb"\r\ncontent-type:[ \t]*application/(?:[^\r\n;]*\+)?json[ \t]*(?:;|\r\n|$)", re.IGNORECASE)


class Parted(msgspec.Struct, frozen=True):
    """A multipart body that was read whole: the content type up to its boundary, the parts, and the last bytes."""

    before: str
    parts: tuple[bytes, ...]
    end: bytes


def parted(content_type: str, body: bytes) -> Parted | None:
    """The parts of a body, each with its headers; None for one that cannot be read whole and in one way only.

    Nothing may stand before the first boundary or after the last, and none may occur inside a part.
    """
    match = _CONTENT_TYPE.fullmatch(content_type)
    if match is None:
        return None
    line = b"--" + (match[2] or match[3]).encode("ascii")
    end = b"\r\n" if body.endswith(b"--\r\n") else b""
    opening, closing = line + b"\r\n", b"\r\n" + line + b"--" + end
    if not body.startswith(opening) or not body.endswith(closing) or len(body) < len(opening) + len(closing):
        return None
    parts = body[len(opening) : -len(closing)].split(b"\r\n" + opening)
    if body.count(line) != len(parts) + 1:
        return None
    if not all(part.startswith(b"\r\n") or b"\r\n\r\n" in part for part in parts):
        return None
    return Parted(match[1], tuple(parts), end)


def rebound(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Content type and body with a boundary that follows from the parts; as they came where the body cannot be read."""
    found = parted(content_type, body)
    if found is None:
        return content_type, body
    boundary = _boundary(found.parts)
    line = b"--" + boundary.encode()
    joined = (b"\r\n" + line + b"\r\n").join(found.parts)
    return found.before + boundary, b"".join([line, b"\r\n", joined, b"\r\n", line, b"--", found.end])


def _boundary(parts: tuple[bytes, ...]) -> str:
    """64 hex digits made from the parts, that occur in none of them."""
    running = sha256()
    for part in parts:
        running.update(b"%d:" % len(part))
        running.update(part)
    names = (sha256(running.digest() + b"%d" % n).hexdigest() for n in itertools.count())
    return next(name for name in names if not any(name.encode() in part for part in parts))


def asked_in(content_type: str, body: bytes) -> bytes:
    """The JSON that asks: the body, or in a multipart one the first part that is JSON; empty where there is none."""
    found = parted(content_type, body)
    if found is None:
        return body
    for part in found.parts:
        headers, _, content = (b"\r\n" + part).partition(b"\r\n\r\n")
        if _JSON.search(headers):
            return content
    return b""
