"""Askonce as its owner runs it: `python -m web` in a process of its own, that can be killed and leaves its output.

For what only a real process shows: kill -9, signals, other hash seeds, all it prints. `tests.fakes.site` is quicker.
"""

import asyncio
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp

from tests.fakes import SPOOL_BYTES, Client

ROOT = Path(__file__).parents[1]

START_SECONDS_MAX = 60
"""A net against hanging, far beyond what a start takes."""


class Ended(Exception):
    """The process ended before it served; `status` and all it printed."""

    def __init__(self, status: int, output: str) -> None:
        super().__init__(f"exit status {status}: {output}")
        self.status = status
        self.output = output


class Process(Client):
    """A running server: its base URL and port, a client for it, and its end."""

    def __init__(self, running: asyncio.subprocess.Process, http: aiohttp.ClientSession) -> None:
        super().__init__("", http)
        self._running = running
        self._lines: list[bytes] = []
        self._reading: asyncio.Task[None] | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        return self._running.pid

    async def ready(self) -> None:
        """Wait for the line that says where it is. Raises Ended."""
        async with asyncio.timeout(START_SECONDS_MAX):
            while not self.url:
                line = await self._readline()
                if not line:
                    raise Ended(await self._running.wait(), self.output())
                found = re.match(rb"Askonce is at (http://\S+:(\d+))", line)
                if found:
                    self.url, self.port = found[1].decode(), int(found[2])
        # Read on, or a full pipe would stop the process.
        self._reading = asyncio.create_task(self._read())

    async def kill(self) -> int:
        """SIGKILL; its exit status, when it is gone and all it printed has been read."""
        if self._running.returncode is None:
            self._running.kill()
        return await self.wait()

    async def terminate(self) -> int:
        """SIGTERM; its exit status, when it is gone and all it printed has been read."""
        self.signal(signal.SIGTERM)
        return await self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._running.send_signal(number)

    async def wait(self) -> int:
        """Wait until it is gone by itself; its exit status."""
        if self._reading is not None:
            await self._reading
        return await self._running.wait()

    def output(self) -> str:
        """All it printed so far, on both streams; complete once it is gone."""
        return b"".join(self._lines).decode("utf-8", "backslashreplace")

    async def _read(self) -> None:
        while await self._readline():
            pass

    async def _readline(self) -> bytes:
        assert self._running.stdout is not None
        line = await self._running.stdout.readline()
        self._lines.append(line)
        return line


@asynccontextmanager
async def process(
    store: Path, model_url: str = "", program: tuple[str, ...] = ("-m", "web"), **env: str
) -> AsyncGenerator[Process, None]:
    """`python -m web` on a free port over `store`, with these variables and none of ours; killed at the end if need be.

    An empty `model_url` means the embedded model; `program` is what python runs instead. Raises Ended when it does
    not start.
    """
    given = {"PATH": os.environ.get("PATH", ""), "ASKONCE_PORT": "0", "ASKONCE_STORE": str(store)}
    given["ASKONCE_SPOOL_BYTES_MAX"] = str(SPOOL_BYTES)
    if model_url:
        given["ASKONCE_MODEL_URL"] = model_url
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        *program,
        cwd=ROOT,
        env=given | env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
    )
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(
        connector=connector, auto_decompress=False, skip_auto_headers=("Accept-Encoding",)
    ) as http:
        here = Process(running, http)
        try:
            await here.ready()
            yield here
        finally:
            await here.kill()


@asynccontextmanager
async def lock_of(store: Path) -> AsyncGenerator[None, None]:
    """This program holds the write lock of a running server's store, as any other may; it waits its turn for it."""
    with closing(sqlite3.connect(store, isolation_level=None, timeout=60, check_same_thread=False)) as db:
        await asyncio.to_thread(db.execute, "BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")
