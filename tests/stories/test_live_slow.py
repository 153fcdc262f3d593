"""/live under pages that do not read, that come and go, and that stay open: nobody else notices."""

import asyncio
import base64
import contextlib
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from websockets.frames import Close, Frame, Opcode

from tests.fakes import Site, upstream
from tests.pages import address, visitor
from tests.process import process
from tests.stories.test_live import Socket, live
from web.live import ADDRESS_BYTES_MAX, UNSENT_BYTES_MAX

REASON = "This page takes nothing."
CLOSE = Frame(Opcode.CLOSE, Close(1013, REASON).serialize()).serialize(mask=False)

PART_BYTES = 400_000
"""A patch this large fills what the system holds for a connection in a few dozen."""


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The server's end of each page, in the order they came."""
    found: list[Any] = []

    def kept(send: Any) -> Any:
        found.append(send.__self__)
        return send.__self__

    monkeypatch.setattr("web.live.protocol_of", kept)
    return found


@pytest.fixture
def large_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every patch is large."""

    def part(_: object, view: object) -> str:
        return f'<div id="view">{"x" * PART_BYTES}</div>'

    monkeypatch.setattr("web.pages.Pages.part", part)
    monkeypatch.setattr("web.live.SWEEP_SECONDS", 0.01)


class Stalled:
    """A page whose connection is open, and that reads only when it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def say(self, message: dict[str, str]) -> None:
        self._writer.write(Frame(Opcode.TEXT, json.dumps(message).encode()).serialize(mask=True))

    def answer_close(self) -> None:
        self._writer.write(Frame(Opcode.CLOSE, CLOSE[2:4]).serialize(mask=True))

    async def read_until(self, wanted: bytes) -> bytes:
        """Take all that comes, until this has come; the last of it."""
        last = b""
        async with asyncio.timeout(30):
            while wanted not in last:
                data = await self._reader.read(1 << 20)
                assert data, "the connection ended"
                last = last[-len(wanted) :] + data
        return last

    async def read_to_the_end(self) -> None:
        async with asyncio.timeout(30):
            with contextlib.suppress(ConnectionError):
                while await self._reader.read(1 << 20):
                    pass


@asynccontextmanager
async def stalled(here: Site, url: str) -> AsyncGenerator[Stalled, None]:
    """A stalled page at `url`."""
    place = urlsplit(here.url)
    end = socket.socket()
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    end.setblocking(False)
    await asyncio.get_running_loop().sock_connect(end, (place.hostname, place.port))
    reader, writer = await asyncio.open_connection(sock=end, limit=4096)
    key = base64.b64encode(bytes(16)).decode()
    writer.write(
        f"GET /live HTTP/1.1\r\nHost: {place.netloc}\r\nOrigin: {here.url}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    page = Stalled(reader, writer)
    page.say({"type": "At", "url": url})
    page.say({"type": "Seen", "token": ""})
    await page.read_until(b"Patch")
    try:
        yield page
    finally:
        writer.transport.abort()


async def changes(here: Site, body: bytes, pages: list[Socket], times: int) -> None:
    """Have a call asked afresh `times` times; each page hears of all of it before the next."""
    for _ in range(times):
        await here.ask(body, Archive_Answer="fresh")
        for page in pages:
            await page.hear("Patch")
            await page.hear("Patch")


@pytest.mark.usefixtures("large_parts")
async def test_a_page_that_does_not_read_costs_little_and_delays_nobody_and_is_right_when_it_reads(
    tmp_path: Path, protocols: list[Any]
) -> None:
    """B70, B71: 32 MB are pushed; every other page gets each patch, and what is held for the slow one has a limit."""
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        async with stalled(me.here, address("Is it?")) as slow, live(me) as one, live(me) as two:
            for page in (one, two):
                await page.at(address("Is it?"))
                await page.part()
            await changes(me.here, me.model.got[1].body, [one, two], 40)
            assert protocols[0].transport.get_write_buffer_size() < UNSENT_BYTES_MAX + PART_BYTES * 2
            await slow.read_until(b'{"type":"Stale"}')
            await changes(me.here, me.model.got[1].body, [one, two], 1)
            await slow.read_until(b"Patch")


@pytest.mark.usefixtures("large_parts")
@pytest.mark.parametrize("reads_on", [True, False])
async def test_a_page_that_takes_nothing_for_seconds_is_closed_and_sees_why_if_it_reads_on(
    tmp_path: Path, protocols: list[Any], monkeypatch: pytest.MonkeyPatch, reads_on: bool
) -> None:
    """B70: closed with 1013, and let go of if it never reads. From the first moment it is not counted any more."""
    monkeypatch.setattr("web.live.CLOSE_SECONDS_MAX", 60.0 if reads_on else 0.1)
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        async with stalled(me.here, address("Is it?")) as slow, live(me) as other:
            await other.at(address("Is it?"))
            await other.part()
            monkeypatch.setattr("web.live.BEHIND_SECONDS_MAX", 0.0)
            await changes(me.here, me.model.got[1].body, [other], 40)
            async with live(me) as last:
                assert (await last.hear("Online"))["pages"] == 2
            if reads_on:
                slow.say({"type": "At", "url": "/"})  # it may go on speaking, and is still told why
                assert CLOSE in await slow.read_until(CLOSE)
                slow.answer_close()
            else:
                async with asyncio.timeout(30):
                    while not protocols[0].disconnected:
                        await last_moment()
            await slow.read_to_the_end()


async def last_moment() -> None:
    """Let the loop work, and the system too."""
    await asyncio.to_thread(lambda: None)


@pytest.mark.usefixtures("large_parts")
async def test_a_page_that_takes_nothing_and_answers_no_ping_is_let_go_of(tmp_path: Path, protocols: list[Any]) -> None:
    """uvicorn closes it then, but behind what is unsent, which it would wait for without end."""
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        async with stalled(me.here, address("Is it?")), live(me) as other:
            await other.at(address("Is it?"))
            await other.part()
            await changes(me.here, me.model.got[1].body, [other], 40)
            protocols[0].keepalive_timeout()
            while (await other.hear("Online"))["pages"] != 1:
                pass


async def test_slow_heads_and_offers_to_compress_take_nothing_from_anybody(
    tmp_path: Path, protocols: list[Any]
) -> None:
    """C-29: fifty half sent requests wait for themselves alone; no compression is agreed on, so no message can unfold
    to a large one; and a page that answers no ping is closed.
    """
    async with visitor(tmp_path / "a.db") as me:
        place = urlsplit(me.here.url)
        halves = [await asyncio.open_connection(place.hostname, place.port) for _ in range(50)]
        for _, writer in halves:
            writer.write(b"GET /live HTTP/1.1\r\nHost: ")
            await writer.drain()
        there = me.here.http.ws_connect(me.here.url + "/live", headers={"Origin": me.here.url}, compress=15)
        async with there as page, live(me) as other:
            assert page.compress == 0
            await other.at("/")
            await me.ask("Is it?")
            await other.hear("Row")
            protocols[0].keepalive_timeout()
            assert await code_of(page) == 1011
        for _, writer in halves:
            writer.transport.abort()


@pytest.mark.usefixtures("large_parts")
async def test_a_page_that_takes_nothing_does_not_keep_the_server_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B75: uvicorn alone would wait for it as long as it may wait at all."""
    monkeypatch.setattr("web.live.CLOSE_SECONDS_MAX", 0.01)
    monkeypatch.setattr("web.live.BEHIND_SECONDS_MAX", 600.0)
    async with asyncio.timeout(60), visitor(tmp_path / "a.db", stop_seconds_max=600.0) as me:
        await me.ask("Is it?")
        stack = contextlib.AsyncExitStack()
        await stack.enter_async_context(stalled(me.here, address("Is it?")))
        async with live(me) as other:
            await other.at(address("Is it?"))
            await other.part()
            await changes(me.here, me.model.got[1].body, [other], 40)
    await stack.aclose()


async def come_and_go(here: Site, stage: int) -> None:
    """A page that is gone before its handshake, after it, or after it has said where it is."""
    place = urlsplit(here.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    key = base64.b64encode(bytes(16)).decode()
    writer.write(
        f"GET /live HTTP/1.1\r\nHost: {place.netloc}\r\nOrigin: {here.url}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    if stage:
        await reader.readuntil(b"\r\n\r\n")
    if stage == 2:
        said = Frame(Opcode.TEXT, b'{"type":"At","url":"/"}').serialize(mask=True)
        writer.write(said + Frame(Opcode.TEXT, b'{"type":"Seen","token":""}').serialize(mask=True))
        await writer.drain()
    writer.transport.abort()


async def gone(task: asyncio.Task[Any]) -> None:
    """Wait until a task is over, however it ends."""
    await asyncio.wait([task])


async def test_a_thousand_pages_that_come_and_go_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B72."""
    monkeypatch.setattr("web.live.SWEEP_SECONDS", 0.01)
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        await page.hear("Online")
        await me.ask("Is it the first?")  # from here on the site listens for what it has to let go of
        tasks = asyncio.all_tasks()
        for first in range(0, 1_000, 50):
            await asyncio.gather(*(come_and_go(me.here, n % 3) for n in range(first, first + 50)))
        async with live(me):
            while (await page.hear("Online"))["pages"] != 2:
                pass
        while (await page.hear("Online"))["pages"] != 1:
            pass
        await page.at("/")
        await me.ask("Is it?")
        await page.hear("Row")
        async with asyncio.timeout(10):
            await asyncio.gather(*(gone(task) for task in asyncio.all_tasks() - tasks - {asyncio.current_task()}))


async def test_when_the_last_page_is_replaced_by_another_the_other_is_told(tmp_path: Path) -> None:
    """A reload: the last page goes and a new one comes at the same moment."""
    async with visitor(tmp_path / "a.db") as me:
        page = await me.here.http.ws_connect(me.here.url + "/live", headers={"Origin": me.here.url})
        for n in range(30):
            opening = me.here.http.ws_connect(me.here.url + "/live", headers={"Origin": me.here.url})
            _, page = await asyncio.gather(page.close(), opening)
            await Socket(page).at("/")
            await Socket(page).hear("Online")
            await me.ask(f"Is it {n}?")
            await Socket(page).hear("Row")
        await page.close()


async def test_a_front_page_that_comes_back_reads_itself_again_only_if_it_missed_something(tmp_path: Path) -> None:
    """B73."""
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        shown = (await me.get()).html.one("ol", id="lately-list").one("time")["datetime"]
        async with live(me) as page:
            await page.at("/", shown)
            await me.ask("Is it new?")
            assert json.loads(await page.ws.receive_str())["type"] == "Build"
            assert json.loads(await page.ws.receive_str())["type"] == "Online"
            assert json.loads(await page.ws.receive_str())["type"] == "Row"
        async with live(me) as page:
            await page.at("/", shown)
            await page.hear("Stale")


async def test_an_address_of_any_length_a_form_can_have_is_said_in_pieces(tmp_path: Path) -> None:
    """A message is at most 4 KiB; 500 characters of an address are up to 6,000 bytes, and options come on top."""
    words = "\U0001f600" * 500
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        url = address(words)
        for at in range(0, len(url), 3000):
            more = at + 3000 < len(url)
            await page.ws.send_json({"type": "At", "url": url[at : at + 3000], "more": more})
        await page.ws.send_json({"type": "Seen", "token": ""})
        assert (await page.part()).one("h1").text == words
        for _ in range(ADDRESS_BYTES_MAX // 3000 + 1):
            await page.ws.send_json({"type": "At", "url": "x" * 3000, "more": True})
        async with asyncio.timeout(30):
            while (await page.ws.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
        assert page.ws.close_code == 1009


async def test_fifty_open_pages_and_a_running_call_do_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    """B75."""
    async with upstream() as model, process(tmp_path / "a.db", model.url, ASKONCE_STOP_SECONDS_MAX="1") as here:
        model.gate = asyncio.Event()
        asked = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        async with asyncio.TaskGroup() as group:
            pages = [await here.http.ws_connect(here.url + "/live", headers={"Origin": here.url}) for _ in range(50)]
            closing = [group.create_task(code_of(page)) for page in pages]
            assert await here.terminate() == 0
        assert {task.result() for task in closing} == {1012}
        assert (await asked).status == 504
        assert "Traceback" not in here.output()
        model.gate.set()


async def code_of(ws: aiohttp.ClientWebSocketResponse) -> int | None:
    """With which code the server closes."""
    while (await ws.receive()).type is aiohttp.WSMsgType.TEXT:
        pass
    return ws.close_code
