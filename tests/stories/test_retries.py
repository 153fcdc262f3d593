"""What the official SDK's retries meet: they join, are told of an unknown and what to do, or are told to wait."""

import asyncio
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
import typesafe_sdk as sdk

from tests.fakes import START, FakeClock, answer
from tests.stories.conftest import Asked
from tests.stories.test_sdk import both, once, using

LIMIT = 30
"""The seconds after which those who wait are told."""

REFUSED = b'{"detail":{"error_type":"rate_limit_error","message":"Too many requests."}}'
AT_ONCE = sdk.RetryPolicy(max_retries=1000, backoff_initial=0, timeout=None)


def afresh(client: sdk.TypeSafeClient) -> sdk.SystemOneResponse:
    question = sdk.Noul(instructions="Ok?")
    return client.system_one("Is it?", {"q": question}, extra_headers={"Archive-Answer": "fresh"})  # pyright: ignore[reportUnknownMemberType]


async def test_a_retry_joins_and_when_the_call_becomes_unknown_it_ends_with_what_to_do(
    tmp_path: Path, clock: FakeClock, asked: Asked
) -> None:
    """B31, B34. The SDK gives up on each try by its own limit and tries again, until the 409 ends it."""
    async with both(tmp_path) as (model, here):
        gate = model.gate = asyncio.Event()
        asking = asyncio.create_task(using(here, once, retry=AT_ONCE, timeout=0.2))
        await asked.wait(3)
        model.gate = None
        clock.advance(LIMIT)
        with pytest.raises(sdk.TypeSafeAPIError, match="Archive-Answer: fresh sends it again") as told:
            await asking
        sent = len(model.got)
        model.reply = answer(0.22)
        fresh = await using(here, afresh)
        gate.set()
    assert (told.value.status, sent) == (409, 1)
    error: Any = told.value.body
    assert error["detail"]["error_type"] == "call_unknown"
    assert fresh.nouls["q"].noul == 0.22 and len(model.got) == 2


async def test_those_who_waited_and_those_who_come_later_are_told_not_to_retry(
    tmp_path: Path, clock: FakeClock
) -> None:
    """OpenAI's and Anthropic's SDKs try again after a 409 as well, and read this header."""
    async with both(tmp_path) as (model, here):
        model.gate = asyncio.Event()
        asking = asyncio.create_task(here.ask())
        await model.arrived.acquire()
        clock.advance(LIMIT)
        said = [await asking, await here.ask()]
        model.gate.set()
    assert [(one.status, one.headers["x-should-retry"]) for one in said] == [(504, "false"), (409, "false")]


WAITS: dict[str, tuple[int, str, type[sdk.TypeSafeAPIError], int]] = {
    "429 in seconds": (429, "120", sdk.TypeSafeRateLimitError, 429),
    "429 by a date": (429, formatdate(START / 1_000_000 + 120, usegmt=True), sdk.TypeSafeRateLimitError, 429),
    "529 in seconds": (529, "120", sdk.TypeSafeInternalServerError, 503),
    "503 by a date": (503, formatdate(START / 1_000_000 + 120, usegmt=True), sdk.TypeSafeInternalServerError, 503),
}


@pytest.mark.parametrize("name", WAITS)
async def test_a_refusal_for_now_reaches_everyone_who_waited_and_all_after_with_how_long(
    tmp_path: Path, clock: FakeClock, asked: Asked, name: str
) -> None:
    """B35: status and Retry-After as they came for those who waited; whoever asks later hears when it ends."""
    status, after, error, later_status = WAITS[name]
    async with both(tmp_path) as (model, here):
        model.gate = asyncio.Event()
        model.status, model.reply = status, REFUSED
        model.headers += [("retry-after", after), ("retry-after-ms", "5")]
        asks = [asyncio.create_task(using(here, once)) for _ in range(4)]
        await asked.wait(4)
        model.gate.set()
        waited: list[Any] = await asyncio.gather(*asks, return_exceptions=True)
        clock.advance(20)
        with pytest.raises(error, match="asked to be left alone until") as later:
            await using(here, lambda client: once(client, "something else"))
    for one in waited:
        assert type(one) is error
        assert (one.status, one.headers["retry-after"], one.headers["retry-after-ms"]) == (status, after, "5")
        assert one.request_id == "req_00000000000000000000000000000001"
    assert (later.value.status, later.value.headers["retry-after"]) == (later_status, "100")
    assert len(model.got) == 1
