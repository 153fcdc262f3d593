"""The drop-in System One API: `POST /v1/systemone` and `GET /v1/models`, as plain ASGI.

Bytes in, an Ask to the door, stored bytes out with a receipt in headers. What must never be here: an opinion on the
body (the model has one), anything about how the record works.
"""

import itertools
import secrets
import time
import zlib
from collections.abc import Callable
from http import HTTPStatus
from io import BytesIO

import msgspec
import zstandard
from starlette.types import Receive, Scope, Send

from archive.doors import Door
from archive.errors import ArchiveError, Forbidden, Invalid, NotKept, TooLarge
from archive.messages import Answered, Ask, Kept, Key, Sent
from archive.picks import Fresh, KeptOnly, Latest, Pick, parse_pick
from archive.request import Destination, Request
from archive.when import SECOND, iso
from web.errors import Headers, Response, detail, internal, system_one

FORWARDED = b"typesafe-danger-zone-"
"""Headers that begin so change what is answered: they are part of the identity, and go up. No others do."""

RECEIPTS_MAX = 10_000
"""Answers whose headers are remembered, about a kilobyte each; then all are made anew."""

Log = Callable[[str, int, float], None]


class Api(msgspec.Struct, frozen=True):
    """What both routes share: the door, who may come, what is sent along."""

    door: Door
    hosts: frozenset[bytes]
    origins: frozenset[bytes]
    key: Key
    body_bytes_max: int
    no_cache_is_fresh: bool
    log: Log


class Route:
    """One route of the API: everything posted (or got) here goes to one destination."""

    def __init__(self, api: Api, destination: Destination, path: str) -> None:
        self._api = api
        self._destination = destination
        self._method = destination.method
        self._name = f"{destination.method} {path}"
        self._delivery = f"{secrets.token_hex(4)}-".encode()
        self._deliveries = itertools.count(1)
        self._receipts: dict[int, tuple[Kept, Headers]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        started = time.perf_counter()
        try:
            response = await self._respond(scope, receive)
        except ArchiveError as error:
            response = system_one(error, now())
        except Exception as error:
            response = system_one(internal(error), now())
        response.headers.append((b"content-length", b"%d" % len(response.body)))
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.body})
        self._api.log(self._name, response.status, time.perf_counter() - started)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        headers = by_name(scope["headers"])
        check_place(headers, self._api.hosts, self._api.origins)
        if scope["method"] != self._method:
            allow = [(b"allow", self._method.encode())]
            return detail(HTTPStatus.METHOD_NOT_ALLOWED, "invalid", f"This address takes {self._method} only.", allow)
        if scope["query_string"]:
            raise Invalid("This address takes no query: it would be neither sent nor kept. Leave out all from the ?.")
        pick = self._pick(headers)
        body, content_type = b"", ""
        if self._method == "POST":
            content_type = _text(headers.get(b"content-type", b""))
            check_json(content_type)
            body = await read_body(receive, headers, self._api.body_bytes_max)
            body = decoded(body, headers.get(b"content-encoding", b""), self._api.body_bytes_max)
        request = Request(self._destination, body, content_type, _forwarded(scope["headers"]))
        try:
            answered = await self._api.door.send(Ask(request, pick, self._key(headers)))
        except NotKept as error:
            if isinstance(pick, KeptOnly):
                # RFC 9111 §5.2.1.7: only-if-cached and nothing stored is 504.
                return detail(HTTPStatus.GATEWAY_TIMEOUT, error.code, error.text)
            raise
        return Response(answered.kept.status, answered.kept.body, self._receipt(answered, pick))

    def _pick(self, headers: dict[bytes, bytes]) -> Pick:
        answer = headers.get(b"archive-answer")
        directives = headers.get(b"cache-control", b"").lower()
        pick = parse_pick(None if answer is None else answer.decode("latin-1"), b"only-if-cached" in directives)
        if self._api.no_cache_is_fresh and isinstance(pick, Latest) and b"no-cache" in directives:
            return Fresh()
        return pick

    def _key(self, headers: dict[bytes, bytes]) -> Key:
        """The owner's key; where there is none, the caller's own, which is never kept."""
        if self._api.key.secret:
            return self._api.key
        scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            return self._api.key
        if not secret.isascii():
            raise Invalid("The key in Authorization holds a character that no key has.")
        return Key(secret.strip().decode("ascii"))

    def _receipt(self, answered: Answered, pick: Pick) -> Headers:
        """What this answer is and what it cost, in headers; the body stays as it was stored."""
        kept, sent = answered.kept, answered.sent
        same = self._receipts.get(id(kept))
        if same is None or same[0] is not kept:
            if len(self._receipts) >= RECEIPTS_MAX:
                self._receipts.clear()
            # The answer is held beside its headers, so that no other object can come by its id.
            same = self._receipts[id(kept)] = (kept, _constant(kept))
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


def _constant(kept: Kept) -> Headers:
    """What is the same in every receipt of one answer."""
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
    if kept.provider_id:
        headers.append((b"x-typesafe-request-id", kept.provider_id.encode("utf-8", "surrogateescape")))
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


def _forwarded(headers: list[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    found = [(name, value) for name, value in headers if name.startswith(FORWARDED)]
    return tuple(sorted((name.decode("latin-1"), _text(value)) for name, value in found)) if found else ()


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


def check_json(content_type: str) -> None:
    """Only JSON is taken: it is what the model reads, and what a foreign page's form cannot send. Raises Invalid."""
    media = content_type.partition(";")[0].strip().lower()
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
    """The body with its Content-Encoding taken off: nothing, gzip or zstd. Raises Invalid or TooLarge."""
    name = encoding.strip().lower().decode("latin-1")
    if name in {"", "identity"}:
        return body
    if name not in {"gzip", "x-gzip", "zstd"}:
        raise Invalid("Content-Encoding may be gzip or zstd, or be left out.")
    try:
        plain = _unzstd(body, bytes_max) if name == "zstd" else _gunzip(body, bytes_max)
    except (zlib.error, zstandard.ZstdError):
        plain = None
    if plain is None:
        raise Invalid(f"The body is not one whole {name} stream, as Content-Encoding says it is.")
    if len(plain) > bytes_max:
        raise TooLarge(_too_large(bytes_max))
    return plain


def _gunzip(body: bytes, bytes_max: int) -> bytes | None:
    """At most one byte more than allowed; None when the stream is cut or something follows it."""
    stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    plain = stream.decompress(body, bytes_max + 1)
    return plain if len(plain) > bytes_max or (stream.eof and not stream.unused_data) else None


def _unzstd(body: bytes, bytes_max: int) -> bytes | None:
    """As `_gunzip`. The reader stops in time but is silent about a cut stream, which the other way tells."""
    with zstandard.ZstdDecompressor().stream_reader(BytesIO(body)) as reader:
        plain = reader.read(bytes_max + 1)
    if len(plain) > bytes_max:
        return plain
    stream = zstandard.ZstdDecompressor().decompressobj()
    plain = stream.decompress(body)
    return plain if stream.eof and not stream.unused_data else None


def _too_large(bytes_max: int) -> str:
    return f"The body is larger than {bytes_max} bytes, the most that is taken here."
