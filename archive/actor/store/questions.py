"""Questions as people typed them: how often, when, and what they came to. Changeable rows over texts.

What must never be here: what a question means, or whether it may be listed.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from archive.actor.store.counts import Counts
from archive.messages import After, Conclusion, Feed, Listed, Made, Noted, Order, Question, Remembered

CALLS = msgspec.json.Decoder(tuple[Made, ...])
_CONCLUSION = msgspec.json.Decoder(Conclusion)
_FORM = msgspec.json.Decoder(dict[str, tuple[str, ...]])

_SELECT = """
SELECT q.id, w.bytes, f.bytes, q.times, q.first_at, q.last_at, q.recipe, c.bytes, e.bytes, q.listed
FROM question q JOIN text w ON w.id = q.words JOIN text f ON f.id = q.form JOIN text c ON c.id = q.calls
JOIN text e ON e.id = q.conclusion
WHERE w.bytes IS NOT NULL AND f.bytes IS NOT NULL AND c.bytes IS NOT NULL AND e.bytes IS NOT NULL
"""
"""A question of which any text was erased is not remembered any more."""

_ORDERED = {Order.LATELY: ("last_at", 6), Order.MOST: ("times", 4)}
"""The column each order goes by, and which it is in _SELECT."""

PAGES = {
    order: f"{_SELECT}AND q.listed = 1 AND q.{column} = ?1 AND q.id < ?2"
    f" UNION ALL {_SELECT}AND q.listed = 1 AND q.{column} < ?1 ORDER BY {at} DESC, 1 DESC LIMIT ?3"
    for order, (column, at) in _ORDERED.items()
}
"""A page of the feed, by order: the rest of the equals, then those below. In two halves because SQLite, asked for
`(column, id) < (?, ?)`, would walk through all equals above: it does not search an index for a row's number so.

Both columns only ever grow, so a question that is asked again moves up and is never met twice on the way down."""

_TOP = After(2**63 - 1, 2**63 - 1)
"""Before the first page; with it that page too is a search in the index like any other."""


class Questions(Counts):
    """The part of the record that is about questions."""

    def recall(self, question: Question) -> Remembered | None:
        """What is remembered of a question, or None."""
        words, form = self.known_text(question.words.encode()), self.known_text(_form(question))
        if words is None or form is None:
            return None
        row = self.db.execute(_SELECT + "AND q.words = ? AND q.form = ?", (words.id, form.id)).fetchone()
        return None if row is None else _remembered(row)

    def note(self, noted: Noted, at: int) -> None:
        """Write that a question was asked, and what it came to."""
        words, form = self.text(noted.question.words.encode()), self.text(_form(noted.question))
        # A clock that was set back does not move a question down again: it would be met twice by who pages down.
        again = self.db.execute(
            "UPDATE question SET times = times + ?, last_at = max(last_at, ?) WHERE words = ? AND form = ?"
            " RETURNING alone",
            (noted.times, at, words.id, form.id),
        ).fetchone()
        known = again is not None
        if known or noted.conclusion is not None:
            self.count({"questions": int(not known), "asked": noted.times})
        if noted.conclusion is None:
            return
        self.count({"alone": int(noted.alone) - (again[0] if known else 0)})
        calls = self.text(msgspec.json.encode(noted.calls))
        conclusion = self.text(msgspec.json.encode(noted.conclusion))
        came_to = (noted.recipe, calls.id, conclusion.id, int(noted.listed), int(noted.alone), words.id, form.id)
        if known:
            self.db.execute(
                "UPDATE question SET recipe = ?, calls = ?, conclusion = ?, listed = ?, alone = ?"
                " WHERE words = ? AND form = ?",
                came_to,
            )
        else:
            self.db.execute(
                "INSERT INTO question (recipe, calls, conclusion, listed, alone, words, form, times, first_at, last_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*came_to, noted.times, at, at),
            )

    def add_up(self, added: Mapping[str | int, int]) -> None:
        """Add to the counts, by name, and how often questions were looked at, by number; not one that is gone."""
        counts = Counter[str]()
        for key, more in added.items():
            if isinstance(key, str):
                counts[key] += more
            else:
                found = self.db.execute("UPDATE question SET times = times + ? WHERE id = ?", (more, key))
                counts["asked"] += more * found.rowcount
        self.count(counts)

    def feed(self, asked: Feed) -> Listed:
        """A page of the listed questions. One more than fits is looked for, to know whether another page follows."""
        after = asked.after or _TOP
        found = self.db.execute(PAGES[asked.order], (after.place, after.number, asked.most + 1)).fetchall()
        rows = tuple(_remembered(row) for row in found[: asked.most])
        if len(found) <= asked.most:
            return Listed(rows)
        last = rows[-1]
        return Listed(rows, After(last.last_at if asked.order is Order.LATELY else last.times, last.number))


def _form(question: Question) -> bytes:
    typed = {"typed": (question.typed,)} if question.typed else {}
    return msgspec.json.encode({"options": question.options, "levels": question.levels, **typed})


def _remembered(row: Any) -> Remembered:
    number, words, form, times, first_at, last_at, recipe, calls, conclusion, listed = row
    typed = _FORM.decode(form)
    return Remembered(
        number,
        Question(words.decode(), typed["options"], typed["levels"], *typed.get("typed", ())),
        times,
        first_at,
        last_at,
        recipe,
        CALLS.decode(calls),
        _CONCLUSION.decode(conclusion),
        bool(listed),
    )
