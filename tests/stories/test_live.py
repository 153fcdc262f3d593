"""/live: open pages are told what has changed, and nobody waits for a page that does not listen."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from archive.admin import Export, Import
from archive.errors import Busy, Cooling, OverLimit
from archive.exchange import Took
from archive.messages import Ask, Count, Feed, Order, Question, Recall, Totals
from tests.html import Element, fragment
from tests.pages import Visitor, address, visitor
from web.live import MESSAGE_BYTES_MAX, household


class Socket:
    """An open page's end of /live."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def at(self, url: str, token: str = "") -> None:
        """Say where the page is and what it shows."""
        await self.ws.send_json({"type": "At", "url": url})
        await self.ws.send_json({"type": "Seen", "token": token})

    async def hear(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; others are passed over."""
        async with asyncio.timeout(30):
            while True:
                said = json.loads(await self.ws.receive_str())
                if said["type"] == kind:
                    return said

    async def part(self) -> Element:
        """The next patch's one element."""
        (found,) = fragment((await self.hear("Patch"))["html"]).children
        assert isinstance(found, Element)
        return found

    async def until(self, state: str) -> Element:
        """The first patch in which the last call is in a state."""
        while True:
            part = await self.part()
            calls = part.all("article")
            if calls and calls[-1]["class"].endswith(state):
                return part


@asynccontextmanager
async def live(me: Visitor, **headers: str) -> AsyncGenerator[Socket, None]:
    """A socket as a page of ours opens it."""
    sent = {"Origin": me.here.url} | headers
    async with me.here.http.ws_connect(me.here.url + "/live", headers=sent) as ws:
        yield Socket(ws)


async def test_every_open_page_of_a_question_fills_in_when_anybody_asks_it(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as one, live(me) as two:
        me.model.gate = asyncio.Event()
        for page in (one, two):
            await page.at(address("Is it?"))
            assert "data-unasked" in (await page.part()).attributes
        await me.post("Is it?")
        waiting = [await page.until("waiting") for page in (one, two)]
        me.model.gate.set()
        answered = [await page.until("now") for page in (one, two)]
        after = (await me.look("Is it?")).html.one("div", id="view")
    assert all("Asking" in part.text for part in waiting)
    assert all("Probably yes" in part.text for part in answered)
    assert after["data-seen"]
    assert len(me.model.got) == 2


async def test_an_open_page_shows_an_answer_that_was_just_imported(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        await me.ask("Is it?")
        (*_, last) = (await me.here.door.send(Export())).lines
        other = json.loads(last)
        other["kept_at"] = other["sent_at"]
        await page.at(address("Is it?"))
        before = await page.part()
        taken = Import((json.dumps(other).encode(),), "askonce elsewhere", append=True, write=True)
        assert [verdict.took for verdict in await me.here.door.send(taken)] == [Took.NEW]
        after = await page.part()
    assert "answer 2 of 2" not in before.text
    assert "answer 2 of 2" in after.text


async def test_the_front_page_gets_the_row_of_a_listed_question_and_of_no_other(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as home:
        await home.at("/")
        me.jev.fit = 0.1
        await me.ask("Is it unfit?")
        me.jev.fit = 0.9
        await me.ask("Is it fit?")
        row = fragment((await home.hear("Row"))["html"])
    assert row.one("a")["href"] == address("Is it fit?")
    assert "Probably yes" in row.text


async def test_a_page_that_shows_what_is_so_is_told_nothing_and_one_that_missed_something_is(tmp_path: Path) -> None:
    """B73: after a reconnect the page is right without a further event, and is not sent all of it each time."""
    async with visitor(tmp_path / "a.db") as me:
        seen = (await me.ask("Is it?")).html.one("div", id="view")["data-seen"]
        async with live(me) as page:
            await page.at(address("Is it?"), seen)
            await page.at(address("Is it?"), "of long ago")
            part = await page.part()
        again = (await me.look("Is it?")).html.one("div", id="view")["data-seen"]
    assert part["data-seen"] == again == seen


async def test_a_pinned_page_stays_as_it_is_held(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.jev.counting = True
        page = await me.ask("Is it?")
        pins = ",".join(page.names)
        async with live(me) as held, live(me) as free:
            await held.at(address("Is it?", pins))
            first = await held.part()
            await free.at(address("Is it?"))
            await me.ask("Is it?", again=page.names[1].partition(":")[0])
            while "answer 2 of 2" not in (part := await free.part()).text:
                pass
            later = await held.part()
    assert "0.84" in first.text
    assert "0.85" in part.text
    assert "0.84" in later.text


async def test_the_number_of_open_pages_is_told_and_goes_down_again(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as one:
        async with live(me):
            while (await one.hear("Online"))["pages"] != 2:
                pass
        while (await one.hear("Online"))["pages"] != 1:
            pass


async def test_a_page_hears_first_which_build_it_speaks_to(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        first = json.loads(await page.ws.receive_str())
    assert first["type"] == "Build"
    assert len(first["build"]) == 8


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": ""}])
async def test_a_page_of_another_site_is_refused_before_it_is_let_in(tmp_path: Path, headers: dict[str, str]) -> None:
    """B77."""
    async with visitor(tmp_path / "a.db") as me:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with live(me, **headers):
                pass
    assert refused.value.status == 403


async def test_more_pages_than_are_kept_up_to_date_are_refused_and_the_others_go_on(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", pages_max=1) as me, live(me) as page:
        assert await refused(me)
        await page.at("/")
        await me.ask("Is it?")
        assert await page.hear("Row")


async def refused(me: Visitor, **headers: str) -> bool:
    """Is one more page closed with 1013 before it hears anything?"""
    async with live(me, **headers) as one, asyncio.timeout(30):
        first = await one.ws.receive()
        assert first.type is aiohttp.WSMsgType.TEXT or one.ws.close_code == 1013
        return first.type is not aiohttp.WSMsgType.TEXT


async def test_an_address_has_so_many_pages_and_gets_room_again_when_one_is_closed(tmp_path: Path) -> None:
    """C-29: three hundred from one address do not take the room of the others."""
    async with visitor(tmp_path / "a.db", pages_per_address_max=20) as me, contextlib.AsyncExitStack() as open_pages:
        tried = [await open_pages.enter_async_context(live(me)) for _ in range(300)]
        firsts = [(await page.ws.receive()).type for page in tried]
        assert firsts.count(aiohttp.WSMsgType.TEXT) == 20
        while (await tried[0].hear("Online"))["pages"] != 20:
            pass
        await tried[1].ws.close()
        while (await tried[0].hear("Online"))["pages"] != 19:
            pass
        assert not await refused(me)


async def test_behind_a_proxy_that_is_named_the_address_it_saw_counts_and_no_other_word_of_it(tmp_path: Path) -> None:
    """What a client wrote itself stands further left."""
    one, other = {"X-Forwarded-For": "203.0.113.9, 192.0.2.1"}, {"X-Forwarded-For": "203.0.113.9, 192.0.2.2"}
    again = {"X-Forwarded-For": "203.0.113.10, 192.0.2.1"}
    named: dict[str, Any] = {"pages_per_address_max": 1, "trusted_proxies": "127.0.0.1"}
    async with visitor(tmp_path / "a.db", **named) as me, live(me, **one) as page:
        await page.hear("Online")
        assert await refused(me, **again)
        assert not await refused(me, **other)
    async with visitor(tmp_path / "b.db", pages_per_address_max=1) as me, live(me, **one) as page:
        await page.hear("Online")
        assert await refused(me, **other)


@pytest.mark.parametrize(
    ("client", "whose"),
    [
        (("192.0.2.1", 1), "192.0.2.1"),
        (("2001:db8:1:2:3::4", 1), "2001:db8:1:2::/64"),
        (("2001:db8:1:2:ffff::1", 2), "2001:db8:1:2::/64"),
        (("::ffff:192.0.2.1", 1), "192.0.2.1"),
        (("unknown", 0), "unknown"),
        (None, ""),
    ],
)
def test_pages_are_counted_by_whom_an_address_is_given_to(client: tuple[str, int] | None, whose: str) -> None:
    assert household(client) == whose


async def counted(me: Visitor, words: str, times: int) -> None:
    """Wait until a question counts as asked so often, and see that the front page says so."""
    async with asyncio.timeout(10):
        while (found := await me.here.door.send(Recall(Question(words)))) is None or found.times < times:
            await me.here.door.send(Count())
    assert found.times == times
    assert (await me.here.door.send(Totals())).asked == sum(row.times for row in (await me.here.door.send(Feed())).rows)


async def test_a_look_counts_once_a_page_and_moves_a_question_up_in_most_asked_alone(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        await me.ask("Is it later?")
        seen = (await me.look("Is it?")).html.one("div", id="view")["data-seen"]
        async with live(me) as page, live(me) as home:
            await home.at("/")
            for looked in (False, True, True):
                await page.ws.send_json({"type": "At", "url": address("Is it?")})
                await page.ws.send_json({"type": "Seen", "token": seen, "looked": looked})
            await page.at(address("Is it?"), "of long ago")
            await page.part()  # by now all of it was heard
            await counted(me, "Is it?", 2)
        await me.get(address("Is it?"), User_Agent="Googlebot/2.1")
        await me.request("HEAD", address("Is it?"))
        await counted(me, "Is it?", 2)
        orders = [await me.here.door.send(Feed(order)) for order in (Order.MOST, Order.LATELY)]
        again = (await me.look("Is it?")).html.one("div", id="view")["data-seen"]
    assert [[row.question.words for row in listed.rows] for listed in orders] == [
        ["Is it?", "Is it later?"],
        ["Is it later?", "Is it?"],
    ]
    assert again == seen, "whoever comes back is not sent a page because somebody looked at it"


async def test_a_look_at_what_nobody_asked_counts_nothing(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        await page.ws.send_json({"type": "At", "url": address("Is it?")})
        await page.ws.send_json({"type": "Seen", "token": "", "looked": True})
        await page.part()
        assert await me.here.door.send(Recall(Question("Is it?"))) is None


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (Busy("No room."), "Not now"),
        (OverLimit("Used up.", until=1), "Not now"),
        (Cooling("Later.", until=1, status=429), "Not asked"),
        (RuntimeError("a secret"), "Our error"),
    ],
)
async def test_an_asking_that_is_refused_slowly_and_before_any_call_is_told_to_pages_that_wait_for_it(
    tmp_path: Path, error: Exception, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        gate, send = asyncio.Event(), me.here.door.send

        async def slow(message: Any) -> Any:
            if isinstance(message, Ask):
                await gate.wait()
                raise error
            return await send(message)

        monkeypatch.setattr(me.here.door, "send", slow)
        await me.post("Is it?")
        await page.at(address("Is it?"))
        waiting = await page.part()
        gate.set()
        part = await page.part()
        assert me.sent == 0
    assert "data-asking" in waiting.attributes
    assert "data-asking" not in part.attributes
    assert part.one("p", class_="word long").text == word


async def test_what_cannot_be_read_for_a_page_the_page_reads_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visitor(tmp_path / "a.db") as me, live(me) as page, live(me) as home:
        await me.ask("Is it?")
        await page.at(address("Is it?"))
        await page.part()
        await home.at("/", "x")
        await home.hear("Stale")

        async def busy(*_: object) -> Any:
            raise Busy("No room.")

        monkeypatch.setattr("web.live.SWEEP_SECONDS", 0.01)
        monkeypatch.setattr("web.pages.Pages.view", busy)
        monkeypatch.delattr("web.pages.Pages.row")
        await me.post("Is it?")
        await page.hear("Stale")
        await home.hear("Stale")


@pytest.mark.parametrize(
    ("said", "code"),
    [("x", 1008), ("{}", 1008), ('{"type":"At","url":"/?q=%ff"}', 1008), ("x" * (MESSAGE_BYTES_MAX + 1), 1009)],
)
async def test_what_no_page_of_ours_says_closes_it(tmp_path: Path, said: str, code: int) -> None:
    """B76."""
    async with visitor(tmp_path / "a.db") as me, live(me) as page:
        await page.ws.send_str(said)
        async with asyncio.timeout(30):
            while (await page.ws.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
        assert page.ws.close_code == code
        assert (await me.get("/")).status == 200


async def test_pages_that_stay_open_do_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    """B75."""

    async def until_closed(ws: aiohttp.ClientWebSocketResponse) -> int | None:
        while (await ws.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        return ws.close_code

    async with visitor(tmp_path / "a.db") as me:
        ws = await me.here.http.ws_connect(me.here.url + "/live", headers={"Origin": me.here.url})
        await ws.receive_str()
        closing = asyncio.create_task(until_closed(ws))
    assert await closing == 1012
