"""A reply that answers nothing is never kept as an answer; who waited is told, and no click after it pays again."""

import asyncio
from pathlib import Path

import pytest

from archive.attempts import PAID_REFUSAL_SECONDS
from tests.fakes import FakeClock, Said, answer, body, site, upstream
from tests.stored import answers, outcomes, rows
from tests.stories.conftest import Asked

THREE = body(
    questions={
        "a": {"type": "noul", "instructions": "A?"},
        "b": {"type": "choice", "criteria": {"yes": None, "no": None}},
        "c": {"type": "score", "criteria": ["low", "high"]},
    }
)
A = b'"a":{"type":"noul","noul":0.50}'
B = b'"b":{"type":"choice","choice":"yes","confidence":0.20,"probabilities":{"yes":0.60,"no":0.40}}'
C = b'"c":{"type":"score","score":0.70,"confidence":0.40,"probabilities":{"0":0.30,"1":0.70}}'


def said(*some: bytes) -> bytes:
    """A System One response with these answers."""
    return b'{"model":"jev-1.13.0","answers":{%s},"usage":{"input_tokens":9,"output_tokens":60}}' % b",".join(some)


REFUSALS: dict[str, tuple[bytes, str]] = {
    "B12 an error object": (b'{"error":{"message":"rate limit exceeded"}}', "application/json"),
    "B12 an error beside answers": (said(A, B, C)[:-1] + b',"error":{"code":1}}', "application/json"),
    "B13 an error called otherwise": (b'{"html-message":"Network connection lost."}', "application/json"),
    "B13 nothing": (b"", "application/json"),
    "B13 a captive portal": (b"<!doctype html><title>Sign in</title>", "text/html"),
    "no object": (b"[]", "application/json"),
    "null": (b"null", "application/json"),
    "cut short": (said(A, B, C)[:-9], "application/json"),
    "no answers": (said(), "application/json"),
    "B15 one is missing": (said(A, C), "application/json"),
    "B15 one is null": (said(A, b'"b":null', C), "application/json"),
    "B15 of another type": (said(A, B, A.replace(b'"a"', b'"c"')), "application/json"),
    "B15 a probability above 1": (said(A.replace(b"0.50", b"1.50"), B, C), "application/json"),
    "B15 no number": (said(A.replace(b"0.50", b'"0.5"'), B, C), "application/json"),
    "B15 not a number": (said(A.replace(b"0.50", b"NaN"), B, C), "application/json"),
    "B15 an option not offered": (said(A, B.replace(b'"choice":"yes"', b'"choice":"maybe"'), C), "application/json"),
    "B15 a score above the top": (said(A, B, C.replace(b'"score":0.70', b'"score":1.70')), "application/json"),
    "B15 a bad share of an option": (said(A, B.replace(b'"no":0.40', b'"no":-0.40'), C), "application/json"),
}


def assert_refused(one: Said) -> None:
    assert (one.status, one.error) == (502, "call_failed")
    assert one.text == "The model's server replied, but not with an answer to what was asked."
    assert "Archive-Answer" not in one.headers


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_success_without_an_answer_is_never_kept(
    tmp_path: Path, clock: FakeClock, asked: Asked, name: str
) -> None:
    """B12, B13, B15. It was paid for: for a minute it is shown to everyone, and only asking afresh sends at once."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.gate = asyncio.Event()
        model.reply, content_type = REFUSALS[name]
        model.headers = [("content-type", content_type)]
        asks = [asyncio.create_task(here.ask(THREE)) for _ in range(3)]
        await asked.wait(3)
        model.gate.set()
        waited = await asyncio.gather(*asks)
        clock.advance(PAID_REFUSAL_SECONDS - 1)
        later, sent = await here.ask(THREE), len(model.got)
        kept = await here.ask(THREE, Archive_Answer="1")
        fresh, sent_afresh = await here.ask(THREE, Archive_Answer="fresh"), len(model.got)
        clock.advance(PAID_REFUSAL_SECONDS)
        model.reply = said(A, B, C)
        good = await here.ask(THREE)
    for one in (*waited, later, fresh):
        assert_refused(one)
    assert (sent, sent_afresh, len(model.got)) == (1, 2, 3)
    assert kept.status == 404
    assert (good.status, good.body, good.headers["Archive-Answer"]) == (200, said(A, B, C), "1/1")
    assert outcomes(store) == ["failed", "failed", "answered"]
    assert rows(store, "SELECT status, paid FROM outcome WHERE state = 2") == [(200, 1), (200, 1)]


async def test_a_paid_refusal_is_still_shown_after_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    async with upstream() as model:
        model.reply = b'{"error":{"message":"rate limit exceeded"}}'
        async with site(tmp_path / "a.db", model.url) as here:
            assert_refused(await here.ask())
        async with site(tmp_path / "a.db", model.url) as here:
            assert_refused(await here.ask())
    assert len(model.got) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 500])
async def test_a_refusal_passes_through_as_it_came_and_the_next_ask_sends(tmp_path: Path, status: int) -> None:
    """B31's other half: one request for each ask, nothing kept, and nothing of ours in it."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        good = model.headers
        model.status, model.reply = status, b'{"detail":[{"msg":"no","input":"Is it?"}]}\n'
        model.headers = [("content-type", "application/problem+json"), ("x-typesafe-request-id", "req_7")]
        first, sent = await here.ask(), len(model.got)
        second = await here.ask()
        model.status, model.reply, model.headers = 200, answer(), good
        third = await here.ask()
    for one in (first, second):
        assert (one.status, one.body) == (status, b'{"detail":[{"msg":"no","input":"Is it?"}]}\n')
        assert one.headers["Content-Type"] == "application/problem+json"
        assert one.headers["x-typesafe-request-id"] == "req_7"
    assert (sent, len(model.got)) == (1, 3)
    assert (third.status, third.headers["Archive-Answer"]) == (200, "1/1")
    assert outcomes(store) == ["failed", "failed", "answered"]


async def test_a_failed_attempt_after_an_answer_takes_nothing_away(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        await here.ask()
        model.reply = b"{}"
        assert_refused(await here.ask(Archive_Answer="fresh"))
        said = await here.ask()
    assert (said.status, said.body, said.headers["Archive-Answer"]) == (200, answer(), "1/1")
    assert answers(store) == {b'"Is it?"': [answer()]}


async def test_an_answer_keeps_its_own_status_and_type(tmp_path: Path) -> None:
    """B16: any 2xx that answers is kept, and a replay is not made a 200 of application/json."""
    async with upstream() as model:
        model.status = 201
        model.headers = [("Content-Type", "application/problem+json; a=b")]
        async with site(tmp_path / "a.db", model.url) as here:
            all_said = [await here.ask(), await here.ask()]
        async with site(tmp_path / "a.db", model.url) as here:
            all_said += [await here.ask(), await here.ask(Archive_Answer="1")]
    assert {(one.status, one.headers["Content-Type"], one.body) for one in all_said} == {
        (201, "application/problem+json; a=b", answer())
    }
    assert len(model.got) == 1
