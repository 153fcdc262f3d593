"""Calls under the actor's rules: limits, late replies, cooldowns, budgets, refusals that were paid for."""

import asyncio
from pathlib import Path

import pytest

from archive.actor.actor import Actor, Limits
from archive.attempts import Came, Lost, NotSent, Reply, Why
from archive.doors import Upstream
from archive.errors import ArchiveError, CallFailed, CallUnknown, Cooling, OverLimit
from archive.live import Changed, Place
from archive.messages import Answered, Ask, Sent
from archive.picks import Fresh, KeptOnly, Latest, Version
from archive.request import Destination
from archive.when import DAY, SECOND
from tests.actors import Writes, all_at_once, assert_whole, echoing, queued, refused, settled, told, turns
from tests.fakes import ASK, START, EchoModel, FakeClock, QueueModel, answer, ask, reply, request
from tests.stored import counts, outcomes, rows

LIMITS = Limits(call_seconds_max=30)


async def test_all_who_ask_the_same_at_once_share_one_call(tmp_path: Path) -> None:
    """B18, B23: with an older answer and asked afresh by fifty, too."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        for n, pick in enumerate([Latest(), Fresh()], start=1):
            asks = all_at_once(door, [ask(pick=pick)] * 50)
            came = await model.next()
            await settled(door)
            came.set_result(reply(n / 10))
            said = await asyncio.gather(*asks)
            assert {one.kept.n for one in said} == {n}
            assert sorted(one.sent for one in said) == [Sent.NOW] + [Sent.SHARED] * 49
    assert len(model.requests) == 2
    assert counts(tmp_path / "a.db") == {"now": 2, "shared": 98}
    assert_whole(tmp_path / "a.db")


async def test_a_call_that_outlasts_its_limit_is_unknown_and_its_late_reply_becomes_the_answer(tmp_path: Path) -> None:
    """B31, B34; record §3.3: outcome 2 is the late answer."""
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock), door.watch(Place("call")) as notices:
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        clock.advance(29.9)
        await settled(door)
        assert not asking.done()
        clock.advance(0.1)
        error = await told(asking)
        assert isinstance(error, CallUnknown)
        assert (error.at, error.waited) == (START, True)
        later = await refused(door, ask())
        assert isinstance(later, CallUnknown)
        assert (later.at, later.waited) == (START, False)
        clock.advance(100)
        came.set_result(reply())
        await settled(door)
        assert (await door.send(ask())).kept.body == answer()
        assert (await door.send(ask(pick=Version(1)))).kept.ms == 130_000
        heard = [await anext(notices) for _ in range(3)]
        assert [(one.n, one.state and one.state.name) for one in heard if isinstance(one, Changed)] == [
            (None, None), (None, "UNKNOWN"), (1, "ANSWERED"),
        ]  # fmt: skip
    assert rows(tmp_path / "a.db", "SELECT dispatch, n, state FROM outcome ORDER BY id") == [(1, 1, 3), (1, 2, 1)]
    assert len(model.requests) == 1
    assert_whole(tmp_path / "a.db")


@pytest.mark.parametrize(
    "late", [NotSent(), Lost(), Lost(Why.SLOW), Reply(400, b"{}"), Reply(200, b"{}"), Reply(504, b"")], ids=str
)
async def test_a_late_reply_that_is_no_answer_changes_nothing(tmp_path: Path, late: Came) -> None:
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        clock.advance(30)
        await told(asking)
        came.set_result(late)
        await settled(door)
        assert (await refused(door, ask())).code == "call_unknown"
        again = asyncio.create_task(door.send(ask(pick=Fresh())))
        (await model.next()).set_result(reply())
        assert (await again).kept.n == 1
    assert rows(tmp_path / "a.db", "SELECT dispatch, n, state FROM outcome ORDER BY id") == [(1, 1, 3), (2, 1, 1)]


async def test_a_limit_and_a_reply_in_one_group_are_an_unknown_and_its_late_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Writes(monkeypatch)
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        first = await writes.hold(door)
        clock.advance(30)
        came.set_result(reply())
        await turns(3)
        before = writes.count
        writes.gate.set()
        assert isinstance(await told(asking), CallUnknown)
        await first
        assert writes.count == before + 2, "both came in the one group after the one that was held back"
        assert (await door.send(ask())).kept.n == 1
        clock.advance(60)
        await settled(door)
    assert rows(tmp_path / "a.db", "SELECT dispatch, n, state FROM outcome ORDER BY id") == [(1, 1, 3), (1, 2, 1)]
    assert_whole(tmp_path / "a.db")


async def test_an_unknown_that_was_asked_afresh_is_answered_twice_when_both_replies_come(tmp_path: Path) -> None:
    """Versions follow the order in which answers were kept."""
    async with queued(tmp_path / "a.db", limits=LIMITS) as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        slow = await model.next()
        clock.advance(30)
        await told(asking)
        afresh = asyncio.create_task(door.send(ask(pick=Fresh())))
        (await model.next()).set_result(reply(0.2))
        assert (await afresh).kept.n == 1
        slow.set_result(reply(0.1))
        await settled(door)
        newest = await door.send(ask())
        assert (newest.kept.n, newest.kept.total, newest.kept.body) == (2, 2, answer(0.1))
        assert (await door.send(ask(pick=Version(1)))).kept.body == answer(0.2)
    assert_whole(tmp_path / "a.db")


@pytest.mark.parametrize(
    "came", [NotSent(), Reply(400, b'{"detail":"no"}'), Reply(500, b"oh"), Reply(301, b"")], ids=str
)
async def test_what_failed_is_told_to_all_who_waited_and_is_sent_again_by_whoever_asks(
    tmp_path: Path, came: Came
) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        asks = all_at_once(door, [ask()] * 5)
        call = await model.next()
        await settled(door)
        call.set_result(came)
        errors = [await told(one) for one in asks]
        assert all(isinstance(one, CallFailed) for one in errors)
        assert len({id(one) for one in errors}) == 5, "one error each: a shared one gathers everybody's traceback"
        assert {one.reply for one in errors if isinstance(one, CallFailed)} == {
            came if isinstance(came, Reply) else None
        }
        again = asyncio.create_task(door.send(ask()))
        (await model.next()).set_result(reply())
        assert (await again).kept.n == 1
    assert outcomes(tmp_path / "a.db") == ["failed", "answered"]


async def test_a_model_that_raises_is_an_unknown_and_its_words_are_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        asking = asyncio.create_task(door.send(ask()))
        (await model.next()).set_exception(ValueError("about the sentinel"))
        assert isinstance(await told(asking), CallUnknown)
    assert "ValueError" in caplog.text
    assert "sentinel" not in caplog.text
    assert rows(tmp_path / "a.db", "SELECT state, why FROM outcome") == [(3, Why.OUR_ERROR)]


async def test_a_refusal_that_was_paid_for_is_shown_for_a_minute_instead_of_being_bought_again(tmp_path: Path) -> None:
    """B12; Fresh sends at once."""
    refusal = Reply(200, b'{"error":{"message":"rate limit exceeded"}}', "application/json", "req_1")
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        model.came = refusal
        assert (await refused(door, ask())).code == "call_failed"
        clock.advance(59)
        for _ in range(12):
            error = await refused(door, ask())
            assert isinstance(error, CallFailed)
            assert error.reply == refusal
        assert len(model.requests) == 1
        assert (await refused(door, ask(pick=Fresh()))).code == "call_failed"
        assert len(model.requests) == 2
        model.came = reply()
        assert isinstance(await refused(door, ask()), CallFailed)
        clock.advance(60)
        assert (await door.send(ask())).sent is Sent.NOW
    assert rows(tmp_path / "a.db", "SELECT state, paid FROM outcome ORDER BY id") == [(2, 1), (2, 1), (1, 0)]


def _busy(*after: str, status: int = 429) -> Reply:
    return Reply(status, b"{}", retry_after=after)


async def test_while_a_destination_cools_nothing_is_sent_there_and_kept_answers_are_served(tmp_path: Path) -> None:
    """B36, B37: other requests too, for as long as was asked, and everyone is told until when."""
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await door.send(ask("kept"))
        model.came = _busy("3600")
        assert (await refused(door, ask("refused"))).code == "call_failed"
        model.came = reply()
        for seconds in (0, 1, 1000, 2598.9):
            clock.advance(seconds)
            errors = [await told(one) for one in all_at_once(door, [ask(f"other {n}") for n in range(20)])]
            assert {(type(one), getattr(one, "until", 0), getattr(one, "status", 0)) for one in errors} == {
                (Cooling, START + 3600 * SECOND, 429)
            }
        assert (await door.send(ask("kept"))).sent is Sent.NOT_SENT
        assert len(model.requests) == 2
        clock.advance(0.1)
        assert (await door.send(ask("refused"))).sent is Sent.NOW


async def test_a_cooldown_goes_by_the_clock_that_never_jumps(tmp_path: Path) -> None:
    """C-23: the wall clock is set an hour forward and back."""
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        model.came = _busy("60")
        await refused(door, ask("first"))
        model.came = reply()
        for hours in (1, -2, 1):
            clock.step(hours * 3600)
            assert (await refused(door, ask(f"stepped {hours}"))).code == "cooling"
        clock.advance(60)
        clock.step(-3600)
        assert (await door.send(ask("over"))).sent is Sent.NOW


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_a_cooldown_survives_a_restart_and_is_never_longer_than_a_day(tmp_path: Path, status: int) -> None:
    clock = FakeClock()
    async with echoing(tmp_path / "a.db", clock) as (door, model, _):
        model.came = _busy("1e9", status=status)
        await refused(door, ask())
    clock.advance(3600)
    for back in (0, -365 * 86_400):
        clock.step(back)
        async with echoing(tmp_path / "a.db", clock) as (door, model, _):
            error = await refused(door, ask())
            assert isinstance(error, Cooling)
            assert (error.until, error.status) == (START + DAY, status)
            assert model.requests == []
            if back:
                clock.advance(86_400)
                assert (await door.send(ask())).sent is Sent.NOW, "however the wall clock stood, a day is the most"


async def test_a_cooldown_that_ended_while_nobody_was_there_holds_nobody_back(tmp_path: Path) -> None:
    clock = FakeClock()
    async with echoing(tmp_path / "a.db", clock) as (door, model, _):
        model.came = _busy("60")
        await refused(door, ask())
    clock.advance(61)
    async with echoing(tmp_path / "a.db", clock) as (door, model, _):
        assert (await door.send(ask())).sent is Sent.NOW


async def test_a_longer_cooldown_is_not_cut_short_by_a_shorter_one(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, clock):
        asking = all_at_once(door, [ask("one"), ask("two")])
        for seconds in ("20", "1"):
            (await model.next()).set_result(Reply(429, b"{}", retry_after=(seconds,)))
        await asyncio.gather(*map(told, asking))
        clock.advance(10)
        assert (await refused(door, ask("three"))).code == "cooling"
    async with queued(tmp_path / "a.db", clock) as (door, model, _):
        assert (await refused(door, ask("three"))).code == "cooling"


async def test_a_sending_that_failed_does_not_make_one_before_it_known(tmp_path: Path) -> None:
    """Answered, then unknown, then refused: what is unknown may still be paid for, until an answer is kept after it."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        for came in (reply(), Lost(), Reply(400, b"{}")):
            asking = all_at_once(door, [ask(pick=Fresh())])
            (await model.next()).set_result(came)
            await told(asking[0])
        assert (await refused(door, ask(pick=Fresh(sure=False)))).code == "call_unknown"
        for pick in (Fresh(), Fresh(sure=False)):
            asking = all_at_once(door, [ask(pick=pick)])
            (await model.next()).set_result(reply())
            assert isinstance(await told(asking[0]), Answered)


async def test_another_key_is_not_held_back_by_this_ones_cooldown(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _):
        model.came = _busy("60")
        await refused(door, ask("a", key="k1"))
        model.came = reply()
        assert (await refused(door, ask("b", key="k1"))).code == "cooling"
        assert (await door.send(ask("b", key="k2"))).sent is Sent.NOW
        assert (await door.send(ask("b", key="k1"))).sent is Sent.NOT_SENT, "the archive is shared by both keys"


async def test_of_more_askers_than_the_budget_exactly_the_budget_is_sent(tmp_path: Path) -> None:
    """C-35: across restarts too, until the next day begins."""
    clock, sent = FakeClock(), 0
    limits = Limits(day_calls_max=50)
    for start in (0, 100, 200):
        async with echoing(tmp_path / "a.db", clock, limits=limits) as (door, model, _):
            asks = all_at_once(door, [ask(f"ask {n}") for n in range(start, start + 100)])
            said = [await told(one) for one in asks]
            sent += len(model.requests)
            errors = [one for one in said if isinstance(one, ArchiveError)]
            assert {type(one) for one in errors} == {OverLimit}
            assert {one.until for one in errors} == {(START // DAY + 1) * DAY}
            assert len(errors) == (50 if start == 0 else 100)
            kept = await door.send(ask("ask 0"))
            assert kept.sent is Sent.NOT_SENT, "what is kept costs nothing"
    assert sent == 50
    clock.advance(DAY / SECOND)
    async with echoing(tmp_path / "a.db", clock, limits=limits) as (door, model, _):
        assert (await door.send(ask("tomorrow"))).sent is Sent.NOW


async def test_who_is_refused_uses_up_no_budget(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db", limits=Limits(day_calls_max=2, calls_max=1)) as (door, model, _):
        first = asyncio.create_task(door.send(ask("first")))
        came = await model.next()
        errors = [await told(one) for one in all_at_once(door, [ask(f"busy {n}") for n in range(10)])]
        assert {one.code for one in errors if isinstance(one, ArchiveError)} == {"busy"}
        came.set_result(reply())
        await first
        second = asyncio.create_task(door.send(ask("second")))
        (await model.next()).set_result(reply())
        assert (await second).sent is Sent.NOW
    assert rows(tmp_path / "a.db", "SELECT sent FROM budget") == [(2,)]


async def test_a_destination_that_is_not_set_up_serves_what_is_kept_and_sends_nothing(tmp_path: Path) -> None:
    """B09: the base URL was changed."""
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask())
    other = Destination("systemone", "POST", "https://elsewhere.test/v1/systemone")
    model = QueueModel()
    async with Actor(tmp_path / "a.db", {other: Upstream(model)}.get, FakeClock()) as door:
        assert (await door.send(ask(pick=KeptOnly()))).kept.n == 1
        assert (await refused(door, ask("never asked"))).code == "invalid"
        elsewhere = asyncio.create_task(door.send(Ask(request(destination=other))))
        (await model.next()).set_result(reply())
        assert (await elsewhere).sent is Sent.NOW


async def test_the_key_goes_along_with_its_own_call_and_is_stored_nowhere(tmp_path: Path) -> None:
    """B68, B69."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        asking = asyncio.create_task(door.send(ask(key="sentinel-key")))
        (await model.next()).set_result(reply())
        said = await asking
    assert [key.secret for key in model.keys] == ["sentinel-key"]
    assert "sentinel" not in repr(model.keys) + repr(said)
    assert b"sentinel" not in (tmp_path / "a.db").read_bytes()


async def test_odd_model_names_and_lone_surrogates_do_not_stop_the_record(tmp_path: Path) -> None:
    """B47, B49: what the wire can carry can be asked, answered, kept, and given back byte for byte."""
    said = answer()[:-1].replace(b"jev-1.13.0", b"\\ud800\\u0000") + b',"x":"\\ud800"}'
    odd_reply = EchoModel(Reply(200, said, "\udcff", "\ud800"))
    async with Actor(tmp_path / "a.db", {ASK: Upstream(odd_reply)}.get, FakeClock()) as door:
        odd = Ask(type(request())(ASK, b'{"state":"\\ud800\\u0000","model":"\\udfff"}'))
        first = await door.send(odd)
        assert isinstance(first, Answered)
        assert (first.kept.body, first.kept.answered_model, first.kept.provider_id) == (said, "\ud800\0", "\ud800")
    async with Actor(tmp_path / "a.db", {ASK: Upstream(EchoModel())}.get, FakeClock()) as door:
        again = await door.send(odd)
        assert (again.sent, again.kept) == (Sent.NOT_SENT, first.kept)
