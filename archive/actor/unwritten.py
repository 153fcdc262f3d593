"""What the store has not taken yet: calls that were let out meanwhile, and what came of calls. The spool holds it safe.

All of it is written with the next transaction that succeeds, before anything else is. Until then it counts, from
memory. What must never be here: writing the store, telling anybody.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from archive.actor.calls import Call
from archive.actor.spool import Spool, SpoolUnusable
from archive.frames import Ending, Frame, Sending
from archive.messages import Finished

log = logging.getLogger("askonce")

RESERVED_BYTES = 256 * 1024
"""Room that stays free in the spool for the reply of each call that was let out while the store took nothing."""

RETRY_SECONDS, RETRY_SECONDS_MAX = 1.0, 30.0
"""How soon it is tried again when nobody asks for anything; twice as long each time, up to half a minute."""


@dataclass
class Unwritten:
    """Sendings and outcomes in the order they came, each in the spool as far as there is one with room."""

    spool: Spool | None
    sendings: list[Sending] = field(default_factory=list[Sending])
    endings: list[Finished] = field(default_factory=list[Finished])
    stuck: list[Finished] = field(default_factory=list[Finished])
    """Outcomes the store refuses one by one, though it takes others: a fault of ours, tried again with the rest."""
    seconds: float = RETRY_SECONDS
    number: int = 0
    """The last one given to a sending; they go down, so that no two calls of one process ever share one."""
    alarmed: bool = False
    tried: dict[int, Mapping[int, tuple[int, int]]] = field(default_factory=dict[int, Mapping[int, tuple[int, int]]])
    """Where the sendings stand if a COMMIT that was reported as failed was done all the same, by the epoch it noted."""
    is_spool_missing: bool = False
    """There should be a spool, and it could not be had."""
    overflowed: bool = False
    """An outcome that waits was too large for the spool: memory alone has it, and nothing more is let out."""

    def __len__(self) -> int:
        return len(self.sendings) + len(self.endings) + len(self.stuck)

    @property
    def outcomes(self) -> list[Finished]:
        """All outcomes that wait, the oldest first."""
        return [*self.endings, *self.stuck]

    @property
    def has_room(self) -> bool:
        """May a call be let out while the store takes nothing?"""
        if self.spool is None or self.overflowed:
            return False
        return self.spool.room > RESERVED_BYTES * (1 + len(self.sendings))

    @property
    def is_stale(self) -> bool:
        """Does the spool still hold what the store has, words that may have to be erased?"""
        return self.spool is not None and self.spool.is_stale

    @property
    def has_spool(self) -> bool:
        """Is nothing amiss with it? Who wants none misses none."""
        return not self.is_spool_missing and (self.spool is None or not self.spool.fault)

    async def look(self) -> None:
        """Look whether the spool is still there, and say so when it is not."""
        if self.spool is not None:
            changed = await asyncio.to_thread(self.spool.keep)
            if changed:
                log.error("%s", changed)

    def sent_to(self, upstream: str) -> int:
        """Calls to an upstream that were let out and count against a budget the store does not know of."""
        return sum(one.upstream == upstream for one in self.sendings)

    def sent_for(self, token: int) -> int:
        """The same, on a token's budget."""
        return sum(one.token == token for one in self.sendings)

    async def send(self, unsent: Sending) -> int | None:
        """Put a sending on disk before its first byte leaves; its number, below 0. None: there is no room for it."""
        sending = msgspec.structs.replace(unsent, number=self.number - 1)
        if not self.has_room or not await self._add(sending):
            return None
        self.number = sending.number
        self.sendings.append(sending)
        return sending.number

    async def hold(self, finished: Finished, call: Call | None, at: int, place: int) -> None:
        """Keep an outcome until it can be written. `call` is its call, `place` whom it asked to be left alone."""
        self.endings.append(finished)
        if call is not None and not await self._add(_ending(finished, call, at, place)):
            self.overflowed = True
            log.error("an outcome could not be put into the spool either; it is held in memory alone")

    async def _add(self, frame: Frame) -> bool:
        if self.spool is None:
            return False
        try:
            return await asyncio.to_thread(self.spool.add, frame)
        except OSError as error:
            log.error("the spool could not be written (%s)", error.strerror)
            return False

    def failed(self, error: str, *, log_full: bool) -> None:
        """The store took nothing, once more: one clear line says so, and it is left alone for longer each time.

        `log_full`: nothing was even begun, because its log must be folded in first; that costs nothing to try.
        """
        if self.alarmed:
            self.seconds = RETRY_SECONDS if log_full else min(2 * self.seconds, RETRY_SECONDS_MAX)
        else:
            self.alarmed = True
            where = "the spool, which keeps it safe" if self.spool is not None else "memory alone"
            log.error("the record cannot be written (%s); what happens meanwhile waits in %s", error, where)

    def doubt(self, places: Mapping[int, tuple[int, int]]) -> None:
        """A COMMIT of all that waits was reported as failed; it may have reached the disk. `places`: see `tried`."""
        if self.spool is not None:
            self.tried[self.spool.epoch] = places
            self.spool.doubt()

    async def written(self) -> None:
        """The store has all of it, and has noted the spool's epoch. What it still refuses is stuck anew."""
        if self.alarmed:
            log.warning("the record is written again, and %d things that waited are in it", len(self))
        self.alarmed = self.overflowed = False
        self.sendings.clear()
        self.endings.clear()
        self.stuck.clear()
        self.tried.clear()
        self.seconds = RETRY_SECONDS
        if self.spool is not None:
            try:
                await asyncio.to_thread(self.spool.loaded)
            except OSError as error:
                log.error("the spool could not be wiped (%s)", error.strerror)

    def begin(self, store: bytes, taken: int) -> tuple[list[Frame], int]:
        """What a process left in the spool that ended before it could be written, and its epoch.

        `store`: the id of the store, `taken`: the last epoch it has in it.
        """
        if self.spool is None:
            return [], 0
        return self.spool.begin(store, taken), self.spool.epoch

    def end(self) -> None:
        """The process ends: what still waits is in the spool for the next one, or is lost from memory."""
        if self and self.spool is None:
            log.error("%d outcomes were never written; they are unknown from now on", len(self))
        elif self:
            log.warning("%d things wait in the spool for the next start", len(self))

    def close(self) -> None:
        if self.spool is not None:
            self.spool.close()
            self.spool = None


def _ending(finished: Finished, call: Call, at: int, place: int) -> Ending:
    """An outcome as it goes to the disk: of a call whose words were erased without a word."""
    outcome, reply = finished.outcome, finished.outcome.reply
    if call.erased and reply is not None:
        outcome = msgspec.structs.replace(outcome, reply=msgspec.structs.replace(reply, body=b""))
    return Ending(finished.dispatch, call.sent_at, outcome, finished.ms, at, place, call.call_id, call.erased)


def opened(path: Path | None, bytes_max: int) -> Unwritten:
    """Nothing waits yet, for the spool at `path`; without one, said once, when it cannot be had. Raises SpoolTaken."""
    if path is None:
        return Unwritten(None)
    try:
        return Unwritten(Spool(path, bytes_max))
    except SpoolUnusable as error:
        log.error("there is no spool (%s): while the store cannot be written, nothing is sent", error)
        return Unwritten(None, is_spool_missing=True)
