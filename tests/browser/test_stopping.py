"""What stops an asking while somebody looks on: each is told without a reload."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tabs import browsing, live
from tests.pages import Visitor, address, visitor
from tests.wires import hangs_up

pytestmark = pytest.mark.asyncio(loop_scope="session")


def refused(me: Visitor) -> None:
    me.model.status = 400


def lost(me: Visitor) -> None:
    me.model.behave = hangs_up()


def cooling(me: Visitor) -> None:
    me.model.status, me.model.headers = 429, [("retry-after", "3600")]


@pytest.mark.parametrize(
    ("stop", "told", "more"),
    [
        (refused, "No answer", "The model's server refused it."),
        (lost, "Sent, no reply", "it is not sent again by itself"),
        (cooling, "No answer", "asked to be left alone until"),
    ],
)
async def test_an_asking_that_fails_is_told_on_the_open_page(
    chromium: Browser, tmp_path: Path, stop: Callable[[Visitor], None], told: str, more: str
) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        page = await context.new_page()
        me.model.gate = asyncio.Event()
        await live(page, address("Is it?"))
        await expect(page.locator(".word")).to_have_text("Asking")
        await me.model.arrived.acquire()
        stop(me)
        me.model.gate.set()
        await expect(page.locator(".word")).to_have_text(told)
        await expect(page.locator("#answer")).to_contain_text(more)
        assert me.sent == 1


async def test_an_asking_that_may_not_go_on_is_told_on_the_open_page(chromium: Browser, tmp_path: Path) -> None:
    """The day's limit is reached between the first call and the second: no call ends, and the page must hear of it."""
    async with visitor(tmp_path / "a.db", day_calls_max=1) as me, browsing(chromium, me.here.url) as context:
        page = await context.new_page()
        me.model.gate = asyncio.Event()
        await live(page, address("Is it?"))
        await me.model.arrived.acquire()
        me.model.gate.set()
        await expect(page.locator("#answer")).to_contain_text("Today's one call is used up.")
        assert me.sent == 1
