"""A copy of a record is proved with whatever guards it has, and is the same after, byte for byte."""

import asyncio
import sqlite3
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from archive.actor.offline import prove_copy
from archive.actor.store import Lock, StoreTaken, StoreUnusable
from archive.actor.store.prove import ROADS, WANTED
from archive.admin import BackUp, Prove
from tests.actors import queued
from tests.archive.actor.recorded import fill, stranger

Undo = Callable[[sqlite3.Connection], None]


@pytest.fixture(name="copy")
def _copy(tmp_path: Path) -> Path:
    """A backup of a filled record."""

    async def made() -> None:
        fill_ = asyncio.to_thread(fill, tmp_path / "a.db")
        await fill_
        async with queued(tmp_path / "a.db") as (door, _, _):
            await door.send(BackUp(str(tmp_path / "b.db")))

    asyncio.run(made())
    return tmp_path / "b.db"


def test_a_sound_copy_is_proved_and_not_a_byte_of_it_changes(copy: Path) -> None:
    before, beside = copy.read_bytes(), sorted(copy.parent.iterdir())
    found = prove_copy(copy)
    assert found.proof.holds
    assert found.faults == ()
    assert found.rows > 50
    assert {one.road for one in found.proof.tried} == ROADS.keys() | WANTED.keys()
    assert copy.read_bytes() == before
    assert sorted(copy.parent.iterdir()) == beside


@pytest.mark.parametrize("guard", sorted({guard for road in ROADS.values() for guard in road.guards}))
def test_a_guard_that_was_taken_off_a_copy_is_named_and_its_roads_are_open(copy: Path, guard: str) -> None:
    with stranger(copy) as db:
        db.execute(f"DROP TRIGGER {guard}")
    found = prove_copy(copy)
    opened = {one.road for one in found.proof.tried if not one.as_promised}
    assert opened == {name for name, road in ROADS.items() if road.guards == (guard,)}
    assert opened
    assert found.proof.unchanged
    assert found.faults == (f"trigger {guard} is missing",)


def test_a_row_that_was_edited_in_a_copy_is_named(copy: Path) -> None:
    data = bytearray(copy.read_bytes())
    at = data.index(b"jev-latest")
    data[at : at + 3] = b"JEV"
    copy.write_bytes(data)
    found = prove_copy(copy)
    assert found.proof.holds
    assert any("are not those that were written" in fault for fault in found.faults)


def committed(db: sqlite3.Connection) -> None:
    """The guard off: what was tried is kept."""
    if db.in_transaction:
        db.execute("COMMIT")


def emptied(db: sqlite3.Connection) -> None:
    """A row that was there before is another one after: as many rows, the same ends of the chain, the same schema."""
    db.execute("ROLLBACK")
    db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = 2 AND bytes IS NOT NULL")


@pytest.mark.parametrize("instead", [committed, emptied])
def test_what_is_not_undone_is_seen(copy: Path, instead: Undo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("archive.actor.store.prove"), "_undo", instead)
    assert not prove_copy(copy).proof.unchanged


@pytest.mark.parametrize("instead", [committed, emptied])
async def test_what_is_not_undone_in_the_store_is_seen(
    copy: Path, instead: Undo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("archive.actor.store.prove"), "_undo", instead)
    async with queued(copy) as (door, _, _):
        assert not (await door.send(Prove())).unchanged


def absent(path: Path) -> None:
    path.unlink()


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to look at " * 100)


def foreign(path: Path) -> None:
    with stranger(path) as db:
        db.execute("PRAGMA application_id = 7")


def newer(path: Path) -> None:
    with stranger(path) as db:
        db.execute("PRAGMA user_version = 99")


def without_a_table(path: Path) -> None:
    with stranger(path) as db:
        db.execute("DROP TABLE answer")


@pytest.mark.parametrize("spoil", [absent, no_database, foreign, newer, without_a_table])
def test_what_is_no_record_of_ours_is_said_to_be_none(copy: Path, spoil: Callable[[Path], None]) -> None:
    spoil(copy)
    with pytest.raises(StoreUnusable, match=r"b\.db"):
        prove_copy(copy)


def test_a_store_that_is_in_use_is_not_taken_for_a_copy(copy: Path) -> None:
    lock = Lock(copy)
    with pytest.raises(StoreTaken):
        prove_copy(copy)
    lock.release()
    assert prove_copy(copy).proof.holds
