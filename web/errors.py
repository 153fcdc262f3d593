"""What each error is over HTTP: one table of statuses, and the error shape of each API that is spoken here.

What must never be here: text that is not meant for everyone. An error that is not ours is `internal`, with an id.
"""

import logging
import math
import secrets
import traceback
from enum import Enum, auto
from http import HTTPStatus

import msgspec

from archive.errors import ArchiveError, BadToken, CallFailed, CallUnknown, Cooling
from archive.when import SECOND

log = logging.getLogger("askonce")

STATUS = {
    "invalid": HTTPStatus.BAD_REQUEST,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "not_found": HTTPStatus.NOT_FOUND,
    "not_kept": HTTPStatus.NOT_FOUND,
    "withdrawn": HTTPStatus.GONE,
    "erased": HTTPStatus.GONE,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "forbidden": HTTPStatus.FORBIDDEN,
    "over_limit": HTTPStatus.TOO_MANY_REQUESTS,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "cooling": HTTPStatus.SERVICE_UNAVAILABLE,
    "call_failed": HTTPStatus.BAD_GATEWAY,
    "call_unknown": HTTPStatus.CONFLICT,
    "record_closed": HTTPStatus.SERVICE_UNAVAILABLE,
    "disconnected": HTTPStatus.BAD_GATEWAY,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""By code: the status an asker sees. `status_of` has the few that depend on more than the code."""

Headers = list[tuple[bytes, bytes]]


class Response(msgspec.Struct, frozen=True):
    """A whole HTTP response. `cuts`: of a stream, the bytes in each chunk it goes out in."""

    status: int
    body: bytes
    headers: Headers
    cuts: tuple[int, ...] = ()


def status_of(error: ArchiveError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, CallUnknown) and error.waited:
        return HTTPStatus.GATEWAY_TIMEOUT
    if isinstance(error, Cooling) and error.status == HTTPStatus.TOO_MANY_REQUESTS:
        return HTTPStatus.TOO_MANY_REQUESTS
    if isinstance(error, BadToken) and error.missing:
        # As System One's own server has it: a wrong key is 401, none is 403.
        return HTTPStatus.FORBIDDEN
    return STATUS[error.code]


class Shape(Enum):
    """Whose API was called: its clients look for errors, and for the id of a request, where that API has them."""

    SYSTEM_ONE = auto()
    OPENAI = auto()
    OPENROUTER = auto()
    ANTHROPIC = auto()


def shape_of(path: str, base: str = "") -> Shape:
    """Which API somebody means who asks at `path`; `base`: the base URL it leads to, empty where nobody is there.

    What is below /to/NAME is judged by where it leads, everything else by its address here. Whatever is behind a
    destination and none of the others is taken for OpenAI's, which most others follow.
    """
    words = _words(path)
    if base and words[:1] == ["to"]:
        words = _words(base) + words[2:]
    last = words[-1] if words else ""
    if last == "systemone" or "typesafe" in words or "api.typesafe.ai" in words:
        return Shape.SYSTEM_ONE
    if last == "messages":
        return Shape.ANTHROPIC
    if words[:1] == ["api"] or "openrouter.ai" in words or words[-2:] == ["alpha", "decisions"]:
        return Shape.OPENROUTER
    return Shape.OPENAI if base or words[:1] == ["to"] or last in _OPENAI else Shape.SYSTEM_ONE


def _words(address: str) -> list[str]:
    return [word for word in address.partition("?")[0].lower().split("/") if word]


_OPENAI = frozenset(["completions", "decisions", "embeddings", "responses"])

_TYPES: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "request_too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}
"""An error's type by its status, as Anthropic names them and OpenAI's clients know them."""

REQUEST_ID = {
    Shape.SYSTEM_ONE: b"x-typesafe-request-id",
    Shape.OPENAI: b"x-request-id",
    Shape.OPENROUTER: b"x-request-id",
    Shape.ANTHROPIC: b"request-id",
}
"""The header in which clients look for the provider's own id of a call."""


def told(error: ArchiveError, now: int, shape: Shape) -> Response:
    """An error as a client of that API reads it. What the model's own server refused is passed on as it came."""
    reply = error.reply if isinstance(error, CallFailed) else None
    if reply is not None and reply.status >= HTTPStatus.BAD_REQUEST:
        said = [(b"content-type", reply.content_type), (REQUEST_ID[shape], reply.provider_id)]
        said += [(b"retry-after", value) for value in reply.retry_after]
        said += [(b"retry-after-ms", value) for value in reply.retry_after_ms]
        passed = [(name, value.encode("utf-8", "surrogateescape")) for name, value in said if value]
        return Response(reply.status, reply.body, passed)
    headers = list[tuple[bytes, bytes]]()
    if error.until is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil((error.until - now) / SECOND))))
    elif error.code in {"busy", "record_closed"}:
        headers.append((b"retry-after", b"1"))
    elif isinstance(error, BadToken):
        headers.append((b"www-authenticate", b"Bearer"))
    hint = ""
    if isinstance(error, CallUnknown):
        hint = " Archive-Answer: fresh sends it again."
        # OpenAI's and Anthropic's SDKs try again after a 409 too, unless they are told not to.
        headers.append((b"x-should-retry", b"false"))
    return refusal(shape, status_of(error), error.code, error.text + hint, headers)


def internal(error: Exception) -> ArchiveError:
    """An error that is not ours to explain: logged by id with where it came from, its text never shown."""
    name = secrets.token_hex(4)
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("internal error %s: %s at %s", name, type(error).__name__, " ".join(where[-4:]))
    return ArchiveError(f"Something went wrong on our side. Its id is {name}.")


def refusal(shape: Shape, status: int, code: str, message: str, headers: Headers | None = None) -> Response:
    """An error of ours in the shape that an API's own documents give it."""
    body = msgspec.json.encode(_body(shape, status, code, message))
    return Response(status, body, [(b"content-type", b"application/json"), *(headers or [])])


def _body(shape: Shape, status: int, code: str, message: str) -> dict[str, object]:
    kind = _TYPES.get(status)
    if kind is None:
        kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "api_error"
    match shape:
        case Shape.SYSTEM_ONE:
            return {"detail": {"error_type": code, "message": message}}
        case Shape.OPENAI:
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}
        case Shape.OPENROUTER:
            return {"error": {"code": status, "message": message}}
        case Shape.ANTHROPIC:
            return {"type": "error", "error": {"type": kind, "message": message}}
