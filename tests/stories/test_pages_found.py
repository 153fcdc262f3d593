"""What search engines and browsers find beside the pages: robots.txt, the map of the site, its mark."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.html import Element
from tests.pages import Page, address, visitor

PUBLIC = "https://ask.example.org"


async def test_robots_are_told_what_to_read_and_where_the_map_is(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        robots = await me.get("/robots.txt")
        foreign = await me.get("/robots.txt", Host="evil.example")
    lines = robots.body.decode().splitlines()
    assert {"Disallow: /ask", "Disallow: /call/", "Disallow: /v1/", "Allow: /"} < set(lines)
    assert lines[-1] == f"Sitemap: {me.here.url}/sitemap.xml"
    assert robots.headers["Content-Type"].startswith("text/plain")
    assert foreign.status == 403


async def test_the_map_has_the_listed_questions_asked_last_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.pages.SITEMAP_MAX", 2)
    async with visitor(tmp_path / "a.db", public_url=PUBLIC) as me:
        for words in ("Is it first?", 'Is <b> & "c"?', "Is a@b.example ill?", "هل?"):
            await me.ask(words)
        found = await me.get("/sitemap.xml")
        sent = me.sent
        listed = [(await me.get(place.removeprefix(PUBLIC))).status for place in inside(found)]
        assert me.sent == sent
    assert inside(found) == [f"{PUBLIC}/", PUBLIC + address("هل?"), PUBLIC + address('Is <b> & "c"?')]
    assert listed == [200] * 3
    assert found.headers["Content-Type"] == "application/xml; charset=utf-8"


def inside(page: Page) -> list[str]:
    root = ElementTree.fromstring(page.body)  # noqa: S314 - our own
    return [found.text or "" for found in root.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]


async def test_every_page_has_the_sites_mark(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        icons: list[Element] = []
        for page in (await me.get(), await me.look("Is it?"), await me.get("/?q=%FF")):
            icons += page.html.all("link", rel="icon")
        mark = await me.get(icons[0]["href"])
    assert [icon["type"] for icon in icons] == ["image/svg+xml"] * 3
    assert (mark.status, mark.headers["Content-Type"]) == (200, "image/svg+xml")
    assert ElementTree.fromstring(mark.body).tag.endswith("svg")  # noqa: S314 - our own
    assert b"prefers-color-scheme:dark" in mark.body
    assert len(mark.body) < 1_000
