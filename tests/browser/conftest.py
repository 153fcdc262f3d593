"""One browser for all tests of this folder: the system's Chromium, driven by Playwright."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def executable() -> str:
    """Where the browser is: CHROMIUM, or the first of the usual names that is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail("The pages are tested in a browser: install Chromium, or name one in CHROMIUM.", pytrace=False)
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncGenerator[Browser, None]:
    """The browser."""
    # What debugging finds in our own code it finds in every other test; here it would make the driver thrice as slow.
    asyncio.get_running_loop().set_debug(False)
    async with async_playwright() as running:
        browser = await running.chromium.launch(executable_path=executable(), args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()
