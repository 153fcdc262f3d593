"""The copy links give exactly the stored bytes, or say why not."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.tabs import browsing
from tests.pages import address, visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def opened(page: Page, number: int) -> Locator:
    """A call's article, with its bytes to be seen."""
    call = page.locator(f"#c{number}")
    if not await call.locator("pre").first.is_visible():
        await call.locator("summary").click()
    return call


async def test_copy_gives_the_stored_bytes_and_not_the_laid_out_text(chromium: Browser, tmp_path: Path) -> None:
    """Check 25, by the clipboard: request and reply, spaces, escapes, emoji and a right-to-left override included."""
    words = 'Is it "<b>\u202eא😀</b>", {or}: [not]?'
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        await me.ask(words)
        page = await context.new_page()
        await page.goto(address(words))
        toast = page.locator("#status .toast")
        replies = [me.jev.reply(got.body) for got in me.model.got[:2]]
        for number, got in enumerate(me.model.got[:2], start=1):
            call = await opened(page, number)
            stored = [got.body, replies[number - 1]]
            links = await call.get_by_text("copy", exact=True).all()
            for link, held in zip(links, stored, strict=True):
                await link.click()
                await expect(toast).to_have_text(f"Copied, {len(held)} bytes.")
                assert await page.evaluate("navigator.clipboard.readText()") == held.decode()
                await page.keyboard.press("Escape")
            laid_out = await call.locator("pre").first.text_content()
            assert json.loads(laid_out or "") == json.loads(got.body)


async def test_bytes_that_are_no_text_are_not_copied_and_it_is_said(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        reply = me.jev.reply

        def broken(body: bytes) -> bytes:
            return reply(body).replace(b'"usage"', b'"x": "\xff", "usage"')

        monkeypatch.setattr(me.jev, "reply", broken)
        await me.ask("Is it?")
        page = await context.new_page()
        await page.goto(address("Is it?"))
        await page.evaluate("navigator.clipboard.writeText('before')")
        call = await opened(page, 1)
        await expect(call.locator(".odd")).to_contain_text("Not text in UTF-8")
        await call.get_by_text("copy", exact=True).last.click()
        await expect(page.locator("#status .toast")).to_contain_text("These bytes are not text in UTF-8")
        assert await page.evaluate("navigator.clipboard.readText()") == "before"


async def test_without_scripts_there_is_raw_and_nothing_that_does_not_work(chromium: Browser, tmp_path: Path) -> None:
    options: dict[str, Any] = {"java_script_enabled": False}
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, **options) as context:
        await me.ask("Is it?")
        page = await context.new_page()
        await page.goto(address("Is it?"))
        call = await opened(page, 1)
        await expect(call.get_by_text("raw", exact=True).first).to_be_visible()
        await expect(call.locator(".copy").first).to_be_hidden()
