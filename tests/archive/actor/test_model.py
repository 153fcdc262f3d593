"""The network model: bytes go up and come back untouched, nothing is sent twice, and what may have left is lost."""

import asyncio
import random
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop
from aiohttp.client_proto import ResponseHandler

from archive.actor.model import IDLE_SECONDS, NetworkModel, Wire
from archive.attempts import Came, Lost, NotSent, Reply, Why
from archive.messages import Key
from archive.request import Destination, Request
from tests.fakes import Got, answer, body, site, upstream
from tests.process import process
from tests.wires import BROKEN, REPLY_BYTES, Behaviour, dial, end, hangs_up, nobody, reset, says, whole

WORDS = b'{"state":"words that must not have left"}'


def to(place: str, data: bytes = WORDS, method: str = "POST", headers: tuple[tuple[str, str], ...] = ()) -> Request:
    """A request for a place, which is scheme, host and port."""
    return Request(Destination("systemone", method, f"{place}/v1/systemone"), data, headers=headers)


async def once(request: Request, **limits: Any) -> Came:
    """What comes of one request, by a model of its own."""
    async with NetworkModel(Wire(**limits)) as model:
        return await model.answer(request, Key("secret"))


# -- nothing was sent -------------------------------------------------------------------------------------------------


async def test_a_refused_connection_is_not_sent() -> None:
    async with nobody() as place:
        assert await once(to(f"http://{place}")) == NotSent(Why.NO_CONNECTION)


async def test_a_name_that_does_not_exist_is_not_sent() -> None:
    assert await once(to("http://askonce-test.invalid")) == NotSent(Why.NO_CONNECTION)


async def test_tls_to_a_plain_port_is_not_sent_and_no_word_leaves_in_the_open() -> None:
    heard = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(4096))
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        heard.extend(await reader.read())

    async with end(plain) as place:
        assert await once(to(f"https://{place}")) == NotSent(Why.NO_CONNECTION)
    assert heard and b"words" not in heard and b"secret" not in heard


async def test_a_handshake_that_never_ends_is_not_sent_once_the_limit_to_connect_is_over() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with end(silent) as place:
        assert await once(to(f"https://{place}"), connect_seconds_max=0.05) == NotSent(Why.NO_CONNECTION)


# -- it was sent, or may have been ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("wrong", BROKEN)
async def test_what_breaks_off_after_it_was_sent_is_lost_and_was_sent_once(method: str, wrong: str) -> None:
    async with upstream() as far:
        far.behave, why = BROKEN[wrong]
        # Only where the far end stalls does this limit run out; everywhere else it ends the call itself.
        came = await once(
            to(far.url, method=method), read_seconds_max=0.1 if why is Why.SLOW else 60, reply_bytes_max=REPLY_BYTES
        )
    assert came == Lost(why)
    assert len(far.got) == 1


async def test_a_body_without_a_byte_is_sent_all_the_same_and_lost_when_it_breaks_off() -> None:
    async with upstream() as far:
        far.behave = hangs_up()
        assert await once(to(far.url, b"")) == Lost(Why.BROKEN_OFF)
    assert len(far.got) == 1


async def test_an_end_that_resets_without_reading_may_have_read_it() -> None:
    async def rude(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reset(writer)

    async with end(rude) as place:
        assert await once(to(f"http://{place}")) == Lost(Why.BROKEN_OFF)


async def test_an_end_that_never_reads_is_given_up_at_the_limit_for_writing() -> None:
    over = asyncio.Event()

    async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        await over.wait()

    async with asyncio.timeout(30), end(deaf) as place:
        came = await once(to(f"http://{place}", bytes(32 * 2**20)), write_seconds_max=0.1)
        over.set()
    assert came == Lost(Why.SLOW)


# -- kept connections -------------------------------------------------------------------------------------------------


def answers_then(then: Behaviour) -> Behaviour:
    """Answer the first request, do `then` with the second."""
    calls = iter([says(whole()), then])

    async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
        await next(calls)(got, writer)

    return behave


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_on_a_connection_the_other_side_has_given_up_is_lost_and_not_sent_again(method: str) -> None:
    async with upstream() as far, NetworkModel() as model:
        far.behave = answers_then(hangs_up())
        first = await model.answer(to(far.url, method=method), Key())
        second = await model.answer(to(far.url, method=method), Key())
    assert isinstance(first, Reply) and second == Lost(Why.BROKEN_OFF)
    assert len(far.got) == 2


@pytest.mark.parametrize(("idle", "connections"), [(IDLE_SECONDS - 0.5, 1), (IDLE_SECONDS + 0.5, 2)])
async def test_a_connection_that_was_idle_too_long_is_not_used_again(
    idle: float, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = set[asyncio.StreamWriter]()
    passed = 0.0

    async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        await says(whole())(got, writer)

    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: time.monotonic() + passed)
    async with upstream() as far, NetworkModel() as model:
        far.behave = behave
        await model.answer(to(far.url), Key())
        passed = idle
        assert isinstance(await model.answer(to(far.url), Key()), Reply)
    assert len(writers) == connections


async def test_a_reply_nobody_asked_for_is_never_taken_for_the_answer_to_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first_is_over, unasked_has_come = asyncio.Event(), asyncio.Event()
    original = ResponseHandler.data_received

    def noted(self: ResponseHandler, data: bytes) -> None:
        original(self, data)
        if b"0.99" in data:
            unasked_has_come.set()

    async def far(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(WORDS)
        writer.write(whole(0.22 if first_is_over.is_set() else 0.11))
        await first_is_over.wait()
        if not unasked_has_come.is_set():
            writer.write(whole(0.99))
        await reader.read()

    monkeypatch.setattr(ResponseHandler, "data_received", noted)
    async with end(far) as place, NetworkModel() as model:
        first = await model.answer(to(f"http://{place}"), Key())
        first_is_over.set()
        await unasked_has_come.wait()
        second = await model.answer(to(f"http://{place}"), Key())
    assert isinstance(first, Reply) and isinstance(second, Reply)
    assert (first.body, second.body) == (answer(0.11), answer(0.22))


# -- nothing is added, changed or looked up ---------------------------------------------------------------------------


async def proxied(trap: str, far: str) -> None:
    """With the guard off, the client does go to the proxy: the trap is one."""
    async with aiohttp.ClientSession(trust_env=True) as open_to_proxies, open_to_proxies.get(far) as response:
        assert await response.read() == b"trapped"


async def test_proxies_named_in_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    trapped = 0

    async def trap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal trapped
        trapped += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ntrapped")
        await writer.drain()
        await reader.read()

    async with upstream() as far, end(trap) as place:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{place}")
        assert isinstance(await once(to(far.url)), Reply)
        assert trapped == 0
        await proxied(place, far.url)
    assert trapped == 1


async def test_the_real_process_uses_no_proxy_either_and_sends_a_long_body_whole(tmp_path: Path) -> None:
    async with upstream() as far, nobody() as place:
        long = body("é" * 1_500_000)
        proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), f"http://{place}")
        async with process(tmp_path / "a.db", far.url, **proxies) as here:
            headers = {"Content-Type": "application/json"}
            async with here.http.post(f"{here.url}/v1/systemone", data=BytesIO(long), headers=headers) as said:
                assert (said.status, await said.read()) == (200, answer())
    assert [got.body == long for got in far.got] == [True]


async def test_a_redirect_is_handed_back_and_not_followed() -> None:
    async with upstream() as far, upstream() as elsewhere:
        far.status, far.headers = 307, [("location", f"{elsewhere.url}/v1/systemone")]
        came = await once(to(far.url))
    assert isinstance(came, Reply) and came.status == 307
    assert (len(far.got), len(elsewhere.got)) == (1, 0)


async def test_cookies_are_never_sent_back() -> None:
    async with upstream() as far, NetworkModel() as model:
        far.headers.append(("set-cookie", "spy=1; Path=/"))
        for _ in range(2):
            # By name: no client keeps cookies of an address.
            await model.answer(to(far.url.replace("127.0.0.1", "localhost")), Key())
    assert [got.headers.get("cookie") for got in far.got] == [None, None]


async def test_the_headers_that_go_up_are_these_and_no_others() -> None:
    async with upstream() as far:
        await once(to(far.url))
        await once(to(far.url, method="GET"))
    common = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "askonce"}
    common |= {"host": far.url.removeprefix("http://"), "authorization": "Bearer secret"}
    post = {"content-type": "application/json", "content-length": str(len(WORDS))}
    assert [got.headers for got in far.got] == [common | post, common]


VALUES = ["true", 'a, b;  c="d"\te', "\u00e9\u4e2d", "100%", "=?utf-8?q?x?="]


@pytest.mark.parametrize("value", VALUES)
async def test_a_forwarded_header_goes_up_byte_for_byte(value: str) -> None:
    async with upstream() as far:
        await once(to(far.url, headers=(("typesafe-danger-zone-x", value),)))
    assert far.got[0].headers["typesafe-danger-zone-x"].encode("latin-1") == value.encode()


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_bodies_of_any_size_go_up_and_come_back_byte_for_byte(loop: str) -> None:
    async def there_and_back() -> None:
        async with upstream() as far, NetworkModel() as model:
            for size in (1, 100, 65_535, 65_536, 65_537, 2**20 + 1, 5 * 2**20):
                sent, far.reply = random.Random(size).randbytes(size), random.Random(-size).randbytes(size)
                came = await model.answer(to(far.url, sent), Key())
                assert isinstance(came, Reply) and came.body == far.reply
                assert far.got.pop().body == sent

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(there_and_back())


async def test_what_is_kept_of_a_reply_comes_back_as_it_was_said() -> None:
    async with upstream() as far:
        far.status = 429
        far.headers = [("content-type", "text/plain; charset=x"), ("x-typesafe-request-id", "req_1"), ("x-other", "no")]
        far.headers += [("Retry-After", "5"), ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), ("retry-after-ms", "9")]
        came = await once(to(far.url))
    waits = ("5", "Wed, 21 Oct 2026 07:28:00 GMT")
    assert came == Reply(429, answer(), "text/plain; charset=x", "req_1", waits, ("9",))


@pytest.mark.parametrize("value", VALUES)
async def test_a_client_s_header_goes_through_the_whole_server_byte_for_byte(tmp_path: Path, value: str) -> None:
    async with upstream() as far, site(tmp_path / "a.db", far.url) as here:
        assert (await here.ask(TypeSafe_Danger_Zone_X=value)).status == 200
    assert far.got[0].headers["typesafe-danger-zone-x"].encode("latin-1") == value.encode()


async def test_a_header_that_could_not_go_up_as_it_is_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    async with upstream() as far, site(tmp_path / "a.db", far.url) as here:
        reader, writer = await dial(here.url, body(), b"typesafe-danger-zone-x: \xe9\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()
    assert far.got == []


async def test_a_content_type_comes_back_byte_for_byte_now_and_from_the_record(tmp_path: Path) -> None:
    raw = b'application/json; name="\xc3\xa9\xe9"'
    async with upstream() as far, site(tmp_path / "a.db", far.url) as here:
        far.behave = says(b"HTTP/1.1 200 OK\r\ncontent-type: " + raw + whole(head=b"\r\n"))
        said = [await here.ask(), await here.ask(), await here.ask(Archive_Answer="1")]
    assert [one.headers["Content-Type"].encode("utf-8", "surrogateescape") for one in said] == [raw] * 3
    assert len(far.got) == 1
