"""A small record with rows of every kind, written the way the actor writes it."""

import asyncio
import random
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from archive.actor.store import Record, Store
from archive.actor.store.rows import SALT_BYTES
from archive.attempts import Lost, NotSent, Outcome, Reply, read
from archive.request import Destination, Request
from tests.fakes import START, answer, reply, request

ELSEWHERE = Destination("systemone", "POST", "https://elsewhere.test/v1/systemone")

WHOLE = Request(
    ELSEWHERE, b'{"state":1,"state":2,"model":"m"}', "text/json", (("typesafe-danger-zone-images", "true"),), "bob"
)
"""A request that cannot be cut, with headers, at another place and in somebody's own archive."""


def fill(path: Path) -> None:
    """Write a record at `path` and close it; it has the same bytes each time."""
    dice = random.Random(0)

    async def filled() -> None:
        store = await Store.open(path, lambda: dice.randbytes(SALT_BYTES))
        try:
            await store.write(_calls)
            await store.write(_words)
        finally:
            await store.close()

    asyncio.run(filled())


def sent(record: Record, asked: Request, at: int = START) -> tuple[int, int]:
    """A request and a sending of it; their numbers."""
    found = record.find(asked) or record.add_request(asked)
    return found.id, record.add_dispatch(found.id, "jev-latest", at)


def kept(record: Record, asked: Request, said: Reply | None = None) -> int:
    """A sending of a request that was answered; the answer's version."""
    number, dispatch = sent(record, asked)
    outcome = read(asked, said or reply(), START)
    return record.add_answer(number, record.add_outcome(dispatch, 1, outcome, 7, START + 1))


def _calls(record: Record) -> None:
    for n in range(3):
        kept(record, request("one"), reply(n / 10))
    kept(record, request("two"))
    kept(record, WHOLE, Reply(200, answer()))
    _add_outcome(record, 1, NotSent())
    _add_outcome(record, 1, Reply(400, b'{"detail":"no"}'))
    lost = _add_outcome(record, 1, Lost())
    record.add_answer(2, record.add_outcome(lost, 2, read(request(), reply(), START), 9, START + 9))
    sent(record, request("never answered"))


def _add_outcome(record: Record, n: int, came: Reply | NotSent | Lost) -> int:
    _, dispatch = sent(record, request("two"))
    outcome: Outcome = read(request("two"), came, START)
    record.add_outcome(dispatch, n, outcome, 7, START)
    return dispatch


def _words(record: Record) -> None:
    owner, why, words = record.text(b"owner"), record.text(b"wrong"), record.text(b"Is it?")
    for withdrawn in (1, 0, 1):
        record.add("withdrawal", 1, withdrawn, owner, why, START)
        record.add("moderation", words, withdrawn, owner, None, START)
        record.add("asking", 1, 1, None, None, record.text(b"ticket 7"), None, 2, 1, START)
        asking = record.one("SELECT max(id) FROM asking")[0]
        record.add("asking_input", asking, 1, record.text(b"name"), words, 3)
        record.add("asking_input", asking, 2, None, words, None)


@contextmanager
def stranger(path: Path, *, careful: bool = False) -> Generator[sqlite3.Connection, None, None]:
    """A connection of another program's; `careful`: with the pragmas our own writer has."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        if careful:
            db.execute("PRAGMA recursive_triggers = 1")
            db.execute("PRAGMA foreign_keys = 1")
        yield db


def dump(db: sqlite3.Connection) -> list[str]:
    """Everything that is in it, as SQL."""
    return [line for line in db.iterdump() if line.startswith("INSERT")]
