"""A stream is recorded as it arrived, handed out whole in the chunks it came in, and never half."""

import asyncio
import json
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from archive.attempts import PAID_REFUSAL_SECONDS, State
from archive.live import Place
from tests.actors import assert_whole
from tests.fakes import FakeClock, Said, Site, Upstream, answer, body, site, upstream
from tests.stored import outcomes, rows
from tests.stories.conftest import Asked, ended
from tests.wires import EVENTS_HEAD, Behaviour, dial, hangs_up, in_chunks, resets, says

STREAM = body(stream=True)
CHUNKS = [
    b'data: {"model":"m-1","choices":[{"delta":{"content":"\xe4',
    b"\xb8",
    b'\xad"},"finish_reas',
    b'on":null}]}\n\ndata: {"choices":[{"delta":{"content":"\\u4e',
    b'00 \xe2\x80\xa8"},"finish_reason":"stop"}]}\n',
    b"\n",
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"cost":0.5}}\n\ndata: [DONE]\n\n',
]
"""Chat completions whose characters, tokens and events end anywhere but where chunks do."""

PLAIN = json.dumps({"model": "m-1", **json.loads(answer())}).encode()


class Heard(NamedTuple):
    """A response as its reader saw it, chunk by chunk."""

    status: int
    headers: Any
    chunks: list[bytes]


async def hear(here: Site, data: bytes = STREAM, **headers: str) -> Heard:
    """Ask, and read chunk by chunk."""
    sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with here.http.post(f"{here.url}/v1/systemone", data=data, headers=sent) as response:
        chunks, chunk = list[bytes](), b""
        async for piece, ends in response.content.iter_chunks():
            chunk += piece
            if ends:
                chunks.append(chunk)
                chunk = b""
        return Heard(response.status, response.headers.copy(), [*chunks, chunk] if chunk else chunks)


def streams(model: Upstream, *chunks: bytes) -> None:
    """Have the upstream say this, in these chunks."""
    model.behave = says(in_chunks(*(chunks or CHUNKS)))


async def test_a_stream_is_replayed_in_the_chunks_it_came_in_now_and_from_the_record(tmp_path: Path) -> None:
    """B28: nothing is split, joined or written anew; the joined bytes have the same SHA-256 as what arrived."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        streams(model)
        async with site(store, model.url) as here:
            said = [await hear(here), await hear(here)]
        async with site(store, model.url) as here:
            said += [await hear(here), await hear(here, Archive_Answer="1"), await hear(here, Accept_Encoding="gzip")]
    for one in said:
        assert one.chunks == CHUNKS
        assert sha256(b"".join(one.chunks)).digest() == sha256(b"".join(CHUNKS)).digest()
        assert (one.status, one.headers["Content-Type"]) == (200, "text/event-stream")
        assert one.headers["Transfer-Encoding"] == "chunked"
        assert "Content-Length" not in one.headers and "Content-Encoding" not in one.headers
    assert [one.headers["Archive-Sent"] for one in said] == ["now", "no", "no", "no", "no"]
    assert len(model.got) == 1
    assert rows(store, "SELECT input_tokens, output_tokens, cost, cut_short FROM outcome") == [(7, 2, 500_000_000, 0)]
    assert rows(store, "SELECT bytes FROM text t JOIN outcome o ON o.cuts = t.id") == [
        (json.dumps([len(chunk) for chunk in CHUNKS], separators=(",", ":")).encode(),)
    ]
    assert_whole(store)


async def test_a_stream_and_a_plain_answer_have_versions_and_receipts_of_their_own(
    tmp_path: Path, clock: FakeClock
) -> None:
    """B26, B27: which it is, how it came and when it was made stands with both, asked with a stream and without."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        streams(model)
        fresh = await hear(here)
        clock.advance(10)
        model.behave, model.reply = None, PLAIN
        plain = await here.ask()
        pinned = await here.ask(Archive_Answer="2")
        streams(model, *CHUNKS[:2], *CHUNKS[3:])
        again = await hear(here, Archive_Answer="fresh")
        kept, kept_plain = await hear(here, Archive_Answer="1"), await here.ask()
    assert (plain.body, kept_plain.body, pinned.status) == (PLAIN, PLAIN, 404)
    assert [one.headers["Archive-Answer"] for one in (fresh, plain, again, kept, kept_plain)] == [
        "1/1", "1/1", "2/2", "1/2", "1/1"
    ]  # fmt: skip
    assert [one.headers["Archive-Sent"] for one in (fresh, plain, again, kept, kept_plain)] == [
        "now", "now", "now", "no", "no"
    ]  # fmt: skip
    moments = [one.headers["Archive-Kept-At"] for one in (fresh, plain, again, kept, kept_plain)]
    assert moments[0] == moments[3] != moments[1] == moments[2] == moments[4]
    assert (kept.headers["Age"], kept.headers["Cache-Status"]) == ("10", "Askonce; hit")
    assert (fresh.headers["Archive-Cost-Now"], kept.headers["Archive-Cost-Now"]) == ("0.5", "0")
    assert kept.headers["Archive-Cost-Made"] == "0.5"
    assert fresh.headers["Archive-Call"] != plain.headers["Archive-Call"]
    assert "Transfer-Encoding" not in plain.headers


async def test_all_who_wait_for_a_stream_get_it_whole_though_the_first_has_left(tmp_path: Path, asked: Asked) -> None:
    """B20: and whoever hangs up in the middle of hearing it takes nothing from anybody."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        streams(model)
        model.gate = asyncio.Event()
        first, *others = [asyncio.create_task(hear(here)) for _ in range(5)]
        await asked.wait(5)
        first.cancel()
        await asyncio.wait([first])
        model.gate.set()
        said = await asyncio.gather(*others)
        reader, writer = await dial(here.url, STREAM)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(9)
        writer.transport.abort()
        kept = await hear(here)
    assert [one.chunks for one in (*said, kept)] == [CHUNKS] * 5
    assert len(model.got) == 1


BROKEN: dict[str, Behaviour] = {
    "B20 after three of its chunks": hangs_up(in_chunks(*CHUNKS[:3], end=b"")),
    "B20 reset after three of its chunks": resets(in_chunks(*CHUNKS[:3], end=b"")),
    "ended properly by somebody in between, after half": says(in_chunks(*CHUNKS[:4])),
    "its own end is there and HTTP's is not": hangs_up(in_chunks(*CHUNKS, end=b"")),
    "without a length, in the middle": hangs_up(EVENTS_HEAD + b"\r\n" + b"".join(CHUNKS[:4])),
    "shorter than it said": hangs_up(EVENTS_HEAD + b"content-length: 9999\r\n\r\n" + b"".join(CHUNKS)),
    "of no format we know, without a length": hangs_up(EVENTS_HEAD + b"\r\ndata: one\n\n"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_stream_that_was_cut_keeps_nothing_and_is_unknown(tmp_path: Path, name: str) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.behave = BROKEN[name]
        waited, later, looked = await hear(here), await hear(here), await hear(here, Cache_Control="only-if-cached")
        sent = len(model.got)
        streams(model)
        fresh, kept = await hear(here, Archive_Answer="fresh"), await hear(here)
    assert (waited.status, later.status, looked.status, sent) == (504, 409, 504, 1)
    for one in (waited, later):
        assert one.headers["Content-Type"] == "application/json" and b"data:" not in b"".join(one.chunks)
        assert b"Archive-Answer: fresh" in b"".join(one.chunks)
    assert fresh.chunks == kept.chunks == CHUNKS
    assert (kept.headers["Archive-Answer"], len(model.got)) == ("1/1", 2)
    assert outcomes(store) == ["unknown", "answered"]


async def test_a_stream_without_a_length_is_whole_when_its_own_end_is_there(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.behave = hangs_up(EVENTS_HEAD + b"\r\n" + b"".join(CHUNKS))
        first, kept = await hear(here), await hear(here)
    assert b"".join(first.chunks) == b"".join(CHUNKS) and kept.chunks == first.chunks
    assert (kept.headers["Archive-Sent"], len(model.got)) == ("no", 1)


async def test_an_error_inside_a_stream_is_never_handed_out_as_one(tmp_path: Path, clock: FakeClock) -> None:
    """B27: it was paid for, so for a minute it is shown instead of being bought again."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        streams(model, *CHUNKS[:4], b'"}}]}\n\ndata: {"error":{"message":"overloaded"}}\n\ndata: [DONE]\n\n')
        said = [await here.ask(STREAM), await here.ask(STREAM)]
        clock.advance(PAID_REFUSAL_SECONDS)
        streams(model)
        good = await hear(here)
    for one in said:
        assert (one.status, one.error, one.headers["Content-Type"]) == (502, "call_failed", "application/json")
        assert one.text == "The model's server refused it."
    assert (good.chunks, len(model.got)) == (CHUNKS, 2)
    assert outcomes(store) == ["failed", "answered"]


async def test_an_error_instead_of_a_stream_is_passed_on_as_it_came(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status, model.reply = 400, b'{"error":"no"}'
        said = await here.ask(STREAM)
        model.status, model.reply, model.headers = 400, b"data: no\n\n", [("content-type", "text/event-stream")]
        other = await here.ask(STREAM)
    assert (said.status, said.body, said.headers["Content-Type"]) == (400, b'{"error":"no"}', "application/json")
    assert (other.status, other.body, other.headers["Content-Length"]) == (400, b"data: no\n\n", "10")


async def test_a_late_stream_becomes_the_answer(tmp_path: Path, clock: FakeClock) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here, here.door.watch(Place("question")) as notices:
        streams(model)
        model.gate = asyncio.Event()
        asking = asyncio.create_task(hear(here))
        await model.arrived.acquire()
        clock.advance(30)
        assert (await asking).status == 504
        assert (await ended(notices)).state is State.UNKNOWN
        model.gate.set()
        assert (await ended(notices)).n == 1
        assert (await hear(here)).chunks == CHUNKS
    assert len(model.got) == 1


async def test_a_plain_answer_to_who_wanted_a_stream_is_kept_and_given_as_it_is(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = [await here.ask(STREAM), await here.ask(STREAM)]
    assert [(one.status, one.body, one.headers["Content-Type"]) for one in said] == [
        (200, answer(), "application/json")
    ] * 2
    assert len(model.got) == 1


async def test_a_client_without_chunks_gets_a_length(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        streams(model)
        await hear(here)
        host, _, port = here.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/systemone HTTP/1.0\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(STREAM)}\r\n\r\n".encode() + STREAM)
        said = await reader.read()
        writer.close()
    assert said.endswith(b"\r\n\r\n" + b"".join(CHUNKS))
    assert b"content-length: %d\r\n" % len(b"".join(CHUNKS)) in said and b"transfer-encoding" not in said


SHORT = {
    "B17 a stream": (STREAM, in_chunks(*CHUNKS[:4], CHUNKS[4].replace(b'"stop"', b'"length"'), *CHUNKS[5:])),
    "B17 a plain answer": (
        body(),
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (len(answer()) + 27)
        + answer()[:-1] + b',"stop_reason":"max_tokens"}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHORT)
async def test_an_answer_cut_short_by_a_limit_is_kept_and_says_so(tmp_path: Path, name: str) -> None:
    data, reply = SHORT[name]
    store = tmp_path / "a.db"
    async with upstream() as model:
        model.behave = says(reply)
        async with site(store, model.url) as here:
            said: list[Said] = [await here.ask(data), await here.ask(data)]
        async with site(store, model.url) as here:
            said.append(await here.ask(data))
    assert [(one.status, one.headers["Archive-Cut-Short"]) for one in said] == [(200, "yes")] * 3
    assert (len(model.got), rows(store, "SELECT cut_short FROM outcome")) == (1, [(1,)])


async def test_an_answer_that_is_not_cut_short_says_nothing_of_it(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        streams(model)
        assert "Archive-Cut-Short" not in (await hear(here)).headers
        model.behave = None
        assert "Archive-Cut-Short" not in (await here.ask()).headers
