"""How the record says it is: while it is written, while it cannot be, and when somebody altered or took it."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from archive.actor.actor import Actor
from archive.actor.store import Lock
from archive.admin import CheckFile
from archive.health import WAL_BYTES_MAX, Condition
from archive.messages import Health
from tests.actors import all_at_once, echoing, locked, queued, settled
from tests.archive.actor.recorded import fill, stranger
from tests.fakes import FakeClock, ask, reply

DAY = 24 * 60 * 60.0


async def checked(door: Actor, clock: FakeClock) -> Condition:
    """Let time pass until the whole record has been checked once, and see how it is."""
    before = (await door.send(Health())).checked_at
    for _ in range(200):
        clock.advance(1)
        await settled(door)
        await door.send(CheckFile())
        found = await door.send(Health())
        if found.checked_at != before:
            return found
    raise AssertionError("the record was never checked to its end")


async def test_a_record_that_is_written_is_well(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        asking = all_at_once(door, [ask()])
        came = await model.next()
        found = await door.send(Health())
        assert (found.ok, found.writable, found.calls, found.held, found.cooling) == (True, True, 1, 0, 0)
        assert found.schema == 1
        assert found.wal_bytes > 0
        came.set_result(reply())
        await asyncio.gather(*asking)
        assert (await door.send(Health())).calls == 0


async def test_a_record_that_cannot_be_written_is_not_and_is_again_when_it_can(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, clock):
        with locked(path):
            found = await door.send(Health())
            assert (found.ok, found.writable) == (False, False)
        clock.advance(1)
        assert (await door.send(Health())).ok


async def test_an_outcome_that_waits_to_be_written_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        asking = all_at_once(door, [ask()])
        came = await model.next()
        with locked(path):
            came.set_result(reply())
            await asyncio.gather(*asking)
            found = await door.send(Health())
            assert (found.ok, found.held) == (False, 1)
        clock.advance(1)
        await settled(door)
        assert (await door.send(Health())).held == 0


async def test_the_whole_record_is_checked_bit_by_bit_and_again_a_day_later(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)
    async with queued(path) as (door, _, clock):
        assert (await door.send(Health())).checked_at is None
        found = await checked(door, clock)
        assert (found.ok, found.faults) == (True, ())
        with stranger(path) as db:
            guards = db.execute("SELECT name, sql FROM sqlite_schema WHERE name = 'outcome_update'").fetchall()
            db.execute("DROP TRIGGER outcome_update")
            db.execute("UPDATE outcome SET ms = 1 WHERE id = 2")
            db.execute(guards[0][1])
        clock.advance(DAY)
        found = await checked(door, clock)
        assert found.faults == ("outcome: row 2 is not as it was written, or the one before it is not",)
        assert not found.ok


async def test_what_is_wrong_is_told_before_the_rest_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)
    with stranger(path) as db:
        (guard,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'text_update'").fetchone()
        db.execute("DROP TRIGGER text_update")
        db.execute("UPDATE text SET bytes = zeroblob(length) WHERE id = 3")
        db.execute(guard)
    async with queued(path) as (door, _, clock):
        clock.advance(20)
        await settled(door)
        found = await door.send(Health())
        assert found.checked_at is None
        assert found.checking > 0
        assert found.faults == ("text: the words of row 3 are not those that were written",)


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    path.rename(path.with_name("moved.db"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE other (id)")


@pytest.mark.parametrize("taken", [removed, replaced])
async def test_a_store_that_was_taken_away_ends_the_process_before_anything_is_called_kept(
    tmp_path: Path, taken: Callable[[Path], None]
) -> None:
    """C-09: SQLite would go on writing into a file without a name; no call is made and none is acknowledged."""
    path = tmp_path / "a.db"
    died = asyncio.Event()
    async with queued(path, dead=died.set) as (door, model, _):
        taken(path)
        asking = all_at_once(door, [ask()])
        await died.wait()
        assert model.requests == []
        assert not any(task.done() for task in asking)
        for task in asking:
            task.cancel()


@pytest.mark.parametrize("end", ["", "-wal", "-shm", ".lock"])
async def test_a_store_that_was_taken_away_is_noticed_within_a_minute_though_nobody_asks(
    tmp_path: Path, end: str
) -> None:
    died = asyncio.Event()
    path = tmp_path / "a.db"
    held = Lock(path)
    async with queued(path, dead=died.set) as (door, _, clock):
        await checked(door, clock)
        path.with_name(path.name + end).unlink()
        clock.advance(60)
        await died.wait()
    held.release()


async def test_a_spool_that_was_removed_is_made_anew_within_a_minute_though_nobody_asks(tmp_path: Path) -> None:
    spool = tmp_path / "a.spool"
    async with queued(tmp_path / "a.db", spool=spool) as (door, _, clock):
        spool.unlink()
        clock.advance(60)
        await settled(door)
        assert spool.exists() and (await door.send(Health())).ok
        spool.rename(tmp_path / "moved")
        spool.write_text("the owner's")
        clock.advance(60)
        await settled(door)
        found = await door.send(Health())
        assert (found.ok, found.spool, "no spool" in found.why) == (False, False, True)
    assert spool.read_text() == "the owner's"


async def test_the_log_beside_the_store_is_cut_back_when_a_reader_lets_go(tmp_path: Path) -> None:
    """B39, B40: an open read keeps all that is written after it in the log; gone, the log shrinks without a restart."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask("first"))
        with stranger(path) as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM answer").fetchone()
            for n in range(400):
                await door.send(ask(f"{n} " + "x" * 32_000))
            grown = (await door.send(Health())).wal_bytes
            assert grown > 8 * 1024 * 1024
        for n in range(200):
            await door.send(ask(f"then {n} " + "x" * 32_000))
        shrunk = (await door.send(Health())).wal_bytes
        assert shrunk < grown / 2


def test_a_log_that_grows_without_end_is_not_well() -> None:
    assert Condition(True, 0, 0, 0, 1, WAL_BYTES_MAX).ok
    assert not Condition(True, 0, 0, 0, 1, WAL_BYTES_MAX + 1).ok


def test_what_is_not_well_is_said_the_cause_first() -> None:
    assert Condition(True, 0, 3, 1, 1).why == ""
    assert Condition(False, 2, 0, 0, 1, WAL_BYTES_MAX + 1, "sqlite3, process 12", faults=("x",)).why == (
        "another program (sqlite3, process 12) has been reading the store and keeps its log from being folded in; "
        "the store cannot be written at this moment; calls and outcomes wait to be written: 2; what is kept has faults"
    )
