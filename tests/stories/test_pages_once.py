"""A question and its page: asked once, looked at for nothing, stepped through by pins, asked afresh only by a press."""

import asyncio
from itertools import product
from pathlib import Path

import pytest

from archive.answer import stored
from archive.live import Place
from archive.messages import Conclusion, Noted, Question
from archive.when import DAY
from tests.fakes import FakeClock
from tests.pages import Jev, Page, Visitor, address, visitor
from tests.stories.conftest import ended
from web import recipe
from web.system_one import now


def again(page: Page, call: int) -> str:
    """The call_id that ↻ of this call would press."""
    return page.calls[call].one("form").one("input", name="again")["value"]


async def press(me: Visitor, page: Page, call: int) -> Page:
    """Press ↻ on a call."""
    return await me.press(page.calls[call].one("form"))


async def test_ten_visitors_who_ask_at_once_are_one_set_of_calls(tmp_path: Path) -> None:
    """One leaves in the middle; it takes nothing from the others, and the page is then the same for all."""
    async with visitor(tmp_path / "a.db") as me:
        me.model.gate = asyncio.Event()
        posts = [asyncio.create_task(me.post("Is it?")) for _ in range(10)]
        await me.model.arrived.acquire()
        said = await asyncio.gather(*posts)
        waiting = await asyncio.gather(*(me.look("Is it?") for _ in range(10)))
        leaving = asyncio.create_task(me.look("Is it?"))
        await asyncio.sleep(0)
        leaving.cancel()
        me.model.gate.set()
        await me.settled()
        pages = await asyncio.gather(*(me.look("Is it?") for _ in range(9)))
        assert {(one.status, one.headers["Location"]) for one in said} == {(303, "/?q=Is+it%3F")}
        assert {(one.words, one.refreshes) for one in waiting} == {("Asking", True)}
        assert {page.body for page in pages} == {pages[0].body}
        assert (pages[0].words, pages[0].states, pages[0].refreshes) == ("Probably yes", ["now", "now"], False)
        assert "asked 10 times" in pages[0].main
        assert me.sent == 2


async def test_a_second_asking_sends_nothing_and_says_so(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        first = await me.ask("Is it?")
        second = await me.ask("Is it?")
        assert me.sent == 2
    assert "Just now 2 of 2 calls were sent." in first.main
    assert "Nothing was sent just now: every call was answered from the record." in second.main
    assert second.states == ["record", "record"]
    assert "Not sent answered just now saved $0.00006" in second.main
    assert second.names == first.names
    assert "asked 2 times" in second.main


async def test_an_asking_outlives_whoever_started_it(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        await me.model.arrived.acquire()
        me.model.gate.set()
        await me.settled()
        assert (await me.look("Is it?")).words == "Probably yes"
        assert len((await me.get()).html.one("ol", class_="feed").all("li")) == 1


async def test_while_the_second_call_waits_the_first_is_said_to_have_been_sent_now(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.post("Is it?")
        await me.model.arrived.acquire()
        me.model.gate = asyncio.Event()
        await me.model.arrived.acquire()
        page = await me.look("Is it?")
        me.model.gate.set()
    assert (page.words, page.states) == ("Asking", ["now", "waiting"])
    assert "What is waited for is call 2, “The answer”." in page.main


async def test_a_fresh_first_answer_of_another_kind_leads_to_another_call_that_is_sent(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        me.jev.kind = "how_much"
        after = await press(me, before, 0)
        assert me.sent == 4
    assert after.states == ["now", "now"]
    assert after.names[0] == before.names[0].replace(":1", ":2")
    assert after.names[1].split(":")[0] != before.names[1].split(":")[0]
    assert (before.words, after.words) == ("Probably yes", "somewhat")


async def test_a_fresh_first_answer_of_the_same_kind_sends_no_later_call(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        me.jev.fit = 0.8
        after = await press(me, before, 0)
        assert me.sent == 3
    assert after.states == ["now", "record"]
    assert after.names == [before.names[0].replace(":1", ":2"), before.names[1]]
    assert "answer 2 of 2" in after.calls[0].text


async def test_a_fresh_later_answer_leaves_the_first_call_alone(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        me.jev.noul = 0.2
        after = await press(me, before, 1)
        assert me.sent == 3
    assert (after.states, after.words) == (["record", "now"], "Probably no")
    assert "Ask again, $0.00006" in before.calls[1].text


async def test_while_it_is_asked_again_the_old_answer_stands_and_the_page_refreshes(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        me.jev.noul = 0.2
        me.model.gate = asyncio.Event()
        said = await me.post("Is it?", again=again(before, 1))
        during = await me.get(said.headers["Location"])
        me.model.gate.set()
        after = await me.follow(said)
    assert (during.words, during.refreshes, after.words, after.refreshes) == (
        "Probably yes", True, "Probably no", False
    )  # fmt: skip
    assert "It is being asked again at this moment." in during.main


async def test_a_page_that_holds_an_answer_does_not_wait_for_what_others_ask(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        me.model.gate = asyncio.Event()
        await me.post("Is it?", again=again(before, 1))
        pinned, plain = await me.look("Is it?", ",".join(before.names)), await me.look("Is it?")
        me.model.gate.set()
    assert (pinned.words, pinned.refreshes, plain.refreshes) == ("Probably yes", False, True)
    assert "being asked again" in plain.main
    assert "being asked again" not in pinned.main


async def two_kinds(me: Visitor) -> Page:
    """The page of a question whose first call has two answers of different kinds, each with a later call of its own."""
    page = await me.ask("Is it?")
    me.jev.kind = "how_much"
    return await press(me, page, 0)


async def test_back_and_forward_through_pins_send_nothing(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        newest = await two_kinds(me)
        sent = me.sent
        back = await me.get(newest.calls[0].one("a", rel="prev")["href"])
        forward = await me.get(back.calls[0].one("a", rel="next")["href"])
        once_more = await me.get(forward.calls[0].one("a", rel="prev")["href"])
        assert me.sent == sent
    assert (newest.words, back.words, forward.words) == ("somewhat", "Probably yes", "somewhat")
    assert (back.states, forward.states) == (["pinned", "lookup"], ["pinned", "lookup"])
    assert once_more.body == back.body
    assert "Pinned Call 1 is held at answer 1 of 2" in back.main
    assert not back.calls[1].all("form"), "↻ after a pin would be a call that was never meant"


async def test_a_link_that_holds_an_answer_shows_it_whatever_is_asked_later(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        held = before.html.one("div", class_="acts").one("a", data_step="")["href"]
        me.jev.noul = 0.2
        after = await press(me, before, 1)
        pinned = await me.get(held)
        now = await me.get(pinned.html.one("p", class_="pinbar").one("a")["href"])
    assert (before.words, after.words, pinned.words, now.words) == (
        "Probably yes", "Probably no", "Probably yes", "Probably no"
    )  # fmt: skip
    assert pinned.states == ["pinned", "pinned"]
    assert "Nothing is sent for this page" in pinned.main
    assert ",".join(before.names) in held.replace("%3A", ":").replace("%2C", ",")


async def test_a_call_after_a_pin_that_is_not_on_record_says_so_and_is_sent_only_by_a_press(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.jev.kind = "open"
        page = await me.ask("Is it?")
        me.jev.kind = "yes_no"
        page = await press(me, page, 0)  # now the first call has two answers, and the first leads nowhere
        me.jev.kind = "how_much"
        await me.here.ask(me.model.got[0].body, Archive_Answer="fresh")
        sent = me.sent
        missing = await me.look("Is it?", f"{again(page, 0)}:3")
        assert me.sent == sent
        assert (missing.states, missing.words) == (["pinned", "missing"], "Not on record")
        assert "Not on record, not sent. Below is the request as it would be sent." in missing.main
        found = await press(me, missing, 1)
        assert me.sent == sent + 1
    assert missing.calls[1].one("pre").text == me.model.got[-1].body.decode()
    assert "Send it, price unknown" in missing.calls[1].text
    assert (found.states, found.words) == (["pinned", "lookup"], "somewhat")


UNFURLERS = [
    "Slackbot-LinkExpanding 1.0", "Twitterbot/1.0", "facebookexternalhit/1.1", "WhatsApp/2.23", "TelegramBot",
    "Discordbot/2.0", "LinkedInBot/1.0", "Googlebot/2.1",
]  # fmt: skip


async def test_looking_at_an_unasked_question_never_sends(tmp_path: Path) -> None:
    """Link unfurlers, HEAD, prefetch, prerender and crawlers cost nothing, and do not count as asking."""
    async with visitor(tmp_path / "a.db") as me:
        page = await me.look("Is it?")
        for agent in UNFURLERS:
            await me.get(address("Is it?"), User_Agent=agent)
        for name, value in product(["Purpose", "Sec_Purpose", "X_Moz"], ["prefetch", "prefetch;prerender"]):
            await me.get(address("Is it?"), **{name: value})
        await me.get(address("Is it?", "0123456789ab:1"))
        head = await me.request("HEAD", address("Is it?"))
        assert me.sent == 0
        asked = await me.press(page.html.one("main").one("form"))
        for agent in UNFURLERS:
            await me.get(address("Is it?"), User_Agent=agent)
        assert me.sent == 2
    assert "Nobody has asked this here yet. Looking at this page sends nothing." in page.main
    assert (head.status, head.body, head.headers["Content-Type"]) == (200, b"", "text/html; charset=utf-8")
    assert "asked 1 time" in asked.main


@pytest.mark.parametrize(
    "pair",
    [("Is 1 < 2?", "Is 1 > 2?"), ("C++", "C#"), ("😀", "😃"), ("a b", "a  b"), ("Is it?", "is it?"), ("é", "e\u0301"),
     ("a", "a\u200b"), ("a\nb", "a b"), ("Is it?", "Is it? ?")],
)  # fmt: skip
async def test_questions_that_differ_in_a_character_are_two(tmp_path: Path, pair: tuple[str, str]) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(counting=True)) as me:
        pages = [await me.ask(words) for words in pair]
        looked = [await me.look(words) for words in pair]
        assert me.sent == 4
    assert [asked["state"] for asked in me.jev.asked[::2]] == list(pair)
    assert [page.html.one("h1").text for page in looked] == list(pair)
    assert not set(pages[0].names) & set(pages[1].names)


async def test_options_typed_apart_make_another_question(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(kind="which", score=2)) as me:
        pages = [
            await me.ask("Which?"),
            await me.ask("Which?", option=["a", "b"]),
            await me.ask("Which?", option=["b", "a"]),
            await me.ask("Which?", level=["a", "b", "c"]),
        ]
        assert [page.names[0] for page in pages] == [pages[0].names[0]] * 4
        assert me.sent == 1 + 3
        assert len({page.names[1] for page in pages[1:]}) == 3
    assert [page.words for page in pages[1:]] == ["a", "b", "c"]


async def test_a_call_that_somebody_else_is_waiting_for_is_shared_and_said_to_be(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        first = next(recipe.recipe(Question("Is it?"), recipe.Models("jev-latest")))
        me.model.gate = asyncio.Event()
        other = asyncio.create_task(me.here.ask(first.body))
        await me.model.arrived.acquire()
        said = await me.post("Is it?")
        me.model.gate.set()
        page = await me.follow(said)
        assert (await other).headers["Archive-Sent"] == "now"
        assert me.sent == 2
    assert page.states == ["shared", "now"]
    assert "Just now 1 of 2 calls was sent, and 1 shared with somebody who asked the same." in page.main


async def test_after_a_while_what_was_sent_is_on_record_and_told_by_its_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        monkeypatch.setattr("web.asking.LATELY_SECONDS", -1.0)
        me.now = now() + 3 * DAY
        after = await me.look("Is it?")
        front = await me.get()
    assert (before.states, after.states) == (["now", "now"], ["record", "record"])
    assert "Not sent answered 3 days ago saved $0.00006" in after.main
    assert "Just now" not in after.main and "just now" not in after.main
    assert "first 3 days ago last 3 days ago" in after.main
    assert front.html.one("ol", class_="feed").one("time").text == "3 days"


async def test_a_late_reply_to_an_unknown_call_is_its_answer(tmp_path: Path, clock: FakeClock) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.model.gate = asyncio.Event()
        await me.post("Is it?")
        await me.model.arrived.acquire()
        clock.advance(31)
        await me.settled()
        unknown = await me.look("Is it?")
        async with me.here.door.watch(Place("question")) as notices:
            me.model.gate.set()
            await ended(notices)
        late = await me.look("Is it?")
        assert me.sent == 1
        done = await me.ask("Is it?")
        assert me.sent == 2
    assert (unknown.words, unknown.states) == ("Sent, no reply", ["unknown"])
    assert (late.words, late.states) == ("Not on record", ["record", "missing"])
    assert (done.words, done.states) == ("Probably yes", ["record", "now"])


async def test_the_front_page_shows_the_fifty_asked_last_and_only_what_is_fit(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        empty = await me.get()
        for n in range(55):
            await me.here.door.send(Noted(Question(f"Is it {n}?"), 1, 1, (), Conclusion("yes_no", stored("Yes")), True))
        me.jev.fit = 0.49
        unfit = await me.ask("Is it unfit?")
        me.jev.fit = 0.5
        fit = await me.ask("Is it fit?")
        front = await me.get()
    assert "Nothing has been asked here yet. The first question is yours." in empty.main
    found = [row.text for row in front.html.one("ol", class_="feed").all("span", class_="qq")]
    assert found == ["Is it fit?", *(f"Is it {n}?" for n in range(54, 5, -1))]
    assert [bool(page.html.all("meta", name="robots")) for page in (unfit, fit)] == [True, False]


async def test_all_calls_are_asked_again_by_one_button_and_a_pinned_page_has_none(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
        form = page.html.one("div", class_="acts").one("form")
        assert form.text.strip() == "Ask all again, $0.00012"
        again = await me.press(form)
        assert me.sent == 4
        pinned = await me.get(again.html.one("div", class_="acts").one("a", data_step="")["href"])
        me.jev.kind = "open"
        alone = await me.ask("Why?")
        assert me.sent == 5
    assert (again.states, again.names) == (["now", "now"], [f"{name.partition(':')[0]}:2" for name in page.names])
    assert pinned.states == ["pinned", "pinned"]
    assert not pinned.html.one("div", class_="acts").all("form")
    assert not alone.html.all("div", class_="acts"), "and where there is no answer there is nothing to ask again"
