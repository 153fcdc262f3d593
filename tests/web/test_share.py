"""What search engines and unfurlers are told, as far as it needs no server."""

from xml.etree import ElementTree

import pytest

from archive.answer import Answer, Detail
from archive.messages import Conclusion, Kept, Made, Question, Remembered
from tests.fakes import START
from web.share import pictured, robots, sitemap, words_in

HERE = "https://ask.example.org"

ASKED = b'{"model":"m","state":"Is it?","questions":{"answer":{"type":"noul","instructions":"?"}}}'
REPLIED = b'{"answers":{"answer":{"type":"noul","noul":0.83}}}'
PICTURED = ("Is it?", Answer("Probably yes", 0.66, Detail("noul", 0.83)))


def remembered(words: str = "Is it?", *options: str, listed: bool = True) -> Remembered:
    calls = (Made("What kind of question is it?", 6, 1), Made("The answer", 7, 1))
    conclusion = Conclusion("yes_no", Answer("Probably yes"))
    return Remembered(1, Question(words, options), 1, START, START, 1, calls, conclusion, listed)


def kept(request: int = 7, body: bytes = REPLIED) -> Kept:
    return Kept("0123456789ab", 1, 1, 200, body, "application/json", "", START, 1, request_id=request)


def inside(text: str, tag: str) -> list[str]:
    """What stands in every such element of a map of a site, which is well formed."""
    root = ElementTree.fromstring(text)  # noqa: S314 - our own
    return [found.text or "" for found in root.iter(f"{{http://www.sitemaps.org/schemas/sitemap/0.9}}{tag}")]


def test_the_map_has_the_front_page_and_each_listed_question_with_its_moment() -> None:
    text = sitemap(
        HERE, [remembered("Is <b> & \"c\" > 'd'?"), remembered("Not this", listed=False), remembered("é?", "a", "b")]
    )
    assert inside(text, "loc") == [
        f"{HERE}/",
        f"{HERE}/?q=Is+%3Cb%3E+%26+%22c%22+%3E+%27d%27%3F",
        f"{HERE}/?q=%C3%A9%3F&option=a&option=b",
    ]
    assert inside(text, "lastmod") == ["2026-05-28T20:26:40.000000Z"] * 2


def test_the_map_leaves_out_an_address_longer_than_maps_may_have() -> None:
    room = 2_047 - len(f"{HERE}/?q=")
    fits, over = remembered("a" * room), remembered("b" * (room + 1))
    assert [len(place) for place in inside(sitemap(HERE, [fits, over]), "loc")] == [len(HERE) + 1, 2_047]


def test_robots_may_read_pages_and_nothing_that_asks_or_is_bytes() -> None:
    assert robots(HERE).splitlines() == [
        "User-agent: *", "Disallow: /ask", "Disallow: /call/", "Disallow: /v1/", "Allow: /", "",
        f"Sitemap: {HERE}/sitemap.xml",
    ]  # fmt: skip


def test_an_answer_of_a_listed_questions_own_call_is_pictured() -> None:
    assert pictured(remembered(), ASKED, kept()) == PICTURED


@pytest.mark.parametrize(
    ("question", "asked", "answer"),
    [
        (None, ASKED, kept()),
        (remembered(listed=False), ASKED, kept()),
        (remembered(), ASKED, kept(request=8)),
        (remembered(), ASKED, kept(request=6)),
        (remembered(), ASKED, kept(body=b"nonsense")),
        (remembered(), b"{}", kept()),
    ],
    ids=["not remembered", "not listed", "another call", "the call before it", "no answer", "no question"],
)
def test_nothing_else_is(question: Remembered | None, asked: bytes, answer: Kept) -> None:
    assert pictured(question, asked, answer) is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ASKED, "Is it?"),
        (b'{"state":{"question":"Why?","claim":"Because."}}', "Why?"),
        (b'{"state":{"a":"b"}}', None),
        (b'{"state":["question"]}', None),
        (b'{"state":7}', None),
        (b'{"state":{"question":7}}', None),
        (b'{"state":"\\ud800"}', None),
        (b"{}", None),
        (b"[]", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
    ],
)
def test_the_question_a_call_is_about_is_read_from_its_request(asked: bytes, words: str | None) -> None:
    assert words_in(asked) == words
