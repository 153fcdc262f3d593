"""What a reply says about itself, in headers beside the stored bytes; and what goes up: no more than it must be."""

import asyncio
import re
from pathlib import Path

import pytest

from archive.request import Destination, Request, call_id
from archive.when import iso
from tests.fakes import START, FakeClock, answer, body, site, upstream
from tests.stories.conftest import Asked

PRICED = answer()[:-2] + b',"cost":0.0000055}}'
MODELS = b'{"models":[{"name":"jev-latest","description":"Most recent stable model","release_date":"2026-09-01"}]}'


async def test_a_receipt_says_how_this_asker_got_it(tmp_path: Path, clock: FakeClock, asked: Asked) -> None:
    """Cache-Status as in RFC 9211; sent now, shared with another, or not sent."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        both = [asyncio.create_task(here.ask()), asyncio.create_task(here.ask())]
        await asked.wait(2)
        model.gate.set()
        first, second = sorted(await asyncio.gather(*both), key=lambda said: said.headers["Archive-Sent"])
        hit = await here.ask()
        fresh = await here.ask(Archive_Answer="fresh")
    assert [(one.headers["Archive-Sent"], one.headers["Cache-Status"]) for one in (first, second, hit, fresh)] == [
        ("now", "Askonce; fwd=uri-miss; stored"),
        ("shared", "Askonce; fwd=uri-miss; stored; collapsed"),
        ("no", "Askonce; hit"),
        ("now", "Askonce; fwd=request; stored"),
    ]


async def test_a_kept_answer_carries_the_moment_it_was_kept_and_not_the_present(
    tmp_path: Path, clock: FakeClock
) -> None:
    """B24: body bytes, moment and the provider's own id stay; only the age grows."""
    async with upstream() as model:
        async with site(tmp_path / "a.db", model.url) as here:
            said = [await here.ask()]
            clock.advance(10.5)
            said.append(await here.ask())
        clock.advance(3600)
        async with site(tmp_path / "a.db", model.url) as here:
            said.append(await here.ask())
            said.append(await here.ask(Archive_Answer="1"))
    assert {one.headers["Archive-Kept-At"] for one in said} == {iso(START)}
    assert {(one.body, one.headers["x-typesafe-request-id"]) for one in said} == {
        (answer(), "req_00000000000000000000000000000001")
    }
    assert [one.headers["Age"] for one in said] == ["0", "10", "3610", "3610"]


async def test_an_age_is_never_negative(tmp_path: Path, clock: FakeClock) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        clock.step(-3600)
        assert (await here.ask()).headers["Age"] == "0"


async def test_a_call_has_one_name_and_every_delivery_its_own(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = [await here.ask() for _ in range(3)] + [await here.ask(Archive_Answer="fresh")]
        other = await here.ask(body("Another?"))
    name = call_id(Request(Destination("systemone", "POST", f"{model.url}/v1/systemone"), body()))
    assert {one.headers["Archive-Call"] for one in said} == {name}
    assert re.fullmatch("[0-9a-f]{12}", name)
    assert other.headers["Archive-Call"] != name
    assert len({one.headers["Archive-Delivery"] for one in (*said, other)}) == 5


@pytest.mark.parametrize(("reply", "cost"), [(PRICED, "0.0000055"), (answer(), "unknown")])
async def test_what_it_cost_now_and_when_it_was_made_are_two_numbers(
    tmp_path: Path, asked: Asked, reply: bytes, cost: str
) -> None:
    """B25: a hit costs nothing now and what it did when made; where no price is known it is unknown, never 0."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.reply, model.gate = reply, asyncio.Event()
        both = [asyncio.create_task(here.ask()), asyncio.create_task(here.ask())]
        await asked.wait(2)
        model.gate.set()
        said = [*await asyncio.gather(*both), await here.ask()]
    costs = {one.headers["Archive-Sent"]: one.headers["Archive-Cost-Now"] for one in said}
    assert costs == {"now": cost, "shared": "0", "no": "0"}
    assert {one.headers["Archive-Cost-Made"] for one in said} == {cost}
    assert {one.body for one in said} == {reply}


async def test_an_answer_without_an_id_of_the_provider_gets_none_from_us(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.headers = [("content-type", "application/json")]
        said = [await here.ask(), await here.ask()]
    assert [one.status for one in said] == [200, 200]
    assert all("x-typesafe-request-id" not in one.headers for one in said)


async def test_nothing_else_of_the_providers_headers_comes_through(tmp_path: Path) -> None:
    """Cookies, rate limits and encodings belong to one transport; a replay would carry them to strangers."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.headers += [("set-cookie", "a=b"), ("server", "x"), ("x-other", "x"), ("retry-after", "9"), ("age", "9")]
        first, second = await here.ask(), await here.ask()
    for one in (first, second):
        assert {name.lower() for name in one.headers} == {
            "date", "connection", "content-type", "content-length", "x-typesafe-request-id", "age",
            "cache-status", "archive-answer", "archive-call", "archive-kept-at", "archive-sent", "archive-delivery",
            "archive-cost-now", "archive-cost-made",
        }  # fmt: skip
        assert ("Server" in one.headers, one.headers["Age"]) == (False, "0")


# -- what goes up ------------------------------------------------------------------------------------------------------

CALLERS = {
    "Accept": "text/html",
    "Accept_Encoding": "gzip, zstd",
    "Accept_Language": "de",
    "Cookie": "a=b",
    "Forwarded": "for=192.0.2.1",
    "Idempotency_Key": "k",
    "Traceparent": "00-1-2-3",
    "User_Agent": "typesafe-sdk/9",
    "X_Api_Key": "k",
    "X_Forwarded_For": "192.0.2.1",
    "X_TypeSafe_Retry_Count": "1",
    "X_TypeSafe_SDK": "python/9",
}


def fixed(url: str) -> dict[str, str]:
    """The headers that go up with every POST of `body()`, besides the key."""
    return {
        "host": url.removeprefix("http://"),
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "askonce",
        "content-type": "application/json",
        "content-length": str(len(body())),
    }


async def test_only_what_changes_an_answer_goes_up_and_our_own_fixed_headers(tmp_path: Path) -> None:
    danger = {"typesafe-danger-zone-images": "true", "typesafe-danger-zone-long-context": "true"}
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask(**CALLERS)
        await here.ask(TypeSafe_Danger_Zone_Images="true", TYPESAFE_DANGER_ZONE_LONG_CONTEXT="true", **CALLERS)
    assert [got.headers for got in model.got] == [fixed(model.url), fixed(model.url) | danger]
    assert {(got.method, got.path) for got in model.got} == {("POST", "/v1/systemone")}


@pytest.mark.parametrize(
    ("owners", "callers", "goes_up"),
    [
        ("", "Bearer caller", "Bearer caller"),
        ("", "bearer  caller ", "Bearer caller"),
        ("owner", "Bearer caller", "Bearer owner"),
        ("owner", None, "Bearer owner"),
        ("", None, None),
        ("", "Basic dXNlcjpwYXNz", None),
    ],
)
async def test_the_owners_key_goes_up_and_the_callers_only_where_there_is_none(
    tmp_path: Path, owners: str, callers: str | None, goes_up: str | None
) -> None:
    headers = {} if callers is None else {"Authorization": callers}
    async with upstream() as model, site(tmp_path / "a.db", model.url, model_key=owners) as here:
        await here.ask(**headers)
    assert [got.headers.get("authorization") for got in model.got] == [goes_up]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(tmp_path: Path, status: int) -> None:
    """B67: another origin must get neither the words nor the key. It is a failure, and on record as one."""
    async with upstream() as elsewhere, upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status, model.reply = status, b""
        model.headers = [("location", f"{elsewhere.url}/v1/systemone")]
        said = await here.ask(Authorization="Bearer caller")
    assert (said.status, said.error, "Location" in said.headers) == (502, "call_failed", False)
    assert (len(model.got), elsewhere.got) == (1, [])


# -- the list of models ------------------------------------------------------------------------------------------------


async def test_the_list_of_models_goes_through_the_archive_like_an_answer(tmp_path: Path) -> None:
    async with upstream() as model:
        model.reply = MODELS
        async with site(tmp_path / "a.db", model.url) as here:
            nothing = await here.send("GET", "/v1/models", Cache_Control="only-if-cached")
            first = await here.send("GET", "/v1/models")
            second = await here.send("GET", "/v1/models", Accept="*/*", User_Agent="another")
            model.reply = MODELS.replace(b"jev-latest", b"jev-preview")
            fresh = await here.send("GET", "/v1/models", Archive_Answer="fresh")
        async with site(tmp_path / "a.db", model.url) as here:
            old = await here.send("GET", "/v1/models", Archive_Answer="1")
            new = await here.send("GET", "/v1/models")
    assert nothing.status == 504
    assert [(one.body, one.headers["Archive-Answer"]) for one in (first, second, old)] == [
        (MODELS, "1/1"),
        (MODELS, "1/1"),
        (MODELS, "1/2"),
    ]
    assert fresh.body == new.body == model.reply
    assert (fresh.headers["Archive-Answer"], new.headers["Archive-Answer"]) == ("2/2", "2/2")
    assert [(got.method, got.path, got.body) for got in model.got] == [("GET", "/v1/models", b"")] * 2
    assert "content-type" not in model.got[0].headers


async def test_a_reply_without_a_list_of_models_is_not_kept(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.send("GET", "/v1/models")
        kept = await here.send("GET", "/v1/models", Archive_Answer="1")
    assert (said.status, said.error, kept.status) == (502, "call_failed", 404)
