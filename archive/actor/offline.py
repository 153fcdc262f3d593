"""What needs a file and no server: putting a backup back, and proving a copy. Whoever restores holds the store's lock.

What must never be here: the writing connection of a store that is in use.
"""

import os
import sqlite3
from pathlib import Path

import msgspec

from archive.actor.store import (
    Bar,
    Lock,
    Record,
    StoreUnusable,
    all_faults,
    no_bar,
    opened,
    prove,
    put_in_place,
    rows_in,
)
from archive.actor.store.rows import SALT_BYTES
from archive.actor.store.start import BEFORE, literal
from archive.admin import Proof
from archive.errors import Invalid


class Restored(msgspec.Struct, frozen=True):
    """A backup was put in the store's place. `aside`: where the store is that was there before, if there was one.

    `spool`: where that is now which waited to be written into it, if anything did.
    """

    answers: int
    aside: Path | None
    spool: Path | None


def restore(backup: Path, store: Path, moment: str, spool: Path | None = None, bar: Bar = no_bar) -> Restored:
    """Check a backup whole and put a copy of it in the store's place.

    What was there is kept beside it, under a name with `moment`, and what waits in its `spool` too. Raises
    StoreUnusable when the backup is not a sound record of ours, and then nothing has changed.
    """
    aside = _cut_off(store)
    if aside is None:
        aside = store.with_name(f"{store.name}{BEFORE}{moment}")
        if aside.exists() or (spool is not None and spool.with_name(f"{aside.name}.spool").exists()):
            raise StoreUnusable(f"{aside} is there already, and nothing is ever written over. Try again in a second")
    try:
        with opened(backup) as (db, gone):
            faults = gone + all_faults(db, bar)
            if faults:
                raise StoreUnusable(f"{backup} is not sound, and was not put in place: {'; '.join(faults[:5])}")
            answers = db.execute("SELECT count(*) FROM answer").fetchone()[0]
            waits = put_in_place(db, store, aside, spool, bar)
    except sqlite3.Error as error:
        raise StoreUnusable(f"{backup} cannot be read as a record: {error}") from error
    except OSError as error:
        raise StoreUnusable(f"{store} could not be replaced: {error.strerror}") from error
    except Invalid as error:
        raise StoreUnusable(error.text) from None
    return Restored(answers, aside if aside.exists() else None, waits)


def _cut_off(store: Path) -> Path | None:
    """The second name of the store itself, where one before was cut off: it goes on under the same."""
    asides = store.parent.glob(f"{literal(store.name)}{BEFORE}*")
    return next((one for one in asides if store.exists() and one.samefile(store)), None)


class Proved(msgspec.Struct, frozen=True):
    """What a copy's guards held, how many rows were checked, and what is wrong with schema, file or chain, in words."""

    proof: Proof
    rows: int
    faults: tuple[str, ...]


def prove_copy(copy: Path, bar: Bar = no_bar) -> Proved:
    """Try every road to a changed record on a copy that nobody uses, with whatever guards it has, and check its chain.

    All that was tried is undone. Raises StoreUnusable, and StoreTaken when it is a store that is in use.
    """
    beside = copy.with_name(copy.name + ".lock")
    held = Lock(copy) if beside.exists() else None
    try:
        with opened(copy, guarded=True) as (db, gone):
            proof = prove(Record(db, lambda: os.urandom(SALT_BYTES)), whole=True)
        with opened(copy) as (db, _):
            return Proved(proof, rows_in(db), (*gone, *all_faults(db, bar)))
    except sqlite3.Error as error:
        raise StoreUnusable(f"{copy} cannot be proved: {error}") from error
    finally:
        if held is not None:
            held.release()
