"""The store's file: opening, migrations, and the one road into its transaction.

What must never be here: what a row means. And nobody in this process ever opens the store's file by any other way than
the connections made here: closing a second descriptor drops SQLite's locks, and commits are lost without a sign.
"""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiosqlite

from archive.actor.store.copies import back_up, file_faults
from archive.actor.store.erasing import Emptied, apply, erase, preview
from archive.actor.store.exchange import exported
from archive.actor.store.facts import counted
from archive.actor.store.files import Files, LogFull, StoreGone
from archive.actor.store.gone import saved
from archive.actor.store.guards import APPLICATION_ID, schema_faults, stand_guard
from archive.actor.store.ledger import Ledger, LedgerBroken
from archive.actor.store.lock import StoreUnusable
from archive.actor.store.prove import prove
from archive.actor.store.readings import Readings
from archive.actor.store.rebuild import rebuild
from archive.actor.store.record import Record
from archive.actor.store.rows import SALT_BYTES
from archive.actor.store.searching import Search
from archive.actor.store.start import in_words, look, wait_until_free
from archive.admin import Apart, Aside, BackUp, CheckFile, Erase, Export, Facts, Preview, Prove, Rebuild, Receipt
from archive.health import WAL_BYTES_FULL, WAL_BYTES_MAX, log_held

T = TypeVar("T")

BUSY_MS_MAX = 250
"""How long a locked store is waited for before what had to be written is held or refused."""

WAL_BYTES_KEPT = 4 * 1024 * 1024
"""What the log beside the store is cut back to, once a reader that kept it growing is gone."""

SQLITE_SOUND = (3, 51, 3)
"""Before this version, two connections that checkpoint at once could corrupt a WAL (sqlite.org/wal.html); only the
actor's connection checkpoints here, so older ones are safe to use and are named in the log."""

_PRAGMAS = (
    "synchronous = FULL",
    "secure_delete = 1",
    "recursive_triggers = 1",
    "foreign_keys = 1",
    "trusted_schema = 0",
    f"journal_size_limit = {WAL_BYTES_KEPT}",
)
"""What the writing connection is told, whatever file it has."""

_SCHEMA = Path(__file__).parent / "schema"

log = logging.getLogger("askonce")


class Store:
    """The open store. Only the actor's own task may use it."""

    def __init__(self, path: Path, db: aiosqlite.Connection, record: Record, spool: Path | None) -> None:
        self._path = path
        self._spool = spool
        self._db = db
        self._record = record
        self._files = Files(path)
        self._readings = Readings(path, only_reading)
        self._search = Search()

    @classmethod
    async def open(
        cls, path: Path, salt: Callable[[], bytes] = lambda: os.urandom(SALT_BYTES), spool: Path | None = None
    ) -> "Store":
        """Open or make the store at `path`; `spool` is the file beside it that may hold people's words too.

        Raises StoreUnusable for a file that is not ours, or newer than this, and where something lies there that an
        empty record would ruin.
        """
        look(path, spool)
        if sqlite3.sqlite_version_info < SQLITE_SOUND:
            sound = ".".join(map(str, SQLITE_SOUND))
            log.info("SQLite is %s; from %s on a rare fault of its log is mended", sqlite3.sqlite_version, sound)
        try:
            db = await _connected(path)
            try:
                store = cls(path, db, await _in_thread(db, lambda raw: _prepare(raw, path, salt)), spool)
            except BaseException:
                await db.close()
                raise
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise StoreUnusable(f"{path} cannot be used as a store: {in_words(error)}") from error
        return store

    async def erase_again(self) -> None:
        """What was erased once and came back with a backup goes again, before anything is served.

        Raises StoreUnusable for a ledger that cannot be read, sqlite3.Error.
        """
        ledger = Ledger(self._path)
        try:
            lines = ledger.lines()
            again = await self.write(lambda record: apply(record, lines)) if lines else 0
        except (LedgerBroken, OSError) as error:
            raise StoreUnusable(f"{self._path} cannot be used as a store: {error}") from error
        if again:
            log.warning("texts that had been erased were in the store again, and are emptied: %d", again)
            await _in_thread(self._db, fold)

    async def write(self, work: Callable[[Record], T]) -> T:
        """Run `work` in one transaction; its writes are on disk when this returns, or none of them ever will be.

        Raises sqlite3.Error, StoreGone.
        """
        return await _in_thread(self._db, lambda raw: self._write(raw, work))

    def _write(self, raw: sqlite3.Connection, work: Callable[[Record], T]) -> T:
        self._bound_log(raw)
        return self._transact(raw, work, "BEGIN IMMEDIATE", "COMMIT")

    def _bound_log(self, raw: sqlite3.Connection) -> None:
        """Cut off our own readers of a large log; into one at its bound nothing more is written. Raises LogFull."""
        if self.wal_bytes <= WAL_BYTES_MAX:
            return
        self._check_files(raw)
        if _folded_at_once(raw) and self.wal_bytes <= WAL_BYTES_MAX:
            return
        self._readings.cut_off()
        if self.wal_bytes >= WAL_BYTES_FULL:
            raise LogFull(f"its log has reached {WAL_BYTES_FULL // 2**20} MiB: {log_held(self._files.readers())}")

    async def look(self, work: Callable[[Record], T]) -> T:
        """Run `work` where nothing can be written: what tries to is an sqlite3.OperationalError."""
        return await _in_thread(self._db, lambda raw: self._only_look(raw, work))

    def _only_look(self, raw: sqlite3.Connection, work: Callable[[Record], T]) -> T:
        raw.execute("PRAGMA query_only = 1")
        try:
            return self._transact(raw, work, "BEGIN", "ROLLBACK")
        finally:
            raw.execute("PRAGMA query_only = 0")

    def _transact(self, raw: sqlite3.Connection, work: Callable[[Record], T], begin: str, end: str) -> T:
        self._check_files(raw)
        raw.execute(begin)
        try:
            self._record.begin()
            result = work(self._record)
            raw.execute(end)
            # Before anybody is told that it is kept.
            self._check_files(raw)
            return result
        except BaseException:
            self._record.undone()
            # After a full disk SQLite has already rolled back by itself.
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            raise

    def _check_files(self, raw: sqlite3.Connection) -> None:
        """SQLite would go on writing into files that have no name any more, and call it kept. Raises StoreGone."""
        gone = self._files.gone()
        if gone is None:
            return
        # File and log are still open here: what was kept goes into the file before the process ends.
        self.break_off()
        folded = False
        with suppress(sqlite3.Error):
            raw.execute("PRAGMA query_only = 0").fetchall()
            folded = fold(raw)
        after = saved(raw, self._files, sqlite3.connect, folded=folded)
        raise StoreGone(f"{gone} is no longer the file that was opened: it was removed or replaced; {after}")

    async def apart(self, message: Apart[Any], now: int) -> Any:
        """Do what is worked alone, outside of the transaction that others share; it opens and ends its own."""
        return await _in_thread(self._db, lambda raw: self._apart(raw, message, now))

    def _apart(self, raw: sqlite3.Connection, message: Apart[Any], now: int) -> Any:
        match message:
            case Prove():
                return prove(self._record)
            case Rebuild():
                self._check_files(raw)
                self._bound_log(raw)
                return rebuild(self._record)
            case Erase():
                ledger = Ledger(self._path)
                emptied = self._write(raw, lambda record: erase(record, message, ledger, now))
                # The words are in the log yet, and in the pages that stand in the main file.
                fold(raw)
                return emptied
            case _:
                raise TypeError(f"{type(message).__name__} is nothing the store knows")

    async def receipt(self, erased: Erase, emptied: Emptied) -> Receipt:
        """Search the live files for what was erased, while others write."""
        return await asyncio.to_thread(self._search.receipt, self._path, self._spool, erased, emptied)

    async def aside(self, message: Aside[T]) -> T:
        """Do what only reads, in a thread and on a connection of its own, while others write. Raises Invalid."""
        return await asyncio.to_thread(self._aside, message)

    def _aside(self, message: Aside[Any]) -> Any:
        match message:
            case BackUp(file):
                return back_up(self._path, Path(file), self._readings.reading, self._spool)
            case Facts():
                with self._readings.reading(self._path) as db:
                    return counted(Record(db, bytes), self._readings.go_on)
            case Export():
                with self._readings.reading(self._path) as db:
                    return exported(Record(db, bytes), message)
            case Preview(words):
                with self._readings.reading(self._path) as db:
                    return preview(db, words, self._readings.go_on)
            case CheckFile():
                with self._readings.reading(self._path) as db:
                    return tuple(file_faults(db))
            case _:
                raise TypeError(f"{type(message).__name__} is nothing the store knows")

    def break_off(self) -> None:
        """Give up what is being read beside: a backup, a check of the file, facts, a search for words."""
        self._readings.break_off()
        self._search.break_off()

    @property
    def wal_bytes(self) -> int:
        """The size of the log that is not folded into the store yet."""
        return self._files.wal_bytes

    def log_readers(self) -> str:
        """Which other programs keep a large log from being folded in, where that can be seen."""
        return self._files.readers() if self.wal_bytes > WAL_BYTES_MAX else ""

    @property
    def in_transaction(self) -> bool:
        """True only if something went wrong: after every message the connection must be out of any transaction."""
        return self._db.in_transaction

    async def close(self) -> None:
        """Move everything into the main file and close."""
        with suppress(sqlite3.Error):
            await _in_thread(self._db, fold)
        await self._db.close()


def only_reading(path: Path) -> sqlite3.Connection:
    """A connection that can change nothing in the file."""
    # Another thread may break off what it does; nothing else is done with it from there.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )


async def _connected(path: Path) -> aiosqlite.Connection:
    db = aiosqlite.connect(path, isolation_level=None, cached_statements=256)
    try:
        return await db
    except BaseException:
        # aiosqlite leaves its thread to end when it likes, which may be after the loop has.
        inside: Any = db
        inside._thread.join()
        raise


async def _in_thread(db: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run `work` as one job of aiosqlite's own thread.

    The one place that reaches behind aiosqlite's public face (`_execute` and `_conn`; `_connected` needs `_thread`):
    its public calls cost a thread hop a statement, about 60 µs against 2 µs in here. tests/archive/actor/test_store.py
    notices when they move.
    """
    inside: Any = db
    return await inside._execute(lambda: work(inside._conn))


def fold(db: sqlite3.Connection) -> bool:
    """Move everything into the main file, and empty the log; False: as much as goes while somebody reads."""
    return db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def _folded_at_once(db: sqlite3.Connection) -> bool:
    """The same, without waiting for anybody who reads."""
    db.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        return fold(db)
    finally:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MS_MAX}").fetchall()


def _prepare(db: sqlite3.Connection, path: Path, salt: Callable[[], bytes]) -> Record:
    db.execute(f"PRAGMA busy_timeout = {BUSY_MS_MAX}").fetchall()
    wait_until_free(db, path)
    version = _version(db)
    for pragma in ("journal_mode = WAL", *_PRAGMAS, f"busy_timeout = {BUSY_MS_MAX}"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    _migrate(db, version)
    faults = _guards_gone(db)
    if faults:
        raise StoreUnusable(f"its guards are not those it was made with: {'; '.join(faults)}")
    stand_guard(db)
    return Record(db, salt)


def _guards_gone(db: sqlite3.Connection) -> list[str]:
    """Which tables and guards are not those that our migrations make, in words."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        _migrate(fresh, 0)
        return schema_faults(db, fresh)


class Copy(NamedTuple):
    """A copy of a record that nobody uses, open; and what of its schema is not as it was made, in words."""

    db: sqlite3.Connection
    faults: list[str]


@contextmanager
def opened(copy: Path, *, guarded: bool = False) -> Generator[Copy, None, None]:
    """Open a copy to read it; `guarded`: as our writing connection has the store, to try what that may do.

    Raises StoreUnusable for a file that is none of ours or of another version, sqlite3.Error.
    """
    if not copy.is_file():
        raise StoreUnusable(f"There is no file {copy}")
    mode = "rw" if guarded else "ro"
    with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)) as db:
        try:
            try:
                version = _version(db)
            except StoreUnusable:
                raise StoreUnusable(f"{copy} is no record of ours: it belongs to another program") from None
            if version != len(_migrations()):
                raise StoreUnusable(f"{copy} is of version {version}; this program reads those of {len(_migrations())}")
            found = Copy(db, _guards_gone(db))
            if guarded:
                for pragma in _PRAGMAS:
                    db.execute(f"PRAGMA {pragma}").fetchall()
                stand_guard(db)
            yield found
        except UnicodeDecodeError:
            # SQLite quotes what it cannot read, and what it quotes may be no text.
            raise StoreUnusable(f"{copy} is damaged: what its tables are called cannot be read") from None


def _migrations() -> list[Path]:
    return sorted(_SCHEMA.glob("[0-9]*.sql"))


def _version(db: sqlite3.Connection) -> int:
    """Which of our schemas the file has, 0 for a new one. Raises StoreUnusable, before anything is changed."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    mark = db.execute("PRAGMA application_id").fetchone()[0]
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if mark != APPLICATION_ID and (mark or version or tables):
        raise StoreUnusable("this SQLite file belongs to another program; name another one in ASKONCE_STORE")
    return version


def _migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring the schema up to date, one numbered file a transaction."""
    files = _migrations()
    if version > len(files):
        raise StoreUnusable(f"the store is of version {version}, this program knows {len(files)}: it needs a newer one")
    for number, file in enumerate(files[version:], start=version + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements(file.read_text(encoding="utf-8")):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def statements(script: str) -> list[str]:
    """The statements of an SQL script, each whole; triggers with their bodies."""
    found: list[str] = []
    piece = ""
    for line in script.splitlines(keepends=True):
        piece += line
        if sqlite3.complete_statement(piece):
            found.append(piece.strip())
            piece = ""
    return found
