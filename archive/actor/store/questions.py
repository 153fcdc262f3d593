"""Questions as people typed them: how often, when, and what they came to. Changeable rows over texts.

What must never be here: what a question means, or whether it may be listed.
"""

from typing import Any

import msgspec

from archive.actor.store.rows import Rows
from archive.messages import Conclusion, Made, Noted, Question, Remembered

_CALLS = msgspec.json.Decoder(tuple[Made, ...])
_CONCLUSION = msgspec.json.Decoder(Conclusion)
_FORM = msgspec.json.Decoder(dict[str, tuple[str, ...]])

_SELECT = """
SELECT q.id, w.bytes, f.bytes, q.times, q.first_at, q.last_at, q.recipe, c.bytes, e.bytes, q.listed
FROM question q JOIN text w ON w.id = q.words JOIN text f ON f.id = q.form JOIN text c ON c.id = q.calls
JOIN text e ON e.id = q.conclusion
WHERE w.bytes IS NOT NULL AND f.bytes IS NOT NULL AND c.bytes IS NOT NULL AND e.bytes IS NOT NULL
"""
"""A question of which any text was erased is not remembered any more."""


class Questions(Rows):
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
        if noted.conclusion is None:
            self.db.execute(
                "UPDATE question SET times = times + ?, last_at = ? WHERE words = ? AND form = ?",
                (noted.times, at, words.id, form.id),
            )
            return
        calls = self.text(msgspec.json.encode(noted.calls))
        conclusion = self.text(msgspec.json.encode(noted.conclusion))
        self.db.execute(
            "INSERT INTO question (words, form, times, first_at, last_at, recipe, calls, conclusion, listed)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (words, form) DO UPDATE SET"
            " times = times + excluded.times, last_at = excluded.last_at, recipe = excluded.recipe,"
            " calls = excluded.calls, conclusion = excluded.conclusion, listed = excluded.listed",
            (words.id, form.id, noted.times, at, at, noted.recipe, calls.id, conclusion.id, int(noted.listed)),
        )

    def feed(self, most: int) -> tuple[Remembered, ...]:
        """The listed questions asked last, newest first."""
        rows = self.db.execute(_SELECT + "AND q.listed = 1 ORDER BY q.last_at DESC, q.id DESC LIMIT ?", (most,))
        return tuple(_remembered(row) for row in rows.fetchall())


def _form(question: Question) -> bytes:
    return msgspec.json.encode({"options": question.options, "levels": question.levels})


def _remembered(row: Any) -> Remembered:
    number, words, form, times, first_at, last_at, recipe, calls, conclusion, listed = row
    typed = _FORM.decode(form)
    return Remembered(
        number,
        Question(words.decode(), typed["options"], typed["levels"]),
        times,
        first_at,
        last_at,
        recipe,
        _CALLS.decode(calls),
        _CONCLUSION.decode(conclusion),
        bool(listed),
    )
