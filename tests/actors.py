"""What tests of the actor need beside the fakes: barriers, a gate before its transactions, a stranger at its file.

A second connection of the same SQLite library may read the store while the actor has it; only `open()` may not.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.store import Record, Store
from archive.actor.unwritten import RESERVED_BYTES
from archive.admin import AddToken
from archive.attempts import Reply
from archive.doors import Door, Upstream
from archive.errors import ArchiveError
from archive.messages import Answered, Ask, Caller, Count, Message
from archive.picks import Latest, Pick
from archive.request import Destination
from archive.tokens import Token
from tests.chain import assert_texts_match_their_seals, broken
from tests.fakes import SPOOL_BYTES, EchoModel, FakeClock, QueueModel, actor, ask
from tests.stored import assert_closed_cleanly, outcomes, rows

T = TypeVar("T")

ROOM = 4 * RESERVED_BYTES
"""A spool of a few calls."""

HANG_SECONDS_MAX = 20
"""A net against hanging, for one thing that is waited for; a whole block with an actor has twice as long."""


async def settled(door: Door) -> None:
    """Wait until the actor has worked all that was said to it so far, and what calls that ended by now report."""
    for _ in range(2):
        async with asyncio.timeout(HANG_SECONDS_MAX):
            await door.send(Count())


async def turns(count: int) -> None:
    """Let the loop go round a few times; no time passes."""
    for _ in range(count):
        await asyncio.sleep(0)


def all_at_once(door: Door, messages: Iterable[Message[T]]) -> list[asyncio.Task[T]]:
    """Send all of them in one turn of the loop."""
    return [asyncio.create_task(door.send(message)) for message in messages]


async def told(asking: asyncio.Task[Answered]) -> Answered | ArchiveError:
    """What an asker is told, an error too."""
    async with asyncio.timeout(HANG_SECONDS_MAX):
        try:
            return await asking
        except ArchiveError as error:
            return error


async def refused(door: Door, ask: Ask) -> ArchiveError:
    """The error an ask is answered with."""
    with pytest.raises(ArchiveError) as caught:
        async with asyncio.timeout(HANG_SECONDS_MAX):
            await door.send(ask)
    return caught.value


def add_token(name: str = "t", **more: bool | int) -> AddToken:
    """A message for a token whose secret is its name."""
    return msgspec.convert({"name": name, "hash": sha256(name.encode()).digest(), **more}, AddToken)


def on(token: Token | int, words: str = "Is it?", pick: Pick = Latest()) -> Ask:  # noqa: B008 - a constant
    """An ask on a token."""
    number = token if isinstance(token, int) else token.number
    return msgspec.structs.replace(ask(words, pick), caller=Caller(number))


def visit(words: str = "Is it?", pick: Pick = Latest(), address: bytes = b"a") -> Ask:  # noqa: B008 - a constant
    """An ask through a public page."""
    return msgspec.structs.replace(ask(words, pick), caller=Caller(address=address, visitor=True))


@contextmanager
def reader(path: Path) -> Generator[Callable[[str], Any], None, None]:
    """Another connection that can only read: the first value of what a statement finds, as of now."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as db:
        yield lambda sql: db.execute(sql).fetchone()[0]


@contextmanager
def locked(path: Path) -> Generator[None, None, None]:
    """Hold the store's write lock, as another program may."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            db.execute("ROLLBACK")


def crashed(path: Path, copy: Path) -> Path:
    """The store as it would be found had the process ended now."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM INTO ?", (str(copy),))
    return copy


class Writes:
    """Counts the actor's transactions, and holds them back while `gate` is shut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.failed = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        write = Store.write

        async def counted(store: Store, work: Callable[[Record], T]) -> T:
            self.waiting.set()
            await self.gate.wait()
            self.waiting.clear()
            try:
                result = await write(store, work)
            except BaseException:
                self.failed += 1
                raise
            self.count += 1
            return result

        monkeypatch.setattr(Store, "write", counted)

    async def hold(self, door: Door) -> "asyncio.Task[None]":
        """Shut the gate and have the actor stand before it; what is sent from now on waits in the mailbox."""
        self.gate.clear()
        self.waiting.clear()
        first = asyncio.create_task(door.send(Count()))
        await self.waiting.wait()
        return first


@asynccontextmanager
async def queued(
    path: Path, clock: FakeClock | None = None, **more: Any
) -> AsyncGenerator[tuple[Actor, QueueModel, FakeClock], None]:
    """An actor whose model is a queue."""
    model, clock = QueueModel(), clock or FakeClock()
    async with _opened(actor(path, model, clock, **more), clock) as door:
        yield door, model, clock


@asynccontextmanager
async def echoing(
    path: Path, clock: FakeClock | None = None, **more: Any
) -> AsyncGenerator[tuple[Actor, EchoModel, FakeClock], None]:
    """An actor whose model answers at once."""
    model, clock = EchoModel(), clock or FakeClock()
    async with _opened(actor(path, model, clock, **more), clock) as door:
        yield door, model, clock


@asynccontextmanager
async def standing(
    path: Path, upstreams: Callable[[Destination], Upstream | None], clock: FakeClock | None = None, **more: Any
) -> AsyncGenerator[Actor, None]:
    """An actor with these behind its destinations."""
    clock = clock or FakeClock()
    async with _opened(Actor(path, upstreams, clock, **more), clock) as door:
        yield door


@asynccontextmanager
async def _opened(door: AbstractAsyncContextManager[Actor], clock: FakeClock) -> AsyncGenerator[Actor, None]:
    """An actor that ends soon when the test fails, though nobody moves the clock any more."""
    hurrying: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(2 * HANG_SECONDS_MAX), door as opened:
            try:
                yield opened
            except BaseException:
                hurrying = asyncio.create_task(_hurry(clock))
                raise
    finally:
        if hurrying is not None:
            hurrying.cancel()


async def _hurry(clock: FakeClock) -> None:
    while True:
        clock.advance(60)
        await turns(1)


def assert_whole(path: Path) -> None:
    """Closed cleanly, linked up, versions from 1 without a gap, and nothing left open."""
    assert_closed_cleanly(path)
    with closing(sqlite3.connect(path)) as db:
        assert broken(db) == []
        assert_texts_match_their_seals(db)
    assert rows(path, "SELECT request FROM answer GROUP BY request HAVING min(n) <> 1 OR max(n) <> count(*)") == []
    assert "open" not in outcomes(path)


@asynccontextmanager
async def spooling(
    folder: Path, clock: FakeClock | None = None, room: int = ROOM, **limits: int
) -> AsyncGenerator[tuple[Actor, QueueModel, FakeClock], None]:
    """An actor with a spool, whose model is a queue."""
    held = Limits(spool_bytes_max=room, **limits)
    async with queued(folder / "a.db", clock, limits=held, spool=folder / "a.spool") as opened:
        yield opened


async def killed_with_a_full_hand(folder: Path, words: str, came: Reply) -> Path:
    """A store and its spool as kill -9 left them: `came` to `words` waits in the spool, the store has nothing of it."""
    store = folder / "a.db"
    async with queued(store, spool=folder / "a.db.spool", limits=Limits(spool_bytes_max=SPOOL_BYTES)) as (
        door,
        model,
        _,
    ):
        await settled(door)
        with locked(store):
            asking = all_at_once(door, [ask(words)])
            (await model.next()).set_result(came)
            await told(asking[0])
            left = (folder / "a.db.spool").read_bytes()
            crashed(store, folder / "copy")
    (folder / "copy").replace(store)
    (folder / "a.db.spool").write_bytes(left)
    return store
