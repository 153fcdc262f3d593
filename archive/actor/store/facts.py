"""Numbers about all named askings, pass by pass, counted from the rows themselves.

Reads a slice at a time on a connection of its own (file.py), so that neither the actor nor the write-ahead log waits
for it: rows are only ever added, so the slices agree. What must never be here: a number anybody wrote down before.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from archive.actor.store.record import Record
from archive.attempts import State
from archive.multipart import asked_in
from archive.naming import Counted, PassFacts, comes_to
from archive.request import Parts, join, loads

SLICE = 2_000
"""Askings read at once: a few milliseconds."""

_SLICE = """
SELECT k.id, k.pass, k.about, k.reading, k.request, k.dispatch, o.id, o.state, o.reply, o.answered_model,
       d.asked_model, r.instructions, r.state, r.state_at, r.model, r.model_at, r.content_type,
       r.whole
FROM asking k JOIN request r ON r.id = k.request
LEFT JOIN answer s ON s.id = k.answer
LEFT JOIN outcome o ON o.id = coalesce(s.outcome, (
    SELECT l.id FROM outcome l WHERE l.dispatch = k.dispatch ORDER BY l.n DESC LIMIT 1))
LEFT JOIN dispatch d ON d.id = coalesce(k.dispatch, o.dispatch)
WHERE k.id > ? ORDER BY k.id LIMIT ?"""

_INPUTS = "SELECT asking, name, words FROM asking_input WHERE asking > ? AND asking <= ?"

_ANSWERS = """
SELECT count(*), coalesce(sum(coalesce(length(i.bytes), 0) + coalesce(length(s.bytes), 0)
    + coalesce(length(m.bytes), 0) + coalesce(length(t.bytes), 0)), 0)
FROM answer a JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply
JOIN request r ON r.id = a.request JOIN text i ON i.id = r.instructions
LEFT JOIN text s ON s.id = r.state LEFT JOIN text m ON m.id = r.model
WHERE a.id > ?1 AND a.id <= ?1 + ?2"""

_TEXTS = "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM text WHERE id > ?1 AND id <= ?1 + ?2"


_LENGTH = "SELECT coalesce(length(bytes), 0) FROM text WHERE id = ?"


class _Row(NamedTuple):
    """A row of _SLICE; all but `id` to `whole` are numbers of texts and rows, or None."""

    id: int
    pass_: int | None
    about: int | None
    reading: int | None
    request: int
    dispatch: int | None
    outcome: int | None
    state: int | None
    reply: int | None
    answered_model: int | None
    asked_model: int | None
    instructions: int
    state_text: int | None
    state_at: int | None
    model: int | None
    model_at: int | None
    content_type: int
    whole: int


_Read = tuple[int, int, int | None, int | None, int, int | None]
"""What a reading comes to depends on: itself, the instructions, where state and model stand in them, their type, the
reply."""


@dataclass
class _Pass:
    """What is added up for one pass."""

    askings: int = 0
    requests: dict[int, bool] = field(default_factory=dict[int, bool])
    versions: set[int] = field(default_factory=set[int])
    dispatches: set[int] = field(default_factory=set[int])
    states: Counter[int | None] = field(default_factory=Counter[int | None])
    readings: Counter[_Read] = field(default_factory=Counter[_Read])
    models: Counter[tuple[int | None, int | None]] = field(default_factory=Counter[tuple[int | None, int | None]])
    texts: set[int] = field(default_factory=set[int])
    whole_bytes: int = 0


class _Texts:
    """Lengths and words of texts by number, looked up once each."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._lengths: dict[int, int] = {}

    def length(self, text: int) -> int:
        """How many bytes of it there are; none when it was erased."""
        found = self._lengths.get(text)
        if found is None:
            found = self._lengths[text] = self._record.one(_LENGTH, text)[0]
        return found

    def words(self, text: int | None) -> bytes | None:
        """None: there is none, or it was erased."""
        return None if text is None else self._record.one("SELECT bytes FROM text WHERE id = ?", text)[0]

    def string(self, text: int | None) -> str | None:
        words = self.words(text)
        return None if words is None else words.decode("utf-8", "surrogatepass")


def counted(record: Record, go_on: Callable[[], None]) -> Counted:
    """Count everything. `go_on` is called before each slice and may raise, which ends it."""
    passes: dict[int | None, _Pass] = {}
    texts = _Texts(record)
    last = 0
    while rows := [_Row(*row) for row in _slice(record, last, go_on)]:
        inputs: dict[int, list[int]] = {}
        for asking, name, words in record.db.execute(_INPUTS, (last, rows[-1].id)):
            inputs.setdefault(asking, []).extend(text for text in (name, words) if text is not None)
        for row in rows:
            _add(passes.setdefault(row.pass_, _Pass()), row, inputs.get(row.id, []), texts)
        last = rows[-1].id
    found = [_facts(number, one, texts, go_on) for number, one in passes.items()]
    answers, whole = _summed(record, "answer", _ANSWERS, go_on)
    _, stored = _summed(record, "text", _TEXTS, go_on)
    return Counted(tuple(sorted(found, key=lambda one: one.pass_)), answers, stored, whole)


def _slice(record: Record, last: int, go_on: Callable[[], None]) -> list[tuple[int, ...]]:
    go_on()
    return record.db.execute(_SLICE, (last, SLICE)).fetchall()


def _summed(record: Record, table: str, sql: str, go_on: Callable[[], None]) -> tuple[int, int]:
    """Both sums of `sql` over all rows of a table, many slices."""
    count = total = 0
    end = record.one(f"SELECT coalesce(max(id), 0) FROM {table}")[0]
    for start in range(0, end, SLICE):
        go_on()
        more, bytes_more = record.one(sql, start, SLICE)
        count, total = count + more, total + bytes_more
    return count, total


def _add(one: _Pass, row: _Row, inputs: list[int], texts: _Texts) -> None:
    one.askings += 1
    one.requests[row.request] = bool(row.whole)
    one.versions.add(row.instructions)
    if row.dispatch is not None:
        one.dispatches.add(row.dispatch)
    one.states[row.state] += 1
    if row.state == State.ANSWERED:
        one.models[row.asked_model, row.answered_model] += 1
    if row.reading is not None:
        said = row.reply if row.state == State.ANSWERED else None
        one.readings[row.reading, row.instructions, row.state_at, row.model_at, row.content_type, said] += 1
    named = (row.pass_, row.about, row.reading, *inputs)
    used = [text for text in (row.instructions, row.state_text, row.model, row.reply, *named) if text is not None]
    one.texts.update(used)
    one.whole_bytes += sum(texts.length(text) for text in used)


def _facts(number: int | None, one: _Pass, texts: _Texts, go_on: Callable[[], None]) -> PassFacts:
    readings: Counter[tuple[str, str | None]] = Counter()
    for at, (read, times) in enumerate(one.readings.items()):
        if at % SLICE == 0:
            go_on()
        readings[texts.string(read[0]) or "", _came_to(read, texts)] += times
    models = Counter[tuple[str | None, str | None]]()
    for (asked, answered), times in one.models.items():
        models[texts.string(asked), texts.string(answered)] += times
    return PassFacts(
        texts.string(number) or "",
        one.askings,
        len(one.requests),
        len(one.versions),
        sum(one.requests.values()),
        len(one.dispatches),
        one.askings - len(one.dispatches),
        one.states[State.ANSWERED],
        one.states[State.FAILED],
        one.states[State.UNKNOWN],
        one.states[None],
        tuple((reading, word, times) for (reading, word), times in readings.most_common()),
        tuple((asked, answered, times) for (asked, answered), times in models.most_common()),
        sum(texts.length(text) for text in one.texts),
        one.whole_bytes,
    )


def _came_to(read: _Read, texts: _Texts) -> str | None:
    """What a reading came to on one answer. The questions stand in the instructions; the state is not needed for it."""
    reading, instructions, state_at, model_at, content_type, reply = read
    rule, asked, said = texts.string(reading), texts.words(instructions), texts.words(reply)
    if rule is None or asked is None or said is None:
        return None
    if state_at is not None and model_at is not None:
        asked = join(Parts(asked, b"0", state_at, b"0", model_at))
    return comes_to(rule, loads(asked_in(texts.string(content_type) or "", asked)), said)
