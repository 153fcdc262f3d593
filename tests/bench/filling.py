"""Stores with many kept answers, made through Store and Record as the actor makes them, not over HTTP."""

import asyncio
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from archive.actor.store import Record, Store
from archive.attempts import Outcome, Reply, read
from archive.request import Destination, Request, asked_model
from tests.bench import words
from tests.bench.report import progress

GROUP = 2_000
START = 1_780_000_000_000_000

Pair = tuple[Request, Outcome]


def destination(model_url: str) -> Destination:
    """System One's route at `model_url`, as web/app.py names it."""
    return Destination("systemone", "POST", f"{model_url}/v1/systemone")


def pair(place: Destination, body: bytes, reply: bytes, provider_id: bytes) -> Pair:
    """A request and what came of it."""
    request = Request(place, body)
    return request, read(request, Reply(200, reply, "application/json", provider_id.decode()), START)


def pairs(place: Destination, first: int, count: int) -> Iterable[Pair]:
    """`count` distinct requests of words.ask and their outcomes."""
    for number in range(first, first + count):
        yield pair(place, words.ask(number), words.answer(number), words.provider_id(number))


def keep(record: Record, group: list[Pair]) -> None:
    """Write each pair as a request, its sending, its outcome and its answer."""
    for request, outcome in group:
        found = record.add_request(request)
        dispatch = record.add_dispatch(found.id, asked_model(request), START)
        record.add_answer(found.id, record.add_outcome(dispatch, 1, outcome, 300, START))


async def _fill(path: Path, made: Iterable[Pair]) -> None:
    store = await Store.open(path)
    kept, source = 0, iter(made)
    while group := list(islice(source, GROUP)):
        await store.write(lambda record, group=group: keep(record, group))
        kept += len(group)
        if kept % 50_000 == 0:
            progress(f"{kept:,} answers kept in {path.name}")
    await store.close()


def fill(path: Path, made: Iterable[Pair]) -> None:
    """Make or extend the store at `path`; everything is in the main file when this returns."""
    asyncio.run(_fill(path, made))


class Stores:
    """Filled stores by size, each made once a run, all for one upstream."""

    def __init__(self, folder: Path, model_url: str) -> None:
        self.folder = folder
        self.model_url = model_url
        self.place = destination(model_url)
        self._made: dict[int, Path] = {}
        self._fresh = 0
        self._number = 1_000_000_000

    def of(self, kept: int) -> Path:
        """The store with answers 0 to `kept` - 1."""
        if kept not in self._made:
            progress(f"making a store with {kept:,} kept answers")
            path = self.folder / f"kept-{kept}.db"
            fill(path, pairs(self.place, 0, kept))
            self._made[kept] = path
        return self._made[kept]

    def empty(self) -> Path:
        """A path where nothing is yet."""
        self._fresh += 1
        return self.folder / f"fresh-{self._fresh}.db"

    def numbers(self, count: int) -> int:
        """The first of `count` numbers that no store holds and nobody asked yet."""
        first = self._number
        self._number += count
        return first
