"""What an asking is about, in a request's headers; its number and what its reading came to, in a reply's.

`Archive-Pass`, `Archive-About`, `Archive-Reading` and `Archive-Inputs` are neither sent on nor part of what makes two
requests one. What must never be here: what may be named (archive/naming.py), the record.
"""

import json
import re
from collections.abc import Mapping
from typing import cast
from urllib.parse import unquote_to_bytes

from archive.errors import Invalid, TooLarge
from archive.naming import INPUTS_BYTES_MAX, Input, Naming, comes_to
from archive.request import Request, asked
from web.errors import Headers

HEADER_BYTES_MAX = 8 * INPUTS_BYTES_MAX
"""JSON's escapes make six bytes of one; what is larger is not within the limit for inputs either."""


_NAMING = frozenset({b"archive-pass", b"archive-about", b"archive-reading", b"archive-inputs"})


def read_naming(headers: Mapping[bytes, bytes]) -> Naming | None:
    """What the headers name, None if nothing. Raises Invalid or TooLarge, which say what a header must look like."""
    if _NAMING.isdisjoint(headers):
        return None
    pass_, about, reading, inputs = (
        _decoded(name, headers.get(b"archive-" + name.encode(), b"")) for name in ("pass", "about", "reading", "inputs")
    )
    if not (pass_ or about or reading or inputs):
        return None
    return Naming(pass_, about, reading, _inputs(inputs) if inputs else ())


def _decoded(name: str, value: bytes) -> str:
    header = f"Archive-{name.capitalize()}"
    if len(value) > HEADER_BYTES_MAX:
        raise TooLarge(f"{header} is larger than {HEADER_BYTES_MAX} bytes; inputs may be {INPUTS_BYTES_MAX} bytes.")
    if re.search(rb"%(?![0-9A-Fa-f]{2})", value):
        raise Invalid(f"{header} is percent-encoded UTF-8: a percent sign that means itself is written %25.")
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        raise Invalid(f"{header} must be UTF-8, percent-encoded where it is not ASCII.") from None


class _Pairs(list[tuple[str, object]]):
    """A JSON object, a name that is given twice with both."""


def _inputs(text: str) -> tuple[Input, ...]:
    try:
        found: object = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        found = None
    inputs = [Input(name, words) for name, words in _named(found) if isinstance(words, str)]
    if not isinstance(found, list) or len(inputs) != len(_named(cast("object", found))):
        raise Invalid(
            'Archive-Inputs is a JSON list of strings, ["…", "…"], or an object of names and strings, {"claim": "…"}.'
        )
    return tuple(inputs)


def _named(found: object) -> list[tuple[str, object]]:
    """Name and value of each: of an object's members, of a list's items (no name), of objects in a list."""
    if isinstance(found, _Pairs):
        return list(found)
    items = cast("list[object]", found) if isinstance(found, list) else []
    return [pair for item in items for pair in (item if isinstance(item, _Pairs) else [("", item)])]


def receipt(naming: Naming | None, judgment: int | None, request: Request, reply: bytes) -> Headers:
    """The number of a named asking, and what its reading comes to on this answer."""
    headers = judged(judgment)
    word = comes_to(naming.reading, asked(request), reply) if naming is not None and naming.reading else None
    if word is not None:
        headers.append((b"archive-reading", word.encode()))
    return headers


def judged(judgment: int | None) -> Headers:
    """The header with an asking's number, where it has one."""
    return [] if judgment is None else [(b"archive-judgment", b"%d" % judgment)]
