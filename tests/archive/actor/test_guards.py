"""Write-once is held by the database itself: every road is shut, and each by the very guard that is named for it."""

import asyncio
import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

from archive.actor.store import Record, Store, StoreUnusable, check
from archive.actor.store.prove import ROADS, WANTED, make_sample, prove
from archive.admin import MENDED, Check, Mark, Prove
from tests.actors import queued
from tests.archive.actor.recorded import dump, fill, stranger

_FIRST = "INSERT INTO outcome (dispatch, n, state, why, paid, at, ms, cut_short, chain) VALUES"

EMPTY = "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = {}"

BY_TRIGGER = [name for name, road in ROADS.items() if road.guards]
"""Roads that a program with a connection of its own has too."""

BY_AUTHORIZER = [name for name, road in ROADS.items() if not road.guards]


@pytest.fixture(scope="module", name="record")
def _record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled record whose first text is emptied."""
    path = tmp_path_factory.mktemp("guards") / "a.db"
    fill(path)
    with stranger(path) as db:
        db.execute(EMPTY.format(1))
    return path


@pytest.fixture(name="db")
def _db(record: Path) -> Generator[sqlite3.Connection, None, None]:
    """A stranger's connection without any of our pragmas, and everything done on it undone."""
    with stranger(record) as db:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("ROLLBACK")


def sample(db: sqlite3.Connection) -> dict[str, int]:
    """Rows to try the roads on, made in the open transaction."""
    record = Record(db, lambda: b"salt" * 4)
    record.begin()
    return make_sample(record)


@pytest.mark.parametrize("road", BY_TRIGGER)
def test_every_road_to_a_changed_record_is_shut(db: sqlite3.Connection, road: str) -> None:
    """C-33: UPDATE, DELETE, REPLACE by number and by key, gaps, second outcomes, refilled and re-dated texts."""
    made = sample(db)
    before = dump(db)
    with pytest.raises(sqlite3.IntegrityError, match=r"write-once|without a gap|written once"):
        db.execute(ROADS[road].sql, made)
    assert dump(db) == before


@pytest.mark.parametrize("road", BY_TRIGGER)
def test_without_its_guard_that_road_is_open(db: sqlite3.Connection, road: str) -> None:
    made = sample(db)
    for guard in ROADS[road].guards:
        db.execute(f"DROP TRIGGER {guard}")
    assert db.execute(ROADS[road].sql, made).rowcount > 0


@pytest.mark.parametrize("road", BY_TRIGGER)
def test_our_own_writers_pragmas_open_no_road(record: Path, road: str) -> None:
    with stranger(record, careful=True) as db:
        db.execute("BEGIN IMMEDIATE")
        made = sample(db)
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(ROADS[road].sql, made)
        db.execute("ROLLBACK")


def test_every_guard_of_the_schema_is_tried(db: sqlite3.Connection) -> None:
    guards = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    assert guards == {guard for road in ROADS.values() for guard in road.guards}


async def test_the_whole_record_is_proved_while_it_is_in_use_and_is_the_same_after(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)
    async with queued(path) as (door, _, _):
        with stranger(path) as db:
            before = dump(db)
        proof = await door.send(Prove())
    assert proof.holds
    assert {one.road for one in proof.tried} == ROADS.keys() | WANTED.keys()
    assert [one.road for one in proof.tried if one.open] == list(WANTED)
    with stranger(path) as db:
        assert dump(db) == before


def test_a_record_without_a_guard_is_not_called_proved_and_the_open_road_is_named(record: Path, tmp_path: Path) -> None:
    """On a copy, since a store without a guard is not opened at all."""
    for guard in ("answer_update", "text_once", "outcome_number"):
        copy = tmp_path / f"{guard}.db"
        with stranger(record) as db:
            db.execute("VACUUM INTO ?", (str(copy),))
        with stranger(copy) as db:
            db.execute(f"DROP TRIGGER {guard}")
            proof = prove(Record(db, lambda: b"salt" * 4), guarded=False)
            assert not proof.holds
            opened = {one.road for one in proof.tried if one.open} - WANTED.keys()
            assert opened >= {name for name, road in ROADS.items() if road.guards == (guard,)}
            assert not db.in_transaction


async def test_a_guard_that_somebody_takes_off_while_the_record_is_in_use_is_missed_by_the_proof(
    tmp_path: Path,
) -> None:
    """The start compared the guards; the authorizer alone would refuse in the trigger's stead."""
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)
    async with queued(path) as (door, _, _):
        assert (await door.send(Prove())).holds
        with stranger(path) as db:
            db.execute("DROP TRIGGER answer_once")
        proof = await door.send(Prove())
    assert [one.road for one in proof.tried if not one.as_promised] == ["replace a row of answer by its number"]
    assert proof.unchanged


async def test_after_it_was_proved_the_writing_connection_stands_on_guard_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)
    store = await Store.open(path)
    try:
        assert (await store.apart(Prove(), 0)).holds
        for pragma in ("recursive_triggers", "foreign_keys"):
            assert await store.write(lambda record, name=pragma: record.one(f"PRAGMA {name}")) == (1,)
        for sql in ("DROP TRIGGER answer_once", "DELETE FROM answer", "PRAGMA foreign_keys = 0"):
            with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                await store.write(lambda record, sql=sql: record.db.execute(sql))
    finally:
        await store.close()


def test_without_the_authorizer_the_guards_themselves_could_be_taken_away(record: Path) -> None:
    with stranger(record) as db:
        proof = prove(Record(db, lambda: b"salt" * 4), guarded=False)
        opened = {one.road for one in proof.tried if one.open} - WANTED.keys()
    assert opened == set(BY_AUTHORIZER)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("DROP TRIGGER answer_update", "trigger answer_update is missing"),
        ("DROP INDEX answer_key", "index answer_key is missing"),
        ("CREATE TABLE other (id INTEGER)", "table other was added"),
        ("CREATE TRIGGER other BEFORE INSERT ON answer BEGIN SELECT 1; END", "trigger other was added"),
        ("ALTER TABLE cooldown ADD COLUMN other TEXT", "table cooldown was changed"),
    ],
)
def test_a_store_whose_guards_are_not_as_they_were_made_is_not_opened(tmp_path: Path, change: str, fault: str) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with stranger(path) as db:
        db.execute(change)
        before = dump(db)
    with pytest.raises(StoreUnusable, match=fault):
        asyncio.run(Store.open(path))
    with stranger(path) as db:
        assert dump(db) == before


def test_the_tables_that_litestream_makes_for_itself_keep_no_store_from_opening(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with stranger(path) as db:
        db.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)")
        db.execute("CREATE TABLE _litestream_lock (id INTEGER)")

    async def opened() -> None:
        await (await Store.open(path)).close()

    asyncio.run(opened())
    with stranger(path) as db:
        db.execute("CREATE TRIGGER _litestream_seq2 BEFORE INSERT ON answer BEGIN SELECT 1; END")
    with pytest.raises(StoreUnusable, match="trigger _litestream_seq2 was added"):
        asyncio.run(opened())


async def test_the_chain_is_checked_piece_by_piece_and_a_row_that_was_edited_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await asyncio.to_thread(fill, path)

    async def checked(most: int) -> tuple[list[str], int]:
        faults, rows, mark = list[str](), 0, Mark()
        async with queued(path) as (door, _, _):
            while mark is not None:
                found = await door.send(Check(mark, most))
                faults, rows, mark = [*faults, *found.faults], rows + found.rows, found.mark
        return faults, rows

    whole = await checked(1000)
    assert whole[0] == []
    assert await checked(1) == whole
    assert await checked(2) == whole
    with stranger(path) as db:
        (text,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'text_update'").fetchone()
        db.execute("DROP TRIGGER text_update")
        db.execute("UPDATE text SET bytes = zeroblob(length) WHERE id = 3")
        db.execute(text)
        (answer,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'answer_update'").fetchone()
        db.execute("DROP TRIGGER answer_update")
        db.execute("UPDATE answer SET outcome = 1 WHERE id = 2")
        db.execute(answer)
    faults, _ = await checked(3)
    assert [fault for fault in faults if MENDED not in fault] == [
        "text: the words of row 3 are not those that were written",
        "answer: row 2 is not as it was written, or the one before it is not",
    ]


def test_a_missing_row_is_named_by_the_check(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    fill(path)
    with stranger(path) as db:
        db.execute("DROP TRIGGER dispatch_delete")
        db.execute("DELETE FROM dispatch WHERE id = 2")
        assert "dispatch: row 2 is missing" in check(db, Mark("dispatch"), 100).faults


def test_a_text_may_be_emptied_once_and_nothing_else_of_it_changes(db: sqlite3.Connection) -> None:
    before = db.execute("SELECT id, length, seal, chain FROM text WHERE id = 2").fetchone()
    db.execute(EMPTY.format(2))
    assert db.execute("SELECT id, length, seal, chain FROM text WHERE id = 2").fetchone() == before
    assert db.execute("SELECT bytes, salt, emptied_at FROM text WHERE id = 2").fetchone() == (None, None, 5)


def test_a_late_answer_is_the_one_second_outcome_there_is(db: sqlite3.Connection) -> None:
    states = db.execute("SELECT n, state FROM outcome WHERE dispatch = 8 ORDER BY n").fetchall()
    assert states == [(1, 3), (2, 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO dispatch (request, origin, at, chain) VALUES (1, 3, 0, x'00')",
        f"{_FIRST} (10, 1, 4, 0, 0, 0, 0, 0, x'00')",
        f"{_FIRST} (10, 3, 1, 0, 0, 0, 0, 0, x'00')",
        f"{_FIRST} (10, 1, 1, 0, 0, 'noon', 0, 0, x'00')",
        f"{_FIRST} (10, 1, 1, 0, 0, 0, 0, 2, x'00')",
        "INSERT INTO request (destination, content_type, instructions, whole, chain) VALUES (1, 1, 1, 2, x'00')",
        "INSERT INTO answer (request, n, outcome, chain) VALUES (1, 4, 1, NULL)",
    ],
)
def test_numbers_that_mean_nothing_are_refused(db: sqlite3.Connection, sql: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(sql)


def test_no_row_speaks_of_one_that_is_not_there(record: Path) -> None:
    with stranger(record, careful=True) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            db.execute("INSERT INTO dispatch (request, origin, at, chain) VALUES (999, 1, 0, x'00')")
        db.execute("ROLLBACK")
