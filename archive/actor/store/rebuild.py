"""The look-ups and the counts, worked out anew from the rows they stand for.

All of it in one transaction of its own, so that nobody ever looks something up in half a table. The insert-only tables
are only read. What must never be here: a change to what they hold.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256

from archive.actor.store.record import Record
from archive.admin import Rebuilt
from archive.errors import Erased
from archive.request import digest, fingerprint

_TEXTS = "SELECT id, bytes FROM text WHERE bytes IS NOT NULL"

_REQUESTS = """
SELECT r.id FROM request r WHERE NOT EXISTS (SELECT 1 FROM text t WHERE t.bytes IS NULL
    AND t.id IN (r.partition, r.content_type, r.headers, r.instructions, r.state, r.model))"""
"""Requests of which nothing was erased: the others are found by their number alone."""


def rebuild(record: Record) -> Rebuilt:
    """Have look-ups and counts say what the record says. Raises sqlite3.Error, and then nothing has changed."""
    record.db.execute("BEGIN IMMEDIATE")
    try:
        record.begin()
        texts, *mended = _put_right(record, "text_key", _texts)
        requests, *more = _put_right(record, "request_key", _requests)
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
    record: Record, table: str, right: Callable[[Record], Iterator[tuple[int, int]]]
) -> tuple[int, int, int]:
    """Make the table hold these rows and no others: how many it has, how many were missing, how many wrong."""
    db = record.db
    insert = f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT DO NOTHING"
    had = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    rows = missing = 0
    for row in right(record):
        rows += 1
        missing += db.execute(insert, row).rowcount
    wrong = had + missing - rows
    if wrong:
        db.execute(f"DELETE FROM {table}")
        for row in right(record):
            db.execute(insert, row)
    return rows, missing, wrong


def _texts(record: Record) -> Iterator[tuple[int, int]]:
    for number, words in record.db.execute(_TEXTS):
        yield fingerprint(sha256(words).digest()), number


def _requests(record: Record) -> Iterator[tuple[int, int]]:
    for (number,) in record.db.execute(_REQUESTS):
        # One that cannot be read is damaged, which the check of the chain tells; the others are found all the same.
        with suppress(Erased, ValueError, TypeError):
            yield fingerprint(digest(record.request(number))), number
