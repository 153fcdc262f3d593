"""The official Python SDK, unmodified, with this server where it expects System One's.

It is synchronous and runs in a thread; the server and the upstream share the test's loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
import typesafe_sdk as sdk

from tests.examples import EXAMPLES
from tests.fakes import Site, Upstream, site, upstream
from tests.stories.conftest import Asked
from tests.wires import hangs_up

R = TypeVar("R")


async def using(here: Site, do: Callable[[sdk.TypeSafeClient], R], **options: Any) -> R:
    """Do something with an SDK client of our server. It tries once, unless told otherwise."""

    given: dict[str, Any] = {"api_key": "ts_key", "base_url": here.url, "retry": sdk.RetryPolicy(max_retries=0)}

    def in_thread() -> R:
        with sdk.TypeSafeClient(**given | options) as client:
            return do(client)

    return await asyncio.to_thread(in_thread)


def once(client: sdk.TypeSafeClient, words: str = "Is it?") -> sdk.SystemOneResponse:
    """Ask once about some words."""
    return client.system_one(words, {"q": sdk.Noul(instructions="Ok?")})  # pyright: ignore[reportUnknownMemberType]


@asynccontextmanager
async def both(folder: Path, **settings: Any) -> AsyncGenerator[tuple[Upstream, Site], None]:
    """An upstream with our server in front of it."""
    async with upstream() as model, site(folder / "a.db", model.url, **settings) as here:
        yield model, here


async def test_its_answer_parses_with_its_request_id_and_the_second_call_sends_nothing(tmp_path: Path) -> None:
    def twice(client: sdk.TypeSafeClient) -> list[sdk.SystemOneResponse]:
        return [once(client) for _ in range(2)]

    async with both(tmp_path) as (model, here):
        first, second = await using(here, twice)
    assert (first.nouls["q"].noul, first.model, first.usage.input_tokens) == (0.83, "jev-1.13.0", 131)
    assert first.request_id == second.request_id == "req_00000000000000000000000000000001"
    assert second.nouls["q"].noul == 0.83
    assert len(model.got) == 1
    assert model.got[0].headers["authorization"] == "Bearer ts_key"


async def test_a_body_it_compresses_and_the_same_body_plain_are_one_request(tmp_path: Path) -> None:
    def long(client: sdk.TypeSafeClient) -> sdk.SystemOneResponse:
        return once(client, "Is it? " * 300)

    encodings: list[str | None] = []

    def noted(request: httpx2.Request) -> None:
        encodings.append(request.headers.get("content-encoding"))

    async with both(tmp_path) as (model, here):
        for compression in ("zstd", False, "zstd"):
            http = httpx2.Client(event_hooks={"request": [noted]})
            said = await using(here, long, compression=compression, http_client=http)
            assert said.nouls["q"].noul == 0.83
    assert encodings == ["zstd", None, "zstd"]
    assert len(model.got) == 1
    assert len(model.got[0].body) > 1024 and "content-encoding" not in model.got[0].headers


ERRORS = {
    "32-400-unknown-model": sdk.TypeSafeBadRequestError,
    "33-400-string-detail": sdk.TypeSafeBadRequestError,
    "34-400-too-long": sdk.TypeSafeBadRequestError,
    "30-401-wrong-key": sdk.TypeSafeAuthenticationError,
    "31-403-no-key": sdk.TypeSafePermissionDeniedError,
    "36-422-typed-path": sdk.TypeSafeUnprocessableEntityError,
    "38-429": sdk.TypeSafeRateLimitError,
    "39-529": sdk.TypeSafeInternalServerError,
    "40-500-not-json": sdk.TypeSafeInternalServerError,
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_of_system_one_raises_the_same_exception_as_without_us(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    async with both(tmp_path) as (model, here):
        model.status, model.reply = example.status, example.said
        model.headers = list(example.response_headers.items())
        with pytest.raises(ERRORS[name]) as through_us:
            await using(here, once)
        with pytest.raises(ERRORS[name]) as without_us:
            await using(here, once, base_url=model.url)
    ours, theirs = through_us.value, without_us.value
    assert (ours.status, ours.body, ours.request_id) == (theirs.status, theirs.body, theirs.request_id)
    assert ours.headers.get("retry-after") == theirs.headers.get("retry-after")


async def test_errors_of_our_own_raise_its_exceptions_with_our_words(tmp_path: Path) -> None:
    async with both(tmp_path) as (model, here):
        with pytest.raises(sdk.TypeSafeInternalServerError, match="only a kept answer was asked for") as missing:
            await using(here, once, headers={"Cache-Control": "only-if-cached"})
        with pytest.raises(sdk.TypeSafeBadRequestError, match="the word fresh"):
            await using(here, once, headers={"Archive-Answer": "newest"})
        model.behave = hangs_up()
        # By itself the SDK tries again after the 504; the 409 it gets then ends it.
        with pytest.raises(sdk.TypeSafeAPIError, match="no confirmed reply") as unknown:
            await using(here, once, retry=sdk.RetryPolicy(max_retries=5, backoff_initial=0))
        told = list(here.log)
    assert [status for _, status in told[-2:]] == [504, 409]
    assert (missing.value.status, unknown.value.status) == (504, 409)
    assert len(model.got) == 1


async def test_its_retry_after_its_own_timeout_joins_the_call_on_the_wire(tmp_path: Path, asked: Asked) -> None:
    often = sdk.RetryPolicy(max_retries=1000, backoff_initial=0, timeout=None)
    async with both(tmp_path) as (model, here):
        model.gate = asyncio.Event()
        asking = asyncio.create_task(using(here, once, retry=often, timeout=0.2))
        await asked.wait(2)
        model.gate.set()
        said = await asking
    assert said.nouls["q"].noul == 0.83
    assert len(model.got) == 1


async def test_its_list_of_models_comes_from_the_record_the_second_time(tmp_path: Path) -> None:
    example = EXAMPLES["18-models"]

    def names(client: sdk.TypeSafeClient) -> list[str]:
        return [model.name for model in client.models.list().models]

    async with both(tmp_path) as (model, here):
        model.reply = example.said
        assert await using(here, names) == await using(here, names) == ["jev-latest", "jev-preview"]
    assert [got.path for got in model.got] == ["/v1/models"]
