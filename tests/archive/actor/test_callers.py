"""Callers behind the door: brakes for those without a token, what visitors see, and who was given what."""

import asyncio
import re
from pathlib import Path

from archive.actor.actor import Limits
from archive.actor.callers import ADDRESSES_MAX, DELIVERIES_MAX, Callers
from archive.admin import Deliveries
from archive.errors import ArchiveError, OverLimit
from archive.messages import Answered, Ask, Caller, Look, Named, Sent, Totals
from archive.picks import Fresh, KeptOnly
from archive.tokens import Minute
from tests.actors import (
    add_token,
    all_at_once,
    assert_whole,
    echoing,
    locked,
    on,
    queued,
    refused,
    settled,
    told,
    visit,
)
from tests.fakes import START, FakeClock, ask, reply, request
from tests.stored import rows

# -- brakes ------------------------------------------------------------------------------------------------------------


async def test_visitors_from_one_address_send_so_many_calls_a_minute_and_look_as_often_as_they_like(
    tmp_path: Path,
) -> None:
    async with echoing(tmp_path / "a.db", limits=Limits(address_calls_max=5)) as (door, model, clock):
        said = [await told(one) for one in all_at_once(door, [visit(str(n)) for n in range(200)])]
        over = [one for one in said if isinstance(one, OverLimit)]
        assert (len(model.requests), len(over)) == (5, 195)
        assert {one.until for one in over} == {clock.now() + 60_000_000}
        for asked in list(model.requests):
            await door.send(Ask(asked, caller=Caller(address=b"a", visitor=True)))
        await door.send(visit("elsewhere", address=b"b"))
        await door.send(ask("the owner's own"))
        clock.advance(60)
        await door.send(visit("later"))
        assert len(model.requests) == 8


async def test_a_group_that_could_not_be_written_counts_for_no_address(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with echoing(store, limits=Limits(address_calls_max=2)) as (door, model, _):
        with locked(store):
            for n in range(3):
                assert isinstance(await refused(door, visit(str(n))), ArchiveError)
        await settled(door)
        await door.send(visit("a"))
        await door.send(visit("b"))
        assert isinstance(await refused(door, visit("c")), OverLimit)
        assert len(model.requests) == 2


def test_addresses_that_are_counted_are_bounded_and_the_longest_unused_goes_first() -> None:
    callers = Callers(FakeClock())
    for n in range(ADDRESSES_MAX + 500):
        callers.take({b"%d" % n: Minute(1.0, 1)})
        callers.take({b"0": Minute(1.0, n)})
    assert len(callers.sent) == ADDRESSES_MAX
    assert callers.sent[b"0"].count == ADDRESSES_MAX + 499
    assert b"1" not in callers.sent and b"%d" % (ADDRESSES_MAX + 499) in callers.sent


async def test_ten_thousand_presses_of_a_hundred_visitors_stay_within_the_day(tmp_path: Path) -> None:
    """C-35: denial of wallet, with a restart in between."""
    store, clock, sent = tmp_path / "a.db", FakeClock(), 0
    for _ in range(2):
        async with echoing(store, clock, limits=Limits(day_calls_max=300, address_calls_max=60)) as (door, model, _):
            for wave in range(50):
                presses = [visit(f"{n}", Fresh(), b"%d" % n) for n in range(100)]
                said = [await told(one) for one in all_at_once(door, presses)]
                assert {type(one) for one in said} <= {Answered, OverLimit}, wave
                clock.advance(1)
            sent += len(model.requests)
    assert sent == 300
    assert rows(store, "SELECT sent FROM budget") == [(300,)]
    assert_whole(store)


# -- what visitors see -------------------------------------------------------------------------------------------------


async def test_once_there_is_a_token_visitors_see_only_what_was_asked_on_a_page(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _):
        await door.send(ask("before"))
        assert (await door.send(Look(request("before"), visitor=True))).kept is not None
        token = await door.send(add_token())
        over_api = (await door.send(on(token, "by API"))).kept
        on_page = (await door.send(visit("by page"))).kept
        for words in ("before", "by API"):
            seen = await door.send(Look(request(words), 1, visitor=True))
            nothing = await door.send(Look(request("nobody asked"), 1, visitor=True))
            assert (seen.kept, seen.request_id, seen.gone) == (None, None, nothing.gone)
            assert (await door.send(Look(request(words)))).kept is not None
        assert await door.send(Named(over_api.call_id, visitor=True)) == ()
        assert await door.send(Named(over_api.call_id)) == (over_api.request_id,)
        assert (await door.send(Look(request("by page"), visitor=True))).kept == on_page
        assert await door.send(Named(on_page.call_id, visitor=True)) == (on_page.request_id,)
        asked_there = await door.send(visit("by API"))
        assert asked_there.sent is Sent.NOT_SENT, "the same bytes are never sent twice"
        assert (await door.send(Look(request("by API"), visitor=True))).kept is not None
        assert len(model.requests) == 3


async def test_what_a_visitor_asked_is_for_visitors_though_it_was_refused(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, clock):
        token = await door.send(add_token())
        asking = asyncio.create_task(door.send(on(token)))
        await model.next()
        clock.advance(30)
        assert isinstance(await told(asking), ArchiveError)
        assert (await door.send(Look(request(), visitor=True))).unknown_at is None
        assert (await refused(door, visit())).code == "call_unknown"
        assert (await door.send(Look(request(), visitor=True))).unknown_at == START


async def test_what_is_public_is_served_to_visitors_while_nothing_can_be_written(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with echoing(store) as (door, _, _):
        token = await door.send(add_token())
        await door.send(visit("a"))
        await door.send(on(token, "b"))
        with locked(store):
            assert (await door.send(visit("a"))).sent is Sent.NOT_SENT
            assert (await refused(door, visit("b"))).code == "record_closed"


# -- deliveries --------------------------------------------------------------------------------------------------------


async def test_ten_asks_are_ten_deliveries_that_say_how_each_came(tmp_path: Path) -> None:
    """B30: one call, nine kept, and the owner sees all ten with which was which."""
    async with queued(tmp_path / "a.db") as (door, model, clock):
        token = await door.send(add_token())
        asking = asyncio.create_task(door.send(on(token)))
        (await model.next()).set_result(reply())
        made = await told(asking)
        assert isinstance(made, Answered)
        for n in range(9):
            clock.advance(1)
            await door.send(on(token) if n % 2 else ask())
        await refused(door, ask("never asked", KeptOnly()))
        await settled(door)
        deliveries, so_far = await door.send(Deliveries()), await door.send(Totals())
        assert (so_far.sent, so_far.not_sent) == (1, 9)
        assert [one.sent for one in deliveries] == [Sent.NOT_SENT] * 9 + [Sent.NOW]
        assert [one.token for one in deliveries] == [0, 1] * 4 + [0, 1]
        assert [one.at for one in deliveries] == [START + n * 1_000_000 for n in range(9, -1, -1)]
        assert {(one.call_id, one.n) for one in deliveries} == {(made.kept.call_id, 1)}
        assert re.fullmatch("[0-9a-f]{12}", made.kept.call_id)


async def test_the_last_thousand_deliveries_are_remembered_and_no_more(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask("first"))
        for _ in range(DELIVERIES_MAX):
            await door.send(ask("then"))
        deliveries = await door.send(Deliveries())
        assert (len(deliveries), len({one.call_id for one in deliveries})) == (1_000, 1)
