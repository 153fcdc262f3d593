"""The log beside the store stays below its bounds: our own readings are cut off, and for a stranger's nothing is
written."""

import asyncio
import itertools
import logging
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.store import Record, Store, StoreGone
from archive.actor.store.files import Files, readers
from archive.admin import BackUp, CheckFile
from archive.errors import Busy
from archive.messages import Health, Sent
from tests.actors import ROOM, assert_whole, echoing, refused, settled, turns
from tests.archive.actor.recorded import kept, stranger
from tests.fakes import ask, request
from tests.stored import outcomes

LARGE, FULL = 1024 * 1024, 3 * 1024 * 1024

NUMBERS = itertools.count()

GROUP = 256 * 1024
"""More than what one letter writes here."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("archive.health", "archive.actor.store.file"):
        monkeypatch.setattr(f"{module}.WAL_BYTES_MAX", LARGE)
    monkeypatch.setattr("archive.actor.store.file.WAL_BYTES_FULL", FULL)


async def grown(door: Actor, bytes_: int) -> list[str]:
    """Ask long things until the log is that large; what was asked."""
    words = list[str]()
    while (found := await door.send(Health())).wal_bytes <= bytes_ and found.writable:
        words.append(f"{next(NUMBERS)} " + "x" * 32_000)
        await door.send(ask(words[-1]))
    return words


@contextmanager
def half_read(path: Path) -> Generator[None, None, None]:
    """Another program has read half of a table, and does not go on."""
    with stranger(path) as db, closing(db.execute("SELECT bytes FROM text")) as cursor:
        cursor.fetchone()
        yield


async def test_past_its_bound_nothing_is_written_and_a_second_after_the_reader_is_gone_all_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    limits = Limits(spool_bytes_max=ROOM)
    async with echoing(path, limits=limits, spool=tmp_path / "a.spool") as (door, model, clock):
        await door.send(ask("first"))
        for _ in range(2):
            with half_read(path), caplog.at_level(logging.WARNING):
                words = await grown(door, FULL)
                answer = await door.send(ask(f"marked {len(model.requests)}"))
                assert not answer.kept.recorded
                found = await door.send(Health())
                assert (found.ok, found.writable, found.held > 0) == (False, False, True)
                assert FULL <= found.wal_bytes < FULL + GROUP
                assert "another program has been reading the store" in found.why
                for _ in range(5):
                    clock.advance(1)
                    await settled(door)
                assert (await door.send(ask(words[0]))).sent is Sent.NOT_SENT
            clock.advance(1)
            # Nobody asks for anything, not even how it is.
            while len(caplog.records) < 2:
                await turns(1)
            alarm, relief = [record.message for record in caplog.records]
            assert alarm.startswith("the record cannot be written (LogFull: its log has reached 3 MiB: another program")
            assert relief == f"the record is written again, and {found.held} things that waited are in it"
            found = await door.send(Health())
            assert (found.ok, found.why, found.held) == (True, "", 0)
            assert found.wal_bytes < LARGE
            caplog.clear()
    assert set(outcomes(path)) == {"answered"}
    assert_whole(path)


async def test_without_a_spool_nothing_is_sent_while_the_log_is_at_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, _):
        await door.send(ask("before"))
        with half_read(path):
            await grown(door, FULL)
            before = len(model.requests)
            assert (await refused(door, ask("refused"))).code == "record_closed"
            assert len(model.requests) == before
        assert (await door.send(ask("refused"))).sent is Sent.NOW


@contextmanager
def slow_readings(monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[threading.Event, threading.Event]]:
    """Our own readings stand still in the middle: whether one has begun, and what lets them go on."""
    begun, on = threading.Event(), threading.Event()
    connect = sqlite3.connect

    def slow(path: str, *, uri: bool, isolation_level: None, check_same_thread: bool) -> sqlite3.Connection:
        db = connect(path, uri=uri, isolation_level=isolation_level, check_same_thread=check_same_thread)

        def step() -> None:
            begun.set()
            on.wait()

        db.set_progress_handler(step, 1)
        return db

    with monkeypatch.context() as patched:
        patched.setattr("archive.actor.store.file.sqlite3.connect", slow)
        yield begun, on
        on.set()


async def test_our_own_backup_is_cut_off_when_it_makes_the_log_large_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B39: whoever asked for it is told why and what to do; nothing else is broken off."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask("first"))
        with slow_readings(monkeypatch) as (begun, on):
            backing_up = asyncio.create_task(door.send(BackUp(str(tmp_path / "b.db"))))
            await asyncio.to_thread(begun.wait)
            words = await grown(door, LARGE)
            await settled(door)
            on.set()
            with pytest.raises(Busy, match="Try again at a quieter hour"):
                await backing_up
        assert not await asyncio.to_thread(lambda: [*tmp_path.glob("b.db*")])
        await door.send(ask("then"))
        await door.send(ask("and then"))
        found = await door.send(Health())
        assert (found.ok, found.wal_bytes < LARGE) == (True, True)
        assert (await door.send(BackUp(str(tmp_path / "b.db")))).answers == len(words) + 3
    assert_whole(path)


async def test_a_check_of_the_file_that_was_cut_off_begins_again_an_hour_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, clock):
        await door.send(ask("first"))
        with slow_readings(monkeypatch) as (begun, on):
            clock.advance(20)
            while not begun.is_set():
                clock.advance(1)
                await settled(door)
            await grown(door, LARGE)
            await settled(door)
            checking = [task for task in asyncio.all_tasks() if task.get_name() == "CheckFile"]
            on.set()
            await asyncio.wait(checking)
        assert (await door.send(Health())).checked_at is None
        clock.advance(60 * 60)
        await door.send(CheckFile())
        while (await door.send(Health())).checked_at is None:
            await door.send(CheckFile())


async def test_what_was_committed_into_a_log_that_was_taken_away_meanwhile_is_not_called_kept(tmp_path: Path) -> None:
    """C-10: the files are looked at after the commit too, before anybody is told."""
    path = tmp_path / "a.db"
    store = await Store.open(path)
    await store.write(lambda record: kept(record, request("before")))

    def taken(record: Record) -> None:
        kept(record, request("meanwhile"))
        path.with_name("a.db-wal").unlink()

    with pytest.raises(StoreGone, match=r"a\.db-wal is no longer the file that was opened.*is in the main file"):
        await store.write(taken)
    await store.close()
    with stranger(path) as db:
        assert db.execute("SELECT count(*) FROM answer").fetchone() == (2,)


LOCKS = """\
1: POSIX  ADVISORY  READ 11071 fe:00:2203912 124 124
2: POSIX  ADVISORY  READ 11071 fe:00:2203912 128 128
3: POSIX  ADVISORY  READ 12 fe:00:2203912 123 123
3: -> POSIX  ADVISORY  READ 13 fe:00:2203912 123 123
4: POSIX  ADVISORY  WRITE 14 fe:00:2203912 120 120
5: POSIX  ADVISORY  READ 0 fe:00:2203912 127 127
6: POSIX  ADVISORY  READ 15 fe:00:2203913 124 124
7: FLOCK  ADVISORY  WRITE 16 fe:00:2203912 0 EOF
8: POSIX  ADVISORY  READ 17 fe:00:2203912 0 EOF
"""


def test_who_holds_a_read_lock_is_read_off_what_the_system_says_of_all_locks() -> None:
    assert readers(LOCKS, 2203912) == {11071, 12}
    assert readers(LOCKS, 0) == readers("", 2203912) == set()


def test_where_the_system_says_nothing_of_locks_nobody_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", none)
    assert Files(tmp_path / "a.db").readers() == ""
