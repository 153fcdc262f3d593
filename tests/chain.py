# ruff: noqa: S608 - SQL put together from the schema's own words
"""The record's chain, worked out again from the rows alone, by the rule that is written on top of the schema."""

import sqlite3
from hashlib import sha256

import msgspec

INSERT_ONLY = (
    "text",
    "destination",
    "request",
    "dispatch",
    "outcome",
    "answer",
    "asking",
    "asking_input",
    "withdrawal",
    "moderation",
)


def columns(db: sqlite3.Connection, table: str) -> list[str]:
    """A table's columns as the database has them."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def broken(db: sqlite3.Connection) -> list[tuple[str, int]]:
    """(table, number) of every row whose link is not the one its columns and the row before it make."""
    found: list[tuple[str, int]] = []
    for table in INSERT_ONLY:
        before = b""
        for number, link, words in _rows(db, table):
            made = sha256(before + msgspec.msgpack.encode([table, number, *words])).digest()[:16]
            if made != link:
                found.append((table, number))
            before = link
    return found


def _rows(db: sqlite3.Connection, table: str) -> list[tuple[int, bytes, list[int | bytes | None]]]:
    seals: dict[int, bytes] = dict(db.execute("SELECT id, seal FROM text"))
    names = ["length", "seal"] if table == "text" else columns(db, table)[1:-1]
    texts = {row[3] for row in db.execute(f"PRAGMA foreign_key_list({table})") if row[2] == "text"}
    found: list[tuple[int, bytes, list[int | bytes | None]]] = []
    for number, link, *values in db.execute(f"SELECT id, chain, {', '.join(names)} FROM {table} ORDER BY id"):
        words = [
            seals.get(value, b"no such text") if name in texts and value is not None else value
            for name, value in zip(names, values, strict=True)
        ]
        found.append((number, link, words))
    return found


def assert_texts_match_their_seals(db: sqlite3.Connection) -> None:
    """Every text that is not emptied has the length and the seal that its row says."""
    for number, length, words, seal, salt in db.execute(
        "SELECT id, length, bytes, seal, salt FROM text WHERE bytes IS NOT NULL"
    ):
        assert (len(words), sha256(salt + words).digest()) == (length, seal), number
