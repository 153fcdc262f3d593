"""/wire: a program of the owner's has the same door as the pages, and nobody else has."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from websockets.asyncio.client import connect as connect_socket
from websockets.typing import Subprotocol

from archive.client import WireDoor, connect
from archive.errors import ArchiveError, CallFailed, CallUnknown, Cooling, Disconnected, Forbidden, Invalid, NotKept
from archive.live import Asked, Changed, Place
from archive.messages import Ask, Feed, Key, Noted, Question, Sent, Stop, Totals
from archive.picks import Fresh, KeptOnly
from archive.request import Request
from archive.wire import PROTOCOL, Do, Watch, packed
from tests.fakes import SECRET, answer, body, site, upstream

SHOWN_AS = {"Authorization": f"Bearer {SECRET}"}
SHOWN = {**SHOWN_AS, "Sec-WebSocket-Protocol": PROTOCOL}
HANG_SECONDS_MAX = 30


def ask(door: WireDoor, words: str = "Is it?", **more: Any) -> Ask:
    """An Ask about `words`, for where this server sends."""
    return Ask(Request(door.here.ask, body(words)), **more)


async def test_an_answer_kept_by_one_way_in_is_kept_for_the_other(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:
        over_http = await here.ask()
        over_wire = await door.send(ask(door))
        first = await door.send(ask(door, "Another?"))
        again = await here.ask(body("Another?"))
    assert (over_wire.kept.body, over_wire.sent) == (over_http.body, Sent.NOT_SENT)
    assert over_wire.kept.call_id == over_http.headers["Archive-Call"]
    assert (first.sent, again.headers["Archive-Sent"], again.body) == (Sent.NOW, "no", first.kept.body)
    assert len(model.got) == 2


async def test_many_are_under_way_on_one_socket_and_a_slow_one_holds_up_nobody(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:
        model.gate = asyncio.Event()
        slow = [asyncio.create_task(door.send(ask(door, f"Slow {n % 5}?"))) for n in range(20)]
        async with asyncio.timeout(HANG_SECONDS_MAX):
            for _ in range(5):
                await model.arrived.acquire()
            assert (await door.send(Totals())).questions == 0
            assert not any(task.done() for task in slow)
            model.gate.set()
            answered = await asyncio.gather(*slow)
    assert len(model.got) == 5
    assert [one.sent for one in answered].count(Sent.NOW) == 5
    assert len({one.kept.call_id for one in answered}) == 5


async def test_refusals_come_as_the_errors_they_are(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:
        with pytest.raises(NotKept, match="not on record"):
            await door.send(ask(door, pick=KeptOnly()))
        elsewhere = msgspec.structs.replace(door.here.ask, url="http://127.0.0.1:9/v1/systemone")
        with pytest.raises(Invalid, match="Nothing here is set up to send to"):
            await door.send(Ask(Request(elsewhere, body())))
        model.status, model.reply = 400, b'{"detail":"no"}'
        with pytest.raises(CallFailed) as failed:
            await door.send(ask(door))
        model.status, model.headers = 429, [*model.headers, ("Retry-After", "600")]
        with pytest.raises(CallFailed):
            await door.send(ask(door))
        with pytest.raises(Cooling) as cooling:
            await door.send(ask(door))
        over_http = await here.ask()
    assert failed.value.reply is not None
    assert (failed.value.reply.status, failed.value.reply.body) == (400, b'{"detail":"no"}')
    assert cooling.value.status == over_http.status == 429
    assert cooling.value.until is not None
    assert len(model.got) == 2


async def test_an_unknown_call_is_told_with_its_moment_and_sent_again_only_by_a_persons_word(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:

        async def hang_up(_: Any, writer: asyncio.StreamWriter) -> None:
            writer.close()

        model.behave = hang_up
        with pytest.raises(CallUnknown) as waited:
            await door.send(ask(door))
        with pytest.raises(CallUnknown):
            await door.send(ask(door, pick=Fresh(sure=False)))
        with pytest.raises(CallUnknown) as later:
            await door.send(ask(door))
        model.behave = None
        sure = await door.send(ask(door, pick=Fresh(sure=True)))
    assert (waited.value.waited, later.value.waited, later.value.at) == (True, False, waited.value.at)
    assert sure.kept.n == 1
    assert len(model.got) == 2


async def test_the_owners_key_goes_up_and_is_never_told_to_the_program(tmp_path: Path) -> None:
    async with (
        upstream() as model,
        site(tmp_path / "a.db", model.url, model_key="owners-key") as here,
        connect(here.url, SECRET) as door,
    ):
        await door.send(ask(door))
        assert "owners-key" not in repr(door.here)
        await door.send(ask(door, "Another?", key=Key("my-own")))
    assert [got.headers["authorization"] for got in model.got] == ["Bearer owners-key"] * 2


async def test_a_body_as_large_as_the_api_takes_goes_through_and_a_larger_one_does_not(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url, body_bytes_max=200_000) as here:
        async with connect(here.url, SECRET) as door:
            assert (await door.send(ask(door, "x" * 190_000))).kept.body == answer()
            with pytest.raises(Disconnected):
                await door.send(ask(door, "x" * 400_000))
        assert (await here.ask()).status == 200
    assert len(model.got) == 2


NOT_LET_IN = {
    "no secret": {"Authorization": None},
    "another secret": {"Authorization": "Bearer another"},
    "the beginning of it": {"Authorization": f"Bearer {SECRET[:-1]}"},
    "no word of any encoding": {"Authorization": "Bearer \xff\xfe"},
    "a web page that knows it": {"Origin": "OURS"},
    "a web page of another site": {"Origin": "https://evil.example"},
    "another host name": {"Host": "evil.example"},
    "no protocol": {"Sec-WebSocket-Protocol": None},
    "another protocol": {"Sec-WebSocket-Protocol": "askonce.wire.0"},
}


@pytest.mark.parametrize("why", NOT_LET_IN)
async def test_who_does_not_show_the_secret_or_is_a_web_page_is_not_let_in(tmp_path: Path, why: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        async with here.http.ws_connect(here.url + "/wire", headers=SHOWN) as let_in:
            assert b"Here" in await let_in.receive_bytes()
        changed = {name: value if value != "OURS" else here.url for name, value in NOT_LET_IN[why].items()}
        headers = {name: value for name, value in (SHOWN | changed).items() if value is not None}
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await here.http.ws_connect(here.url + "/wire", headers=headers)
        assert here.log[-1] == ("/wire", 403)
    assert refused.value.status == 403


async def test_a_wrong_secret_and_a_server_that_is_not_there_are_told_apart(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        with pytest.raises(Forbidden, match="does not let this program in"):
            async with connect(here.url, "another"):
                pass
        gone = here.url
    with pytest.raises(Disconnected, match="There is no server at"):
        async with connect(gone, SECRET):
            pass


async def test_where_no_secret_was_made_nobody_may_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.SECRET", "")
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for secret in ("", SECRET):
            with pytest.raises(Forbidden):
                async with connect(here.url, secret):
                    pass


def do(message: object, number: int = 1) -> bytes:
    """A frame that has a message done."""
    return packed(Do(number, msgspec.Raw(msgspec.msgpack.encode(message))))


DEEP = b"\x91" * 100_000 + b"\xc0"

HOSTILE = {
    "nothing": (b"", 1008),
    "no msgpack": (b"\xc1", 1008),
    "JSON": (json.dumps({"type": "Do", "number": 1, "message": {"type": "Totals"}}), 1008),
    "an unknown frame": (msgspec.msgpack.encode({"type": "Undo", "number": 1}), 1008),
    "a server's frame": (msgspec.msgpack.encode({"type": "Done", "number": 1, "reply": None}), 1008),
    "a number that is none": (msgspec.msgpack.encode({"type": "Leave", "number": "1"}), 1008),
    "a frame nested without end": (DEEP, 1008),
    "too large": (bytes(400_000), 1009),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_frame_that_is_none_closes_its_socket_and_nothing_else(tmp_path: Path, what: str) -> None:
    frame, code = HOSTILE[what]
    async with (
        upstream() as model,
        site(tmp_path / "a.db", model.url, body_bytes_max=200_000) as here,
        connect(here.url, SECRET) as other,
    ):
        async with here.http.ws_connect(here.url + "/wire", headers=SHOWN) as ws:
            await ws.receive_bytes()
            await (ws.send_str(frame) if isinstance(frame, str) else ws.send_bytes(frame))
            async with asyncio.timeout(HANG_SECONDS_MAX):
                assert (await ws.receive()).type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
        assert ws.close_code == code
        assert (await other.send(ask(other))).kept.body == answer()


async def test_a_message_that_may_not_come_from_outside_is_refused_and_the_socket_stays(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:
        with pytest.raises(Invalid, match="does not take that message"):
            await door.send(Stop())
        with pytest.raises(Invalid, match="does not take that message"):
            await door.send(Feed(most=-1))
        async with here.http.ws_connect(here.url + "/wire", headers=SHOWN) as ws:
            await ws.receive_bytes()
            await ws.send_bytes(do({"type": "Ask", "request": [1]}))
            assert b"invalid" in await ws.receive_bytes()
            await ws.send_bytes(packed(Do(2, msgspec.Raw(b"\x91" * 900 + b"\xc0"))))
            assert b"invalid" in await ws.receive_bytes()
        assert (await door.send(ask(door))).kept.body == answer()
        assert (await here.ask()).status == 200


async def test_a_number_that_is_under_way_may_not_be_used_again(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        async with connect(here.url, SECRET) as door:
            asked = ask(door)
        async with here.http.ws_connect(here.url + "/wire", headers=SHOWN) as ws:
            await ws.receive_bytes()
            await ws.send_bytes(do(asked))
            await model.arrived.acquire()
            await ws.send_bytes(do(Totals()))
            async with asyncio.timeout(HANG_SECONDS_MAX):
                await ws.receive()
        assert ws.close_code == 1008
        model.gate.set()
        assert (await here.ask()).headers["Archive-Sent"] in {"shared", "no"}
    assert len(model.got) == 1


async def test_who_watches_hears_what_happens_until_it_leaves(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:
        async with asyncio.timeout(HANG_SECONDS_MAX):
            async with door.watch(Place("/wire")) as notices:
                await here.ask()
                sent, ended = [await anext(notices) for _ in range(2)]
                await door.send(Noted(Question("Is it?"), 1))
                noted = await anext(notices)
            listeners: Any = here.door
            while len(listeners._hub):
                await door.send(Totals())
    assert isinstance(sent, Changed)
    assert isinstance(ended, Changed)
    assert (sent.state, ended.n, ended.call_id) == (None, 1, sent.call_id)
    assert noted == Asked(Question("Is it?"), False)


async def test_a_program_that_is_gone_without_a_word_is_listened_for_no_longer(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:
        listeners: Any = here.door
        async with asyncio.timeout(HANG_SECONDS_MAX):
            async with here.http.ws_connect(here.url + "/wire", headers=SHOWN) as ws:
                await ws.receive_bytes()
                await ws.send_bytes(packed(Watch(1, Place("/wire"))))
                await ws.receive_bytes()
                assert len(listeners._hub) == 1
            while len(listeners._hub):
                await door.send(Totals())


async def test_a_program_that_leaves_stops_no_call(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        async with connect(here.url, SECRET) as door:
            waiting = asyncio.create_task(door.send(ask(door)))
            await model.arrived.acquire()
        with pytest.raises(Disconnected, match="goes on there"):
            await waiting
        model.gate.set()
        later = await here.ask()
    assert later.headers["Archive-Sent"] in {"shared", "no"}
    assert len(model.got) == 1


async def test_a_server_that_stops_says_so_to_all_who_wait(tmp_path: Path) -> None:
    async with upstream() as model, AsyncExitStack() as leaves_last:
        async with site(tmp_path / "a.db", model.url, stop_seconds_max=0.01) as here:
            model.gate = asyncio.Event()
            door = await leaves_last.enter_async_context(connect(here.url, SECRET))
            address = here.url.replace("http", "ws") + "/wire"
            opening = connect_socket(address, subprotocols=[Subprotocol(PROTOCOL)], additional_headers=SHOWN_AS)
            ws = await leaves_last.enter_async_context(opening)
            waiting = asyncio.create_task(door.send(ask(door)))
            watching = asyncio.create_task(_watch(door))
            async with asyncio.timeout(HANG_SECONDS_MAX):
                await model.arrived.acquire()
        async with asyncio.timeout(HANG_SECONDS_MAX):
            await ws.wait_closed()
            told = await asyncio.gather(waiting, watching, return_exceptions=True)
        assert ws.close_code == 1012
        assert all(isinstance(one, Disconnected | CallUnknown) for one in told), told
        with pytest.raises(Disconnected):
            await door.send(Totals())
        model.gate.set()


async def _watch(door: WireDoor) -> None:
    async with door.watch(Place("/wire")) as notices:
        async for _ in notices:
            pass


async def test_nothing_that_is_not_ours_to_explain_reaches_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here, connect(here.url, SECRET) as door:

        async def broken(_: object) -> None:
            raise LookupError("with somebody's words")

        monkeypatch.setattr(here.door, "send", broken)
        with pytest.raises(ArchiveError, match=r"Something went wrong on our side\. Its id is") as told:
            await door.send(Totals())
    assert told.value.code == "internal"
    assert "words" not in told.value.text
