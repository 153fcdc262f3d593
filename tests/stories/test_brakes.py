"""Brakes for callers without a token: what costs money is limited by address, and no header makes a caller another."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock, Site, body, site, upstream
from tests.pages import visitor

PUBLIC: dict[str, Any] = {"public_url": "https://ask.example.org", "address_calls_max": 5}


async def statuses(here: Site, count: int, forwarded: str) -> list[int]:
    """So many different asks; in `forwarded` a brace stands for another number each time."""
    said = [await here.ask(body(f"ask {n}"), X_Forwarded_For=forwarded.format(n)) for n in range(count)]
    assert {(one.status, one.error) for one in said if one.status != 200} <= {(429, "over_limit")}
    assert all(1 <= int(one.headers["Retry-After"]) <= 60 for one in said if one.status == 429)
    return [one.status for one in said]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "sent"),
    [
        ("198.51.100.7", "203.0.{}.7", 5),
        ("127.0.0.1", "203.0.{}.7", 20),
        ("127.0.0.0/8, 10.0.0.0/8", "203.0.{}.7, 10.1.2.3", 20),
        ("127.0.0.1", "203.0.{}.7, 198.51.100.7", 5),
        ("127.0.0.1", "203.0.113.{}", 5),
        ("127.0.0.1", "2001:db8:0:1::{}", 5),
        ("127.0.0.1", "2001:db8:0:{}::1", 20),
    ],
)
async def test_the_right_most_address_that_is_no_proxy_of_ours_counts(
    tmp_path: Path, proxies: str, forwarded: str, sent: int
) -> None:
    """B85: those to the left of it are whatever the client wrote."""
    async with (
        upstream() as model,
        site(tmp_path / "a.db", model.url, trusted_proxies=proxies, **PUBLIC) as here,
    ):
        found = await statuses(here, 20, forwarded)
        assert (found.count(200), len(model.got)) == (sent, sent)
        assert found[:5] == [200] * 5


async def test_two_hundred_asks_that_claim_to_come_from_everywhere_are_one_callers(tmp_path: Path) -> None:
    """B85: no proxy is trusted, so what the header says is nothing."""
    async with upstream() as model, site(tmp_path / "a.db", model.url, **PUBLIC) as here:
        assert await statuses(here, 200, "203.0.{}.7") == [200] * 5 + [429] * 195
        assert len(model.got) == 5


async def test_kept_answers_cost_nothing_and_are_not_limited_and_the_minute_ends(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url, **PUBLIC) as here:
        await statuses(here, 6, "")
        for _ in range(20):
            assert (await here.ask(body("ask 0"))).headers["Archive-Sent"] == "no"
        afresh = await here.ask(body("ask 0"), Archive_Answer="fresh")
        assert afresh.status == 429
        clock.advance(60)
        assert (await here.ask(body("ask 5"))).status == 200
        assert len(model.got) == 6


async def test_only_this_machine_needs_no_brake(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url, address_calls_max=5) as here:
        assert set(await statuses(here, 20, "203.0.{}.7")) == {200}


async def test_a_visitor_who_asks_too_much_is_told_so_on_the_page_and_the_next_minute_goes_on(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with visitor(tmp_path / "a.db", **PUBLIC) as me:
        await me.ask("Is one?")
        await me.ask("Is two?")
        third = await me.ask("Is three?")
        assert me.sent == 5
        assert "More than 5 calls a minute" in third.main
        clock.advance(60)
        assert (await me.ask("Is three?")).words
        assert me.sent == 6


async def test_a_visitor_who_presses_again_and_again_stays_within_the_day_over_a_restart(
    tmp_path: Path, clock: FakeClock
) -> None:
    """C-35 through the page itself."""
    store = tmp_path / "a.db"
    more: dict[str, Any] = {"day_calls_max": 12, **PUBLIC, "address_calls_max": 0}
    async with upstream() as model:
        for _ in range(2):
            async with visitor(store, model, **more) as me:
                page = await me.ask("Is it?")
                name = page.names[1].partition(":")[0]
                for _ in range(10):
                    await me.ask("Is it?", again=name)
                clock.advance(60)
    assert len(model.got) == 12
