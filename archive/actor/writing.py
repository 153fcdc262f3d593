"""How a group of letters gets into the record: together; if that fails one by one; and past a store that takes nothing.

What must be kept then goes to the spool: a call is let out when its sending is there, and an outcome is told, marked as
not in the record yet. All of it is written before anything else as soon as the store takes it.
What must never be here: what a message does (handlers.py), telling anybody.
"""

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from archive.actor.calls import Calls
from archive.actor.effects import Effect, Held, Joined, Scene, Unsent
from archive.actor.handlers import CLOSED, Handlers, named
from archive.actor.mailbox import Letter
from archive.actor.store import LogFull, Record, Store
from archive.actor.unwritten import Unwritten
from archive.attempts import State, cooling_place
from archive.doors import Clock
from archive.errors import Forbidden, RecordClosed
from archive.messages import Ask, Count, Finished, Message
from archive.picks import Fresh, Latest
from archive.tokens import NOT_AFRESH

UNNUMBERED = "The newest answer to this is not in the record yet, so nothing is sent afresh for it. Try again later."

STUCK_MAX = 100
"""Outcomes the store refuses one by one; with more of them nothing is sent until it takes them."""

CLOSED_CODES = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
    }
)
"""The store takes nothing at this moment; any other error is about the one statement that failed."""

log = logging.getLogger("askonce")

Took = Callable[[Scene, list[Letter], list[Effect]], None]


class MakeScene(Protocol):
    def __call__(self, *, closed: bool, unwritten: Unwritten | None = None) -> Scene: ...


class Writing:
    """The one road from the mailbox into the store."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        calls: Calls,
        clock: Clock,
        waiting: Unwritten,
        may_join: Callable[[Ask], bool],
    ) -> None:
        """`may_join`: see Callers."""
        self._store = store
        self._handlers = handlers
        self._calls = calls
        self._clock = clock
        self._waiting = waiting
        self._may_join = may_join
        self._in_doubt = False
        """A COMMIT was reported as failed. It may have reached the disk: SQLite says so too late to tell."""

    async def work(self, letters: list[Letter], added: Counter[str | int], scene: MakeScene, took: Took) -> None:
        """Do the letters. `took` is called with what they came to as soon as it is on disk; what of `added` was written
        is taken off it.
        """
        if any(isinstance(letter.message, Count) for letter in letters):
            await self._waiting.look()
        if (self._waiting or self._waiting.alarmed) and not await self.catch_up(scene, took):
            for letter in letters:
                await self._past(letter, scene, took)
            return
        seen, counted = scene(closed=len(self._waiting.stuck) >= STUCK_MAX), Counter(added)
        try:
            effects = await self._write(lambda record: self._together(record, letters, seen, counted))
        except sqlite3.Error:
            for letter in letters:
                await self._alone(letter, scene, took)
        else:
            added -= counted
            took(seen, letters, effects)

    async def catch_up(self, scene: MakeScene, took: Took) -> bool:
        """Write all that waits; False when the store still takes nothing."""
        seen, waiting = scene(closed=False), self._waiting
        letters = [Letter(finished, None) for finished in waiting.outcomes]
        ended = False

        def all_of_it(record: Record) -> list[Effect]:
            nonlocal ended
            effects = self._handlers.catch_up(record, waiting, seen)
            ended = True
            return effects

        try:
            effects = await self._store.write(all_of_it)
        except sqlite3.Error as error:
            if ended:
                waiting.doubt(seen.places)
            waiting.failed(named(error), log_full=isinstance(error, LogFull))
            return False
        await waiting.written()
        self._calls.renumber(seen.places)
        took(seen, letters, effects)
        return True

    async def _write(self, work: Callable[[Record], list[Effect]]) -> list[Effect]:
        """Store.write. After a COMMIT that was reported as failed, what it may have left is put right first."""
        ended = False

        def whole(record: Record) -> list[Effect]:
            nonlocal ended
            if self._in_doubt:
                self._handlers.end_unsent(record)
            effects = work(record)
            ended = True
            return effects

        try:
            effects = await self._store.write(whole)
        except sqlite3.Error:
            self._in_doubt = self._in_doubt or ended
            raise
        self._in_doubt = False
        return effects

    def _together(self, record: Record, group: list[Letter], seen: Scene, counted: Counter[str | int]) -> list[Effect]:
        before = record.db.total_changes
        effects = [self._handlers.do(record, letter.message, seen) for letter in group]
        # A group that only looked has nothing to put on disk: counts wait for one that has, or for their own message.
        if counted and (record.db.total_changes > before or any(isinstance(x.message, Count) for x in group)):
            record.add_up(counted)
        else:
            counted.clear()
        return effects

    async def _alone(self, letter: Letter, scene: MakeScene, took: Took) -> None:
        # Once something waits nothing is written past it: the store does not know of it.
        if self._waiting:
            await self._past(letter, scene, took)
            return
        seen = scene(closed=len(self._waiting.stuck) >= STUCK_MAX)
        try:
            effects = await self._write(lambda record: [self._handlers.do(record, letter.message, seen)])
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in CLOSED_CODES:
                self._waiting.failed(named(error), log_full=isinstance(error, LogFull))
                await self._past(letter, scene, took)
            else:
                log.error("a message failed: %s", named(error))
                took(seen, [letter], [RecordClosed(CLOSED)])
        else:
            took(seen, [letter], effects)

    async def _past(self, letter: Letter, scene: MakeScene, took: Took) -> None:
        """What can be done while nothing can be written: kept answers are served, what must be kept waits."""
        await self._waiting.look()
        seen = scene(closed=not self._waiting.has_room, unwritten=self._waiting)
        took(seen, [letter], [await self._unwritten(letter.message, seen)])

    async def _unwritten(self, message: Message[Any], seen: Scene) -> Effect:
        if isinstance(message, Finished):
            return await self._hold(message, seen)
        if isinstance(message, Ask) and message.naming is None:
            shared = self._shared(message)
            if shared is not None:
                return shared
        try:
            effect = await self._store.look(lambda record: self._handlers.do(record, message, seen))
        except sqlite3.Error:
            return RecordClosed(CLOSED)
        return await self._let_out(effect) if isinstance(effect, Unsent) else effect

    def _shared(self, ask: Ask) -> Effect:
        """A call that the store may not know of counts from memory: on the wire, or answered."""
        call = self._calls.on(ask.request)
        if call is None or not isinstance(ask.pick, Latest | Fresh):
            return None
        if not self._may_join(ask):
            return Forbidden(NOT_AFRESH)
        if call.held is not None and isinstance(ask.pick, Fresh):
            return RecordClosed(UNNUMBERED)
        # Whoever has a kept answer is not made to wait for a fresh one, nor told that it came to nothing.
        is_answer = call.held is not None and call.held.outcome.state is State.ANSWERED
        if isinstance(ask.pick, Latest) and not call.first and not is_answer:
            return None
        return Joined(call.dispatch, None)

    async def _hold(self, finished: Finished, seen: Scene) -> Effect:
        seen.now = self._clock.now()
        call = self._calls.get(finished.dispatch) or self._calls.late(finished.dispatch)
        place = 0 if call is None else cooling_place(call.request.destination, call.key.secret)
        await self._waiting.hold(finished, call, seen.now, place)
        if call is not None:
            seen.heed(call, finished.outcome)
        return Held(finished)

    async def _let_out(self, unsent: Unsent) -> Effect:
        number = await self._waiting.send(unsent.sending)
        if number is None:
            return RecordClosed(CLOSED)
        unsent.call.dispatch = number
        return unsent.call
