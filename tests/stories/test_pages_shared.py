"""What a shared link looks like elsewhere: its title, its text and its picture. None of it sends.

Check 24 of the page, and B63: what was typed parses back as exactly that.
"""

import asyncio
import sqlite3
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image

from archive.answer import Answer, Detail
from archive.errors import Erased
from archive.messages import Show
from tests.fakes import upstream
from tests.pages import Jev, Page, Visitor, address, visitor
from web import card
from web.card import Card, draw

PUBLIC = "https://ask.example.org"
SITE = {
    "og:title": "Ask once",
    "og:description": "Ask a question, see how likely the answer is, and every call behind it.",
    "og:image:alt": "Ask once, over a scale of a hundred strokes from no to yes.",
}
FOREVER = "public, max-age=31536000, immutable"


def tags(page: Page) -> dict[str, str]:
    """The og: and twitter: tags, each of them once, within what unfurlers read."""
    head = page.html.one("head")
    assert page.body.index(b"</head>") < 32 * 1024
    pairs = [(meta.attributes.get("property") or meta.attributes.get("name", ""), meta) for meta in head.all("meta")]
    found = [(name, meta["content"]) for name, meta in pairs if name.startswith(("og:", "twitter:"))]
    assert len(dict(found)) == len(found)
    return dict(found)


def hidden(page: Page) -> bool:
    return bool(page.html.all("meta", name="robots", content="noindex"))


def canonical(page: Page) -> list[str]:
    return [link["href"] for link in page.html.all("link", rel="canonical")]


async def picture(me: Visitor, page: Page) -> Page:
    """The picture a page names, at this server."""
    return await me.get(urlsplit(tags(page)["og:image"]).path)


TYPED = {
    "Is \"a\" > 'b' & </title><script>x</script>?": None,
    '"><meta property="og:title" content="evil">': None,
    'x" onmouseover="alert(1)': None,
    "{{ 7 * 7 }} {% raw %} &amp; &lt; &#60;": None,
    "😀👨‍👩‍👧 هل? e\u0301": None,
    "two\n\tlines   and spaces": "two lines and spaces",
    "\u202eright to left\u2066 \u200f?": "right to left ?",
    "a\u2028b\u2029c\ufeff\U000e0041": "a b c",
    "a" * 500: "a" * 88 + "…",
    "👨‍👩‍👧" * 100: "👨‍👩‍👧" * 17 + "…",
    "e\u0301" * 250: "e\u0301" * 44 + "…",
    "🇫🇷" * 250: "🇫🇷" * 44 + "…",
}
"""What is typed, and what of it stands in the title (None: all of it)."""


@pytest.mark.parametrize("words", TYPED, ids=lambda words: ascii(words)[:20])
async def test_the_tags_say_what_was_typed_and_nothing_else(tmp_path: Path, words: str) -> None:
    async with visitor(tmp_path / "a.db", public_url=PUBLIC) as me:
        page, plain = await me.ask(words), await me.ask("Is it?")
        image = await picture(me, page)
    found = tags(page)
    assert found["og:title"] == f"Probably yes (0.83): {TYPED[words] or words}"
    assert len(found["og:title"]) <= 110
    assert len(found["og:description"]) <= 200
    assert found["og:description"] == "Probably yes, 0.83. See each call behind it."
    assert page.html.one("head").shape() == plain.html.one("head").shape()
    assert parse_qs(urlsplit(found["og:url"]).query)["q"] == [words]
    assert canonical(page) == [found["og:url"]]
    assert image.status == 200
    for name in ("title", "description", "image", "image:alt"):
        assert found[f"twitter:{name}"] == found[f"og:{name}"]


async def test_the_tags_of_an_answered_question_are_whole_and_absolute(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", public_url=PUBLIC) as me:
        page = await me.ask("Is it?")
    name = page.names[-1].replace(":", "/")
    assert tags(page) == {
        "og:site_name": "Ask once",
        "og:type": "website",
        "og:url": f"{PUBLIC}/?q=Is+it%3F",
        "og:title": "Probably yes (0.83): Is it?",
        "og:description": "Probably yes, 0.83. See each call behind it.",
        "og:image": f"{PUBLIC}/card/{name}.png",
        "og:image:type": "image/png",
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": "Probably yes: 0.83 on a scale of a hundred strokes from no to yes.",
        "twitter:card": "summary_large_image",
        "twitter:title": "Probably yes (0.83): Is it?",
        "twitter:description": "Probably yes, 0.83. See each call behind it.",
        "twitter:image": f"{PUBLIC}/card/{name}.png",
        "twitter:image:alt": "Probably yes: 0.83 on a scale of a hundred strokes from no to yes.",
    }
    assert not hidden(page)


async def test_addresses_are_those_the_visitor_came_by_where_the_owner_named_none(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        port = me.here.url.rpartition(":")[2]
        await me.ask("Is it?")
        for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}", "localhost", "[::1]:99"):
            page = await me.get(address("Is it?"), Host=host)
            here = f"http://{host.lower()}"
            assert canonical(page) == [f"{here}/?q=Is+it%3F"]
            assert tags(page)["og:image"].startswith(f"{here}/card/")
        for host in ('localhost:1"><script>', "localhost:x", "evil.example", "localhost:²"):
            page = await me.get(address("Is it?"), Host=host)
            assert tags(page)["og:image"].startswith("/card"), "no name is better than somebody else's"
            assert host not in page.body.decode()


async def test_every_kind_of_answer_has_its_card(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        for kind, words, title, alt in (
            ("yes_no", "Is it?", "Probably yes (0.83): Is it?", "on a scale of a hundred strokes"),
            (
                "which",
                "Tea, coffee or water?",
                "Tea (0.70): Tea, coffee or water?",
                "Tea, 0.70: one bar cut into 3 parts",
            ),
            ("how_much", "How warm is it?", "somewhat (2.40): How warm is it?", "one bar cut into 5 parts"),
        ):
            me.jev.kind = kind
            page = await me.ask(words)
            image = await picture(me, page)
            assert tags(page)["og:title"] == title
            assert alt in tags(page)["og:image:alt"]
            assert (image.status, image.headers["Content-Type"]) == (200, "image/png")
            assert image.headers["Cache-Control"] == FOREVER
            assert image.headers["X-Content-Type-Options"] == "nosniff"
            assert len(image.body) < 60_000
            with Image.open(BytesIO(image.body)) as opened:
                opened.load()
                assert (opened.format, opened.size) == ("PNG", (1200, 630))


async def test_a_card_shows_the_question_and_the_very_version_its_address_names(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(counting=True, noul=0.1)) as me:
        page = await me.ask("Is it?")
        again = await me.press(page.calls[1].one("form"))
        pinned = await me.get(page.html.one("a", class_="btn", data_step="")["href"])
        cards = [await picture(me, one) for one in (page, again, pinned)]
        assert me.sent == 3
    drawn = [
        draw(Card("Is it?", Answer("Probably no", abs(p - 0.5) * 2, Detail("noul", p)))) for p in (0.11, 0.12, 0.11)
    ]
    assert [card.body for card in cards] == drawn
    assert tags(pinned)["og:title"] == "Probably no (0.11): Is it?"
    assert "&pins=" in tags(pinned)["og:url"], "what is unfurled is what is shown"
    assert canonical(pinned) == canonical(page)


def assert_only_the_site(page: Page) -> None:
    found = tags(page)
    assert {name: found[name] for name in SITE} == SITE
    assert found["og:image"].endswith("/card.png")
    assert hidden(page)


async def test_a_question_that_is_not_listed_has_the_sites_card_in_every_state(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        pages = [await me.look("Is it unasked?"), await me.ask("Is a@b.example ill?")]
        pages.append(await me.ask("Which is best?", option=["Anna", "Ben"]))
        pages.append(await me.look("Is it?", pins=pages[1].names[0]))
        me.jev.fit = 0.1
        pages.append(await me.ask("Is it unfit?"))
        me.jev.kind = "open"
        pages.append(await me.ask("Why is it?"))
        me.model.status = 400
        pages.append(await me.ask("Is it refused?"))
        me.model.status, me.model.gate = 200, asyncio.Event()
        await me.post("Is it waiting?")
        pages.append(await me.look("Is it waiting?"))
        site = await me.get("/card.png")
        name = pages[1].names[1].replace(":", "/")
        direct = await me.get(f"/card/{name}.png")
    for page in pages:
        assert_only_the_site(page)
    assert direct.status == 200
    assert direct.body == site.body
    assert direct.headers["Cache-Control"] == "no-store", "it may be listed later"
    assert site.headers["Cache-Control"] == "public, max-age=86400"


async def test_a_listed_question_that_is_not_listed_any_more_loses_its_card(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
        before = await picture(me, page)
        me.jev.fit = 0.1
        unfit = await me.press(page.calls[0].one("form"))
        after = await picture(me, page)
        site = await me.get("/card.png")
    assert_only_the_site(unfit)
    assert after.body == site.body != before.body


async def test_a_call_over_the_api_with_the_same_words_gets_no_card_of_the_question(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        said = await me.here.ask(
            b'{"model":"m","state":"Is it?","questions":{"answer":{"type":"noul","instructions":"Not?","criteria":{}}}}'
        )
        forged = await me.get(f"/card/{said.headers['Archive-Call']}/1.png")
        first = await me.get(f"/card/{said.headers['Archive-Call']}/2.png")
        site = await me.get("/card.png")
    assert forged.body == site.body
    assert first.status == 404


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Card]:
    """The cards that are drawn from now on."""
    drawn: list[Card] = []

    def watch(card: Card) -> bytes:
        drawn.append(card)
        return draw(card)

    monkeypatch.setattr(card, "draw", watch)
    return drawn


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/card/0123456789ab/1.png", 404),
        ("/card/x/1.png", 404),
        ("/card/{name}/0.png", 404),
        ("/card/{name}/2.png", 404),
        ("/card/{name}/01.png", 404),
        ("/card/{name}/x.png", 404),
        ("/card/{name}/1", 404),
        ("/card/{name}/1.png", 200),
        ("/card.png?q=x", 200),
    ],
)
async def test_nothing_is_drawn_or_sent_for_what_is_not_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, status: int
) -> None:
    drawn = watched(monkeypatch)
    async with visitor(tmp_path / "a.db") as me:
        name = (await me.ask("Is it?")).names[1].partition(":")[0]
        said = [await me.request(method, path.replace("{name}", name)) for method in ("GET", "HEAD", "GET")]
        assert me.sent == 2
    assert [one.status for one in said] == [status] * 3
    assert len(drawn) == (1 if status == 200 else 0)
    assert all("immutable" not in one.headers.get("Cache-Control", "") for one in said if status != 200)


async def test_twenty_who_want_a_new_card_at_once_have_it_drawn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = watched(monkeypatch)
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
        images = await asyncio.gather(*(picture(me, page) for _ in range(20)))
        assert me.sent == 2
    assert len(drawn) == 1
    assert {(image.status, image.body) for image in images} == {(200, draw(drawn[0]))}


GONE = {
    "the words of the request": ("UPDATE text SET {gone} WHERE id = (SELECT state FROM request ORDER BY id DESC)", 410),
    "the reply": ("UPDATE text SET {gone} WHERE id = (SELECT reply FROM outcome ORDER BY id DESC)", 410),
    "the question": ("UPDATE text SET {gone} WHERE id = (SELECT words FROM question)", 200),
    "the answer, withdrawn": (
        "INSERT INTO withdrawal (id, answer, withdrawn, at, chain) SELECT 1, max(id), 1, 0, x'' FROM answer", 410,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GONE)
async def test_what_was_erased_or_withdrawn_is_on_no_card(tmp_path: Path, what: str) -> None:
    sql, status = GONE[what]
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with visitor(store, model) as me:
            page = await me.ask("Is it?")
            before = await picture(me, page)
        with closing(sqlite3.connect(store)) as db, db:
            db.execute(sql.format(gone="bytes = NULL, salt = NULL, emptied_at = 1"))
        async with visitor(store, model) as me:
            after = await picture(me, page)
            site = await me.get("/card.png")
            assert me.sent == 2
    assert (before.status, after.status) == (200, status)
    assert after.body != before.body
    assert status != 200 or after.body == site.body


async def test_a_card_that_is_still_held_is_shown_only_while_the_record_has_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
        held = await picture(me, page)
        send = me.here.door.send

        async def without(message: Any) -> Any:
            if isinstance(message, Show):
                raise Erased("The words of this request were erased.")
            return await send(message)

        monkeypatch.setattr(me.here.door, "send", without)
        gone = await picture(me, page)
    assert (held.status, gone.status) == (200, 410)
    assert gone.headers["Cache-Control"] == "no-store"


async def test_head_answers_like_get(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
        me.now = page_time = 1_800_000_000_000_000
        paths = ["/", address("Is it?"), address("Is it unasked?"), "/?q=%FF", "/card.png", "/robots.txt"]
        paths += [urlsplit(tags(page)["og:image"]).path, "/sitemap.xml", "/card/0123456789ab/1.png"]
        for path in paths:
            got, head = await me.get(path), await me.request("HEAD", path)
            assert (head.status, head.body) == (got.status, b"")
            assert {**head.headers, "Date": ""} == {**got.headers, "Date": ""}
            assert int(got.headers["Content-Length"]) == len(got.body) > 0
        assert me.now == page_time
        assert me.sent == 2


async def test_the_front_page_says_what_it_is_and_pages_with_an_error_are_found_nowhere(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", public_url=PUBLIC) as me:
        front, refused, typed = await me.get(), await me.get("/?q=%FF"), await me.post("x" * 501)
        foreign = await me.get("/", Host="evil.example")
    assert {name: tags(front)[name] for name in SITE} == SITE
    assert tags(front)["og:image"] == f"{PUBLIC}/card.png"
    assert canonical(front) == [tags(front)["og:url"]] == [f"{PUBLIC}/"]
    assert not hidden(front)
    for page in (refused, typed, foreign):
        assert_only_the_site(page)
        assert canonical(page) == []
        assert "og:url" not in tags(page)
