"""What stands in for the world in tests: a clock, a model that is a queue, and a System One server on loopback.

Only the upstream model is made up here; SQLite, sockets and HTTP are the real ones.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

from archive.actor.actor import Actor, Limits
from archive.attempts import Came, Reply
from archive.doors import Upstream as Behind
from archive.messages import Ask, Key
from archive.picks import Latest, Pick
from archive.request import Destination, Request
from web.__main__ import configured
from web.app import app, house
from web.settings import Settings

ASK = Destination("systemone", "POST", "https://api.example.test/v1/systemone")
"""A destination that exists nowhere."""

SECRET = "made-up-secret"
"""What programs show at the /wire of a `site`."""

START = 1_780_000_000_000_000
"""The moment at which a test's clock stands at first."""


SPOOL_BYTES = 1024 * 1024
"""As much disk as each test's store reserves."""


def body(words: str = "Is it?", **more: Any) -> bytes:
    """A System One request of one noul about `words`, compact, keys in this order."""
    question = {"type": "noul", "instructions": "Ok?"}
    asked = {"state": words, "model": "jev-latest", "questions": {"q": question}, **more}
    return json.dumps(asked, separators=(",", ":"), ensure_ascii=False).encode()


def request(words: str = "Is it?", destination: Destination = ASK) -> Request:
    """A request about `words`."""
    return Request(destination, body(words))


def ask(words: str = "Is it?", pick: Pick = Latest(), key: str = "") -> Ask:  # noqa: B008 - a constant
    """An Ask about `words`."""
    return Ask(request(words), pick, Key(key))


def answer(noul: float = 0.83) -> bytes:
    """The body of an answer to `body`."""
    return (
        b'{"model":"jev-1.13.0","answers":{"q":{"type":"noul","noul":%.2f}},'
        b'"usage":{"input_tokens":131,"output_tokens":20}}' % noul
    )


def reply(noul: float = 0.83) -> Reply:
    """A whole reply with `answer`."""
    return Reply(200, answer(noul), "application/json", "req_00000000000000000000000000000001")


@dataclass
class _Timer:
    at: float
    then: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self._now = START
        self._monotonic = 1000.0
        self._timers: list[_Timer] = []

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def later(self, seconds: float, then: Callable[[], None]) -> _Timer:
        timer = _Timer(self._monotonic + seconds, then)
        self._timers.append(timer)
        return timer

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an owner or NTP does; nothing else notices."""
        self._now += round(seconds * 1_000_000)

    def advance(self, seconds: float) -> None:
        """Let time pass: both clocks move, and what was due is called."""
        self._now += round(seconds * 1_000_000)
        self._monotonic += seconds
        due = [timer for timer in self._timers if timer.at <= self._monotonic]
        self._timers = [timer for timer in self._timers if timer.at > self._monotonic]
        for timer in sorted(due, key=lambda timer: timer.at):
            if not timer.cancelled:
                timer.then()


class QueueModel:
    """A model whose every call waits for the test to say what comes back."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.keys: list[Key] = []
        self._arrived: asyncio.Queue[asyncio.Future[Came]] = asyncio.Queue()

    async def answer(self, request: Request, key: Key) -> Came:
        self.requests.append(request)
        self.keys.append(key)
        came: asyncio.Future[Came] = asyncio.get_running_loop().create_future()
        self._arrived.put_nowait(came)
        return await came

    async def next(self) -> asyncio.Future[Came]:
        """Wait until a call is on the wire; its future takes what comes back."""
        return await self._arrived.get()


class EchoModel:
    """A model that answers everything at once; what it says can be set."""

    def __init__(self, came: Came | None = None) -> None:
        self.came: Came = reply() if came is None else came
        self.requests: list[Request] = []

    async def answer(self, request: Request, key: Key) -> Came:
        self.requests.append(request)
        return self.came


@asynccontextmanager
async def actor(
    path: Path, model: Any, clock: FakeClock | None = None, limits: Limits | None = None, **more: Any
) -> AsyncGenerator[Actor, None]:
    """An actor over a real store at `path`, for the destination ASK."""
    async with Actor(path, {ASK: Behind(model)}.get, clock or FakeClock(), limits, **more) as door:
        yield door


@dataclass
class Got:
    """One request as the upstream saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Upstream:
    """A System One server on loopback that counts, and can be slow, wrong, silent, or hang up.

    `behave` gets each request and its connection's writer, and writes whatever it likes.
    """

    url: str = ""
    got: list[Got] = field(default_factory=list[Got])
    status: int = 200
    reply: bytes = field(default_factory=answer)
    headers: list[tuple[str, str]] = field(
        default_factory=lambda: [
            ("content-type", "application/json"),
            ("x-typesafe-request-id", "req_00000000000000000000000000000001"),
        ]
    )
    gate: asyncio.Event | None = None
    arrived: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    behave: Callable[[Got, asyncio.StreamWriter], Any] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        got = Got(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
        self.got.append(got)
        self.arrived.release()
        if self.gate is not None:
            await self.gate.wait()
        if self.behave is not None:
            await self.behave(got, writer)
            return not writer.is_closing()
        writer.write(self.response())
        await writer.drain()
        return True

    def number_answers(self) -> None:
        """From now on the nth request seen gets `answer(n / 100)`, so that no two answers are alike."""

        async def numbered(_: Got, writer: asyncio.StreamWriter) -> None:
            self.reply = answer(len(self.got) / 100)
            writer.write(self.response())
            await writer.drain()

        self.behave = numbered

    def response(self) -> bytes:
        """The whole response as it goes over the wire."""
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase if self.status in _KNOWN else 'Status'}"]
        lines += [f"{name}: {value}" for name, value in [*self.headers, ("content-length", str(len(self.reply)))]]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.reply


_KNOWN = {status.value for status in HTTPStatus}


@asynccontextmanager
async def upstream(bound: socket.socket | None = None) -> AsyncGenerator[Upstream, None]:
    """An Upstream that listens, for as long as the block lasts; on a free port, or on the one `bound` to."""
    fake = Upstream()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def done(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            writer.close()  # one that is cancelled before its first step does nothing itself

        task = asyncio.ensure_future(fake.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(done)

    bound = bound or socket.create_server(("127.0.0.1", 0))
    server = await asyncio.start_server(connected, sock=bound, backlog=4096)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Server(uvicorn.Server):
    """uvicorn without its signals, and without its waits of a tenth of a second at the end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.over = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
        for server in self.servers:
            server.close()


@dataclass
class Client:
    """A way to talk to a running Askonce at `url`."""

    url: str
    http: aiohttp.ClientSession

    async def send(self, method: str, path: str, data: Any = None, **headers: str) -> "Said":
        """One HTTP request; header names are given with underscores."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(method, self.url + path, data=data, headers=sent) as response:
            return Said(response.status, await response.read(), response.headers.copy())

    async def ask(self, data: bytes | None = None, /, **headers: str) -> "Said":
        """POST `data` to /v1/systemone, as JSON unless told otherwise."""
        sent = {"Content_Type": "application/json"} | headers
        return await self.send("POST", "/v1/systemone", body() if data is None else data, **sent)


@dataclass
class Site(Client):
    """A running Askonce in this process, with its actor and its log."""

    door: Actor
    log: list[tuple[str, int]]


@dataclass
class Said:
    """What the site said."""

    status: int
    body: bytes
    headers: Any

    @property
    def error(self) -> str:
        """The error's code, in System One's shape or OpenAI's; OpenRouter has the status there."""
        said = self._said
        return str(said["error_type"] if "error_type" in said else said["code"])

    @property
    def text(self) -> str:
        """The error's words, in whatever shape."""
        return str(self._said["message"])

    @property
    def _said(self) -> Any:
        whole = json.loads(self.body)
        return whole["detail"] if "detail" in whole else whole["error"]


@asynccontextmanager
async def site(store: Path, model_url: str, **more: Any) -> AsyncGenerator[Site, None]:
    """The whole server as `python -m web` builds it, on a free port, in front of the model at `model_url`.

    `environment` holds the keys a file of destinations names.
    """
    environment = more.pop("environment", {})
    more.setdefault("spool_bytes_max", SPOOL_BYTES)
    settings = Settings(store=str(store), model_url=model_url, **more)
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port = listening.getsockname()[1]
    log: list[tuple[str, int]] = []
    async with house(settings, environment) as opened:
        served = app(settings, port, opened, lambda route, status, _: log.append((route, status)), SECRET)
        server = _Server(configured(served, settings))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False, skip_auto_headers=("Accept-Encoding",)
        ) as http:
            try:
                yield Site(f"http://127.0.0.1:{port}", http, opened.door, log)
            finally:
                opened.door.stop()
                server.over.set()
                await running
