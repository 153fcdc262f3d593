"""Errors and request ids as clients of each API find them: System One's, OpenAI's, OpenRouter's, Anthropic's."""

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Actor
from tests.actors import locked
from tests.fakes import Said, Site, Upstream, body, site, upstream
from tests.stories.test_tokens import OTHER, SECRET, make
from tests.wires import hangs_up

FILE = """
[openai]
url = "{0}/v1"
serves = "/v1"

[openrouter]
url = "{0}/api"
serves = "/api"

[anthropic]
url = "{0}/anthropic"
"""

PATHS = {
    "system one": "/v1/systemone",
    "openai": "/v1/decisions",
    "openai chat": "/v1/chat/completions",
    "openai by name": "/to/openai/anything",
    "openrouter": "/api/alpha/decisions",
    "anthropic": "/to/anthropic/v1/messages",
}

IDS = {
    "/v1/systemone": "X-TypeSafe-Request-Id",
    "/api/alpha/decisions": "X-Request-Id",
    "/to/anthropic/v1/messages": "Request-Id",
}


def code_in(path: str, said: Said) -> str:
    """The code of an error, whose body must be wholly in the shape of the API at `path`; else its status, its type."""
    whole: Any = json.loads(said.body)
    if path.endswith("/systemone"):
        assert (set(whole), set(whole["detail"])) == ({"detail"}, {"error_type", "message"}), whole
        return str(whole["detail"]["error_type"])
    error = whole["error"]
    assert isinstance(error["message"], str)
    if path.startswith("/api/"):
        assert (set(whole), set(error), error["code"]) == ({"error"}, {"code", "message"}, said.status), whole
    elif path.endswith("/messages"):
        assert (set(whole), set(error), whole["type"]) == ({"type", "error"}, {"type", "message"}, "error"), whole
        return str(error["type"])
    else:
        assert (set(whole), set(error)) == ({"error"}, {"message", "type", "param", "code"}), whole
        assert error["param"] is None
    return str(error["code"])


@asynccontextmanager
async def opened(folder: Path, **more: Any) -> AsyncGenerator[tuple[Site, Upstream], None]:
    async with upstream() as model:
        file = folder / "destinations.toml"
        file.write_text(FILE.format(model.url))
        async with site(folder / "a.db", model.url, destinations=str(file), **more) as here:
            yield here, model


def codes(path: str, ours: list[str], statuses: list[int], kinds: list[str]) -> list[str]:
    """What `code_in` finds at `path` for these codes of ours, their statuses and their types."""
    if path.startswith("/api/"):
        return [str(status) for status in statuses]
    return kinds if path.endswith("/messages") else ours


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_whatever_goes_wrong_is_said_in_the_shape_of_the_api_that_was_called(tmp_path: Path, path: str) -> None:
    def post(words: str, **headers: str) -> Any:
        return here.send("POST", path, body(words), **{"Content_Type": "application/json", **headers})

    async with opened(tmp_path, body_bytes_max=500, day_calls_max=4) as (here, model):
        model.behave = hangs_up()
        said = [
            await post("x", Content_Type="text/plain"),
            await post("x" * 500),
            await post("x", Content_Encoding="br"),
            await post("x", Archive_Answer="nonsense"),
            await post("x", Archive_Answer="7"),
            await post("x", Cache_Control="only-if-cached"),
            await post("x", Origin="https://evil.example"),
            await here.send("DELETE", path),
            await post("unknown"),
            await post("unknown"),
        ]
        model.behave, model.status, model.headers = None, 200, [("content-type", "text/html")]
        model.reply = b"<p>no answer</p>"
        said.append(await post("no answer"))
        with locked(tmp_path / "a.db"):
            said.append(await post("named", Archive_Pass="p"))
        model.status, model.headers = 503, [("retry-after", "9")]
        await post("told to wait")
        said.append(await post("cooling"))
        await make(here.door)
        said += [await post("x"), await post("x", X_API_Key=OTHER)]
    ours = ["invalid", "too_large", "invalid", "invalid", "not_kept", "not_kept", "forbidden", "invalid",
            "call_unknown", "call_unknown", "call_failed", "record_closed", "cooling", "authentication_error",
            "authentication_error"]  # fmt: skip
    statuses = [400, 413, 400, 400, 404, 504, 403, 405, 504, 409, 502, 503, 503, 403, 401]
    wrong, api = "invalid_request_error", "api_error"
    kinds = [wrong, "request_too_large", wrong, wrong, "not_found_error", api, "permission_error", wrong, api, wrong,
             api, api, api, "permission_error", "authentication_error"]  # fmt: skip
    assert [one.status for one in said] == statuses
    assert [code_in(path, one) for one in said] == codes(path, ours, statuses, kinds)
    assert {one.headers["Content-Type"] for one in said} == {"application/json"}
    assert said[7].headers["Allow"] == "POST"
    assert said[9].headers["X-Should-Retry"] == "false"
    assert int(said[12].headers["Retry-After"]) in range(1, 10)
    assert said[14].headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_a_day_that_is_used_up_and_an_error_of_ours_have_that_shape_too(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post(words: str) -> Any:
        return here.send("POST", path, body(words), Content_Type="application/json")

    async with opened(tmp_path, day_calls_max=1) as (here, model):
        model.status = 500
        await post("first")
        used = await post("second")

        async def fails(*_: object) -> None:
            raise sqlite3.DatabaseError("sentinel")

        with monkeypatch.context() as patched:
            patched.setattr(Actor, "send", fails)
            broken = await post("third")
    assert (used.status, broken.status) == (429, 500)
    assert [code_in(path, used), code_in(path, broken)] == codes(
        path, ["over_limit", "internal"], [429, 500], ["rate_limit_error", "api_error"]
    )
    assert b"sentinel" not in broken.body


@pytest.mark.parametrize("given", ["x-typesafe-request-id", "x-request-id", "request-id"])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
async def test_the_providers_id_is_found_and_given_back_where_clients_of_that_api_look(
    tmp_path: Path, path: str, given: str
) -> None:
    async def post(words: str) -> Said:
        return await here.send("POST", path, body(words), Content_Type="application/json")

    async with opened(tmp_path) as (here, model):
        model.headers = [("content-type", "application/json"), (given, "req_1"), ("request-id", "req_2")]
        model.reply = model.reply if path.endswith(("systemone", "decisions")) else b'{"choices":[{}],"content":[{}]}'
        said = [await post("kept"), await post("kept")]
        model.status, model.reply = 400, b'{"its":"own"}'
        refused = await post("refused")
    assert [(one.status, one.headers["Archive-Sent"]) for one in said] == [(200, "now"), (200, "no")]
    assert (refused.status, refused.body) == (400, b'{"its":"own"}')
    for one in [*said, refused]:
        ids = {name.lower(): value for name, value in one.headers.items() if name.lower().endswith("request-id")}
        assert ids == {IDS.get(path, "X-Request-Id").lower(): "req_1"}


@pytest.mark.parametrize(
    "path", ["/v1/v1/systemone", "/v1/v1/decisions", "/api/v1/v1/decisions", "/to/nobody/x/messages"]
)
async def test_an_address_that_is_a_little_wrong_is_said_so_in_that_shape(tmp_path: Path, path: str) -> None:
    async with opened(tmp_path) as (here, model):
        led = await here.send("POST", path, body(), Content_Type="application/json")
    async with site(tmp_path / "b.db", model.url) as here:
        nowhere = await here.send("POST", path, body(), Content_Type="application/json")
    assert [led.status, nowhere.status] == [404, 404]
    want = codes(path, ["not_found"], [404], ["not_found_error"])
    assert [code_in(path, led), code_in(path, nowhere)] == want * 2


async def test_a_caller_with_a_token_reads_a_limit_of_his_own_in_that_shape(tmp_path: Path) -> None:
    async with opened(tmp_path) as (here, _):
        await make(here.door, fresh=False)
        sent = {"Content_Type": "application/json", "Authorization": f"Bearer {SECRET}", "Archive_Answer": "fresh"}
        said = {path: await here.send("POST", path, body(), **sent) for path in PATHS.values()}
    for path, one in said.items():
        assert one.status == 403
        assert [code_in(path, one)] == codes(path, ["forbidden"], [403], ["permission_error"])
