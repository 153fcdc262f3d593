"""Whole copies of a store: made while it is in use, checked before they count, and put back in its place.

A copy is written by SQLite itself (VACUUM INTO) from a connection that only reads, under a temporary name; it gets its
own only when it was opened, checked and counted, and is on disk. What must never be here: the writing connection.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from archive.actor.disk import on_disk
from archive.actor.store.chain import check
from archive.actor.store.rows import COLUMNS
from archive.actor.store.start import LOG, belongs, holds_anything
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


def back_up(store: Path, target: Path, connect: Connect, spool: Path | None = None) -> BackedUp:
    """Copy `store` to the new file `target`. Raises Invalid, and then there is no such file.

    `spool`: the store's, whose name it may not take either.
    """
    if target.exists():
        raise Invalid(f"{target} is there already. A backup never writes over anything: name another file.")
    if not target.parent.is_dir():
        raise Invalid(f"There is no folder {target.parent} to put a backup into.")
    part = target.with_name(target.name + ".part")
    if belongs(store, target, spool) or belongs(store, part, spool):
        raise Invalid(f"{target} is a name that the store needs for itself. Name another file.")
    _make_part(part)
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
        on_disk(part)
        _name_new(part, target)
        on_disk(target.parent)
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
    The store's lock is held, and nobody has the store open. Raises Invalid, OSError, sqlite3.Error.

    Killed anywhere, it leaves the store as it was, or the new one, or the old one under two names, which no start takes
    (start.py): nothing is begun anew in silence, nor without the log and the spool that are put aside first.
    """
    part = store.with_name(store.name + ".part")
    _make_part(part)
    try:
        # SQLite copies: it brings what stands only in a log beside the file, as after a crash.
        with bar("Copying", checked.execute("PRAGMA page_count").fetchone()[0]) as advance:
            checked.set_progress_handler(lambda: advance(0), STEPS)
            checked.execute("VACUUM INTO ?", (str(part),))
        on_disk(part)
        if store.exists() and not aside.exists():
            _name_too(store, aside)
            on_disk(aside.parent)
        waits = None if spool is None else spool.with_name(f"{aside.name}.spool")
        if spool is not None and waits is not None and holds_anything(spool) and not waits.exists():
            # A spool beside another store is wiped by that.
            spool.rename(waits)
            on_disk(waits.parent)
        for suffix in LOG:
            # A log that lies there without its store goes too: SQLite would read it into the new one.
            old = store.with_name(store.name + suffix)
            if old.exists():
                old.rename(aside.with_name(aside.name + suffix))
        on_disk(store.parent)
        part.rename(store)
        on_disk(store.parent)
    finally:
        part.unlink(missing_ok=True)
    return waits if waits is not None and waits.exists() else None


def _name_new(part: Path, target: Path) -> None:
    """Give a whole copy its name, though somebody may have taken that meanwhile. Raises Invalid, OSError."""
    try:
        target.hardlink_to(part)
    except OSError:
        if target.exists():
            raise Invalid(f"{target} has come to be there meanwhile. Name another file.") from None
        part.rename(target)


def _name_too(store: Path, aside: Path) -> None:
    try:
        aside.hardlink_to(store)
    except OSError:
        # Where a file has one name only it is without its own for a moment, in which no start takes what lies there.
        store.rename(aside)


def make(file: Path) -> None:
    """Make an empty file that only its owner can read. Raises OSError where anything has that name."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _make_part(part: Path) -> None:
    try:
        make(part)
    except FileExistsError:
        raise Invalid(
            f"{part} is there already, and is left alone: one that was cut off leaves it. Remove it, and try again."
        ) from None
    except OSError as error:
        raise Invalid(f"{part} cannot be made: {error.strerror}") from None


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
