"""What needs the store and no server: putting a backup back. The store's lock is held by whoever calls.

What must never be here: the writing connection of a store that is in use.
"""

import sqlite3
from pathlib import Path

import msgspec

from archive.actor.store import StoreUnusable, faults_of, put_in_place


class Restored(msgspec.Struct, frozen=True):
    """A backup was put in the store's place. `aside`: where the store is that was there before, if there was one."""

    answers: int
    aside: Path | None


def restore(backup: Path, store: Path, moment: str) -> Restored:
    """Check a backup whole and put a copy of it in the store's place.

    What was there is kept beside it, under a name with `moment`. Raises StoreUnusable when
    the backup is not a sound record of ours, and then nothing has changed.
    """
    if not backup.is_file():
        raise StoreUnusable(f"There is no file {backup}")
    try:
        found = faults_of(backup)
    except sqlite3.Error as error:
        raise StoreUnusable(f"{backup} cannot be read as a record: {error}") from error
    if found.faults:
        raise StoreUnusable(f"{backup} is not sound, and was not put in place: {'; '.join(found.faults[:5])}")
    aside = store.with_name(f"{store.name}.before-{moment}") if store.exists() else None
    try:
        put_in_place(backup, store, aside)
    except OSError as error:
        raise StoreUnusable(f"{store} could not be replaced: {error.strerror}") from error
    return Restored(found.answers, aside)
