"""What is asked: a destination and the exact bytes, and everything that follows from them alone.

Nothing here is normalised: two requests are one only when every byte of them agrees.
What must never be here: a provider's key, a clock, what came back.
"""

import json
from functools import lru_cache
from hashlib import sha256
from typing import cast

import msgspec

from archive.multipart import asked_in


class Destination(msgspec.Struct, frozen=True, cache_hash=True):
    """Where a request goes. `url` is whole (scheme, host, path, query without secrets); no key is in it.

    `name` says which wire format is spoken there (see `attempts.READERS`).
    """

    name: str
    method: str
    url: str

    @property
    def is_local(self) -> bool:
        """Answered inside this process: free, and never unknown."""
        return self.url.startswith("local:")


class Request(msgspec.Struct, frozen=True, cache_hash=True):
    """A destination and exact bytes: the whole identity. Equal means equal in every field.

    `headers` are those that are forwarded and may change an answer, names in lower case, sorted.
    `partition` is whose archive it belongs to; empty is the shared one.
    """

    destination: Destination
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    partition: str = ""


def digest(request: Request) -> bytes:
    """SHA-256 over the whole identity, 32 bytes; a length before every piece keeps it from running into the next."""
    place = request.destination
    pieces = [request.partition, place.name, place.method, place.url, request.content_type]
    pieces += [word for header in request.headers for word in header]
    running = sha256()
    for piece in (*(word.encode("utf-8", "surrogatepass") for word in pieces), request.body):
        running.update(b"%d:" % len(piece))
        running.update(piece)
    return running.digest()


def fingerprint(data: bytes) -> int:
    """The first 64 bits of a 32-byte digest as SQLite's signed integer: an index, never a judge."""
    return int.from_bytes(data[:8], "big", signed=True)


def named_between(name: str) -> tuple[int, int]:
    """The least and the greatest fingerprint that a request with this call_id can have."""
    return fingerprint(bytes.fromhex(name) + b"\x00\x00"), fingerprint(bytes.fromhex(name) + b"\xff\xff")


def call_id_of(fingerprint: int) -> str:
    """The call_id of the request that has this fingerprint."""
    return f"{fingerprint >> 16 & 2**48 - 1:012x}"


def call_id(request: Request) -> str:
    """Twelve hex digits that name a request for people, buttons, pins and links. Never decides anything."""
    return digest(request).hex()[:12]


class Parts(msgspec.Struct, frozen=True):
    """A body cut in three: its top-level `state` and `model` values, and the rest, the instructions.

    `state_at` and `model_at` are byte offsets into `instructions` where the values belong.
    A body that cannot be cut is all instructions, and `whole` says so.
    """

    instructions: bytes
    state: bytes | None = None
    state_at: int = 0
    model: bytes | None = None
    model_at: int = 0

    @property
    def whole(self) -> bool:
        return self.state is None or self.model is None


@lru_cache(maxsize=1)  # one body is asked about a few times in a row
def split(body: bytes) -> Parts:
    """Cut a body by position; joined again it is the same bytes. Never raises: what cannot be cut stays whole."""
    found = _values_at(body)
    if found is None:
        return Parts(body)
    (state_start, state_end), (model_start, model_end) = found
    cuts = sorted(found)
    first, second = cuts
    instructions = body[: first[0]] + body[first[1] : second[0]] + body[second[1] :]
    gone = first[1] - first[0]
    parts = Parts(
        instructions,
        body[state_start:state_end],
        state_start - (gone if state_start > model_start else 0),
        body[model_start:model_end],
        model_start - (gone if model_start > state_start else 0),
    )
    return parts if join(parts) == body else Parts(body)


def join(parts: Parts) -> bytes:
    """The body that was split, byte for byte."""
    if parts.state is None or parts.model is None:
        return parts.instructions
    rest, state, model = parts.instructions, parts.state, parts.model
    # When both stand at one offset they would be neighbours without a comma, which no JSON object has.
    (a, first), (b, second) = sorted([(parts.state_at, state), (parts.model_at, model)])
    return rest[:a] + first + rest[a:b] + second + rest[b:]


# Only positions are of interest here; `len` reads an integer of any length, which `int` does not.
_decode = json.JSONDecoder(strict=False, parse_int=len).raw_decode
_SPACE = " \t\n\r"


def _values_at(body: bytes) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Start and end of the one top-level `state` value and the one top-level `model` value, or None."""
    # Latin-1 maps each byte to one character, so the standard scanner's positions are byte positions. No byte of a
    # longer UTF-8 sequence equals a quote, a backslash or a bracket.
    text = body.decode("latin-1")
    found: dict[str, list[tuple[int, int]]] = {"state": [], "model": []}
    try:
        at = _skip(text, 0)
        if text[at] != "{":
            return None
        at += 1
        while True:
            key, at = cast("tuple[object, int]", _decode(text, _skip(text, at)))
            at = _skip(text, at)
            if not isinstance(key, str) or text[at] != ":":
                return None
            start = _skip(text, at + 1)
            _, end = cast("tuple[object, int]", _decode(text, start))
            if key in found:
                found[key].append((start, end))
            at = _skip(text, end)
            if text[at] == "}":
                break
            if text[at] != ",":
                return None
            at += 1
    except (ValueError, IndexError, RecursionError):
        return None
    if _skip(text, at + 1) != len(text) or len(found["state"]) != 1 or len(found["model"]) != 1:
        return None
    return found["state"][0], found["model"][0]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def loads(data: bytes | str) -> object:
    """The JSON in `data`, as leniently as the wire is (1e400, NaN, duplicate keys, lone surrogates), or None."""
    try:
        return _LENIENT.decode(data if isinstance(data, str) else data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    """Python refuses to read integers of more than 4,300 digits; the wire does not."""
    return int(digits) if len(digits) < 4000 else float(digits)


_LENIENT = json.JSONDecoder(parse_int=_integer)


def asked(request: Request) -> object:
    """What a request asks, decoded: its body, or a multipart body's first part that is JSON; else None."""
    return loads(asked_in(request.content_type, request.body))


def asked_model(request: Request) -> str | None:
    """The model named in the body, or None where there is none to be read."""
    model = split(asked_in(request.content_type, request.body)).model
    if model is None:
        return None
    try:
        name: object = json.loads(model)
    except (ValueError, RecursionError):
        return None
    return name if isinstance(name, str) else None
