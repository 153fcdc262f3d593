"""Both ends of a wire by hand: upstreams that go wrong, ends that are no HTTP server, a client's bare socket."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from archive.attempts import Why
from tests.fakes import Got, answer

Behaviour = Callable[[Got, asyncio.StreamWriter], Awaitable[None]]

OK_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def whole(noul: float = 0.83, head: bytes = OK_HEAD) -> bytes:
    """A whole response with `answer`."""
    return head + b"content-length: %d\r\n\r\n" % len(answer(noul)) + answer(noul)


EVENTS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


def in_chunks(*pieces: bytes, head: bytes = EVENTS_HEAD, end: bytes = b"0\r\n\r\n") -> bytes:
    """A whole response in these chunks; without `end` it is not whole."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunks + end


def says(data: bytes) -> Behaviour:
    """Write `data` and nothing more; the connection stays open."""

    async def behave(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


def hangs_up(after: bytes = b"") -> Behaviour:
    """Write `after`, then close as a stopped program does."""

    async def behave(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        writer.close()

    return behave


def resets(after: bytes = b"") -> Behaviour:
    """Write `after`, then reset the connection."""

    async def behave(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        reset(writer)

    return behave


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with an RST: what was not read yet is lost on the other side."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


REPLY_BYTES = 5000
"""A limit for replies under which one of the following is too large."""

LONG = OK_HEAD + b"content-length: 1000\r\n\r\n"

BROKEN: dict[str, tuple[Behaviour, Why]] = {
    "hangs up before a byte": (hangs_up(), Why.BROKEN_OFF),
    "resets before a byte": (resets(), Why.BROKEN_OFF),
    "hangs up in the headers": (hangs_up(OK_HEAD), Why.BROKEN_OFF),
    "hangs up after the headers": (hangs_up(LONG), Why.BROKEN_OFF),
    "resets after the headers": (resets(LONG), Why.BROKEN_OFF),
    "hangs up in the body": (hangs_up(LONG + b'{"model":'), Why.BROKEN_OFF),
    "hangs up in a chunk": (hangs_up(OK_HEAD + b"transfer-encoding: chunked\r\n\r\n40\r\n{"), Why.BROKEN_OFF),
    "never replies": (says(b""), Why.SLOW),
    "stalls in the headers": (says(OK_HEAD), Why.SLOW),
    "stalls in the body": (says(LONG + b'{"model":'), Why.SLOW),
    "speaks no HTTP": (says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), Why.BROKEN_OFF),
    "replies without end": (
        says(OK_HEAD + b"content-length: 99999\r\n\r\n" + bytes(9999)),
        Why.REPLY_TOO_LARGE,
    ),
}
"""Ways to go wrong once a request has come: each makes it unknown, and why."""


@asynccontextmanager
async def end(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncGenerator[str, None]:
    """Something that listens on loopback and does `serve` with each connection; its host and port."""
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(one(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def dial(url: str, data: bytes, headers: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to an Askonce and ask `data`, as a client that does not read yet."""
    place = url.removeprefix("http://")
    host, _, port = place.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = b"POST /v1/systemone HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    writer.write(head % (place.encode(), len(data)) + headers + b"\r\n" + data)
    await writer.drain()
    return reader, writer


@asynccontextmanager
async def nobody() -> AsyncGenerator[str, None]:
    """A host and port at which connections are refused, and which nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"
