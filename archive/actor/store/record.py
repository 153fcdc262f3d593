"""The record by subject: requests, sendings, outcomes, answers, and the few things that change beside them.

Every function here runs inside the transaction store/file.py opened. What must never be here: a rule (those are plain
functions in archive/*.py), a clock, anything awaited.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from archive.actor.store.places import Places, as_bytes, as_text
from archive.actor.store.questions import Questions
from archive.actor.store.standings import Standings
from archive.actor.store.tokens import Tokens
from archive.attempts import WHY_TEXT, Outcome, Reply, State, Why
from archive.errors import ArchiveError, CallFailed, Erased, NotFound
from archive.messages import SAID_BYTES_MAX, Kept, Looked, Numbered, Shown
from archive.picks import Known, Last, Version, decide
from archive.request import Destination, Parts, Request, call_id, digest, fingerprint, join, named_between, split
from archive.when import shown as moment

SENT, IMPORTED = 1, 2
"""Origins of a dispatch."""


class Found(NamedTuple):
    """A request that is on record."""

    id: int
    call_id: str


_CANDIDATES = """
SELECT r.id, r.destination, p.bytes, c.bytes, h.bytes, i.bytes, s.bytes, r.state_at, m.bytes, r.model_at, r.whole
FROM request_key k JOIN request r ON r.id = k.request
JOIN text c ON c.id = r.content_type JOIN text i ON i.id = r.instructions
LEFT JOIN text p ON p.id = r.partition LEFT JOIN text h ON h.id = r.headers
LEFT JOIN text s ON s.id = r.state LEFT JOIN text m ON m.id = r.model
WHERE k.hash = ?"""

_WHOLE = """
SELECT r.destination, p.bytes, c.bytes, h.bytes, i.bytes, s.bytes, r.state_at, m.bytes, r.model_at, r.whole
FROM request r JOIN text c ON c.id = r.content_type JOIN text i ON i.id = r.instructions
LEFT JOIN text p ON p.id = r.partition LEFT JOIN text h ON h.id = r.headers
LEFT JOIN text s ON s.id = r.state LEFT JOIN text m ON m.id = r.model
WHERE r.id = ?"""

_WITHDRAWN = "coalesce((SELECT withdrawn FROM withdrawal w WHERE w.answer = a.id ORDER BY w.id DESC LIMIT 1), 0)"

_USABLE = f"""
SELECT a.n FROM answer a JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply
WHERE a.request = ? AND t.bytes IS NOT NULL AND {_WITHDRAWN} = 0 ORDER BY a.n DESC LIMIT ?"""

_LAST = """
SELECT d.id, d.at, o.state, o.at, o.paid, o.why, o.status, t.bytes, c.bytes, p.bytes
FROM dispatch d LEFT JOIN outcome o ON o.dispatch = d.id LEFT JOIN text t ON t.id = o.reply
LEFT JOIN text c ON c.id = o.content_type LEFT JOIN text p ON p.id = o.provider_id
WHERE d.request = ? ORDER BY d.id DESC, o.n DESC LIMIT 1"""

_UNKNOWN = """
SELECT d.at, d.id FROM dispatch d JOIN outcome o ON o.dispatch = d.id AND o.n = 1 AND o.state = 3
WHERE d.request = ? AND NOT EXISTS (SELECT 1 FROM outcome l WHERE l.dispatch = d.id AND l.n = 2)
AND NOT EXISTS (SELECT 1 FROM answer a JOIN outcome k ON k.id = a.outcome WHERE a.request = d.request
    AND k.dispatch > d.id)
ORDER BY d.at DESC, d.id DESC LIMIT 1"""

_KEPT = """
SELECT o.status, t.bytes, c.bytes, p.bytes, o.at, o.ms, m.bytes, o.input_tokens, o.output_tokens, o.cost,
    x.bytes, o.cut_short, f.bytes
FROM answer a JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply JOIN dispatch d ON d.id = o.dispatch
LEFT JOIN text c ON c.id = o.content_type LEFT JOIN text p ON p.id = o.provider_id
LEFT JOIN text f ON f.id = d.imported_from
LEFT JOIN text m ON m.id = o.answered_model LEFT JOIN text x ON x.id = o.cuts
WHERE a.request = ? AND a.n = ?"""


class Record(Questions, Standings, Tokens, Places):
    """Everything the actor reads and writes of the record, on the one writing connection."""

    @property
    def schema(self) -> int:
        """The version of the store's schema."""
        return self.one("PRAGMA user_version")[0]

    def find(self, request: Request) -> Found | None:
        """The request on record whose every byte agrees, or None."""
        name = digest(request)
        for row in self.db.execute(_CANDIDATES, (fingerprint(name),)).fetchall():
            if self._same(request, row):
                return Found(row[0], name.hex()[:12])
        return None

    def _same(self, request: Request, row: Any) -> bool:
        _, destination, partition, content_type, headers, instructions, state, state_at, model, model_at, whole = row
        if instructions is None:
            return False
        # By its number, which is remembered; by its words where the look-up leads to none of them, or to copies that
        # were written while it did not. A request of that place is not sent again for this.
        if destination != self.destination(request.destination) and self.place(destination) != request.destination:
            return False
        if not whole and (state is None or model is None):
            return False  # its words were erased: it matches nothing
        parts = Parts(instructions) if whole else Parts(instructions, state, state_at, model, model_at)
        return (
            join(parts) == request.body
            and content_type == as_bytes(request.content_type)
            and (headers or b"") == _header_bytes(request)
            and (partition or b"") == as_bytes(request.partition)
        )

    def add_request(self, request: Request) -> Found:
        """Write a request that is not on record yet, in parts."""
        name, parts = digest(request), split(request.body)
        number = self.add(
            "request",
            self.optional(request.partition),
            self.destination(request.destination, make=True),
            self.text(as_bytes(request.content_type)),
            self.optional(_header_bytes(request)),
            self.text(parts.instructions),
            None if parts.state is None else self.text(parts.state),
            None if parts.state is None else parts.state_at,
            None if parts.model is None else self.text(parts.model),
            None if parts.model is None else parts.model_at,
            int(parts.whole),
        )
        self.db.execute("INSERT INTO request_key (hash, request) VALUES (?, ?)", (fingerprint(name), number))
        return Found(number, name.hex()[:12])

    def known(self, request: int, named: int | None) -> Known:
        """What a pick needs to know of a request; `named` is the version a Version(n) asks for."""
        total = self.one("SELECT coalesce(max(n), 0) FROM answer WHERE request = ?", request)[0]
        newest = self.one(_USABLE, request, 1) if total else None
        last = self._last(request)
        unknown = self.one(_UNKNOWN, request) if last and last.state is not State.ANSWERED else None
        return Known(
            total,
            newest and newest[0],
            self.standing(request, named) if named else None,
            last,
            *(unknown or (None, None)),
        )

    def _last(self, request: int) -> Last | None:
        row = self.one(_LAST, request)
        if row is None:
            return None
        dispatch, sent_at, state, ended_at, paid, why, status, reply, content_type, provider_id = row
        if state is None:
            return Last(dispatch, sent_at)
        failure = None
        if state == State.FAILED:
            said = None if reply is None else Reply(status, reply, as_text(content_type), as_text(provider_id))
            failure = CallFailed(WHY_TEXT[Why(why)], reply=said, at=ended_at)
        return Last(dispatch, sent_at, State(state), ended_at, bool(paid), failure)

    def kept(self, found: Found, n: int, total: int) -> Kept:
        """Version `n` of a request, whole."""
        row = self.one(_KEPT, found.id, n)
        status, body, content_type, provider_id, at, ms, model, tokens_in, tokens_out, cost, cuts, cut_short, source = (
            row
        )
        return Kept(
            found.call_id,
            n,
            total,
            status,
            body,
            as_text(content_type),
            as_text(provider_id),
            at,
            ms,
            None if model is None else as_text(model),
            tokens_in,
            tokens_out,
            cost,
            request_id=found.id,
            cuts=() if cuts is None else msgspec.json.decode(cuts, type=tuple[int, ...]),
            cut_short=bool(cut_short),
            imported_from=as_text(source),
        )

    def look(self, request: Request, n: int | None, now: int, *, visitor: bool = False) -> Looked:
        """How a request stands: its answer `n`, or the newest usable one. Nothing is sent for it, ever.

        To a `visitor` a request that is not for visitors looks like one that is not there.
        """
        found = self.find(request)
        if found is None or (visitor and self.is_hidden(found.id)):
            return Looked(call_id(request), gone=_gone(Version(n), Known(), now) if n else "")
        return self._looked(found, n, now)

    def _looked(self, found: Found, n: int | None, now: int) -> Looked:
        known = self.known(found.id, n)
        gone = _gone(Version(n), known, now) if n else ""
        number = known.newest if n is None else n
        last = known.last
        return Looked(
            found.call_id,
            found.id,
            self.kept(found, number, known.total) if number and not gone else None,
            known.total,
            gone,
            last.sent_at if last and last.state is None else None,
            known.unknown_at,
            _failed(last) if last else "",
            refused=last is not None and _is_refused(last),
            named=known.named,
            said=_said(last) if last else b"",
        )

    def show(self, number: int, n: int | None, now: int) -> Shown:
        """Request `number` whole, and its answer `n` or the newest. Raises NotFound, Erased."""
        request = self.request(number)
        return Shown(request, self._looked(Found(number, call_id(request)), n, now))

    def request(self, number: int) -> Request:
        """Request `number` whole. Raises NotFound, Erased."""
        row = self.one(_WHOLE, number)
        if row is None:
            raise NotFound(f"There is no request number {number}.")
        erased_at = self.erased_at(number)
        if erased_at is not None:
            raise Erased(f"The words of this request were erased on {moment(erased_at)}.", at=erased_at)
        place = self.place(row[0])
        return request_of((*map(as_bytes, (place.name, place.method, place.url)), *row[1:]))

    def history(self, number: int, most: int) -> tuple[Kept, ...]:
        """The usable answers of request `number`, newest first."""
        erased = self.erased_at(number) is not None
        versions = [] if erased else [n for (n,) in self.db.execute(_USABLE, (number, most)).fetchall()]
        total = self.one("SELECT coalesce(max(n), 0) FROM answer WHERE request = ?", number)[0]
        return tuple(self.kept(Found(number, ""), n, total) for n in versions)

    def versions(self, number: int, after: int, most: int) -> tuple[Numbered, ...]:
        """The versions of request `number` from `after` on, in order, with how each stands."""
        total = self.one("SELECT coalesce(max(n), 0) FROM answer WHERE request = ?", number)[0]
        found = Found(number, "")
        standings = [self.standing(number, n) for n in range(after + 1, min(total, after + most) + 1)]
        return tuple(
            Numbered(standing, self.kept(found, standing.n, total) if standing.usable else None)
            for standing in standings
            if standing is not None
        )

    def named(self, name: str, *, visitor: bool = False) -> tuple[int, ...]:
        """The requests that a call_id names; to a `visitor` only those of the shared archive that are for visitors."""
        rows = self.db.execute(
            "SELECT k.request, r.partition IS NULL FROM request_key k JOIN request r ON r.id = k.request"
            " WHERE k.hash BETWEEN ? AND ? ORDER BY k.request",
            named_between(name),
        ).fetchall()
        return tuple(number for number, shared in rows if not visitor or (shared and not self.is_hidden(number)))

    def add_dispatch(self, request: int, asked_model: str | None, at: int, imported_from: str = "") -> int:
        """The row that stands before the first byte leaves; or that of a sending elsewhere, with where."""
        origin = IMPORTED if imported_from else SENT
        return self.add("dispatch", request, self.optional(asked_model), origin, self.optional(imported_from), at)

    def add_outcome(self, dispatch: int, n: int, outcome: Outcome, ms: int, at: int, *, erased: bool = False) -> int:
        """What came of a sending: n is 1, or 2 for the late answer of an unknown one.

        `erased`: its request was erased meanwhile, and what the reply says is not kept.
        """
        reply = outcome.reply
        said = None if reply is None else self.emptied_text(reply.body, at) if erased else self.text(reply.body)
        number = self.add(
            "outcome",
            dispatch,
            n,
            outcome.state,
            outcome.why,
            int(outcome.paid),
            at,
            ms,
            None if reply is None else reply.status,
            said,
            None if reply is None else self.optional(reply.content_type),
            None if reply is None else self.optional(reply.provider_id),
            self.optional(outcome.answered_model),
            outcome.input_tokens,
            outcome.output_tokens,
            outcome.cost,
            None if reply is None or not reply.cuts else self.text(msgspec.json.encode(reply.cuts)),
            int(outcome.cut_short),
        )
        self.count_outcome(number)
        return number

    def came_to(self, dispatch: int) -> State | None:
        """What is on record of what came of this sending: the outcome that counts; None: nothing yet."""
        row = self.one("SELECT state FROM outcome WHERE dispatch = ? ORDER BY n DESC LIMIT 1", dispatch)
        return None if row is None else State(row[0])

    def version_of(self, dispatch: int) -> int:
        """The version that this answered sending became."""
        sql = "SELECT a.n FROM answer a JOIN outcome o ON o.id = a.outcome WHERE o.dispatch = ?"
        return self.one(sql, dispatch)[0]

    def add_answer(self, request: int, outcome: int) -> int:
        """Make an outcome the next version of its request; its number."""
        n = self.one("SELECT 1 + coalesce(max(n), 0) FROM answer WHERE request = ?", request)[0]
        self.add("answer", request, n, outcome)
        return n

    def open_dispatches(self) -> list[tuple[int, int, bool]]:
        """Sendings without an outcome: number, moment, and whether it went to a model inside the process."""
        rows = self.db.execute(
            "SELECT d.id, d.at, substr(u.bytes, 1, 6) = CAST('local:' AS BLOB) FROM dispatch d"
            " JOIN request r ON r.id = d.request JOIN destination p ON p.id = r.destination JOIN text u ON u.id = p.url"
            " WHERE NOT EXISTS (SELECT 1 FROM outcome o WHERE o.dispatch = d.id) ORDER BY d.id"
        )
        return [(number, at, bool(local)) for number, at, local in rows]


def request_of(row: Sequence[Any]) -> Request:
    """A request from its texts: of its place the name, method and URL, then what _WHOLE selects after the place."""
    name, method, url, partition, content_type, headers, instructions, state, state_at, model, model_at, whole = row
    parts = Parts(instructions) if whole else Parts(instructions, state, state_at, model, model_at)
    pairs = [tuple(line.split(": ", 1)) for line in as_text(headers).split("\n") if line]
    named = cast("tuple[tuple[str, str], ...]", tuple(pairs))
    place = Destination(as_text(name), as_text(method), as_text(url))
    return Request(place, join(parts), as_text(content_type), named, as_text(partition))


def _failed(last: Last) -> str:
    """Why the last attempt failed, with the status it was refused with; empty when it did not."""
    if last.failure is None:
        return ""
    reply = last.failure.reply
    return last.failure.text if reply is None else f"{last.failure.text} Its status was {reply.status}."


def _said(last: Last) -> bytes:
    """The first of what came where the last attempt failed."""
    reply = None if last.failure is None else last.failure.reply
    return b"" if reply is None else reply.body[:SAID_BYTES_MAX]


def _is_refused(last: Last) -> bool:
    """Did the model's server say no to the request as it is, rather than not now?"""
    reply = None if last.failure is None else last.failure.reply
    return reply is not None and 400 <= reply.status < 500 and reply.status not in {408, 425, 429}


def _gone(pick: Version, known: Known, now: int) -> str:
    """Why a named version cannot be had; empty when it can."""
    try:
        decide(pick, known, now)
    except ArchiveError as error:
        return error.text
    return ""


def _header_bytes(request: Request) -> bytes:
    return b"\n".join(as_bytes(f"{name}: {value}") for name, value in request.headers)
