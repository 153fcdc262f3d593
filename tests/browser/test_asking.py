"""Asking in a real browser: what is sent, how often, and what is seen of it."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, expect

from archive.messages import Count, Question, Recall
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


SHOWN_FROM = """
(one) => {
  one.style.animation = "none";
  one.offsetWidth;
  one.style.animation = ""; // it begins anew
  const [soon] = one.getAnimations().filter((animation) => animation.animationName === "soon");
  soon.pause();
  return [0, 149, 151].map((at) => {
    soon.currentTime = at;
    return getComputedStyle(one).visibility;
  });
}
"""


async def test_what_is_asked_is_not_said_to_be_before_150_ms(chromium: Browser, tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        page = await context.new_page()
        await live(page, address("Is it?"))
        for part in (".word", ".scale", ".says"):
            assert await page.locator(part).evaluate(SHOWN_FROM) == ["hidden", "hidden", "visible"]


async def waited(page: Page, seconds: int) -> list[bool]:
    """Let the page's clock go on to so many seconds of waiting; which of the two later sentences are shown then."""
    while int(await page.locator("#waited").inner_text()) < seconds:
        await page.clock.run_for(500)
    assert int(await page.locator("#waited").inner_text()) == seconds
    return [await one.is_visible() for one in await page.locator("#view [data-after]").all()]


async def test_whoever_waits_sees_the_seconds_and_what_is_waited_for(chromium: Browser, tmp_path: Path) -> None:
    """The stroke sweeps, the seconds tick; at 3 s it is slow, at 10 s the call is named; bars come as calls return."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        await me.model.arrived.acquire()
        page = await context.new_page()
        await page.clock.install()
        await live(page, address("Is it?"))
        await page.clock.pause_at(await page.evaluate("Date.now() + 10"))
        await expect(page.locator(".word")).to_have_text("Asking")
        sweep = "(one) => one.getAnimations().map((animation) => animation.animationName)"
        assert await page.locator(".wait .sweep").evaluate(sweep) == ["sweep"]
        assert await waited(page, 2) == [False, False]
        assert await waited(page, 3) == [True, False]
        assert await waited(page, 9) == [True, False]
        assert await waited(page, 10) == [True, True]
        says = page.locator(".says")
        await expect(says).to_contain_text(
            "That is slow. What is waited for is call 1, “What kind of question is it?”."
        )
        await expect(says).to_contain_text("Leaving stops nothing")
        await expect(says).to_contain_text("It times out after 30 s.")
        gate, me.model.gate = me.model.gate, asyncio.Event()
        gate.set()
        await expect(page.locator(".trace li")).to_have_count(2)
        bars = page.locator(".trace rect")
        assert [await bar.get_attribute("class") for bar in await bars.all()] == ["wetfill", "wetfill out"]
        assert await bars.first.evaluate(sweep) == ["grow"]
        assert int(await page.locator("#waited").inner_text()) == 10, "it goes on where it was"
        me.model.gate.set()
        await answered(page)
        await expect(page.locator("#status p")).to_have_text("Is it? Probably yes")


async def times(me: Visitor) -> int:
    """How often "Is it?" counts as asked, all that is on its way counted."""
    await me.here.door.send(Count())
    found = await me.here.door.send(Recall(Question("Is it?")))
    return 0 if found is None else found.times


async def until_seen(page: Page, path: str, *, looked: bool) -> None:
    """Go to a page, and wait until it has said what it shows, and whether that counts as a look."""
    said: list[bool] = []

    def heard(frame: str | bytes) -> bool:
        found = json.loads(frame)
        said.extend([found["looked"]] if found["type"] == "Seen" else [])
        return bool(said)

    async with page.expect_websocket() as opening:
        await (page.reload() if path == "reload" else page.goto(path))
    socket = await opening.value
    await socket.wait_for_event("framesent", heard)
    assert said == [looked]
    await expect(page.locator("#online")).to_contain_text("open")


async def test_a_look_counts_as_asking_once_and_never_beside_the_asking_it_came_from(
    chromium: Browser, tmp_path: Path
) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        page = await context.new_page()
        await page.goto("/")
        await page.get_by_label("Your question").fill("Is it?")
        async with page.expect_websocket(lambda socket: not socket.is_closed()) as opening:
            await page.get_by_role("button", name="Ask", exact=True).click()
        await opening.value
        await answered(page)
        await expect(page.locator("#online")).to_contain_text("open")
        assert await times(me) == 1, "the form that led here was counted"
        await until_seen(page, "reload", looked=False)
        await page.locator("#c2").get_by_role("button").click()
        await expect(page.locator("#c2 .pager")).to_contain_text("answer 2 of 2")
        assert await times(me) == 2
        other = await context.new_page()
        await until_seen(other, address("Is it?"), looked=True)
        await other.locator("#c2 a[rel=prev]").click()
        await expect(other.locator(".pinbar")).to_be_visible()
        await other.go_back()
        await expect(other.locator(".pinbar")).to_be_hidden()
        async with asyncio.timeout(10):
            while await times(me) != 3:
                pass
        await until_seen(page, "/", looked=False)
        await page.go_back()
        await expect(page.locator("#c2 .pager")).to_be_visible()
        await expect(page.locator("#online")).to_contain_text("open")
        assert await times(me) == 3


async def test_a_page_that_nobody_sees_counts_when_somebody_does_and_one_asked_by_itself_counts_once(
    chromium: Browser, tmp_path: Path
) -> None:
    hidden = "Object.defineProperty(Document.prototype, 'visibilityState', {get: () => globalThis.seen ?? 'hidden'})"
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        first = await context.new_page()
        await first.goto(address("Is it?"))
        await answered(first)
        await expect(first.locator("#online")).to_contain_text("open")
        assert await times(me) == 1, "it asked by itself"
        page = await context.new_page()
        await page.add_init_script(hidden)
        await until_seen(page, address("Is it?"), looked=False)
        assert await times(me) == 1
        for _ in range(2):
            await page.evaluate("seen = 'visible'; document.dispatchEvent(new Event('visibilitychange'))")
        async with asyncio.timeout(10):
            while await times(me) != 2:
                pass
        await page.evaluate("fetch('/static/mark.svg').then((r) => r.text())")
        assert await times(me) == 2


async def test_a_page_for_which_there_is_no_room_says_it_is_not_live_and_does_not_hammer(
    chromium: Browser, tmp_path: Path
) -> None:
    """It is accepted and closed with 1013, tried again ever more slowly, and live as soon as there is room."""
    async with visitor(tmp_path / "a.db", pages_max=1) as me, browsing(chromium, me.here.url) as context:
        first, page = await context.new_page(), await context.new_page()
        await live(first, "/")
        tried: list[float] = []
        await page.clock.install()
        page.on("websocket", lambda _: tried.append(0.0))
        await page.goto("/")
        await expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
        for _ in range(120):  # two minutes, a second at a time
            await page.clock.run_for(1000)
        await expect(page.locator("#online")).to_have_text("not live")
        assert 3 <= len(tried) <= 20
        await first.close()
        while await page.locator("#online").inner_text() == "not live":
            await page.clock.run_for(1000)
        await expect(page.locator("#online")).to_have_text("1 page open")


DELAYS = """
async () => {
  const {delay} = await import("/static/live.js");
  const chances = [...Array(500).keys()].map((n) => () => n / 500);
  return [1012, 1013, 1006].map((code) => [0, 1, 3, 12].map((tries) => chances.map((one) => delay(tries, code, one))));
}
"""


async def test_pages_come_back_spread_over_seconds_after_a_restart_and_never_later_than_half_a_minute(
    chromium: Browser, tmp_path: Path
) -> None:
    """B74: five hundred pages; no tenth of a second takes more than a fortieth of them."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        page = await context.new_page()
        await live(page, "/")
        stopped, full, lost = await page.evaluate(DELAYS)
    for waits in (stopped, full):
        assert max(waits[0]) - min(waits[0]) > 4000
        assert max(Counter(int(wait // 100) for wait in waits[0]).values()) <= 500 / 40
        assert max(waits[3]) <= 34_000
    assert [(min(waits), max(waits) < most) for waits, most in zip(lost, (500, 1000, 4000, 30_001), strict=True)] == [
        (250, True), (500, True), (2000, True), (15_000, True)
    ]  # fmt: skip
