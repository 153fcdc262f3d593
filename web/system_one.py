"""The drop-in API: System One's `POST /v1/systemone` and `GET /v1/models`, and whatever JSON is posted, as plain ASGI.

Bytes in, an Ask to the door, stored bytes out with a receipt in headers. What must never be here: an opinion on the
body (the model has one), anything about how the record works.
"""

import itertools
import re
import time
from collections.abc import Callable
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope, Send

from archive.doors import Door
from archive.encoding import decode
from archive.errors import ArchiveError, Forbidden, Invalid, NotKept, TooLarge
from archive.messages import NO_KEY, Answered, Ask, Caller, Kept, Key
from archive.multipart import rebound
from archive.naming import Naming
from archive.picks import Fresh, KeptOnly, Latest, Pick, parse_pick
from archive.request import Destination, Request
from archive.tokens import PREFIX
from web.callers import Callers, Shown, key_in, shown_in
from web.destinations import Provider
from web.errors import Response, Shape, internal, refusal, shape_of, told
from web.naming import judged, read_naming, receipt
from web.receipts import Receipts, length

FORWARDED = b"typesafe-danger-zone-"
"""Headers that begin so change what is answered: they are part of the identity, and go up, as do those that the
owner named for a destination. No others do.
"""

_OURS = re.compile(rb"(?<![A-Za-z0-9_-])" + PREFIX.encode())
"""One of our tokens, alone or among others: a header that is given twice is one list."""

Log = Callable[[str, int, float], None]


class Api(msgspec.Struct, frozen=True):
    """What all routes share: the door, what can be had there without waiting, and who may come."""

    door: Door
    at_once: Callable[[Ask, Callable[[Kept], bool]], Answered | None]
    hosts: frozenset[bytes]
    origins: frozenset[bytes]
    body_bytes_max: int
    no_cache_is_fresh: bool
    log: Log
    callers: Callers


Find = Callable[[str, str, str], Destination]
"""From an HTTP request's method, its path and its query, the last two as they came, to where it goes."""


class Head(msgspec.Struct, frozen=True):
    """All that a request says before its body."""

    headers: dict[bytes, bytes]
    caller: Caller
    place: Destination
    pick: Pick
    naming: Naming | None
    content_type: str
    forwarded: tuple[tuple[str, str], ...]
    key: Key


class Plain(msgspec.Struct, frozen=True):
    """What a head comes to that asks for the latest answer and for nothing else, and is followed by plain JSON.

    Who asks is not settled by it: a token may be revoked between two requests. No secret is in it.
    """

    route: "Route"
    place: Destination
    content_type: str
    forwarded: tuple[tuple[str, str], ...]
    shown: Shown
    shape: Shape


class Route:
    """One route of the API: everything posted (or got) here goes to one provider."""

    def __init__(self, api: Api, provider: Provider, find: Destination | Find, name: str) -> None:
        """`find`: the one destination, which takes no query, or how it is found. `name` is for the log."""
        self._api = api
        self._find = find
        self._base = provider.url
        self._forward = frozenset(header.encode() for header in provider.forward)
        self._key_header = provider.key.header.encode()
        self._takes_keys = not provider.key.secret
        self._name = name
        self._receipts = Receipts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        started = time.perf_counter()
        shape = self._shape(scope)
        try:
            response = await self._respond(scope, receive, shape)
        except ArchiveError as error:
            response = told(error, now(), shape)
            response.headers.extend(judged(error.judgment))
        except Exception as error:
            response = told(internal(error), now(), shape)
        await deliver(response, scope, send)
        self._api.log(self._name, response.status, time.perf_counter() - started)

    def _shape(self, scope: Scope) -> Shape:
        if isinstance(self._find, Destination):
            return Shape.SYSTEM_ONE
        return shape_of(scope["raw_path"].decode("latin-1"), self._base)

    def plain(self, scope: Scope) -> Plain | None:
        """What the head in `scope` comes to, if it says nothing out of the ordinary. Raises what it is refused with."""
        shape = self._shape(scope)
        head = self._read(scope, shape)
        if isinstance(head, Response) or head.naming is not None or not isinstance(head.pick, Latest):
            return None
        if head.place.method != "POST" or head.headers.get(b"content-encoding"):
            return None
        check_media(head.content_type, multipart=False)
        check_length(head.headers, self._api.body_bytes_max)
        shown = shown_in(head.headers, self._key_header)
        return Plain(self, head.place, head.content_type, head.forwarded, shown, shape)

    def at_once(self, plain: Plain, body: bytes) -> tuple[Kept, bytes] | None:
        """A kept answer that can be had without waiting, and its receipt as lines; it is counted and logged.

        None: nothing was done. Raises what it is refused with, which is not counted: asked again it is refused again.
        """
        started = time.perf_counter()
        caller = Caller(self._api.callers.number(plain.shown))
        request = Request(plain.place, body, plain.content_type, plain.forwarded)
        receipts = self._receipts
        answered = self._api.at_once(Ask(request, caller=caller), lambda kept: receipts.has_lines(kept, plain.shape))
        if answered is None:
            return None
        kept = answered.kept
        said = receipts.lines(kept, plain.shape, now())
        self._api.log(self._name, kept.status, time.perf_counter() - started)
        return kept, said

    async def _respond(self, scope: Scope, receive: Receive, shape: Shape) -> Response:
        head = self._read(scope, shape)
        if isinstance(head, Response):
            return head
        content_type, body = head.content_type, b""
        if head.place.method == "POST":
            body = await read_body(receive, head.headers, self._api.body_bytes_max)
            body = decoded(body, head.headers.get(b"content-encoding", b""), self._api.body_bytes_max)
            content_type, body = rebound(content_type, body)
        request = Request(head.place, body, content_type, head.forwarded)
        try:
            answered = await self._api.door.send(Ask(request, head.pick, head.key, head.naming, head.caller))
        except NotKept as error:
            if isinstance(head.pick, KeptOnly):
                # RFC 9111 §5.2.1.7: only-if-cached and nothing stored is 504.
                return refusal(shape, HTTPStatus.GATEWAY_TIMEOUT, error.code, error.text)
            raise
        kept = answered.kept
        said = self._receipts.of(answered, head.pick, shape, now()) + receipt(
            head.naming, answered.judgment, request, kept.body
        )
        return Response(kept.status, kept.body, said, kept.cuts)

    def _read(self, scope: Scope, shape: Shape) -> Head | Response:
        """What the head says, or the response to a method that is not taken here. Raises what it is refused with."""
        headers = by_name(scope["headers"])
        check_place(headers, self._api.hosts, self._api.origins)
        check_site(headers)
        caller = self._api.callers.of_api(scope, headers, self._key_header)
        place = self._place(scope)
        if scope["method"] != place.method:
            # A list of models below a provider's prefix is got, and may be posted to as everything there may.
            only = place.method if place is self._find or place.method == "POST" else "GET, POST"
            text = f"This address takes {only.replace(',', ' and')} only."
            return refusal(shape, HTTPStatus.METHOD_NOT_ALLOWED, "invalid", text, [(b"allow", only.encode())])
        pick = self._pick(headers)
        naming = read_naming(headers)
        content_type = ""
        if place.method == "POST":
            content_type = _text(headers.get(b"content-type", b""))
            # Of the APIs known here, System One alone takes images beside the JSON.
            check_media(content_type, multipart=place.name == "systemone")
        forwarded, key = self._forwarded(scope["headers"]), self._key(headers)
        return Head(headers, caller, place, pick, naming, content_type, forwarded, key)

    def _place(self, scope: Scope) -> Destination:
        query: bytes = scope["query_string"]
        if not isinstance(self._find, Destination):
            return self._find(scope["method"], scope["raw_path"].decode("latin-1"), query.decode("latin-1"))
        if query and scope["method"] == self._find.method:
            raise Invalid("This address takes no query: it would be neither sent nor kept. Leave out all from the ?.")
        return self._find

    def _pick(self, headers: dict[bytes, bytes]) -> Pick:
        answer = headers.get(b"archive-answer")
        directives = headers.get(b"cache-control", b"").lower()
        pick = parse_pick(None if answer is None else answer.decode("latin-1"), b"only-if-cached" in directives)
        if self._api.no_cache_is_fresh and isinstance(pick, Latest) and b"no-cache" in directives:
            return Fresh()
        return pick

    def _key(self, headers: dict[bytes, bytes]) -> Key:
        """The caller's own, which is never kept; none where the owner's goes up. Our own tokens never go up."""
        if not self._takes_keys:
            return NO_KEY
        secret = key_in(headers, self._key_header)
        if not secret or _OURS.search(secret):
            return NO_KEY
        if not secret.isascii():
            raise Invalid("The key holds a character that no key has.")
        return Key(secret.decode("ascii"), self._key_header.decode())

    def _forwarded(self, headers: list[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
        found = [(name, value) for name, value in headers if name.startswith(FORWARDED) or name in self._forward]
        return tuple(sorted((name.decode("latin-1"), _text(value)) for name, value in found)) if found else ()


def _text(value: bytes) -> str:
    """A header's value that goes up, where it is written as UTF-8 again. Raises Invalid for any other bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Invalid("The value of a header that is passed on must be UTF-8.") from None


def by_name(lines: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name. A name given twice is one list (RFC 9110 §5.3): a line that saves a call must not get lost.

    Raises Invalid for one of ours, which are none.
    """
    headers = dict(lines)
    if len(headers) != len(lines):
        for name in headers:
            if name.startswith(b"archive-") and sum(other == name for other, _ in lines) > 1:
                raise Invalid(f"{name.decode('latin-1').title()} is there more than once; one line says all of it.")
            headers[name] = b", ".join(value for other, value in lines if other == name)
    return headers


def now() -> int:
    """This moment, in microseconds since 1970."""
    return time.time_ns() // 1000


def check_place(headers: dict[bytes, bytes], hosts: frozenset[bytes], origins: frozenset[bytes]) -> None:
    """Is this request meant for us, and not made by somebody else's web page? Raises Forbidden."""
    host = headers.get(b"host", b"").lower()
    if host not in hosts and host.rpartition(b":")[0] not in hosts:
        raise Forbidden("This host name is not one of this server's. Its owner can name it in ASKONCE_PUBLIC_URL.")
    origin = headers.get(b"origin")
    if origin is not None and origin.lower() not in origins:
        raise Forbidden("Pages of other sites may not ask here.")


def check_site(headers: dict[bytes, bytes]) -> None:
    """A form of another site's page, from a browser that says so without an Origin. Raises Forbidden."""
    site = headers.get(b"sec-fetch-site", b"none").lower()
    if b"origin" not in headers and site not in {b"none", b"same-origin"}:
        raise Forbidden("Pages of other sites may not ask here.")


def check_media(content_type: str, *, multipart: bool) -> None:
    """JSON is taken, and where the API has it multipart, which a foreign page's form can send too. Raises Invalid."""
    media = content_type.partition(";")[0].strip().lower()
    if media == "multipart/form-data" and multipart:
        return
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise Invalid("Send JSON, with the header Content-Type: application/json.")


def check_length(headers: dict[bytes, bytes], bytes_max: int) -> None:
    """A body that is too large by its own word is not waited for. Raises TooLarge."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > bytes_max:
        raise TooLarge(_too_large(bytes_max))


async def read_body(receive: Receive, headers: dict[bytes, bytes], bytes_max: int) -> bytes:
    """The whole body. Raises TooLarge as soon as it is, by its own word or by count."""
    check_length(headers, bytes_max)
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Invalid("The connection ended before the whole body had come.")
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > bytes_max:
            raise TooLarge(_too_large(bytes_max))
        pieces.append(piece)
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decoded(body: bytes, encoding: bytes, bytes_max: int) -> bytes:
    """The body with its Content-Encoding taken off. Raises Invalid or TooLarge."""
    name = encoding.strip().lower().decode("latin-1")
    return body if name in {"", "identity"} else decode(body, name, bytes_max)


async def deliver(response: Response, scope: Scope, send: Send) -> None:
    """Send a response: a stream in the chunks it came in, all else in one piece, its length first."""
    headers, body = response.headers, response.body
    # HTTP/1.0 has no chunks.
    cuts = response.cuts if scope["http_version"] != "1.0" else ()
    if not cuts:
        headers.insert(0, length(body))
        cuts = (len(body),)
    if scope["method"] == "HEAD":
        body, cuts = b"", (0,)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    at = 0
    for end in itertools.accumulate(cuts):
        await send({"type": "http.response.body", "body": body[at:end], "more_body": end < len(body)})
        at = end


def _too_large(bytes_max: int) -> str:
    return f"The body is larger than {bytes_max} bytes, the most that is taken here."
