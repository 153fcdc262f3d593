"""The front page's lists as they grow: downwards by scrolling, upwards by what is asked meanwhile."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.tabs import browsing, live
from tests.pages import visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTIONS = 210

FIRST_VISIBLE = """
() => {
  const row = [...document.querySelectorAll("#lately-list li")].find((one) => one.getBoundingClientRect().top >= 0);
  return [row.textContent, row.getBoundingClientRect().top];
}
"""


FOOT_IS_SEEN = "document.querySelector('.foot').getBoundingClientRect().top < innerHeight"


async def to_the_foot(page: Page) -> None:
    """Press End until the foot of the page is there; both lists grow on the way."""
    async with asyncio.timeout(10):
        while not await page.evaluate(FOOT_IS_SEEN):
            await page.keyboard.press("End")


async def test_a_list_goes_on_where_it_is_scrolled_to_without_a_gap_and_its_foot_is_reached(
    chromium: Browser, tmp_path: Path
) -> None:
    """Checks 10 and 11: rows come by 50 to 150, then by a press; what is asked meanwhile moves nothing."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, width=390) as context:
        for n in range(QUESTIONS):
            await me.ask(f"Is it {n}?")
        page = await context.new_page()
        await live(page, "/")
        rows = page.locator("#lately-list li")
        counts = [await rows.count()]
        await me.ask("Is it newer?")
        await expect(rows).to_have_count(51)
        while counts[-1] < 151:
            await page.locator("#lately-next").scroll_into_view_if_needed()
            counts.append(await rows.count())
        assert set(counts) <= {50, 51, 101, 151}
        before = await page.evaluate(FIRST_VISIBLE)
        await me.ask("Is it new?")
        await expect(page.locator("#lately-new")).to_have_text("1 new, show")
        text, top = await page.evaluate(FIRST_VISIBLE)
        assert (text, top) == (before[0], pytest.approx(before[1], abs=1))
        await to_the_foot(page)
        await expect(rows).to_have_count(151)
        await page.locator("#lately-next").click()
        await expect(rows).to_have_count(201)
        await page.locator("#lately-next").click()
        await expect(rows).to_have_count(QUESTIONS + 1)
        await expect(page.locator("#lately-next")).to_have_count(0)
        await page.locator("#lately-new").click()
        shown = await page.locator("#lately-list .qq").all_inner_texts()
        assert shown == ["Is it new?", "Is it newer?", *(f"Is it {n}?" for n in reversed(range(QUESTIONS)))]
