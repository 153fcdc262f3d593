"""Stepping through answers and holding them, in a real browser."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from playwright.async_api import Browser, Error, Page, Route, expect

from tests.browser.tabs import browsing, ids_of_focus, live
from tests.pages import Visitor, address, visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def asked_thrice(me: Visitor) -> list[str]:
    """Three answers to the second call of "Is it?"; the calls' names."""
    me.jev.noul = 0.2
    page = await me.ask("Is it?")
    names = [name.partition(":")[0] for name in page.names]
    for noul in (0.5, 0.83):
        me.jev.noul = noul
        await me.ask("Is it?", again=names[1])
    return names


async def seen(page: Page) -> tuple[str, str, str, str]:
    """Title, words, scale and what the pager says."""
    return (
        await page.title(),
        await page.locator(".word").inner_text(),
        await page.locator(".scale").first.get_attribute("aria-label") or "",
        (await page.locator("#c2 .pager").inner_text()).strip(),
    )


async def test_stepping_there_and_back_is_a_step_of_the_browser_too_and_keeps_the_focus(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 17."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        names = await asked_thrice(me)
        page = await context.new_page()
        await live(page, address("Is it?"))
        await page.evaluate("globalThis.loaded = 'once'")
        newest = await seen(page)
        await page.locator("#c2 a[rel=prev]").focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(address("Is it?", f"{names[1]}:2") + "#c2")
        await expect(page.locator("#c2 a[rel=prev]")).to_be_focused()
        assert await seen(page) == (
            "Torn (0.50): Is it?",
            "Torn",
            "Probability of yes: 0.50, on a scale from no to yes. 50 of 100 strokes are inked.",
            "answer 2 of 3",
        )
        await page.keyboard.press("Enter")
        await expect(page.locator("#c2 .pager")).to_contain_text("answer 1 of 3")
        await expect(page.locator("#c2 a[rel=next]")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#c2 .pager")).to_contain_text("answer 2 of 3")
        for _ in range(3):
            await page.go_back()
        await expect(page).to_have_url(address("Is it?"))
        await expect(page.locator("#c2 .pager")).to_contain_text("answer 3 of 3")
        assert await seen(page) == newest
        await page.go_forward()
        await expect(page.locator(".word")).to_have_text("Torn")
        await page.locator(".pinbar .btn").click()
        await expect(page.locator(".word")).to_have_text("Probably yes")
        assert me.sent == 4


async def test_a_step_by_the_keys_of_the_page_is_the_same_step(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await asked_thrice(me)
        page = await context.new_page()
        await live(page, address("Is it?"))
        for key, word in (("[", "Torn"), ("[", "Probably no"), ("]", "Torn")):
            await page.keyboard.press(key)
            await expect(page.locator(".word")).to_have_text(word)
        await page.keyboard.press("/")
        assert await ids_of_focus(page) == "q"
        await page.keyboard.type("[?/")
        await expect(page.locator("#q")).to_have_value("[?/")
        await page.locator("h1").click()
        await page.keyboard.press("?")
        await expect(page.locator(".toast")).to_contain_text("step through the answers")
        assert me.sent == 4


async def test_quick_steps_end_at_the_last_one(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        names = await asked_thrice(me)
        page = await context.new_page()
        await live(page, address("Is it?"))
        await page.evaluate("for (let n = 0; n < 5; n++) document.querySelector('#c2 a[rel=prev]').click()")
        await expect(page).to_have_url(address("Is it?", f"{names[1]}:2") + "#c2")
        await expect(page.locator(".word")).to_have_text("Torn")


READ_BOTH = """
async ([slow, quick]) => {
  const {read} = await import("/static/page.js");
  return await Promise.all([read(slow), read(quick)]);
}
"""


async def test_of_two_pages_that_are_read_at_once_the_later_one_is_shown(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        names = await asked_thrice(me)
        page = await context.new_page()
        await live(page, address("Is it?"))
        shown = asyncio.Event()

        async def after_the_other(route: Route) -> None:
            await shown.wait()
            with contextlib.suppress(Error):  # it is given up by then
                await route.continue_()

        slow, quick = (address("Is it?", f"{names[1]}:{n}") for n in (1, 2))
        await page.route(f"{me.here.url}{slow}", after_the_other)
        reading = asyncio.create_task(page.evaluate(READ_BOTH, [slow, quick]))
        await expect(page.locator(".word")).to_have_text("Torn")
        shown.set()
        assert await reading == [None, True]
        await expect(page.locator(".word")).to_have_text("Torn")


async def test_a_step_that_cannot_be_read_leaves_the_page_for_it(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, quiet=False) as context:
        await asked_thrice(me)
        page = await context.new_page()
        await live(page, address("Is it?"))
        fails = ["fetch"]
        await page.route(
            "**/?q=*pins=*",
            lambda route: route.abort() if route.request.resource_type in fails else route.continue_(),
        )
        await page.locator("#c2 a[rel=prev]").click()
        await expect(page.locator(".word")).to_have_text("Torn")


async def test_a_pinned_page_sends_nothing_later_and_says_what_is_missing(chromium: Browser, tmp_path: Path) -> None:
    """Check 16."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        page = await me.ask("Is it?")
        first = page.names[0].partition(":")[0]
        me.jev.kind = "how_much"
        await me.here.ask(me.model.got[0].body, Archive_Answer="fresh")
        sent = me.sent
        tab = await context.new_page()
        await live(tab, address("Is it?", f"{first}:2"))
        await expect(tab.locator("#c2 .state")).to_have_text("Not on record")
        await expect(tab.locator("#c2 .tell")).to_contain_text("Not on record, not sent. Below is the request")
        await expect(tab.locator("#c2 pre")).to_contain_text('"state"')
        await expect(tab.get_by_role("button", name="Ask again")).to_have_count(1)  # of call 1, which is held itself
        await live(tab, address("Is it?", f"{first}:1"))
        await expect(tab.locator("#c1 .state")).to_have_text("Pinned")
        await expect(tab.locator("#c2 .state")).to_have_text("Looked up")
        await expect(tab.locator("#c2 button")).to_have_count(0)
        await expect(tab.locator(".pinbar")).to_contain_text("Call 1 is held at answer 1 of 2")
        await tab.reload()
        await expect(tab.locator("#c2 .state")).to_have_text("Looked up")
        await me.settled()
        assert me.sent == sent


async def test_a_patch_that_was_on_its_way_to_the_page_before_does_not_replace_this_one(
    chromium: Browser, tmp_path: Path
) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await asked_thrice(me)
        page = await context.new_page()
        await live(page, address("Is it?"))
        late = await page.evaluate("document.getElementById('view').outerHTML")
        await page.keyboard.press("[")
        await expect(page.locator(".word")).to_have_text("Torn")
        await page.evaluate("(html) => import('/static/page.js').then((page) => page.patch(html))", late)
        await expect(page.locator(".word")).to_have_text("Torn")
