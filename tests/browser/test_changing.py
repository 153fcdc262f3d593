"""A page that changes while somebody is at it: nothing of theirs is lost, nothing moves, and what it shows is so."""

import json
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.proxy import wire
from tests.browser.tabs import browsing, live, tab
from tests.fakes import upstream
from tests.pages import Visitor, address, visitor
from tests.process import process

pytestmark = pytest.mark.asyncio(loop_scope="session")

COUNT_CHANGES = """
() => {
  globalThis.changes = 0;
  new MutationObserver((all) => { globalThis.changes += all.length; })
    .observe(document.getElementById("main"), {subtree: true, childList: true, attributes: true, characterData: true});
}
"""


HEAR_ONLINE = """
() => {
  const online = document.getElementById("online");
  globalThis.said = [];
  new MutationObserver(() => said.push(online.textContent)).observe(online, {childList: true, characterData: true});
}
"""


async def again(me: Visitor, words: str = "Is it?") -> None:
    """Have the last call of a question asked afresh."""
    page = await me.look(words)
    await me.ask(words, again=page.names[-1].partition(":")[0])


async def test_what_is_typed_stays_as_it_is_while_the_page_changes(chromium: Browser, tmp_path: Path) -> None:
    """Check 6: focus, value and selection; also of a field that has lost the focus."""
    async with visitor(tmp_path / "a.db") as me:
        me.jev.kind = "open"
        await me.ask("Why?")
        async with browsing(chromium, me.here.url) as context:
            page = await context.new_page()
            await live(page, address("Why?"))
            await page.get_by_label("Two or more levels").fill("low\nhigh")
            options = page.get_by_label("Two or more options")
            await options.fill("dust\nlight")
            await options.evaluate("(field) => field.setSelectionRange(2, 5)")
            for field in await page.locator("textarea").all():
                await field.evaluate("(field) => { field.title = 'as an extension writes into pages'; }")
            await again(me, "Why?")
            await expect(page.locator("#c1 .pager")).to_contain_text("answer 2 of 2")
            await expect(options).to_be_focused()
            await expect(options).to_have_value("dust\nlight")
            await expect(page.get_by_label("Two or more levels")).to_have_value("low\nhigh")
            assert await options.evaluate("(field) => [field.selectionStart, field.selectionEnd]") == [2, 5]


async def test_what_was_opened_or_closed_stays_so(chromium: Browser, tmp_path: Path) -> None:
    """Check 7."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        me.jev.counting = True
        await me.ask("Is it?")
        page = await context.new_page()
        await live(page, address("Is it?"))
        details = page.locator("article details")
        assert [await one.get_attribute("open") for one in await details.all()] == ["", ""]
        await page.locator("#c2 summary").click()
        for n in (2, 3):
            await again(me)
            await expect(page.locator("#c2 .pager")).to_contain_text(f"answer {n} of {n}")
            assert [await one.get_attribute("open") for one in await details.all()] == ["", None]
            await page.locator("#c2 summary").focus()
        await expect(page.locator("#c2 summary")).to_be_focused()


async def test_a_patch_that_brings_nothing_new_changes_nothing(chromium: Browser, tmp_path: Path) -> None:
    """Check 8: 0 mutations for an identical patch, also where something was opened."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await me.ask("Is it?")
        page = await context.new_page()
        await live(page, address("Is it?"))
        await page.locator("#c1 summary").click()
        await page.evaluate(COUNT_CHANGES)
        html = await page.evaluate("fetch(location.href).then((r) => r.text())")
        html = html.replace("asked <b>2 times</b>", "asked <b>1 time</b>")  # by now it may count that it is looked at
        part = html[html.index('<div id="view"') : html.index("</main>")].strip()
        await page.evaluate("(html) => import('/static/page.js').then((page) => page.patch(html))", part)
        assert await page.evaluate("changes") == 0
        fewer = part.replace("asked <b>1 time</b>", "asked <b>2 times</b>")
        assert fewer != part
        await page.evaluate("(html) => import('/static/page.js').then((page) => page.patch(html))", fewer)
        assert await page.evaluate("changes") == 1


async def test_rows_come_in_on_top_one_change_each_and_not_while_somebody_is_in_the_list(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 8: one row makes at most 2 mutations (the row, and the class that makes it new is on it already)."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await me.ask("Is it old?")
        page = await context.new_page()
        await live(page, "/")
        rows = page.locator("#lately-list .qq")
        await page.evaluate(COUNT_CHANGES)
        await me.ask("Is it new?")
        await expect(rows).to_have_text(["Is it new?", "Is it old?"])
        assert await page.evaluate("changes") <= 2
        await rows.last.hover()
        await me.ask("Is it newer?")
        await me.ask("Is it newest?")
        await me.ask("Is it newest?")
        offer = page.get_by_role("link", name="2 new, show")
        await expect(offer).to_be_visible()
        await expect(rows).to_have_count(2)
        await offer.click()
        await expect(rows).to_have_text(["Is it newest?", "Is it newer?", "Is it new?", "Is it old?"])
        await expect(page.locator("#lately-new")).to_be_hidden()
        await page.mouse.move(0, 0)
        await me.ask("Is it old?")
        await expect(rows).to_have_text(["Is it old?", "Is it newest?", "Is it newer?", "Is it new?"])


async def test_a_server_that_dies_is_missed_after_two_seconds_and_found_again_with_what_was_missed(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 12, and B73."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with visitor(store, model) as me:
            await me.ask("Is it?")
        async with process(store, model.url) as first, browsing(chromium, first.url, quiet=False) as context:
            page = await context.new_page()
            await page.clock.install()
            socket = await live(page, address("Is it?"))
            await page.get_by_label("Ask another question").fill("not sent yet")
            await page.clock.pause_at(await page.evaluate("Date.now() + 1000"))
            async with socket.expect_event("close"):
                await first.kill()
            await after_a_task(page)
            await page.clock.run_for(1950)
            await expect(page.locator("#online")).to_have_text("1 page open")
            await page.clock.run_for(1000)
            await expect(page.locator("#online")).to_have_text("not live")
            async with process(store, model.url, ASKONCE_PORT=str(first.port)) as second:
                headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
                name = (await page.locator("#c2 code").text_content() or "").partition(":")[0]
                sent = {"q": "Is it?", "again": name}
                async with second.http.post(second.url + "/ask", data=sent, headers=headers) as response:
                    assert response.status == 200
                await page.clock.resume()
                await expect(page.locator("#online")).to_have_text("1 page open", timeout=30_000)
                await expect(page.locator("#c2 .pager")).to_contain_text("answer 2 of 2")
                await expect(page.get_by_label("Ask another question")).to_have_value("not sent yet")


async def after_a_task(page: Page) -> None:
    """Let the page do what it was just told."""
    await page.evaluate(
        "new Promise((done) => { const c = new MessageChannel(); c.port1.onmessage = done; c.port2.postMessage(0); })"
    )


def until_online(came: list[str], frame: str | bytes) -> bool:
    """Note what came; is it the number of pages?"""
    came.append(json.loads(frame)["type"])
    return came[-1] == "Online"


async def test_a_connection_that_flaps_is_not_seen(chromium: Browser, tmp_path: Path) -> None:
    """Check 14, and B73: what is shown is so, and nothing is read or pushed again."""
    async with wire() as between, visitor(tmp_path / "a.db", public_url=between.url) as me:
        between.lead(me.here.url)
        await me.ask("Is it?")
        async with browsing(chromium, between.url, quiet=False) as context:
            page = await context.new_page()
            for path in (address("Is it?"), "/"):
                await live(page, path)
                reads = between.requests
                came: list[str] = []
                await page.evaluate(COUNT_CHANGES)
                await page.evaluate(HEAR_ONLINE)
                async with page.expect_websocket() as opening:
                    between.cut()
                back = await opening.value
                await back.wait_for_event("framereceived", partial(until_online, came))
                await expect(page.locator("#online")).to_have_text("1 page open")
                assert await page.evaluate("changes") == 0
                assert set(await page.evaluate("said")) <= {"1 page open"}
                assert between.requests == reads
                assert set(came) == {"Build", "Online"}


async def test_a_front_page_that_missed_rows_reads_itself_again_when_it_is_back(
    chromium: Browser, tmp_path: Path
) -> None:
    """B73."""
    async with wire() as between, visitor(tmp_path / "a.db", public_url=between.url) as me:
        between.lead(me.here.url)
        await me.ask("Is it?")
        async with browsing(chromium, between.url, quiet=False) as context:
            page = await context.new_page()
            socket = await live(page, "/")
            between.lead(None)
            async with socket.expect_event("close"):
                between.cut()
            for n in range(5):
                await me.ask(f"Is it {n}?")
            between.lead(me.here.url)
            await expect(page.locator("#lately-list .qq").first).to_have_text("Is it 4?")
            await expect(page.locator("#lately-list .qq")).to_have_count(6)


@pytest.mark.parametrize("typing", [False, True])
async def test_a_new_build_is_loaded_when_nothing_is_lost_by_it_and_offered_otherwise(
    chromium: Browser, tmp_path: Path, typing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check 13."""
    async with wire() as between, browsing(chromium, between.url, quiet=False) as context:
        page = await context.new_page()
        await page.clock.install()
        async with visitor(tmp_path / "a.db", public_url=between.url) as me:
            between.lead(me.here.url)
            await me.ask("Is it?")
            socket = await live(page, address("Is it?"))
            await page.evaluate("globalThis.loaded = 'once'")
            between.lead(None)
            async with socket.expect_event("close"):
                between.cut()
        monkeypatch.setattr("web.live.BUILD", "0fbefore")
        async with visitor(tmp_path / "a.db", public_url=between.url) as me:
            await page.clock.fast_forward(61_000)
            if typing:
                await page.get_by_label("Ask another question").fill("not sent yet")
            between.lead(me.here.url)
            if typing:
                await expect(page.locator(".toast")).to_contain_text("A new build is running.")
                await page.locator(".toast").hover()
                await page.get_by_role("button", name="Reload").focus()
                await page.mouse.move(0, 0)
                await page.clock.fast_forward(120_000)
                await expect(page.get_by_role("button", name="Reload")).to_be_focused()
                await expect(page.get_by_label("Ask another question")).to_have_value("not sent yet")
                assert await page.evaluate("globalThis.loaded") == "once"
                return
            async with page.expect_event("load"):
                pass
            assert await page.evaluate("globalThis.loaded") is None


async def test_the_number_of_open_pages_is_told_on_each_and_goes_down_again(chromium: Browser, tmp_path: Path) -> None:
    """Check 15."""
    async with visitor(tmp_path / "a.db") as me, tab(chromium, me.here.url) as one:
        async with tab(chromium, me.here.url, "/build") as two:
            for page in (one, two):
                await expect(page.locator("#online")).to_have_text("2 pages open")
        await expect(one.locator("#online")).to_have_text("1 page open", timeout=2000)
