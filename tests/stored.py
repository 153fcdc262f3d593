"""A store's file, read from outside once the server that had it is gone. Never while it runs in this very process:
closing a second descriptor drops SQLite's locks (archive/actor/store/file.py).
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

STATES = {1: "answered", 2: "failed", 3: "unknown"}


def rows(store: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What `sql` finds."""
    with closing(sqlite3.connect(store)) as db:
        return db.execute(sql, values).fetchall()


def assert_sound(store: Path) -> None:
    """SQLite finds nothing wrong with the file, and every reference leads somewhere."""
    assert rows(store, "PRAGMA integrity_check") == [("ok",)]
    assert rows(store, "PRAGMA foreign_key_check") == []


def assert_closed_cleanly(store: Path) -> None:
    """The file is whole by itself: nothing waits in a -wal beside it, and nothing is wrong with it."""
    wal = store.with_name(store.name + "-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert_sound(store)


def counts(store: Path) -> dict[str, int]:
    """The delivery counts."""
    return dict(rows(store, "SELECT name, value FROM count WHERE name IN ('now', 'shared', 'no')"))


def outcomes(store: Path) -> list[str]:
    """What came of every sending, in order: the outcome that counts, or `open`."""
    found = rows(
        store,
        "SELECT (SELECT state FROM outcome o WHERE o.dispatch = d.id ORDER BY n DESC LIMIT 1) FROM dispatch d"
        " ORDER BY d.id",
    )
    return [STATES.get(state, "open") for (state,) in found]


def answers(store: Path) -> dict[bytes, list[bytes]]:
    """Every kept reply by the state value its request asked about, in the order of versions."""
    kept: dict[bytes, list[bytes]] = {}
    for about, reply in rows(
        store,
        "SELECT s.bytes, t.bytes FROM answer a JOIN request r ON r.id = a.request JOIN text s ON s.id = r.state"
        " JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply ORDER BY a.request, a.n",
    ):
        kept.setdefault(about, []).append(reply)
    return kept
