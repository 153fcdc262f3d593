"""What the record promises, as a book kept beside a simulated run: it knows only what askers and the model saw.

Each thing that must not be is a fault in words; the run looks for them after every step.
What must never be here: the actor, the store's own code.
"""

import asyncio
import sqlite3
from collections import Counter
from dataclasses import dataclass, field

from archive.attempts import Came, Outcome, State, read
from archive.errors import ArchiveError, NotKept, Withdrawn
from archive.messages import Answered, Sent
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from archive.when import DAY, SECOND
from tests.chain import broken
from tests.fakes import FakeClock, request

CALL_SECONDS, PAID_SECONDS = 30.0, 60

_ANSWERS = """SELECT s.bytes, a.n, t.bytes FROM answer a
 JOIN request r ON r.id = a.request JOIN text s ON s.id = r.state
 JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply ORDER BY a.request, a.n"""

_SENDINGS = """SELECT s.bytes, d.id, (SELECT group_concat(state) FROM
 (SELECT state FROM outcome o WHERE o.dispatch = d.id ORDER BY n)) FROM dispatch d
 JOIN request r ON r.id = d.request JOIN text s ON s.id = r.state ORDER BY d.id"""


@dataclass(eq=False)
class Sending:
    """One call as the model saw it."""

    words: str
    key: str
    sent: float
    came: asyncio.Future[Came]
    outcome: Outcome | None = None
    overdue: bool = False
    cool_until: int = 0

    @property
    def states(self) -> tuple[int, ...]:
        """The outcomes that the record must have of it."""
        if self.outcome is None:
            return (State.UNKNOWN,) if self.overdue else ()
        if self.overdue:
            return (State.UNKNOWN, State.ANSWERED) if self.outcome.state is State.ANSWERED else (State.UNKNOWN,)
        return (self.outcome.state,)


@dataclass
class Standing:
    """What is known of one request."""

    bodies: dict[int, bytes] = field(default_factory=dict[int, bytes])
    withdrawn: set[int] = field(default_factory=set[int])
    unknown: bool = False
    paid_until: int = 0
    settled: int = 0
    """Sendings on record that earlier processes made."""
    sendings: list[Sending] = field(default_factory=list[Sending])
    """Those of this process."""

    @property
    def newest(self) -> int:
        return max((n for n in self.bodies if n not in self.withdrawn), default=0)


class Book:
    """Everything that was said and seen."""

    def __init__(self, clock: FakeClock, day_calls_max: int) -> None:
        self.clock = clock
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self.standings: dict[str, Standing] = {}
        self.owed: dict[bytes, str] = {}
        """Answers that were handed out as not recorded yet, and whose."""
        self.replies: dict[bytes, str] = {}
        self._justified: dict[str, list[Pick]] = {}
        self._cooling: dict[str, float] = {}
        self._cooling_next: dict[str, float] = {}
        self._cooled: list[Sending] = []
        self._day_calls: Counter[int] = Counter()
        self._day_calls_max = day_calls_max

    def of(self, words: str) -> Standing:
        return self.standings.setdefault(words, Standing())

    def fault(self, text: str) -> None:
        self.faults.append(text)

    # -- what happens ------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Another step begins; all that was asked before was worked."""
        self._justified.clear()
        self._cooling |= self._cooling_next
        self._cooling_next.clear()

    def asked(self, words: str, pick: Pick) -> None:
        self._justified.setdefault(words, []).append(pick)

    def sent(self, words: str, key: str, came: asyncio.Future[Came]) -> Sending:
        """A call is on the wire. Was anybody allowed to make it?"""
        self.seen["calls"] += 1
        stands = self.of(words)
        if any(one.outcome is None and not one.overdue for one in stands.sendings):
            self.fault(f"{words}: on the wire twice")
        if not any(self._may_send(stands, pick) for pick in self._justified.get(words, [])):
            picks = self._justified.get(words, [])
            self.fault(f"{words}: sent for {picks}, {stands.newest=} {len(stands.bodies)=} {stands.unknown=}")
        if self.clock.monotonic() < self._cooling.get(key, 0.0):
            self.fault(f"{words}: sent while its destination was to be left alone")
        day = self.clock.now() // DAY
        self._day_calls[day] += 1
        if self._day_calls[day] > self._day_calls_max:
            self.fault(f"{words}: more than the calls of a day")
        sending = Sending(words, key, self.clock.monotonic(), came)
        stands.sendings.append(sending)
        return sending

    def _may_send(self, stands: Standing, pick: Pick) -> bool:
        match pick:
            case Fresh(sure):
                return sure or not stands.unknown
            case Latest():
                return not (stands.bodies or stands.unknown or self.clock.now() < stands.paid_until)
            case _:
                return False

    def replied(self, sending: Sending, came: Came) -> None:
        """The model says something at last."""
        now, stands = self.clock.now(), self.of(sending.words)
        outcome = sending.outcome = read(request(sending.words), came, now)
        self.seen[outcome.state.name.lower()] += 1
        if outcome.cool_seconds is not None:
            ends = self.clock.monotonic() + outcome.cool_seconds
            sending.cool_until = now + round(outcome.cool_seconds * SECOND)
            self._cooling_next[sending.key] = max(
                ends, self._cooling.get(sending.key, 0.0), self._cooling_next.get(sending.key, 0.0)
            )
        if outcome.state is State.ANSWERED and outcome.reply is not None:
            self.replies[outcome.reply.body] = sending.words
            later = stands.sendings[stands.sendings.index(sending) + 1 :]
            stands.unknown = any(one.states[-1:] == (State.UNKNOWN,) for one in later)
        elif outcome.state is State.UNKNOWN:
            stands.unknown = True
        elif not sending.overdue:
            stands.paid_until = now + PAID_SECONDS * SECOND if outcome.paid else 0

    def time_passes(self, seconds: float) -> None:
        """Before the clock goes on: whose limit runs out?"""
        for stands in self.standings.values():
            for one in stands.sendings:
                if one.outcome is None and one.sent + CALL_SECONDS <= self.clock.monotonic() + seconds:
                    one.overdue = stands.unknown = True

    def clock_set(self, seconds: float) -> None:
        """Set back, what is measured in moments of the wall clock may seem to end sooner."""
        seconds = max(-seconds, 0.0)
        for stands in self.standings.values():
            stands.paid_until -= round(seconds * SECOND)
        for one in (*self._cooled, *(one for stands in self.standings.values() for one in stands.sendings)):
            one.cool_until -= round(seconds * SECOND)

    # -- what askers are told ----------------------------------------------------------------------------------------

    def told(self, words: str, pick: Pick, before: tuple[int, frozenset[int]], said: Answered | ArchiveError) -> None:
        """An asker got this; `before`: the newest version and all usable ones when he asked."""
        stands = self.of(words)
        if isinstance(said, ArchiveError):
            self.seen[said.code] += 1
            if said.code == "internal":
                self.fault(f"{words}: an asker was told of a fault of ours")
            known = (isinstance(pick, Version) and pick.n in before[1]) or (
                isinstance(pick, KeptOnly | Latest) and before[0]
            )
            if known and said.code != "busy":
                self.fault(f"{words}: {pick} was refused ({said.code}) although it is kept")
            if isinstance(said, Withdrawn) and isinstance(pick, Version) and pick.n not in stands.withdrawn:
                self.fault(f"{words}: {pick} was withdrawn by nobody")
            if isinstance(said, NotKept) and isinstance(pick, Fresh | Latest):
                self.fault(f"{words}: {pick} was told that nothing is kept")
            return
        kept = said.kept
        self.seen["told"] += 1
        if self.replies.get(kept.body) != words:
            self.fault(f"{words}: an answer that was not given to it")
        if isinstance(pick, KeptOnly | Version) and said.sent is not Sent.NOT_SENT:
            self.fault(f"{words}: {pick} came as {said.sent}")
        if isinstance(pick, Fresh) and said.sent is Sent.NOT_SENT:
            self.fault(f"{words}: a fresh answer was not sent for")
        if not kept.recorded:
            self.seen["told, not recorded"] += 1
            self.owed[kept.body] = words
            return
        if isinstance(pick, Version) and kept.n != pick.n:
            self.fault(f"{words}: {pick} got version {kept.n}")
        if kept.n in stands.withdrawn or (isinstance(pick, KeptOnly | Latest) and kept.n < before[0]):
            self.fault(f"{words}: {pick} got version {kept.n}, which is not the newest")
        self._version(words, kept.n, kept.body)

    def _version(self, words: str, n: int, body: bytes) -> None:
        if self.of(words).bodies.setdefault(n, body) != body:
            self.fault(f"{words}: version {n} is another than before")

    # -- what is on record -------------------------------------------------------------------------------------------

    def look(self, db: sqlite3.Connection, *, caught_up: bool) -> None:
        """Compare with the record; `caught_up`: nothing waits to be written."""
        found: dict[str, list[bytes]] = {}
        for state, n, body in db.execute(_ANSWERS).fetchall():
            words = state.decode().strip('"')
            found.setdefault(words, []).append(body)
            if len(found[words]) != n:
                self.fault(f"{words}: versions with a gap before {n}")
            if self.replies.get(body) != words:
                self.fault(f"{words}: version {n} is nothing that was ever replied to it")
            self._version(words, n, body)
        for words, stands in self.standings.items():
            if len(found.get(words, ())) != len(stands.bodies):
                self.fault(f"{words}: {len(stands.bodies)} versions were told of, {len(found.get(words, ()))} are kept")
        often = Counter(body for bodies in found.values() for body in bodies)
        if any(count > 1 for count in often.values()):
            self.fault("one reply became two versions")
        if caught_up:
            for body, words in self.owed.items():
                if not often[body]:
                    self.fault(f"{words}: told as not recorded yet, and never was")
            self.owed.clear()

    def account(self, db: sqlite3.Connection) -> None:
        """While a process lives and nothing waits: each call it made, and nothing else, is on record as it ended."""
        for words, rows in self._rows(db).items():
            ours = [one.states for one in self.of(words).sendings]
            if rows != ours:
                self.fault(f"{words}: the calls ended as {ours}, on record as {rows}")

    def begin(self, db: sqlite3.Connection, *, stopped: bool, clean: bool) -> None:
        """A process is there again. What the one before it had on the wire or had not written is unknown, and no more.

        `stopped`: it had time to end what it did; `clean`: it could also write all of it.
        """
        for words, rows in self._rows(db).items():
            stands = self.of(words)
            if len(rows) < len(stands.sendings) or (clean and len(rows) > len(stands.sendings)):
                self.fault(f"{words}: {len(stands.sendings)} calls, {len(rows)} on record")
            for number, states in enumerate(rows):
                one = stands.sendings[number] if number < len(stands.sendings) else None
                ended = () if one is None else one.states
                allowed: list[tuple[int, ...]] = [ended] if ended else []
                if not ended or not stopped:
                    allowed.append((State.UNKNOWN,))
                if states not in allowed:
                    self.fault(f"{words}: a call of an ended process is {states}, none of {allowed}")
                self.seen["unknown after an end"] += one is not None and one.outcome is None
            self._renew(stands, rows)
        for one in self._cooled:
            ends = self.clock.monotonic() + (one.cool_until - self.clock.now()) / SECOND
            self._cooling[one.key] = max(ends, self._cooling.get(one.key, 0.0))

    def _renew(self, stands: Standing, rows: list[tuple[int, ...]]) -> None:
        recorded = zip(stands.sendings, rows, strict=False)
        self._cooled += [one for one, states in recorded if states == (State.FAILED,) and one.cool_until]
        for states in rows:
            stands.unknown = states[-1] == State.UNKNOWN or (stands.unknown and states[-1] == State.FAILED)
        if not rows or rows[-1] != (State.FAILED,):
            stands.paid_until = 0
        stands.settled += len(rows)
        stands.sendings.clear()

    def restarted(self, clock: FakeClock) -> None:
        """Another process, another clock that only goes forward."""
        self.clock = clock
        self._cooling.clear()
        self._cooling_next.clear()

    def _rows(self, db: sqlite3.Connection) -> dict[str, list[tuple[int, ...]]]:
        found: dict[str, list[tuple[int, ...]]] = {}
        for state, _, states in db.execute(_SENDINGS).fetchall():
            found.setdefault(state.decode().strip('"'), []).append(tuple(map(int, states.split(","))) if states else ())
        for words in self.standings:
            found.setdefault(words, [])
        return {words: rows[self.of(words).settled :] for words, rows in found.items()}

    def whole(self, db: sqlite3.Connection) -> None:
        """The chain, SQLite's own check, and no sending without an outcome."""
        if broken(db):
            self.fault(f"the chain is broken at {broken(db)}")
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            self.fault("the file is damaged")
        if db.execute(
            "SELECT count(*) FROM dispatch d WHERE NOT EXISTS (SELECT 1 FROM outcome o WHERE o.dispatch = d.id)"
        ).fetchone()[0]:
            self.fault("a sending has no outcome")
