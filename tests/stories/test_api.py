"""The raw endpoint: who is let in, and that a body, compressed or plain, is what it says it is and no larger."""

import asyncio
import gzip
import json
import re
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zstandard

from tests.fakes import Said, answer, body, site, upstream
from tests.process import Process, process
from tests.stored import rows

LONG = body("Is it? " * 1000)
ZSTD = zstandard.ZstdCompressor()


def zstd_stream(data: bytes) -> bytes:
    """A frame that does not say how long its content is, as streaming clients write it."""
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(data) + stream.flush()


SAME = {
    "gzip": gzip.compress(LONG),
    "x-gzip": gzip.compress(LONG, 1),
    "GZIP": gzip.compress(LONG, 9),
    "zstd": ZSTD.compress(LONG),
    " Zstd": zstd_stream(LONG),
    "gzip, in members": gzip.compress(LONG[:99]) + gzip.compress(b"") + gzip.compress(LONG[99:]),
    "zstd, in frames": ZSTD.compress(LONG[:99]) + zstd_stream(b"") + zstd_stream(LONG[99:]),
    "deflate": zlib.compress(LONG),
    "identity": LONG,
}


async def test_a_compressed_body_is_the_same_request_as_its_plain_bytes(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        first = await here.ask(SAME["gzip"], Content_Encoding="gzip")
        plain = await here.ask(LONG)
        others = [await here.ask(data, Content_Encoding=name.partition(",")[0]) for name, data in SAME.items()]
    assert (first.status, first.headers["Archive-Sent"]) == (200, "now")
    assert {(one.status, one.body, one.headers["Archive-Sent"]) for one in (plain, *others)} == {(200, answer(), "no")}
    assert [got.body for got in model.got] == [LONG]
    assert "content-encoding" not in model.got[0].headers


@pytest.mark.parametrize("name", ["gzip", "zstd"])
async def test_a_compressed_ask_after_a_plain_one_is_a_hit(tmp_path: Path, name: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask(LONG)
        said = await here.ask(SAME[name], Content_Encoding=name)
    assert (said.headers["Archive-Sent"], len(model.got)) == ("no", 1)


TORN: dict[str, tuple[str, bytes]] = {
    "gzip that is none": ("gzip", LONG),
    "gzip cut in its head": ("gzip", SAME["gzip"][:8]),
    "gzip cut in the middle": ("gzip", SAME["gzip"][:-30]),
    "gzip cut in its sum": ("gzip", SAME["gzip"][:-1]),
    "gzip with a wrong sum": ("gzip", SAME["gzip"][:-8] + bytes(4) + SAME["gzip"][-4:]),
    "gzip and more": ("gzip", SAME["gzip"] + b"x"),
    "gzip of nothing": ("gzip", b""),
    "zlib": ("gzip", zlib.compress(LONG)),
    "zstd that is none": ("zstd", LONG),
    "zstd cut": ("zstd", SAME["zstd"][:-1]),
    "zstd stream cut": ("zstd", SAME[" Zstd"][:-1]),
    "zstd and more": ("zstd", SAME["zstd"] + b"x"),
    "zstd of nothing": ("zstd", b""),
    "gzip called zstd": ("zstd", SAME["gzip"]),
    "deflate that is none": ("deflate", LONG),
    "deflate cut": ("deflate", zlib.compress(LONG)[:-1]),
    "deflate twice": ("deflate", zlib.compress(LONG) * 2),
    "br": ("br", LONG),
    "two of them": ("gzip, gzip", gzip.compress(SAME["gzip"])),
}


@pytest.mark.parametrize("name", TORN)
async def test_a_body_that_is_not_what_its_encoding_says_is_refused(tmp_path: Path, name: str) -> None:
    """Half a question must never be asked, nor one with something behind it."""
    encoding, data = TORN[name]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(data, Content_Encoding=encoding)
    assert (said.status, said.error) == (400, "invalid")
    assert "Content-Encoding" in said.text
    assert model.got == []


def bomb(name: str) -> bytes:
    """300 MB of zeros, packed."""
    zeros = bytes(1_000_000)
    stream = zlib.compressobj(9, wbits=31) if name == "gzip" else zstandard.ZstdCompressor().compressobj()
    return b"".join([*(stream.compress(zeros) for _ in range(300)), stream.flush()])


def peak(here: Process) -> int:
    """The most memory a process has ever held, in bytes."""
    status = Path(f"/proc/{here.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.parametrize("name", ["gzip", "zstd"])
async def test_a_bomb_is_refused_and_never_unpacked(tmp_path: Path, name: str) -> None:
    """300 MB of zeros come as some kilobytes; memory grows by the limit of a body and not by what is in it."""
    packed = bomb(name)
    async with upstream() as model, process(tmp_path / "a.db", model.url, ASKONCE_BODY_BYTES_MAX="1000000") as here:
        await here.ask(SAME[name], Content_Encoding=name)
        before = peak(here)
        said = [await here.ask(packed, Content_Encoding=name) for _ in range(5)]
        grown = peak(here) - before
        assert (await here.ask(SAME[name], Content_Encoding=name)).status == 200
    assert {(one.status, one.error) for one in said} == {(413, "too_large")}
    assert grown < 16_000_000
    assert len(model.got) == 1


HEAD = b"POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def refused_early(url: str, head: bytes, more: bytes) -> tuple[int, int]:
    """Send a head, then `more` again and again until a reply comes; its status, and how many bytes went up by then."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(HEAD + head + b"\r\n")
    sent = 0

    async def push() -> None:
        nonlocal sent
        while more:
            writer.write(more)
            sent += len(more)
            await writer.drain()

    pushing = asyncio.create_task(push())
    async with asyncio.timeout(60):
        line = await reader.readline()
    pushing.cancel()
    await asyncio.wait([pushing])
    writer.transport.abort()
    return int(line.split(b" ")[1]), sent


async def test_a_body_that_calls_itself_too_large_is_refused_before_it_comes(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        status, sent = await refused_early(here.url, b"Content-Length: 300000000\r\n", b"")
    assert (status, sent, model.got) == (413, 0, [])


async def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(tmp_path: Path) -> None:
    """Nobody has to say how long a chunked body will be, so it is counted (B76: long before the end of 200 MB)."""
    chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
    async with upstream() as model, site(tmp_path / "a.db", model.url, body_bytes_max=1_000_000) as here:
        status, sent = await refused_early(here.url, b"Transfer-Encoding: chunked\r\n", chunk)
    assert (status, model.got) == (413, [])
    assert sent < 50_000_000


async def test_the_largest_body_that_is_taken_is_taken_whole(tmp_path: Path) -> None:
    """One byte more is refused, however it comes."""
    most = 100_000
    whole = body("x" * (most - len(body(""))))

    async def chunked(data: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(data), 7777):
            yield data[start : start + 7777]

    async with upstream() as model, site(tmp_path / "a.db", model.url, body_bytes_max=most) as here:
        taken = [
            await here.ask(whole),
            await here.send("POST", "/v1/systemone", chunked(whole), Content_Type="application/json"),
            await here.ask(gzip.compress(whole), Content_Encoding="gzip"),
            await here.ask(ZSTD.compress(whole), Content_Encoding="zstd"),
        ]
        refused = [
            await here.ask(whole + b" "),
            await here.send("POST", "/v1/systemone", chunked(whole + b" "), Content_Type="application/json"),
            await here.ask(gzip.compress(whole + b" "), Content_Encoding="gzip"),
            await here.ask(ZSTD.compress(whole + b" "), Content_Encoding="zstd"),
        ]
    assert [one.status for one in taken] == [200] * 4
    assert [(one.status, one.error) for one in refused] == [(413, "too_large")] * 4
    assert [got.body for got in model.got] == [whole]


async def test_a_body_cut_off_by_its_sender_is_asked_by_nobody(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        host, _, port = here.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(LONG) + LONG[:-1])
        writer.write_eof()
        await reader.read()
        writer.close()
        await here.ask()
    assert [got.body for got in model.got] == [body()]
    assert rows(store, "SELECT count(*) FROM request") == [(1,)]


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "text/json", "multipart/mixed; boundary=x", "application/x-www-form-urlencoded",
     "application/jsonx", "text/plain; application/json", "application/json, text/plain"],
)  # fmt: skip
async def test_only_json_and_multipart_are_taken(tmp_path: Path, content_type: str) -> None:
    """What a foreign page's form can send without asking must not cost a call."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(Content_Type=content_type)
    assert (said.status, said.error, model.got) == (400, "invalid", [])
    assert "Content-Type: application/json" in said.text


# -- from where, and to whom -------------------------------------------------------------------------------------------


def own(url: str) -> dict[str, list[str]]:
    port = url.rpartition(":")[2]
    return {
        "Host": [f"localhost:{port}", f"LOCALHOST:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "localhost", "[::1]",
                 "ask.example.org", "ask.example.org:443", "Ask.Example.Org"],
        "Origin": [f"http://localhost:{port}", f"http://127.0.0.1:{port}", f"http://[::1]:{port}",
                   "https://ask.example.org"],
    }  # fmt: skip


async def test_our_own_names_and_the_one_the_owner_gave_are_answered_to(tmp_path: Path) -> None:
    async with (
        upstream() as model,
        site(tmp_path / "a.db", model.url, public_url="https://ask.example.org") as here,
    ):
        said = [
            (name, value, await here.ask(**{name: value})) for name, values in own(here.url).items() for value in values
        ]
    assert [(name, value) for name, value, one in said if one.status != 200] == []


FOREIGN = [
    ("Host", "evil.example"), ("Host", "evil.example:80"), ("Host", "localhost.evil.example"), ("Host", "[::2]"),
    ("Host", "ask.example.org.evil.example"), ("Host", "127.0.0.1.nip.example"), ("Host", ""), ("Host", ":80"),
    ("Origin", "https://evil.example"), ("Origin", "null"), ("Origin", ""), ("Origin", "http://localhost"),
    ("Origin", "http://localhost:1"), ("Origin", "https://ask.example.org.evil.example"),
    ("Origin", "http://ask.example.org"), ("Origin", "https://ask.example.org:8443"), ("Origin", "file://"),
]  # fmt: skip
"""Rebound names, other people's pages, other ports of this machine, and the owner's name over another scheme."""


async def test_foreign_pages_and_foreign_names_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async with (
        upstream() as model,
        site(tmp_path / "a.db", model.url, public_url="https://ask.example.org") as here,
    ):
        said = [(name, value, await here.ask(**{name: value})) for name, value in FOREIGN]
        models = await here.send("GET", "/v1/models", Origin="https://evil.example")
    assert [(name, value) for name, value, one in said if one.status != 403] == []
    assert {one.error for _, _, one in said} == {"forbidden"}
    assert (models.status, model.got) == (403, [])


async def test_a_name_that_was_not_configured_is_not_answered_to(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        host = await here.ask(Host="ask.example.org")
        origin = await here.ask(Origin="https://ask.example.org")
    assert (host.status, origin.status, model.got) == (403, 403, [])


# -- addresses and methods ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_asking_takes_a_post_only(tmp_path: Path, method: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.send(method, "/v1/systemone")
    assert (said.status, said.headers["Allow"], model.got) == (405, "POST", [])
    assert said.body == b"" if method == "HEAD" else said.error == "invalid"


async def test_a_query_that_would_be_lost_on_the_way_is_refused(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.send("POST", "/v1/systemone?version=2", body(), Content_Type="application/json")
    assert (said.status, said.error, model.got) == (400, "invalid", [])


async def test_a_key_that_would_be_changed_on_the_way_is_refused(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(Authorization="Bearer clé")
    assert (said.status, said.error, model.got) == (400, "invalid", [])


async def test_listing_models_takes_a_get_only(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.send("POST", "/v1/models", body(), Content_Type="application/json")
    assert (said.status, said.headers["Allow"], said.error, model.got) == (405, "GET", "invalid", [])


@pytest.mark.parametrize("path", ["/nowhere", "/x/y", "/index.php", "/%00", "/systemtwo"])
async def test_an_unknown_address_is_said_so_in_system_ones_own_words(tmp_path: Path, path: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said: list[Said] = [await here.send(method, path) for method in ("GET", "POST")]
    for one in said:
        assert (one.status, one.headers["Content-Type"]) == (404, "application/json")
        assert json.loads(one.body) == {"detail": "Not Found"}
    assert model.got == []
