"""The front page's two lists and its counters: every question is met once, and no number is made up."""

from pathlib import Path
from urllib.parse import quote

import pytest

from archive.answer import stored
from archive.messages import Conclusion, Count, Noted, Question
from tests.fakes import FakeClock
from tests.html import Element
from tests.pages import Jev, Page, Visitor, address, visitor

YES = Conclusion("yes_no", stored("Yes"))
LISTS = pytest.mark.parametrize("name", ["lately", "most"])


async def note(me: Visitor, words: str, times: int = 1) -> None:
    """A question was asked, answered and listed."""
    await me.here.door.send(Noted(Question(words), times, 1, (), YES, True))


async def fill(me: Visitor, count: int) -> list[str]:
    """So many questions asked once each; the words, newest first."""
    for n in range(count):
        await note(me, f"Is it {n}?")
    return [f"Is it {n}?" for n in reversed(range(count))]


def rows(page: Page, name: str) -> list[Element]:
    return page.html.one("ol", id=f"{name}-list").all("li")


def words(page: Page, name: str) -> list[str]:
    return [row.one("span", class_="qq").text for row in rows(page, name)]


def more(page: Page, name: str) -> str | None:
    """Where "The next 50" leads, if it is there."""
    found = page.html.all("a", id=f"{name}-next")
    assert [link.text for link in found] == ["The next 50"] * len(found)
    return found[0]["href"] if found else None


def so_far(page: Page) -> str:
    return page.html.one("section", id="sofar").one("p", class_="t").text.strip()


async def test_two_lists_stand_side_by_side_and_each_goes_on_by_fifty_on_a_page_of_its_own(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        newest = await fill(me, 120)
        for n in range(60):
            await note(me, f"Is it {n}?", 1 + n)
        asked = [f"Is it {n}?" for n in reversed(range(60))]
        front = await me.get()
        lately, most = more(front, "lately"), more(front, "most")
        assert lately is not None and most is not None
        second = {"lately": await me.get(lately), "most": await me.get(most)}
        assert me.sent == 0
    assert (words(front, "lately"), words(front, "most")) == (asked[:50], asked[:50])
    assert words(second["lately"], "lately") == [*asked[50:], *newest[:40]]
    assert words(second["most"], "most") == [*asked[50:], *newest[:40]]
    for name, page in second.items():
        assert page.status == 200
        assert [found["id"] for found in page.html.all("ol")] == [f"{name}-list"]
        assert page.html.one("h2", id=name).one("a").attributes["href"] == f"/#{name}"
        assert page.html.all("meta", name="robots", content="noindex")
        assert page.html.one("textarea", id="q").text == ""
    assert rows(front, "most")[0].one("span", class_="ct").spaced == "asked 61 times 61\N{MULTIPLICATION SIGN}"


@LISTS
async def test_who_follows_the_link_to_the_end_meets_everything_once_while_more_is_asked(
    tmp_path: Path, clock: FakeClock, name: str
) -> None:
    """All of it at one moment and equally often (B78, B79), with new ones between the pages (B80)."""
    async with visitor(tmp_path / "a.db") as me:
        there = await fill(me, 130)
        page = await me.get()
        met = words(page, name)
        while (link := more(page, name)) is not None:
            for n in range(3):
                await note(me, f"New {len(met)} {n}?")
            await note(me, met[7])
            page = await me.get(link)
            met += words(page, name)
        front = await me.get()
    assert met == there
    assert {f"New 100 {n}?" for n in range(3)} <= set(words(front, name))


async def test_a_row_leads_to_its_question_and_looking_at_it_sends_nothing(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it & <b>?")
        sent = me.sent
        front = await me.get()
        links = {rows(front, name)[0].one("a")["href"] for name in ("lately", "most")}
        page = await me.get(links.pop())
        again = await me.get()
        assert me.sent == sent
    assert not links, "both lists lead to the same page"
    assert page.html.one("h1").text == "Is it & <b>?"
    assert page.words == "Probably yes"
    assert so_far(again) == so_far(front), "and looking counts for nothing"


async def test_a_row_says_when_in_utc_and_nothing_of_who(tmp_path: Path, clock: FakeClock) -> None:
    """B29: a moment is named with its zone, and is the same for every reader."""
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        me.now = clock.now() + 3 * 3_600_000_000
        front = await me.get()
    (row,) = rows(front, "lately")
    time = row.one("time")
    assert time.attributes == {"datetime": "2026-05-28T20:26:40.000000Z", "title": "28 May 2026, 20:26:40 UTC"}
    assert row.spaced == "Is it? Probably yes 0.83 3 h"
    assert "127.0.0.1" not in "".join(piece for piece in front.html.one("main").pieces)


STRANGE = ["]", '"', "`", "text] UNION SELECT bytes FROM text --", "1-1; DROP TABLE question", "1", "-1-1", "9" * 30]


@pytest.mark.parametrize("text", STRANGE)
async def test_a_strange_cursor_list_or_sort_is_a_400_without_a_word_of_sql(tmp_path: Path, text: str) -> None:
    """B58."""
    async with visitor(tmp_path / "a.db") as me:
        await fill(me, 1)
        typed = quote(text, safe="")
        paths = [f"/?lately={typed}", f"/?most={typed}", f"/?sort={typed}", "/?lately=1-1&most=1-1"]
        paths += [] if text.strip("-0123456789") == "" else [f"/?{typed}=1-1"]
        pages = [await me.get(path) for path in paths]
        front = await me.get("/?utm_source=somewhere")
    assert [page.status for page in pages] == [400] * len(paths)
    for page in pages:
        assert page.html.one("h1").text == "That did not work"
        assert text not in page.main
        assert not any(word in page.main.lower() for word in ("sql", "syntax", "select", "table", "column"))
        assert page.html.one("main").one("a")["href"] == "/"
    assert (front.status, words(front, "lately")) == (200, ["Is it 0?"])


async def test_a_cursor_past_the_end_is_an_empty_page_that_says_so(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await fill(me, 2)
        page = await me.get("/?most=0-0")
    assert (page.status, words(page, "most"), more(page, "most")) == (200, [], None)
    assert "The list ends here." in page.main


async def test_the_counters_say_what_was_sent_and_what_was_not(tmp_path: Path) -> None:
    """Two calls of $0.00006 for a new question; asked again, the same two are answered from the record."""
    async with visitor(tmp_path / "a.db") as me:
        empty = await me.get()
        await me.ask("Is it?")
        first = await me.get()
        await me.ask("Is it?")
        await me.here.door.send(Count())
        second = await me.get()
    assert not empty.html.all("section", id="sofar"), "nothing has been, so nothing is said"
    alone = "The decision model answered it alone, without a language model."
    assert so_far(first) == f"1 question has been asked 1 time. {alone} 2 calls were sent, for $0.00012."
    assert so_far(second) == (
        f"1 question has been asked 2 times. {alone} 2 calls were sent, for $0.00012."
        " Another 2 were answered without being sent, which saved $0.00012."
    )


async def test_a_question_that_is_not_listed_counts_and_stands_nowhere(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(fit=0.1)) as me:
        await me.ask("Is it unfit?")
        front = await me.get()
    assert so_far(front).startswith("1 question has been asked 1 time.")
    assert "unfit" not in front.main
    assert "No question is listed here yet." in front.main


async def test_a_price_that_is_not_known_is_not_told_as_none(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(more={"usage": {"input_tokens": 131}})) as me:
        await me.ask("Is it?")
        unknown = await me.get()
        me.jev.more = {}
        await me.ask("Is it not?")
        some = await me.get()
    assert so_far(unknown).endswith("2 calls were sent; their prices are unknown.")
    assert so_far(some).endswith("4 calls were sent, for at least $0.00012; the prices of 2 are unknown.")


async def test_the_counters_are_the_same_after_a_restart(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        await me.ask("Is it?")
        await me.here.door.send(Count())
        before = await me.get()
    async with visitor(tmp_path / "a.db") as me:
        after = await me.get()
        page = await me.get(address("Is it?"))
        assert me.sent == 0
    assert so_far(after) == so_far(before)
    assert page.words == "Probably yes"
