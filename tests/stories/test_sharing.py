"""Many ask the same at once: one call answers all who stay, whoever leaves, and it is kept though everyone left."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from archive.attempts import State
from archive.live import Changed, Place
from tests.fakes import Said, Site, Upstream, answer, body, site, upstream
from tests.stored import answers, counts
from tests.stories.conftest import Asked, ended
from tests.wires import dial, reset


def asks(here: Site, n: int, pick: str | None = None) -> list[asyncio.Task[Said]]:
    """n of the same ask at once."""
    headers = {} if pick is None else {"Archive-Answer": pick}
    return [asyncio.create_task(here.ask(body(), **headers)) for _ in range(n)]


async def let_it_end(here: Site, model: Upstream) -> Changed:
    """Let the upstream answer, and wait until what came of it is on record."""
    assert model.gate is not None
    async with here.door.watch(Place("test")) as notices:
        model.gate.set()
        return await ended(notices)


def marks(said: list[Said]) -> Counter[str]:
    return Counter(one.headers["Archive-Sent"] for one in said)


async def test_a_hundred_identical_asks_are_one_call_and_are_counted_exactly(tmp_path: Path, asked: Asked) -> None:
    """B18."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.gate = asyncio.Event()
        together = asks(here, 100)
        await asked.wait(100)
        model.gate.set()
        said = await asyncio.gather(*together)
        after = await asyncio.gather(*asks(here, 10))
    assert {(one.status, one.body, one.headers["Archive-Answer"]) for one in said + after} == {(200, answer(), "1/1")}
    assert marks(said) == {"now": 1, "shared": 99}
    assert Counter(one.headers["Cache-Status"].rpartition("; ")[2] for one in said) == {"stored": 1, "collapsed": 99}
    assert marks(after) == {"no": 10}
    assert len(model.got) == 1
    assert counts(store) == {"now": 1, "shared": 99, "no": 10}


async def test_when_the_first_asker_hangs_up_the_others_are_answered_by_its_call(tmp_path: Path, asked: Asked) -> None:
    """B19."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        _, first = await dial(here.url, body())
        await asked.wait(1)
        others = asks(here, 4)
        await asked.wait(4)
        reset(first)
        assert (await let_it_end(here, model)).n == 1
        said = await asyncio.gather(*others)
    assert [(one.status, one.body, one.headers["Archive-Sent"]) for one in said] == [(200, answer(), "shared")] * 4
    assert len(model.got) == 1


@pytest.mark.parametrize("how", ["reset", "closed"])
async def test_a_call_that_everybody_has_left_before_its_first_byte_ends_and_is_kept(
    tmp_path: Path, asked: Asked, how: str
) -> None:
    """B19, B22."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.gate = asyncio.Event()
        leaving = [writer for _, writer in [await dial(here.url, body()) for _ in range(5)]]
        await asked.wait(5)
        for writer in leaving:
            reset(writer) if how == "reset" else writer.close()
        assert (await let_it_end(here, model)).state is State.ANSWERED
        later = await here.ask()
    assert (later.status, later.body, later.headers["Archive-Sent"]) == (200, answer(), "no")
    assert len(model.got) == 1
    assert list(answers(store).values()) == [[answer()]]


@pytest.mark.parametrize(("others", "length"), [(999, 10), (20, 6 * 2**20)])
async def test_a_waiter_that_never_reads_its_socket_holds_nobody_up(
    tmp_path: Path, asked: Asked, others: int, length: int
) -> None:
    """B21. A short answer to a thousand; and one that is far longer than what the system's buffers take."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        model.reply = json.dumps(json.loads(answer()) | {"x_long": "." * length}).encode()
        _, deaf = await dial(here.url, body())
        deaf.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        waiting = [await dial(here.url, body(), b"connection: close\r\n") for _ in range(others)]
        await asked.wait(1 + others)
        model.gate.set()
        heard = [await reader.read() for reader, _ in waiting]
        for _, writer in [*waiting, (None, deaf)]:
            writer.transport.abort()
    assert {said.partition(b"\r\n\r\n")[2] == model.reply for said in heard} == {True}
    assert {b"archive-sent: shared\r\n" in said for said in heard} == {True}
    assert len(model.got) == 1


async def test_fifty_who_ask_afresh_at_once_make_one_new_version(tmp_path: Path, asked: Asked) -> None:
    """B23."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        await here.ask()
        await asked.wait(1)
        model.gate, model.reply = asyncio.Event(), answer(0.5)
        afresh = asks(here, 50, "fresh")
        await asked.wait(50)
        model.gate.set()
        said = await asyncio.gather(*afresh)
    assert {(one.body, one.headers["Archive-Answer"]) for one in said} == {(answer(0.5), "2/2")}
    assert marks(said) == {"now": 1, "shared": 49}
    assert len(model.got) == 2
    assert list(answers(store).values()) == [[answer(), answer(0.5)]]


async def test_who_gives_up_and_asks_again_joins_the_call_that_is_still_running(tmp_path: Path, asked: Asked) -> None:
    """B34; tests/stories/test_unknown.py has what happens once the first has become unknown."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        impatient = asyncio.create_task(here.ask())
        await asked.wait(1)
        await model.arrived.acquire()
        impatient.cancel()
        again = asyncio.create_task(here.ask())
        await asked.wait(1)
        model.gate.set()
        said = await again
    assert (said.status, said.body, said.headers["Archive-Sent"]) == (200, answer(), "shared")
    assert len(model.got) == 1
