"""Every state of every page can be read: at every width, by every reader, in every light."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.base import AXE_SCRIPT  # pyright: ignore[reportMissingTypeStubs]
from playwright.async_api import Browser, Page, expect

from archive.answer import stored
from archive.messages import Conclusion, Noted, Question
from tests.browser.states import HOSTILE, every_state
from tests.browser.tabs import browsing, fits, ids_of_focus, live, tab
from tests.pages import Visitor, address, visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = (320, 390, 640, 832, 833, 1024, 1280)
"""832 is the widest that counts as narrow."""

TARGETS_TOO_SMALL = """
() => [...document.querySelectorAll("a, button, summary, input:not([type=hidden]), textarea")]
  .filter((one) => one.checkVisibility() && !one.matches(".skip, .vh"))
  .filter((one) => {
    const inText = one.tagName === "A" && getComputedStyle(one).display === "inline" && one.closest("p, h4");
    const box = one.type === "radio" ? one.labels[0] : one;
    const {height, width} = box.getBoundingClientRect();
    return !inText && (height < 43.5 || width < 24);
  })
  .map((one) => `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 30)}`)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def states(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Visitor, dict[str, str]], None]:
    """A site that has a page in every state, and their addresses."""
    async with visitor(tmp_path_factory.mktemp("states") / "a.db", call_seconds_max=600.0) as me:
        yield me, await every_state(me)


States = tuple[Visitor, dict[str, str]]


async def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds by WCAG 2.2 AA and best practice, or by these rules alone."""
    options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    options |= {"runOnly": list(rules), "rules": {}} if rules else {}
    found: dict[str, Any] = await page.evaluate("(options) => axe.run(document, options)", options)
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes']]}" for one in found["violations"]]


async def test_nothing_keeps_anybody_from_reading_any_page(chromium: Browser, states: States) -> None:
    """Check 1: axe finds nothing. (What moves is still, so that no colour is caught half way.)"""
    me, pages = states
    found: dict[str, list[str]] = {}
    async with browsing(chromium, me.here.url, quiet=False, reduced_motion="reduce") as context:
        page = await context.new_page()
        for name, path in pages.items():
            await page.goto(path)
            await page.evaluate(AXE_SCRIPT)
            for width in (1280, 390, 320):
                await page.set_viewport_size({"width": width, "height": 900})
                await page.emulate_media(color_scheme="light")
                found[f"{name}, {width}"] = await violations(page)
                # Nothing but colours is another in the dark.
                await page.emulate_media(color_scheme="dark")
                found[f"{name}, {width}, dark"] = await violations(page, "color-contrast")
    assert not any(found.values()), {name: all for name, all in found.items() if all}


async def test_every_page_has_room_on_every_window_and_is_pressed_by_a_finger(
    chromium: Browser, states: States
) -> None:
    """Check 2: nothing is wider than the window. And what is pressed on a narrow one is as large as a finger."""
    me, pages = states
    wrong: dict[str, object] = {}
    async with browsing(chromium, me.here.url, quiet=False, has_touch=True) as context:
        page = await context.new_page()
        for name, path in pages.items():
            await page.goto(path)
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 900})
                if not await fits(page):
                    wrong[f"{name}, {width}"] = "too wide"
                if width <= 832 and (small := await page.evaluate(TARGETS_TOO_SMALL)):
                    wrong[f"{name}, {width}, small"] = small
    assert not wrong


async def test_every_page_is_worked_by_keyboard_alone_and_shows_where_it_is(chromium: Browser, tmp_path: Path) -> None:
    """Check 21."""
    async with visitor(tmp_path / "a.db") as me, tab(chromium, me.here.url) as page:
        await page.keyboard.press("Tab")
        assert "Skip" in await ids_of_focus(page)
        await expect(page.locator(".skip")).to_be_in_viewport()
        while await ids_of_focus(page) != "q":
            assert await page.evaluate(RING), await ids_of_focus(page)
            await page.keyboard.press("Tab")
        assert await page.evaluate(RING)
        await page.keyboard.type("Is it?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".word")).to_have_text("Probably yes")
        met: set[str] = set()
        while (focus := await ids_of_focus(page)) not in met or focus.startswith("BODY"):
            met.add(focus)
            await page.keyboard.press("Tab")
            if not (await ids_of_focus(page)).startswith("BODY"):
                assert await page.evaluate(RING), await ids_of_focus(page)
            if len(met) > 3 and (await ids_of_focus(page)).startswith("BODY"):
                break
        assert any("Ask again" in one for one in met)
        assert any("Request bytes" in one for one in met)
        await page.locator("#c2 .ctl button").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#c2 .pager")).to_contain_text("answer 2 of 2")
        assert me.sent == 3


RING = """
(() => {
  const one = document.activeElement, around = one.closest(".ask");
  const ring = (e) => {
    const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(e);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 || boxShadow !== "none";
  };
  return ring(one) || Boolean(around && ring(around));
})()
"""


async def test_a_toast_stays_while_it_is_read_and_goes_by_itself_or_by_escape(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 20."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        await me.ask("Is it?")
        page = await context.new_page()
        await page.clock.install()
        await live(page, address("Is it?"))
        link, toast = page.locator("[data-copy]"), page.locator("#status .toast")
        await link.click()
        await expect(toast).to_have_text("The link is copied.")
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == await link.evaluate("(link) => link.href")
        assert "pins=" not in copied
        await page.clock.fast_forward(5000)
        await expect(toast).to_be_visible()
        await toast.hover()
        await page.clock.fast_forward(60_000)
        await expect(toast).to_be_visible()
        await page.mouse.move(0, 0)
        while await toast.count():  # until it has noticed that nobody points at it
            await page.clock.fast_forward(6100)
        await link.click()
        await expect(toast).to_have_text("The link is copied.")
        await page.keyboard.press("?")
        await expect(toast).to_contain_text("Keys:")
        await expect(toast).to_have_count(1)
        await page.keyboard.press("Escape")
        await expect(toast).to_be_hidden()


async def test_nothing_moves_for_whoever_asks_for_that_and_forced_colours_are_told_apart(
    chromium: Browser, states: States
) -> None:
    """Check 22."""
    me, pages = states
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    async with tab(chromium, me.here.url, pages["asking"], quiet=False, reduced_motion="reduce") as page:
        await expect(page.locator(".word")).to_have_text("Asking")
        assert await page.evaluate(moving) == 0
        await page.emulate_media(reduced_motion="no-preference")
        assert await page.evaluate(moving) > 0
        await page.emulate_media(reduced_motion="reduce")
        for path in pages.values():
            await page.goto(path)
            assert await page.evaluate(moving) == 0, path
        await live(page, "/")
        await me.here.door.send(Noted(Question("Is it new?"), 1, 1, (), Conclusion("yes_no", stored("Yes")), True))
        await expect(page.locator("#lately-list .qq").first).to_have_text("Is it new?")
        assert await page.evaluate(moving) == 0
    async with tab(chromium, me.here.url, pages["answered"], forced_colors="active") as page:
        colours = "(one) => { const s = getComputedStyle(one); return s.stroke; }"
        ink, pale = page.locator("#t path"), page.locator("#tp path")
        assert await ink.evaluate(colours) != await pale.evaluate(colours)
        await page.emulate_media(forced_colors="active", color_scheme="dark")
        assert await ink.evaluate(colours) != await pale.evaluate(colours)


async def test_no_text_runs_breaks_the_page_or_the_policy(chromium: Browser, tmp_path: Path) -> None:
    """Check 25: as question, option, model's name and reply; by the server's page, by a patch and by a row."""
    options = [HOSTILE[:90], "b" * 90, "\u202eolleh"]
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, width=320) as context:
        me.jev.model = HOSTILE[:90]
        home, page = await context.new_page(), await context.new_page()
        await live(home, "/")
        await page.goto(address(HOSTILE, option=options))  # asked by itself, and filled in by patches
        await expect(page.locator(".word")).to_have_text(options[0])
        await me.ask(HOSTILE)
        await expect(home.locator("#lately-list li")).to_have_count(1)
        await page.reload()
        for one in (home, page):
            assert await one.evaluate("globalThis.hacked") is None
            assert await fits(one)
            assert await one.locator("main script, main img").count() == 0
        await expect(page.locator("h1")).to_have_text(HOSTILE)
        for number, got in enumerate(me.model.got[:2], start=1):
            links = await page.locator(f"#c{number} a", has_text="raw").all()
            for link, sent in zip(links, (got.body, me.jev.reply(got.body)), strict=True):
                response = await context.request.get(await link.get_attribute("href") or "")
                assert await response.body() == sent, "byte for byte what went up and what came back"
                assert response.headers["x-content-type-options"] == "nosniff"
