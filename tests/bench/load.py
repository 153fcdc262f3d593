"""The load generator: `python -m tests.bench.load`, a process of its own that is told what to do a line at a time.

It is as lean as Python is (prebuilt requests, hardly any parsing), and still takes a core: servers are judged by
their own CPU time. What must never be here: an opinion on what a number means.
"""

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator
from typing import cast

import aiohttp
import msgspec
import uvloop

from tests.bench import words

_DIAL_AT_ONCE = 100
_SECONDS_MAX = 300


class Work(msgspec.Struct, frozen=True):
    """`count` requests over `connections`, numbers `first`, `first + step`, ... and after `keys` of them again.

    `headers` are lines that go with each.
    `client` "lean" is this file's; "aiohttp" is a bare loop around that client, which stores nothing.
    """

    port: int
    count: int
    keys: int
    first: int = 0
    step: int = 1
    connections: int = 32
    client: str = "lean"
    tell: bool = False
    headers: str = ""


class Result(msgspec.Struct, frozen=True):
    """What came of a Work. `answered` counts the 200s; with `tell`, `acknowledged` are their numbers."""

    seconds: float
    answered: int
    others: int
    p50_ms: float
    p99_ms: float
    acknowledged: list[int]


class Round:
    """One Work being done."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.requests = [
            words.http(words.ask(work.first + at * work.step), work.headers.encode()) for at in range(work.keys)
        ]
        self.next: Iterator[int] = iter(range(work.count))
        self.took: list[float] = []
        self.acknowledged: list[int] = []
        self.others = 0
        self.open = 0
        self.over = asyncio.Event()
        self.ended = 0.0

    def came(self, at: int, good: bool, seconds: float) -> None:
        self.took.append(seconds)
        if not good:
            self.others += 1
        elif self.work.tell:
            self.acknowledged.append(self.work.first + at % self.work.keys * self.work.step)
        if len(self.took) == self.work.count:
            self.ended = time.perf_counter()
            self.over.set()

    def left(self) -> None:
        self.open -= 1
        if not self.open:
            self.ended = self.ended or time.perf_counter()
            self.over.set()

    def result(self, started: float) -> Result:
        took = sorted(self.took) or [0.0]
        return Result(
            self.ended - started,
            len(self.took) - self.others,
            self.others,
            took[len(took) // 2] * 1000,
            took[min(len(took) - 1, len(took) * 99 // 100)] * 1000,
            self.acknowledged,
        )


class Asker(asyncio.Protocol):
    """One keep-alive connection: ask, read the reply, ask the next."""

    def __init__(self, current: Round) -> None:
        self._round = current
        self._data = b""
        self._at = 0
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by class.
        self.transport = cast("asyncio.Transport", transport)
        self._round.open += 1

    def ask(self) -> None:
        """Send the next request, if any is left."""
        current = self._round
        at = next(current.next, None)
        if at is not None:
            self._at = at
            self._began = time.perf_counter()
            self.transport.write(current.requests[at % current.work.keys])

    def data_received(self, data: bytes) -> None:
        if self._data:
            data = self._data + data
        end = data.find(b"\r\n\r\n")
        at = data[: max(end, 0)].lower().find(b"content-length: ")
        if end < 0 or len(data) < end + 4 + int(data[at + 16 : data.find(b"\r", at)]):
            self._data = data
            return
        self._data = b""
        self._round.came(self._at, data.startswith(b"HTTP/1.1 200"), time.perf_counter() - self._began)
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self._round.left()


async def _lean(work: Work) -> Result:
    loop = asyncio.get_running_loop()
    current = Round(work)
    askers: list[Asker] = []
    while len(askers) < work.connections:
        some = min(_DIAL_AT_ONCE, work.connections - len(askers))
        made = [loop.create_connection(lambda: Asker(current), "127.0.0.1", work.port) for _ in range(some)]
        askers += [asker for _, asker in await asyncio.gather(*made)]
    started = time.perf_counter()
    for asker in askers:
        asker.ask()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(current.over.wait(), _SECONDS_MAX)
    for asker in askers:
        asker.transport.abort()
    return current.result(started)


async def _with_aiohttp(work: Work) -> Result:
    """The bare loop: the client Askonce uses, the same number in flight, and nothing is kept."""
    current = Round(work)
    bodies = [words.ask(work.first + at * work.step) for at in range(work.keys)]
    url = f"http://127.0.0.1:{work.port}/v1/systemone"
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False) as session:

        async def one_after_another() -> None:
            for at in current.next:
                began = time.perf_counter()
                async with session.post(url, data=bodies[at % work.keys], headers=headers) as response:
                    await response.read()
                    current.came(at, response.status == 200, time.perf_counter() - began)

        started = time.perf_counter()
        await asyncio.gather(*(one_after_another() for _ in range(work.connections)))
    return current.result(started)


def main() -> None:
    """Do what each line of stdin says; a line of stdout for each."""
    for line in itertools.takewhile(bool, iter(sys.stdin.buffer.readline, b"")):
        work = msgspec.json.decode(line, type=Work)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            result = runner.run(_lean(work) if work.client == "lean" else _with_aiohttp(work))
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
