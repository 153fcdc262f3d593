"""The promise itself: the same bytes are never sent to the same place again unless somebody asks afresh."""

import asyncio
import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from archive.attempts import State
from archive.live import Place
from tests.fakes import answer, body, site, upstream
from tests.process import process
from tests.stored import answers, assert_sound, counts, outcomes, rows
from tests.stories.conftest import Asked, ended


async def test_the_second_ask_is_answered_from_the_record(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        first = await here.ask()
        second = await here.ask()
    assert (first.status, first.body, first.headers["Archive-Sent"]) == (200, answer(), "now")
    assert (second.status, second.body, second.headers["Archive-Sent"]) == (200, answer(), "no")
    assert second.headers["Archive-Answer"] == "1/1"
    assert second.headers["x-typesafe-request-id"] == first.headers["x-typesafe-request-id"]
    assert [got.body for got in model.got] == [body()]


async def test_a_thousand_identical_asks_at_once_are_one_call(tmp_path: Path, asked: Asked) -> None:
    """B18: nobody looks only at finished answers."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.gate = asyncio.Event()
        asks = [asyncio.create_task(here.ask()) for _ in range(1000)]
        await asked.wait(1000)
        model.gate.set()
        said = await asyncio.gather(*asks)
    assert len(model.got) == 1
    assert {(one.status, one.body, one.headers["Archive-Answer"]) for one in said} == {(200, answer(), "1/1")}
    assert Counter(one.headers["Archive-Sent"] for one in said) == {"now": 1, "shared": 999}
    assert counts(store) == {"now": 1, "shared": 999}
    assert answers(store) == {b'"Is it?"': [answer()]}
    assert outcomes(store) == ["answered"]


async def test_the_first_asker_who_leaves_takes_nothing_from_the_others(tmp_path: Path, asked: Asked) -> None:
    """B19. The others joined a call that was not theirs; it is nobody's."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        first = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        others = [asyncio.create_task(here.ask()) for _ in range(9)]
        await asked.wait(10)
        first.cancel()
        await asyncio.wait([first])
        others.append(asyncio.create_task(here.ask()))
        await asked.wait(1)
        model.gate.set()
        said = await asyncio.gather(*others)
    assert first.cancelled()
    assert {(one.status, one.body, one.headers["Archive-Sent"]) for one in said} == {(200, answer(), "shared")}
    assert len(model.got) == 1


async def test_an_answer_is_kept_though_everybody_left(tmp_path: Path, asked: Asked) -> None:
    """B19, B22: it was paid for."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        async with here.door.watch(Place("question")) as notices:
            asks = [asyncio.create_task(here.ask()) for _ in range(5)]
            await asked.wait(5)
            await model.arrived.acquire()
            for one in asks:
                one.cancel()
            await asyncio.wait(asks)
            # A round trip, so that the server has seen them go.
            assert (await here.ask(Cache_Control="only-if-cached")).status == 504
            model.gate.set()
            end = await ended(notices)
        later = await here.ask(Cache_Control="only-if-cached")
    assert (end.state, end.n) == (State.ANSWERED, 1)
    assert (later.status, later.body, later.headers["Archive-Sent"]) == (200, answer(), "no")
    assert len(model.got) == 1


async def test_asking_afresh_fifty_times_at_once_makes_one_more_version(tmp_path: Path, asked: Asked) -> None:
    """B23: a kept answer must not take the sharing away from those who want a newer one."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        await asked.wait(1)
        model.gate = asyncio.Event()
        asks = [asyncio.create_task(here.ask(Archive_Answer="fresh")) for _ in range(50)]
        await asked.wait(50)
        model.gate.set()
        said = await asyncio.gather(*asks)
    assert {(one.status, one.headers["Archive-Answer"]) for one in said} == {(200, "2/2")}
    assert len(model.got) == 2


async def test_a_thousand_asks_over_three_restarts_are_one_call(tmp_path: Path) -> None:
    """B05, B06: neither a hash seed, nor a restart, nor the store's own path has a part in what a request is."""
    store, moved = tmp_path / "a.db", tmp_path / "elsewhere" / "b.db"
    asked = body("Is it? " * 600)
    said: list[tuple[int, bytes]] = []
    assert len(asked) > 4096
    async with upstream() as model:
        for seed in ("0", "1", "42", "4294967295"):
            async with process(store, model.url, PYTHONHASHSEED=seed) as here:
                for _ in range(10):
                    some = await asyncio.gather(*(here.ask(asked) for _ in range(25)))
                    said += [(one.status, one.body) for one in some]
                assert await here.terminate() == 0
        moved.parent.mkdir()
        shutil.copy(store, moved)
        async with site(moved, model.url) as here:
            last = await here.ask(asked)
    assert len(said) == 1000
    assert set(said) == {(200, answer())}
    assert (last.status, last.body, last.headers["Archive-Sent"]) == (200, answer(), "no")
    assert [got.body for got in model.got] == [asked]
    assert rows(moved, "SELECT count(*) FROM request") == [(1,)]


ODD = (
    b'\n{ "usage": {"output_tokens": 20, "input_tokens":131},\t"answers":{"q":{"noul": 0.50, "type" :"noul"}},'
    b' "x_numbers": [1.0, 1e2, -0.0, 1E400, 174322306148984899, 0.10], "model":"jev-0", "model":"jev-1.13.0",'
    b' "x_a":"\\u00e9", "x_b":"\xc3\xa9", "x_nul":"before\\u0000after", "x_half":"\\ud800" }\r\n\n'
)
"""An answer as no serialiser writes it: order, spaces, number spellings, a key given twice, escapes, line ends."""

ODD_ASKED = {
    "odd": ODD.replace(b'"answers"', b'"state":"s","questions"').replace(b'0.50, "type"', b'1.0, "type"'),
    "nul": b'{"state":"before\x00after","model":"m","questions":{"q":{"type":"noul","instructions":"\\u0000?"}}}',
    "byte-order mark": b"\xef\xbb\xbf" + body(),
    "no JSON and no UTF-8": b"\xff\xfe{",
    "empty": b"",
}


@pytest.mark.parametrize("name", ODD_ASKED)
async def test_no_byte_changes_on_the_way_up_or_down_or_in_the_record(tmp_path: Path, name: str) -> None:
    """B47 (NUL), B50 (odd JSON)."""
    asked = ODD_ASKED[name]
    store = tmp_path / "a.db"
    async with upstream() as model:
        model.reply = ODD
        async with site(store, model.url) as here:
            said = [await here.ask(asked), await here.ask(asked)]
        async with site(store, model.url) as here:
            said.append(await here.ask(asked))
    assert [(one.status, one.headers["Archive-Sent"]) for one in said] == [(200, "now"), (200, "no"), (200, "no")]
    assert {sha256(one.body).hexdigest() for one in said} == {sha256(ODD).hexdigest()}
    assert [sha256(got.body).hexdigest() for got in model.got] == [sha256(asked).hexdigest()]
    assert rows(store, "SELECT hex(t.bytes) FROM outcome o JOIN text t ON t.id = o.reply") == [(ODD.hex().upper(),)]
    assert_sound(store)
