"""The actor: one task that owns the record and is the only one to let a call out.

What waits is worked as a group inside one transaction, in the connection's thread (handlers.py). Only when it is on
disk are calls started and is anybody told. Never here: SQL (store/), rules (archive/*.py), HTTP, awaiting a model.
"""

import asyncio
import logging
import os
import sqlite3
from collections import ChainMap, Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self, TypeVar, cast

from archive.actor.beside import Beside
from archive.actor.callers import Callers
from archive.actor.calls import Call, Calls, given, told, unrecorded
from archive.actor.checks import Checks
from archive.actor.effects import Cooldown, Effect, Ended, Held, Issued, Joined, Renewed, Scene, Served
from archive.actor.handlers import CLOSED, STOPPING, Handlers, Limits, named
from archive.actor.hub import Hub
from archive.actor.mailbox import Letter, Mailbox
from archive.actor.recent import Recent
from archive.actor.spool import SpoolTaken
from archive.actor.store import Store, StoreUnusable, in_words, spool_of
from archive.actor.unwritten import Unwritten, opened
from archive.actor.writing import Writing
from archive.admin import Apart, Aside, Checked, Deliveries
from archive.attempts import Outcome, State, Why
from archive.doors import Clock, Upstream
from archive.errors import ArchiveError, Busy, RecordClosed
from archive.health import Condition
from archive.live import Asked, Changed, Forgotten, Imported, Notice, Place
from archive.messages import Answered, Ask, Count, Finished, Kept, Message, Sent, Stop, Visited
from archive.naming import check
from archive.request import Destination, call_id
from archive.tokens import Minute, Token

__all__ = ["Actor", "Limits"]

R = TypeVar("R")

GROUP_MAX = 64
"""Letters that share one commit at most: past this a group saves no more time and only delays its first."""

log = logging.getLogger("askonce")


class Actor:
    """A Door with the record behind it. Use as `async with Actor(...) as door`."""

    def __init__(
        self,
        path: Path,
        upstreams: Callable[[Destination], Upstream | None],
        clock: Clock,
        limits: Limits | None = None,
        dead: Callable[[], None] = lambda: os._exit(70),
        spool: Path | None = None,
    ) -> None:
        """`upstreams`: who is behind a destination, or None. `dead`: called when the loop has died; must not return.

        `spool`: the file for what the store cannot take; None: there is none, and nothing is sent meanwhile.
        """
        self._path = path
        self._spool = spool
        self._clock = clock
        self._limits = limits or Limits()
        self._dead = dead
        self._mailbox = Mailbox(self._limits.mailbox_max)
        self._recent = Recent(self._limits.recent_bytes_max)
        self._callers = Callers(clock)
        self._hub = Hub(self._limits.outbox_max)
        self._calls = Calls(self._mailbox.report, clock, self._limits.call_seconds_max)
        self._handlers = Handlers(upstreams, self._calls, clock, self._limits)
        self._cooling: dict[int, Cooldown] = {}
        self._waiting = Unwritten(None)
        self._added: Counter[str | int] = Counter()  # deliveries by name, looks by the question's number
        self._checks = Checks(self._mailbox.report, clock)
        self._beside = Beside(self._checks.ended, self._checks.mended, self._forget)
        self._retry_waits = False
        self._draining: asyncio.Task[None] | None = None

    # -- the door ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Open the record. Raises StoreUnusable; when cancelled it closes again before it returns."""
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._task = asyncio.create_task(self._run(), name="actor")
        try:
            await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            await self.__aexit__()
            raise
        except BaseException:
            await asyncio.wait([self._task])
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and wait until the record is closed."""
        self.stop()
        await asyncio.shield(asyncio.wait([self._task]))

    def stop(self) -> None:
        """Refuse from now on, drain, give the calls on the wire a last limit, then close the record."""
        self._mailbox.report(Stop())

    @property
    def tokens(self) -> Mapping[bytes, Token]:
        """Every access token there ever was by the hash of its secret, as of the last commit. Empty: all may ask."""
        return self._callers.tokens

    async def send(self, message: Message[R]) -> R:
        """See Door.send. A look at a page is only added up."""
        if isinstance(message, Visited):
            self._added[message.number] += 1
            self._retry_later()
            return cast("R", None)
        if isinstance(message, Deliveries):
            return cast("R", self._callers.deliveries())
        if not isinstance(message, Ask):
            return given(await self._mailbox.put(message))
        answered = self.at_once(message)
        if answered is None:
            ask = self._callers.placed(message)
            self._callers.admit(ask)
            answered = self._callers.delivered(ask, await self._asked(ask))
        return cast("R", answered)

    def at_once(self, ask: Ask, takes: Callable[[Kept], bool] = lambda _: True) -> Answered | None:
        """A kept answer used lately, handed out past the mailbox: it changes only here, after a commit.

        None: nothing was done, for there is none or the asker does not take it like this; `send` the ask. Raises as
        `send` does, and does nothing then, either.
        """
        ask = self._callers.placed(ask)
        kept = self._recent.picked_by(ask) if self._is_short(ask) else None
        if kept is None or not takes(kept):
            return None
        self._callers.admit(ask)
        self._count(Sent.NOT_SENT, kept.cost)
        return self._callers.delivered(ask, Answered(kept, Sent.NOT_SENT))

    def _is_short(self, ask: Ask) -> bool:
        """May it be told past the mailbox? Not once stopping has begun, since it could not be counted any more; and
        not where there is something to write: an asking that is named, or that a visitor asked it, who makes it public.
        """
        return ask.naming is None and self._draining is None and not ask.caller.visitor

    async def _asked(self, ask: Ask) -> Answered | ArchiveError:
        """A call on the wire is joined past the mailbox, too."""
        if ask.naming is not None:
            check(ask.naming, ask.request)
        call = self._calls.joined_by(ask) if self._is_short(ask) and self._callers.may_join(ask) else None
        if call is None:
            return await self._mailbox.put(ask)
        reply: asyncio.Future[Answered | ArchiveError] = asyncio.get_running_loop().create_future()
        call.join(reply)
        return await reply

    @asynccontextmanager
    async def watch(self, place: Place) -> AsyncGenerator[AsyncIterator[Notice], None]:
        """See Door.watch."""
        with self._hub.open(place) as outbox:
            yield outbox

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            store = await Store.open(self._path, spool=self._spool)
        except Exception as error:
            self._ready.set_exception(error)
            return
        try:
            try:
                self._waiting = opened(self._spool, self._limits.spool_bytes_max)
                self._cooling = await self._recover(store)
            except SpoolTaken as error:
                raise StoreUnusable(f"ASKONCE_SPOOL: {error}") from None
            self._writing = Writing(
                store, self._handlers, self._calls, self._clock, self._waiting, self._callers.may_join
            )
            self._callers.load(await store.look(lambda record: record.tokens()))
            self._ready.set_result(None)
            self._checks.begin()
            while self._draining is None or not self._draining.done() or len(self._mailbox):
                await self._work(store, await self._mailbox.take(GROUP_MAX))
                if store.in_transaction:
                    raise RuntimeError("a transaction was left open")
            await self._write_counts(store)
            self._waiting.end()
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(error)
                return
            log.critical("the actor died of %s; the process ends", named(error))
            self._dead()
        finally:
            self._waiting.close()
            self._checks.stop()
            store.break_off()
            await self._beside.quiet()
            await store.close()
            self._hub.close()

    async def _recover(self, store: Store) -> dict[int, Cooldown]:
        """Take in what the spool holds, empty again what was erased, then call unknown what was on the wire.

        In this order: what is taken in may hold erased words, where an older backup lies beside the spool.
        Raises StoreUnusable.
        """
        try:
            ours = await store.write(spool_of)
            frames, epoch = self._waiting.begin(*ours)
            if frames:
                await store.write(lambda record: self._handlers.load(record, frames, epoch))
            await store.erase_again()
            cooling = await store.write(self._handlers.recover)
        except sqlite3.Error as error:
            raise StoreUnusable(f"{self._path} cannot be written: {in_words(error)}") from error
        if frames or self._waiting.is_stale:
            await self._waiting.written()
        return cooling

    async def _work(self, store: Store, letters: list[Letter]) -> None:
        """Do a group: together; if that fails each alone; and what cannot be written is refused or held."""
        for letter in letters:
            if isinstance(letter.message, Stop):
                self._stop()
            elif isinstance(letter.message, Apart):
                await self._beside.alone(letter, store, self._clock.now(), held=bool(self._waiting))
            elif isinstance(letter.message, Aside):
                self._beside.begin(letter, store.aside(letter.message))
        letters = [letter for letter in letters if not isinstance(letter.message, Apart | Aside)]
        await self._writing.work(letters, self._added, self._scene, partial(self._take_over, store))

    def _forget(self, erased: Collection[int]) -> None:
        """Words are erased, or an answer withdrawn: nothing of before is handed out past the record."""
        self._recent.clear()
        self._callers.forget()
        self._calls.forget(erased)
        self._hub.tell(Forgotten())

    # -- after the commit --------------------------------------------------------------------------------------------

    def _scene(self, *, closed: bool, unwritten: Unwritten | None = None) -> Scene:
        stopping = self._draining is not None
        sent = ChainMap[bytes, Minute]({}, self._callers.sent)
        on_wire, cooling = self._calls.listening(), dict(self._cooling)
        return Scene(0, self._clock.monotonic(), closed, stopping, on_wire, cooling, sent, unwritten)

    def _take_over(self, store: Store, scene: Scene, letters: list[Letter], effects: list[Effect]) -> None:
        self._cooling = {place: cool for place, cool in scene.cooling.items() if cool.ends > scene.monotonic}
        self._callers.take(scene.sent.maps[0])
        for letter, effect in zip(letters, effects, strict=True):
            if isinstance(effect, Condition):
                log_is = store.wal_bytes, store.log_readers()
                held, spool = len(self._waiting), self._waiting.has_spool
                letter.answer(self._checks.condition(effect, held, *log_is, spool=spool))
            else:
                self._apply(letter, effect)
        self._retry_later()

    def _apply(self, letter: Letter, effect: Effect) -> None:  # noqa: PLR0912 - a case for each effect
        match effect:
            case Served():
                if effect.newest:
                    self._recent.put(effect.request, effect.answered.kept)
                self._count(Sent.NOT_SENT, effect.answered.kept.cost)
                letter.answer(effect.answered)
            case Call():
                effect.join(letter.reply, effect.judgment)
                self._calls.start(effect)
                self._hub.tell(Changed(effect.call_id))
            case Joined():
                self._join(letter, self._calls.get(effect.dispatch), effect.judgment)
            case Ended():
                self._end(effect)
            case Renewed(requests, said):
                self._recent.drop(*requests)
                if requests:
                    self._hub.tell(Imported(tuple(sorted(set(map(call_id, requests))))))
                letter.answer(said)
            case Issued(hash, token):
                self._callers.put(hash, token)
                letter.answer(token)
            case ArchiveError() if isinstance(letter.message, Finished):
                # The store refuses this one alone, which must not stop the others; it is tried again.
                log.error("an outcome could not be written, is held in memory and tried again")
                self._waiting.stuck.append(letter.message)
                self._hold(letter.message)
            case Held(finished):
                self._hold(finished)
            case Checked() if letter.reply is None:
                self._checks.took(effect)
            case Asked():
                self._hub.tell(effect)
                letter.answer(None)
            case Forgotten():
                self._forget(())
                letter.answer(None)
            case _:
                letter.answer(effect)

    def _join(self, letter: Letter, call: Call | None, judgment: int | None) -> None:
        if call is None:
            # A COMMIT that was reported as failed and had reached the disk all the same: nothing was sent for it.
            letter.answer(RecordClosed(CLOSED))
            return
        call.join(letter.reply, judgment)
        if call.held is not None:
            self._tell_all(call, call.held.outcome, unrecorded(call, call.held.outcome, call.held.ms))

    def _end(self, ended: Ended) -> None:
        call, outcome, kept = ended.call, ended.outcome, ended.kept
        self._calls.settle(call, listening=outcome.why is Why.SLOW)
        if kept is not None:
            self._recent.put(call.request, kept)
        self._tell_all(call, outcome, kept)
        self._hub.tell(Changed(call.call_id, outcome.state, kept and kept.n))

    def _hold(self, finished: Finished) -> None:
        """The outcome cannot be written now. Those who wait get it all the same, marked."""
        call = self._calls.get(finished.dispatch)
        if call is not None and call.held is None:
            call.held = finished
            self._tell_all(call, finished.outcome, unrecorded(call, finished.outcome, finished.ms))

    def _tell_all(self, call: Call, outcome: Outcome, kept: Kept | None) -> None:
        for future, sent, judgment in call.leave():
            if not future.done():
                if outcome.state is State.ANSWERED:
                    self._count(sent, outcome.cost)
                future.set_result(told(call, outcome, kept, sent, judgment))

    def _count(self, sent: Sent, cost: int | None) -> None:
        """Count a delivery, and what an answer that nothing was sent for cost when it was made."""
        self._added[sent.value] += 1
        if sent is not Sent.NOW and cost != 0:
            self._added["saved_unknown" if cost is None else "saved"] += 1 if cost is None else cost
        self._retry_later()

    def _retry_later(self) -> None:
        """Have counts and held outcomes written soon, though nobody asks for anything."""
        if (self._added or self._waiting) and not self._retry_waits and self._draining is None:
            self._retry_waits = True
            self._clock.later(self._waiting.seconds, self._retry)

    def _retry(self) -> None:
        self._retry_waits = False
        self._mailbox.report(Count())

    # -- stopping ----------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        if self._draining is None:
            self._mailbox.close(Busy(STOPPING))
            self._draining = asyncio.create_task(self._calls.quiet(self._limits.stop_seconds_max), name="drain")
            self._draining.add_done_callback(lambda _: self._mailbox.report(Count()))

    async def _write_counts(self, store: Store) -> None:
        try:
            await store.write(lambda record: record.add_up(self._added))
        except sqlite3.Error as error:
            log.error("the last delivery counts could not be written (%s)", named(error))
