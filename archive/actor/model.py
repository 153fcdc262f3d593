"""The network model: the only HTTP client in the house. One try, explicit limits.

Bytes go up and come back untouched; only a reply's compression is taken off.
What must never be here: a retry, a redirect, a proxy from the environment, an opinion on what a reply means.
"""

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Self, cast
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter, ResolveResult
from aiohttp.connector import Connection
from aiohttp.payload import Payload
from yarl import URL

from archive.attempts import Came, Lost, NotSent, Reply, Why
from archive.encoding import Decoder
from archive.errors import Invalid, TooLarge
from archive.messages import Key
from archive.reach import Address, is_here, literal, may_reach
from archive.request import Request
from archive.streams import is_stream

IDLE_SECONDS = 2.0
"""Idle connections are dropped after this: a POST on one the other side has just closed becomes an unknown."""

_CHUNK_BYTES = 64 * 1024
_CHUNKS_MAX = 1_000_000
"""Of a stream: more than any answer has tokens. Their lengths are kept, so they are bounded like its bytes."""

_PROVIDER_IDS = ("x-typesafe-request-id", "x-request-id", "request-id")
"""Where providers give their own id of a call: System One's first, then OpenAI's and others', then Anthropic's."""


class Wire(msgspec.Struct, frozen=True):
    """Limits of one call: seconds to connect, to write the body, between two bytes read; bytes of a reply."""

    connect_seconds_max: float = 10.0
    write_seconds_max: float = 30.0
    read_seconds_max: float = 600.0
    reply_bytes_max: int = 32 * 1024 * 1024


class NetworkModel:
    """Sends requests over HTTP. Use as `async with NetworkModel(...) as model`."""

    def __init__(self, wire: Wire | None = None, *, private: bool = False) -> None:
        """`private`: names may lead to addresses inside a network, see archive/reach.py."""
        self._wire = wire or Wire()
        self._private = private

    async def __aenter__(self) -> Self:
        trace = aiohttp.TraceConfig()
        trace.on_request_chunk_sent.append(_mark_sent)
        wire = self._wire
        self._session = aiohttp.ClientSession(
            # The calls themselves are bounded by the actor, so none of them waits for a connection of the pool here.
            connector=_Connector(limit=0, keepalive_timeout=IDLE_SECONDS, resolver=_Resolver(self._private)),
            timeout=aiohttp.ClientTimeout(
                total=wire.connect_seconds_max + wire.write_seconds_max + wire.read_seconds_max,
                connect=wire.connect_seconds_max,
                sock_connect=wire.connect_seconds_max,
                sock_read=wire.read_seconds_max,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[trace],
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def answer(self, request: Request, key: Key) -> Came:
        """See Model.answer. Only a call of whose body nothing was handed to the connection is NotSent."""
        place = request.destination
        headers = [("Accept", "application/json"), ("Accept-Encoding", "identity"), ("User-Agent", "askonce")]
        headers += request.headers
        if key.secret:
            headers.append((key.header, f"Bearer {key.secret}" if key.header == "authorization" else key.secret))
        # Sent as it is kept: byte for byte what was asked for, and nothing resolved or unescaped on the way.
        url = URL(place.url, encoded=True)
        address = literal(url.raw_host or "")
        if address is not None and not may_reach(address, named=True, private=self._private):
            return NotSent(Why.WRONG_ADDRESS)
        body = None
        if place.method != "GET":
            body = _Body(request.body, self._wire.write_seconds_max)
            headers.append(("Content-Type", request.content_type))
        # A request without a body is on its way as soon as its headers are, which nothing here is told of.
        mark = SimpleNamespace(sent=body is None or not request.body)
        once = (_once,) if body is None else ()
        try:
            async with self._session.request(
                place.method,
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                trace_request_ctx=mark,
                middlewares=once,
            ) as response:
                return await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error, aiohttp.ClientConnectorDNSError) and isinstance(error.os_error, _WrongAddress):
                return NotSent(Why.WRONG_ADDRESS)
            if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) or not mark.sent:
                return NotSent(Why.NO_CONNECTION)
            return Lost(Why.SLOW if isinstance(error, TimeoutError) else Why.BROKEN_OFF)

    async def _read(self, response: aiohttp.ClientResponse) -> Came:
        headers = response.headers
        try:
            body, cuts = await self._body(response)
        except TooLarge:
            return Lost(Why.REPLY_TOO_LARGE)
        except Invalid:
            return Lost(Why.UNREADABLE)
        return Reply(
            response.status,
            body,
            headers.get("Content-Type", ""),
            next(filter(None, map(headers.get, _PROVIDER_IDS)), ""),
            tuple(headers.getall("Retry-After", ())),
            tuple(headers.getall("retry-after-ms", ())),
            "Content-Length" in headers or _is_chunked(response),
            cuts,
        )

    async def _body(self, response: aiohttp.ClientResponse) -> tuple[bytes, tuple[int, ...]]:
        """The body without its Content-Encoding, and of a stream its chunks' lengths.

        Identity was asked for, but some in between compress all the same. Raises TooLarge, or Invalid when it cannot be
        unpacked whole.
        """
        name = ", ".join(response.headers.getall("Content-Encoding", ())).strip().lower()
        decoder = None if name in {"", "identity"} else Decoder(name, self._wire.reply_bytes_max)
        streams, chunked = is_stream(response.headers.get("Content-Type", "")), _is_chunked(response)
        pieces, cuts, size, cut = list[bytes](), list[int](), 0, 0
        async for piece, ends in response.content.iter_chunks():
            size += len(piece)
            if size > self._wire.reply_bytes_max or len(cuts) > _CHUNKS_MAX:
                raise TooLarge("The reply is larger than the limit.")
            plain = piece if decoder is None else decoder.feed(piece)
            pieces.append(plain)
            cut += len(plain)
            if streams and cut and (ends or not chunked):
                cuts.append(cut)
                cut = 0
        if decoder is not None and size and not decoder.is_whole:
            raise decoder.torn()
        # What a last chunk without an end held has come whole too: the body's own end was there.
        return b"".join(pieces), (*cuts, cut) if streams and cut else tuple(cuts)


def _is_chunked(response: aiohttp.ClientResponse) -> bool:
    return "chunked" in response.headers.get("Transfer-Encoding", "").lower()


async def reach(url: str, seconds_max: float, *, private: bool = False) -> str:
    """Connect to where `url` leads, with TLS where it says so, and hang up: nothing is asked, nothing is paid.

    What stands against it, in words; empty when nothing does. `private`: as NetworkModel has it.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    tls = parts.scheme == "https"
    try:
        async with asyncio.timeout(seconds_max):
            port = parts.port or (443 if tls else 80)
            _, writer = await asyncio.open_connection(host, port, ssl=tls or None)
    except TimeoutError:
        return f"no connection within {seconds_max:g} seconds"
    except ssl.SSLError as error:
        return f"no trusted connection: {error.reason or error}"
    except OSError as error:
        if error.errno is None or isinstance(error, socket.gaierror):
            return f"no connection: {error.strerror or error}"
        # asyncio puts a text of its own, with the address in it, where the system's would be.
        return f"no connection: {os.strerror(error.errno)}"
    peer = writer.get_extra_info("peername")  # None: it broke off already
    address = literal(peer[0]) if peer else None
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    if address is not None and literal(host) is None and not _may_lead(host, address, private=private):
        return "its name leads inside a network, where calls go only with private = true"
    return ""


def _may_lead(host: str, address: Address, *, private: bool) -> bool:
    """May this name lead to this address?"""
    if is_here(host) and not private:
        return address.is_loopback
    return may_reach(address, private=private)


class _WrongAddress(OSError):
    """A name leads where calls may not go."""


class _Resolver(aiohttp.ThreadedResolver):
    """Looks a name up once, for the very connection that is made with what it finds.

    A check before that would be of another look-up, and the second one may say something else.
    """

    def __init__(self, private: bool) -> None:
        super().__init__()
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await super().resolve(host, port, family)
        for one in found:
            address = literal(one["host"])
            if address is None or not _may_lead(host, address, private=self._private):
                raise _WrongAddress(f"{host} leads inside a network")
        return found


class _Connector(aiohttp.TCPConnector):
    """Never hands out a connection on which something nobody asked for has come: it would pass for the answer."""

    async def connect(self, *args: Any, **more: Any) -> Connection:
        while True:
            connection = await super().connect(*args, **more)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp sends a GET again by itself when its connection broke off, unless the error is of another kind."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError("broken off") from error


class _Body(Payload):
    """A body that must be taken within a limit: aiohttp has none for writing."""

    def __init__(self, body: bytes, seconds_max: float) -> None:
        super().__init__(body)
        self._size = len(body)
        self._seconds_max = seconds_max

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return cast("bytes", self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        body = memoryview(cast("bytes", self._value))
        if len(body) <= _CHUNK_BYTES:
            # So little is taken by the connection's own buffer at once.
            await writer.write(body)
            return
        async with asyncio.timeout(self._seconds_max):
            for start in range(0, len(body), _CHUNK_BYTES):
                await writer.write(body[start : start + _CHUNK_BYTES])
            await writer.drain()


async def _mark_sent(_session: Any, context: SimpleNamespace, _chunk: Any) -> None:
    context.trace_request_ctx.sent = True
