"""Reading the chain back: is every row the one that was written, and none missing in between?

A link is worked out from its row and the link before it (store/rows.py), a text's seal from its words. Rows are read a
few thousand at a time, so that a check of a large record gives way to what is asked meanwhile.
What must never be here: writing.
"""

import sqlite3
from hashlib import sha256
from itertools import pairwise

from archive.actor.store.rows import COLUMNS, link
from archive.admin import Checked, Mark


def check(db: sqlite3.Connection, mark: Mark, most: int) -> Checked:
    """Check the next `most` rows of the table that `mark` is in."""
    faults: list[str] = []
    number, before = mark.number, mark.link
    rows = db.execute(_SELECTS[mark.table], (mark.number, most)).fetchall()
    for at, chain, *values in rows:
        if at != number + 1:
            faults.append(f"{mark.table}: row {number + 1} is missing")
        if link(before, mark.table, (at, *values)) != chain:
            faults.append(f"{mark.table}: row {at} is not as it was written, or the one before it is not")
        number, before = at, chain
    if mark.table == "text":
        faults += _wrong_words(db, mark.number, number)
    following = Mark(mark.table, number, before) if len(rows) == most else _AFTER[mark.table]
    return Checked(following, len(rows), tuple(faults))


def _wrong_words(db: sqlite3.Connection, after: int, until: int) -> list[str]:
    """Texts whose words do not make their seal; those that were emptied have none to be checked."""
    rows = db.execute("SELECT id, length, bytes, seal, salt FROM text WHERE id > ? AND id <= ?", (after, until))
    return [
        f"text: the words of row {number} are not those that were written"
        for number, length, words, seal, salt in rows
        if words is not None and (len(words) != length or sha256((salt or b"") + words).digest() != seal)
    ]


def _select(table: str) -> str:
    """The rows of a table as the chain takes them: a reference to a text is read as the text's seal."""
    if table == "text":
        return "SELECT id, chain, length, seal FROM text WHERE id > ? ORDER BY id LIMIT ?"
    columns = [
        f"(SELECT seal FROM text x WHERE x.id = t.{name})" if name in TEXTS[table] else f"t.{name}"
        for name in COLUMNS[table]
    ]
    return f"SELECT t.id, t.chain, {', '.join(columns)} FROM {table} t WHERE t.id > ? ORDER BY t.id LIMIT ?"


TEXTS: dict[str, frozenset[str]] = {
    "text": frozenset(),
    "destination": frozenset({"name", "method", "url"}),
    "request": frozenset({"partition", "content_type", "headers", "instructions", "state", "model"}),
    "dispatch": frozenset({"asked_model", "imported_from"}),
    "outcome": frozenset({"reply", "content_type", "provider_id", "answered_model", "cuts"}),
    "answer": frozenset(),
    "asking": frozenset({"pass", "about", "reading"}),
    "asking_input": frozenset({"name", "words"}),
    "withdrawal": frozenset({"by", "why"}),
    "moderation": frozenset({"words", "by", "why"}),
}
"""Which columns of the insert-only tables refer to a text."""

_SELECTS = {table: _select(table) for table in COLUMNS}

_AFTER = {table: Mark(following) for table, following in pairwise(COLUMNS)} | {[*COLUMNS][-1]: None}
