"""A kept answer by the short road through uvicorn (web/fast.py): every byte, count and log line is the long road's.

Each table goes to two servers over raw sockets, segment by segment: one as it is built, one without the short road.
"""

import asyncio
import gzip
import re
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from archive.actor.actor import Actor
from archive.admin import AddToken, RevokeToken
from archive.errors import Invalid
from archive.tokens import PREFIX, hashed
from tests.fakes import FakeClock, Site, answer, body, upstream
from tests.roads import HEAD, HOSTED, PLAIN, Case, Line, Seen, alike, masked, post, server
from tests.wires import in_chunks, says
from web import fast
from web.system_one import Route

DONE = b"data: [DONE]\n\n"
OTHER = PREFIX + "B" * 43


def one(data: bytes, **more: Any) -> Case:
    """A case of one segment."""
    return Case((data,), **more)


def headed(headers: bytes, **more: Any) -> Case:
    """The plain request with a header more."""
    return one(post(headers=headers), **more)


CASES: dict[str, Case] = {
    "plain": one(PLAIN, short=1),
    "the body by itself": Case((HEAD, body()), short=1),
    "the body in two": Case((HEAD, body()[:9], body()[9:])),
    "the head in two": Case((PLAIN[:30], PLAIN[30:])),
    "an empty line before": one(b"\r\n" + PLAIN, short=1),
    "an empty line by itself": Case((b"\r\n", PLAIN), short=1),
    "two in a segment": one(PLAIN + PLAIN, replies=2),
    "five in a segment": one(PLAIN * 5, replies=5),
    "one and a half": Case((PLAIN + PLAIN[:50], PLAIN[50:]), replies=2),
    "one and a head": Case((PLAIN + HEAD, body()), replies=2),
    "the head, and more than the body": Case((HEAD, body() + PLAIN), replies=2),
    "a known head, and a body nobody asked before": one(post(body("Is it!")), short=1),
    "a body that is no JSON": one(post(b"Is it?"), short=1),
    "a body of 100 KB": one(post(body("x" * 100_000))),
    "a body of 3 MB": one(post(b"x" * 3_000_000)),
    "no body": one(post(b""), short=1),
    "a provider's key": headed(b"authorization: Bearer sk-1\r\n", short=1),
    "a key that no key is": headed(b"authorization: Bearer \xe9\r\n"),
    "a token of ours that is none here": headed(b"authorization: Bearer %s\r\n" % OTHER.encode()),
    "any header that means nothing": headed(b"x-whatever: 1\r\nx-whatever: 2\r\n", short=1),
    "other letters": one(PLAIN.replace(b"host:", b"HOST:").replace(b"content-type", b"Content-Type"), short=1),
    "a charset": one(PLAIN.replace(b"/json", b"/json; charset=utf-8"), short=1),
    "+json": one(PLAIN.replace(b"/json", b"/x+json"), short=1),
    "another type": one(PLAIN.replace(b"/json", b"/xml")),
    "multipart": one(PLAIN.replace(b"application/json", b"multipart/form-data; boundary=a")),
    "a forwarded header": headed(b"typesafe-danger-zone-a: 1\r\n", short=1),
    "a forwarded header that is not UTF-8": headed(b"typesafe-danger-zone-a: \xff\r\n"),
    "gzip": one(post(gzip.compress(body(), mtime=0), b"content-encoding: gzip\r\n")),
    "identity": headed(b"content-encoding: identity\r\n"),
    "an encoding that is none": headed(b"content-encoding: none\r\n"),
    "a version": headed(b"archive-answer: 1\r\n"),
    "a version there is not": headed(b"archive-answer: 9\r\n"),
    "no version": headed(b"archive-answer: x\r\n"),
    "afresh": headed(b"archive-answer: fresh\r\n"),
    "kept only": headed(b"cache-control: only-if-cached\r\n"),
    "no cache": headed(b"cache-control: no-cache\r\n", short=1),
    "a name": headed(b"archive-about: a\r\n"),
    "a name that is none": headed(b"archive-about: %\r\n"),
    "an empty name": headed(b"archive-about: \r\n", short=1),
    "another host": one(PLAIN.replace(b"localhost", b"example.com")),
    "no host": one(PLAIN.replace(b"host: localhost\r\n", b"")),
    "two hosts": headed(b"host: example.com\r\n"),
    "a port": one(PLAIN.replace(b"localhost", b"localhost:1"), short=1),
    "another origin": headed(b"origin: http://example.com\r\n"),
    "another site": headed(b"sec-fetch-site: cross-site\r\n"),
    "the same site": headed(b"sec-fetch-site: same-origin\r\n", short=1),
    "a query": one(post(first=b"POST /v1/systemone?a=1 HTTP/1.1")),
    "a whole address": one(post(first=b"POST http://localhost/v1/systemone HTTP/1.1"), short=1),
    "an escaped address": one(post(first=b"POST /v1/system%6fne HTTP/1.1"), short=1),
    "nowhere": one(post(first=b"POST /v1/nowhere HTTP/1.1")),
    "a page": one(post(first=b"POST / HTTP/1.1")),
    "GET": one(post(first=b"GET /v1/systemone HTTP/1.1")),
    "PUT": one(post(first=b"PUT /v1/systemone HTTP/1.1")),
    "HEAD": one(post(first=b"HEAD /v1/systemone HTTP/1.1"), bodies=False),
    "models": one(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    "1.0": one(post(first=b"POST /v1/systemone HTTP/1.0"), closes=True),
    "1.0, kept alive": one(post(None, b"connection: keep-alive\r\n", b"POST /v1/systemone HTTP/1.0"), closes=True),
    "closed after": headed(b"connection: close\r\n", closes=True),
    "kept alive": headed(b"connection: keep-alive\r\n", short=1),
    "chunked": one(b"POST /v1/systemone HTTP/1.1\r\n%stransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
                   % (HOSTED, len(body()), body())),
    "chunked and a length": headed(b"transfer-encoding: chunked\r\n", closes=True),
    "two lengths": headed(b"content-length: 3\r\n", closes=True),
    "100-continue": headed(b"expect: 100-continue\r\n"),
    "an upgrade to what is not": headed(b"connection: upgrade\r\nupgrade: x\r\n"),
    "a line that ends badly": headed(b"a: b\n", closes=True),
    "a line of its own": headed(b"a: b\r\n c\r\n", closes=True),
    "a length that is none": one(PLAIN.replace(b"content-length: ", b"content-length: +"), closes=True),
    "a large head": headed(b"x: %s\r\n" % (b"y" * 5_000)),
    "no HTTP": one(b"nonsense\r\n\r\n", closes=True),
}  # fmt: skip


async def test_every_case_is_answered_byte_for_byte_as_without(tmp_path: Path, clock: FakeClock) -> None:
    """Each three times: a head is seen, is learned, and takes the short road then, which is counted."""
    shorts: dict[str, int] = {}

    async def told(here: Site, seen: Seen) -> dict[str, list[bytes]]:
        replies: dict[str, list[bytes]] = {}
        for name, case in CASES.items():
            for _ in range(3):
                line, before = await Line.to(here, seen), seen.short
                replies.setdefault(name, []).append(masked(await line.said(case)))
                line.writer.close()
                shorts[name] = seen.short - before - (1 if case.closes else 2)
        return replies

    said, _ = await alike(tmp_path, told)
    assert shorts == {name: case.short for name, case in CASES.items()}
    assert {len(three) for three in said.values()} == {3}


async def test_a_request_cut_anywhere_is_answered_as_without(tmp_path: Path, clock: FakeClock) -> None:
    """In two at each place, and byte by byte. Only a cut right behind the head leaves the short road open."""

    async def told(here: Site, seen: Seen) -> list[bytes]:
        line = await Line.to(here, seen)
        replies: list[bytes] = []
        for _ in range(2):
            await line.send(PLAIN)
            replies.append(await line.reply())
        for at in range(1, len(PLAIN)):
            await line.send(PLAIN[:at], PLAIN[at:])
            replies.append(await line.reply())
        await line.send(*(bytes([byte]) for byte in PLAIN))
        replies.append(await line.reply())
        line.writer.close()
        return [masked(reply) for reply in replies]

    said, seen = await alike(tmp_path, told)
    assert len(set(said[1:])) == len(PLAIN) + 1  # each delivery's own number is all that differs
    assert seen.short == 1


async def test_no_request_is_taken_for_another(tmp_path: Path, clock: FakeClock) -> None:
    """Two whose heads differ in one segment; a refused body that is itself a request; a body that ends in one."""
    second = post(headers=b"archive-answer: 9\r\n")
    refused = b"POST /v1/systemone HTTP/1.1\r\nhost: example.com\r\ncontent-length: %d\r\n\r\n" % len(PLAIN)
    both = post(body() + PLAIN)
    steps = [(PLAIN, 1), (PLAIN, 1), (second + PLAIN, 2), (second + PLAIN, 2), (second, 1), (PLAIN + second, 2),
             (PLAIN, 1), (second, 1),
             (refused, 1), (PLAIN, 0), (PLAIN, 1), (both, 1), (both, 1), (PLAIN + PLAIN, 2), (PLAIN, 1)]  # fmt: skip

    async def told(here: Site, seen: Seen) -> list[bytes]:
        line, replies = await Line.to(here, seen), list[bytes]()
        for segment, count in steps:
            await line.send(segment)
            replies += [masked(await line.reply()) for _ in range(count)]
        line.writer.close()
        return replies

    said, seen = await alike(tmp_path, told)
    assert [int(reply[9:12]) for reply in said] == [200, 200, *[404, 200] * 4, 404, 403, *[200] * 6]
    assert seen.short == 2


async def test_a_body_that_is_too_large_is_not_waited_for(tmp_path: Path, clock: FakeClock) -> None:
    async def told(here: Site, seen: Seen) -> list[bytes]:
        replies: list[bytes] = []
        for _ in range(3):
            line = await Line.to(here, seen)
            await line.send(HEAD.replace(b"content-length: ", b"content-length: 9000000"))
            replies.append(masked(await line.reply()))
            line.writer.close()
        return replies

    said, _ = await alike(tmp_path, told)
    assert [int(reply[9:12]) for reply in said] == [413] * 3


async def test_what_is_still_being_answered_comes_first(tmp_path: Path) -> None:
    async with upstream() as model, server(tmp_path / "a.db", model, short=True) as (here, seen):
        line = await Line.to(here, seen)
        for _ in range(3):
            await line.send(PLAIN)
            await line.reply()
        await model.arrived.acquire()
        model.gate = asyncio.Event()
        await line.send(post(body("slow")))
        await model.arrived.acquire()
        await line.send(PLAIN)
        model.gate.set()
        replies = [await line.reply(), await line.reply()]
        assert [b"archive-sent: now" in reply for reply in replies] == [True, False]
        assert seen.short == 1
        line.writer.close()


async def test_tokens_rates_and_archives_of_ones_own_count_as_without(tmp_path: Path, clock: FakeClock) -> None:
    """Also when a token is revoked, or the first one made, after its head was learned; the hash is all that is held."""
    on = {name: headed(b"authorization: Bearer %s\r\n" % (PREFIX + name * 43).encode()) for name in "ABC"}
    steps: list[str | AddToken | RevokeToken] = [
        "", "", "A", AddToken("a", hashed((PREFIX + "A" * 43).encode()), minute_asks_max=4), "", "A", "A", "B", "C",
        AddToken("b", hashed((PREFIX + "B" * 43).encode()), private=True), "B", "B", "B", "A", "A", "A", "A", "",
        RevokeToken(2), "B", "B", "A", AddToken("c", hashed((PREFIX + "C" * 43).encode()), fresh=False), "C", "C",
        RevokeToken(1), "A", RevokeToken(3), "C", "", "B",
    ]  # fmt: skip

    async def told(here: Site, seen: Seen) -> list[bytes]:
        line, replies = await Line.to(here, seen), list[bytes]()
        for step in steps:
            if isinstance(step, str):
                await line.send(on[step].segments[0] if step else PLAIN)
                replies.append(masked(await line.reply()))
            else:
                await here.door.send(step)
        line.writer.close()
        return replies

    said, seen = await alike(tmp_path, told)
    statuses = [int(reply[9:12]) for reply in said]
    assert statuses == [200] * 2 + [401, 403, 200, 200, 401, 401] + [200] * 5 + [429, 429, 403, 401, 401, 429] + [
        200, 200, 401, 401, 403, 401,
    ]  # fmt: skip
    assert seen.short == 6
    assert PREFIX not in repr(seen.protocols[0].heads) and len(seen.protocols[0].heads) == 4


async def test_a_stream_takes_the_long_road(tmp_path: Path, clock: FakeClock) -> None:
    async def told(here: Site, seen: Seen) -> list[bytes]:
        line, asked = await Line.to(here, seen), post(body(stream=True))
        replies: list[bytes] = []
        for _ in range(3):
            await line.send(asked)
            replies.append(masked(await line.reply()))
        line.writer.close()
        return replies

    chunks = [b'data: {"model":"m-1","choices":[{"delta":{"content":"a"},', b'"finish_reason":"stop"}]}\n\n', DONE]
    said, seen = await alike(tmp_path, told, behave=says(in_chunks(*chunks)))
    assert seen.short == 0
    assert all(b"transfer-encoding: chunked\r\n" in reply and reply.count(DONE) == 1 for reply in said)


async def test_an_error_of_ours_is_told_as_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as model, server(tmp_path / "a.db", model, short=True) as (here, seen):
        line = await Line.to(here, seen)
        for _ in range(2):
            await line.send(PLAIN)
            assert b" 200 OK" in await line.reply()
        for error, status in [(ZeroDivisionError("secret"), b" 500 "), (Invalid("Not so."), b" 400 ")]:

            def fails(*_: object, error: Exception = error) -> None:
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(Actor, "at_once", fails)
                patch.setattr(Route, "at_once", fails)
                await line.send(PLAIN)
                assert status in await line.reply()
        line.writer.close()
        assert here.log == [("POST /v1/systemone", status) for status in (200, 200, 500, 400)]


async def test_who_does_not_read_is_waited_for_and_then_gets_every_answer_in_order(tmp_path: Path) -> None:
    """The connection's buffer stays as small as without: past its mark the long road takes over, which waits."""
    large = b'{"note":"%s",' % (b"x" * 1_000_000) + answer()[1:]
    asked, high = post(), list[int]()
    for short in (False, True):
        async with upstream() as model, server(tmp_path / f"{short}.db", model, short=short) as (here, seen):
            model.reply = large
            line = await Line.to(here, seen, limit=2**16)
            for _ in range(3):
                await line.send(asked)
                assert (await line.reply()).endswith(large)
            line.reading(False)
            transport: Any = seen.protocols[-1].transport
            for at in range(20):
                line.writer.write(asked)
                if transport.is_reading():
                    await seen.until(len(asked) * (4 + at))
                high.append(transport.get_write_buffer_size())
            line.reading(True)
            numbers = [await line.reply() for _ in range(20)]
            assert all(reply.endswith(large) for reply in numbers)
            found = [int(n[1]) for reply in numbers if (n := re.search(rb"archive-delivery: \w+-(\d+)", reply))]
            assert found == list(range(4, 24))
            line.writer.close()
    assert max(high) < 8 * len(large)
    assert max(high[20:]) <= max(high[:20]) + len(large)


@pytest.mark.parametrize("end", ["the client leaves", "the server stops"])
async def test_a_head_that_is_held_ends_as_without(tmp_path: Path, clock: FakeClock, end: str) -> None:
    async def told(here: Site, seen: Seen) -> Any:
        line = await Line.to(here, seen)
        for _ in range(2):
            await line.send(PLAIN)
            await line.reply()
        await line.send(HEAD)
        protocol = seen.protocols[-1]
        assert protocol.timeout_keep_alive_task is None
        if end == "the client leaves":
            line.writer.close()
            await seen.lost.wait()
            await asyncio.gather(*protocol.tasks)
            return here.log[2:]
        protocol.shutdown()
        await line.send(body())
        reply = masked(await line.reader.read())
        line.writer.close()
        return reply

    said, seen = await alike(tmp_path, told)
    assert seen.short == 0
    if end == "the client leaves":
        assert said == [("POST /v1/systemone", 400)]
    else:
        assert b" 200 OK\r\n" in said and b"\r\nconnection: close\r\n" in said


async def test_a_connection_that_rests_is_closed_as_long_after_its_last_answer_as_without(tmp_path: Path) -> None:
    async with upstream() as model, server(tmp_path / "a.db", model, short=True) as (here, seen):
        line = await Line.to(here, seen)
        for _ in range(3):
            await line.send(PLAIN)
            await line.reply()
        (protocol,) = seen.protocols
        first = protocol.timeout_keep_alive_task
        await line.send(PLAIN)
        await line.reply()
        assert seen.short == 2 and protocol.timeout_keep_alive_task is first
        first.cancel()
        protocol.timeout_keep_alive_handler()
        again = protocol.timeout_keep_alive_task
        assert again is not first and not again.cancelled()
        assert 4.5 < again.when() - protocol.loop.time() <= protocol.timeout_keep_alive == 5
        again.cancel()
        protocol._answered_at -= 5
        protocol.timeout_keep_alive_handler()
        assert await line.reader.read() == b""
        line.writer.close()


def test_it_is_built_beside_the_uvicorn_that_is_locked_and_any_other_does_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When this is red: read what changed in uvicorn's HttpToolsProtocol, run this file, and then name the new one."""
    lock = (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")
    assert f"\nuvicorn=={fast.UVICORN}" in lock
    assert fast.protocol(lambda _: None) != "httptools"
    monkeypatch.setattr(uvicorn, "__version__", "0.55.0")
    assert fast.protocol(lambda _: None) == "httptools"
