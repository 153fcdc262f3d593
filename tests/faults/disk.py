"""A disk in memory under SQLite that can lose its power or refuse a write, and a store opened on it.

It is reached through a second SQLite library (apsw), so it is used in a process of its own only: two libraries on one
file in one process lose each other's locks. What is checked afterwards is an image of it in a real file.
"""

import asyncio
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
"""What a disk writes whole or not at all."""

CHECKPOINT_PAGES = 40
"""After so many pages in the log; far fewer than SQLite's own thousand, so that checkpoints are cut and refused too."""


def _put(data: bytearray, at: int, piece: bytes) -> None:
    if len(data) < at:
        data.extend(bytes(at - len(data)))
    data[at : at + len(piece)] = piece


@dataclass
class Stored:
    """One file: as programs see it, as a power cut surely leaves it, and what may or may not be on disk by then."""

    live: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list[tuple[int, bytes | None]])
    """Writes in their order; None cuts the file to that length."""

    def sync(self) -> None:
        self._replay(self.safe, lambda: True)
        self.unsynced.clear()

    def cut(self, dice: random.Random) -> bytes:
        """What a power cut leaves: of what was not synced, any sectors."""
        share = dice.choice((0.0, 0.5, 0.9, 1.0))
        left = bytearray(self.safe)
        self._replay(left, lambda: dice.random() < share)
        return bytes(left)

    def _replay(self, data: bytearray, keep: Callable[[], bool]) -> None:
        for at, piece in self.unsynced:
            if piece is None:
                if keep():
                    del data[at:]
                continue
            # Sectors are those of the disk, wherever in them the write begins.
            ends = [*range(at - at % SECTOR + SECTOR, at + len(piece), SECTOR), at + len(piece)]
            start = at
            for end in ends:
                if keep():
                    _put(data, start, piece[start - at : end - at])
                start = end


class Disk(apsw.VFS):
    """Files by name. `before(n, what)` is called before the nth change of the disk, and may raise in its stead."""

    def __init__(self) -> None:
        self.name = f"disk {id(self)}"
        super().__init__(self.name, "")
        self.files: dict[str, Stored] = {}
        self.changes = 0
        self.before: Callable[[int, str], None] = lambda _, __: None

    def changed(self, what: str) -> None:
        """Something is about to be written, synced, cut or deleted."""
        self.changes += 1
        self.before(self.changes, what)

    def image(self, dice: random.Random | None = None) -> dict[str, bytes]:
        """What is left when the power is cut now; without dice, what programs see."""
        return {name: bytes(one.live) if dice is None else one.cut(dice) for name, one in self.files.items()}

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        flags[1] = flags[0]
        filename = "" if name is None else name if isinstance(name, str) else name.filename()
        return _Open(self, self.files.setdefault(filename, Stored()))

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self.files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.changed("delete")
        self.files.pop(filename, None)

    def xFullPathname(self, name: str) -> str:
        return name


class _Open:
    """An open file of a Disk, with the methods apsw calls."""

    def __init__(self, disk: Disk, stored: Stored) -> None:
        self._disk = disk
        self._stored = stored

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._stored.live[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.changed("write")
        piece = bytes(data)
        _put(self._stored.live, offset, piece)
        self._stored.unsynced.append((offset, piece))

    def xTruncate(self, newsize: int) -> None:
        self._disk.changed("cut")
        del self._stored.live[newsize:]
        self._stored.unsynced.append((newsize, None))

    def xSync(self, flags: int) -> None:
        self._disk.changed("sync")
        self._stored.sync()

    def xFileSize(self) -> int:
        return len(self._stored.live)

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        # As SQLite takes every disk to be: what lies beside a torn write is whole.
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xCheckReservedLock(self) -> bool:
        return False

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xClose(self) -> None:
        pass


class _Rows:
    """What a statement came to, as sqlite3's cursor says it."""

    def __init__(self, found: list[Any], lastrowid: int, rowcount: int) -> None:
        self._found = iter(found)
        self.lastrowid = lastrowid
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return next(self._found, None)

    def fetchall(self) -> list[Any]:
        return list(self._found)

    def __iter__(self) -> Iterator[Any]:
        return self._found


class _Face:
    """apsw's connection with the face of sqlite3's, as far as the store uses it."""

    def __init__(
        self,
        db: Any,
        said: Callable[[str], str],
        committed: Callable[["_Face"], None],
        careless: bool,
    ) -> None:
        self._db = db
        self._careless = careless
        self._said = said
        self._committed = committed
        self._log_pages = 0
        db.set_wal_hook(self._grown)

    def _grown(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def execute(self, sql: str, values: Sequence[Any] = ()) -> _Rows:
        try:
            found = list(self._db.execute(self._said(sql), tuple(values)))
        except apsw.Error as error:
            if self._careless and sql == "COMMIT":
                return _Rows([], 0, 0)
            raise _translated(error) from error
        rows = _Rows(found, self._db.last_insert_rowid(), self._db.changes())
        if sql == "COMMIT":
            self._committed(self)
            self._checkpoint()
        return rows

    def _checkpoint(self) -> None:
        """What SQLite does by itself after a commit, whose failure it is not; apsw would say that it is."""
        if self._log_pages >= CHECKPOINT_PAGES:
            with suppress(apsw.Error):
                self._db.wal_checkpoint()

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        for values in rows:
            self.execute(sql, values)

    def set_authorizer(self, allows: Any) -> None:
        self._db.authorizer = allows

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    @property
    def total_changes(self) -> int:
        return self._db.total_changes()

    def close(self) -> None:
        # A checkpoint that fails at the end is no failure of closing, in sqlite3.
        with suppress(apsw.Error):
            self._db.close()


def _translated(error: apsw.Error) -> sqlite3.Error:
    kind = sqlite3.IntegrityError if isinstance(error, apsw.ConstraintError) else sqlite3.OperationalError
    made = kind(str(error))
    code = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
    made.sqlite_errorcode = code or apsw.SQLITE_IOERR
    made.sqlite_errorname = type(error).__name__
    return made


class Connected:
    """Stands where aiosqlite's connection does: one thread, one connection, on `disk`."""

    def __init__(
        self,
        disk: Disk,
        path: Path,
        said: Callable[[str], str],
        committed: Callable[[Any], None],
        *,
        careless: bool = False,
    ) -> None:
        """`said`: what a statement is changed into; `committed` is called after each commit; `careless`: one that
        fails is taken for done.
        """
        self._thread = ThreadPoolExecutor(1)

        def opened() -> _Face:
            db: Any = apsw.Connection(str(path), vfs=disk.name)
            # A log without shared memory, which a disk of our own cannot give.
            db.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            return _Face(db, said, committed, careless)

        self._conn = self._thread.submit(opened).result()

    async def _execute(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @property
    def in_transaction(self) -> bool:
        return self._conn.in_transaction

    async def close(self) -> None:
        await self._execute(self._conn.close)
        self._thread.shutdown()
