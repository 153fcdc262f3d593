"""What the pages weigh: bytes as they go over the wire, headers apart. These are sizes, not times."""

import random
import re
from pathlib import Path

from aiohttp import hdrs

from archive.answer import read
from archive.messages import Conclusion, Noted, Question
from tests.html import Element
from tests.pages import Page, Visitor, visitor

WIRE_BYTES_MAX = 70_000

CSS = "/static/site.css"


async def fetched(me: Visitor, path: str) -> Page:
    return await me.get(path, Accept_Encoding="gzip")


async def everything(me: Visitor, page: Page, shown: Element) -> dict[str, int]:
    """Bytes by address of all that a browser asks for to show a page of Latin text, scripts and their imports too.

    What replaces parts of a page comes with the first change, and is no part of showing it.
    """
    wanted = [link["href"] for link in shown.all("link") if link["rel"] in {"stylesheet", "icon", "preload"}]
    wanted += [script["src"] for script in shown.all("script")]
    weights = {"/": len(page.body)}
    while wanted:
        path = wanted.pop()
        if path not in weights:
            got = await fetched(me, path)
            assert got.status == 200, path
            weights[path] = len(got.body)
            if path.endswith(".js"):
                text = (await me.get(path)).body.decode()
                folder = path.rpartition("/")[0]
                wanted += [f"{folder}/{name}" for name in re.findall(r'^import .*"\./(.+)";$', text, re.MULTILINE)]
    return weights


async def test_home_and_an_answers_page_weigh_less_than_70_kb_with_all_that_belongs_to_them(tmp_path: Path) -> None:
    answer = read({"type": "noul", "noul": 0.83}, None)
    async with visitor(tmp_path / "a.db") as me:
        words_of = random.Random(4)
        vocabulary = ["".join(words_of.choices("etaoinshrdlu", k=words_of.randint(2, 9))) for _ in range(400)]
        for n in range(60):
            words = " ".join(words_of.choices(vocabulary, k=8)) + "?"
            await me.here.door.send(Noted(Question(words), 1 + n % 7, 1, (), Conclusion("yes_no", answer), True))
        me.jev.counting = True
        asked = await me.ask("Is it?")
        for name in asked.names * 2:
            asked = await me.ask("Is it?", again=name.partition(":")[0])
        for path in ("/", "/?q=Is+it%3F"):
            page, shown = await fetched(me, path), (await me.get(path)).html
            assert page.headers[hdrs.CONTENT_ENCODING] == "gzip"
            weights = await everything(me, page, shown)
            assert {CSS, "/static/live.js", "/static/page.js"} <= weights.keys()
            assert sum(name.endswith(".woff2") for name in weights) == 2
            assert sum(weights.values()) < WIRE_BYTES_MAX, weights


async def test_first_paint_needs_one_request_for_html_and_one_for_css(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        for page in (await me.get(), await me.ask("Is it?")):
            assert [link["href"] for link in page.html.all("link", rel="stylesheet")] == [CSS]
            assert all(script["type"] == "module" for script in page.html.all("script")), "which blocks nothing"
            assert page.html.all("img") == []
        sheet = (await me.get(CSS)).body.decode()
    assert "@import" not in sheet
    assert set(re.findall(r"font-display:(\w+)", sheet)) == {"swap"}, "words are shown before their typeface is there"
    assert all(url.startswith("fonts/") for url in re.findall(r"url\((.*?)\)", sheet))
