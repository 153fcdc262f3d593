"""What the record promises, as a book kept beside a simulated run: it knows only what askers and the model saw.

Each thing that must not be is a fault in words; the run looks for them after every step.
What must never be here: the actor, the store's own code.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from archive.actor.store.ledger import Ledger
from archive.attempts import Came, State, read
from archive.errors import ArchiveError, Erased, NotKept, Withdrawn
from archive.messages import Answered, Sent
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from archive.when import DAY, SECOND
from tests.chain import broken
from tests.fakes import FakeClock
from tests.fakes import request as asked_for
from tests.faults.standing import Before, Page, Sending, Standing

CALL_SECONDS, PAID_SECONDS = 30.0, 60

_ANSWERS = """SELECT a.request, s.bytes, a.n, t.bytes FROM answer a
 JOIN request r ON r.id = a.request JOIN text s ON s.id = r.state
 JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply ORDER BY a.request, a.n"""

_REQUEST = "SELECT r.id FROM request r JOIN text s ON s.id = r.state WHERE s.bytes = ?"

_SENDINGS = """SELECT r.id, s.bytes, (SELECT group_concat(state) FROM
 (SELECT state FROM outcome o WHERE o.dispatch = d.id ORDER BY n)) FROM dispatch d
 JOIN request r ON r.id = d.request JOIN text s ON s.id = r.state ORDER BY d.id"""


class Book:
    """Everything that was said and seen."""

    def __init__(self, clock: FakeClock, day_calls_max: int) -> None:
        self.clock = clock
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self.page = Page()
        self.owed: dict[bytes, str] = {}
        """Answers that were handed out as not recorded yet, and whose."""
        self.replies: dict[bytes, str] = {}
        self.erasures = 0
        self._backup: Page | None = None
        self._erasing: tuple[str, int | None] | None = None
        self._silent: set[str] = set()
        """Erased words that nobody has said again."""
        self._justified: dict[str, list[Pick]] = {}
        self._cooling: dict[str, float] = {}
        self._cooling_next: dict[str, float] = {}
        self._day_calls_max = day_calls_max

    def of(self, words: str) -> Standing:
        return self.page.standings.setdefault(words, Standing())

    def all(self) -> list[tuple[str, Standing]]:
        """Every request there is or was, with its words."""
        gone = [(f"erased request {request}", stands) for request, stands in self.page.gone.items()]
        return [*self.page.standings.items(), *gone]

    def fault(self, text: str) -> None:
        self.faults.append(text)

    # -- what happens ------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Another step begins; all that was asked before was worked."""
        self._justified.clear()
        self._cooling |= self._cooling_next
        self._cooling_next.clear()

    def asked(self, words: str, pick: Pick) -> None:
        self._silent.discard(words)
        self._justified.setdefault(words, []).append(pick)

    def was_asked(self, words: str) -> bool:
        """In this step?"""
        return words in self._justified

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
        self.page.day_calls[day] += 1
        if self.page.day_calls[day] > self._day_calls_max:
            self.fault(f"{words}: more than the calls of a day")
        sending = Sending(words, key, self.clock.monotonic(), came, stands)
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
        now, stands = self.clock.now(), sending.stands
        outcome = sending.outcome = read(asked_for(sending.words), came, now)
        self.seen[outcome.state.name.lower()] += 1
        if outcome.cool_seconds is not None:
            ends = self.clock.monotonic() + outcome.cool_seconds
            sending.cool_until = now + round(outcome.cool_seconds * SECOND)
            self._cooling_next[sending.key] = max(
                ends, self._cooling.get(sending.key, 0.0), self._cooling_next.get(sending.key, 0.0)
            )
        if outcome.state is State.ANSWERED and outcome.reply is not None:
            if stands is self.page.standings.get(sending.words):
                self.replies[outcome.reply.body] = sending.words
            later = stands.sendings[stands.sendings.index(sending) + 1 :]
            stands.unknown = any(one.states[-1:] == (State.UNKNOWN,) for one in later)
        elif outcome.state is State.UNKNOWN:
            stands.unknown = True
        elif not sending.overdue:
            stands.paid_until = now + PAID_SECONDS * SECOND if outcome.paid else 0

    def time_passes(self, seconds: float) -> None:
        """Before the clock goes on: whose limit runs out?"""
        for _, stands in self.all():
            for one in stands.sendings:
                if one.outcome is None and one.sent + CALL_SECONDS <= self.clock.monotonic() + seconds:
                    one.overdue = stands.unknown = True

    def clock_set(self, seconds: float) -> None:
        """Set back, what is measured in moments of the wall clock may seem to end sooner."""
        seconds = max(-seconds, 0.0)
        for _, stands in self.all():
            stands.paid_until -= round(seconds * SECOND)
        for one in (*self.page.cooled, *(one for _, stands in self.all() for one in stands.sendings)):
            one.cool_until -= round(seconds * SECOND)

    # -- what the owner does -----------------------------------------------------------------------------------------

    def erasing(self, words: str, db: sqlite3.Connection) -> None:
        """The owner is about to erase these words."""
        found = db.execute(_REQUEST, (f'"{words}"'.encode(),)).fetchall()
        self._erasing = words, found[0][0] if found else None

    def erased(self) -> None:
        """What was about to be erased is, on disk."""
        assert self._erasing is not None
        words, request = self._erasing
        self._erasing = None
        self.erasures += 1
        self.seen["erasures"] += 1
        if words not in self._justified:
            self._silent.add(words)
        self.page.erase(words, request)
        if self._backup is not None:
            self._backup.erase(words, request)
        for body in [body for body, whose in self.replies.items() if whose == words or words.encode() in body]:
            del self.replies[body]
            self.owed.pop(body, None)

    def not_erased(self) -> None:
        """It was refused."""
        self._erasing = None

    def search(self, files: Iterable[Path]) -> None:
        """The process has ended well: no file has a word that was erased and not said again."""
        for file in files:
            data = file.read_bytes() if file.exists() else b""
            for words in self._silent:
                if words.encode() in data:
                    self.fault(f"{words}: erased, and in {file.name}")

    def backed_up(self) -> None:
        self.seen["backups"] += 1
        self._backup = self.page.copy()

    def restored(self) -> None:
        """The backup is in the store's place: what came after is no more, but what was erased still is."""
        assert self._backup is not None
        self.seen["restored"] += 1
        self.page = self._backup.copy()
        self.owed.clear()

    # -- what askers are told ----------------------------------------------------------------------------------------

    def told(self, words: str, pick: Pick, before: Before, said: Answered | ArchiveError) -> None:
        """An asker got this; `before`: how things were when he asked."""
        stands, same = self.of(words), before.erasures == self.erasures
        if isinstance(said, ArchiveError):
            self._refused(words, pick, before, said)
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
        if kept.n in stands.withdrawn | stands.emptied:
            self.fault(f"{words}: {pick} got version {kept.n}, which was taken back")
        if same and isinstance(pick, KeptOnly | Latest) and kept.n < before.newest:
            self.fault(f"{words}: {pick} got version {kept.n}, which is not the newest")
        self._version(words, kept.n, kept.body)

    def _refused(self, words: str, pick: Pick, before: Before, said: ArchiveError) -> None:
        stands, same = self.of(words), before.erasures == self.erasures
        self.seen[said.code] += 1
        if said.code == "internal":
            self.fault(f"{words}: an asker was told of a fault of ours")
        known = (isinstance(pick, Version) and pick.n in before.usable) or (
            isinstance(pick, KeptOnly | Latest) and before.newest
        )
        if known and same and said.code != "busy":
            self.fault(f"{words}: {pick} was refused ({said.code}) although it is kept")
        if isinstance(said, Withdrawn) and isinstance(pick, Version) and same and pick.n not in stands.withdrawn:
            self.fault(f"{words}: {pick} was withdrawn by nobody")
        if isinstance(said, Erased) and same and not (isinstance(pick, Version) and pick.n in stands.emptied):
            self.fault(f"{words}: {pick} was erased by nobody")
        if isinstance(said, NotKept) and isinstance(pick, Fresh | Latest):
            self.fault(f"{words}: {pick} was told that nothing is kept")

    def _version(self, words: str, n: int, body: bytes) -> None:
        if self.of(words).bodies.setdefault(n, body) != body:
            self.fault(f"{words}: version {n} is another than before")

    # -- what is on record -------------------------------------------------------------------------------------------

    def look(self, db: sqlite3.Connection, *, caught_up: bool) -> None:
        """Compare with the record; `caught_up`: nothing waits to be written."""
        found: dict[int, list[bytes | None]] = {}
        for request, state, n, body in db.execute(_ANSWERS).fetchall():
            words, stands = self._whose(request, state)
            versions = found.setdefault(id(stands), [])
            versions.append(body)
            if len(versions) != n:
                self.fault(f"{words}: versions with a gap before {n}")
            self._look(words, stands, n, body, is_gone=state is None)
        for words, stands in self.all():
            kept, known = len(found.get(id(stands), ())), len(stands.bodies)
            if kept < known or (kept > known and words in self.page.standings):
                self.fault(f"{words}: {known} versions were told of, {kept} are kept")
        often = Counter(body for bodies in found.values() for body in bodies if body is not None)
        if any(count > 1 for count in often.values()):
            self.fault("one reply became two versions")
        if caught_up:
            for body, words in self.owed.items():
                if not often[body]:
                    self.fault(f"{words}: told as not recorded yet, and never was")
            self.owed.clear()

    def _whose(self, request: int, state: bytes | None) -> tuple[str, Standing]:
        """The words of a request, and how it stands. Without its words it must be one that was erased."""
        if state is not None:
            words = state.decode().strip('"')
            return words, self.of(words)
        if request not in self.page.gone:
            self.fault(f"request {request}: empty, and erased by nobody")
        return f"erased request {request}", self.page.gone.setdefault(request, Standing())

    def _look(self, words: str, stands: Standing, n: int, body: bytes | None, *, is_gone: bool) -> None:
        """One version; `is_gone`: of a request that was erased, whose calls on the wire keep nothing."""
        if body is None or n in stands.emptied:
            if body is not None or not (n in stands.emptied or (is_gone and n not in stands.bodies)):
                self.fault(f"{words}: version {n} is {'still there' if body else 'empty, and erased by nobody'}")
            if not is_gone:
                stands.bodies.setdefault(n, b"")
        elif is_gone:
            if stands.bodies.get(n) != body:
                self.fault(f"{words}: version {n} came after the words were erased")
        else:
            if self.replies.get(body) != words:
                self.fault(f"{words}: version {n} is nothing that was ever replied to it")
            self._version(words, n, body)

    def account(self, db: sqlite3.Connection) -> None:
        """While a process lives and nothing waits: each call it made, and nothing else, is on record as it ended."""
        for words, stands, rows in self._rows(db):
            ours = [one.states for one in stands.sendings]
            if rows != ours:
                self.fault(f"{words}: the calls ended as {ours}, on record as {rows}")

    def begin(self, db: sqlite3.Connection, *, stopped: bool, clean: bool) -> None:
        """A process is there again. What the one before it had on the wire or had not written is unknown, and no more.

        `stopped`: it had time to end what it did; `clean`: it could also write all of it.
        """
        if self._erasing is not None:
            # Killed in the midst of it: wholly done, or not begun.
            words = self._erasing[0].encode()
            left = db.execute("SELECT count(*) FROM text WHERE instr(bytes, ?)", (words,)).fetchone()[0]
            self.not_erased() if left else self.erased()
        for words, stands, rows in self._rows(db):
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
        for one in self.page.cooled:
            ends = self.clock.monotonic() + (one.cool_until - self.clock.now()) / SECOND
            self._cooling[one.key] = max(ends, self._cooling.get(one.key, 0.0))

    def _renew(self, stands: Standing, rows: list[tuple[int, ...]]) -> None:
        recorded = zip(stands.sendings, rows, strict=False)
        self.page.cooled += [one for one, states in recorded if states == (State.FAILED,) and one.cool_until]
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

    def _rows(self, db: sqlite3.Connection) -> list[tuple[str, Standing, list[tuple[int, ...]]]]:
        """What is on record of the sendings of this process, request by request."""
        found: dict[int, list[tuple[int, ...]]] = {}
        for request, state, states in db.execute(_SENDINGS).fetchall():
            _, stands = self._whose(request, state)
            found.setdefault(id(stands), []).append(tuple(map(int, states.split(","))) if states else ())
        return [(words, stands, found.get(id(stands), [])[stands.settled :]) for words, stands in self.all()]

    def whole(self, db: sqlite3.Connection, store: Path) -> None:
        """The chain, SQLite's own check, no sending without an outcome, and all is empty that the ledger names."""
        for line in Ledger(store).lines():
            text = db.execute("SELECT bytes FROM text WHERE id = ? AND chain = ?", (line.text, line.chain)).fetchone()
            if text is not None and text[0] is not None:
                self.fault(f"text {line.text} is erased by the ledger, and there")
        if broken(db):
            self.fault(f"the chain is broken at {broken(db)}")
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            self.fault("the file is damaged")
        if db.execute(
            "SELECT count(*) FROM dispatch d WHERE NOT EXISTS (SELECT 1 FROM outcome o WHERE o.dispatch = d.id)"
        ).fetchone()[0]:
            self.fault("a sending has no outcome")
