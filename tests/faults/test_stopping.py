"""SIGTERM, SIGINT and a dead loop, on the real process: kept or unknown, never half, never an unexplained error.

C-18, C-19, C-20, B45.
"""

import asyncio
import itertools
import signal
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from tests.fakes import Said, answer, body, upstream
from tests.process import Process, process
from tests.stored import answers, assert_closed_cleanly, assert_sound, counts, outcomes


async def told(asking: "asyncio.Task[Said]") -> int | None:
    """The status an asker got, or None when the connection just ended."""
    try:
        return (await asking).status
    except aiohttp.ClientError:
        return None


async def refused(here: Process) -> None:
    """Wait until the process takes nothing any more: it has heard that it is to stop."""
    for number in itertools.count():
        try:
            said = await here.ask(body(f"probe {number}"), Cache_Control="only-if-cached")
        except aiohttp.ClientError:
            return
        if said.status == 503:
            assert said.error == "busy"
            return
        assert said.status == 504


async def test_a_call_that_ends_within_the_limit_is_kept_and_its_asker_answered(tmp_path: Path) -> None:
    """C-19."""
    store = tmp_path / "a.db"
    async with upstream() as model, process(store, model.url, ASKONCE_STOP_SECONDS_MAX="60") as here:
        model.gate = asyncio.Event()
        asking = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        here.signal(signal.SIGTERM)
        await refused(here)
        model.gate.set()
        said = await asking
        assert await here.wait() == 0
    assert (said.status, said.body, said.headers["Archive-Answer"]) == (200, answer(), "1/1")
    assert_closed_cleanly(store)
    assert outcomes(store) == ["answered"]
    assert counts(store) == {"now": 1}


STOPS = {
    "SIGTERM": [signal.SIGTERM],
    "SIGINT": [signal.SIGINT],
    "SIGTERM, then SIGINT": [signal.SIGTERM, signal.SIGINT],
    "SIGINT twice": [signal.SIGINT, signal.SIGINT],
}


@pytest.mark.parametrize("how", STOPS)
async def test_a_call_that_does_not_end_within_the_limit_is_unknown_and_never_an_error_of_ours(
    tmp_path: Path, how: str
) -> None:
    """C-19, C-20."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        model.gate = asyncio.Event()
        async with process(store, model.url, ASKONCE_STOP_SECONDS_MAX="0.6") as here:
            asking = asyncio.create_task(here.ask())
            await model.arrived.acquire()
            for number in STOPS[how]:
                here.signal(number)
                await refused(here)
            status = await told(asking)
            assert await here.wait() == 0
            output = here.output()
        # Whoever insists with a second signal may cut the connection short; nobody is ever told of an error of ours.
        assert status == 504 or (status is None and len(STOPS[how]) == 2)
        assert "Traceback" not in output and '"level":"ERROR"' not in output
        assert_closed_cleanly(store)
        assert outcomes(store) == ["unknown"]
        model.gate.set()
        async with process(store, model.url) as here:
            assert (await here.ask()).status == 409
        assert len(model.got) == 1


async def test_sigterm_under_load_ends_with_status_0_and_every_answer_and_every_delivery_is_on_record(
    tmp_path: Path,
) -> None:
    """B45."""
    store, words, marks, answered = tmp_path / "a.db", itertools.count(), Counter[str](), asyncio.Semaphore(0)

    async def asker(here: Process) -> None:
        while True:
            number = next(words)
            try:
                said = await here.ask(body(f"words {number - number % 2}"))
            except aiohttp.ClientError:
                return
            if said.status != 200:
                assert (said.status, said.error) == (503, "busy")
                return
            marks[said.headers["Archive-Sent"]] += 1
            answered.release()

    async with upstream() as model:
        async with process(store, model.url) as here:
            askers = [asyncio.create_task(asker(here)) for _ in range(12)]
            for _ in range(300):
                await answered.acquire()
            assert await here.terminate() == 0
            await asyncio.gather(*askers)
        assert len({got.body for got in model.got}) == len(model.got)
    assert_closed_cleanly(store)
    assert set(outcomes(store)) == {"answered"}
    assert len(answers(store)) == len(model.got) == marks["now"]
    assert counts(store) == dict(marks)


DYING = """
import sys
from archive.actor.store import Store
from web.__main__ import main

write, left = Store.write, 4

async def dying(self, work):
    global left
    left -= 1
    if not left:
        raise RuntimeError("a bug outside the guard around each message")
    return await write(self, work)

Store.write = dying
sys.exit(main())
"""
"""A server whose loop dies at its third transaction: the one at the start, a dispatch, and then it."""


async def test_when_the_loop_dies_so_does_the_process_and_what_was_sent_is_unknown_after_a_restart(
    tmp_path: Path,
) -> None:
    """C-18."""
    store = tmp_path / "a.db"
    async with asyncio.timeout(60), upstream() as model:
        model.gate = asyncio.Event()
        async with process(store, model.url, ("-c", DYING)) as here:
            first = asyncio.create_task(here.ask())
            await model.arrived.acquire()
            second = asyncio.create_task(here.ask(body("another")))
            assert (await told(first), await told(second)) == (None, None)
            status = await here.wait()
            assert status not in {0, 1}
            assert "the actor died of RuntimeError" in here.output()
            assert "a bug outside" not in here.output()
        assert_sound(store)
        assert outcomes(store) == ["open"]
        model.gate.set()
        async with process(store, model.url) as here:
            assert ((await here.ask()).status, (await here.ask(body("another"))).status) == (409, 200)
            assert await here.terminate() == 0
    assert outcomes(store) == ["unknown", "answered"]
    assert Counter(got.body for got in model.got) == {body(): 1, body("another"): 1}
