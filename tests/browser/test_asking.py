"""Asking in a real browser: what is sent, how often, and what is seen of it."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, expect

from tests.browser.tabs import browsing, ids_of_focus, live, tab
from tests.pages import Visitor, address, visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

UNFURLERS = ["Twitterbot/1.0", "facebookexternalhit/1.1", "Slackbot-LinkExpanding 1.0", "Googlebot/2.1", "curl/8"]


async def answered(page: Page, words: str = "Probably yes") -> None:
    """Wait until the answer stands there."""
    await expect(page.locator(".word")).to_have_text(words)


async def test_without_javascript_a_question_is_typed_asked_waited_for_and_paged_through(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 3."""
    async with visitor(tmp_path / "a.db") as me, tab(chromium, me.here.url, java_script_enabled=False) as page:
        me.model.gate = asyncio.Event()
        await page.get_by_label("Your question").fill("Is it?")
        async with page.expect_response(lambda response: response.request.method == "POST") as posted:
            await page.get_by_role("button", name="Ask", exact=True).click()
        assert (await posted.value).status == 303
        await answered(page, "Asking")
        me.model.gate.set()
        await answered(page)  # by the refresh that stands in <noscript>
        assert me.sent == 2
        me.jev.noul = 0.2
        await page.locator("#c2").get_by_role("button").click()
        await answered(page, "Probably no")
        await page.locator("#c2 a[rel=prev]").click()
        await answered(page)
        await expect(page.locator(".pinbar")).to_contain_text("held at answer 1 of 2")
        await page.goto("/")
        await page.locator("#lately-list a", has_text="Is it?").click()
        await answered(page, "Probably no")
        assert me.sent == 3


async def test_looking_at_an_unasked_link_sends_nothing_whoever_looks(chromium: Browser, tmp_path: Path) -> None:
    """Check 4."""
    link = address("Is it?")
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(link)
        await expect(page.get_by_role("button", name="Ask it")).to_be_visible()
        for agent in UNFURLERS:
            assert (await context.request.get(link, headers={"User-Agent": agent})).ok
        assert (await context.request.head(link)).ok
        assert (await context.request.get(link, headers={"Sec-Purpose": "prefetch"})).ok
        await me.settled()
        assert me.sent == 0


async def test_an_unasked_link_is_asked_once_by_itself_when_it_is_looked_at(chromium: Browser, tmp_path: Path) -> None:
    """Check 5."""
    link = address("Is it?")
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        page, second = await context.new_page(), await context.new_page()
        posts: list[str] = []
        context.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
        await page.goto(link)
        await answered(page)
        assert await page.evaluate("history.length") == 2, "about:blank and this page"
        await page.reload()
        await answered(page)
        await page.goto("/")
        await page.go_back()
        await answered(page)
        await page.go_forward()
        await expect(page).to_have_url("/")
        await second.goto(link)
        await answered(second)
        await me.settled()
        assert (len(posts), me.sent) == (1, 2)


async def test_what_could_not_be_asked_is_not_tried_again_by_itself(chromium: Browser, tmp_path: Path) -> None:
    """Check 5: the button is there, and neither reload nor the way back presses it."""
    tried: list[Request] = []
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, quiet=False) as context:
        page = await context.new_page()
        await context.route("**/ask", lambda route: route.abort())
        context.on("request", lambda request: tried.append(request) if request.method == "POST" else None)
        await live(page, address("Is it?"))
        await expect(page.locator(".toast")).to_contain_text("did not reply")
        await page.reload()
        await expect(page.locator("#online")).to_contain_text("1 page open")
        await live(page, "/")
        await page.go_back()
        await expect(page.get_by_role("button", name="Ask it")).to_be_visible()
        await expect(page.locator("#online")).to_contain_text("1 page open")
        assert (len(tried), me.sent) == (1, 0)


async def test_a_link_in_a_tab_that_nobody_looks_at_is_not_asked_until_somebody_does(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 5."""
    hidden = "Object.defineProperty(Document.prototype, 'visibilityState', {get: () => globalThis.seen ?? 'hidden'})"
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        page = await context.new_page()
        await page.add_init_script(hidden)
        posts: list[Request] = []
        page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
        await live(page, address("Is it?"))
        await page.evaluate("fetch('/static/mark.svg').then((r) => r.text())")
        assert not posts
        await page.evaluate("seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
        await answered(page)
        assert me.sent == 2


async def test_asking_again_sends_one_call_and_every_open_page_shows_its_answer(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 18."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        me.jev.counting = True
        await me.ask("Is it?")
        page, other = await context.new_page(), await context.new_page()
        await live(page, address("Is it?"))
        await live(other, address("Is it?"))
        button = page.locator("#c2").get_by_role("button", name="Ask again")
        await button.scroll_into_view_if_needed()
        before = await page.evaluate("scrollY")
        me.model.gate = asyncio.Event()
        await button.click()
        for _ in range(3):
            await me.model.arrived.acquire()
        me.model.gate.set()
        await expect(other.locator("#c2 .pager")).to_contain_text("answer 2 of 2", timeout=1000)
        for one in (page, other):
            await expect(one.locator("#c2 .state")).to_have_text("Sent now")
            await expect(one.locator("#c2 .pager")).to_contain_text("answer 2 of 2")
            await expect(one.locator(".scale output")).to_have_text("0.85")
            await expect(one).to_have_title("Probably yes (0.85): Is it?")
        assert me.sent == 3
        assert await page.evaluate("scrollY") == pytest.approx(before, abs=60), "the page stays where it was read"
        assert await ids_of_focus(page) != "BODY"


async def test_the_form_of_an_open_question_leads_to_the_question_it_makes(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.jev.kind = "open"
        await me.ask("Why is the sky blue?")
        async with tab(chromium, me.here.url, address("Why is the sky blue?")) as page:
            await page.get_by_label("Two or more options").fill("dust\nlight")
            await page.get_by_role("button", name="Ask which").click()
            await answered(page, "dust")
            await expect(page).to_have_url(address("Why is the sky blue?", option=["dust", "light"]))
            assert await ids_of_focus(page) == "question", "what was pressed is gone"
            await page.go_back()
            await expect(page.get_by_role("button", name="Ask which")).to_be_visible()
        assert me.sent == 2


async def test_what_is_refused_is_said_and_what_was_typed_stays(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.jev.kind = "open"
        await me.ask("Why is the sky blue?")
        async with tab(chromium, me.here.url, address("Why is the sky blue?"), quiet=False) as page:
            field = page.get_by_label("Two or more options")
            await field.fill("dust")
            await page.get_by_role("button", name="Ask which").click()
            await expect(page.locator(".toast")).to_contain_text("one a line; these are 1.")
            await expect(field).to_have_value("dust")


async def see_it_waited_for(me: Visitor, page: Page) -> None:
    await expect(page.locator("#waited")).to_have_text("")
    await page.clock.fast_forward(2000)
    await expect(page.locator("#waited")).to_contain_text("It has taken")
    await page.clock.fast_forward(2000)
    await expect(page.locator("#waited")).to_contain_text("That is slow.")
    await page.clock.fast_forward(10_000)
    await expect(page.locator("#waited")).to_contain_text("it is the model that is waited for")


async def test_whoever_waits_sees_the_seconds_and_what_is_waited_for(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        await me.model.arrived.acquire()
        page = await context.new_page()
        await page.clock.install()
        await live(page, address("Is it?"))
        await see_it_waited_for(me, page)
        me.model.gate.set()
        await answered(page)
        await expect(page.locator("#status p")).to_have_text("Is it? Probably yes")
