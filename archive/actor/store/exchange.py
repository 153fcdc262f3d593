"""Answers on their way out of the record and into it, as the lines of archive/exchange.py.

Out: a few thousand rows are looked through at a time, on a connection that only reads. In: inside the transaction
store/file.py opened. What must never be here: which line may be taken in, and how it looks.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from archive.actor.store.places import as_bytes, as_text
from archive.actor.store.record import Found, Record
from archive.admin import Chosen, Export, Exported, Import
from archive.attempts import Reply
from archive.errors import Erased, Invalid
from archive.exchange import (
    Line,
    LineAsking,
    LineInput,
    Taken,
    Took,
    Verdict,
    came_from,
    line_in,
    may_fill,
    reply_line,
    request_line,
    taken,
    written,
)
from archive.request import Request, call_id
from archive.when import iso

ROWS_SCANNED = 2_000
"""Answers that are looked at in one go: some milliseconds, also where few of them are meant."""

LINES_MAX = 200
LINES_BYTES_MAX = 4 * 1024 * 1024
"""Of one reply; the last line of it may go beyond."""

ASKINGS_MAX = 100
"""Named askings that stand in one line. A kept answer may have been asked for a million times."""

_ANSWERS = """
SELECT a.id, a.request, a.n, d.id, d.at, o.at, o.ms, q.bytes, m.bytes, o.input_tokens, o.output_tokens, o.cost,
    o.cut_short, f.bytes
FROM answer a JOIN outcome o ON o.id = a.outcome JOIN dispatch d ON d.id = o.dispatch
JOIN request r ON r.id = a.request
LEFT JOIN text q ON q.id = d.asked_model LEFT JOIN text m ON m.id = o.answered_model
LEFT JOIN text f ON f.id = d.imported_from
WHERE a.id > ? AND a.id <= ?"""

_NAMED = """(EXISTS (SELECT 1 FROM asking k WHERE k.answer = a.id AND {0})
OR EXISTS (SELECT 1 FROM asking k WHERE k.dispatch = d.id AND {0}))"""

_ASKINGS = """
SELECT k.id, k.at, p.bytes, b.bytes, g.bytes FROM asking k
LEFT JOIN text p ON p.id = k.pass LEFT JOIN text b ON b.id = k.about LEFT JOIN text g ON g.id = k.reading
WHERE k.answer = ?1 OR k.dispatch = ?2 ORDER BY k.id LIMIT ?3"""

_INPUTS = """
SELECT n.bytes, w.bytes FROM asking_input i LEFT JOIN text n ON n.id = i.name JOIN text w ON w.id = i.words
WHERE i.asking = ? ORDER BY i.n"""

_FROM = """
SELECT f.bytes FROM answer a JOIN outcome o ON o.id = a.outcome JOIN dispatch d ON d.id = o.dispatch
LEFT JOIN text f ON f.id = d.imported_from WHERE a.request = ?"""

_HERE = """
SELECT 1 FROM answer a JOIN outcome o ON o.id = a.outcome WHERE a.request = ? AND o.at = ? AND o.reply = ?"""

_THERE = """
SELECT d.id FROM destination d JOIN text n ON n.id = d.name JOIN text u ON u.id = d.url
WHERE ? IN (n.bytes, u.bytes) OR u.bytes = ?
OR EXISTS (SELECT 1 FROM (SELECT ? AS base UNION ALL SELECT ? UNION ALL SELECT ?)
    WHERE substr(u.bytes, 1, length(base)) = base)"""

PLACES_MAX = 40
"""Names and URLs of destinations that are told to who named none of them."""


# -- out --------------------------------------------------------------------------------------------------------------


def exported(record: Record, message: Export) -> Exported:
    """The next lines of an export. `record` is on a connection of its own, outside of any transaction."""
    # All of them as of one moment: words that are erased meanwhile are there until the end of it, or not at all.
    record.db.execute("BEGIN")
    end = record.one("SELECT coalesce(max(id), 0) FROM answer")[0]
    name = record.one("SELECT coalesce((SELECT chain FROM text WHERE id = 1), x'')")[0].hex()[:12]
    until = min(message.after + ROWS_SCANNED, end)
    conditions = _conditions(record, message.chosen)
    lines, size, after = list[bytes](), 0, until
    if conditions is not None:
        sql, values = conditions
        rows = record.db.execute(_ANSWERS + sql + " ORDER BY a.id", (message.after, until, *values))
        for row in rows:
            lines.append(written(_line(record, row)))
            size += len(lines[-1])
            if len(lines) >= LINES_MAX or size >= LINES_BYTES_MAX:
                after = row[0]
                break
        rows.close()
    elsewhere = _elsewhere(record, message.chosen.destination)
    return Exported(tuple(lines), name, after if conditions is not None and after < end else None, end, elsewhere)


def _elsewhere(record: Record, destination: str) -> tuple[str, ...] | None:
    """Names and URLs of destinations on record, if `destination` is none of them and no base URL of one; else None."""
    if not destination or record.one(f"SELECT 1 FROM ({_THERE})", *_there(destination)) is not None:
        return None
    rows = record.db.execute(
        "SELECT DISTINCT t.bytes FROM destination d JOIN text t ON t.id IN (d.name, d.url) WHERE t.bytes IS NOT NULL"
        " ORDER BY instr(t.bytes, x'3a'), t.bytes LIMIT ?",  # names have no colon, and come first
        (PLACES_MAX,),
    )
    return tuple(as_text(said) for (said,) in rows.fetchall())


def _there(destination: str) -> tuple[bytes, ...]:
    """The values of _THERE; a base URL may be written with a slash at its end."""
    base = as_bytes(destination.rstrip("/"))
    return as_bytes(destination), base, *(base + sign for sign in (b"/", b"?", b"@"))


def _conditions(record: Record, chosen: Chosen) -> tuple[str, list[int | bytes]] | None:
    """What is meant, in SQL; None where nothing can be."""
    sql, values = "", list[int | bytes]()
    for condition, moment in (("o.at >= ?", chosen.since), ("o.at < ?", chosen.until)):
        if moment is not None:
            sql += f" AND {condition}"
            values.append(moment)
    if not chosen.private:
        sql += " AND r.partition IS NULL"
    if chosen.destination:
        sql += f" AND r.destination IN ({_THERE})"
        values += _there(chosen.destination)
    named = list[str]()
    for condition, words in (("k.pass = ?", chosen.pass_), ("k.about = ?", chosen.about)):
        if words:
            text = record.known_text(as_bytes(words))
            if text is None:
                return None
            named.append(condition.replace("?", str(text.id)))
    if named:
        sql += f" AND {_NAMED.format(' AND '.join(named))}"
    return sql, values


def _line(record: Record, row: Any) -> Line:
    answer, number, n, dispatch, sent_at, kept_at, ms, asked, model, tokens_in, tokens_out, cost, cut_short, from_ = row
    standing = record.standing(number, n)
    request = _request(record, number)
    erased = request is None or standing is None or standing.erased
    kept = None if erased else record.kept(Found(number, ""), n, n)
    askings, left_out = ((), 0) if erased else _askings(record, answer, dispatch)
    gone_at = None if standing is None else standing.gone_at
    return Line(
        call=None if request is None else call_id(request),
        n=n,
        standing="erased" if erased else "withdrawn" if standing is not None and standing.withdrawn else "kept",
        sent_at=iso(sent_at),
        kept_at=iso(kept_at),
        ms=ms,
        asked_model=_optional(asked),
        model=_optional(model),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost_made=None if cost is None else cost / 1e9,
        cut_short=bool(cut_short),
        imported_from=_optional(from_),
        gone_at=None if gone_at is None else iso(gone_at),
        why="" if erased or standing is None else standing.why,
        request=None if erased or request is None else request_line(request),
        reply=None
        if kept is None
        else reply_line(Reply(kept.status, kept.body, kept.content_type, kept.provider_id, cuts=kept.cuts)),
        askings=askings,
        askings_left_out=left_out,
    )


def _request(record: Record, number: int) -> Request | None:
    try:
        return record.request(number)
    except Erased:
        return None


def _askings(record: Record, answer: int, dispatch: int) -> tuple[tuple[LineAsking, ...], int]:
    """The first askings that got this answer, and how many more there are."""
    rows = record.db.execute(_ASKINGS, (answer, dispatch, ASKINGS_MAX)).fetchall()
    found = tuple(
        LineAsking(
            number,
            iso(at),
            as_text(pass_),
            as_text(about),
            as_text(reading),
            tuple(LineInput(as_text(name), as_text(words)) for name, words in record.db.execute(_INPUTS, (number,))),
        )
        for number, at, pass_, about, reading in rows
    )
    if len(rows) < ASKINGS_MAX:
        return found, 0
    total = record.one("SELECT count(*) FROM asking WHERE answer = ? OR dispatch = ?", answer, dispatch)[0]
    return found, total - len(rows)


# -- in ---------------------------------------------------------------------------------------------------------------


class _Undone(Exception):
    """It was only to be found out what would be done."""


def imported(record: Record, message: Import, now: int) -> tuple[tuple[Verdict, ...], tuple[Request, ...]]:
    """A verdict for each line, and the requests that have another newest answer now."""
    verdicts, renewed = list[Verdict](), list[Request]()
    with _kept_or_undone(record, message.write):
        for data in message.lines:
            try:
                line = line_in(data)
                if line.standing == "erased":
                    verdicts.append(Verdict(Took.ERASED))
                    continue
                one = taken(line, now)
                verdicts.append(_take(record, message, one))
            except Invalid as wrong:
                verdicts.append(Verdict(Took.REFUSED, wrong.text))
                continue
            if verdicts[-1].took is Took.NEW:
                renewed.append(one.request)
    return tuple(verdicts), tuple(renewed) if message.write else ()


@contextmanager
def _kept_or_undone(record: Record, keep: bool) -> Generator[None, None, None]:
    try:
        with record.savepoint():
            yield
            if not keep:
                raise _Undone
    except _Undone:
        pass


def _take(record: Record, message: Import, one: Taken) -> Verdict:
    """Write one answer down, unless something is against it. Raises Invalid."""
    if one.request.partition and not message.private:
        raise Invalid("it is of a private archive, whose number may mean another one here")
    found = record.find(one.request)
    if found is not None:
        if _is_here(record, found.id, one):
            return Verdict(Took.HERE)
        last = record.known(found.id, None).last
        if last is not None and last.state is None:
            # Its sending would no longer be the last one, and the request be sent a second time meanwhile.
            raise Invalid("this very request is on the wire at this moment; import it again afterwards")
        others = [_optional(text) for (text,) in record.db.execute(_FROM, (found.id,))]
        if not message.append and not may_fill(others, message.source):
            return Verdict(Took.OTHERS)
    found = found or record.add_request(one.request)
    dispatch = record.add_dispatch(found.id, one.asked_model, one.sent_at, came_from(message.source, one.imported_from))
    outcome = record.add_outcome(dispatch, 1, one.outcome, one.ms, one.kept_at)
    n = record.add_answer(found.id, outcome)
    if one.withdrawn_at is not None:
        answer = record.one("SELECT id FROM answer WHERE request = ? AND n = ?", found.id, n)[0]
        record.add("withdrawal", answer, 1, None, record.optional(one.why), one.withdrawn_at)
    return Verdict(Took.NEW)


def _is_here(record: Record, request: int, one: Taken) -> bool:
    """Is this very answer on record: the same bytes, kept at the same moment?"""
    reply = None if one.outcome.reply is None else record.known_text(one.outcome.reply.body)
    return reply is not None and record.one(_HERE, request, one.kept_at, reply.id) is not None


def _optional(data: bytes | None) -> str | None:
    return None if data is None else as_text(data)
