"""Whole copies of a store: made while it is in use, checked before they count, and put back in its place.

A copy is written by SQLite itself (VACUUM INTO) from a connection that only reads, under a temporary name; it gets its
own only when it was opened, checked and counted, and is on disk. What must never be here: the writing connection.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from archive.actor.store.chain import check
from archive.actor.store.rows import COLUMNS
from archive.admin import MENDED, BackedUp, Mark
from archive.errors import Invalid

Connect = Callable[[Path], AbstractContextManager[sqlite3.Connection]]

Advance = Callable[[int], None]
"""Told how much more was done."""

Bar = Callable[[str, int], AbstractContextManager[Advance]]
"""Shows somebody how far something is, by its name and how much there is to do."""

STEPS = 1_000_000
"""After so many steps of SQLite's a bar is told that work goes on: a few milliseconds."""


def no_bar(_label: str, _length: int) -> AbstractContextManager[Advance]:
    """Where nobody looks."""
    return nullcontext(lambda _: None)


def back_up(store: Path, target: Path, connect: Connect) -> BackedUp:
    """Copy `store` to the new file `target`. Raises Invalid, and then there is no such file."""
    if target.exists():
        raise Invalid(f"{target} is there already. A backup never writes over anything: name another file.")
    if not target.parent.is_dir():
        raise Invalid(f"There is no folder {target.parent} to put a backup into.")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with connect(store) as db:
            before = _counts(db)
            db.execute("VACUUM INTO ?", (str(part),))
        with connect(part) as copy:
            faults = all_faults(copy)
            after = _counts(copy)
            heads = _heads(copy)
        lost = [table for table, count in before.items() if after[table] < count]
        faults += [f"{table}: {before[table] - after[table]} rows are missing" for table in lost]
        if faults:
            raise Invalid(f"The copy is not sound, and was thrown away: {'; '.join(faults[:5])}")
        _on_disk(part)
        part.rename(target)
        _on_disk(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise Invalid(f"{target} could not be written: {_why(error)}") from error
    finally:
        part.unlink(missing_ok=True)
    return BackedUp(str(target), target.stat().st_size, after["answer"], heads)


def all_faults(db: sqlite3.Connection, bar: Bar = no_bar) -> list[str]:
    """What is wrong with a store that nobody uses, in words: SQLite's own checks, references, and the whole chain."""
    with bar("Checking", rows_in(db)) as advance:
        db.set_progress_handler(lambda: advance(0), STEPS)
        try:
            return _faults(db, advance)
        finally:
            db.set_progress_handler(None, 0)


def _faults(db: sqlite3.Connection, advance: Advance) -> list[str]:
    faults = file_faults(db)
    mark: Mark | None = Mark()
    while mark is not None:
        checked = check(db, mark, 10_000)
        faults += checked.faults
        mark = checked.mark
        advance(checked.rows)
    return faults


def file_faults(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with the file; and where one table says what another does not."""
    faults = [said for (said,) in db.execute("PRAGMA integrity_check(20)") if said != "ok"]
    if faults:
        return faults  # what such a file says of itself means nothing, and reading on may fail
    references = db.execute("PRAGMA foreign_key_check").fetchmany(5)
    faults = [f"{row[0]}: row {row[1]} refers to nothing" for row in references]
    for sql, said in _AGREE:
        (count,) = db.execute(sql).fetchone()
        faults += [said.format(count)] if count else []
    return faults


_AGREE = (
    (
        "SELECT count(*) FROM (SELECT id FROM outcome WHERE state = 1 EXCEPT SELECT outcome FROM answer)",
        "answer: {} that outcomes speak of are missing",
    ),
    (
        "SELECT count(*) FROM (SELECT outcome FROM answer EXCEPT SELECT id FROM outcome WHERE state = 1)",
        "answer: {} are of outcomes that are missing, or that answered nothing",
    ),
    (
        "SELECT count(*) FROM request r WHERE NOT EXISTS (SELECT 1 FROM dispatch d WHERE d.request = r.id)",
        "dispatch: the first of {} requests are missing",
    ),
    (
        "SELECT count(*) FROM asking k WHERE inputs <> (SELECT count(*) FROM asking_input i WHERE i.asking = k.id)",
        "asking_input: {} askings do not have as many as they were named with",
    ),
    (
        "SELECT count(*) FROM request_key k WHERE NOT EXISTS (SELECT 1 FROM request r WHERE r.id = k.request)",
        f"request_key: {{}} lead to no request: it is missing, or the look-up is wrong, and then {MENDED}",
    ),
    (
        "SELECT count(*) FROM text_key k WHERE NOT EXISTS"
        " (SELECT 1 FROM text t WHERE t.id = k.text AND t.bytes IS NOT NULL)",
        f"text_key: {{}} lead to no words: they are missing, or the look-up is wrong, and then {MENDED}",
    ),
)
"""Counts that are 0 whenever no transaction is open, and what another number of them means. So a row that is missing at
the end of its table, where the chain ends earlier and is whole, is seen as long as another speaks of it."""


def put_in_place(
    checked: sqlite3.Connection, store: Path, aside: Path, spool: Path | None = None, bar: Bar = no_bar
) -> Path | None:
    """Put a copy of what was checked where the store was; whatever was there is kept as `aside`.

    So is what waits in its `spool`, which is none of the new one's: where that is now, if anything does.
    The store's lock is held, and nobody has the store open. Raises OSError, sqlite3.Error.
    """
    part = store.with_name(store.name + ".part")
    part.unlink(missing_ok=True)
    try:
        # SQLite copies: it brings what stands only in a log beside the file, as after a crash.
        with bar("Copying", checked.execute("PRAGMA page_count").fetchone()[0]) as advance:
            checked.set_progress_handler(lambda: advance(0), STEPS)
            checked.execute("VACUUM INTO ?", (str(part),))
        _on_disk(part)
        waits = None
        if spool is not None and _holds_anything(spool):
            # First: a store without its spool loses nothing, a spool beside another store is wiped by that.
            waits = spool.with_name(f"{aside.name}.spool")
            spool.rename(waits)
            _on_disk(waits.parent)
        for suffix in ("", "-wal", "-shm"):
            # A log that lies there without its store goes too: SQLite would read it into the new one.
            old = store.with_name(store.name + suffix)
            if old.exists():
                old.rename(aside.with_name(aside.name + suffix))
        part.rename(store)
        _on_disk(store.parent)
    finally:
        part.unlink(missing_ok=True)
    return waits


def _holds_anything(spool: Path) -> bool:
    """Is there anything in it? What was written to the store is wiped."""
    if not spool.is_file():
        return False
    with spool.open("rb") as file:
        return any(piece.strip(b"\0") for piece in iter(lambda: file.read(1024 * 1024), b""))


def _on_disk(path: Path) -> None:
    """Have the system write what it holds of a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rows_in(db: sqlite3.Connection) -> int:
    """How many rows the insert-only tables have together; they are numbered from 1."""
    return sum(db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0] for table in COLUMNS)


def _counts(db: sqlite3.Connection) -> dict[str, int]:
    return {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in COLUMNS}


def _heads(db: sqlite3.Connection) -> dict[str, str]:
    heads: dict[str, str] = {}
    for table in COLUMNS:
        row = db.execute(f"SELECT id, chain FROM {table} ORDER BY id DESC LIMIT 1").fetchone()
        heads[table] = f"{row[0]}:{row[1].hex()}" if row else "0:"
    return heads


def _why(error: OSError | sqlite3.Error) -> str:
    return error.strerror or "" if isinstance(error, OSError) else str(error)
