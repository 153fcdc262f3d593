"""Many open pages: `python -m tests.bench.pages serve STORE UPSTREAM` is the product, `... look PORT N` the pages.

Both are told what to do a line at a time. Moments are the system's monotonic clock, which both processes share.
"""

import asyncio
import base64
import json
import select
import socket
import sys
import time
from itertools import takewhile
from typing import Any
from unittest import mock

import uvloop
from websockets.frames import Frame, Opcode

from archive.messages import Noted, Question
from tests.bench.processes import many_sockets
from tests.pages import address
from web.__main__ import Server, bind, configured
from web.app import Lines, app, house
from web.live import protocol_of
from web.settings import Settings

PATCH_BYTES = 500
QUESTION = Question("Is everybody told?")
HTML = '<div id="view">' + "x" * (PATCH_BYTES - 60) + "</div>"
_SECONDS_MAX = 60


async def serve(store: str, upstream: str) -> None:
    """Serve until killed. `patch` tells every page by way of a notice; `floor` sends as many bytes by bare sends."""
    settings = Settings(store=store, model_url=upstream, port=0, pages_max=20_000, pages_per_address_max=20_000)
    protocols: list[Any] = []

    def kept(send: Any) -> Any:
        protocols.append(protocol_of(send))
        return protocols[-1]

    listening = bind(settings)
    port = listening.getsockname()[1]
    with (
        mock.patch("web.live.protocol_of", kept),
        mock.patch("web.pages.Pages.part", _part),
    ):
        async with house(settings) as opened:
            config = configured(app(settings, port, opened, Lines()), settings)
            listening.listen(config.backlog)
            said = asyncio.StreamReader()
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(said), sys.stdin)
            server = asyncio.create_task(Server(config, opened.door.stop).serve(sockets=[listening]))
            print(f"at http://127.0.0.1:{port}", flush=True)
            while line := await said.readline():
                if line == b"patch\n":
                    began = time.monotonic()
                    await opened.door.send(Noted(QUESTION, 1))
                else:
                    began = _floor(protocols)
                print(began, flush=True)
            server.cancel()


def _part(_: object, view: object) -> str:
    return HTML


def _floor(protocols: list[Any]) -> float:
    """The same bytes over the same sockets, by nothing but `send`."""
    ready = b"\x81\x7e" + (PATCH_BYTES - 4).to_bytes(2, "big") + HTML.encode().ljust(PATCH_BYTES - 4)
    ends = [socket.socket(fileno=one.transport.get_extra_info("socket").fileno()) for one in protocols]
    began = time.monotonic()
    for end in ends:
        end.send(ready)
    for end in ends:
        end.detach()
    return began


class Pages:
    """The open pages, and what has come to each."""

    def __init__(self, port: int, count: int) -> None:
        self._poll = select.epoll()
        self._ends: dict[int, socket.socket] = {}
        said = Frame(Opcode.TEXT, json.dumps({"type": "At", "url": address(QUESTION.words)}).encode())
        for _ in range(count):
            end = _page(port)
            end.sendall(said.serialize(mask=True))
            self._ends[end.fileno()] = end
            self._poll.register(end, select.EPOLLIN)

    def settle(self) -> None:
        """Take all that comes, until nothing has for a while: how many are open is told on the way."""
        while ready := self._poll.poll(2.5):
            for number, _ in ready:
                self._ends[number].recv(1 << 16)

    def wait(self) -> float:
        """Take patches until each page has one; the moment the last one came."""
        left = set(self._ends)
        last = 0.0
        while left:
            ready = self._poll.poll(_SECONDS_MAX)
            if not ready:
                raise RuntimeError(f"{len(left)} pages were not told")
            for number, _ in ready:
                if len(self._ends[number].recv(1 << 16)) >= PATCH_BYTES - 60:
                    left.discard(number)
            last = time.monotonic()
        return last


def _page(port: int) -> socket.socket:
    end = socket.create_connection(("127.0.0.1", port), timeout=_SECONDS_MAX)
    key = base64.b64encode(bytes(16)).decode()
    end.sendall(
        f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    got = b""
    while b"\r\n\r\n" not in got:
        got += end.recv(4096)
    if b" 101 " not in got:
        raise RuntimeError(f"no page was opened: {got[:200]!r}")
    return end


def look(port: int, count: int) -> None:
    """Open the pages, and say so; then for each line: when the last page had its patch."""
    many_sockets()
    pages = Pages(port, count)
    pages.settle()
    print(f"{count} open", flush=True)
    for _ in takewhile(bool, iter(sys.stdin.readline, "")):
        print(pages.wait(), flush=True)


if __name__ == "__main__":
    many_sockets()
    if sys.argv[1] == "serve":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(*sys.argv[2:4]))
    else:
        look(int(sys.argv[2]), int(sys.argv[3]))
