"""Twenty-five payloads in a real browser, wherever they can stand: none of them runs. C-34."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tabs import browsing, fits, live
from tests.pages import address, visitor
from tests.stories.test_pages_hostile import HOSTILE

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAYLOADS = [" ".join(one.replace("alert(1)", "hacked=1").split()) for one in HOSTILE[:25]]

FOREIGN = """
<form method=post action="{url}/ask" enctype="{kind}"><input name=q value="Is it?"></form>
"""


async def test_none_of_twenty_five_payloads_runs_wherever_it_stands(chromium: Browser, tmp_path: Path) -> None:
    """Check 25, C-34, B62: as question, option, model's name, key of the reply, pin, and what was refused."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, quiet=False) as context:
        alarms: list[str] = []
        asked: list[str] = []
        context.on("dialog", lambda dialog: alarms.append(dialog.message))
        context.on("request", lambda request: asked.append(request.url))
        trouble: list[str] = []
        context.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
        home, page = await context.new_page(), await context.new_page()
        await live(home, "/")
        for payload in PAYLOADS:
            me.jev.model, me.jev.more = payload, {payload: payload}
            options = [payload[:100], "b"]
            await me.post(payload)
            await me.post(payload, option=options)
            await me.settled()
            for path in (address(payload, payload, option=options), address(payload + "x" * 500)):
                await page.goto(path)
                assert await page.evaluate("globalThis.hacked") is None, payload
                assert await fits(page), payload
        await expect(home.locator("#lately-list .qq").first).to_be_visible()
        await home.reload()
        for one in (home, page):
            assert await one.evaluate("globalThis.hacked") is None
        await expect(home.locator("#lately-list .qq")).to_have_text(PAYLOADS[::-1])
        assert not alarms
        assert {url for url in asked if not url.startswith(me.here.url)} == set()
        refused = [one for one in trouble if "status of 4" not in one]
        assert not refused, "no script was even tried, so the policy had nothing to report"


OPENS = """
(url) => new Promise((done) => {
  const socket = new WebSocket(url);
  socket.onopen = () => done("open");
  socket.onerror = () => done("refused");
})
"""


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
async def test_a_form_of_another_site_asks_nothing_and_its_socket_is_refused(
    chromium: Browser, tmp_path: Path, kind: str
) -> None:
    """C-34, B77: the browser says where it comes from, and that is not here."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, quiet=False) as context:
        page = await context.new_page()
        form = FOREIGN.format(url=me.here.url, kind=kind)
        await page.route(
            "http://evil.example/", lambda route: route.fulfill(body=form, content_type="text/html; charset=utf-8")
        )
        await page.goto("http://evil.example/")
        assert await page.evaluate(OPENS, me.here.url.replace("http", "ws") + "/live") == "refused"
        async with asyncio.timeout(10):
            async with page.expect_response(f"{me.here.url}/ask") as said:
                await page.evaluate("document.forms[0].submit()")
            assert (await said.value).status == 403
        await me.settled()
        assert me.sent == 0
