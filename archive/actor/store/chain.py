"""Reading the chain back: is every row the one that was written, none missing in between, and can it be found?

A link is worked out from its row and the link before it (store/rows.py), a text's seal from its words. Rows are read a
few thousand at a time, so that a check of a large record gives way to what is asked meanwhile.
What must never be here: writing.
"""

import sqlite3
from hashlib import sha256
from itertools import pairwise

from archive.actor.store.rebuild import request_keys
from archive.actor.store.rows import COLUMNS, link
from archive.admin import MENDED, Checked, Mark
from archive.request import fingerprint

BYTES_MAX = 2 * 1024 * 1024
"""Of bodies of requests that are put together at once: a few milliseconds."""


REQUEST_ROWS = 3
"""A request takes as long to check as so many other rows."""


def check(db: sqlite3.Connection, mark: Mark, most: int) -> Checked:
    """Check the next `most` rows of the table that `mark` is in, or fewer where they are large."""
    faults: list[str] = []
    number, before = mark.number, mark.link
    if mark.table == "request":
        most = max(1, most // REQUEST_ROWS)
    rows = db.execute(_SELECTS[mark.table], (mark.number, most)).fetchall()
    goes_on = len(rows) == most
    if rows and mark.table == "request":
        until, lost = _lost_requests(db, mark.number, rows[-1][0])
        goes_on = goes_on or until < rows[-1][0]
        rows = [row for row in rows if row[0] <= until]
        faults += lost
    for at, chain, *values in rows:
        if at != number + 1:
            faults.append(f"{mark.table}: row {number + 1} is missing")
        if link(before, mark.table, (at, *values)) != chain:
            faults.append(f"{mark.table}: row {at} is not as it was written, or the one before it is not")
        # What a damaged file has there may be of any kind.
        number, before = at, chain if isinstance(chain, bytes) else b""
    if mark.table == "text":
        faults += _wrong_words(db, mark.number, number)
    following = Mark(mark.table, number, before) if goes_on else _AFTER[mark.table]
    return Checked(following, len(rows), tuple(faults))


def _wrong_words(db: sqlite3.Connection, after: int, until: int) -> list[str]:
    """Texts whose words do not make their seal, or are gone though nobody emptied them; and how many are not found."""
    faults, lost = list[str](), 0
    rows = db.execute(
        "SELECT id, length, bytes, seal, salt, emptied_at FROM text WHERE id > ? AND id <= ?", (after, until)
    )
    for number, length, words, seal, salt, emptied_at in rows:
        if (words is None) is not (emptied_at is not None):
            faults.append(f"text: row {number} has no words though it was not emptied, or has them though it was")
        elif words is not None and _seal(words, salt, length) != seal:
            faults.append(f"text: the words of row {number} are not those that were written")
        elif words is not None:
            key = fingerprint(sha256(words).digest())
            lost += db.execute(_TEXT_KEY, (key, number)).fetchone() is None
    if lost:
        faults.append(f"text: of rows {after + 1} to {until} {lost} cannot be found by their words; {MENDED}")
    return faults


def _seal(words: object, salt: object, length: object) -> bytes | None:
    """The seal that a text's row should have; None where a damaged file has something else there than was written."""
    if not isinstance(words, bytes) or not isinstance(salt, bytes) or len(words) != length:
        return None
    return sha256(salt + words).digest()


def _lost_requests(db: sqlite3.Connection, after: int, until: int) -> tuple[int, list[str]]:
    """How far was looked, and how many of these requests are not found by their bytes: they would be sent again."""
    lost = size = 0
    for key in request_keys(db, after, until):
        lost += db.execute(_REQUEST_KEY, key[:2]).fetchone() is None
        size += key.bytes
        if size > BYTES_MAX:
            until = key.number
            break
    said = f"request: of rows {after + 1} to {until} {lost} cannot be found, and would be sent again; {MENDED}"
    return until, [said] if lost else []


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

_TEXT_KEY = "SELECT 1 FROM text_key WHERE hash = ? AND text = ?"
_REQUEST_KEY = "SELECT 1 FROM request_key WHERE hash = ? AND request = ?"

_SELECTS = {table: _select(table) for table in COLUMNS}

_AFTER = {table: Mark(following) for table, following in pairwise(COLUMNS)} | {[*COLUMNS][-1]: None}
