"""Section 6: pages of the front page's two lists, near the top and far down, through the actor."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from archive.actor.actor import Actor
from archive.actor.store import Record, Store
from archive.answer import read
from archive.messages import After, Conclusion, Feed, Made, Message, Named, Noted, Order, Question, Totals
from tests.bench.filling import GROUP, START, Stores
from tests.bench.report import Row, middle, progress, table
from tests.fakes import FakeClock

P99_MS = 2.0
FAR = 1_000
"""The page far down; the last one there is, where there are fewer."""

PAGE = 50


class Took:
    """How long one message takes, round after round."""

    def __init__(self, what: str, message: Message[object]) -> None:
        self.what = what
        self._message = message
        self._p50: list[float] = []
        self._p99: list[float] = []

    async def round(self, door: Actor, count: int, warm: bool = False) -> None:
        """Send it so many times, one after another; the first time, only to warm it up."""
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            await door.send(self._message)
            took.append(time.perf_counter() - began)
        took.sort()
        if warm:
            return
        self._p50.append(took[count // 2] * 1000)
        self._p99.append(took[count * 99 // 100] * 1000)

    @property
    def p50(self) -> float:
        """Milliseconds, the median of the rounds."""
        return middle(self._p50)

    @property
    def p99(self) -> float:
        """Milliseconds, the median of the rounds."""
        return middle(self._p99)


def run(stores: Stores, questions: int, rounds: int, count: int) -> None:
    """Measure and print."""
    progress(f"making a store with {questions:,} questions")
    path = stores.empty()
    every, page = asyncio.run(_measure(path, questions, rounds, count))
    path.unlink()
    floor, *messages = every
    rows = [_row(took, floor) for took in messages]
    notes = [
        f"{questions:,} listed questions, nine of ten asked once, ten at a moment. {PAGE} rows a page, each with its",
        "words, answer and calls; one after another, through the actor's mailbox. Far down is page "
        f"{page:,} of {questions // PAGE:,}.",
    ]
    beside = Row("floor: a look-up by name that finds nothing", f"{floor.p50:.2f} ms", "", "", "")
    table("6. The feed", notes, [beside, *rows])


def _row(took: Took, floor: Took) -> Row:
    return Row(
        took.what,
        f"p50 {took.p50:.2f} ms, p99 {took.p99:.2f} ms",
        f"{floor.p50:.2f} ms: the floor",
        f"{took.p50 / floor.p50:.1f}",
        f"p99 < {P99_MS:.0f} ms",
        took.p99 < P99_MS,
    )


async def _measure(path: Path, questions: int, rounds: int, count: int) -> tuple[Sequence[Took], int]:
    await _fill(path, questions)
    far = min(FAR, max(1, questions // PAGE))
    async with _opened(path) as door:
        every = [Took("floor", Named("0" * 12))]
        for order in Order:
            every.append(Took(f"{order}: page 1", Feed(order)))
            every.append(Took(f"{order}: page {far:,}", Feed(order, await _after(door, order, far - 1))))
        every.append(Took("totals", Totals()))
        for at in range(rounds + 1):
            progress(f"the feed: round {at} of {rounds}" if at else "the feed: warming up")
            for took in every:
                await took.round(door, count, warm=not at)
    return every, far


@asynccontextmanager
async def _opened(path: Path) -> AsyncGenerator[Actor, None]:
    async with Actor(path, lambda _: None, FakeClock()) as door:
        yield door


async def _after(door: Actor, order: Order, pages: int) -> After | None:
    """Where so many pages end."""
    after = None
    for _ in range(pages):
        after = (await door.send(Feed(order, after))).after
    return after


async def _fill(path: Path, questions: int) -> None:
    store = await Store.open(path)
    for first in range(0, questions, GROUP):
        numbers = range(first, min(questions, first + GROUP))
        await store.write(lambda record, numbers=numbers: _note(record, numbers))
    await store.close()


def _note(record: Record, numbers: range) -> None:
    for number in numbers:
        answer = read({"type": "noul", "noul": number % 101 / 100}, None)
        calls = (Made("What kind of question it is", 2 * number + 1, 1), Made("The answer", 2 * number + 2, 1))
        times = 1 if number % 10 else 1 + number * 7919 % 1000
        question = Question(f"Is this question number {number}, and does anybody ever ask it twice?")
        noted = Noted(question, times, 1, calls, Conclusion("yes_no", answer), True)
        record.note(noted, START + number // 10 * 1_000_000)
