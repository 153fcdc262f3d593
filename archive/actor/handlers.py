"""What each message does to the record: the actor's half that runs in the connection's thread, inside a transaction.

A handler loads, asks a plain function, writes, and returns what is to be done once all of it is on disk. It sees what
is on the wire but changes nothing outside the transaction. What must never be here: telling anybody, SQL, rules.
"""

import logging
import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from archive.actor.calls import Call, Calls, unrecorded
from archive.actor.effects import Cooldown, Effect, Ended, Issued, Joined, Renewed, Scene, Served, Unsent
from archive.actor.store import (
    Found,
    LogFull,
    Placed,
    Record,
    StoreGone,
    abouts,
    add_asking,
    add_sending,
    check,
    imported,
    issued,
    judged,
    note_epoch,
    spool_of,
    take_in,
)
from archive.actor.unwritten import Unwritten
from archive.admin import AddToken, Check, Import, RevokeToken, Tokens, Withdraw
from archive.attempts import Outcome, State, Why, cooling_place, following
from archive.doors import Clock, Upstream
from archive.errors import ArchiveError, Busy, Cooling, Forbidden, Invalid, OverLimit, RecordClosed
from archive.frames import Frame, Sending
from archive.health import Condition
from archive.live import Asked, Forgotten
from archive.messages import (
    Abouts,
    Answered,
    Ask,
    Feed,
    Finished,
    Health,
    History,
    Judged,
    Key,
    Look,
    Looked,
    Message,
    Named,
    Noted,
    Recall,
    Sent,
    Show,
    Totals,
    Versions,
)
from archive.picks import Fresh, Join, Known, Serve, Version, decide, told_of
from archive.request import Destination, asked_model, call_id
from archive.tokens import NOT_AFRESH, admit, may_ask, one_more
from archive.when import DAY, SECOND, shown

log = logging.getLogger("askonce")

CLOSED = "The record cannot be written at this moment, so nothing is sent. Kept answers are still served."
STOPPING = "The server is stopping."
UNNAMED = (
    "The record cannot be written at this moment, so this asking would have no number. Nothing was sent. Asked without"
    " a pass, an about, a reading and inputs, a kept answer is still served."
)
OUR_ERROR = "Something went wrong on our side. Nothing was sent for this request."


class Limits(msgspec.Struct, frozen=True):
    """What the actor holds at most, and for how long. `day_calls_max` and `address_calls_max` 0 mean no limit.

    `day_calls_max` and `call_seconds_max` hold for each upstream that has no limit of its own.
    """

    mailbox_max: int = 10_000
    calls_max: int = 1_000
    call_seconds_max: float = 30.0
    stop_seconds_max: float = 5.0
    recent_bytes_max: int = 64 * 1024 * 1024
    outbox_max: int = 64
    day_calls_max: int = 0
    address_calls_max: int = 0
    spool_bytes_max: int = 16 * 1024 * 1024


class Handlers:
    """One handler a message."""

    def __init__(
        self, upstreams: Callable[[Destination], Upstream | None], calls: Calls, clock: Clock, limits: Limits
    ) -> None:
        self._upstreams = upstreams
        self._calls = calls
        self._clock = clock
        self._limits = limits

    def do(self, record: Record, message: Message[Any], scene: Scene) -> Effect:
        """One message in its own savepoint. Only a store that fails as a whole gets past here as an exception."""
        scene.now = self._clock.now()
        try:
            with record.savepoint():
                match message:
                    case Ask():
                        return self._ask(record, message, scene)
                    case Finished():
                        return self._finished(record, message, scene)
                    case Look():
                        return self._look(record, message, scene)
                    case Noted():
                        record.note(message, scene.now)
                        now = record.recall(message.question)
                        return Asked(message.question, now is not None and now.listed)
                    case Health():
                        return Condition(
                            not scene.closed and scene.unwritten is None,
                            0,
                            scene.on_wire.total(),
                            len(scene.cooling),
                            record.schema,
                        )
                    case Import():
                        verdicts, renewed = imported(record, message, scene.now)
                        return Renewed(renewed, verdicts)
                    case AddToken() | RevokeToken():
                        return Issued(*issued(record, message, scene.now))
                    case Withdraw():
                        record.withdraw(message, scene.now)
                        return Forgotten()
                    case _:
                        return _read(record, message, scene.now)
        except ArchiveError as refused:
            return refused
        except Exception as error:
            if isinstance(error, sqlite3.OperationalError) or not record.db.in_transaction:
                raise
            log.exception("a message failed: %s", named(error), exc_info=False)
            return ArchiveError(OUR_ERROR)

    def _ask(self, record: Record, message: Ask, scene: Scene) -> Effect:
        if message.naming is not None and (scene.closed or scene.unwritten is not None):
            raise RecordClosed(UNNAMED)
        request = message.request
        found = record.find(request)
        if found is not None and message.caller.visitor:
            if scene.unwritten is None:
                record.make_public(found.id)
            elif record.is_hidden(found.id):
                raise RecordClosed(CLOSED)
        named = message.pick.n if isinstance(message.pick, Version) else None
        known = Known() if found is None else record.known(found.id, named)
        try:
            _check_token(record, message, known)
            decision = decide(message.pick, known, scene.now)
        except ArchiveError as refused:
            served = told_of(refused, known)
            if served is not None and found is not None:
                refused.judgment = self._named(record, message, found.id, scene.now, dispatch=served)
            return refused  # said, not raised: that a visitor asked for it, or an asking, stays written
        if isinstance(decision, Serve) and found is not None:
            kept = record.kept(found, decision.n, known.total)
            judgment = self._named(record, message, found.id, scene.now, n=decision.n)
            return Served(request, Answered(kept, Sent.NOT_SENT, judgment), decision.n == known.newest)
        if isinstance(decision, Join) and found is not None:
            judgment = self._named(record, message, found.id, scene.now, dispatch=decision.dispatch)
            return Joined(decision.dispatch, judgment)
        upstream = self._admit(record, message, scene)
        key, first = _key(upstream, message), known.total == 0
        if scene.unwritten is not None:
            asker, model = message.caller, asked_model(request)
            sending = Sending(0, request, model, scene.now, upstream.name, asker.token, asker.visitor)
            return Unsent(sending, Call(0, request, 0, call_id(request), scene.now, upstream, key, first))
        if found is None:
            found = record.add_request(request)
            if message.caller.visitor:
                record.make_public(found.id)
        dispatch = record.add_dispatch(found.id, asked_model(request), scene.now)
        scene.on_wire[upstream.name] += 1
        judgment = self._named(record, message, found.id, scene.now, dispatch=dispatch)
        return Call(dispatch, request, found.id, found.call_id, scene.now, upstream, key, first, judgment)

    def _named(
        self, record: Record, message: Ask, request: int, at: int, *, n: int = 0, dispatch: int | None = None
    ) -> int | None:
        """Write down the asking if it was named; its number."""
        if message.naming is None:
            return None
        return add_asking(record, message.request, request, message.naming, at, n=n, dispatch=dispatch)

    def _look(self, record: Record, message: Look, scene: Scene) -> Looked:
        looked = record.look(message.request, message.n, scene.now, visitor=message.visitor)
        place = message.request.destination
        upstream = self._upstreams(place)
        cooling = None if upstream is None else scene.cooling_at(place, upstream.key)
        return looked if cooling is None else msgspec.structs.replace(looked, cooling_until=cooling.until)

    def _admit(self, record: Record, message: Ask, scene: Scene) -> Upstream:
        """Who is to be sent to, if a call may be made now: cooldown, budget, room, a place to write.

        Raises what stands against it.
        """
        place = message.request.destination
        upstream = self._upstreams(place)
        if upstream is None:
            raise Invalid(f"Nothing here is set up to send to {place.url}; only kept answers of it can be had.")
        if scene.stopping:
            raise Busy(STOPPING)
        if scene.closed:
            raise RecordClosed(CLOSED)
        cooling = scene.cooling_at(place, _key(upstream, message))
        if cooling is not None:
            text = f"The model's server asked to be left alone until {shown(cooling.until)}. Nothing was sent."
            raise Cooling(text, until=cooling.until, status=cooling.status)
        own = upstream.calls_max
        if scene.on_wire.total() >= self._limits.calls_max or (own is not None and scene.on_wire[upstream.name] >= own):
            raise Busy("As many calls as allowed are on the wire. Try again in a second.")
        day = scene.now // DAY
        most = self._limits.day_calls_max if upstream.day_calls_max is None else upstream.day_calls_max
        if not place.is_local and _spend(record, upstream.name, day, scene.unwritten) > most > 0:
            ends = (day + 1) * DAY
            used = "Today's one call is" if most == 1 else f"Today's {most} calls are"
            raise OverLimit(f"{used} used up. More may be sent from {shown(ends)}.", until=ends)
        self._admit_caller(record, message, scene)
        return upstream

    def _admit_caller(self, record: Record, message: Ask, scene: Scene) -> None:
        """May a call be made for this caller? The token's budget of the day; without a token, the address's minute.

        The budget is counted in the transaction that writes the dispatch, so it holds however many ask at once.
        """
        caller, day = message.caller, scene.now // DAY
        if caller.token:
            # It was admitted at the door; what waited in the same group may have revoked it since.
            token = admit(record.token(caller.token))
            if _spend_token(record, token.number, day, scene.unwritten) > token.day_calls_max > 0:
                ends = (day + 1) * DAY
                text = f"This token's {token.day_calls_max} calls of today are used up. More may be sent for it from"
                raise OverLimit(f"{text} {shown(ends)}.", until=ends)
        most = self._limits.address_calls_max
        if caller.address and most and not message.request.destination.is_local:
            text = f"More than {most} calls a minute are not sent for visitors from one place. Nothing was sent."
            before = scene.sent.get(caller.address)
            scene.sent[caller.address] = one_more(before, scene.monotonic, scene.now, most, text)

    def _finished(self, record: Record, message: Finished, scene: Scene) -> Effect:
        outcome = message.outcome
        call = self._calls.get(message.dispatch) or self._calls.late(message.dispatch)
        if call is None:
            return None
        self._cool(record, call, outcome, scene)
        place = scene.places.get(call.dispatch, Placed(call.dispatch, call.request_id))
        before = record.came_to(place.dispatch)
        n = following(before, outcome.state)
        if n is None:
            return self._is_there(record, call, place, before or State.UNKNOWN, outcome)
        number = record.add_outcome(place.dispatch, n, outcome, message.ms, scene.now, erased=call.erased)
        kept = None
        if outcome.state is State.ANSWERED:
            n = record.add_answer(place.request, number)
            kept = None if call.erased else unrecorded(call, outcome, message.ms, scene.now, n)
            kept = kept and msgspec.structs.replace(kept, request_id=place.request)
        return Ended(call, outcome, kept)

    def _is_there(self, record: Record, call: Call, place: Placed, before: State, outcome: Outcome) -> Ended:
        """An outcome that adds nothing: it is on record already (see following), or late and no answer."""
        if before is State.UNKNOWN:
            return Ended(call, Outcome(State.UNKNOWN, outcome.why), None)
        if before is not State.ANSWERED or call.erased:
            return Ended(call, outcome, None)
        n = record.version_of(place.dispatch)
        return Ended(call, outcome, record.kept(Found(place.request, call.call_id), n, n))

    def end_unsent(self, record: Record) -> None:
        """Sendings on record that no call of this process is for were written by a COMMIT that said it failed, so
        nothing was sent for them.
        """
        for dispatch, _, _ in record.open_dispatches():
            if self._calls.get(dispatch) is None:
                log.warning("a COMMIT that was reported as failed wrote sending %d; nothing was sent", dispatch)
                record.add_outcome(dispatch, 1, Outcome(State.FAILED, Why.NOT_BEGUN), 0, self._clock.now())

    def catch_up(self, record: Record, waiting: Unwritten, scene: Scene) -> list[Effect]:
        """Write all that waits; what each outcome comes to. The places of its sendings are in `scene`."""
        done = waiting.tried.get(spool_of(record)[1]) or dict[int, tuple[int, int]]()
        for sending in waiting.sendings:
            place = done.get(sending.number)
            scene.places[sending.number] = add_sending(record, sending) if place is None else Placed(*place)
        effects = [self.do(record, finished, scene) for finished in waiting.outcomes]
        if waiting.spool is not None:
            note_epoch(record, waiting.spool.epoch)
        return effects

    def _cool(self, record: Record, call: Call, outcome: Outcome, scene: Scene) -> None:
        """Leave a destination alone that asked for it, be it late. What was held was heeded when it came."""
        if outcome.cool_seconds is None:
            return
        if call.held is None:
            scene.heed(call, outcome)
        place = cooling_place(call.request.destination, call.key.secret)
        cooling = scene.cooling.get(place)
        if cooling is not None:
            record.cool(place, cooling.until, cooling.status)

    def load(self, record: Record, frames: list[Frame], epoch: int) -> None:
        """Take in what a process that ended left in the spool."""
        take_in(record, frames)
        note_epoch(record, epoch)

    def recover(self, record: Record) -> dict[int, Cooldown]:
        """What was on the wire when the process ended is unknown; what an embedded model was at just did not happen.
        Who asked to be left alone still is.
        """
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for dispatch, sent_at, local in record.open_dispatches():
            state = State.FAILED if local else State.UNKNOWN
            record.add_outcome(dispatch, 1, Outcome(state, Why.STOPPED), max(0, now - sent_at) // 1000, now)
        cooling: dict[int, Cooldown] = {}
        for place, until, status in record.cooldowns(now):
            seconds = min((until - now) / SECOND, DAY / SECOND)
            cooling[place] = Cooldown(monotonic + seconds, until, status)
        return cooling


def _spend(record: Record, upstream: str, day: int, waiting: Unwritten | None) -> int:
    """Count a sending against the day; how many that makes. What waits is counted when it is written."""
    if waiting is None:
        return record.spend(upstream, day)
    return record.spent(upstream, day) + waiting.sent_to(upstream) + 1


def _spend_token(record: Record, token: int, day: int, waiting: Unwritten | None) -> int:
    """The same, on a token's budget."""
    if waiting is None:
        return record.spend_token(token, day)
    return record.spent_token(token, day) + waiting.sent_for(token) + 1


def _read(record: Record, message: Message[Any], now: int) -> Effect:
    """What messages that only read are answered with; None for those that need nothing of the record."""
    match message:
        case Show(request_id, n):
            return record.show(request_id, n, now)
        case History(request_id, most):
            return record.history(request_id, most)
        case Judged(number):
            return judged(record, number, now)
        case Abouts():
            return abouts(record, message, now)
        case Versions(request_id, after, most):
            return record.versions(request_id, after, most)
        case Named(call_id, visitor):
            return record.named(call_id, visitor=visitor)
        case Recall(question):
            return record.recall(question)
        case Feed():
            return record.feed(message)
        case Totals():
            return record.so_far()
        case Check(mark, most):
            return check(record.db, mark, most)
        case Tokens():
            return record.tokens_in_use(now // DAY)
        case _:
            return None


def _check_token(record: Record, message: Ask, known: Known) -> None:
    """May this token pick so, as the request stands? Raises BadToken, Forbidden."""
    if message.caller.token and isinstance(message.pick, Fresh):
        unknown = known.total == 0 and known.unknown_at is not None
        if not may_ask(admit(record.token(message.caller.token)), message.pick, unknown=unknown):
            raise Forbidden(NOT_AFRESH)


def _key(upstream: Upstream, message: Ask) -> Key:
    """The key a call goes up with: the upstream's, or where it has none the asker's own."""
    return upstream.key if upstream.key.secret else message.key


def named(error: Exception) -> str:
    """An error's kind, and SQLite's name for it. Never a foreign text, which may quote what somebody asked."""
    if isinstance(error, LogFull | StoreGone):
        return f"{type(error).__name__}: {error}"
    return f"{type(error).__name__} {getattr(error, 'sqlite_errorname', '')}".strip()
