"""Backups: written while the record is in use, checked before they count, and put back only when they are sound."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from archive.actor.offline import restore
from archive.actor.store import StoreUnusable
from archive.admin import BackUp
from archive.errors import ArchiveError, Invalid
from archive.picks import KeptOnly
from tests.actors import assert_whole, crashed, echoing, killed_with_a_full_hand, queued, refused
from tests.archive.actor.recorded import fill, stranger
from tests.fakes import answer, ask, reply
from tests.stored import assert_sound, rows

TWENTY = 20


async def test_twenty_backups_under_load_each_hold_every_answer_acknowledged_before_they_began(tmp_path: Path) -> None:
    """B46, C-13: each is restored, opened and counted, not merely there."""
    path = tmp_path / "a.db"
    acknowledged = 0
    over = asyncio.Event()
    async with echoing(path) as (door, _, _):

        async def load(worker: int) -> None:
            nonlocal acknowledged
            n = 0
            while not over.is_set():
                await door.send(ask(f"{worker}/{n}"))
                acknowledged += 1
                n += 1

        loading = [asyncio.create_task(load(worker)) for worker in range(8)]
        backups: list[tuple[Path, int, int]] = []
        for n in range(TWENTY):
            before = acknowledged
            made = await door.send(BackUp(str(tmp_path / f"{n}.backup")))
            backups.append((Path(made.file), before, made.answers))
        over.set()
        await asyncio.gather(*loading)
    assert acknowledged > TWENTY
    for n, (backup, before, said) in enumerate(backups):
        restored = tmp_path / f"restored-{n}.db"
        answers = (await asyncio.to_thread(restore, backup, restored, "now")).answers
        assert answers == said >= before
        assert_sound(restored)
        assert rows(restored, "SELECT count(*) FROM answer") == [(said,)]
    assert_whole(path)


async def test_the_ends_of_the_chain_are_said_with_each_backup(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)
    async with queued(path) as (door, _, _):
        made = await door.send(BackUp(str(tmp_path / "b.db")))
    number, link = rows(tmp_path / "b.db", "SELECT id, chain FROM answer ORDER BY id DESC LIMIT 1")[0]
    assert made.heads["answer"] == f"{number}:{link.hex()}"
    assert made.bytes == (tmp_path / "b.db").stat().st_size


async def test_a_backup_never_writes_over_anything_and_leaves_nothing_behind_when_it_fails(tmp_path: Path) -> None:
    path, taken = tmp_path / "a.db", tmp_path / "taken"
    taken.write_bytes(b"precious")
    async with echoing(path) as (door, _, _):
        await door.send(ask())
        for target in (taken, tmp_path / "no such folder" / "b.db", path):
            with pytest.raises(Invalid):
                await door.send(BackUp(str(target)))
        part = tmp_path / "b.db.part"
        part.write_bytes(b"precious too")
        with pytest.raises(Invalid, match="left alone"):
            await door.send(BackUp(str(tmp_path / "b.db")))
    assert (taken.read_bytes(), part.read_bytes()) == (b"precious", b"precious too")
    part.unlink()
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path))  # noqa: PTH208 - one look, no loop to hold up


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal", ".lock", ".spool", ".erased", ".part", ".before-x"])
async def test_a_backup_takes_no_name_that_the_store_needs_whether_it_is_there_or_not(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.db"
    async with echoing(path, spool=tmp_path / "a.db.spool") as (door, _, _):
        with pytest.raises(Invalid):
            await door.send(BackUp(f"{path}{end}"))
    assert not (tmp_path / f"a.db{end}.part").exists()


async def test_a_file_that_came_to_be_there_while_the_copy_was_made_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.db"

    def faults(*_: object) -> list[str]:
        target.write_bytes(b"precious")
        return []

    monkeypatch.setattr("archive.actor.store.copies.all_faults", faults)
    async with echoing(tmp_path / "a.db") as (door, _, _):
        with pytest.raises(Invalid, match="meanwhile"):
            await door.send(BackUp(str(target)))
    assert target.read_bytes() == b"precious"
    assert not (tmp_path / "b.db.part").exists()


@pytest.mark.parametrize("links", [True, False])
def test_a_restore_that_finds_the_remains_of_another_leaves_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """And where a file system knows no second names it puts a store back all the same."""
    store, backup, part = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "a.db.part"
    fill(store)
    fill(backup)
    part.write_bytes(b"precious")
    with pytest.raises(StoreUnusable, match="left alone"):
        restore(backup, store, "now")
    assert part.read_bytes() == b"precious"
    part.unlink()
    if not links:

        def none(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr(Path, "hardlink_to", none)
    assert restore(backup, store, "now").aside == tmp_path / "a.db.before-now"
    assert store.stat().st_nlink == 1
    assert_sound(store)


async def test_a_copy_of_a_record_that_was_altered_does_not_count_as_a_backup(tmp_path: Path) -> None:
    path, target = tmp_path / "a.db", tmp_path / "b.db"
    await asyncio.to_thread(fill, path)
    with stranger(path) as db:
        (guard,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'answer_update'").fetchone()
        db.execute("DROP TRIGGER answer_update")
        db.execute("UPDATE answer SET outcome = 1 WHERE id = 2")
        db.execute(guard)
    async with queued(path) as (door, _, _):
        with pytest.raises(Invalid, match="answer: row 2"):
            await door.send(BackUp(str(target)))
    assert not target.exists()


async def test_a_backup_that_is_being_written_does_not_hold_up_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask())
        backing = asyncio.create_task(door.send(BackUp(str(tmp_path / "b.db"))))
        await asyncio.sleep(0)
    try:
        made = await backing
    except ArchiveError:
        assert not (tmp_path / "b.db").exists()
    else:
        assert made.answers == 1


def test_the_store_that_was_there_is_kept_beside_the_one_put_back(tmp_path: Path) -> None:
    store, backup = tmp_path / "a.db", tmp_path / "b.db"
    fill(store)
    fill(backup)
    with stranger(backup) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    with stranger(store) as db:
        db.execute("INSERT INTO count VALUES ('mark', 7)")
    restored = restore(backup, store, "2026-11-30")
    assert restored.aside == tmp_path / "a.db.before-2026-11-30"
    assert rows(tmp_path / "a.db.before-2026-11-30", "SELECT value FROM count WHERE name = 'mark'") == [(7,)]
    assert rows(store, "SELECT value FROM count WHERE name = 'mark'") == []
    assert backup.exists()
    with pytest.raises(StoreUnusable, match="there already"):
        restore(backup, store, "2026-11-30")
    assert rows(tmp_path / "a.db.before-2026-11-30", "SELECT value FROM count WHERE name = 'mark'") == [(7,)]


def test_what_stands_only_in_the_log_beside_a_backup_is_put_back_too(tmp_path: Path) -> None:
    """A copy of a store that was killed: file and log, as they lay there."""
    killed, backup = tmp_path / "killed.db", tmp_path / "b.db"
    fill(killed)
    with stranger(killed) as db:
        db.execute("INSERT INTO count VALUES ('mark', 7)")
        for suffix in ("", "-wal"):
            shutil.copy(f"{killed}{suffix}", f"{backup}{suffix}")
    assert (tmp_path / "b.db-wal").stat().st_size > 0
    restore(backup, tmp_path / "a.db", "now")
    assert rows(tmp_path / "a.db", "SELECT value FROM count WHERE name = 'mark'") == [(7,)]


def test_a_log_without_its_store_is_not_read_into_the_one_put_back(tmp_path: Path) -> None:
    """Somebody deleted the file of a store that was killed, and not the log beside it."""
    store, backup = tmp_path / "a.db", tmp_path / "b.db"
    fill(store)
    fill(backup)
    with stranger(backup) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    with stranger(store) as db:
        db.execute("INSERT INTO count VALUES ('mark', 7)")
        shutil.copy(f"{store}-wal", tmp_path / "left")
    store.unlink()
    shutil.move(tmp_path / "left", f"{store}-wal")
    assert restore(backup, store, "now").aside is None
    assert rows(store, "SELECT value FROM count WHERE name = 'mark'") == []
    assert_sound(store)
    assert (tmp_path / "a.db.before-now-wal").exists()


async def test_what_waits_in_the_spool_is_kept_with_the_store_it_waits_for_and_never_gets_into_the_other(
    tmp_path: Path,
) -> None:
    """Of the same archive, so that the next start would take it in; the answer is had from the two that were moved."""
    store = await killed_with_a_full_hand(tmp_path, "waits", reply(0.25))
    backup, spool = crashed(store, tmp_path / "b.backup"), tmp_path / "a.db.spool"
    waits = spool.read_bytes()
    restored = await asyncio.to_thread(restore, backup, store, "now", spool)
    assert (restored.aside, restored.spool) == (tmp_path / "a.db.before-now", tmp_path / "a.db.before-now.spool")
    assert restored.spool is not None and restored.aside is not None
    assert restored.spool.read_bytes() == waits
    async with echoing(store, spool=spool) as (door, model, _):
        assert (await refused(door, ask("waits", KeptOnly()))).code == "not_kept"
    async with echoing(restored.aside, spool=restored.spool) as (door, model, _):
        assert (await door.send(ask("waits", KeptOnly()))).kept.body == answer(0.25)
        assert model.requests == []


async def test_without_its_spool_moved_a_store_put_back_would_take_in_what_waits(tmp_path: Path) -> None:
    """The guard off."""
    store = await killed_with_a_full_hand(tmp_path, "waits", reply(0.25))
    backup = crashed(store, tmp_path / "b.backup")
    assert (await asyncio.to_thread(restore, backup, store, "now")).spool is None
    async with echoing(store, spool=tmp_path / "a.db.spool") as (door, _, _):
        assert (await door.send(ask("waits", KeptOnly()))).kept.body == answer(0.25)


def test_a_spool_in_which_nothing_waits_stays_and_one_that_is_in_the_way_is_never_written_over(tmp_path: Path) -> None:
    store, backup, spool = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "elsewhere" / "s.spool"
    fill(store)
    fill(backup)
    spool.parent.mkdir()
    for blank in (None, bytes(3 * 1024 * 1024)):
        if blank is not None:
            spool.write_bytes(blank)
        assert restore(backup, store, f"{blank is None}", spool).spool is None
    spool.write_bytes(bytes(3 * 1024 * 1024) + b"something")
    moved = spool.with_name("a.db.before-now.spool")
    moved.write_bytes(b"another's")
    with pytest.raises(StoreUnusable, match="there already"):
        restore(backup, store, "now", spool)
    assert restore(backup, store, "later", spool).spool == spool.with_name("a.db.before-later.spool")
    assert not spool.exists()
    assert moved.read_bytes() == b"another's"


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (id)")


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to look at " * 100)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8192])


def without_a_guard(path: Path) -> None:
    with stranger(path) as db:
        db.execute("DROP TRIGGER answer_delete")


def edited(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(b"jev-latest")
    data[at : at + 3] = b"JEV"
    path.write_bytes(data)


def absent(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("spoil", [foreign, no_database, cut, without_a_guard, edited, absent])
def test_a_backup_that_is_not_sound_is_not_put_back_and_nothing_changes(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    store, backup = tmp_path / "a.db", tmp_path / "b.db"
    fill(store)
    fill(backup)
    with stranger(backup) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    spoil(backup)
    before = store.read_bytes()
    with pytest.raises(StoreUnusable):
        restore(backup, store, "now")
    assert store.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("a.db.")] == []
