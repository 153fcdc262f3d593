"""Two requests are one only when every byte of them agrees, and where they go; nothing else has a part in it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import Said, Site, answer, body, site, upstream
from tests.stored import rows

Asking = tuple[bytes, dict[str, str]]

SWAPPED = b'{"model":"jev-latest","state":"Is it?","questions":{"q":{"type":"noul","instructions":"Ok?"}}}'


def asking(data: bytes | None = None, **headers: str) -> Asking:
    return (body() if data is None else data, headers)


def fields(*values: dict[str, Any]) -> list[Asking]:
    return [asking(body(**more)) for more in values]


DIFFERENT: dict[str, list[Asking]] = {
    "B01 a setting nobody here knows": fields({"num_ctx": 2048}, {"num_ctx": 8192}),
    "B02 a seed and a limit": fields({}, {"seed": 1}, {"seed": 2}, {"max_tokens": 16}, {"max_tokens": 4000}),
    "B03 fields the model may know": fields(
        {"instructions": "a"}, {"instructions": "b"}, {"previous_response_id": "r"}
    ),
    "B03 a field invented today": fields({"x_moonphase_30_11": 1}, {"x_moonphase_30_11": 2}, {}),
    "B04 two fields swapped": [asking(), asking(SWAPPED)],
    "1 and 1.0 and 1e0": [*fields({"x": 1}, {"x": 1.0}), asking(body(x=1).replace(b'"x":1', b'"x":1e0'))],
    "B11 words that mean the same, of two people": [
        asking(body("What is my account balance?")),
        asking(body("Show me my account balance")),
        asking(body("what is my account balance?")),
    ],
    "a space": [asking(), asking(body() + b" "), asking(body().replace(b":", b": ", 1))],
    "an escape": [asking(body("é")), asking(body("é").replace("é".encode(), b"\\u00e9"))],
    "a key given twice": [asking(), asking(body().replace(b'{"state"', b'{"state":"x","state"', 1))],
    "jevcompat's nonce, which asks for another sample": fields({"x_nonce": "1"}, {"x_nonce": "2"}, {"x_nonce": 1}, {}),
    "numbers that are one to most readers": [
        asking(body(x=1).replace(b'"x":1', b'"x":' + number))
        for number in (b"1e400", b"1e500", b"-0", b"0", b"0.0", b"1" + b"0" * 5000, b"1" + b"0" * 5001)
    ],
    "a line separator, written out or not": [
        asking(body("a\u2028b")),
        asking(body("a").replace(b'"a"', b'"a\\u2028b"')),
    ],
    "a zero byte, written out or not": [
        asking(body("a").replace(b'"a"', nul)) for nul in (b'"\0"', b'"\\u0000"', b'""')
    ],
    "half of a surrogate pair": [
        asking(body("a").replace(b'"a"', half)) for half in (b'"\\ud800"', b'"\\uD800"', b'"\xed\xa0\x80"', b'"\xff"')
    ],
    "a byte-order mark": [asking(), asking(b"\xef\xbb\xbf" + body())],
    "a key given twice, in another order": [
        asking(body().replace(b"{", b'{"x":1,"x":2,', 1)),
        asking(body().replace(b"{", b'{"x":2,"x":1,', 1)),
    ],
    "options in another order": fields(
        {"questions": {"q": {"type": "noul", "criteria": {"true": "a", "false": "b"}}}},
        {"questions": {"q": {"type": "noul", "criteria": {"false": "b", "true": "a"}}}},
    ),
    "the content type": [
        asking(),
        asking(Content_Type="application/json; charset=utf-8"),
        asking(Content_Type="application/json;charset=utf-8"),
        asking(Content_Type="Application/JSON"),
        asking(Content_Type="application/vnd.typesafe+json"),
    ],
    "a header of the danger zone": [
        asking(),
        asking(TypeSafe_Danger_Zone_Images="true"),
        asking(TypeSafe_Danger_Zone_Images="false"),
        asking(TypeSafe_Danger_Zone_Long_Context="true"),
        asking(TypeSafe_Danger_Zone_Images="true", TypeSafe_Danger_Zone_Long_Context="true"),
        asking(TypeSafe_Danger_Zone_Invented_Today="true"),
    ],
}


async def all_of(here: Site, askings: list[Asking]) -> list[Said]:
    return [await here.ask(data, **headers) for data, headers in askings]


@pytest.mark.parametrize("name", DIFFERENT)
async def test_requests_that_differ_anywhere_are_different_requests(tmp_path: Path, name: str) -> None:
    """Each is sent once and keeps its own answer, whatever the others got, and however often it is repeated."""
    askings = DIFFERENT[name]
    async with upstream() as model:
        model.number_answers()
        async with site(tmp_path / "a.db", model.url) as here:
            first = await all_of(here, askings)
            again = await all_of(here, askings)
        async with site(tmp_path / "a.db", model.url) as here:
            restarted = await all_of(here, askings)
    numbered = [answer((at + 1) / 100) for at in range(len(askings))]
    assert [one.body for one in first] == [one.body for one in again] == [one.body for one in restarted] == numbered
    assert {one.headers["Archive-Answer"] for one in first + again + restarted} == {"1/1"}
    assert len({one.headers["Archive-Call"] for one in first}) == len(askings)
    assert [got.body for got in model.got] == [data for data, _ in askings]


async def test_different_requests_at_once_do_not_share_a_call(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        asks = [asyncio.create_task(here.ask(data)) for data in (body(x=1), body(x=1.0), SWAPPED)]
        for _ in asks:
            await model.arrived.acquire()
        model.gate.set()
        said = await asyncio.gather(*asks)
    assert [one.headers["Archive-Sent"] for one in said] == ["now"] * 3


async def test_what_cannot_change_an_answer_is_no_part_of_a_request(tmp_path: Path) -> None:
    """Keys, telemetry and what transport adds: two keys share an archive, an SDK's retry is the same request."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        first = await here.ask(Authorization="Bearer one")
        second = await here.ask(
            Authorization="Bearer two",
            Accept="*/*",
            Cookie="a=b",
            User_Agent="typesafe-sdk/9",
            X_TypeSafe_Retry_Count="1",
            X_TypeSafe_SDK="python/9",
            X_TypeSafe_Runtime="cpython/3.11",
            TypeSafe_Something_Else="1",
        )
    assert (first.headers["Archive-Sent"], second.headers["Archive-Sent"]) == ("now", "no")
    assert len(model.got) == 1


async def test_another_base_url_is_another_archive_and_the_old_one_is_still_there(tmp_path: Path) -> None:
    """B09: the old destination's answer is served from the record though nobody is there any more."""
    store = tmp_path / "a.db"
    async with upstream() as new:
        new.reply = answer(0.22)
        async with upstream() as old:
            old.reply = answer(0.11)
            async with site(store, old.url) as here:
                await here.ask()
            async with site(store, new.url) as here:
                second = await here.ask()
        async with site(store, old.url) as here:
            kept = await here.ask(Cache_Control="only-if-cached")
        async with site(store, new.url + "/api") as here:
            below = await here.ask(Cache_Control="only-if-cached")
    assert (second.body, second.headers["Archive-Answer"], second.headers["Archive-Sent"]) == (
        answer(0.22),
        "1/1",
        "now",
    )
    assert (kept.body, kept.headers["Archive-Answer"], kept.headers["Archive-Sent"]) == (answer(0.11), "1/1", "no")
    assert below.status == 504
    assert second.headers["Archive-Call"] != kept.headers["Archive-Call"]
    assert (len(old.got), len(new.got)) == (1, 1)
    assert rows(store, "SELECT count(*) FROM request") == [(2,)]
