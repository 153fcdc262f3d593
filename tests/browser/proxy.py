"""A wire between browser and server that can be cut, and led to another server: what restarts and flaps look like."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Wire:
    """Where the browser connects. `to`: the port of the server behind it, or None: nobody is there."""

    def __init__(self) -> None:
        self.url = ""
        self.to: int | None = None
        self.requests = 0
        self._ends: set[asyncio.StreamWriter] = set()

    def lead(self, url: str | None) -> None:
        """Lead new connections to a server, or nowhere."""
        self.to = None if url is None else urlsplit(url).port

    def cut(self) -> None:
        """Break every connection there is."""
        for end in self._ends:
            end.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.to is None:
            writer.transport.abort()
            return
        try:
            behind, ahead = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:  # the server is gone, and nobody has said so yet
            writer.transport.abort()
            return
        ends = {writer, ahead}
        self._ends |= ends
        await asyncio.gather(self._carry(reader, ahead), self._carry(behind, writer))
        for end in ends:
            with contextlib.suppress(ConnectionError):
                await end.wait_closed()
        self._ends -= ends

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                self.requests += data.startswith((b"GET /?", b"GET / "))
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def wire() -> AsyncGenerator[Wire, None]:
    """A Wire that leads nowhere yet."""
    made = Wire()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await asyncio.gather(*tasks, return_exceptions=True)
