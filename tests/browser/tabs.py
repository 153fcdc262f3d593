"""A page in the browser as a visitor has it, and what must be so of every page: no error, no report of the policy."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, WebSocket, expect

WATCH = """
addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`));
"""
"""Runs before the page's own script, whatever the policy says."""

expect.set_options(timeout=10_000)


@asynccontextmanager
async def browsing(
    chromium: Browser, url: str, *, quiet: bool = True, width: int = 1280, **options: Any
) -> AsyncGenerator[BrowserContext, None]:
    """A new visitor's browser; at the end it must have had nothing to complain of, unless not `quiet`."""
    options = {"viewport": {"width": width, "height": 900}} | options
    context = await chromium.new_context(base_url=url, **options)
    context.set_default_timeout(10_000)
    await context.add_init_script(WATCH)
    trouble: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            trouble.append(message.text)

    context.on("console", hear)
    context.on("weberror", lambda error: trouble.append(str(error.error)))
    try:
        yield context
    finally:
        await context.close()
    assert not quiet or not trouble, trouble


@asynccontextmanager
async def tab(chromium: Browser, url: str, path: str = "/", **options: Any) -> AsyncGenerator[Page, None]:
    """One page of a new visitor, at `path`; see `browsing`."""
    async with browsing(chromium, url, **options) as context:
        page = await context.new_page()
        await page.goto(path)
        yield page


async def live(page: Page, path: str) -> WebSocket:
    """Go to `path`, and wait until the page is kept up to date; its socket."""
    async with page.expect_websocket() as opening:
        await page.goto(path)
    socket = await opening.value
    await expect(page.locator("#online")).to_contain_text("open")
    return socket


async def fits(page: Page) -> bool:
    """Is nothing wider than the window?"""
    return await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


async def ids_of_focus(page: Page) -> str:
    """What has the focus: its id, or its tag and text."""
    return await page.evaluate(
        "(({id, tagName, ariaLabel, textContent}) => id || `${tagName} ${ariaLabel ?? textContent.trim()}`)"
        "(document.activeElement)"
    )
