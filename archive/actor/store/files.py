"""The store's files as the system sees them: are they still ours, how large is the log, and who keeps it so.

What must never be here: opening any of them. Closing a second descriptor drops SQLite's locks.
"""

import os
import re
import sqlite3
from pathlib import Path

_READ_LOCK = re.compile(r"^\d+: POSIX +\S+ +READ +([1-9]\d*) \S+:(\d+) (\d+) (\d+)$", re.MULTILINE)

_READ_BYTES = range(123, 128)
"""Where in the -shm whoever reads holds a lock (sqlite.org/walformat.html, section 2.3)."""

READERS_SHOWN = 3
"""More programs than these are not named."""


class StoreGone(Exception):
    """A file of the store was removed or replaced under us: nothing that is written now would be kept."""


class LogFull(sqlite3.OperationalError):
    """The log beside the store has reached its bound and cannot be folded in: nothing is written at this moment."""

    sqlite_errorcode = sqlite3.SQLITE_FULL
    sqlite_errorname = "SQLITE_FULL"


class Files:
    """The store's file, its log and the log's index, by their names; made while the store is open."""

    def __init__(self, store: Path) -> None:
        self._store, self._wal, self._shm = (str(store) + end for end in ("", "-wal", "-shm"))
        self._ours = self._found()

    def _found(self) -> tuple[tuple[int, int], ...]:
        return tuple(_identity(name) for name in (self._store, self._wal, self._shm))

    def gone(self) -> str | None:
        """The name that stands for another file than when the store was opened, or for none; None: all is as it was.

        While our connection is open nobody may remove the log or its index: SQLite does so with the last connection.
        """
        found = self._found()
        if found == self._ours:
            return None
        names = (self._store, self._wal, self._shm)
        return next(name for name, now, ours in zip(names, found, self._ours, strict=True) if now != ours)

    @property
    def is_ours(self) -> bool:
        """Is the main file, at least, still the one that was opened?"""
        return _identity(self._store) == self._ours[0]

    @property
    def wal_bytes(self) -> int:
        """The size of the log that is not folded into the store yet."""
        try:
            return os.stat(self._wal).st_size  # noqa: PTH116 - twice as quick, and done with every commit
        except OSError:
            return 0

    def readers(self) -> str:
        """Which other programs read the store, such as `sqlite3, process 12`; empty where the system does not say."""
        try:
            locks = Path("/proc/locks").read_text("ascii", "replace")
        except OSError:
            return ""
        found = readers(locks, _identity(self._shm)[1]) - {os.getpid()}
        return " and ".join(_program(pid) for pid in sorted(found)[:READERS_SHOWN])


def readers(locks: str, inode: int) -> set[int]:
    """The processes that hold a read lock in the -shm with this inode, by the text of /proc/locks (proc_locks(5)).

    Those of another container have no number there and are left out.
    """
    return {
        int(pid)
        for pid, file, first, last in _READ_LOCK.findall(locks)
        if int(file) == inode and int(first) in _READ_BYTES and int(last) in _READ_BYTES
    }


def _program(pid: int) -> str:
    try:
        said = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace")
    except OSError:
        said = ""
    # A program may call itself anything.
    name = "".join(letter for letter in said.strip() if letter.isprintable())
    return f"{name}, process {pid}" if name else f"process {pid}"


def _identity(name: str) -> tuple[int, int]:
    """Which file a name stands for; (0, 0) when it stands for none."""
    try:
        found = os.stat(name)  # noqa: PTH116 - as above
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
