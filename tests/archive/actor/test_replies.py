"""What the network model makes of a reply's body: its encoding comes off whole, and a stream keeps its chunks."""

import asyncio
import gzip
import random
import zlib

import pytest
import zstandard

from archive.actor.model import NetworkModel, Wire
from archive.attempts import Came, Lost, Reply, Why
from archive.messages import Key
from archive.request import Destination, Request
from tests.fakes import Got, answer, body, upstream
from tests.wires import EVENTS_HEAD, OK_HEAD, hangs_up, in_chunks, says

LONG = answer() + b" " * 3000
ZSTD = zstandard.ZstdCompressor()


def to(url: str) -> Destination:
    """A place where anything may be asked."""
    return Destination("any", "POST", f"{url}/v1/any")


async def once(data: bytes, *, ends: bool = False, reply_bytes_max: int = 5000) -> Came:
    """What comes of one request that is replied to with `data`; `ends`: and then the connection."""
    async with upstream() as far, NetworkModel(Wire(reply_bytes_max=reply_bytes_max)) as model:
        far.behave = hangs_up(data) if ends else says(data)
        return await model.answer(Request(to(far.url), body()), Key())


def packed(name: str, data: bytes, head: bytes = OK_HEAD) -> bytes:
    """A response under a Content-Encoding."""
    return head + b"content-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (name.encode(), len(data)) + data


BARE = zlib.compressobj(wbits=-15)
PACKED = {
    "gzip": gzip.compress(LONG),
    "GZIP": gzip.compress(LONG[:9]) + gzip.compress(LONG[9:]),
    "x-gzip": gzip.compress(LONG),
    "zstd": ZSTD.compress(LONG),
    "deflate": zlib.compress(LONG),
    " deflate ": BARE.compress(LONG) + BARE.flush(),
    "identity": LONG,
}


@pytest.mark.parametrize("name", PACKED)
async def test_a_reply_that_was_packed_on_the_way_comes_unpacked(name: str) -> None:
    assert await once(packed(name, PACKED[name])) == Reply(200, LONG, "application/json")
    chunks = in_chunks(PACKED[name][:7], PACKED[name][7:], head=OK_HEAD + b"content-encoding: %s\r\n" % name.encode())
    assert await once(chunks) == Reply(200, LONG, "application/json")


UNREADABLE: dict[str, bytes] = {
    "not what it says": packed("gzip", LONG),
    "cut": packed("gzip", PACKED["gzip"][:-9]),
    "a wrong sum": packed("gzip", PACKED["gzip"][:-8] + bytes(8)),
    "something behind it": packed("gzip", PACKED["gzip"] + b"x"),
    "zstd cut": packed("zstd", PACKED["zstd"][:-1]),
    "deflate cut": packed("deflate", PACKED["deflate"][:-1]),
    "one nobody asked for": packed("br", b"\x0b\x02\x80hello\x03"),
    "two of them": packed("gzip, gzip", gzip.compress(PACKED["gzip"])),
    "two lines of them": packed("gzip\r\ncontent-encoding: gzip", gzip.compress(PACKED["gzip"])),
    "an error": packed("br", b"x", b"HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n"),
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_reply_that_cannot_be_unpacked_whole_is_no_reply(name: str) -> None:
    assert await once(UNREADABLE[name]) == Lost(Why.UNREADABLE)


async def test_a_reply_without_a_byte_has_nothing_to_unpack() -> None:
    assert await once(packed("gzip", b"")) == Reply(200, b"", "application/json")


def bomb(name: str) -> bytes:
    """300 MB of zeros, packed."""
    zeros = bytes(1_000_000)
    stream = zlib.compressobj(9, wbits=31) if name == "gzip" else zstandard.ZstdCompressor().compressobj()
    return b"".join([*(stream.compress(zeros) for _ in range(300)), stream.flush()])


@pytest.mark.parametrize("name", ["gzip", "zstd"])
async def test_the_limit_of_a_reply_holds_for_what_comes_out_of_it(name: str) -> None:
    assert await once(packed(name, PACKED[name]), reply_bytes_max=len(LONG)) == Reply(200, LONG, "application/json")
    too_large = Lost(Why.REPLY_TOO_LARGE)
    assert await once(packed(name, PACKED[name]), reply_bytes_max=len(LONG) - 1) == too_large
    assert await once(packed(name, bomb(name)), reply_bytes_max=1_000_000) == too_large
    nothing = gzip.compress(b"") if name == "gzip" else ZSTD.compress(b"")
    assert await once(packed(name, nothing * 900)) == too_large, "what came counts too"


CHUNKS = [b"data: \xe4", b"\xb8", b'\xad{"a', b'":', b'"b"}\n', b"\n", b"data: x\n\ndata: y\n\n", b"\n"]
"""A character, a token and events that begin and end anywhere but where chunks do."""


async def test_a_stream_keeps_the_chunks_it_came_in_however_it_travelled() -> None:
    """B28. HTTP's own chunks, whether all come at once or each alone; a large one is one."""
    large = random.Random(1).randbytes(200_000)
    pieces = [*CHUNKS, large, b"z"]
    whole = Reply(200, b"".join(pieces), "text/event-stream", cuts=tuple(map(len, pieces)))
    assert await once(in_chunks(*pieces), reply_bytes_max=10**6) == whole

    async def byte_by_byte(_: Got, writer: asyncio.StreamWriter) -> None:
        for byte in in_chunks(*CHUNKS):
            writer.write(bytes([byte]))
            await asyncio.sleep(0)

    async with upstream() as far, NetworkModel() as model:
        far.behave = byte_by_byte
        came = await model.answer(Request(to(far.url), body()), Key())
    assert isinstance(came, Reply)
    assert came.cuts == tuple(map(len, CHUNKS)) and came.body == b"".join(CHUNKS)


async def test_a_packed_stream_has_the_chunks_that_come_out() -> None:
    stream = zlib.compressobj(wbits=31)
    pieces = [stream.compress(piece) + stream.flush(zlib.Z_SYNC_FLUSH) for piece in CHUNKS] + [stream.flush()]
    came = await once(in_chunks(*pieces, head=EVENTS_HEAD + b"content-encoding: gzip\r\n"))
    assert came == Reply(200, b"".join(CHUNKS), "text/event-stream", cuts=tuple(map(len, CHUNKS)))


async def test_a_stream_without_chunks_is_cut_as_it_came_and_whole_when_its_length_says_so() -> None:
    data = b"".join(CHUNKS)
    came = await once(EVENTS_HEAD + b"content-length: %d\r\n\r\n" % len(data) + data)
    assert isinstance(came, Reply) and came.whole and sum(came.cuts) == len(came.body) == len(data)
    came = await once(EVENTS_HEAD + b"connection: close\r\n\r\n" + data, ends=True)
    assert isinstance(came, Reply) and not came.whole and sum(came.cuts) == len(came.body) == len(data)


@pytest.mark.parametrize("end", [b"", b"0\r\n", b"40\r\nda"])
async def test_a_stream_that_breaks_off_is_lost(end: bytes) -> None:
    """B20: though its own end may have come."""
    assert await once(in_chunks(*CHUNKS, b"data: [DONE]\n\n", end=end), ends=True) == Lost(Why.BROKEN_OFF)


async def test_a_stream_in_too_many_chunks_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archive.actor.model._CHUNKS_MAX", 9)
    assert isinstance(await once(in_chunks(*[b"x"] * 9)), Reply)
    assert await once(in_chunks(*[b"x"] * 20)) == Lost(Why.REPLY_TOO_LARGE)


async def test_what_is_no_stream_has_no_cuts() -> None:
    assert await once(in_chunks(b'{"a', b'":1}', head=OK_HEAD)) == Reply(200, b'{"a":1}', "application/json")
