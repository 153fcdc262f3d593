"""The look-ups and the counts, worked out anew from the rows they stand for.

All of it in one transaction of its own, so that nobody ever looks something up in half a table. The insert-only tables
are only read. What must never be here: a change to what they hold.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from archive.actor.store.record import Record, request_of
from archive.admin import Rebuilt
from archive.request import digest, fingerprint

_TEXTS = "SELECT id, bytes FROM text WHERE id > ? AND id <= ? AND bytes IS NOT NULL"

_REQUESTS = """
SELECT r.id, n.bytes, e.bytes, u.bytes, p.bytes, c.bytes, h.bytes, i.bytes, s.bytes, r.state_at, m.bytes, r.model_at,
    r.whole
FROM request r CROSS JOIN destination d ON d.id = r.destination
JOIN text n ON n.id = d.name JOIN text e ON e.id = d.method JOIN text u ON u.id = d.url
JOIN text c ON c.id = r.content_type JOIN text i ON i.id = r.instructions
LEFT JOIN text p ON p.id = r.partition LEFT JOIN text h ON h.id = r.headers
LEFT JOIN text s ON s.id = r.state LEFT JOIN text m ON m.id = r.model
WHERE r.id > ? AND r.id <= ? AND n.bytes IS NOT NULL AND e.bytes IS NOT NULL AND u.bytes IS NOT NULL
AND c.bytes IS NOT NULL AND i.bytes IS NOT NULL
AND (r.partition IS NULL OR p.bytes IS NOT NULL) AND (r.headers IS NULL OR h.bytes IS NOT NULL)
AND (r.state IS NULL OR s.bytes IS NOT NULL) AND (r.model IS NULL OR m.bytes IS NOT NULL) ORDER BY r.id"""
"""Requests of which nothing was erased: the others are found by their number alone."""

_ALL = (0, 2**63 - 1)


class Key(NamedTuple):
    """A row that a look-up has to have, and how many bytes stand behind it."""

    hash: int
    number: int
    bytes: int


def rebuild(record: Record) -> Rebuilt:
    """Have look-ups and counts say what the record says. Raises sqlite3.Error, and then nothing has changed."""
    record.db.execute("BEGIN IMMEDIATE")
    try:
        record.begin()
        texts, *mended = _put_right(record, "text_key", text_keys)
        requests, *more = _put_right(record, "request_key", request_keys)
        before = record.counts()
        record.recount()
        after = record.counts()
        counts = sum(before.get(name, 0) != after.get(name, 0) for name in before.keys() | after.keys())
        record.db.execute("COMMIT")
    except BaseException:
        record.undone()
        if record.db.in_transaction:
            record.db.execute("ROLLBACK")
        raise
    record.forget()
    missing, wrong = (one + other for one, other in zip(mended, more, strict=True))
    return Rebuilt(texts, requests, missing, wrong, counts)


def _put_right(
    record: Record, table: str, right: Callable[[sqlite3.Connection], Iterator[Key]]
) -> tuple[int, int, int]:
    """Make the table hold these rows and no others: how many it has, how many were missing, how many wrong."""
    db = record.db
    insert = f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO NOTHING"
    had = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    rows = missing = 0
    for key in right(db):
        rows += 1
        missing += db.execute(insert, key[:2]).rowcount
    wrong = had + missing - rows
    if wrong:
        db.execute(f"DELETE FROM {table}")
        for key in right(db):
            db.execute(insert, key[:2])
    return rows, missing, wrong


def text_keys(db: sqlite3.Connection, after: int = _ALL[0], until: int = _ALL[1]) -> Iterator[Key]:
    """What leads to the texts after one number and up to another that have words."""
    for number, words in db.execute(_TEXTS, (after, until)):
        yield Key(fingerprint(sha256(words).digest()), number, len(words))


def request_keys(db: sqlite3.Connection, after: int = _ALL[0], until: int = _ALL[1]) -> Iterator[Key]:
    """What leads to the requests after one number and up to another of which nothing was erased, in order."""
    for number, *row in db.execute(_REQUESTS, (after, until)):
        # One that cannot be read is damaged, which the check of the chain tells; the others are found all the same.
        with suppress(ValueError, TypeError, AttributeError):
            request = request_of(row)
            yield Key(fingerprint(digest(request)), number, len(request.body))
