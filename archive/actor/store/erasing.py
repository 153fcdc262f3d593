"""Taking words out: which texts hold them and who uses these, and emptying them with all that leads to them.

The rows stay, and with them the fact that something was asked and answered. What must never be here: which spellings
words take (archive/spelling.py), COMMIT, the files (search.py).
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import msgspec

from archive.actor.store.chain import TEXTS
from archive.actor.store.ledger import Ledger, Line
from archive.actor.store.questions import CALLS
from archive.actor.store.record import Record
from archive.admin import Erase, Holding, Previewed, Uses, check_words
from archive.attempts import State
from archive.errors import RecordClosed
from archive.naming import SEARCHED_BYTES_MIN
from archive.request import call_id_of, fingerprint
from archive.spelling import holds

SLICE = 1_000
"""Texts looked at at once."""

BEGINS_CHARACTERS = 300
"""Of a text that would go, as much is shown."""

CALLS_MAX = 20
"""Requests that are named by their call_id, a text."""

SHORT_LENGTH_MAX = 16 * SEARCHED_BYTES_MIN
"""No text that is all short words is longer, in any spelling."""

_LONG = """
SELECT id, bytes FROM text WHERE id > :after AND id <= :upto AND bytes IS NOT NULL AND (
    instr(bytes, :words) OR instr(bytes, x'5c') OR instr(bytes, x'25') OR instr(bytes, x'26') OR instr(bytes, x'2b')
    OR instr(bytes, x'646174613a'))"""
"""Texts worth looking at: those with the words as they are, with any escape, a plus, or that may be a stream. SQLite
lets the other threads run while it looks, which Python's own search would not."""

_SHORT = f"""
SELECT id, bytes FROM text
WHERE id > :after AND id <= :upto AND bytes IS NOT NULL AND length <= {SHORT_LENGTH_MAX}"""

_FROM = {"destination": "destination t JOIN request r ON r.destination = t.id"}

_REQUEST_OF = {
    "destination": "r.id",
    "request": "t.id",
    "dispatch": "t.request",
    "outcome": "(SELECT request FROM dispatch d WHERE d.id = t.dispatch)",
    "asking": "t.request",
    "asking_input": "(SELECT request FROM asking k WHERE k.id = t.asking)",
}
"""How the row of a table leads to a request."""

_ASKING_OF = {"asking": "t.id", "asking_input": "t.asking"}

_QUESTION = ("words", "form", "calls", "conclusion")

_PARTS = (
    *(f"r.{column}" for column in ("partition", "content_type", "headers", "instructions", "state", "model")),
    *(f"d.{column}" for column in ("name", "method", "url")),
)
"""The texts that a request's bytes and its place are made of."""

LISTED_MAX = 10_000
"""Numbers that are named in one statement. They stand in it as they are: the writing connection may use no table-valued
function (guards.py)."""


class Emptied(NamedTuple):
    """What an erasure came to in the record: `requests` are those whose bytes are known no more."""

    at: int
    texts: tuple[int, ...]
    uses: Uses
    stayed: tuple[Holding, ...]
    requests: tuple[int, ...]


@dataclass
class _Used:
    requests: set[int] = field(default_factory=set[int])
    questions: set[int] = field(default_factory=set[int])
    askings: set[int] = field(default_factory=set[int])
    answers: int = 0
    others: int = 0


def preview(db: sqlite3.Connection, words: str, go_on: Callable[[], None]) -> Previewed:
    """Find every text that holds `words`. `go_on` is called before each slice and may raise, which ends it."""
    data = check_words(words)
    upto = db.execute("SELECT coalesce(max(id), 0) FROM text").fetchone()[0]
    found = list(_found(db, data, 0, upto, go_on))
    go_on()
    return Previewed(_holding(db, found, shown=True), upto)


def erase(record: Record, message: Erase, ledger: Ledger, at: int) -> Emptied:
    """Empty every text that holds the words, inside the transaction that is open. The ledger is on disk at the end."""
    words, db = check_words(message.words), record.db
    last = db.execute("SELECT coalesce(max(id), 0) FROM text").fetchone()[0]
    known = [number for number in message.found if number <= message.upto and _still(db, number, words)]
    found = [*known, *_found(db, words, message.upto, last, lambda: None)]
    holding = _holding(db, found)
    stayed = tuple(one for one in holding if one.uses.shared and not message.also_shared)
    going = tuple(one.text for one in holding if one not in stayed)
    used = _used(db, going)
    requests = empty(record, going, at)
    if going:
        try:
            ledger.append([Line(number, chain, at) for number, chain in _chains(db, going)])
        except OSError as error:
            raise RecordClosed(f"{ledger.path} could not be written ({error.strerror}); nothing was erased.") from error
    return Emptied(at, going, _together(used.values()), stayed, requests)


def apply(record: Record, named: Collection[Line]) -> int:
    """Empty again what the ledger names and a backup brought back; how many texts that were."""
    lines = {line.text: line for line in named}
    chains = _chains(record.db, lines)
    back = [number for number, chain in chains if lines[number].chain == chain and _is_there(record.db, number)]
    for at in {lines[number].at for number in back}:
        empty(record, [number for number in back if lines[number].at == at], at)
    return len(back)


def empty(record: Record, texts: Collection[int], at: int) -> tuple[int, ...]:
    """Empty texts, and delete what finds them or their requests again; the requests whose bytes are known no more."""
    db = record.db
    requests = set[int]()
    for number in texts:
        (words,) = db.execute("SELECT bytes FROM text WHERE id = ?", (number,)).fetchone()
        key = fingerprint(sha256(words).digest())
        db.execute("DELETE FROM text_key WHERE hash = ? AND text = ?", (key, number))
        db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = ? WHERE id = ?", (at, number))
    for listed in _listed(texts):
        db.execute(f"UPDATE question SET listed = 0 WHERE {_any(_QUESTION, listed)}")
        found = db.execute(
            f"SELECT r.id FROM request r JOIN destination d ON d.id = r.destination WHERE {_any(_PARTS, listed)}"
        )
        requests.update(number for (number,) in found.fetchall())
    for listed in _listed(requests):
        db.execute(f"DELETE FROM request_key WHERE request IN {listed}")
    record.forget()  # it remembers texts by their words
    return tuple(sorted(requests))


def _listed(numbers: Collection[int]) -> Iterator[str]:
    """Numbers as SQL, some at a time."""
    ordered = sorted(numbers)
    for start in range(0, len(ordered), LISTED_MAX):
        yield f"({', '.join(map(str, ordered[start : start + LISTED_MAX]))})"


def _any(columns: Collection[str], listed: str) -> str:
    return " OR ".join(f"{column} IN {listed}" for column in columns)


def _chains(db: sqlite3.Connection, texts: Collection[int]) -> list[tuple[int, bytes]]:
    """The links of those texts that there are."""
    found = (db.execute(f"SELECT id, chain FROM text WHERE id IN {listed}") for listed in _listed(texts))
    return [row for rows in found for row in rows.fetchall()]


def _is_there(db: sqlite3.Connection, number: int) -> bool:
    return db.execute("SELECT bytes IS NOT NULL FROM text WHERE id = ?", (number,)).fetchone()[0]


def _found(db: sqlite3.Connection, words: bytes, after: int, upto: int, go_on: Callable[[], None]) -> Iterator[int]:
    """The numbers of the texts after one and up to another that hold the words."""
    select = _SHORT if len(words) < SEARCHED_BYTES_MIN else _LONG
    for start in range(after, upto, SLICE):
        go_on()
        slice_ = {"after": start, "upto": min(start + SLICE, upto), "words": words}
        for number, text in db.execute(select, slice_):
            if holds(text, words):
                yield number


def _still(db: sqlite3.Connection, number: int, words: bytes) -> bool:
    row = db.execute("SELECT bytes FROM text WHERE id = ? AND bytes IS NOT NULL", (number,)).fetchone()
    return row is not None and holds(row[0], words)


def _holding(db: sqlite3.Connection, found: list[int], *, shown: bool = False) -> tuple[Holding, ...]:
    used = _used(db, found)
    named = _names(db, {request for one in used.values() for request in _some(one)})
    asked = _calls(db, {question for one in used.values() for question in one.questions})
    holding: list[Holding] = []
    for number in found:
        length, begins = db.execute(
            "SELECT length, substr(bytes, 1, ?) FROM text WHERE id = ?", (BEGINS_CHARACTERS * 4, number)
        ).fetchone()
        text = begins.decode("utf-8", "replace")[:BEGINS_CHARACTERS] if shown and begins else ""
        calls = tuple(named[request] for request in _some(used[number]) if request in named)
        uses = _together([used[number]], calls)
        uses = msgspec.structs.replace(uses, one_question=_is_of_one(used[number], asked))
        holding.append(Holding(number, length, uses, text))
    return tuple(holding)


def _calls(db: sqlite3.Connection, questions: Collection[int]) -> dict[int, set[int]]:
    """The requests that each of these questions was answered with when it was last asked."""
    found: dict[int, set[int]] = {}
    for listed in _listed(questions):
        sql = f"SELECT q.id, t.bytes FROM question q JOIN text t ON t.id = q.calls WHERE q.id IN {listed}"
        for number, calls in db.execute(sql):
            made = () if calls is None else CALLS.decode(calls)
            found[number] = {call.request_id for call in made}
    return found


def _is_of_one(used: _Used, asked: dict[int, set[int]]) -> bool:
    """Does all that uses a text belong to one question, and to no other?"""
    questions = used.questions | {question for question, calls in asked.items() if calls & used.requests}
    return len(questions) == 1 and all(used.requests <= asked.get(question, set()) for question in questions)


def _used(db: sqlite3.Connection, texts: Collection[int]) -> dict[int, _Used]:
    """Who uses each of these texts: reads every row that could, once a column."""
    used = {number: _Used() for number in texts}
    for listed in _listed(texts):
        for table, columns in TEXTS.items():
            for column in columns:
                _add_uses(db, used, table, column, listed)
        for column in _QUESTION:
            for number, question in db.execute(f"SELECT {column}, id FROM question WHERE {column} IN {listed}"):
                used[number].questions.add(question)
        for (number,) in db.execute(f"SELECT name FROM token WHERE name IN {listed}"):
            used[number].others += 1
    return used


def _add_uses(db: sqlite3.Connection, used: dict[int, _Used], table: str, column: str, listed: str) -> None:
    request, asking = _REQUEST_OF.get(table, "NULL"), _ASKING_OF.get(table, "NULL")
    answered = f"t.state = {State.ANSWERED}" if (table, column) == ("outcome", "reply") else "0"
    sql = f"SELECT t.{column}, {request}, {asking}, {answered} FROM {_FROM.get(table, f'{table} t')}"
    sql += f" WHERE t.{column} IN {listed}"
    for number, of_request, of_asking, is_answer in db.execute(sql):
        one = used[number]
        one.answers += is_answer
        if of_asking is not None:
            one.askings.add(of_asking)
        if of_request is not None:
            one.requests.add(of_request)
        elif (table, column) != ("moderation", "words"):  # these are the question's
            one.others += 1


def _some(used: _Used) -> list[int]:
    return sorted(used.requests)[:CALLS_MAX]


def _names(db: sqlite3.Connection, requests: Collection[int]) -> dict[int, str]:
    """The call_ids of requests; those that were erased have none."""
    found = (
        db.execute(f"SELECT request, hash FROM request_key WHERE request IN {listed}") for listed in _listed(requests)
    )
    return {request: call_id_of(hash) for rows in found for request, hash in rows}


def _together(used: Collection[_Used], calls: tuple[str, ...] = ()) -> Uses:
    return Uses(
        len(set[int]().union(*(one.requests for one in used))),
        sum(one.answers for one in used),
        len(set[int]().union(*(one.questions for one in used))),
        len(set[int]().union(*(one.askings for one in used))),
        sum(one.others for one in used),
        calls,
    )
