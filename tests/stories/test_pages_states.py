"""Every state a question's page can be in: it says what is so and what can be done, and its HTML is well formed.

`Page.html` reads strictly (tests/html.py), so each page looked at here is checked.
"""

import asyncio
import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archive.messages import Noted
from tests.fakes import Upstream, upstream
from tests.pages import Jev, Page, Visitor, visitor
from tests.stored import outcomes, rows
from tests.wires import hangs_up


def hero(page: Page) -> str:
    """What the page says first, before the calls."""
    return page.html.one("section", aria_labelledby="question").spaced


async def test_a_yes_or_no_is_its_words_a_scale_and_a_sentence(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
    assert page.words == "Probably yes"
    assert page.html.one("div", role="img")["aria-label"].startswith("Probability of yes: 0.83, ")
    assert page.html.one("p", class_="word wet drying")["data-w"] == "650"
    assert "of 100 questions given this number, about 83 turn out yes." in hero(page)
    assert page.html.one("title").text == "Probably yes (0.83): Is it?"


async def test_one_of_several_is_the_option_and_the_share_of_each(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(kind="which")) as me:
        page = await me.ask("Tea, coffee or water?")
    assert page.words == "Tea"
    listed = page.html.one("ol", aria_label="Every option and its probability")
    assert [item.spaced for item in listed.all("li")] == ["Tea 0.70", "coffee 0.15", "water 0.15"]
    assert "Confidence 0.60. The probabilities add up to 1.00 as supplied." in hero(page)


async def test_how_much_is_the_nearest_level_and_the_number(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(kind="how_much")) as me:
        page = await me.ask("How warm is it?")
    assert page.words == "somewhat"
    listed = page.html.one("ol", aria_label="Every level and its probability")
    assert [item.spaced for item in listed.all("li")] == [
        "not at all 0.20", "a little 0.20", "somewhat 0.20", "quite 0.20", "very much 0.20"
    ]  # fmt: skip
    assert "2.40 on levels from 0 to 4. Confidence 0.40." in hero(page)


async def test_an_open_question_is_told_the_forms_it_could_take_and_can_take_each(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(kind="open")) as me:
        page = await me.ask("Why is the sky blue?")
        assert me.sent == 1
        options, levels = page.html.one("div", class_="forms").all("form")
        which = await me.press(options, option="dust\r\nlight\r\n")
        much = await me.press(levels)
        assert me.sent == 3
    assert "It can answer yes or no, pick one of several, or say how much." in hero(page)
    assert (which.words, much.words) == ("dust", "somewhat")
    assert which.html.one("h1").text == much.html.one("h1").text == "Why is the sky blue?"


async def test_options_that_nobody_named_are_asked_for(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(kind="which")) as me:
        page = await me.ask("Which one?")
        front = await me.get()
        assert me.sent == 1
    assert "what to pick from is not named so that it can be told for sure" in hero(page)
    assert "No question is listed here yet." in front.main, "a question without an answer is not listed"


async def unknown(me: Visitor, words: str = "Is it?") -> Page:
    """The page of a question whose first call was sent and got no reply; the upstream answers again from now on."""
    behave, me.model.behave = me.model.behave, hangs_up()
    page = await me.ask(words)
    me.model.behave = behave
    return page


async def test_a_call_without_a_confirmed_reply_is_sent_again_only_on_a_confirmation(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await unknown(me)
        form = page.calls[0].one("form")
        name = form.one("input", name="again")["value"]
        plain = await me.ask("Is it?")
        unsure = await me.ask("Is it?", again=name)
        await me.look("Is it?")
        assert me.sent == 1
        assert unsure.body == plain.body
        assert (page.words, page.states, plain.states) == ("Sent, no reply", ["unknown"], ["unknown"])
        sure = await me.press(form)
        assert me.sent == 3
    assert "It may have been paid for, so it is not sent again by itself." in hero(page)
    assert "Send it again; it may be paid for twice" in form.spaced
    assert form.one("input", name="sure")["value"] == "yes"
    assert page.html.one("a", href="#c1").text == "Decide at call 1"
    assert (sure.words, sure.states) == ("Probably yes", ["now", "now"])


async def test_a_second_call_that_is_unknown_needs_its_confirmation_too(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        me.jev.kind = "how_much"
        await me.here.ask(me.model.got[0].body, Archive_Answer="fresh")
        page = await unknown(me)
        sent = me.sent
        name = page.calls[1].one("form").one("input", name="again")["value"]
        await me.ask("Is it?", again=name)
        first = page.calls[0].one("form").one("input", name="again")["value"]
        assert me.sent == sent
        await me.ask("Is it?", again=first)  # afresh at the first call: the second comes out the same, and is not sent
        assert me.sent == sent + 1
        done = await me.press(page.calls[1].one("form"))
        assert me.sent == sent + 2
    assert (page.states, done.words) == (["record", "unknown"], "somewhat")


async def test_a_refused_call_is_told_with_its_status_and_can_be_tried_again(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.model.status = 400
        page = await me.ask("Is it?")
        looked = await me.look("Is it?")
        assert me.sent == 1
        me.model.status = 200
        done = await me.press(page.html.one("main").one("form", class_="form"))
        assert me.sent == 3
    for one in (page, looked):
        assert (one.words, one.states) == ("Refused", ["failed"])
        assert "The model's server refused it. Its status was 400. Nothing was kept." in hero(one)
    assert done.words == "Probably yes"


async def test_a_reply_that_is_no_answer_is_told_and_not_paid_for_again_by_clicks(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(more={"answers": {}})) as me:
        page = await me.ask("Is it?")
        for _ in range(5):
            page = await me.ask("Is it?")
        assert me.sent == 1
    assert (page.words, page.states) == ("No answer", ["failed"])
    assert "replied, but not with an answer to what was asked" in hero(page)


async def test_a_destination_that_wants_to_be_left_alone_is_and_the_page_says_until_when(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it known?")
        me.model.status, me.model.headers = 429, [("retry-after", "3600")]
        first = await me.ask("Is it?")
        sent = me.sent
        other = await me.ask("Is it new?")
        kept = await me.ask("Is it known?")
        assert me.sent == sent == 3
    assert "Its status was 429." in hero(first)
    for page in (first, other):
        assert "The model's server asked to be left alone until " in hero(page)
    assert kept.words == "Probably yes"


async def test_the_days_limit_is_told_with_when_it_lifts_and_kept_answers_stay(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", day_calls_max=3) as me:
        whole = await me.ask("Is it known?")
        page = await me.ask("Is it?")
        again = await me.press(whole.calls[0].one("form"))
        kept = await me.ask("Is it known?")
        assert me.sent == 3
    assert page.states == ["now", "missing"]
    assert "Today's 3 calls are used up. More may be sent from " in hero(page)
    assert "Just now it could not be asked again: Today's 3 calls are used up." in hero(again)
    assert (again.words, kept.words) == ("Probably yes", "Probably yes")


def broken(*_: Any) -> Any:
    raise RuntimeError("a secret in an exception")


async def test_an_error_of_ours_on_a_page_has_an_id_and_none_of_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        monkeypatch.setattr("web.pages.view", broken)
        page = await me.look("Is it?")
    assert page.status == 500
    assert_told_by_id(page, caplog)


async def test_an_error_of_ours_in_an_asking_has_an_id_and_none_of_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        with monkeypatch.context() as patch:
            patch.setattr("web.asking.recipe", broken)
            page = await me.ask("Is it?")
        assert me.sent == 0
        done = await me.press(page.html.one("main").one("form", class_="form"))
    assert page.status == 200
    assert_told_by_id(page, caplog)
    assert done.words == "Probably yes"


def assert_told_by_id(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    _, _, name = page.main.partition("Something went wrong on our side. Its id is ")
    assert name[:8] in caplog.text
    assert len(name[:8].strip(". ")) == 8
    assert b"secret" not in page.body
    assert "secret" not in caplog.text
    assert "Is it?" not in caplog.text
    assert caplog.records[-1].levelno == logging.ERROR


async def test_more_askings_than_allowed_are_refused_at_once_in_a_sentence(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", askings_max=1) as me:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        refused = await me.post("Is it not?")
        joined = await me.post("Is it?")
        me.model.gate.set()
        await me.settled()
        later = await me.ask("Is it not?")
    assert (refused.status, joined.status) == (503, 303)
    assert "Too many questions are being asked at this moment." in refused.main
    assert later.words == "Probably yes"


async def test_a_server_that_is_stopping_says_so(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        await me.model.arrived.acquire()
        me.here.door.stop()
        pages = [await me.look("Is it?"), await me.get(), await me.look("Is it not?")]
        posted = await me.post("Is it not?")
        me.model.gate.set()
        await me.settled()
        assert me.sent == 1
    assert [page.status for page in pages] == [503] * 3
    assert posted.status == 503
    assert all("The server is stopping." in page.main for page in pages)
    assert outcomes(tmp_path / "a.db") == ["answered"]


async def test_what_was_on_the_wire_when_the_server_died_is_unknown_and_goes_on_only_when_asked(tmp_path: Path) -> None:
    store, copy = tmp_path / "a.db", tmp_path / "b.db"
    async with upstream() as model:
        async with visitor(store, model) as me:
            model.gate = asyncio.Event()
            await me.post("Is it?")
            await model.arrived.acquire()
            with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
                db.execute("VACUUM INTO ?", (str(copy),))
        async with visitor(copy, model) as me:
            page = await me.look("Is it?")
            assert me.sent == 2
    assert (page.words, page.states, page.refreshes) == ("Sent, no reply", ["unknown"], False)


@pytest.mark.parametrize(
    ("pins", "strange"),
    [
        ("nonsense", ["nonsense"]),
        ("0123456789ab:1", ["0123456789ab:1"]),
        ("0123456789ab:0,0123456789AB:1,:1,x:1", ["0123456789ab:0", "0123456789AB:1", ":1", "x:1"]),
        ('"><script>x</script>', ['"><script>x</script>']),
        ("{name}:1,{name}:2", ["{name}:2"]),
        (",,,", []),
    ],
)
async def test_pins_that_mean_nothing_are_shown_as_such_and_never_guessed(
    tmp_path: Path, pins: str, strange: list[str]
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        name, _, _ = (await me.ask("Is it?")).names[0].partition(":")
        page = await me.look("Is it?", pins.replace("{name}", name))
        unasked = await me.look("Is it not?", pins)
        assert me.sent == 2
    for one in (page, unasked):
        bar = one.html.all("p", class_="pinbar")
        found = [code.text for code in bar[0].all("code")] if bar else []
        assert found == [text.replace("{name}", name) for text in strange if one is page or "{" not in text] or (
            one is unasked and found == pins.split(",")
        )
    assert "Nobody has asked this here yet." in unasked.main
    assert ("Pinned" in hero(page) or "Pinned" in page.main) == (":2" in pins)


async def test_a_version_that_is_not_there_says_so_and_names_what_is(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        asked = await me.ask("Is it?")
        page = await me.look("Is it?", asked.names[0].replace(":1", ":9"))
        assert me.sent == 2
    assert (page.status, page.states) == (200, ["gone"])
    assert "Answer 9 is not on record (there are 1, numbered from 1). Nothing was sent." in hero(page)
    assert "Nothing was kept" not in page.main


async def test_everyone_who_asked_is_counted_also_whoever_came_while_it_was_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        send = me.here.door.send

        async def slowly(message: Any) -> Any:
            if isinstance(message, Noted) and message.conclusion is not None:
                await me.post("Is it?")
            return await send(message)

        monkeypatch.setattr(me.here.door, "send", slowly)
        await me.ask("Is it?")
    assert rows(tmp_path / "a.db", "SELECT times FROM question") == [(2,)]


@pytest.mark.parametrize("typed", ["anna@example.org", "John Smith has cancer", "4111 1111 1111 1111"])
async def test_what_is_typed_as_an_option_is_held_to_the_rules_of_the_front_page_too(
    tmp_path: Path, typed: str
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Which is best?", option=[typed, "b"])
        front = await me.get()
    assert page.words == typed
    assert typed not in front.main
    assert page.html.all("meta", name="robots", content="noindex")


# -- erased ----------------------------------------------------------------------------------------------------------


async def filled(store: Path, model: Upstream) -> list[int]:
    """A store with questions that were asked, and the numbers of all its texts."""
    async with visitor(store, model) as me:
        await me.ask("Is it?")
        me.jev.kind = "which"
        await me.ask("Tea or coffee?")
    return [number for (number,) in rows(store, "SELECT id FROM text ORDER BY id")]


async def test_whatever_text_was_erased_no_page_breaks_and_the_question_can_be_asked_again(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        for number in await filled(store, model):
            copy = tmp_path / f"{number}.db"
            shutil.copy(store, copy)
            with closing(sqlite3.connect(copy)) as db, db:
                db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 1 WHERE id = ?", (number,))
            async with visitor(copy, model) as me:
                try:
                    await assert_not_broken(me)
                except AssertionError as error:
                    words = rows(store, "SELECT bytes FROM text WHERE id = ?", number)
                    raise AssertionError(f"text {words}: {error}") from error


async def assert_not_broken(me: Visitor) -> None:
    front = await me.get()
    assert front.status == 200
    assert "Asked lately" in front.main
    for words in ("Is it?", "Tea or coffee?"):
        page = await me.look(words)
        assert page.status in {200, 410}, page.main
        assert not ("Nobody has asked this" in page.main and "asked 1 time" in page.main)
        for link in page.html.one("main").all("a"):
            assert (await me.get(link["href"].partition("#")[0] or "/")).status in {200, 404, 410}, link["href"]
        again = await me.ask(words)
        assert again.status in {200, 410}, again.main


async def test_an_erased_answer_is_told_as_gone_and_not_as_never_asked(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        await filled(store, model)
        sent = len(model.got)
        with closing(sqlite3.connect(store)) as db, db:
            db.execute(
                "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 1 WHERE id ="
                " (SELECT reply FROM outcome ORDER BY id LIMIT 1)"
            )
        async with visitor(store, model) as me:
            page = await me.look("Is it?")
            asked = await me.ask("Is it?")
            assert me.sent == sent
    for one in (page, asked):
        assert (one.words, one.states) == ("Not there", ["gone"])
        assert "Every answer to this was withdrawn or erased." in hero(one)
