"""What stops an asking while somebody looks on: each is told without a reload."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from archive.messages import Ask
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
    ("stop", "told", "more", "then", "shape"),
    [
        (refused, "Refused", "The model's server refused it.", "put the question another way", "solid"),
        (lost, "Sent, no reply", "it is not sent again by itself", "or decide at call 1", "dotted"),
        (cooling, "No answer", "asked to be left alone until", "try again after", "dotted"),
    ],
)
async def test_an_asking_that_fails_is_told_on_the_open_page_with_what_to_do_next(
    chromium: Browser, tmp_path: Path, stop: Callable[[Visitor], None], told: str, more: str, then: str, shape: str
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
        await expect(page.locator("#answer .tell", has_text="Next:")).to_contain_text(then)
        await expect(page.locator("#answer .stop")).to_have_css("border-left-style", shape)
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
        await expect(page.locator(".word")).to_have_text("Not now")
        await expect(page.locator("#answer .tell", has_text="Next:")).to_contain_text("try again after")
        await expect(page.locator("#answer .stop")).to_have_css("border-left-style", "dashed")
        assert me.sent == 1


async def test_an_error_of_ours_is_told_on_the_open_page_with_its_id(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is made, and the refusal takes its time."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        gate, send = asyncio.Event(), me.here.door.send

        async def broken(message: Any) -> Any:
            if isinstance(message, Ask):
                await gate.wait()
                raise RuntimeError("a secret")
            return await send(message)

        monkeypatch.setattr(me.here.door, "send", broken)
        page = await context.new_page()
        await live(page, address("Is it?"))
        await expect(page.locator(".word")).to_have_text("Asking")
        gate.set()
        await expect(page.locator(".word")).to_have_text("Our error")
        await expect(page.locator("#answer .stop")).to_have_text(re.compile("Its id is [0-9a-f]{8}"))
        await expect(page.locator("#answer .stop")).to_have_css("border-left-style", "double")
        await expect(page.locator("#answer .tell", has_text="Next:")).to_contain_text("tell whoever runs this site")
        assert me.sent == 0


async def test_a_question_that_stops_shows_the_last_answer_that_was_kept(chromium: Browser, tmp_path: Path) -> None:
    """Its first call comes out another way, so that the second one is new; and that one gets no reply."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        asked = await me.ask("Is it?")
        me.jev.kind = "how_much"
        await me.here.ask(me.model.got[0].body, Archive_Answer="fresh")
        me.model.behave = hangs_up()
        page = await context.new_page()
        await live(page, address("Is it?"))
        await page.get_by_role("button", name="Try again").or_(page.locator("#c2 button")).first.click()
        await expect(page.locator(".word")).to_have_text("Sent, no reply")
        await expect(page.locator("#answer")).to_contain_text("The last answer that was kept: Probably yes 0.83, asked")
        assert asked.words == "Probably yes"
