"""Sent, and no confirmed answer: everybody is told so with its moment, and only an order to ask afresh sends again."""

import asyncio
import socket
from pathlib import Path

import aiohttp
import pytest

from archive.attempts import State
from archive.live import Place
from archive.when import shown
from tests.fakes import FakeClock, Said, Site, answer, site, upstream
from tests.process import process
from tests.stored import answers, assert_sound, outcomes, rows
from tests.stories.conftest import Asked, ended
from tests.wires import OK_HEAD, Behaviour, hangs_up, resets, whole

LIMIT = 30
"""The seconds after which those who wait are told."""


def sent_at(store: Path) -> str:
    """The moment of the first sending as people read it."""
    return shown(rows(store, "SELECT at FROM dispatch ORDER BY id")[0][0])


def assert_told(said: Said, status: int, moment: str = "") -> None:
    assert (said.status, said.error) == (status, "call_unknown")
    assert moment in said.text and "Archive-Answer: fresh" in said.text
    assert "Archive-Answer" not in said.headers and "Retry-After" not in said.headers


async def assert_not_sent_by_asking(here: Site) -> None:
    """Whoever asks is told of it or of what is kept; nobody makes a call."""
    assert_told(await here.ask(), 409)
    assert (await here.ask(Cache_Control="only-if-cached")).status == 504
    assert (await here.ask(Archive_Answer="1")).status == 404


async def test_a_silent_model_is_asked_once_and_never_again_by_itself(
    tmp_path: Path, clock: FakeClock, asked: Asked
) -> None:
    """B31, B34: not by those who waited, a second asker, a timer, or a restart."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        model.gate = asyncio.Event()
        async with site(store, model.url) as here:
            asks = [asyncio.create_task(here.ask()) for _ in range(5)]
            await asked.wait(5)
            await model.arrived.acquire()
            model.gate = None  # whatever is sent after this one is answered
            clock.advance(LIMIT)
            waited = await asyncio.gather(*asks)
            later = await here.ask()
            clock.advance(7 * 86_400)
            await assert_not_sent_by_asking(here)
        async with site(store, model.url) as here:
            clock.advance(7 * 86_400)
            await assert_not_sent_by_asking(here)
    for one in waited:
        assert_told(one, 504, sent_at(store))
    assert_told(later, 409, sent_at(store))
    assert len(model.got) == 1
    assert outcomes(store) == ["unknown"]


async def test_an_asker_before_the_limit_joins_the_silent_call(tmp_path: Path, clock: FakeClock, asked: Asked) -> None:
    """B34: a client that gave up and asks again while the first call runs shares it."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        first = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        first.cancel()
        await asyncio.wait([first])
        clock.advance(LIMIT - 1)
        again = asyncio.create_task(here.ask())
        await asked.wait(2)
        model.gate.set()
        said = await again
    assert (said.status, said.headers["Archive-Sent"], len(model.got)) == (200, "shared", 1)


async def test_a_late_reply_becomes_the_answer(tmp_path: Path, clock: FakeClock) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here, here.door.watch(Place("question")) as notices:
        model.gate = asyncio.Event()
        asking = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        clock.advance(LIMIT)
        assert_told(await asking, 504)
        assert (await ended(notices)).state is State.UNKNOWN
        model.gate.set()
        assert (await ended(notices)).n == 1
        said = await here.ask()
    assert (said.status, said.body, said.headers["Archive-Answer"]) == (200, answer(), "1/1")
    assert said.headers["Archive-Sent"] == "no"
    assert len(model.got) == 1
    assert outcomes(store) == ["answered"]


async def test_asking_afresh_sends_and_a_late_reply_after_it_is_a_version_of_its_own(
    tmp_path: Path, clock: FakeClock
) -> None:
    """Versions are numbered as they were kept, not as they were sent."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        gate = model.gate = asyncio.Event()
        asking = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        clock.advance(LIMIT)
        assert_told(await asking, 504)
        model.gate, model.reply = None, answer(0.22)
        fresh = await here.ask(Archive_Answer="fresh")
        async with here.door.watch(Place("question")) as notices:
            model.reply = answer(0.11)
            gate.set()
            assert (await ended(notices)).n == 2
        newest = await here.ask()
    assert (fresh.body, fresh.headers["Archive-Answer"]) == (answer(0.22), "1/1")
    assert (newest.body, newest.headers["Archive-Answer"]) == (answer(0.11), "2/2")
    assert len(model.got) == 2
    assert answers(store) == {b'"Is it?"': [answer(0.22), answer(0.11)]}


BROKEN: dict[str, Behaviour] = {
    "hung up after the body": hangs_up(),
    "hung up in the head": hangs_up(b"HTTP/1.1 200 OK\r\nconte"),
    "hung up after the head": hangs_up(OK_HEAD + b"content-length: 100\r\n\r\n"),
    "half an answer": hangs_up(whole()[:-20]),
    "half an answer in chunks": hangs_up(
        OK_HEAD + b"transfer-encoding: chunked\r\n\r\n40\r\n" + answer()[:64] + b"\r\n"
    ),
    "reset after the body": resets(),
    "reset in the answer": resets(whole()[:-1]),
    "no HTTP": hangs_up(b"220 mail.example.test ESMTP\r\n"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_connection_that_breaks_after_the_body_makes_an_unknown(tmp_path: Path, name: str) -> None:
    """B20 too: what had come of an answer is never served as one. Asking afresh is the confirmation, and sends."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.behave = BROKEN[name]
        first = await here.ask()
        await assert_not_sent_by_asking(here)
        later = await here.ask()
        sent = len(model.got)
        model.behave = None
        fresh = await here.ask(Archive_Answer="fresh")
        again = await here.ask()
    assert_told(first, 504, sent_at(store))
    assert_told(later, 409, sent_at(store))
    assert sent == 1
    assert (fresh.status, fresh.body, fresh.headers["Archive-Answer"]) == (200, answer(), "1/1")
    assert (again.status, again.headers["Archive-Sent"], len(model.got)) == (200, "no", 2)
    assert outcomes(store) == ["unknown", "answered"]


@pytest.mark.parametrize("status", [408, 502, 504, 524])
async def test_a_gateway_that_gave_up_makes_an_unknown(tmp_path: Path, status: int) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status, model.reply = status, b"<html>Bad gateway</html>"
        first, later = await here.ask(), await here.ask()
    assert_told(first, 504)
    assert_told(later, 409)
    assert len(model.got) == 1


async def test_asking_afresh_in_vain_leaves_it_unknown(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.behave = hangs_up()
        assert_told(await here.ask(), 504)
        assert_told(await here.ask(Archive_Answer="fresh"), 504)
        assert_told(await here.ask(), 409)
    assert len(model.got) == 2
    assert outcomes(store) == ["unknown", "unknown"]


async def test_a_process_killed_in_the_middle_of_a_call_leaves_an_unknown(tmp_path: Path) -> None:
    """B33: after the start it is unknown, not running and not failed; nothing is sent by starting or by asking."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        model.gate = asyncio.Event()
        async with process(store, model.url) as here:
            asking = asyncio.create_task(here.ask())
            await model.arrived.acquire()
            assert await here.kill() == -9
            with pytest.raises(aiohttp.ClientError):
                await asking
        model.gate = None
        async with process(store, model.url) as here:
            told = [await here.ask(), await here.ask()]
            sent = len(model.got)
            fresh = await here.ask(Archive_Answer="fresh")
            assert await here.terminate() == 0
    for one in told:
        assert_told(one, 409, sent_at(store))
    assert sent == 1
    assert (fresh.status, fresh.body, fresh.headers["Archive-Answer"]) == (200, answer(), "1/1")
    assert outcomes(store) == ["unknown", "answered"]
    assert_sound(store)


async def test_a_refused_connection_has_sent_nothing_so_the_next_ask_sends(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        async with site(store, f"http://127.0.0.1:{bound.getsockname()[1]}") as here:
            refused = await here.ask()
            async with upstream(bound) as model:
                said = await here.ask()
    assert (refused.status, refused.error) == (502, "call_failed")
    assert (said.status, said.body, said.headers["Archive-Answer"]) == (200, answer(), "1/1")
    assert len(model.got) == 1
    assert outcomes(store) == ["failed", "answered"]


async def test_the_list_of_models_is_not_fetched_twice_when_the_connection_breaks(tmp_path: Path) -> None:
    """A GET may be repeated safely, and HTTP clients do so by themselves on a connection that was used before."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        model.behave = hangs_up()
        said = await here.send("GET", "/v1/models")
    assert_told(said, 504)
    assert [got.method for got in model.got] == ["POST", "GET"]
