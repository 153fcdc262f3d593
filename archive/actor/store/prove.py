# ruff: noqa: E501 - a road reads best on one line
"""Every road to a changed record, tried on the live store inside transactions that are undone.

The roads are those that were found open on stores without guards: plain statements, REPLACE by number and by key,
gaps and second outcomes, texts filled again, and taking the guards themselves away. They are tried on rows made for
it, so that an empty record is proved as well as a full one. What must never be here: COMMIT.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from hashlib import sha256
from typing import NamedTuple

import msgspec

from archive.actor.store.guards import off_guard
from archive.actor.store.record import Record
from archive.actor.store.rows import COLUMNS
from archive.admin import Proof, Tried
from archive.attempts import Lost, NotSent, Outcome, Reply, State, Why
from archive.request import Destination, Request


class Road(NamedTuple):
    """A statement that would change what is kept, on the rows of `Sample`, and the triggers that stand in its way.

    No trigger: it is the writing connection itself that may not say such a thing (store/guards.py).
    """

    sql: str
    guards: tuple[str, ...] = ()


def _of_table(table: str) -> dict[str, Road]:
    return {
        f"change a row of {table}": Road(f"UPDATE {table} SET chain = x'00' WHERE id = :{table}", (f"{table}_update",)),
        f"renumber a row of {table}": Road(
            f"UPDATE {table} SET id = 1 + (SELECT max(id) FROM {table}) WHERE id = :{table}", (f"{table}_update",)
        ),
        f"put a row of {table} over another": Road(
            f"UPDATE OR REPLACE {table} SET id = :{table} WHERE id = (SELECT max(id) FROM {table} WHERE id <> :{table})",
            (f"{table}_update",),
        ),
        f"delete a row of {table}": Road(f"DELETE FROM {table} WHERE id = :{table}", (f"{table}_delete",)),
        f"delete all of {table}": Road(f"DELETE FROM {table}", (f"{table}_delete",)),
        f"replace a row of {table} by its number": Road(
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} WHERE id = :{table}", (f"{table}_once",)
        ),
    }


_ANSWER = "INSERT OR REPLACE INTO answer (id, request, n, outcome, chain) VALUES"
_OUTCOME = "INSERT OR REPLACE INTO outcome (id, dispatch, n, state, why, paid, at, ms, cut_short, chain) VALUES"
_NEXT_ANSWER, _NEXT_OUTCOME = "1 + (SELECT max(id) FROM answer)", "1 + (SELECT max(id) FROM outcome)"

ROADS: dict[str, Road] = {
    **{road: how for table in COLUMNS for road, how in _of_table(table).items()},
    # Beside its number, these rows are right: no other guard has anything against them.
    "replace a row of answer by its number": Road(
        f"{_ANSWER} (:answer, :request, 3, :outcome, x'00')", ("answer_once",)
    ),
    "replace a row of outcome by its number": Road(
        f"{_OUTCOME} (:outcome, :open, 1, 2, 0, 0, 0, 0, 0, x'00')", ("outcome_once",)
    ),
    "replace an answer by its version": Road(
        f"{_ANSWER} ({_NEXT_ANSWER}, :request, 2, :outcome, x'00')", ("answer_number",)
    ),
    "leave a gap in the versions": Road(
        f"{_ANSWER} ({_NEXT_ANSWER}, :request, 4, :outcome, x'00')", ("answer_number",)
    ),
    "begin versions at 2": Road(f"{_ANSWER} ({_NEXT_ANSWER}, :unanswered, 2, :outcome, x'00')", ("answer_number",)),
    "begin versions at 0": Road(f"{_ANSWER} ({_NEXT_ANSWER}, :unanswered, 0, :outcome, x'00')", ("answer_number",)),
    "replace an outcome by its sending": Road(
        f"{_OUTCOME} ({_NEXT_OUTCOME}, :dispatch, 1, 2, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)
    ),
    "a second outcome that is no answer": Road(
        f"{_OUTCOME} ({_NEXT_OUTCOME}, :open, 2, 2, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)
    ),
    "a second outcome of what was answered": Road(
        f"{_OUTCOME} ({_NEXT_OUTCOME}, :dispatch, 2, 1, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)
    ),
    "a second outcome of what failed": Road(
        f"{_OUTCOME} ({_NEXT_OUTCOME}, :failed, 2, 1, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)
    ),
    "a late unknown": Road(f"{_OUTCOME} ({_NEXT_OUTCOME}, :unknown, 2, 3, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)),
    "the first outcome after the second": Road(
        f"{_OUTCOME} ({_NEXT_OUTCOME}, :late, 1, 1, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)
    ),
    "a late answer twice": Road(
        f"{_OUTCOME} ({_NEXT_OUTCOME}, :late, 2, 1, 0, 0, 0, 0, 0, x'00')", ("outcome_number",)
    ),
    "a destination twice": Road(
        "INSERT INTO destination (name, method, url, chain) SELECT name, method, url, x'00' FROM destination WHERE id = :destination",
        ("destination_once",),
    ),
    "a named input twice": Road(
        "INSERT OR REPLACE INTO asking_input (asking, n, words, chain) VALUES (:asking, 1, :text, x'00')",
        ("asking_input_once",),
    ),
    "write over a text by an upsert": Road(
        "INSERT INTO text (id, length, bytes, seal, chain) VALUES (:text, 1, x'00', x'00', x'00') ON CONFLICT (id) DO UPDATE SET bytes = excluded.bytes",
        ("text_once", "text_update"),
    ),
    "change a text's words": Road("UPDATE text SET bytes = x'00' WHERE id = :text", ("text_update",)),
    "fill an emptied text again": Road(
        "UPDATE text SET bytes = x'00', salt = x'00' WHERE id = :emptied", ("text_update",)
    ),
    "fill an emptied text as if it never was": Road(
        "UPDATE text SET bytes = x'00', salt = x'00', emptied_at = NULL WHERE id = :emptied", ("text_update",)
    ),
    "date the emptying anew": Road("UPDATE text SET emptied_at = 6 WHERE id = :emptied", ("text_update",)),
    "empty a text twice": Road(
        "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = :emptied", ("text_update",)
    ),
    "empty a text without a date": Road("UPDATE text SET bytes = NULL, salt = NULL WHERE id = :text", ("text_update",)),
    "empty a text and keep its salt": Road(
        "UPDATE text SET bytes = NULL, emptied_at = 5 WHERE id = :text", ("text_update",)
    ),
    "date a text that is not emptied": Road("UPDATE text SET emptied_at = 5 WHERE id = :text", ("text_update",)),
    "change the seal while emptying": Road(
        "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5, seal = x'00' WHERE id = :text", ("text_update",)
    ),
    "change the length while emptying": Road(
        "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5, length = 0 WHERE id = :text", ("text_update",)
    ),
    # What no trigger can hold: the guards themselves. The writing connection may not say it.
    "drop a trigger": Road("DROP TRIGGER answer_update"),
    "drop a table": Road("DROP TABLE answer"),
    "drop a column": Road("ALTER TABLE outcome DROP COLUMN cost"),
    "rename a table": Road("ALTER TABLE answer RENAME TO old_answer"),
    "make a table": Road("CREATE TABLE other (id INTEGER)"),
    "make a trigger of its own": Road("CREATE TRIGGER other BEFORE UPDATE ON answer BEGIN SELECT RAISE(IGNORE); END"),
    "make a trigger that hides the guards": Road(
        "CREATE TEMP TRIGGER other BEFORE UPDATE ON main.answer BEGIN SELECT RAISE(IGNORE); END"
    ),
    "make a view to write through": Road("CREATE VIEW other AS SELECT * FROM answer"),
    "open the schema for writing": Road("PRAGMA writable_schema = 1"),
    "write the schema": Road("DELETE FROM sqlite_schema WHERE type = 'trigger'"),
    "let REPLACE delete in silence": Road("PRAGMA recursive_triggers = 0"),
    "leave out the checks": Road("PRAGMA ignore_check_constraints = 1"),
    "let references lead nowhere": Road("PRAGMA foreign_keys = 0"),
    "keep erased words in the file": Road("PRAGMA secure_delete = 0"),
    "attach another file": Road("ATTACH ':memory:' AS other"),
}
"""By name; each must be refused."""

WANTED: dict[str, Road] = {
    "empty a text, once": Road("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = :text"),
    "a late answer of what was unknown": Road(f"{_OUTCOME} ({_NEXT_OUTCOME}, :unknown, 2, 1, 0, 0, 0, 0, 0, x'00')"),
    "the next answer of a request": Road(f"{_ANSWER} ({_NEXT_ANSWER}, :request, 3, :outcome, x'00')"),
}
"""By name; each must work, or the record could neither grow nor give a person's words back."""


ENDS = 100
"""Rows of each table's end that are compared on a store in use: beyond them lies all that the roads lead to."""


def prove(record: Record, *, guarded: bool = True, whole: bool = False) -> Proof:
    """Try every road. No transaction is open before or after; nothing that was tried is ever committed.

    What triggers hold is tried as another program would, what the authorizer holds as our own writer. `guarded`: it is
    our own writer, so that it is let off its guard for the first. `whole`: every row is compared with what it was
    before, which takes its time, and not only the last ones.
    """
    before = _state(record.db, whole)
    with off_guard(record.db) if guarded else nullcontext():
        tried = _tried(record, {name: road for name, road in ROADS.items() if road.guards})
    tried += _tried(record, {name: road for name, road in ROADS.items() if not road.guards})
    tried += _tried(record, WANTED, wanted=True)
    return Proof(tuple(tried), _state(record.db, whole) == before)


def _tried(record: Record, roads: Mapping[str, Road], *, wanted: bool = False) -> list[Tried]:
    record.db.execute("BEGIN IMMEDIATE")
    try:
        record.begin()
        sample = make_sample(record)
        return [_try(record.db, name, road, sample, wanted=wanted) for name, road in roads.items()]
    finally:
        record.undone()
        _undo(record.db)


def _undo(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        db.execute("ROLLBACK")


def _try(db: sqlite3.Connection, name: str, road: Road, sample: dict[str, int], *, wanted: bool) -> Tried:
    db.execute("SAVEPOINT road")
    try:
        db.execute(road.sql, sample).fetchall()
    except sqlite3.DatabaseError as error:
        return Tried(name, str(error), open=False, wanted=wanted)
    finally:
        # A road that was open may have taken the savepoint with it.
        with suppress(sqlite3.OperationalError):
            db.execute("ROLLBACK TO road")
            db.execute("RELEASE road")
    return Tried(name, "done", open=True, wanted=wanted)


def _state(db: sqlite3.Connection, whole: bool) -> bytes:
    """A digest of how many rows each insert-only table has and of the last of them, of the counts, and of the schema.

    `whole`: of every row of every table.
    """
    running = sha256()
    schema = db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    tables = [name for kind, name, _ in schema if kind == "table"] if whole else ["count"]
    reads = [f'SELECT * FROM "{table}"' for table in tables]
    if not whole:
        reads += [f"SELECT count(*) FROM {table}" for table in COLUMNS]
        reads += [f"SELECT * FROM {table} ORDER BY id DESC LIMIT {ENDS}" for table in COLUMNS]
    for read in reads:
        for row in db.execute(read):
            running.update(_packed(row))
        running.update(read.encode())
    running.update(_packed(schema))
    return running.digest()


_packed = msgspec.msgpack.Encoder().encode


def make_sample(record: Record) -> dict[str, int]:
    """Rows of every kind to try the roads on, by the names the roads use."""
    place = Destination("systemone", "POST", "https://prove.invalid/")
    request = record.add_request(Request(place, b'{"state":"prove","model":"m"}', partition="prove")).id
    unanswered = record.add_request(Request(place, b"prove nothing", partition="prove")).id
    said = Outcome(State.ANSWERED, reply=Reply(200, b"prove", "text/plain", "prove"))
    sample = {"request": request, "unanswered": unanswered}
    for _ in range(2):
        sample["dispatch"] = record.add_dispatch(request, "m", 0)
        sample["outcome"] = record.add_outcome(sample["dispatch"], 1, said, 0, 0)
        record.add_answer(request, sample["outcome"])
    for name, came in (("failed", NotSent()), ("unknown", Lost()), ("late", Lost())):
        sample[name] = record.add_dispatch(unanswered, None, 0)
        state = State.FAILED if isinstance(came, NotSent) else State.UNKNOWN
        record.add_outcome(sample[name], 1, Outcome(state, Why.NO_CONNECTION), 0, 0)
    record.add_outcome(sample["late"], 2, said, 0, 0)
    sample["open"] = record.add_dispatch(unanswered, None, 0)
    record.add_request(Request(Destination("systemone", "POST", "https://prove.invalid/again"), b"prove nothing"))
    words, emptied = record.text(b"words to prove with"), record.text(b"words to empty")
    record.db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = ?", (emptied.id,))
    sample |= {"text": words.id, "emptied": emptied.id}
    sample["answer"] = record.one("SELECT max(id) FROM answer")[0]
    sample["destination"] = record.one("SELECT max(id) FROM destination")[0]
    for _ in range(2):
        sample["asking"] = record.add("asking", request, sample["answer"], None, None, None, None, 1, 0, 0)
        sample["asking_input"] = record.add("asking_input", sample["asking"], 1, None, words, None)
        sample["withdrawal"] = record.add("withdrawal", sample["answer"], 1, None, None, 0)
        sample["moderation"] = record.add("moderation", words, 0, None, None, 0)
    return sample
