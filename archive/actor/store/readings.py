"""Our own readings of the store, each on a connection of its own, and their end before their time.

What must never be here: what is read, and the writing connection.
"""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from archive.errors import Busy, RecordClosed
from archive.health import WAL_BYTES_MAX

CUT_OFF = (
    f"Broken off, and nothing of it is left: the log beside the store grew past {WAL_BYTES_MAX // 2**20} MiB, and while"
    " anything reads the store it cannot be folded in. Try again at a quieter hour, when /health is well. A record that"
    " is always this busy is copied by Litestream; see the README."
)
"""What whoever asked for a reading is told that stood in the way of writing."""


class Readings:
    """What is being read beside the actor. It is read in threads, and broken off from others."""

    def __init__(self, store: Path, connect: Callable[[Path], sqlite3.Connection]) -> None:
        """`connect`: a connection that can change nothing, which another thread may interrupt."""
        self._store = store
        self._connect = connect
        self._open: dict[sqlite3.Connection, Path] = {}
        self._cut: set[sqlite3.Connection] = set()
        self._is_over = False

    @contextmanager
    def reading(self, path: Path) -> Generator[sqlite3.Connection, None, None]:
        """Read the store, or a copy of it. Raises Busy when it was cut off."""
        with closing(self._connect(path)) as db:
            self._open[db] = path
            try:
                yield db
            except sqlite3.OperationalError as error:
                if db in self._cut:
                    raise Busy(CUT_OFF) from error
                raise
            finally:
                del self._open[db]
                self._cut.discard(db)

    def cut_off(self) -> None:
        """Break off what reads the store, so that its log can be folded in. Others may begin."""
        for db, path in tuple(self._open.items()):
            if path == self._store:
                self._cut.add(db)
                _interrupt(db)

    def break_off(self) -> None:
        """Break off everything, for good."""
        self._is_over = True
        for db in tuple(self._open):
            _interrupt(db)

    def go_on(self) -> None:
        """What reads slice by slice asks this in between: there is nothing to interrupt then. Raises RecordClosed."""
        if self._is_over:
            raise RecordClosed("The record is being closed.")


def _interrupt(db: sqlite3.Connection) -> None:
    # It may have been closed a moment ago.
    with suppress(sqlite3.ProgrammingError):
        db.interrupt()
