"""Two servers to be compared over raw sockets: one as it is built, one without the short road of web/fast.py.

What must never be here: what is sent to them.
"""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from archive.admin import Deliveries
from tests.fakes import Site, Upstream, body, site, upstream
from tests.stored import rows
from web import fast
from web.system_one import Plain

HANG_SECONDS_MAX = 60
HOSTED = b"host: localhost\r\ncontent-type: application/json\r\n"


def post(data: bytes | None = None, headers: bytes = b"", first: bytes = b"POST /v1/systemone HTTP/1.1") -> bytes:
    """A request as the usual client has it, with a few headers more, or another first line."""
    data = body() if data is None else data
    return b"%s\r\n%s%scontent-length: %d\r\n\r\n%s" % (first, HOSTED, headers, len(data), data)


PLAIN = post()
HEAD = PLAIN[: PLAIN.index(b"\r\n\r\n") + 4]


class Case(NamedTuple):
    """Segments that are sent one by one; of their replies `short` take the short road once the head is known."""

    segments: tuple[bytes, ...]
    short: int = 0
    replies: int = 1
    bodies: bool = True
    closes: bool = False


class Seen:
    """What a server's connections took in, whether one was lost, and how many answers took the short road."""

    def __init__(self) -> None:
        self.bytes = 0
        self.short = 0
        self.lost = asyncio.Event()
        self.protocols: list[Any] = []
        self._more = asyncio.Event()

    def took(self, count: int) -> None:
        self.bytes += count
        self._more.set()

    async def until(self, bytes: int) -> None:
        """Wait until so many have been taken in."""
        while self.bytes < bytes:
            self._more.clear()
            await self._more.wait()


@asynccontextmanager
async def server(store: Path, model: Upstream, *, short: bool) -> AsyncGenerator[tuple[Site, Seen], None]:
    """A server with or without the short road, and what is seen of it."""
    seen = Seen()

    def spoken(read: fast.Read) -> type[asyncio.Protocol]:
        base: Any = fast.protocol(read) if short else HttpToolsProtocol

        class Watched(base):
            def connection_made(self, transport: Any) -> None:
                above: Any = super()
                above.connection_made(transport)
                # As uvloop has it. asyncio leaves it out on this socket, and each long reply would wait 40 ms.
                transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                seen.protocols.append(self)

            def connection_lost(self, exc: Exception | None) -> None:
                above: Any = super()
                above.connection_lost(exc)
                seen.lost.set()

            def data_received(self, data: bytes) -> None:
                above: Any = super()
                above.data_received(data)
                seen.took(len(data))

            def _answer(self, plain: Plain, data: bytes) -> bool:
                above: Any = super()
                found: bool = above._answer(plain, data)
                seen.short += found
                return found

        return Watched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("web.__main__.protocol", spoken)
        async with site(store, model.url) as here, asyncio.timeout(HANG_SECONDS_MAX):
            yield here, seen


class Line:
    """One raw connection."""

    def __init__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._seen = seen
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, here: Site, seen: Seen, limit: int = 2**24) -> "Line":
        """Dial; about `limit` bytes are read before anybody asks for them."""
        place = urlsplit(here.url)
        return cls(seen, *await asyncio.open_connection(place.hostname, place.port, limit=limit))

    def reading(self, yes: bool) -> None:
        """Read what comes, or leave it in the system's buffers."""
        transport: Any = self.writer.transport
        transport.resume_reading() if yes else transport.pause_reading()

    async def send(self, *segments: bytes) -> None:
        """Send segments, each when the one before was taken in."""
        for segment in segments:
            until = self._seen.bytes + len(segment)
            self.writer.write(segment)
            await self._seen.until(until)

    async def reply(self, bodies: bool = True) -> bytes:
        """One whole reply, with a 100 before it."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"HTTP/1.1 100"):
            return head + await self.reply()
        if not bodies:
            return head
        if b"\r\ntransfer-encoding: chunked" in head:
            return head + await self.reader.readuntil(b"\r\n0\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head)
        assert length, head
        return head + await self.reader.readexactly(int(length[1]))

    async def said(self, case: Case) -> bytes:
        """All that is said to a case between two plain requests, or until it is closed."""
        await self.send(PLAIN)
        said = await self.reply()
        await self.send(*case.segments)
        for _ in range(case.replies):
            said += await self.reply(case.bodies)
        if case.closes:
            return said + await self.reader.read()
        await self.send(PLAIN)
        return said + await self.reply()


def masked(said: bytes) -> bytes:
    """Without what no two servers share: the date, and what its deliveries' names begin with; their numbers stay."""
    said = re.sub(rb"\r\ndate: [^\r]+", b"\r\ndate: D", said)
    return re.sub(rb"\r\narchive-delivery: [0-9a-f]{8}-", b"\r\narchive-delivery: N-", said)


Told = Callable[[Site, Seen], Awaitable[Any]]


async def alike(folder: Path, told: Told, behave: Any = None) -> tuple[Any, Seen]:
    """What a server says, which with and without the short road is the same; so is all that is counted and logged."""
    found: list[Any] = []
    seen = Seen()
    async with upstream() as model:
        model.behave = behave
        for short in (False, True):
            store = folder / f"{short}.db"
            async with server(store, model, short=short) as (here, seen):
                said = await told(here, seen)
                log, given = here.log.copy(), await here.door.send(Deliveries())
            assert short or not seen.short
            found.append((said, log, given, rows(store, "SELECT name, value FROM count ORDER BY name")))
    assert found[0] == found[1]
    return found[0][0], seen
