"""The store's files as the system sees them: are they still ours, how large is the log, and who keeps it so.

What must never be here: opening any of them. Closing a second descriptor drops SQLite's locks.
"""

import os
import re
import sqlite3
from pathlib import Path

_READ_LOCK = re.compile(r"^\d+: POSIX +\S+ +READ +([1-9]\d*) \S+:(\d+) (\d+) (\d+)$", re.MULTILINE)

NO_FILE = (0, 0)
"""What a name stands for that stands for nothing."""

_HELD = "/proc/self/fd"

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
    """The store's file, its log, the log's index, and its lock file if it has one, by name; made while it is open."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._names = tuple(str(store) + end for end in ("", "-wal", "-shm", ".lock"))
        self._store, self._wal, self._shm, lock = self._names
        if _identity(lock) == NO_FILE:
            # A store that nobody else may come to needs none.
            self._names = self._names[:-1]
        self._ours = self._found()

    def _found(self) -> tuple[tuple[int, int], ...]:
        return tuple(_identity(name) for name in self._names)

    def gone(self) -> str | None:
        """The name that stands for another file than when the store was opened, or for none; None: all is as it was.

        While our connection is open nobody may remove the log or its index: SQLite does so with the last connection.
        Without the lock file a second server takes the store too.
        """
        found = self._found()
        if found == self._ours:
            return None
        return next(name for name, now, ours in zip(self._names, found, self._ours, strict=True) if now != ours)

    @property
    def is_ours(self) -> bool:
        """Is the main file, at least, still the one that was opened?"""
        return _identity(self._store) == self._ours[0]

    @property
    def is_replaced(self) -> bool:
        """Does the store's name stand for another file, into which SQLite would read a log that lies beside it?"""
        return _identity(self._store) not in {self._ours[0], NO_FILE}

    def where(self) -> Path | None:
        """The name that the store's file has now, by the system's list of what we hold open; None: it has none, or the
        system does not say.
        """
        try:
            held = os.listdir(_HELD)  # noqa: PTH208 - names, and no objects for thousands of connections
        except OSError:
            return None
        for number in held:
            name = f"{_HELD}/{number}"
            if _identity(name) == self._ours[0]:
                path = os.readlink(name)  # noqa: PTH115 - as above
                return Path(path) if _identity(path) == self._ours[0] else None
        return None

    def log_aside(self, name: Path) -> bool:
        """Give the log and its index, as far as they are ours, the names `name` and -wal, -shm; nothing is written
        over. False: something of them still lies beside the store's name. Raises OSError.
        """
        for at, old in ((1, self._wal), (2, self._shm)):
            new = f"{name}{old[len(self._store) :]}"
            if _identity(old) == self._ours[at] and _identity(new) == NO_FILE:
                os.rename(old, new)  # noqa: PTH104 - names, as above
        return _identity(self._wal) != self._ours[1]

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
    """Which file a name stands for; NO_FILE when it stands for none."""
    try:
        found = os.stat(name)  # noqa: PTH116 - as above
    except OSError:
        return NO_FILE
    return found.st_dev, found.st_ino
