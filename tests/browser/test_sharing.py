"""A shared link as a browser reads its head and its picture."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.states import HOSTILE
from tests.browser.tabs import browsing
from tests.pages import address, visitor
from web import card
from web.card import Card, draw

pytestmark = pytest.mark.asyncio(loop_scope="session")

TAGS = """
() => Object.fromEntries([...document.head.querySelectorAll("meta[property^='og:'], meta[name^='twitter:']")]
  .map((one) => [one.getAttribute("property") ?? one.name, one.content]))
"""

DRAWN = """
async (path) => {
  const image = new Image();
  image.src = path;
  await image.decode();
  return [image.naturalWidth, image.naturalHeight];
}
"""

TITLES = {
    HOSTILE: HOSTILE.replace("\u202e", "").replace("\u202c", "")[:88] + "…",
    "Is \"a\" > 'b' & </title><script>hacked=1</script>?": None,
    '"><meta property="og:title" content="evil">': None,
    "Is \u202egnp.exe\u202c it?": "Is gnp.exe it?",
    "a" * 500: "a" * 88 + "…",
}
"""What is typed, and what of it stands in the title (None: all of it)."""


@pytest.mark.parametrize("words", TITLES, ids=lambda words: ascii(words)[:20])
async def test_the_head_of_a_shared_link_says_what_was_typed_and_its_picture_is_drawn_once(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """Check 24: twenty who want the picture at once are the first who do."""
    drawn: list[Card] = []

    def watch(card: Card) -> bytes:
        drawn.append(card)
        return draw(card)

    monkeypatch.setattr(card, "draw", watch)
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url) as context:
        await me.ask(words)
        page = await context.new_page()
        await page.goto(address(words))
        tags = await page.evaluate(TAGS)
        picture = tags["og:image"]
        assert picture.startswith(f"{me.here.url}/card/")
        responses = await asyncio.gather(*(context.request.get(picture) for _ in range(20)))
        assert [response.status for response in responses] == [200] * 20
        assert len(drawn) == 1
        assert await page.evaluate(DRAWN, picture) == [1200, 630]
        assert len(drawn) == 1
        assert await page.evaluate("globalThis.hacked") is None
        assert me.sent == 2
    assert tags["og:title"] == tags["twitter:title"] == f"Probably yes (0.83): {TITLES[words] or words}"
    assert len(tags["og:title"]) <= 110
    assert len(tags["og:description"]) <= 200
    assert (tags["og:image:width"], tags["og:image:height"]) == ("1200", "630")
    assert tags["twitter:card"] == "summary_large_image"
