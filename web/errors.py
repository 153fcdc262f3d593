"""What each error is over HTTP: one table of statuses, and System One's own error shape.

What must never be here: text that is not meant for everyone. An error that is not ours is `internal`, with an id.
"""

import logging
import math
import secrets
import traceback
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


def system_one(error: ArchiveError, now: int) -> Response:
    """An error as a System One client reads it. What the model's own server refused is passed on as it came."""
    reply = error.reply if isinstance(error, CallFailed) else None
    if reply is not None and reply.status >= HTTPStatus.BAD_REQUEST:
        headers = [("content-type", reply.content_type), ("x-typesafe-request-id", reply.provider_id)]
        headers += [("retry-after", value) for value in reply.retry_after]
        headers += [("retry-after-ms", value) for value in reply.retry_after_ms]
        return Response(
            reply.status, reply.body, [(n.encode(), v.encode("utf-8", "surrogateescape")) for n, v in headers if v]
        )
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
    return detail(status_of(error), error.code, error.text + hint, headers)


def internal(error: Exception) -> ArchiveError:
    """An error that is not ours to explain: logged by id with where it came from, its text never shown."""
    name = secrets.token_hex(4)
    where = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("internal error %s: %s at %s", name, type(error).__name__, " ".join(where[-4:]))
    return ArchiveError(f"Something went wrong on our side. Its id is {name}.")


def detail(status: int, error_type: str, message: str, headers: Headers | None = None) -> Response:
    """`{"detail": {"error_type", "message"}}`, the shape System One's own errors have."""
    body = msgspec.json.encode({"detail": {"error_type": error_type, "message": message}})
    return Response(status, body, [(b"content-type", b"application/json"), *(headers or [])])
