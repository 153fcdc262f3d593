"""Nothing a client can send brings an error of ours: requests of the worst of each part, and broken ones.

The parts are drawn by a seeded generator, so each run sends the same. That no 500 is said is not enough: the logs must
not have an exception either, since whoever has hung up is told nothing.
"""

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from archive.wire import PROTOCOL
from tests.fakes import SECRET, Site, answer, body, site, upstream
from tests.hostile import BODIES, BROKEN, CHUNKS, FRAMES, HEADERS, METHODS, TARGETS
from tests.process import process

HANG_SECONDS_MAX = 60
CLIENT_FAULTS = {200, 303, 304, 400, 401, 403, 404, 405, 406, 409, 410, 411, 413, 415, 416, 422, 426, 431, 501}
OURS = {502, 503, 504}
"""What is said in words of a call that was made, or that nobody may make now: never by a bug."""


@asynccontextmanager
async def hosting(folder: Path, caplog: pytest.LogCaptureFixture) -> AsyncGenerator[Site, None]:
    """A server, which afterwards still works, has said no 500 to anybody, and logged no fault of its own."""
    async with upstream() as model, site(folder / "a.db", model.url) as here:
        with caplog.at_level(logging.WARNING):
            yield here
            assert (await here.ask(body("Are you well?"))).body == answer()
        assert {status for _, status in here.log} <= CLIENT_FAULTS | OURS
    told = {record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info}
    assert told <= {"Invalid UTF-8 sequence received from client."}, "uvicorn's own word of a socket's bad text"


async def said(here: Site, data: bytes, *, ends: bool) -> list[int]:
    """Send these bytes; the statuses of all that comes until the server closes. `ends`: the client says it is done."""
    host, _, port = here.url.removeprefix("http://").partition(":")
    async with asyncio.timeout(HANG_SECONDS_MAX):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            if ends:
                writer.write_eof()
            came = await reader.read()
        except ConnectionError:
            came = b""
        finally:
            writer.transport.abort()
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", came)]


def put_together(here: Site, draw: random.Random) -> bytes:
    """One request that is framed as it should be, and whose every part may be the worst of its kind."""
    data = draw.choice(BODIES)
    place = here.url.removeprefix("http://").encode()
    host = draw.choice([place] * 6 + [b"127.0.0.1", b"[", b"\xff", b"elsewhere.example", b""])
    lines = [
        draw.choice(METHODS) + b" " + draw.choice(TARGETS) + draw.choice([b" HTTP/1.1", b" HTTP/1.1", b" HTTP/1.0"])
    ]
    lines += [b"host: " + host, b"connection: close", b"content-length: %d" % len(data)]
    lines += draw.sample(HEADERS, draw.randrange(4))
    return b"\r\n".join(lines) + b"\r\n\r\n" + data


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_a_request_is_made_of_it_gets_an_answer_that_is_no_error_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    draw = random.Random(seed)
    statuses: set[int] = set()
    async with hosting(tmp_path, caplog) as here:
        for _ in range(40):
            sent = [put_together(here, draw) for _ in range(10)]
            for request, got in zip(
                sent, await asyncio.gather(*(said(here, one, ends=False) for one in sent)), strict=True
            ):
                assert set(got) <= CLIENT_FAULTS | OURS | {100, 101}, (request[:300], got)
                # An answer that comes before a long body has been read is lost when the connection is reset.
                assert got or len(request) > 50_000, request[:300]
                statuses |= set(got)
    assert {200, 400, 403, 404, 405} <= statuses


async def test_what_is_no_request_ends_its_own_connection_and_disturbs_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /v1/systemone HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    chunked = [head + b"transfer-encoding: chunked\r\n\r\n" + chunk for chunk in CHUNKS]
    async with hosting(tmp_path, caplog) as here:
        for broken in [*BROKEN, *chunked]:
            got = await said(here, broken, ends=True)
            assert set(got) <= CLIENT_FAULTS | OURS, (broken[:300], got)


async def test_what_is_broken_off_or_flipped_anywhere_is_no_error_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(7)
    async with hosting(tmp_path, caplog) as here:
        for _ in range(60):
            sent: list[bytes] = []
            for _ in range(10):
                request = bytearray(put_together(here, draw))
                for _ in range(draw.randrange(4)):
                    request[draw.randrange(min(len(request), 500))] = draw.randrange(256)
                sent.append(bytes(request[: draw.randrange(1, len(request) + 1)]))
            for request, got in zip(
                sent, await asyncio.gather(*(said(here, one, ends=True) for one in sent)), strict=True
            ):
                assert set(got) <= CLIENT_FAULTS | OURS | {100, 101}, (request[:300], got)


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_a_hundred_requests_in_one_go_are_answered_one_after_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: bytes
) -> None:
    """In HTTP/1.0 a connection ends with its first answer, and what comes after it is dropped."""
    one = b"POST /v1/systemone HTTP/%s\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
    all_of_them = [one % (version, len(body(str(n)))) + b"\r\n" + body(str(n)) for n in range(99)]
    last = one % (version, len(body("99"))) + b"connection: close\r\n\r\n" + body("99")
    async with hosting(tmp_path, caplog) as here:
        got = await said(here, b"".join([*all_of_them, last]), ends=False)
    assert got == [200] * (100 if version == b"1.1" else 1)


@pytest.mark.parametrize("path", ["/live", "/wire"])
async def test_no_frame_is_too_large_or_too_odd_for_a_socket(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """B76: 50 MB are closed with 1009 as soon as they are announced, or as soon as there is too much of them."""
    codes: dict[str, int] = {}
    async with hosting(tmp_path, caplog) as here:
        host, _, port = here.url.removeprefix("http://").partition(":")
        own = f"origin: {here.url}" if path == "/live" else f"authorization: Bearer {SECRET}"
        head = f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nupgrade: websocket\r\nconnection: upgrade\r\n{own}\r\n"
        head += f"sec-websocket-version: 13\r\nsec-websocket-key: {'A' * 22}==\r\n"
        head += f"sec-websocket-protocol: {PROTOCOL}\r\n\r\n" if path == "/wire" else "\r\n"
        for name, frame in FRAMES.items():
            async with asyncio.timeout(HANG_SECONDS_MAX):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(head.encode())
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
                writer.write(frame)
                codes[name] = await closed(reader)
                writer.transport.abort()
    assert codes["50 MB"] == codes["50 MB in pieces"] == codes["more than there is"] == 1009
    assert set(codes.values()) <= {1002, 1007, 1008, 1009}


HALF = b"GET /live HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"


@pytest.mark.parametrize(
    "data",
    [HALF + b"content-length: 5\r\n\r\nhello", HALF + b"".join(b"x-%d: 1\r\n" % n for n in range(500)) + b"\r\n"],
    ids=["with a body", "with many headers"],
)
async def test_a_socket_whose_first_words_cannot_be_read_is_closed_and_the_server_can_still_stop(
    tmp_path: Path, data: bytes
) -> None:
    """uvicorn by itself leaves such a one open for good, and ends with an AssertionError at the next stop."""
    async with process(tmp_path / "a.db") as here, asyncio.timeout(HANG_SECONDS_MAX):
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(data)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.transport.abort()
        assert await here.terminate() == 0
        assert "Traceback" not in here.output()


async def closed(reader: asyncio.StreamReader) -> int:
    """The code with which a server closes a socket; what it says before is passed over."""
    while True:
        kind, size = await reader.readexactly(2)
        if size in {126, 127}:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        said = await reader.readexactly(size)
        if kind & 0x0F == 8:
            return int.from_bytes(said[:2], "big")
