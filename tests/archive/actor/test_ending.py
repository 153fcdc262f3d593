"""Beginning and ending: what is on the wire when it stops, and cancelled while any statement of SQL is run."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.store import StoreUnusable
from archive.attempts import Why
from archive.doors import Upstream
from archive.errors import Busy, CallFailed, CallUnknown
from archive.messages import Answered, Ask, Sent
from archive.picks import KeptOnly
from archive.request import Destination
from tests.actors import HANG_SECONDS_MAX, all_at_once, assert_whole, echoing, queued, refused, settled, told, turns
from tests.fakes import EchoModel, FakeClock, QueueModel, actor, ask, reply, request
from tests.stored import counts, outcomes, rows

LIMITS = Limits(call_seconds_max=30, stop_seconds_max=5)
MOMENTS = 20


class Statements:
    """Counts the statements that are run on any connection opened from now on, and can act while the nth is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._at, self._then, self._loop = 0, _nothing, asyncio.get_running_loop()
        connect = sqlite3.connect

        def traced(*values: Any, **more: Any) -> sqlite3.Connection:
            db = connect(*values, **more)
            db.set_trace_callback(self._count)
            return db

        monkeypatch.setattr(sqlite3, "connect", traced)

    def at(self, n: int, then: Callable[[], object]) -> None:
        """Call `then` in the loop while the nth statement from now is run; the statement waits for it."""
        self.count, self._at, self._then = 0, n, then

    def _count(self, _: str) -> None:
        self.count += 1
        if self.count == self._at:
            done = threading.Event()
            self._loop.call_soon_threadsafe(self._act, done)
            done.wait(HANG_SECONDS_MAX)

    def _act(self, done: threading.Event) -> None:
        self._then()
        done.set()


def _nothing() -> None: ...


def _assert_nothing_is_left(path: Path, before: set[threading.Thread]) -> None:
    """B43, B45: no thread and no open file."""
    for thread in set(threading.enumerate()) - before:
        thread.join(HANG_SECONDS_MAX)
        assert not thread.is_alive(), thread
    links = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert [link for link in links if str(link).startswith(str(path))] == []


async def _start_and_ask(path: Path) -> None:
    async with actor(path, EchoModel()) as door:
        await door.send(ask())
        await asyncio.Event().wait()


@pytest.mark.parametrize("new", [True, False])
async def test_a_start_that_is_cancelled_at_any_statement_leaves_no_thread_and_no_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    """B43, and what was sent by then is answered or unknown."""
    statements = Statements(monkeypatch)
    for n in range(0, 130, 6) if new else range(30):
        path = tmp_path / (f"{n}.db" if new else "a.db")
        before = set(threading.enumerate())
        starting = asyncio.create_task(_start_and_ask(path))
        if n:
            statements.at(n, starting.cancel)
        else:
            await turns(1)
            starting.cancel()
        async with asyncio.timeout(HANG_SECONDS_MAX):
            with pytest.raises(asyncio.CancelledError):
                await starting
        _assert_nothing_is_left(path, before)
        statements.at(0, _nothing)
        async with echoing(path) as (door, _, _):
            assert (await door.send(ask(f"the next keep {n}"))).sent is Sent.NOW
        assert_whole(path)


@pytest.mark.parametrize("turn", range(MOMENTS))
async def test_a_start_that_is_cancelled_after_any_turn_of_the_loop_leaves_nothing_open(
    tmp_path: Path, turn: int
) -> None:
    path, before = tmp_path / "a.db", set(threading.enumerate())
    starting = asyncio.create_task(_start_and_ask(path))
    await turns(turn)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    _assert_nothing_is_left(path, before)


async def test_an_asker_who_is_cancelled_at_any_statement_of_keeping_disturbs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-16, B44: the call is made and kept, once, and the next keep works."""
    statements, path, left = Statements(monkeypatch), tmp_path / "a.db", 0
    async with asyncio.timeout(HANG_SECONDS_MAX), queued(path) as (door, model, _):
        for n in range(1, 41):
            leaving = asyncio.create_task(door.send(ask(f"leaving {n}")))
            statements.at(n, leaving.cancel)
            (await model.next()).set_result(reply())
            await settled(door)
            await asyncio.gather(leaving, return_exceptions=True)
            left += leaving.cancelled()
            assert (await door.send(ask(f"leaving {n}", KeptOnly()))).kept.n == 1
        assert len(model.requests) == 40
        assert left > MOMENTS
    assert_whole(path)
    assert outcomes(path) == ["answered"] * 40


@pytest.mark.parametrize("n", [0, 1, 2, 3])
async def test_an_ending_that_is_cancelled_still_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    statements, path, before = Statements(monkeypatch), tmp_path / "a.db", set(threading.enumerate())
    opened = asyncio.Event()

    async def one() -> None:
        async with actor(path, EchoModel()) as door:
            await door.send(ask())
            opened.set()

    ending = asyncio.create_task(one())
    await opened.wait()
    running = next(task for task in asyncio.all_tasks() if task.get_name() == "actor")
    if n:
        statements.at(n, ending.cancel)
    else:
        ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)
    async with asyncio.timeout(HANG_SECONDS_MAX):
        await running
    _assert_nothing_is_left(path, before)
    assert_whole(path)


async def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    (tmp_path / "theirs.db").write_bytes(b"Dear diary, " * 100)
    for path in (tmp_path, tmp_path / "theirs.db", tmp_path / "no" / "such" / "folder" / "a.db"):
        with pytest.raises(StoreUnusable):
            async with echoing(path):
                raise AssertionError("it cannot be opened")
    _assert_nothing_is_left(tmp_path, before)


async def test_stopping_waits_for_what_is_on_the_wire_and_refuses_what_comes_new(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock):
        kept = asyncio.create_task(door.send(ask("kept")))
        (await model.next()).set_result(reply())
        await kept
        asks = all_at_once(door, [ask("one"), ask("one"), ask("two")])
        one, two = await model.next(), await model.next()
        await settled(door)
        late = all_at_once(door, [ask("kept"), ask("one"), ask("three")])
        await turns(1)
        door.stop()
        assert [type(await told(late[n])) for n in (0, 2)] == [Answered, Busy]
        assert (await refused(door, ask("four"))).code == "busy"
        clock.advance(4.9)
        one.set_result(reply(0.1))
        two.set_result(reply(0.2))
        said = [await told(one) for one in (*asks, late[1])]
        assert [one.sent if isinstance(one, Answered) else one.code for one in said] == [
            "now",
            "shared",
            "now",
            "shared",
        ]
    assert len(model.requests) == 3
    assert counts(tmp_path / "a.db") == {"now": 3, "shared": 2, "no": 1}
    assert_whole(tmp_path / "a.db")


async def test_what_outlasts_the_last_limit_is_broken_off_and_unknown(tmp_path: Path) -> None:
    """C-19."""
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock):
        asks = all_at_once(door, [ask("one"), ask("two"), ask("two")])
        one, two = await model.next(), await model.next()
        await settled(door)
        door.stop()
        assert (await refused(door, ask("new"))).code == "busy"
        clock.advance(5)
        said = [await told(one) for one in asks]
        assert [isinstance(one, CallUnknown) and one.waited for one in said] == [True] * 3
        assert one.cancelled()
        assert two.cancelled()
    assert rows(tmp_path / "a.db", "SELECT state, why, n FROM outcome") == [(3, Why.STOPPED, 1)] * 2
    async with echoing(tmp_path / "a.db") as (door, echo, _):
        assert (await refused(door, ask("one"))).code == "call_unknown"
        assert echo.requests == []
    assert_whole(tmp_path / "a.db")


async def test_an_embedded_models_work_that_is_broken_off_failed(tmp_path: Path) -> None:
    local, model, clock = Destination("systemone", "POST", "local:mini@12345678"), QueueModel(), FakeClock()
    async with Actor(tmp_path / "a.db", {local: Upstream(model)}.get, clock, LIMITS) as door:
        asking = asyncio.create_task(door.send(Ask(request(destination=local))))
        await model.next()
        await settled(door)
        door.stop()
        assert (await refused(door, Ask(request("new", local)))).code == "busy"
        clock.advance(5)
        assert isinstance(await told(asking), CallFailed)
    assert rows(tmp_path / "a.db", "SELECT state, why FROM outcome") == [(2, Why.STOPPED)]


async def test_an_unknown_that_is_still_listened_to_does_not_hold_up_the_stop(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        clock.advance(30)
        assert isinstance(await told(asking), CallUnknown)
    assert came.cancelled()
    assert rows(tmp_path / "a.db", "SELECT state, why FROM outcome") == [(3, Why.SLOW)]


async def test_stopping_twice_is_stopping_once(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, _):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        for _ in range(3):
            door.stop()
        assert (await refused(door, ask("new"))).code == "busy"
        door.stop()
        came.set_result(reply())
        assert (await asking).sent is Sent.NOW
    assert (await refused(door, ask("after the end"))).code == "busy"
    assert_whole(tmp_path / "a.db")


async def test_what_was_counted_is_on_disk_when_it_has_stopped(tmp_path: Path) -> None:
    for _ in range(2):
        async with echoing(tmp_path / "a.db") as (door, _, _):
            for n in range(3):
                for _ in range(4):
                    await door.send(ask(f"ask {n}"))
    assert counts(tmp_path / "a.db") == {"now": 3, "no": 21}
