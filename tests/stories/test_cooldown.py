"""A destination that asks to be left alone is left alone, by everyone, for as long as it said."""

import asyncio
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.fakes import START, FakeClock, Said, answer, body, site, upstream
from tests.stories.conftest import Asked

DAY = 86_400
REFUSED = b'{"detail":{"error_type":"rate_limit_error","message":"Too many requests."}}'


def date(seconds: float) -> str:
    """An HTTP date this far from the beginning of the test."""
    return formatdate(START / 1_000_000 + seconds, usegmt=True)


FORMS: dict[str, tuple[list[tuple[str, str]], float]] = {
    "seconds": ([("Retry-After", "120")], 120),
    "B36 longer than anybody likes": ([("Retry-After", "3600")], 3600),
    "a date": ([("Retry-After", date(90))], 90),
    "a date that is past": ([("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")], 1),
    "a date far away": ([("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT")], DAY),
    "no such date": ([("Retry-After", "Wed, 99 Foo 2026 07:28:00 GMT")], 1),
    "zero": ([("Retry-After", "0")], 1),
    "negative": ([("Retry-After", "-5")], 1),
    "a float": ([("Retry-After", "2.5")], 2.5),
    "1e9": ([("Retry-After", "1e9")], DAY),
    "endless digits": ([("Retry-After", "9" * 400)], DAY),
    "Infinity": ([("Retry-After", "Infinity")], DAY),
    "NaN": ([("Retry-After", "NaN")], 1),
    "empty": ([("Retry-After", "")], 1),
    "words": ([("Retry-After", "soon")], 1),
    "none at all": ([], 1),
    "two of them": ([("Retry-After", "10"), ("Retry-After", "20")], 20),
    "one of two is nonsense": ([("Retry-After", "x"), ("Retry-After", "20")], 20),
    "milliseconds": ([("retry-after-ms", "2500")], 2.5),
    "both": ([("retry-after-ms", "2500"), ("Retry-After", "10")], 10),
}


def assert_told(said: Said, seconds: int, status: int = 429) -> None:
    """Refused here, without a call, and told for how long."""
    assert (said.status, said.error, said.headers["Retry-After"]) == (status, "cooling", str(seconds))
    assert "asked to be left alone until" in said.text


@pytest.mark.parametrize("name", FORMS)
async def test_every_form_of_retry_after_is_kept_to(tmp_path: Path, clock: FakeClock, name: str) -> None:
    """B35, B36: no crash, nothing sent before its end, a bound of a day, and the headers passed on as they came."""
    headers, seconds = FORMS[name]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        good = model.headers
        model.status, model.reply, model.headers = 429, REFUSED, [("content-type", "application/json"), *headers]
        first = await here.ask(body("one"))
        model.status, model.reply, model.headers = 200, answer(), good
        told = await here.ask(body("two"))
        clock.advance(seconds - 0.01)
        still = await here.ask(body("two"))
        sent = len(model.got)
        clock.advance(0.02)
        after = await here.ask(body("two"))
    assert (first.status, first.body) == (429, REFUSED)
    for header in ("Retry-After", "retry-after-ms"):
        came = [value for key, value in headers if key == header and value]
        assert first.headers.getall(header, []) == came
    assert_told(told, -int(-seconds // 1))
    assert_told(still, 1)
    assert sent == 1
    assert (after.status, after.headers["Archive-Sent"]) == (200, "now")


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_a_cooldown_holds_for_all_other_requests_and_kept_answers_are_still_served(
    tmp_path: Path, clock: FakeClock, status: int
) -> None:
    """B37. Asking afresh is held too; the model that asked for it is told nothing more by anybody."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask(body("kept"))
        good = model.headers
        model.status, model.reply, model.headers = status, REFUSED, [("retry-after", "10")]
        first = await here.ask(body("new"))
        others = [await here.ask(body(f"other {n}")) for n in range(20)]
        afresh = await here.ask(body("kept"), Archive_Answer="fresh")
        listed = await here.send("GET", "/v1/models")
        kept = await here.ask(body("kept"))
        sent = len(model.got)
        clock.advance(11)
        model.status, model.reply, model.headers = 200, answer(), good
        after = await here.ask(body("other 1"))
    assert first.status == status
    for one in (*others, afresh, listed):
        assert_told(one, 10, 429 if status == 429 else 503)
    assert (kept.status, kept.headers["Archive-Sent"]) == (200, "no")
    assert (sent, after.status) == (2, 200)


@pytest.mark.parametrize("status", [400, 500, 502])
async def test_other_failures_put_nobody_off(tmp_path: Path, clock: FakeClock, status: int) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        good = model.headers
        model.status, model.reply, model.headers = status, b"no", [("retry-after", "10")]
        await here.ask(body("one"))
        model.status, model.reply, model.headers = 200, answer(), good
        assert (await here.ask(body("two"))).status == 200


async def test_everyone_who_waited_gets_the_refusal_with_its_header(tmp_path: Path, asked: Asked) -> None:
    """B35: shown to every waiter, not to the first alone."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        model.status, model.reply = 429, REFUSED
        model.headers += [("retry-after", "120"), ("retry-after-ms", "120000")]
        asks = [asyncio.create_task(here.ask()) for _ in range(10)]
        await asked.wait(10)
        model.gate.set()
        said = await asyncio.gather(*asks)
    expected = (429, REFUSED, "120", "120000", "req_00000000000000000000000000000001")
    kinds = ("Retry-After", "retry-after-ms", "x-typesafe-request-id")
    assert {(one.status, one.body, *(one.headers[kind] for kind in kinds)) for one in said} == {expected}
    assert len(model.got) == 1


async def test_a_cooldown_outlives_a_restart_and_so_do_the_kept_answers(tmp_path: Path, clock: FakeClock) -> None:
    async with upstream() as model:
        async with site(tmp_path / "a.db", model.url) as here:
            await here.ask(body("kept"))
            model.status, model.reply, model.headers = 503, REFUSED, [("retry-after", "120")]
            await here.ask()
        clock.advance(20)
        async with site(tmp_path / "a.db", model.url) as here:
            assert_told(await here.ask(), 100, 503)
            kept = await here.ask(body("kept"))
            sent = len(model.got)
            clock.advance(101)
            await here.ask()
    assert (kept.status, kept.body, kept.headers["Archive-Sent"]) == (200, answer(), "no")
    assert (sent, len(model.got)) == (2, 3)


async def test_a_cooldown_is_one_keys_own(tmp_path: Path, clock: FakeClock) -> None:
    """Limits are counted by key: another caller's key has done nothing wrong."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        good = model.headers
        model.status, model.reply, model.headers = 429, REFUSED, [("retry-after", "120")]
        await here.ask(body("one"), Authorization="Bearer busy")
        model.status, model.reply, model.headers = 200, answer(), good
        busy = await here.ask(body("two"), Authorization="Bearer busy")
        idle = await here.ask(body("two"), Authorization="Bearer idle")
    assert_told(busy, 120)
    assert idle.status == 200
