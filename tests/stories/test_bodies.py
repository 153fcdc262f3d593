"""Bodies that are not plain JSON: images in a multipart body, and replies that somebody on the way has packed."""

import asyncio
import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typesafe_sdk as sdk
import zstandard
from PIL import Image

from archive.multipart import parted
from tests.archive.test_multipart import IMAGE, JSON, form, typed
from tests.fakes import Said, Site, Upstream, answer, body, site, upstream
from tests.stored import outcomes, rows
from tests.stories.test_sdk import using


def picture(shade: int) -> bytes:
    """A PNG."""
    file = io.BytesIO()
    Image.new("RGB", (300, 300), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


async def look(here: Site, *pictures: bytes, **options: Any) -> sdk.SystemOneResponse:
    """Ask about pictures with the official SDK."""

    def do(client: sdk.TypeSafeClient) -> sdk.SystemOneResponse:
        images = {f"photo {n}": sdk.Image(data) for n, data in enumerate(pictures)}
        state = " ".join(f"<image:{name}>" for name in images)
        question = sdk.Noul(instructions="Ok?")
        more = {"TypeSafe-Danger-Zone-Images": "true"}
        return client.system_one(state, {"q": question}, assets=images, extra_headers=more)  # pyright: ignore[reportUnknownMemberType]

    return await using(here, do, **options)


async def test_an_image_call_of_the_official_sdk_is_asked_once_though_its_boundary_is_random(tmp_path: Path) -> None:
    """Compressed or not, in this process and after a restart; what is on record is what went up."""
    store = tmp_path / "a.db"
    sent: list[tuple[str, str | None]] = []

    def noted(request: httpx2.Request) -> None:
        sent.append((request.headers["content-type"], request.headers.get("content-encoding")))

    async with upstream() as model:
        for _ in range(2):
            async with site(store, model.url) as here:
                for compression in (False, "zstd"):
                    http = httpx2.Client(event_hooks={"request": [noted]})
                    said = await look(here, picture(1), picture(2), compression=compression, http_client=http)
                    assert said.nouls["q"].noul == 0.83
                    assert said.request_id == "req_00000000000000000000000000000001"
    assert len({content_type for content_type, _ in sent}) == 4, "the SDK drew four boundaries"
    assert [encoding for _, encoding in sent] == [None, "zstd"] * 2
    (got,) = model.got
    found = parted(got.headers["content-type"], got.body)
    assert found is not None
    request, first, second = found.parts
    assert b'name="request"' in request and b'"state":"' in request
    assert first.endswith(picture(1)) and second.endswith(picture(2))
    assert got.headers["typesafe-danger-zone-images"] == "true" and "content-encoding" not in got.headers
    kept = rows(store, "SELECT i.bytes, c.bytes FROM request r JOIN text i ON i.id = r.instructions"
                       " JOIN text c ON c.id = r.content_type")  # fmt: skip
    assert kept == [(got.body, got.headers["content-type"].encode())]
    assert rows(store, "SELECT t.bytes FROM dispatch d JOIN text t ON t.id = d.asked_model") == [(b"jev-latest",)]


async def test_other_pictures_and_another_order_are_other_calls(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for pictures in [(1,), (2,), (1, 2), (2, 1), (1,)]:
            await look(here, *map(picture, pictures))
    assert len(model.got) == 4


async def test_an_image_call_is_answered_only_when_its_question_is(tmp_path: Path) -> None:
    """B15, for what is asked inside a multipart body."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.reply = answer().replace(b'"noul":0.83', b'"noul":1.83')
        with pytest.raises(sdk.TypeSafeInternalServerError, match="not with an answer"):
            await look(here, picture(1))


async def test_five_image_calls_at_once_share_one(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        asks = [
            asyncio.create_task(here.ask(form(f"b{n}", JSON, IMAGE), Content_Type=typed(f"b{n}"))) for n in range(5)
        ]
        await model.arrived.acquire()
        model.gate.set()
        said = await asyncio.gather(*asks)
    assert {one.status for one in said} == {200} and len(model.got) == 1


ODD = [
    (typed("x"), b"preamble\r\n" + form("x", JSON)),
    (typed("x"), form("x", JSON) + b"epilogue"),
    (typed("y"), form("x", JSON)),
    (typed("x"), b"not multipart at all"),
    (typed("x; charset=utf-8"), form("x", JSON)),
]


async def test_a_multipart_body_that_cannot_be_read_goes_up_as_it_came(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for content_type, data in ODD * 2:
            assert (await here.ask(data, Content_Type=content_type)).status == 200
    assert [(got.headers["content-type"], got.body) for got in model.got] == ODD


FROM_A_PAGE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "Cross-Site"},
    {"Sec_Fetch_Site": "same-origin, cross-site"},
    {"Sec_Fetch_Site": ""},
]


@pytest.mark.parametrize("headers", FROM_A_PAGE)
async def test_a_form_on_another_sites_page_cannot_spend_a_call(tmp_path: Path, headers: dict[str, str]) -> None:
    """A form can send multipart without asking first. Browsers say where it stands, by one header or the other."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(form("x", JSON), Content_Type=typed("x"), **headers)
        listed = await here.send("GET", "/v1/models", **headers)
        ours = [
            await here.ask(form("x", JSON), Content_Type=typed("x"), **own)
            for own in ({}, {"Sec_Fetch_Site": "none"}, {"Sec_Fetch_Site": "same-origin"}, {"Origin": here.url})
        ]
    assert (said.status, said.error, listed.status) == (403, "forbidden", 403)
    assert [one.status for one in ours] == [200] * 4
    assert len(model.got) == 1


# -- replies -----------------------------------------------------------------------------------------------------------

PACKED = {
    "gzip": gzip.compress(answer()),
    "zstd": zstandard.ZstdCompressor().compress(answer()),
    "deflate": zlib.compress(answer()),
}


FAITHFUL = [
    answer()[:-1] + b',"x":1e400,"x":1E+400,"y":1.0,"y":1,"z":' + b"9" * 5000 + b"}",
    answer()[:-1] + b',"x_words":"\xe2\x80\xa8 \\u2028 \\u0000 \\ud800 \\/ \xff \xed\xa0\x80"}',
    b"\xef\xbb\xbf" + answer().replace(b":", b" :\t") + b"\r\n",
]


async def test_a_reply_stays_what_it_was_to_the_byte(tmp_path: Path) -> None:
    """Numbers, keys given twice, marks, bytes that are no text: nothing is read and written anew on its way."""
    async with upstream() as model:
        async with site(tmp_path / "a.db", model.url) as here:
            for n, model.reply in enumerate(FAITHFUL):
                assert (await here.ask(body(str(n)))).body == model.reply
        async with site(tmp_path / "a.db", model.url) as here:
            assert [(await here.ask(body(str(n)))).body for n in range(len(FAITHFUL))] == FAITHFUL
    assert len(model.got) == len(FAITHFUL)


def packs(model: Upstream, name: str, data: bytes) -> None:
    """Have the upstream reply under a Content-Encoding, whatever it was asked for."""
    model.reply = data
    model.headers = [*model.headers[:2], ("content-encoding", name), ("vary", "accept-encoding")]


@pytest.mark.parametrize("name", PACKED)
async def test_a_packed_reply_is_kept_and_served_unpacked_to_everyone(tmp_path: Path, name: str) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        packs(model, name, PACKED[name])
        async with site(store, model.url) as here:
            said: list[Said] = [await here.ask(), await here.ask(Accept_Encoding=name)]
        async with site(store, model.url) as here:
            said += [
                await here.ask(Accept_Encoding="gzip, deflate, br, zstd"),
                await here.ask(Accept_Encoding="identity"),
            ]
    for one in said:
        assert (one.status, one.body, one.headers["Content-Length"]) == (200, answer(), str(len(answer())))
        assert "Content-Encoding" not in one.headers
        assert one.headers["x-typesafe-request-id"] == "req_00000000000000000000000000000001"
    assert model.got[0].headers["accept-encoding"] == "identity" and len(model.got) == 1
    assert rows(store, "SELECT t.bytes FROM outcome o JOIN text t ON t.id = o.reply") == [(answer(),)]


async def test_a_packed_error_is_passed_on_unpacked(tmp_path: Path) -> None:
    error = b'{"detail":{"error_type":"authentication_error","message":"No."}}'
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status = 401
        packs(model, "gzip", gzip.compress(error))
        said = await here.ask()
    assert (said.status, said.body, "Content-Encoding" in said.headers) == (401, error, False)


async def test_a_reply_that_cannot_be_unpacked_is_unknown_and_never_half_an_answer(tmp_path: Path) -> None:
    """Also one that unpacks to more than is kept: the limit counts what comes out."""
    store = tmp_path / "a.db"
    bad = [("gzip", PACKED["gzip"][:-1]), ("gzip", answer()), ("br", b"x"), ("gzip", gzip.compress(bytes(10**6)))]
    async with upstream() as model, site(store, model.url, reply_bytes_max=10_000) as here:
        for n, (name, data) in enumerate(bad):
            packs(model, name, data)
            waited, later = await here.ask(body(str(n))), await here.ask(body(str(n)))
            assert (waited.status, later.status, later.error) == (504, 409, "call_unknown")
    assert len(model.got) == len(bad)
    assert outcomes(store) == ["unknown"] * len(bad)
