"""What somebody reads stays where it is, while a page loads, fills and grows."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.tabs import browsing, live
from tests.pages import address, visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = pytest.mark.parametrize("width", [1280, 390])

SHIFT_MAX = 0.02

WATCH_SHIFTS = """
globalThis.shifts = [];
globalThis.shiftsSeen = new PerformanceObserver((list) => {
  const named = (node) => `${node?.nodeName} ${node?.className || node?.textContent.slice(0, 20)}`;
  for (const {value, sources} of list.getEntries()) {
    shifts.push([value, sources.map((one) => `${named(one.node)}: ${one.previousRect.y} to ${one.currentRect.y}`)]);
  }
});
shiftsSeen.observe({type: "layout-shift", buffered: true});
"""
"""Every shift from the first moment on, and what it moved."""

HURRY = """
const real = setTimeout;
globalThis.setTimeout = (call, ms) => real(call, ms / 6);
"""
"""Timers run out while what glides is on its way, as on a machine that is too busy to draw."""


async def shifts(page: Page) -> list[tuple[float, list[str]]]:
    """All that moved so far, when it has been drawn."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return await page.evaluate("shifts")


async def assert_stood_still(page: Page) -> None:
    """All shifts together are less than what is seen, not only the worst second of them."""
    found = await shifts(page)
    assert sum(value for value, _ in found) < SHIFT_MAX, found


@WIDTHS
@pytest.mark.parametrize(
    ("kind", "words"), [("yes_no", "Is it?"), ("which", "Tea, coffee or water?"), ("how_much", "How warm is it?")]
)
async def test_nothing_moves_from_the_load_of_an_unasked_link_through_its_answer(
    chromium: Browser, tmp_path: Path, width: int, kind: str, words: str
) -> None:
    """Check 9."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, width=width) as context:
        me.jev.kind = kind
        me.model.gate = asyncio.Event()
        page = await context.new_page()
        await page.add_init_script(WATCH_SHIFTS)
        await live(page, address(words))
        await expect(page.locator(".word")).to_have_text("Asking")
        await expect(page.locator("#waited")).not_to_have_text("0")
        me.model.gate.set()
        await expect(page.locator("#view")).not_to_have_attribute("data-asking", "")
        await expect(page.locator(".hero .note")).to_contain_text("asked 1 time")
        await assert_stood_still(page)


@WIDTHS
@pytest.mark.parametrize("hurry", ["", HURRY], ids=["at rest", "in a hurry"])
async def test_nothing_moves_while_rows_come_in(chromium: Browser, tmp_path: Path, width: int, hurry: str) -> None:
    """Check 9: what makes room for twenty rows glides, and nothing is seen in another place than it was."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, width=width) as context:
        await me.ask("Is it old?")
        page = await context.new_page()
        await page.add_init_script(WATCH_SHIFTS + hurry)
        await live(page, "/")
        for n in range(20):
            await me.ask(f"Is it new, and is it the number {n} of those that come in?")
        await expect(page.locator("#lately-list li")).to_have_count(21)
        await assert_stood_still(page)
