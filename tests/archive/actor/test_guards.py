# ruff: noqa: S608 - SQL put together from the schema's own words
"""Write-once is held by the database itself: every road is shut, and each by the very guard that is named for it."""

import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.archive.actor.recorded import dump, fill, stranger
from tests.chain import INSERT_ONLY

EMPTY = "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = {}"


def _of_table(table: str) -> dict[str, tuple[str, str]]:
    """The roads that every table has."""
    once = f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} WHERE id = 1"
    over = f"UPDATE OR REPLACE {table} SET id = 1 WHERE id = (SELECT max(id) FROM {table})"
    return {
        f"change a row of {table}": (f"UPDATE {table} SET chain = x'00' WHERE id = 1", f"{table}_update"),
        f"renumber a row of {table}": (f"UPDATE {table} SET id = 999 WHERE id = 1", f"{table}_update"),
        f"put a row of {table} over another": (over, f"{table}_update"),
        f"delete a row of {table}": (f"DELETE FROM {table} WHERE id = 1", f"{table}_delete"),
        f"delete all of {table}": (f"DELETE FROM {table}", f"{table}_delete"),
        # An answer or outcome as it stands is refused by a second guard too; theirs are below.
        f"replace a row of {table} by its number": (once, f"{table}_once"),
    }


_ANSWER = "INSERT OR REPLACE INTO answer (id, request, n, outcome, chain) VALUES"
_OUTCOME = "INSERT OR REPLACE INTO outcome (id, dispatch, n, state, why, paid, at, ms, chain) VALUES"

_TWICE = (
    "INSERT INTO destination (name, method, url, chain) SELECT name, method, url, x'00' FROM destination WHERE id = 1"
)

ROADS: dict[str, tuple[str, str]] = {
    **{road: how for table in INSERT_ONLY for road, how in _of_table(table).items()},
    # Beside its number, these rows are right: no other guard has anything against them.
    "replace a row of answer by its number": (f"{_ANSWER} (1, 1, 4, 1, x'00')", "answer_once"),
    "replace a row of outcome by its number": (f"{_OUTCOME} (1, 10, 1, 2, 0, 0, 0, 0, x'00')", "outcome_once"),
    "replace an answer by its version": (f"{_ANSWER} (99, 1, 2, 1, x'00')", "answer_number"),
    "leave a gap in the versions": (f"{_ANSWER} (99, 1, 5, 1, x'00')", "answer_number"),
    "begin versions at 2": (f"{_ANSWER} (99, 4, 2, 1, x'00')", "answer_number"),
    "begin versions at 0": (f"{_ANSWER} (99, 4, 0, 1, x'00')", "answer_number"),
    "replace an outcome by its sending": (f"{_OUTCOME} (99, 1, 1, 2, 0, 0, 0, 0, x'00')", "outcome_number"),
    "a second outcome that is no answer": (f"{_OUTCOME} (99, 10, 2, 2, 0, 0, 0, 0, x'00')", "outcome_number"),
    "a second outcome of what was answered": (f"{_OUTCOME} (99, 1, 2, 1, 0, 0, 0, 0, x'00')", "outcome_number"),
    "a second outcome of what failed": (f"{_OUTCOME} (99, 6, 2, 1, 0, 0, 0, 0, x'00')", "outcome_number"),
    "a late unknown": (f"{_OUTCOME} (99, 8, 2, 3, 0, 0, 0, 0, x'00')", "outcome_number"),
    "the first outcome after the second": (f"{_OUTCOME} (99, 8, 1, 1, 0, 0, 0, 0, x'00')", "outcome_number"),
    "a late answer twice": (f"{_OUTCOME} (99, 8, 2, 1, 0, 0, 0, 0, x'00')", "outcome_number"),
    "a destination twice": (_TWICE, "destination_once"),
    "a named input twice": (
        "INSERT OR REPLACE INTO asking_input (id, asking, n, words, chain) VALUES (99, 1, 1, 1, x'00')",
        "asking_input_once",
    ),
    "write over a text by an upsert": (
        "INSERT INTO text (id, length, bytes, seal, chain) VALUES (1, 1, x'00', x'00', x'00')"
        " ON CONFLICT (id) DO UPDATE SET seal = excluded.seal",
        "text_once text_update",
    ),
    "change a text's words": ("UPDATE text SET bytes = x'00' WHERE id = 2", "text_update"),
    "fill an emptied text again": ("UPDATE text SET bytes = x'00', salt = x'00' WHERE id = 1", "text_update"),
    "fill an emptied text as if it never was": (
        "UPDATE text SET bytes = x'00', salt = x'00', emptied_at = NULL WHERE id = 1",
        "text_update",
    ),
    "date the emptying anew": ("UPDATE text SET emptied_at = 6 WHERE id = 1", "text_update"),
    "empty a text twice": (EMPTY.format(1), "text_update"),
    "empty a text without a date": ("UPDATE text SET bytes = NULL, salt = NULL WHERE id = 2", "text_update"),
    "empty a text and keep its salt": ("UPDATE text SET bytes = NULL, emptied_at = 5 WHERE id = 2", "text_update"),
    "date a text that is not emptied": ("UPDATE text SET emptied_at = 5 WHERE id = 2", "text_update"),
    "change the seal while emptying": (
        "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5, seal = x'00' WHERE id = 2",
        "text_update",
    ),
    "change the length while emptying": (
        "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5, length = 0 WHERE id = 2",
        "text_update",
    ),
}
"""By name: the SQL, and the guard (or guards, each enough by itself) that stands in its way."""


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


@pytest.mark.parametrize("road", ROADS)
def test_every_road_to_a_changed_record_is_shut(db: sqlite3.Connection, road: str) -> None:
    """C-33: UPDATE, DELETE, REPLACE by number and by key, gaps, second outcomes, refilled and re-dated texts."""
    before = dump(db)
    with pytest.raises(sqlite3.IntegrityError, match=r"write-once|without a gap|written once"):
        db.execute(ROADS[road][0])
    assert dump(db) == before


@pytest.mark.parametrize("road", ROADS)
def test_without_its_guard_that_road_is_open(db: sqlite3.Connection, road: str) -> None:
    sql, guards = ROADS[road]
    for guard in guards.split():
        db.execute(f"DROP TRIGGER {guard}")
    assert db.execute(sql).rowcount > 0


@pytest.mark.parametrize("road", ROADS)
def test_our_own_writers_pragmas_open_no_road(record: Path, road: str) -> None:
    with stranger(record, careful=True) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(ROADS[road][0])
        db.execute("ROLLBACK")


def test_every_guard_of_the_schema_is_tried(db: sqlite3.Connection) -> None:
    guards = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    assert guards == {guard for _, named in ROADS.values() for guard in named.split()}


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
        "INSERT INTO outcome (dispatch, n, state, why, paid, at, ms, chain) VALUES (10, 1, 4, 0, 0, 0, 0, x'00')",
        "INSERT INTO outcome (dispatch, n, state, why, paid, at, ms, chain) VALUES (10, 3, 1, 0, 0, 0, 0, x'00')",
        "INSERT INTO outcome (dispatch, n, state, why, paid, at, ms, chain) VALUES (10, 1, 1, 0, 0, 'noon', 0, x'00')",
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
