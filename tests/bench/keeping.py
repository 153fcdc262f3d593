"""Section 2: new answers kept durably, in the store alone and through the whole server over loopback HTTP."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from archive.actor.store import Record, Store
from archive.request import Request, asked_model
from tests.bench import words
from tests.bench.filling import START, Pair, Stores, keep, pairs
from tests.bench.load import Work
from tests.bench.processes import Load, Upstream, product
from tests.bench.report import Row, middle, number, progress, table

GROUP = 64
IN_FLIGHT = 64
STORE_TARGET = 20_000
WHOLE_TARGET = 3_000


def run(stores: Stores, upstream: Upstream, load: Load, rounds: int, count: int) -> None:
    """Measure and print both halves."""
    _print_store(asyncio.run(_in_store(stores, rounds, count)))
    _whole(stores, upstream, load, rounds, count // 2)


# -- the store alone -------------------------------------------------------------------------------------------------


class Way:
    """One way of keeping answers in groups, timed round after round."""

    def __init__(self, write: Callable[[list[Pair]], Awaitable[object]]) -> None:
        self._write = write
        self._rates: list[float] = []
        self._cpu: list[float] = []

    async def round(self, made: list[Pair]) -> None:
        """Keep all of them, a group a call."""
        began, used = time.perf_counter(), time.process_time()
        for start in range(0, len(made), GROUP):
            await self._write(made[start : start + GROUP])
        self._rates.append(len(made) / (time.perf_counter() - began))
        self._cpu.append((time.process_time() - used) / len(made) * 1e6)

    @property
    def rate(self) -> float:
        """Answers a second, the median."""
        return middle(self._rates)

    @property
    def cpu(self) -> float:
        """µs of CPU an answer, the median."""
        return middle(self._cpu)


async def _in_store(stores: Stores, rounds: int, count: int) -> list[Way]:
    """A plain table, the record in one transaction a group, the record as in life."""
    plain = await asyncio.to_thread(_plain_open, stores.empty())
    store, lived = await Store.open(stores.empty()), await Store.open(stores.empty())

    async def two(group: list[Pair]) -> None:
        asked = await lived.write(lambda record: _ask(record, group))
        await lived.write(lambda record: _finish(record, group, asked))

    ways = [
        Way(lambda group: asyncio.to_thread(_plain_write, plain, group)),
        Way(lambda group: store.write(lambda record: keep(record, group))),
        Way(two),
    ]
    for at in range(rounds):
        progress(f"answers kept in the store: round {at + 1} of {rounds}")
        made = list(pairs(stores.place, stores.numbers(count), count))
        for way in ways:
            await way.round(made)
    await store.close()
    await lived.close()
    plain.close()
    return ways


def _plain_open(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, body BLOB, reply BLOB, provider_id TEXT)")
    return db


def _plain_write(db: sqlite3.Connection, group: list[Pair]) -> None:
    db.execute("BEGIN IMMEDIATE")
    for request, outcome in group:
        assert outcome.reply is not None
        db.execute(
            "INSERT INTO plain (body, reply, provider_id) VALUES (?, ?, ?)",
            (request.body, outcome.reply.body, outcome.reply.provider_id),
        )
    db.execute("COMMIT")


def _ask(record: Record, group: list[Pair]) -> list[tuple[int, int]]:
    """What the actor writes for an Ask, each in its savepoint."""
    asked: list[tuple[int, int]] = []
    for request, _ in group:
        with record.savepoint():
            found = record.find(request) or record.add_request(request)
            record.spend("model", 0)
            asked.append((found.id, record.add_dispatch(found.id, asked_model(request), START)))
    return asked


def _finish(record: Record, group: list[Pair], asked: list[tuple[int, int]]) -> None:
    """What the actor writes for a Finished, each in its savepoint."""
    for (_, outcome), (request, dispatch) in zip(group, asked, strict=True):
        with record.savepoint():
            record.came_to(dispatch)
            record.add_answer(request, record.add_outcome(dispatch, 1, outcome, 300, START))


def _print_store(ways: list[Way]) -> None:
    plain, one, lived = ways
    beside, cpu = f"{number(plain.rate)}/s: one INSERT each, same groups", f"{plain.cpu:.0f} µs"
    row = Row("Store.write + Record", f"{number(one.rate)}/s", beside, f"{one.rate / plain.rate:.2f}")
    life = "as the actor does it: two transactions, savepoints"
    table(
        "2a. New answers kept: the store alone",
        [f"synchronous=FULL, groups of {GROUP}, one thread call a group; request, dispatch, outcome and answer each."],
        [
            row._replace(target=f"≥ {STORE_TARGET:,}/s", met=one.rate >= STORE_TARGET),
            Row("  CPU an answer", f"{one.cpu:.0f} µs", cpu, f"{plain.cpu / one.cpu:.2f}"),
            Row(life, f"{number(lived.rate)}/s", beside, f"{lived.rate / plain.rate:.2f}"),
            Row("  CPU an answer", f"{lived.cpu:.0f} µs", cpu, f"{plain.cpu / lived.cpu:.2f}"),
        ],
    )


# -- through the whole server ----------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """Rates a second and the product's µs of CPU an answer, a round each; and what was counted."""

    bare: list[float]
    whole: list[float]
    cpu: list[float]


def _whole(stores: Stores, upstream: Upstream, load: Load, rounds: int, count: int) -> None:
    path = stores.empty()
    kept = Kept([], [], [])
    calls = acknowledged = 0
    with product(path, stores.model_url) as server:
        for at in range(rounds + 1):
            progress(f"new answers over HTTP: round {at} of {rounds}" if at else "new answers over HTTP: warming up")
            first = stores.numbers(count)
            bare = load.run(Work(upstream.port, count, count, first, connections=IN_FLIGHT, client="aiohttp"))
            before, used = upstream.calls(), server.cpu()
            whole = load.run(Work(server.port, count, count, first, connections=IN_FLIGHT))
            calls += upstream.calls() - before
            acknowledged += whole.answered
            if at:
                kept.bare.append(count / bare.seconds)
                kept.whole.append(whole.answered / whole.seconds)
                kept.cpu.append((server.cpu() - used) / count * 1e6)
        server.stop()
    stored = _stored(path)
    asks = (rounds + 1) * count
    bare, whole = middle(kept.bare), middle(kept.whole)
    table(
        "2b. New answers kept: the whole server over loopback HTTP",
        [f"{IN_FLIGHT} in flight, distinct asks of 600 bytes, an upstream that answers at once, in its own process."],
        [
            Row(
                "Askonce, asked, called, kept",
                f"{number(whole)}/s",
                f"{number(bare)}/s: bare aiohttp loop, keeps nothing",
                f"{whole / bare:.2f}",
                f"≥ {WHOLE_TARGET:,}/s",
                whole >= WHOLE_TARGET,
            ),
            Row("  its CPU an answer", f"{middle(kept.cpu):.0f} µs"),
            Row("calls made", number(calls), f"{number(asks)} asks", f"{calls / asks:.3f}", "= 1.000", calls == asks),
            Row(
                "answers stored",
                number(stored),
                f"{number(acknowledged)} acknowledged",
                f"{stored / max(1, acknowledged):.3f}",
                "= 1.000",
                stored == acknowledged,
            ),
            _killed(stores, load, count),
        ],
    )


def _stored(path: Path) -> int:
    """How many answers are in a store that no process has open."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute("SELECT count(*) FROM answer").fetchone()[0]
    finally:
        db.close()


def _killed(stores: Stores, load: Load, count: int) -> Row:
    """Kill -9 in the middle, open the store again: is every acknowledged answer there?"""
    path = stores.empty()
    count = max(count, 4_000)
    first = stores.numbers(count)
    progress("killing the server in the middle")
    with product(path, stores.model_url) as server:
        load.start(Work(server.port, count, count, first, connections=IN_FLIGHT, tell=True))
        time.sleep(0.8)
        server.kill()
        acknowledged = load.result().acknowledged
    found = asyncio.run(_found(path, [Request(stores.place, words.ask(at)) for at in acknowledged]))
    lost = len(acknowledged) - found
    what = "killed in the middle: acknowledged, not in the record"
    return Row(what, str(lost), f"{number(len(acknowledged))} acknowledged", "", "= 0", lost == 0)


async def _found(path: Path, requests: list[Request]) -> int:
    store = await Store.open(path)

    def look(record: Record) -> int:
        found = [record.find(request) for request in requests]
        return sum(one is not None and record.known(one.id, None).total == 1 for one in found)

    try:
        return await store.look(look)
    finally:
        await store.close()
