"""Everything that can go wrong on the way to the model and back: what each becomes, and that nothing is kept of it.

C-22, B31, B32.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from archive.actor.calls import Call, Calls
from archive.attempts import Lost, State, Why
from archive.doors import Upstream
from archive.errors import CallUnknown
from archive.messages import NO_KEY, Finished
from archive.picks import Fresh, KeptOnly
from tests.fakes import FakeClock, QueueModel, Site, actor, ask, body, reply, request, site, upstream
from tests.stored import outcomes, rows
from tests.wires import BROKEN, REPLY_BYTES, end, nobody


def of(store: Path) -> list[tuple[State, Why]]:
    """What came of every sending and why, on record."""
    return [(State(state), Why(why)) for state, why in rows(store, "SELECT state, why FROM outcome ORDER BY id")]


def assert_nothing_kept(store: Path) -> None:
    assert rows(store, "SELECT count(*) FROM answer") == [(0,)]


@pytest.mark.parametrize("wrong", BROKEN)
async def test_what_breaks_off_is_unknown_and_the_second_ask_sends_nothing(tmp_path: Path, wrong: str) -> None:
    """B31 too."""
    store, (behave, why) = tmp_path / "a.db", BROKEN[wrong]
    limits = {"reply_bytes_max": REPLY_BYTES, "read_seconds_max": 0.1 if why is Why.SLOW else 60}
    async with upstream() as model, site(store, model.url, **limits) as here:
        model.behave = behave
        said = [await here.ask(), await here.ask()]
    assert [(one.status, one.error) for one in said] == [(504, "call_unknown"), (409, "call_unknown")]
    assert of(store) == [(State.UNKNOWN, why)]
    assert len(model.got) == 1
    assert_nothing_kept(store)


REFUSED: dict[str, tuple[int, list[tuple[str, str]], Why, int]] = {
    "a redirect": (307, [("location", "http://127.0.0.1:1/elsewhere")], Why.REDIRECTED, 502),
    "a refusal": (400, [], Why.PROVIDER_REFUSED, 400),
    "an error of its own": (500, [], Why.PROVIDER_REFUSED, 500),
    "no answer": (200, [("content-type", "text/html")], Why.NOT_AN_ANSWER, 502),
    "429 in seconds": (429, [("retry-after", "60")], Why.PROVIDER_REFUSED, 429),
    "429 at a date": (429, [("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")], Why.PROVIDER_REFUSED, 429),
    "503 in seconds": (503, [("retry-after", "60")], Why.PROVIDER_REFUSED, 503),
    "503 at a date": (503, [("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")], Why.PROVIDER_REFUSED, 503),
    "529 in seconds": (529, [("retry-after", "60")], Why.PROVIDER_REFUSED, 529),
    "529 at a date": (529, [("retry-after", "Fri, 01 Jan 2100 00:00:00 GMT")], Why.PROVIDER_REFUSED, 529),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_whole_refusal_is_failed_and_nothing_is_kept_of_it(tmp_path: Path, name: str) -> None:
    store, (status, headers, why, told) = tmp_path / "a.db", REFUSED[name]
    async with upstream() as model, site(store, model.url) as here:
        model.status, model.headers, model.reply = status, headers, b"<html>No.</html>"
        said = await here.ask()
        # A cooldown holds for all that goes there, whatever it asks.
        other = await here.ask(body("Something else?"))
    assert said.status == told
    cooling = status in {429, 503, 529}
    if cooling:
        assert said.headers["Retry-After"] == headers[0][1]
        assert (other.status, other.error) == (429 if status == 429 else 503, "cooling")
        assert 1 <= int(other.headers["Retry-After"]) <= (60 if headers[0][1] == "60" else 86_400)
    assert of(store) == [(State.FAILED, why)] * (1 if cooling else 2) == [(State.FAILED, why)] * len(model.got)
    assert_nothing_kept(store)


async def _plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def _asked(here: Site) -> tuple[int, str]:
    said = await here.ask()
    return said.status, said.error


UNREACHED = {
    "refused": ("http", nobody),
    "TLS to a plain port": ("https", lambda: end(_plain)),
}


@pytest.mark.parametrize("name", UNREACHED)
async def test_what_never_reached_anybody_is_failed_and_may_be_asked_again(tmp_path: Path, name: str) -> None:
    store, (scheme, far) = tmp_path / "a.db", UNREACHED[name]
    found: AbstractAsyncContextManager[str] = far()
    async with found as place, site(store, f"{scheme}://{place}") as here:
        assert [await _asked(here), await _asked(here)] == [(502, "call_failed")] * 2
    assert of(store) == [(State.FAILED, Why.NO_CONNECTION)] * 2
    assert_nothing_kept(store)


async def test_a_name_that_does_not_exist_is_failed_and_may_be_asked_again(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with site(store, "http://askonce-test.invalid") as here:
        assert [await _asked(here), await _asked(here)] == [(502, "call_failed")] * 2
    assert of(store) == [(State.FAILED, Why.NO_CONNECTION)] * 2
    assert_nothing_kept(store)


async def test_attempts_that_are_unknown_each_have_a_row_and_a_cost_that_is_unknown_and_not_0(tmp_path: Path) -> None:
    """B32: what a page may say of them is `at least`, and how many."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.behave = BROKEN["hangs up in the body"][0]
        for _ in range(3):
            assert (await here.ask(Archive_Answer="fresh")).status == 504
        model.behave = None
        assert (await here.ask(Archive_Answer="fresh")).headers["Archive-Cost-Now"] == "unknown"
    assert outcomes(store) == ["unknown"] * 3 + ["answered"]
    assert rows(store, "SELECT DISTINCT cost, input_tokens, output_tokens FROM outcome WHERE state = 3") == [
        (None,) * 3
    ]
    assert len(model.got) == 4


async def test_one_deadline_covers_the_whole_ask_however_late_somebody_joins(tmp_path: Path) -> None:
    """B32: neither a second asker nor asking afresh buys a call more time."""
    clock, model = FakeClock(), QueueModel()
    async with actor(tmp_path / "a.db", model, clock) as door:
        asks = [asyncio.create_task(door.send(ask()))]
        came = await model.next()
        clock.advance(20)
        asks += [asyncio.create_task(door.send(ask(pick=pick))) for pick in (Fresh(), Fresh())]
        # A message after them is answered, so they have been worked.
        with pytest.raises(Exception, match="not on record"):
            await door.send(ask("Something else?", KeptOnly()))
        clock.advance(10)
        said = await asyncio.gather(*asks, return_exceptions=True)
        came.set_result(reply())
    assert [type(one) for one in said] == [CallUnknown] * 3
    assert all(isinstance(one, CallUnknown) and one.waited for one in said)
    assert len(model.requests) == 1


@pytest.mark.parametrize("overdue", [True, False])
async def test_only_a_call_whose_reply_may_still_come_is_listened_to_further(overdue: bool) -> None:
    """A call that ended because the model itself stopped waiting is over, and nothing of it stays in memory."""
    reports: list[Finished] = []
    clock, model = FakeClock(), QueueModel()
    calls = Calls(reports.append, clock, 30.0)
    call = Call(1, request(), 1, "000000000000", clock.now(), Upstream(model), NO_KEY)
    calls.start(call)
    came = await model.next()
    if overdue:
        clock.advance(30)
    else:
        came.set_result(Lost(Why.SLOW))
        await calls.quiet(30)
    calls.settle(call, listening=True)
    assert [report.outcome.why for report in reports] == [Why.SLOW]
    assert (calls.get(1), calls.late(1)) == (None, call if overdue else None)
    came.cancel()
    await calls.quiet(0)
