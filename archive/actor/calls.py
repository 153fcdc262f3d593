"""What is on the wire: who waits for which call, and the tasks that carry the calls.

A call is a task of its own, so that it ends and is kept though everyone left. What it comes to is reported as a
message: once when it ended, and once before that when its limit ran out. What must never be here: the record.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from archive.attempts import WHY_TEXT, Came, Lost, NotSent, Outcome, State, Why, read
from archive.doors import Clock, Timer, Upstream
from archive.errors import ArchiveError, CallFailed, Erased
from archive.messages import Answered, Ask, Finished, Kept, Key, Sent
from archive.picks import Fresh, Latest, unknown
from archive.request import Request

R = TypeVar("R")

log = logging.getLogger("askonce")

Waiter = tuple[asyncio.Future[Any], Sent, int | None]
"""Who waits, how the answer comes to him, and the number of his asking where it was named."""


@dataclass(eq=False)
class Call:
    """One act of answering, shared by all who wait for it. `held` is its outcome while the record cannot take it.

    `overdue`: the limit ran out, which was reported, and its own end will be too. `erased`: the words of its request
    were, and what comes back is for nobody. `judgment`: the number of the asking
    that made it, where that was named.
    """

    dispatch: int
    request: Request
    request_id: int
    call_id: str
    sent_at: int
    upstream: Upstream
    key: Key
    first: bool = False
    judgment: int | None = None
    held: Finished | None = None
    waiting: list[Waiter] = field(default_factory=list[Waiter])
    shared: bool = False
    overdue: bool = False
    erased: bool = False

    def join(self, reply: asyncio.Future[Any] | None, judgment: int | None = None) -> None:
        """Wait for this call. The first one made it; all after it share it, even when the first has left."""
        if reply is not None:
            self.waiting.append((reply, Sent.SHARED if self.shared else Sent.NOW, judgment))
        self.shared = True

    def leave(self) -> list[Waiter]:
        """All who wait, who wait no more."""
        waiting, self.waiting = self.waiting, []
        return waiting


def unrecorded(call: Call, outcome: Outcome, ms: int, kept_at: int | None = None, n: int = 0) -> Kept | None:
    """The answer of an outcome as people get it; version 0, not recorded, until the record has given it a number."""
    reply = outcome.reply
    if reply is None:
        return None
    return Kept(
        call.call_id,
        n,
        n,
        reply.status,
        reply.body,
        reply.content_type,
        reply.provider_id,
        call.sent_at if kept_at is None else kept_at,
        ms,
        outcome.answered_model,
        outcome.input_tokens,
        outcome.output_tokens,
        outcome.cost,
        recorded=n > 0,
        request_id=call.request_id,
        cuts=reply.cuts,
        cut_short=outcome.cut_short,
    )


def given(reply: R | ArchiveError) -> R:
    """A reply, raised where it is an error: by each who is told of it for himself."""
    if isinstance(reply, ArchiveError):
        raise reply.again()
    return reply


def told(call: Call, outcome: Outcome, kept: Kept | None, sent: Sent, judgment: int | None) -> Answered | ArchiveError:
    """What one who waited for a call is told of its outcome."""
    if outcome.state is State.ANSWERED and kept is not None and not call.erased:
        return Answered(kept, sent, judgment)
    error: ArchiveError = CallFailed(WHY_TEXT[outcome.why], reply=outcome.reply)
    if outcome.state is State.UNKNOWN:
        error = unknown(call.sent_at, waited=True)
    if call.erased:
        error = Erased("The words of this request were erased while it was on the wire. What came back was not kept.")
    error.judgment = judgment
    return error


class Calls:
    """The calls that have no outcome on record yet, those listened to although unknown, and the tasks of both."""

    def __init__(self, report: Callable[[Finished], None], clock: Clock, seconds_max: float) -> None:
        """`seconds_max`: after this long those who wait are told *unknown*; the call is listened to further.

        It holds for upstreams that have no such limit of their own.
        """
        self._report = report
        self._clock = clock
        self._seconds_max = seconds_max
        self._open: dict[int, Call] = {}
        self._by_request: dict[Request, Call] = {}
        self._late: dict[int, Call] = {}
        self._renumbered: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: Counter[str] = Counter()

    def listening(self) -> Counter[str]:
        """How many tasks listen to each upstream, by its name; each holds a connection."""
        return Counter(self._listening)

    def get(self, dispatch: int) -> Call | None:
        """The call of a dispatch that has no outcome on record yet."""
        return self._open.get(self._renumbered.get(dispatch, dispatch))

    def joined_by(self, ask: Ask) -> Call | None:
        """The call on the wire that `ask` may join as things stand: any for Fresh, a first one for Latest."""
        call = self._by_request.get(ask.request)
        if call is None or call.held is not None:
            return None
        return call if isinstance(ask.pick, Fresh) or (call.first and isinstance(ask.pick, Latest)) else None

    def on(self, request: Request) -> Call | None:
        """The call of a request that has no outcome on record yet."""
        return self._by_request.get(request)

    def renumber(self, numbers: Mapping[int, tuple[int, int]]) -> None:
        """Calls that were let out while the store took nothing have a dispatch and a request in it now, by old number.

        What such a call reported meanwhile still names the old one.
        """
        for old, (dispatch, request) in numbers.items():
            call = self._open.pop(old, None)
            if call is not None:
                call.dispatch, call.request_id = dispatch, request
                self._open[dispatch] = call
                self._renumbered[old] = dispatch

    def late(self, dispatch: int) -> Call | None:
        """The call of a dispatch that is unknown on record and still listened to."""
        return self._late.get(self._renumbered.get(dispatch, dispatch))

    def forget(self, requests: Collection[int]) -> None:
        """The words of these requests were erased: nobody joins their calls any more, nor gets what they come to."""
        for call in [*self._open.values(), *self._late.values()]:
            if call.request_id in requests:
                call.erased = True
                if self._by_request.get(call.request) is call:
                    del self._by_request[call.request]

    def start(self, call: Call) -> None:
        """Send. The dispatch is on record by now."""
        self._open[call.dispatch] = call
        self._by_request[call.request] = call
        task = asyncio.create_task(self._carry(call), name=f"call {call.dispatch}")
        # The loop itself keeps only weak references to tasks.
        self._tasks.add(task)
        name = call.upstream.name
        self._listening[name] += 1

        def over(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._listening[name] -= 1

        task.add_done_callback(over)

    def settle(self, call: Call, *, listening: bool) -> None:
        """Its outcome is on record; `listening`: as unknown, and a late reply may still come."""
        if self._open.pop(call.dispatch, None) is not None and self._by_request.get(call.request) is call:
            del self._by_request[call.request]
        # A call that ended because the model gave up waiting is over; nothing of it is to come.
        if self._late.pop(call.dispatch, None) is None and listening and call.overdue:
            self._late[call.dispatch] = call

    async def _carry(self, call: Call) -> None:
        started = self._clock.monotonic()

        def over() -> None:
            call.overdue = True
            self._tell(call, Lost(Why.SLOW), started)

        own = call.upstream.call_seconds_max
        limit = self._clock.later(self._seconds_max if own is None else own, over)
        try:
            came = await call.upstream.model.answer(call.request, call.key)
        except asyncio.CancelledError:
            came = Lost(Why.STOPPED)
        except Exception as error:
            log.error("a model raised %s", type(error).__name__)
            came = Lost(Why.OUR_ERROR)
        limit.cancel()
        self._tell(call, came, started)

    def _tell(self, call: Call, came: Came, started: float) -> None:
        if isinstance(came, Lost) and call.request.destination.is_local:
            came = NotSent(came.why)
        ms = round((self._clock.monotonic() - started) * 1000)
        self._report(Finished(call.dispatch, read(call.request, came, self._clock.now(), call.upstream.price), ms))

    async def quiet(self, seconds: float) -> None:
        """Wait until every call has ended, at most `seconds`; then break off those that still listen."""
        over = asyncio.Event()
        limit: Timer = self._clock.later(seconds, over.set)
        waiting = asyncio.create_task(over.wait())
        while self._open and self._tasks and not over.is_set():
            await asyncio.wait([waiting, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        limit.cancel()
        waiting.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
