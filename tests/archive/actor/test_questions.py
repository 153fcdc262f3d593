"""The feed and the counts: pages that neither skip nor repeat, are found by index; sums the record bears out."""

from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path

import pytest
import pytest_asyncio

from archive.actor.store import Record, Store
from archive.actor.store.questions import PAGES
from archive.answer import stored
from archive.attempts import Outcome, Reply, State, Why
from archive.messages import After, Conclusion, Feed, Made, Noted, Order, Question, SoFar, Totals, Visited
from tests.actors import all_at_once, locked, queued, settled, told
from tests.archive.actor.recorded import sent, stranger
from tests.fakes import START, ask, request

YES = Conclusion("yes_no", stored("Yes"))
ORDERS = pytest.mark.parametrize("order", Order)


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest_asyncio.fixture(name="store")
async def _store(path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(path)
    try:
        yield opened
    finally:
        await opened.close()


def note(record: Record, words: str, times: int = 1, at: int = START, *, listed: bool = True) -> None:
    """A question was asked and answered."""
    record.note(Noted(Question(words), times, 1, (), YES, listed), at)


async def fill(store: Store, count: int, times: int = 1, at: int = START) -> list[str]:
    """So many questions asked equally often at the same moment; their words as the feed has them."""
    words = [f"Is it {n}?" for n in range(count)]
    await store.write(lambda record: [note(record, one, times, at) for one in words])
    return words[::-1]


async def page(
    store: Store, order: Order, after: After | None = None, most: int = 10
) -> tuple[list[str], After | None]:
    """The words on one page, and where the next begins."""
    listed = await store.look(lambda record: record.feed(Feed(order, after, most)))
    return [row.question.words for row in listed.rows], listed.after


async def pages(store: Store, order: Order, after: After | None = None, most: int = 10) -> list[list[str]]:
    """Every page from `after` on."""
    found: list[list[str]] = []
    while not found or after is not None:
        words, after = await page(store, order, after, most)
        found.append(words)
    return found


def plan(path: Path, order: Order) -> list[str]:
    """How SQLite finds a page."""
    with stranger(path) as db:
        return [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + PAGES[order], (5, 5, 51))]


# -- pages -----------------------------------------------------------------------------------------------------------


@ORDERS
async def test_equals_at_the_edge_of_a_page_are_each_seen_once(store: Store, order: Order) -> None:
    """B78."""
    words = await fill(store, 25)
    assert await pages(store, order) == [words[:10], words[10:20], words[20:]]


@ORDERS
async def test_a_thousand_equals_end_after_ten_pages(store: Store, order: Order) -> None:
    """B79."""
    words = await fill(store, 1000)
    found = await pages(store, order, most=100)
    assert (len(found), [*chain(*found)]) == (10, words)


@ORDERS
async def test_equals_between_others_stand_in_their_place(store: Store, order: Order) -> None:
    await fill(store, 7, times=5, at=START + 5)
    await store.write(lambda record: [note(record, f"Above {n}?", 6 + n, START + 6 + n) for n in range(4)])
    await store.write(lambda record: [note(record, f"Below {n}?", 1, START) for n in range(4)])
    found = await pages(store, order, most=3)
    above = [f"Above {n}?" for n in (3, 2, 1, 0)]
    below = [f"Below {n}?" for n in (3, 2, 1, 0)]
    assert [*chain(*found)] == [*above, *(f"Is it {n}?" for n in range(6, -1, -1)), *below]
    assert [len(one) for one in found] == [3] * 5


@ORDERS
async def test_what_is_asked_between_two_pages_neither_repeats_nor_hides_anything(store: Store, order: Order) -> None:
    """B80: three new ones, one of the first page again, and one that no page has shown yet."""
    words = await fill(store, 30)
    first, after = await page(store, order)

    def asked(record: Record) -> None:
        for n in range(3):
            note(record, f"New {n}?", 1, START + 1 + n)
        note(record, first[4], 1, START + 9)
        note(record, words[15], 1, START + 10)

    await store.write(asked)
    rest = [*chain(*await pages(store, order, after))]
    moved_up = words[15]
    assert rest == [one for one in words[10:] if one != moved_up]
    assert moved_up in (await page(store, order))[0], "and who looks from the top meets it there"


@ORDERS
async def test_a_clock_that_was_set_back_moves_nothing_down(store: Store, order: Order) -> None:
    words = await fill(store, 15)
    first, after = await page(store, order)
    await store.write(lambda record: [note(record, one, 1, START - 1_000_000) for one in first])
    assert (await page(store, order, after))[0] == words[10:]


@ORDERS
async def test_what_was_erased_is_left_out_and_pages_stay_full(store: Store, path: Path, order: Order) -> None:
    words = await fill(store, 60)
    gone = words[5:30]
    _, cursor = await page(store, order, most=20)
    with stranger(path) as db:
        for one in gone:
            db.execute(
                "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE bytes = CAST(? AS BLOB)", (one,)
            )
    assert await pages(store, order) == [words[:5] + words[30:35], words[35:45], words[45:55], words[55:]]
    assert (await page(store, order, cursor))[0] == words[30:40], "a cursor at an emptied row still leads on"


@ORDERS
@pytest.mark.parametrize("column", ["words", "form", "calls", "conclusion"])
async def test_a_question_of_which_any_text_was_erased_is_left_out(
    store: Store, path: Path, order: Order, column: str
) -> None:
    def work(record: Record) -> None:
        for n in range(3):
            question, conclusion = (
                Question(f"Is it {n}?", (f"one {n}", "other")),
                Conclusion("which", stored(f"one {n}")),
            )
            record.note(Noted(question, 1, 1, (Made("The answer", n, 1),), conclusion, True), START)

    await store.write(work)
    with stranger(path) as db:
        texts = db.execute("SELECT words, form, calls, conclusion FROM question WHERE id = 2").fetchone()
        number = texts[["words", "form", "calls", "conclusion"].index(column)]
        db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = ?", (number,))
    assert await pages(store, order) == [["Is it 2?", "Is it 0?"]]


@ORDERS
async def test_only_what_is_listed_is_in_the_feed(store: Store, order: Order) -> None:
    await store.write(lambda record: [note(record, f"Is it {n}?", listed=n % 2 == 0) for n in range(6)])
    assert await pages(store, order) == [["Is it 4?", "Is it 2?", "Is it 0?"]]


@ORDERS
async def test_a_page_that_is_just_full_is_the_last(store: Store, order: Order) -> None:
    await fill(store, 10)
    assert (await page(store, order))[1] is None


@ORDERS
async def test_no_cursor_is_too_strange_to_be_answered(store: Store, order: Order) -> None:
    words = await fill(store, 3)
    edge = 10**18 - 1
    assert (await page(store, order, After(edge, edge)))[0] == words
    assert (await page(store, order, After(0, 0)))[0] == []


@ORDERS
async def test_every_page_is_searched_for_in_the_index_of_its_order(store: Store, path: Path, order: Order) -> None:
    await fill(store, 1)
    index = {Order.LATELY: "question_last (last_at", Order.MOST: "question_times (times"}[order]
    found = plan(path, order)
    assert [step for step in found if " q " in step] == [
        f"SEARCH q USING INDEX {index}=? AND id<?)", f"SEARCH q USING INDEX {index}<?)"
    ]  # fmt: skip
    assert not [step for step in found if "SCAN" in step or "TEMP" in step]
    with stranger(path) as db:
        db.execute(f"DROP INDEX {index.split()[0]}")
    assert [step for step in plan(path, order) if "SCAN" in step or "TEMP" in step], "without it the test would see"


# -- counts ----------------------------------------------------------------------------------------------------------


OUTCOMES = {
    "answered, at a price": Outcome(State.ANSWERED, reply=Reply(200, b"{}"), cost=60_000),
    "answered, free": Outcome(State.ANSWERED, reply=Reply(200, b"{}"), cost=0),
    "answered, at no known price": Outcome(State.ANSWERED, reply=Reply(200, b"{}")),
    "not sent": Outcome(State.FAILED, Why.NO_CONNECTION),
    "refused": Outcome(State.FAILED, Why.PROVIDER_REFUSED, Reply(400, b"no")),
    "refused and paid for": Outcome(State.FAILED, Why.NOT_AN_ANSWER, Reply(200, b"no"), paid=True),
    "unknown": Outcome(State.UNKNOWN, Why.SLOW),
}
WORTH = {
    "answered, at a price": (1, 60_000, 0),
    "answered, free": (1, 0, 0),
    "answered, at no known price": (1, 0, 1),
    "not sent": (0, 0, 0),
    "refused": (1, 0, 0),
    "refused and paid for": (1, 0, 1),
    "unknown": (1, 0, 1),
}
"""By outcome: calls that left, billionths of a dollar, prices that are unknown."""


def ended(record: Record, outcome: Outcome, late: Outcome | None = None) -> None:
    """A call with an outcome, and maybe a late one."""
    _, dispatch = sent(record, request())
    record.add_outcome(dispatch, 1, outcome, 7, START)
    if late is not None:
        record.add_outcome(dispatch, 2, late, 9, START)


def spent(so_far: SoFar) -> tuple[int, int, int]:
    return so_far.sent, so_far.spent, so_far.spent_unknown


@pytest.mark.parametrize("name", OUTCOMES)
async def test_each_outcome_counts_for_what_it_was(store: Store, name: str) -> None:
    await store.write(lambda record: ended(record, OUTCOMES[name]))
    assert spent(await store.look(Record.so_far)) == WORTH[name]


@pytest.mark.parametrize(("late", "worth"), [(60_000, (1, 60_000, 0)), (0, (1, 0, 0)), (None, (1, 0, 1))])
async def test_a_late_answer_tells_the_price_of_its_call_once(
    store: Store, late: int | None, worth: tuple[int, int, int]
) -> None:
    answer = Outcome(State.ANSWERED, reply=Reply(200, b"{}"), cost=late)
    await store.write(lambda record: ended(record, Outcome(State.UNKNOWN, Why.SLOW), answer))
    assert spent(await store.look(Record.so_far)) == worth


async def test_the_running_counts_are_what_the_record_says_counted_anew(store: Store, path: Path) -> None:
    def work(record: Record) -> None:
        for turn in range(3):
            for outcome in OUTCOMES.values():
                ended(record, outcome)
            ended(record, OUTCOMES["unknown"], OUTCOMES["answered, at a price"])
            for n in range(5):
                note(record, f"Is it {n + turn}?", 1 + turn, listed=n % 2 == 0)
        record.note(Noted(Question("Is it 2?"), 4), START)
        record.note(Noted(Question("never noted before"), 4), START)
        record.count({"no": 5, "shared": 2, "now": 3, "saved": 70, "saved_unknown": 1})

    await store.write(work)
    running = await store.look(Record.so_far)
    with stranger(path) as db:
        calls = db.execute("SELECT dispatch, n, state, paid, reply, cost FROM outcome ORDER BY dispatch, n").fetchall()
        questions = db.execute("SELECT times FROM question").fetchall()
    last = {call[0]: call for call in calls}.values()
    left = [call for call in last if not (call[2] == State.FAILED and call[4] is None)]
    unpriced = [call for call in left if call[5] is None and (call[2] != State.FAILED or call[3])]
    assert running == SoFar(
        questions=len(questions), asked=sum(times for (times,) in questions),
        sent=len(left), spent=sum(call[5] or 0 for call in last), spent_unknown=len(unpriced),
        not_sent=7, saved=70, saved_unknown=1,
    )  # fmt: skip
    assert running.asked == 5 * (1 + 2 + 3) + 4
    await store.write(Record.recount)
    assert await store.look(Record.so_far) == running
    await store.write(lambda record: record.db.execute("UPDATE count SET value = 1000"))
    await store.write(Record.recount)
    assert spent(await store.look(Record.so_far)) == spent(running)


async def test_what_the_decision_model_answered_alone_is_counted_as_each_question_stands_now(store: Store) -> None:
    asked: list[tuple[str, Conclusion | None, bool]] = [
        ("a", YES, True), ("b", YES, True), ("b", YES, True), ("b", None, False), ("a", YES, False), ("c", YES, False),
    ]  # fmt: skip
    counted: list[int] = []
    for words, came_to, alone in asked:
        noted = Noted(Question(words), 1, 1, (), came_to, False, alone)
        await store.write(lambda record, noted=noted: record.note(noted, START))
        counted.append((await store.look(Record.so_far)).alone)
    assert counted == [1, 2, 2, 2, 1, 1]
    await store.write(Record.recount)
    assert (await store.look(Record.so_far)).alone == 1


async def test_what_a_failing_message_counted_is_not_counted(store: Store) -> None:
    def work(record: Record) -> None:
        with pytest.raises(ZeroDivisionError), record.savepoint():
            ended(record, OUTCOMES["answered, at a price"])
            note(record, "Is it?")
            raise ZeroDivisionError

    await store.write(work)
    assert await store.look(Record.so_far) == SoFar()


async def test_the_totals_read_nothing_but_the_counts(store: Store) -> None:
    await fill(store, 3)
    said: list[str] = []

    def traced(record: Record) -> SoFar:
        record.db.set_trace_callback(said.append)
        try:
            return record.so_far()
        finally:
            record.db.set_trace_callback(None)

    assert (await store.look(traced)).questions == 3
    assert said == ["SELECT name, value FROM count"]


async def test_absurd_prices_do_not_keep_an_answer_from_being_written(store: Store) -> None:
    """A model may name any price; the sum stops growing, and every answer is on record."""
    price = Outcome(State.ANSWERED, reply=Reply(200, b"{}"), cost=10**15)
    await store.write(lambda record: record.count({"spent": 2**61 - 10, "saved": 2**200}))
    await store.write(lambda record: [ended(record, price) for _ in range(3)])
    so_far = await store.look(Record.so_far)
    assert (so_far.sent, so_far.spent, so_far.saved) == (3, 2**61, 2**61)


@pytest.mark.parametrize(
    ("usage", "saved", "unknown"), [(b'"cost":0.00006', 180_000, 0), (b'"cost":0', 0, 0), (b"", 0, 3)]
)
async def test_what_was_not_sent_saved_what_its_answer_cost(path: Path, usage: bytes, saved: int, unknown: int) -> None:
    """One call, joined by one on the wire; then handed out from the map of recent answers, and from the record."""
    body = b'{"answers":{"q":{"type":"noul","noul":0.5}},"usage":{%s}}' % usage
    async with queued(path) as (door, model, _):
        asking = all_at_once(door, [ask(), ask()])
        (await model.next()).set_result(Reply(200, body))
        for one in asking:
            await told(one)
        await door.send(ask())
        await settled(door)
        so_far = await door.send(Totals())
        assert (so_far.sent, so_far.not_sent, so_far.saved, so_far.saved_unknown) == (
            1,
            2,
            saved * 2 // 3,
            unknown * 2 // 3,
        )
    async with queued(path) as (door, model, _):
        await door.send(ask())
        await settled(door)
        so_far = await door.send(Totals())
        assert (so_far.sent, so_far.not_sent, so_far.saved, so_far.saved_unknown) == (1, 3, saved, unknown)
        assert model.requests == []


async def test_the_feed_and_the_totals_are_read_while_nothing_can_be_written(path: Path) -> None:
    async with queued(path) as (door, _, _):
        await door.send(Noted(Question("Is it?"), 1, 1, (), YES, True))
        with locked(path):
            listed, so_far = await door.send(Feed(Order.MOST)), await door.send(Totals())
    assert [row.question.words for row in listed.rows] == ["Is it?"]
    assert (so_far.questions, so_far.asked) == (1, 1)


async def test_looks_are_added_up_in_memory_and_written_each_second_and_when_it_stops(path: Path) -> None:
    async with queued(path) as (door, _, clock):
        for words in ("Is it?", "Is it later?"):
            await door.send(Noted(Question(words), 1, 1, (), YES, True))
        listed = (await door.send(Feed())).rows
        with locked(path):
            for _ in range(3):
                await door.send(Visited(listed[1].number))
            await door.send(Visited(12345))  # erased by now
            assert [row.times for row in (await door.send(Feed(Order.MOST))).rows] == [1, 1]
        clock.advance(1)
        await settled(door)
        most = (await door.send(Feed(Order.MOST))).rows
        assert [(row.question.words, row.times, row.last_at) for row in most] == [
            ("Is it?", 4, listed[1].last_at),
            ("Is it later?", 1, listed[0].last_at),
        ]
        assert (await door.send(Totals())).asked == 5
        await door.send(Visited(listed[0].number))
    async with queued(path) as (door, _, _):
        assert [row.times for row in (await door.send(Feed(Order.MOST))).rows] == [4, 2]
        assert (await door.send(Totals())).asked == 6
