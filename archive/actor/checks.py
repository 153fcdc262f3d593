"""The slow check of the record while it is in use: how far it has come, and what it found.

A little of the chain is read each second, so that nobody waits for it; when all of it was read, SQLite's own check of
the file follows, and a day later it begins anew. What must never be here: reading the record.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from archive.admin import MENDED, Check, Checked, CheckFile, Mark
from archive.doors import Clock, Timer
from archive.health import Condition
from archive.messages import Count, Message

ROWS_A_SECOND = 1_000
"""5 to 6 ms of the actor's time. An answer has some seven rows: 100,000 are checked in about a quarter of an hour."""

FIRST_SECONDS = 20.0
"""After the start, which has enough to do."""

AGAIN_SECONDS = 60 * 60.0
"""After SQLite's check of the file was cut off since it stood in the way of writing; that may be a quieter hour."""

LOOK_SECONDS = 60.0
"""How long a store that was taken away may go unnoticed while nobody asks for anything."""

DAY_SECONDS = 24 * 60 * 60.0

FAULTS_MAX = 20
"""More of them say nothing more."""


class Checks:
    """Has the chain checked piece by piece, and remembers what was found."""

    def __init__(self, report: Callable[[Message[Any]], None], clock: Clock) -> None:
        """`report` leaves a message for the actor."""
        self._report = report
        self._clock = clock
        self._timer: Timer | None = None
        self._looking: Timer | None = None
        self._stopped = False
        self._found: list[str] = []
        self.rows = 0
        self.faults: tuple[str, ...] = ()
        self.whole_at: int | None = None
        """The moment of the last check that came to its end, and what it found."""

    def begin(self) -> None:
        """Start checking, a while from now."""
        self._later(FIRST_SECONDS, Check(Mark(), ROWS_A_SECOND))
        self._look()

    def stop(self) -> None:
        """Check no further."""
        self._stopped = True
        for timer in (self._timer, self._looking):
            if timer is not None:
                timer.cancel()

    def took(self, checked: Checked) -> None:
        """Some rows were checked; the next follow in a second, and after the last the file."""
        self.rows += checked.rows
        self._found += checked.faults[: FAULTS_MAX - len(self._found)]
        # What is wrong is told at once, not only when the rest was read too.
        self.faults = tuple(self._found) or self.faults
        if checked.mark is not None:
            self._later(1.0, Check(checked.mark, ROWS_A_SECOND))
        else:
            self._report(CheckFile())

    def ended(self, faults: tuple[str, ...] | None) -> None:
        """SQLite's own check of the file has ended too; None: it was broken off, and begins again later."""
        if faults is None:
            self._later(AGAIN_SECONDS, CheckFile())
            return
        self.faults = (*self._found, *faults[:FAULTS_MAX])
        self.whole_at = self._clock.now()
        self.rows, self._found = 0, []
        self._later(DAY_SECONDS, Check(Mark(), ROWS_A_SECOND))

    def mended(self) -> None:
        """The look-ups were worked out anew: what a rebuild mends is no fault any more."""
        self._found = [fault for fault in self._found if MENDED not in fault]
        self.faults = tuple(fault for fault in self.faults if MENDED not in fault)

    def condition(self, seen: Condition, held: int, wal_bytes: int, readers: str, *, spool: bool) -> Condition:
        """What the record said of itself, and what is known beside it."""
        return msgspec.structs.replace(
            seen,
            held=held,
            wal_bytes=wal_bytes,
            readers=readers,
            spool=spool,
            checked_at=self.whole_at,
            checking=self.rows,
            faults=self.faults,
        )

    def _look(self) -> None:
        """Have a transaction begun now and then, which looks at the store's files first."""

        def look() -> None:
            self._report(Count())
            self._look()

        self._looking = self._clock.later(LOOK_SECONDS, look)

    def _later(self, seconds: float, message: Check | CheckFile) -> None:
        if not self._stopped:
            self._timer = self._clock.later(seconds, lambda: self._report(message))
