"""Askings that were named: writing them down, and finding them again by number and by what they were about.

Runs inside the transaction store/file.py opened. What must never be here: which asking is written (handlers.py).
"""

from typing import Any

from archive.actor.store.record import Record
from archive.attempts import State
from archive.errors import Erased, NotFound
from archive.messages import Abouts, Judgment, Shown
from archive.naming import SEARCHED_BYTES_MIN, Asking, Input, Naming, comes_to, found_at, utf8
from archive.request import Request, asked

NUMBER_END = 2**63 - 1
"""SQLite's integers end here."""

_ASKING = """
SELECT k.id, k.request, k.at, k.inputs_missing, k.pass, k.about, k.reading, p.bytes, b.bytes, g.bytes,
       o.state, a.n, m.bytes, v.bytes
FROM asking k
LEFT JOIN text p ON p.id = k.pass LEFT JOIN text b ON b.id = k.about LEFT JOIN text g ON g.id = k.reading
LEFT JOIN answer s ON s.id = k.answer
LEFT JOIN outcome o ON o.id = coalesce(s.outcome, (
    SELECT l.id FROM outcome l WHERE l.dispatch = k.dispatch ORDER BY l.n DESC LIMIT 1))
LEFT JOIN answer a ON a.request = k.request AND a.outcome = o.id
LEFT JOIN dispatch d ON d.id = coalesce(k.dispatch, o.dispatch)
LEFT JOIN text m ON m.id = d.asked_model LEFT JOIN text v ON v.id = o.answered_model"""
"""An asking leads to an answer at once, or by its sending: the outcome that counts, and the version it became."""

_INPUTS = """
SELECT i.name, n.bytes, w.bytes, i.found_at FROM asking_input i
LEFT JOIN text n ON n.id = i.name JOIN text w ON w.id = i.words WHERE i.asking = ? ORDER BY i.n"""


def add_asking(
    record: Record, request: Request, number: int, naming: Naming, at: int, *, n: int = 0, dispatch: int | None = None
) -> int:
    """Write one asking of request `number`, served by its answer `n` or by a sending; the judgment number."""
    answer = record.one("SELECT id FROM answer WHERE request = ? AND n = ?", number, n)[0] if n else None
    searched = [len(utf8(one.words)) >= SEARCHED_BYTES_MIN for one in naming.inputs]
    places = [
        found_at(one.words, request.body) if worth else None for one, worth in zip(naming.inputs, searched, strict=True)
    ]
    asking = record.add(
        "asking",
        number,
        answer,
        dispatch,
        record.optional(naming.pass_),
        record.optional(naming.about),
        record.optional(naming.reading),
        len(naming.inputs),
        sum(worth and place is None for worth, place in zip(searched, places, strict=True)),
        at,
    )
    for order, (one, place) in enumerate(zip(naming.inputs, places, strict=True), start=1):
        record.add("asking_input", asking, order, record.optional(one.name), record.text(utf8(one.words)), place)
    return asking


def judged(record: Record, number: int, now: int) -> Judgment:
    """The asking of a judgment number, with what was asked and the answer. Raises NotFound."""
    row = record.one(f"{_ASKING} WHERE k.id = ?", number) if 0 < number < NUMBER_END else None
    if row is None:
        raise NotFound(f"There is no judgment number {number}.")
    return _judgment(record, row, now)


def abouts(record: Record, message: Abouts, now: int) -> tuple[Asking, ...]:
    """The askings about one thing, newest first."""
    about = record.known_text(message.about.encode("utf-8", "surrogatepass"))
    if about is None:
        return ()
    rows = record.db.execute(
        f"{_ASKING} WHERE k.about = ? AND k.id < ? ORDER BY k.id DESC LIMIT ?",
        (about.id, min(message.before or NUMBER_END, NUMBER_END), message.most),
    ).fetchall()
    return tuple(_judgment(record, row, now).asking for row in rows)


def _judgment(record: Record, row: Any, now: int) -> Judgment:
    number, request, at, missing, *naming, state, n, asked_model, answered_model = row
    refs, words = naming[:3], naming[3:]
    inputs = record.db.execute(_INPUTS, (number,)).fetchall()
    erased = any(ref is not None and text is None for ref, text in zip(refs, words, strict=True))
    erased |= any(text is None or (ref is not None and name is None) for ref, name, text, _ in inputs)
    pass_, about, reading = (_str(text) or "" for text in words)
    shown, gone = _shown(record, request, n, now)
    kept = None if shown is None or n is None else shown.looked.kept
    asking = Asking(
        number,
        request,
        at,
        Naming(pass_, about, reading, tuple(Input(_str(name) or "", _str(text) or "") for _, name, text, _ in inputs)),
        tuple(place for *_, place in inputs),
        missing,
        None if state is None else State(state),
        n,
        _str(asked_model),
        _str(answered_model),
        comes_to(reading, asked(shown.request), kept.body) if shown and kept and reading else None,
        gone,
        erased,
    )
    return Judgment(asking, shown and shown.request, kept)


def _shown(record: Record, request: int, n: int | None, now: int) -> tuple[Shown | None, str]:
    """The request and its answer, and why one of them is gone, if it is."""
    try:
        shown = record.show(request, n, now)
    except Erased as erased:
        return None, erased.text
    return shown, shown.looked.gone


def _str(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")
