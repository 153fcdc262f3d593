"""What is saved of a store whose file was moved, removed or replaced while it was open, before the process ends.

SQLite still holds the file open, whatever name it has: what was kept is there and in the log. What must never be here:
opening the store's file, and removing anything.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

from archive.actor.disk import on_disk
from archive.actor.store.copies import make
from archive.actor.store.files import Files

Connect = Callable[[Path], sqlite3.Connection]


def saved(db: sqlite3.Connection, files: Files, connect: Connect, *, folded: bool) -> str:
    """See to it that the record has a name and that its log is read into no other file; says what became of it.

    `folded`: its log was moved into the file that is open. `connect` makes a new file.
    """
    if files.is_ours:
        return "all that was kept is in the main file" if folded else "the last answers may be lost"
    where = files.where()
    if where is None:
        return _copied(db, files, connect)
    if files.is_replaced:
        # Beside its own file under that one's name, it is read into that one and into no other.
        return f"{_put(files, where)}all that was kept is in {where}"
    if folded:
        return f"all that was kept is in {where}"
    return (
        f"all that was kept is in {where} and in {files.store}-wal:"
        f" before anything opens it, rename it to {files.store} again"
    )


def _copied(db: sqlite3.Connection, files: Files, make_at: Connect) -> str:
    """Copy the file that has no name any more to one that has."""
    aside = _unused(files.store)
    try:
        make(aside)
        with closing(make_at(aside)) as copy:
            db.backup(copy)
        on_disk(aside)
        on_disk(aside.parent)
        said = f"all that was kept was copied to {aside}"
    except (OSError, sqlite3.Error) as error:
        said = f"it could not be copied to {aside} ({error}), and what was kept in it is lost"
    # Not as the copy's own log: all of it is in the copy.
    return (_put(files, aside.with_name(f"{aside.name}.old")) if files.is_replaced else "") + said


def _put(files: Files, name: Path) -> str:
    try:
        if files.log_aside(name):
            return ""
    except OSError:
        pass
    return f"DO NOT START AGAIN before {files.store}-wal was moved away: it belongs to another file; "


def _unused(store: Path) -> Path:
    names = (store.with_name(f"{store.name}.before-it-went-{number}") for number in count(1))
    return next(name for name in names if not name.exists())
