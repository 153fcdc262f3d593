"""What stands behind destinations: whose key goes up, whose limits hold, what a call cost at the price it had then."""

import asyncio
from pathlib import Path

import pytest

from archive.actor.actor import Limits
from archive.attempts import Price
from archive.doors import Upstream
from archive.errors import CallUnknown
from archive.messages import Ask, Key, Look, Sent
from archive.picks import Fresh
from archive.request import Destination
from tests.actors import refused, settled, standing
from tests.fakes import ASK, EchoModel, FakeClock, QueueModel, answer, ask, reply, request
from tests.stored import rows

OTHER = Destination("systemone", "POST", "https://other.example.test/v1/systemone")


async def test_the_upstreams_key_goes_up_before_an_askers_own(tmp_path: Path) -> None:
    owned, open_ = QueueModel(), QueueModel()
    behind = {ASK: Upstream(owned, "a", Key("owner")), OTHER: Upstream(open_, "b")}
    async with standing(tmp_path / "a.db", behind.get) as door:
        for place, model in ((ASK, owned), (OTHER, open_)):
            asking = asyncio.create_task(door.send(Ask(request(destination=place), key=Key("caller", "x-api-key"))))
            (await model.next()).set_result(reply())
            await asking
    assert (owned.keys, open_.keys) == ([Key("owner")], [Key("caller", "x-api-key")])


async def test_the_cooldown_of_the_upstreams_key_is_everybodys(tmp_path: Path) -> None:
    model = EchoModel()
    async with standing(tmp_path / "a.db", {ASK: Upstream(model, key=Key("owner"))}.get) as door:
        model.came = type(reply())(429, b"{}", "application/json", retry_after=("60",))
        await refused(door, ask("a", key="k1"))
        assert (await refused(door, ask("b", key="k2"))).code == "cooling"
        assert (await door.send(Look(request("b")))).cooling_until is not None


async def test_a_price_counts_as_it_was_when_the_call_was_made(tmp_path: Path) -> None:
    """Another price later is another configuration; what was paid stays what it was."""
    for price, pick in ((Price(42_000_000, 0), Fresh()), (Price(), Fresh()), (Price(10**9, 10**9), Fresh())):
        async with standing(tmp_path / "a.db", {ASK: Upstream(EchoModel(), price=price)}.get) as door:
            await door.send(ask(pick=pick))
    assert rows(tmp_path / "a.db", "SELECT cost FROM outcome ORDER BY id") == [(5502,), (None,), (151_000,)]


async def test_what_is_told_unknown_after_an_upstreams_own_limit_is_still_listened_to(tmp_path: Path) -> None:
    model, clock = QueueModel(), FakeClock()
    behind = {ASK: Upstream(model, call_seconds_max=5.0), OTHER: Upstream(model)}
    async with standing(tmp_path / "a.db", behind.get, clock, limits=Limits(call_seconds_max=30)) as door:
        short = asyncio.create_task(refused(door, ask()))
        came = await model.next()
        long = asyncio.create_task(door.send(Ask(request(destination=OTHER))))
        other = await model.next()
        clock.advance(5)
        assert isinstance(await short, CallUnknown)
        came.set_result(reply(0.25))
        other.set_result(reply())
        assert (await long).sent is Sent.NOW
        await settled(door)
        kept = (await door.send(Look(request()))).kept
    assert kept is not None and kept.body == answer(0.25)


async def test_destinations_of_one_upstream_share_its_budget_and_its_calls(tmp_path: Path) -> None:
    model = QueueModel()
    shared = Upstream(model, "both", day_calls_max=2, calls_max=1)
    async with standing(tmp_path / "a.db", {ASK: shared, OTHER: shared}.get) as door:
        first = asyncio.create_task(door.send(ask()))
        came = await model.next()
        assert (await refused(door, Ask(request(destination=OTHER)))).code == "busy"
        came.set_result(reply())
        await first
        second = asyncio.create_task(door.send(Ask(request(destination=OTHER))))
        (await model.next()).set_result(reply())
        await second
        assert (await refused(door, ask("third"))).code == "over_limit"
    assert rows(tmp_path / "a.db", "SELECT upstream, sent FROM budget") == [("both", 2)]


async def test_more_addresses_than_are_remembered_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller may ask as many addresses of a destination as it likes."""
    monkeypatch.setattr("archive.actor.store.places.DESTINATIONS_REMEMBERED_MAX", 4)
    behind = Upstream(EchoModel())
    async with standing(tmp_path / "a.db", lambda _: behind, limits=Limits(recent_bytes_max=1)) as door:
        places = [Destination("json", "POST", f"https://other.example.test/{n}") for n in range(50)]
        first = await asyncio.gather(*(door.send(Ask(request(destination=place))) for place in places))
        again = await asyncio.gather(*(door.send(Ask(request(destination=place))) for place in places))
    assert ({one.sent for one in first}, {one.sent for one in again}) == ({Sent.NOW}, {Sent.NOT_SENT})
    assert rows(tmp_path / "a.db", "SELECT count(*), count(DISTINCT url) FROM destination") == [(50, 50)]
