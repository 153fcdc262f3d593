"""What lies beside the store's name is looked at before anything is opened or made: an unclear state refuses the start.

Where the store's file is gone SQLite would begin an empty one, and throw away the log that lies there; all that was
kept would be sent and paid for again. What must never be here: opening the store's file.
"""

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_ISREG

import msgspec

from archive.actor.store.lock import StoreUnusable
from archive.frames import SPOOL_STEP, may_be_spool

LOCKED_MS_MAX = 5_000
"""How long a start waits for another program's lock: a backup holds one for a moment."""

LOG = ("-wal", "-shm", "-journal")
OWN = (*LOG, ".lock", ".erased", ".part")
"""What the names of the store's files end with, after its own; the spool is one more, and may lie elsewhere."""

BEFORE = ".before-"
"""After this comes when a store was put aside."""

log = logging.getLogger("askonce")


class Lying(msgspec.Struct, frozen=True):
    """What lies there. `sizes`: bytes of each file by what its name has after the store's; the store's own is "".

    `names`: how many the store's file has, `twins`: those of them that lie here. `waits`: does anything wait in the
    spool? `spool`: its file, when it lies somewhere.
    """

    sizes: Mapping[str, int]
    names: int = 1
    twins: Sequence[str] = ()
    spool: str = ""
    waits: bool = False


def unclear(store: str, lying: Lying) -> str:
    """Why nothing may be opened or made at `store`, and what to do; empty when it is clear what is there."""
    size = lying.sizes.get("")
    if size:
        return _named_twice(store, lying) if lying.names > 1 else ""
    left = [store + end for end, bytes_ in sorted(lying.sizes.items()) if _is_left(end, bytes_, gone=size is None)]
    if lying.waits:
        left.append(lying.spool)
    elif size == 0 and lying.sizes.get(".spool"):
        # It is made when there is a store.
        left.append(f"{store}.spool")
    if not left:
        return ""
    return (
        f"{store} is {'missing' if size is None else 'empty'}, but of a store that was there this is left:"
        f" {', '.join(left)}. An empty record would ask and pay again for all that was kept. Put the store back under"
        " its name, or a backup with `askonce restore FILE`; to begin an empty record, move what is left elsewhere"
    )


def _is_left(end: str, size: int, *, gone: bool) -> bool:
    """Does a file beside a store that is gone, or empty, say that there was one?

    A first start that was killed leaves an empty file with its log begun, and no more.
    """
    if end in LOG:
        return gone or (end == "-wal" and size > 0)
    return end.startswith(BEFORE) or end == ".part" or (end == ".erased" and size > 0)


def _named_twice(store: str, lying: Lying) -> str:
    before = next((end for end in sorted(lying.twins) if end.startswith(BEFORE)), "")
    if not before:
        return (
            f"{store} has a second name, a hard link, by which another server could open it too, and answers would be"
            f" lost. `find FOLDER -samefile {store}` finds it; remove one of the two names"
        )
    back = {f"{store}{before}{end}": f"{store}{end}" for end in LOG if before + end in lying.sizes}
    if f"{before}.spool" in lying.sizes:
        back[f"{store}{before}.spool"] = lying.spool or f"{store}.spool"
    renamed = "".join(f"rename {old} to {new}, and " for old, new in back.items())
    return (
        f"`askonce restore` was cut off, and {store} is as before. Do it again; or, to stay with the store as it was,"
        f" {renamed}remove the name {store}{before}"
    )


def belongs(store: Path, file: Path, spool: Path | None = None) -> bool:
    """Is `file` the name of the store, of one of its files or of its spool, whether that is there or not?"""
    if spool is not None and (file == spool or _is_same(file, spool)):
        return True
    own = [store, *(store.with_name(store.name + end) for end in OWN)]
    aside = file.parent == store.parent and file.name.startswith(store.name + BEFORE)
    return aside or any(file == one or _is_same(file, one) for one in own)


def look(store: Path, spool: Path | None) -> None:
    """Look at what lies there. Raises StoreUnusable when nothing may be opened or made."""
    if spool is not None:
        if belongs(store, spool):
            raise StoreUnusable(f"ASKONCE_SPOOL: {spool} is a file of the store itself; name another")
        if not is_spool(spool):
            raise StoreUnusable(
                f"ASKONCE_SPOOL: {spool} is no spool, and what is in it would be written over; name a file that is not"
                " there yet"
            )
    problem = unclear(str(store), _lying(store, spool))
    if problem:
        raise StoreUnusable(problem)


def _lying(store: Path, spool: Path | None) -> Lying:
    try:
        own = store.stat()
    except OSError:
        own = None
    if own is not None and (not S_ISREG(own.st_mode) or (own.st_size and own.st_nlink == 1)):
        return Lying({"": own.st_size or 1})
    sizes, twins = dict[str, int](), list[str]()
    for file in store.parent.glob(f"{literal(store.name)}*"):
        try:
            found = file.stat()
        except OSError:
            continue
        sizes[file.name.removeprefix(store.name)] = found.st_size
        if own is not None and file != store and (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
            twins.append(file.name.removeprefix(store.name))
    names = 1 if own is None else own.st_nlink
    return Lying(sizes, names, tuple(twins), str(spool or ""), spool is not None and holds_anything(spool))


def literal(name: str) -> str:
    """The name as a pattern that stands for itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def wait_until_free(db: sqlite3.Connection, store: Path) -> None:
    """Wait while another program has the store locked, and say so. Raises sqlite3.Error when it cannot be written."""
    try:
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        seconds = LOCKED_MS_MAX / 1000
        log.warning("another program has %s locked; the start waits %g seconds for it at most", store, seconds)
        db.execute(f"PRAGMA busy_timeout = {LOCKED_MS_MAX}").fetchall()
        db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")


def in_words(error: Exception) -> str:
    """Why a store cannot be opened."""
    why = {
        sqlite3.SQLITE_BUSY: "another program has it locked",
        sqlite3.SQLITE_FULL: "its disk is full",
        sqlite3.SQLITE_READONLY: "it is read-only",
        sqlite3.SQLITE_CANTOPEN: "it, or its log beside it, cannot be opened",
    }.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    return f"{why}, and a start needs a store that can be written ({error})" if why else str(error)


def is_spool(file: Path) -> bool:
    """May it be taken for the spool? One that is absent may; what cannot be read is for the spool itself to say."""
    if not file.is_file():
        return True
    try:
        with file.open("rb") as opened:
            head = opened.read(SPOOL_STEP)
    except OSError:
        return True
    return may_be_spool(head)


def holds_anything(spool: Path) -> bool:
    """Is there anything in it? What was written to the store is wiped."""
    if not spool.is_file():
        return False
    with spool.open("rb") as file:
        return any(piece.strip(b"\0") for piece in iter(lambda: file.read(1024 * 1024), b""))


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
