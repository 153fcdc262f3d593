"""What somebody typed, or a model said, is text and nothing else, wherever it stands on a page."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.fakes import upstream
from tests.html import Element
from tests.pages import Jev, Page, Visitor, address, visitor

HOSTILE = [
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></details></article><h1>x</h1>",
    "</bdi></h1><h1>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '<iframe srcdoc="<script>alert(1)</script>">',
    'x" onmouseover="alert(1)',
    "x' onmouseover='alert(1)",
    'x" autofocus onfocus=alert(1) y="',
    "x` onmouseover=alert(1) `",
    '"><input name="sure" value="yes">',
    "<base href=//evil.example>",
    '<meta http-equiv="refresh" content="0;url=//evil.example">',
    "<form action=//evil.example><button>",
    "<!-- x --><!--",
    "]]> <![CDATA[ <?php ?>",
    "{{ 7 * 7 }} {% raw %} {# #} ${7*7} #{7*7}",
    "{{ view.__class__.__mro__ }}",
    "[click](javascript:alert(1)) [x](data:text/html,<script>alert(1)</script>)",
    '<a href=" java\nscript:alert(1)">x</a>',
    "&lt;b&gt; &amp;amp; &#60; &quot; &nbsp",
    "Is \"a\" > 'b' & </title><script>x</script>?",
    "%3Cscript%3E %00 %0d%0aX-Evil: 1",
    "\u202eright to left\u2066 \u200f",
    "a\u2028b\u2029c\u0301\ufeff\U000e0001",
    "\ufdfd" * 200,
    "😀👨‍👩‍👧" * 50,
    "a" * 500,
]
"""Twenty-five payloads and a few texts that are merely awkward. B60, B61, B63, B64."""


def question_links(root: Element) -> list[str]:
    """What the links of a page say the question is."""
    queries = [parse_qs(urlsplit(link["href"]).query) for link in root.all("a")]
    return [query["q"][0] for query in queries if "q" in query]


async def two_answers(me: Visitor, words: str) -> Page:
    """The page of a question whose calls have two answers each, so that it has its pager, its links and its forms."""
    page = await me.ask(words)
    for call in (0, 1):
        page = await me.press(page.calls[call].one("form"))
    return page


@pytest.fixture
async def plain(tmp_path: Path) -> Page:
    """The same page of a harmless question."""
    async with visitor(tmp_path / "plain.db") as me:
        return await two_answers(me, "Is it?")


@pytest.mark.parametrize("words", HOSTILE, ids=lambda words: words[:25])
async def test_what_is_typed_as_a_question_is_shown_as_text_on_every_page(
    tmp_path: Path, words: str, plain: Page
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        unasked = await me.look(words)
        page = await two_answers(me, words)
        front = await me.get()
        pinned = await me.get(page.calls[0].one("a", rel="prev")["href"])
    assert page.html.shape() == plain.html.shape(), "no element and no attribute appears"
    assert page.html.one("h1").text == pinned.html.one("h1").text == unasked.html.one("h1").text == words
    title = page.html.one("title").text
    assert title == f"Probably yes (0.83): {words if len(words) <= 110 else words[:109] + '…'}"
    assert page.html.one("meta", name="description")["content"] == "Probably yes, 0.83. See each call behind it."
    assert set(question_links(page.html)) == set(question_links(pinned.html)) == {words}
    fields = [field["value"] for field in page.html.all("input", type="hidden", name="q")]
    assert fields == [words] * 3
    assert json.loads(page.calls[0].one("pre", aria_label="Request bytes of call 1").text)["state"] == words
    row = front.html.one("ol", class_="feed")
    assert (row.one("span", class_="qq").text, question_links(row)) == (words, [words])
    assert [asked["state"] for asked in me.jev.asked] == [words] * 4


@pytest.mark.parametrize("words", HOSTILE[:25], ids=lambda words: words[:25])
async def test_what_is_typed_as_an_option_or_level_is_shown_as_text(tmp_path: Path, words: str) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(score=0)) as me:
        typed = " ".join(words.split())[:100]
        pages = [await me.ask("Which?", option=[typed, "b"]), await me.ask("Which?", level=[typed, "b"])]
        harmless = [await me.ask("What?", option=["a", "b"]), await me.ask("What?", level=["a", "b"])]
    assert [page.words for page in pages] == [typed, typed]
    for page, other, name in zip(pages, harmless, ("option", "level"), strict=True):
        assert page.html.shape() == other.html.shape()
        assert [field["value"] for field in page.html.all("input", name=name)] == [typed, "b"] * 3
        assert page.html.one("li", class_="first").one("bdi").text == typed
        assert page.html.one("title").text.startswith(f"{typed} (")


@pytest.mark.parametrize("words", HOSTILE[:25], ids=lambda words: words[:25])
async def test_what_a_model_says_is_shown_as_text(tmp_path: Path, words: str) -> None:
    """B60, B61, B62: its name, a key of an answer, a label, and every byte of the reply."""
    said = Jev(model=words, more={words: words})
    async with (
        visitor(tmp_path / "a.db", jev=said) as me,
        visitor(tmp_path / "b.db", jev=Jev(more={"a": "b"})) as other,
    ):
        page, harmless = await me.ask("Is it?"), await other.ask("Is it?")
    assert page.html.shape() == harmless.html.shape()
    assert [call.all("span", class_="key")[-1].text for call in page.calls] == [f"answered by {words}"] * 2
    assert json.loads(page.calls[0].one("pre", aria_label="Reply bytes of call 1").text)[words] == words
    assert not [value for element in page.html.all("") for value in element.attributes.values() if words in value]


@pytest.mark.parametrize("words", HOSTILE[:25], ids=lambda words: words[:25])
async def test_a_refused_question_stands_in_its_form_as_it_was_typed(tmp_path: Path, words: str) -> None:
    long = (words + " ") * (500 // len(words) + 1) + "end"
    async with visitor(tmp_path / "a.db") as me:
        posted, looked = await me.post(long), await me.look(long)
        front = await me.post("x" * 501)
        assert me.sent == 0
    for page in (posted, looked):
        assert page.status == 413
        assert page.html.one("textarea", id="q").text == long
        assert page.html.one("p", role="alert").text == (
            f"The question has {len(long):,} characters; at most 500 are taken. Nothing was sent."
        )
        assert page.html.shape() == front.html.shape()


async def test_the_length_of_a_question_is_counted_in_characters_and_nothing_is_cut(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        whole = await me.ask("😀" * 500)
        over = await me.post("😀" * 501)
        huge = await me.post("é" * 10_000)
        assert me.sent == 2
    assert whole.html.one("h1").text == "😀" * 500
    assert (over.status, over.html.one("textarea", id="q").text) == (413, "😀" * 501)
    assert (huge.status, huge.html.one("textarea", id="q").text) == (413, "é" * 10_000)
    assert "10,000 characters; at most 500 are taken. Nothing was sent." in huge.main


@pytest.mark.parametrize("character", ["\0", "\x01", "\x08", "\x0b", "\x1b", "\x7f", "\x85", "\r"], ids=repr)
async def test_a_control_character_is_refused_in_a_sentence_and_shown_as_a_sign(tmp_path: Path, character: str) -> None:
    async with visitor(tmp_path / "a.db") as me:
        pages = [await me.post(f"Is{character}it?"), await me.look(f"Is{character}it?")]
        options = await me.post("Which?", option=[f"a{character}b", "c"])
        assert me.sent == 0
    for page in pages:
        assert page.status == 400
        assert "The question holds a control character that cannot be shown." in page.main
        assert page.html.one("textarea", id="q").text == "Is\ufffdit?"
    if character not in "\x0b\x85\r":  # these end a line, and one a line is how options are typed
        assert options.status == 400
        assert "The option holds a control character" in options.main


@pytest.mark.parametrize("raw", ["%ED%A0%80", "%ED%BF%BF", "a%FF", "%C0%AF", "%F5%80%80%80"])
async def test_bytes_that_are_no_text_are_refused_in_a_sentence(tmp_path: Path, raw: str) -> None:
    async with visitor(tmp_path / "a.db") as me:
        pages = [await me.get(f"/?q={raw}"), await me.submit(f"q={raw}".encode()), await me.submit(b"q=\xff")]
        pins = await me.get(f"/?q=Is+it%3F&pins={raw}")
        assert me.sent == 0
    assert [page.status for page in [*pages, pins]] == [400] * 4
    assert all("bytes that are not text in UTF-8" in page.main for page in pages)


async def test_spaces_around_a_question_do_not_make_it_another_and_nothing_typed_is_no_question(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        pages = [await me.ask("  Is\r\nit?\n "), await me.look("Is\nit?")]
        empty = [await me.post(""), await me.post(" \n\u3000"), await me.submit(b""), await me.submit(b"x=1")]
        front = [await me.get("/?q="), await me.get("/?q=+"), await me.get("/?pins=x"), await me.get("/?")]
        assert me.sent == 2
    assert {page.html.one("h1").text for page in pages} == {"Is\nit?"}
    assert [page.status for page in empty] == [400] * 4
    assert all("Type a question first." in page.main for page in empty)
    assert [page.status for page in front] == [200] * 4


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"option": ["a"]}, "Give 2 to 20 options, one a line; these are 1."),
        ({"option": [str(n) for n in range(21)]}, "these are 21."),
        ({"level": "\n".join(str(n) for n in range(11))}, "Give 2 to 10 levels, one a line; these are 11."),
        ({"option": ["a", " a "]}, "The same option stands there twice."),
        ({"option": ["a", "b"], "level": ["a", "b"]}, "Give options or levels, not both."),
        ({"option": ["a" * 101, "b"]}, "The option has 101 characters; at most 100 are taken."),
        ({"x": ["1"] * 200}, "The form has more than 100 fields."),
    ],
)
async def test_options_that_cannot_be_are_refused_in_a_sentence(
    tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        said = [await me.post("Which?", **fields), await me.look("Which?", **fields)]
        assert me.sent == 0
    assert all(page.status in {400, 413} and sentence in page.main for page in said)


async def test_half_a_surrogate_pair_in_a_reply_breaks_no_page_and_no_byte(tmp_path: Path) -> None:
    """B49: one such answer made its page answer 500 for ever."""
    store = tmp_path / "a.db"
    half = Jev(kind="which", model="jev-\ud800", more={"x": "\udfff", "\ud83d": 1})
    async with upstream() as model:
        async with visitor(store, model, half) as me:
            pages = [await me.ask("Tea or coffee?")]
            replies = [half.reply(got.body) for got in model.got]
        async with visitor(store, model, half) as me:
            pages += [await me.look("Tea or coffee?"), await me.get()]
            raw = [await me.get(link["href"]) for link in pages[1].html.all("a") if link.text == "raw"]
    assert b"\\ud800" in replies[0]
    assert [page.status for page in pages] == [200] * 3
    assert [page.body for page in raw] == [model.got[0].body, replies[0], model.got[1].body, replies[1]]
    assert "answered by jev-?" in pages[1].main
    assert pages[1].words == "Tea"


ODD = {
    "an integer without end": b'"x": ' + b"9" * 6000,
    "a confidence without end": b'"x": 1, "confidence": 1' + b"0" * 400,
    "a number too large": b'"x": 1e999',
    "no number": b'"x": NaN',
    "every control character": b'"x": "' + "".join(f"\\u{n:04x}" for n in range(32)).encode() + b'"',
    "bytes that are no text": b'"x": "\xff\xfe\xed\xa0\x80"',
    "deep": b'"x": ' + b"[" * 200 + b"]" * 200,
    "more digits than a float has": b'"x": [174322306148984899, 9007199254740993, 0.1234567890123456789]',
}


@pytest.mark.parametrize("name", ODD)
async def test_however_odd_a_reply_is_its_page_stands_and_its_bytes_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """B52 too: every digit is there."""
    odd = Jev(kind="how_much")
    reply = odd.reply

    def oddly(body: bytes) -> bytes:
        said = reply(body).replace(b'"confidence": 0.4, ', b"")
        return said.replace(b'"type": "score"', b'"type": "score", ' + ODD[name])

    monkeypatch.setattr(odd, "reply", oddly)
    async with visitor(tmp_path / "a.db", jev=odd) as me:
        page = await me.ask("How much?")
        raw = await me.get([link["href"] for link in page.html.all("a") if link.text == "raw"][-1])
        front = await me.get()
        assert me.sent == 2
    assert (page.status, front.status, page.words) == (200, 200, "somewhat")
    assert ODD[name] in raw.body
    shown = page.calls[1].one("pre", aria_label="Reply bytes of call 2").text
    assert ODD[name].decode("utf-8", "replace") in shown
    assert "somewhat 2.40" in page.calls[1].spaced


async def test_an_address_as_people_paste_it_is_read(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        pages = [
            await me.get(f"/?q={quote('Is 1 < 2 & 3?')}"),
            await me.get(address("Is 1 < 2 & 3?") + "&utm_source=x"),
        ]
        twice = await me.get("/?q=first&q=second")
    assert {page.html.one("h1").text for page in pages} == {"Is 1 < 2 & 3?"}
    assert twice.html.one("h1").text == "first"
