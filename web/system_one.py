"""The drop-in API: System One's `POST /v1/systemone` and `GET /v1/models`, and whatever JSON is posted, as plain ASGI.

Bytes in, an Ask to the door, stored bytes out with a receipt in headers. What must never be here: an opinion on the
body (the model has one), anything about how the record works.
"""

import itertools
import secrets
import time
from collections.abc import Callable
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope, Send

from archive.doors import Door
from archive.encoding import decode
from archive.errors import ArchiveError, Forbidden, Invalid, NotKept, TooLarge
from archive.messages import NO_KEY, Answered, Ask, Caller, Kept, Key, Sent
from archive.multipart import rebound
from archive.picks import Fresh, KeptOnly, Latest, Pick, parse_pick
from archive.request import Destination, Request
from archive.tokens import PREFIX
from archive.when import SECOND, iso
from web.callers import Callers, secret_in
from web.destinations import Provider
from web.errors import REQUEST_ID, Headers, Response, Shape, internal, refusal, shape_of, told
from web.naming import judged, read_naming, receipt

FORWARDED = b"typesafe-danger-zone-"
"""Headers that begin so change what is answered: they are part of the identity, and go up, as do those that the
owner named for a destination. No others do.
"""

RECEIPTS_MAX = 10_000
"""Answers whose headers are remembered, about a kilobyte each; then all are made anew."""

Log = Callable[[str, int, float], None]


class Api(msgspec.Struct, frozen=True):
    """What all routes share: the door and who may come."""

    door: Door
    hosts: frozenset[bytes]
    origins: frozenset[bytes]
    body_bytes_max: int
    no_cache_is_fresh: bool
    log: Log
    callers: Callers


Find = Callable[[str, str, str], Destination]
"""From an HTTP request's method, its path and its query, the last two as they came, to where it goes."""


class Route:
    """One route of the API: everything posted (or got) here goes to one provider."""

    def __init__(self, api: Api, provider: Provider, find: Destination | Find, name: str) -> None:
        """`find`: the one destination, which takes no query, or how it is found. `name` is for the log."""
        self._api = api
        self._find = find
        self._base = provider.url
        self._forward = frozenset(header.encode() for header in provider.forward)
        self._key_header = b"" if provider.key.secret else provider.key.header.encode()
        self._name = name
        self._delivery = f"{secrets.token_hex(4)}-".encode()
        self._deliveries = itertools.count(1)
        self._receipts: dict[int, tuple[Kept, Headers]] = {}

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

    async def _respond(self, scope: Scope, receive: Receive, shape: Shape) -> Response:
        headers = by_name(scope["headers"])
        check_place(headers, self._api.hosts, self._api.origins)
        check_site(headers)
        caller = self._api.callers.of_api(scope, headers)
        place = self._place(scope)
        if scope["method"] != place.method:
            allow = [(b"allow", place.method.encode())]
            text = f"This address takes {place.method} only."
            return refusal(shape, HTTPStatus.METHOD_NOT_ALLOWED, "invalid", text, allow)
        pick = self._pick(headers)
        naming = read_naming(headers)
        body, content_type = b"", ""
        if place.method == "POST":
            content_type = _text(headers.get(b"content-type", b""))
            # Of the APIs known here, System One alone takes images beside the JSON.
            check_media(content_type, multipart=place.name == "systemone")
            body = await read_body(receive, headers, self._api.body_bytes_max)
            body = decoded(body, headers.get(b"content-encoding", b""), self._api.body_bytes_max)
            content_type, body = rebound(content_type, body)
        request = Request(place, body, content_type, self._forwarded(scope["headers"]))
        try:
            ask = Ask(request, pick, self._key(headers, caller), naming, caller)
            answered = await self._api.door.send(ask)
        except NotKept as error:
            if isinstance(pick, KeptOnly):
                # RFC 9111 §5.2.1.7: only-if-cached and nothing stored is 504.
                return refusal(shape, HTTPStatus.GATEWAY_TIMEOUT, error.code, error.text)
            raise
        kept = answered.kept
        said = self._receipt(answered, pick, shape) + receipt(naming, answered.judgment, request, kept.body)
        return Response(kept.status, kept.body, said, kept.cuts)

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

    def _key(self, headers: dict[bytes, bytes], caller: Caller) -> Key:
        """The caller's own, which is never kept; none where the owner's goes up. Our own tokens never go up."""
        secret = headers.get(self._key_header, b"").strip()
        if self._key_header == b"authorization":
            scheme, _, secret = secret.partition(b" ")
            secret = secret.strip() if scheme.lower() == b"bearer" else b""
        if not secret or secret.startswith(PREFIX.encode()) or (caller.token and secret == secret_in(headers)):
            return NO_KEY
        if not secret.isascii():
            raise Invalid("The key holds a character that no key has.")
        return Key(secret.decode("ascii"), self._key_header.decode())

    def _forwarded(self, headers: list[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
        found = [(name, value) for name, value in headers if name.startswith(FORWARDED) or name in self._forward]
        return tuple(sorted((name.decode("latin-1"), _text(value)) for name, value in found)) if found else ()

    def _receipt(self, answered: Answered, pick: Pick, shape: Shape) -> Headers:
        """What this answer is and what it cost, in headers; the body stays as it was stored."""
        kept, sent = answered.kept, answered.sent
        same = self._receipts.get(id(kept))
        if same is None or same[0] is not kept:
            if len(self._receipts) >= RECEIPTS_MAX:
                self._receipts.clear()
            # The answer is held beside its headers, so that no other object can come by its id.
            # A route leads to one destination by one address, so its shape is always the same.
            same = self._receipts[id(kept)] = (kept, _constant(kept, REQUEST_ID[shape]))
        headers = [
            *same[1],
            (b"cache-status", _cache_status(answered, pick)),
            (b"archive-sent", sent.value.encode()),
            (b"archive-delivery", b"%s%d" % (self._delivery, next(self._deliveries))),
            (b"archive-cost-now", _dollars(kept.cost) if sent is Sent.NOW else b"0"),
        ]
        if kept.recorded:
            headers.append((b"age", b"%d" % (max(0, now() - kept.kept_at) // SECOND)))
        return headers


def _constant(kept: Kept, request_id: bytes) -> Headers:
    """What is the same in every receipt of one answer; `request_id`: the header of the provider's own id."""
    headers = [
        (b"content-type", kept.content_type.encode("utf-8", "surrogateescape")),
        (b"archive-call", kept.call_id.encode()),
        (b"archive-cost-made", _dollars(kept.cost)),
    ]
    if kept.recorded:
        headers.append((b"archive-answer", b"%d/%d" % (kept.n, kept.total)))
        headers.append((b"archive-kept-at", iso(kept.kept_at).encode()))
    else:
        headers.append((b"archive-answer", b"not in the record yet"))
    if kept.cut_short:
        headers.append((b"archive-cut-short", b"yes"))
    if kept.provider_id:
        headers.append((request_id, kept.provider_id.encode("utf-8", "surrogateescape")))
    return headers


def _cache_status(answered: Answered, pick: Pick) -> bytes:
    """RFC 9211: was this a hit? If not: why it went on, whether it is on record, whether the call was another's."""
    if answered.sent is Sent.NOT_SENT:
        return b"Askonce; hit"
    why = b"request" if isinstance(pick, Fresh) else b"uri-miss"
    stored = b"; stored" if answered.kept.recorded else b""
    return b"Askonce; fwd=" + why + stored + (b"; collapsed" if answered.sent is Sent.SHARED else b"")


def _dollars(billionths: int | None) -> bytes:
    if billionths is None:
        return b"unknown"
    return f"{billionths // 10**9}.{billionths % 10**9:09d}".rstrip("0").rstrip(".").encode()


def _text(value: bytes) -> str:
    """A header's value that goes up, where it is written as UTF-8 again. Raises Invalid for any other bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Invalid("The value of a header that is passed on must be UTF-8.") from None


def by_name(lines: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name. A name given twice is one list (RFC 9110 §5.3): a line that saves a call must not get lost."""
    headers = dict(lines)
    if len(headers) != len(lines):
        for name in headers:
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


async def read_body(receive: Receive, headers: dict[bytes, bytes], bytes_max: int) -> bytes:
    """The whole body. Raises TooLarge as soon as it is, by its own word or by count."""
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > bytes_max:
        raise TooLarge(_too_large(bytes_max))
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
        headers.append((b"content-length", b"%d" % len(body)))
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
