"""What stands before the record beside its triggers: what our own writing connection may say, and whether the schema
in the file is the one it was made with.

Both guard against a bug here and against other programs that connect; not against someone who edits the file itself,
which only the chain shows (store/chain.py). What must never be here: what a row means.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from archive.actor.store.rows import COLUMNS

APPLICATION_ID = 0x41534B31
"""Marks a SQLite file as ours ("ASK1")."""

BESIDE = frozenset({"_litestream_seq", "_litestream_lock"})
"""Tables that Litestream makes for itself in every file it copies; they hold none of our rows and guard nothing."""

EMPTIED = ("bytes", "salt", "emptied_at")
"""The columns of a text that may be written a second time; the trigger says how."""

_PRAGMAS = frozenset({"query_only", "wal_checkpoint", "busy_timeout"})
"""What the writing connection may set or start once the store is open; it may read all of them."""

_ALWAYS = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
    }
)


def allows(action: int, first: str | None, second: str | None) -> bool:
    """May the writing connection do this? The arguments are SQLite's own (sqlite.org/c3ref/c_alter_table.html).

    Rows may be added to any table of ours. Of the insert-only ones nothing may be changed but to empty a text, and
    nothing deleted; nor may a token be, whose number names an archive. No table, trigger, view or index is made or
    dropped, no other file attached. What REPLACE deletes is not shown here: that is held by the triggers.
    """
    if action in _ALWAYS:
        return True
    table = first or ""
    if action == sqlite3.SQLITE_PRAGMA:
        return second is None or table in _PRAGMAS
    if table.startswith("sqlite_"):
        return False
    if action == sqlite3.SQLITE_INSERT:
        return True
    if action == sqlite3.SQLITE_UPDATE:
        return table not in COLUMNS or (table == "text" and second in EMPTIED)
    return action == sqlite3.SQLITE_DELETE and table not in COLUMNS and table != "token"


def stand_guard(db: sqlite3.Connection) -> None:
    """From here on `db` can do nothing but what `allows` says; asked when a statement is prepared, not each time."""
    verdict = {True: sqlite3.SQLITE_OK, False: sqlite3.SQLITE_DENY}
    db.set_authorizer(lambda action, first, second, _database, _by: verdict[allows(action, first, second)])


@contextmanager
def off_guard(db: sqlite3.Connection) -> Generator[None, None, None]:
    """Until the end of this block `db` can do what any other program's connection can. No transaction is open.

    Only so do the triggers show that they hold by themselves: the authorizer, recursive triggers and references would
    each refuse in their stead.
    """
    db.set_authorizer(None)
    try:
        db.execute("PRAGMA recursive_triggers = 0")
        db.execute("PRAGMA foreign_keys = 0")
        yield
    finally:
        try:
            db.execute("PRAGMA recursive_triggers = 1")
            db.execute("PRAGMA foreign_keys = 1")
        finally:
            stand_guard(db)


def schema_faults(db: sqlite3.Connection, fresh: sqlite3.Connection) -> list[str]:
    """What in a file's schema is not as it is in a fresh one, in words; empty when all of it is."""
    found, wanted = _schema(db), _schema(fresh)
    faults = [f"{kind} {name} is missing" for kind, name in wanted.keys() - found.keys()]
    faults += [f"{kind} {name} was added" for kind, name in found.keys() - wanted.keys()]
    faults += [
        f"{what[0]} {what[1]} was changed" for what in wanted.keys() & found.keys() if wanted[what] != found[what]
    ]
    return sorted(faults)


def _schema(db: sqlite3.Connection) -> dict[tuple[str, str], str]:
    rows = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {(kind, name): sql for kind, name, sql in rows if kind != "table" or name not in BESIDE}
