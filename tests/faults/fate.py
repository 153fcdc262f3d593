"""One process in one thread of a test: its threads are waited for, and it may end after each thing that is on disk.

So a run goes the same way each time. What must never be here: what the run does.
"""

import asyncio
import queue
import random
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from archive.actor.spool import Spool
from archive.actor.store import Record, Store
from archive.actor.store.file import _PRAGMAS  # pyright: ignore[reportPrivateUsage]
from archive.actor.store.ledger import Ledger, Line
from tests.actors import turns


class Killed(Exception):
    """The process is no more, as by kill -9."""


class Fate:
    """When the process ends: `fuse` more things on disk from now (0: not at all). `dead`: it has."""

    def __init__(self, seed: int, leave_behind: Callable[[], None]) -> None:
        """`leave_behind` puts the files as they are now where the next process finds them."""
        self.fuse = 0
        self.dead = False
        self._turns = random.Random(seed)
        self._leave_behind = leave_behind

    def rule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Threads are waited for, the loop goes round some times in between, and after each thing that is on disk
        the process may end.
        """
        transact, add, loaded = Store._transact, Spool.add, Spool.loaded  # pyright: ignore[reportPrivateUsage]
        append = Ledger.append

        async def in_thread(db: Any, work: Callable[[sqlite3.Connection], Any]) -> Any:
            done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

            def job() -> None:
                try:
                    done.put((work(db._conn), None))
                except BaseException as error:
                    done.put((None, error))

            await turns(self._turns.randrange(3))
            db._tx.put_nowait((None, job))
            result, error = done.get()
            await turns(self._turns.randrange(3))
            if error is not None:
                raise error
            return result

        async def to_thread(work: Callable[..., Any], *arguments: Any) -> Any:
            await turns(self._turns.randrange(3))
            return work(*arguments)

        def transacted(store: Store, raw: sqlite3.Connection, work: Callable[[Record], Any], *how: str) -> Any:
            result = transact(store, raw, work, *how)
            if how[-1] == "COMMIT":
                self._on_disk()
            return result

        def added(spool: Spool, frame: Any) -> bool:
            fits = add(spool, frame)
            self._on_disk()
            return fits

        def wiped(spool: Spool) -> None:
            loaded(spool)
            self._on_disk()

        def appended(ledger: Ledger, lines: list[Line]) -> None:
            append(ledger, lines)
            self._on_disk()

        monkeypatch.setattr("archive.actor.store.file._in_thread", in_thread)
        monkeypatch.setattr("archive.actor.store.file.BUSY_MS_MAX", 1)
        monkeypatch.setattr("archive.actor.store.start.LOCKED_MS_MAX", 1)

        # A process that is killed takes nothing from the system's memory; a power cut is another test's matter.
        def unsynced_too(_: int) -> None: ...

        unsynced = ("synchronous = OFF", *(one for one in _PRAGMAS if not one.startswith("synchronous")))
        monkeypatch.setattr("archive.actor.store.file._PRAGMAS", unsynced)
        monkeypatch.setattr("os.fdatasync", unsynced_too)
        monkeypatch.setattr(asyncio, "to_thread", to_thread)
        monkeypatch.setattr(Store, "_transact", transacted)
        monkeypatch.setattr(Spool, "add", added)
        monkeypatch.setattr(Spool, "loaded", wiped)
        monkeypatch.setattr(Ledger, "append", appended)

    def _on_disk(self) -> None:
        if self.dead:
            raise Killed
        if self.fuse:
            self.fuse -= 1
            if not self.fuse:
                self.dead = True
                self._leave_behind()
                raise Killed
