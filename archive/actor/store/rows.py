"""Writing rows that are never changed again: numbers, the chain, and texts that are stored once.

Everything here runs inside one transaction, in the connection's own thread. What must never be here: BEGIN or COMMIT
(store/file.py), and what a row means (store/record.py).
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from archive.request import fingerprint

COLUMNS: dict[str, tuple[str, ...]] = {
    "text": ("length", "bytes", "seal", "salt"),
    "destination": ("name", "method", "url"),
    "request": (
        "partition",
        "destination",
        "content_type",
        "headers",
        "instructions",
        "state",
        "state_at",
        "model",
        "model_at",
        "whole",
    ),
    "dispatch": ("request", "asked_model", "origin", "imported_from", "at"),
    "outcome": (
        "dispatch",
        "n",
        "state",
        "why",
        "paid",
        "at",
        "ms",
        "status",
        "reply",
        "content_type",
        "provider_id",
        "answered_model",
        "input_tokens",
        "output_tokens",
        "cost",
        "cuts",
        "cut_short",
    ),
    "answer": ("request", "n", "outcome"),
    "asking": (
        "request",
        "answer",
        "dispatch",
        "pass",
        "about",
        "reading",
        "inputs",
        "inputs_missing",
        "at",
    ),
    "asking_input": ("asking", "n", "name", "words", "found_at"),
    "withdrawal": ("answer", "withdrawn", "by", "why", "at"),
    "moderation": ("words", "listed", "by", "why", "at"),
}
"""The insert-only tables and their columns in the order in which the chain takes them, between `id` and `chain`."""

SALT_BYTES = 16

LINK_BYTES = 16
"""Of a link's SHA-256 so much is kept, in seven rows an answer: to find another row with the same link takes 2^128
tries, as to guess a key does."""

_INSERTS = {
    table: f"INSERT INTO {table} (id, {', '.join(columns)}, chain) VALUES ({', '.join('?' * (len(columns) + 2))})"
    for table, columns in COLUMNS.items()
}

_INSERT_TEXT = "INSERT INTO text (id, length, bytes, seal, salt, emptied_at, chain) VALUES (?, ?, ?, ?, ?, ?, ?)"

_packed = msgspec.msgpack.Encoder().encode

_TEXTS_REMEMBERED_MAX = 1024
_TEXT_REMEMBERED_BYTES_MAX = 64 * 1024


class Text(NamedTuple):
    """A reference to a stored text: its number, and its seal, which stands for it in the chain."""

    id: int
    seal: bytes


Value = int | Text | None


def link(before: bytes, table: str, row: Sequence[int | bytes | None]) -> bytes:
    """The chain's next link: the first LINK_BYTES of SHA-256 over the link before it and the row.

    The row is taken as MessagePack has a list of the table's name and the columns, texts by their seals.
    """
    return sha256(before + _packed((table, *row))).digest()[:LINK_BYTES]


class Rows:
    """The writing half of the insert-only tables, on one connection."""

    def __init__(self, db: sqlite3.Connection, salt: Callable[[], bytes]) -> None:
        """`salt` gives SALT_BYTES fresh bytes, never the same twice."""
        self.db = db
        self.salt = salt
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._remembered: OrderedDict[bytes, Text] = OrderedDict()
        self._stale = True

    def begin(self) -> None:
        """A transaction has begun. After one that failed, what was remembered of the record is read again."""
        if not self._stale:
            return
        self.forget()
        for table in COLUMNS:
            row = self.db.execute(f"SELECT id, chain FROM {table} ORDER BY id DESC LIMIT 1").fetchone()
            self._heads[table] = row or (0, b"")
        self._stale = False

    def undone(self) -> None:
        """The transaction was undone, whole."""
        self._stale = True

    def forget(self) -> None:
        """Forget which rows hold what: some of them may have been undone."""
        self._remembered.clear()

    @contextmanager
    def savepoint(self) -> Generator[None, None, None]:
        """One message's writes: all of them, or on an exception none of them."""
        heads = dict(self._heads)
        self.db.execute("SAVEPOINT message")
        try:
            yield
        except BaseException:
            self._heads = heads
            self.forget()
            # After a full disk SQLite has already rolled the whole transaction back.
            if self.db.in_transaction:
                self.db.execute("ROLLBACK TO message")
                self.db.execute("RELEASE message")
            raise
        self.db.execute("RELEASE message")

    def one(self, sql: str, *values: int | bytes | str) -> Any:
        """The first row, or None."""
        return self.db.execute(sql, values).fetchone()

    def add(self, table: str, *values: Value) -> int:
        """Insert one row, `values` in the order of COLUMNS; its number."""
        before = self._heads[table]
        number = before[0] + 1
        chain = link(before[1], table, (number, *[v.seal if isinstance(v, Text) else v for v in values]))
        self.db.execute(_INSERTS[table], (number, *[v.id if isinstance(v, Text) else v for v in values], chain))
        self._heads[table] = (number, chain)
        return number

    def text(self, words: bytes) -> Text:
        """The one row that holds `words`, made when there is none."""
        known = self._remembered.get(words)
        if known is not None:
            self._remembered.move_to_end(words)
            return known
        key = fingerprint(sha256(words).digest())
        found = self.find_text(words, key)
        if found is None:
            found = self._add_text(words)
            self.db.execute("INSERT INTO text_key (hash, text) VALUES (?, ?)", (key, found.id))
        if len(words) <= _TEXT_REMEMBERED_BYTES_MAX:
            self._remembered[words] = found
            if len(self._remembered) > _TEXTS_REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return found

    def emptied_text(self, words: bytes, at: int) -> Text:
        """A row for words that were erased before they came: their length and seal. They never are in the file."""
        return self._add_text(words, emptied_at=at)

    def _add_text(self, words: bytes, emptied_at: int | None = None) -> Text:
        salt = self.salt()
        seal = sha256(salt + words).digest()
        before = self._heads["text"]
        number = before[0] + 1
        chain = link(before[1], "text", (number, len(words), seal))
        kept = (words, seal, salt) if emptied_at is None else (None, seal, None)
        self.db.execute(_INSERT_TEXT, (number, len(words), *kept, emptied_at, chain))
        self._heads["text"] = (number, chain)
        return Text(number, seal)

    def optional(self, words: str | bytes | None) -> Text | None:
        """The row for `words`; nothing and the empty text are NULL."""
        if not words:
            return None
        return self.text(words if isinstance(words, bytes) else words.encode("utf-8", "surrogatepass"))

    def known_text(self, words: bytes) -> Text | None:
        """The one row that holds `words`, or None; writes nothing."""
        return self._remembered.get(words) or self.find_text(words, fingerprint(sha256(words).digest()))

    def find_text(self, words: bytes, key: int) -> Text | None:
        """The row that holds exactly `words`, among those the look-up names."""
        rows = self.db.execute(
            "SELECT t.id, t.seal FROM text_key k JOIN text t ON t.id = k.text WHERE k.hash = ? AND t.bytes = ?",
            (key, words),
        )
        found = rows.fetchone()
        return None if found is None else Text(*found)
