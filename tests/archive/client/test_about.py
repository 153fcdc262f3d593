"""Blocks that say what calls are about: nesting, tasks and threads, and the headers as the server reads them."""

import asyncio
import contextvars
import threading
from collections.abc import Iterable
from email.message import Message
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
import typesafe_sdk as sdk

from archive.client.about import NoJudgment, about, async_hooks, headers, hooks, judgment, middleware
from archive.errors import Invalid, TooLarge
from archive.messages import Judged
from archive.naming import Input, Naming
from tests.fakes import Site, body, site, upstream
from web.naming import read_naming


def read() -> Naming | None:
    """What the server makes of the present headers."""
    return read_naming({name.lower().encode(): value.encode("ascii") for name, value in headers().items()})


def test_outside_of_any_block_there_are_no_headers() -> None:
    assert headers() == {}
    with about():
        assert headers() == {}


def test_an_inner_block_overrides_and_adds_its_inputs() -> None:
    with about(pass_="keeper", about="pair:1", inputs=["outer"]):
        with about(pass_="keeper.pair", inputs={"claim": "inner"}, reading="x: noul > 0.5; else y"):
            assert read() == Naming(
                "keeper.pair", "pair:1", "x: noul > 0.5; else y", (Input("", "outer"), Input("claim", "inner"))
            )
        assert read() == Naming("keeper", "pair:1", "", (Input("", "outer"),))
    assert headers() == {}


@pytest.mark.parametrize(
    "words", ["plain", "schön", "50% off", " ends ", "a\nb\r\nX-Evil: 1", "\x00", "東京 🎲", '"', "+"]
)
def test_any_words_come_through_headers_unchanged(words: str) -> None:
    with about(pass_=words, about=words, inputs=[words, words * 100]):
        assert all(value.isascii() and value.isprintable() for value in headers().values())
        assert read() == Naming(words, words, "", (Input("", words), Input("", words * 100)))


def test_a_block_ends_when_its_code_fails() -> None:
    with pytest.raises(KeyError), about(pass_="x"):
        raise KeyError
    assert headers() == {}


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"reading": "x: nuol > 0.5; else y"}, Invalid),
        ({"about": "x" * 501}, TooLarge),
        ({"inputs": "one string"}, TypeError),
        ({"inputs": b"bytes"}, TypeError),
        ({"inputs": 5}, TypeError),
        ({"inputs": [1]}, TypeError),
        ({"inputs": [b"x"]}, TypeError),
        ({"inputs": {"a": None}}, TypeError),
        ({"inputs": {1: "a"}}, TypeError),
        ({"about": 5}, TypeError),
        ({"pass_": b"x"}, TypeError),
        ({"reading": None}, TypeError),
    ],
)
def test_what_the_server_would_refuse_is_refused_where_it_is_written(
    named: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught, about(**named):
        pass
    assert error is not TypeError or "string" in str(caught.value)
    assert headers() == {}


async def test_tasks_and_threads_made_inside_are_inside_and_do_not_disturb_each_other() -> None:
    async def task(number: int) -> list[str]:
        with about(about=f"pair:{number}"):
            await asyncio.sleep(0)
            return [headers()["Archive-About"], await asyncio.to_thread(lambda: headers()["Archive-About"])]

    with about(pass_="p", about="outer"):
        said = await asyncio.gather(*(task(number) for number in range(20)))
        assert headers()["Archive-About"] == "outer"
        found: list[dict[str, str]] = []
        inside = threading.Thread(target=contextvars.copy_context().run, args=(lambda: found.append(headers()),))
        outside = threading.Thread(target=lambda: found.append(headers()))
        for thread in (inside, outside):
            thread.start()
            thread.join()
    assert said == [[f"pair:{number}"] * 2 for number in range(20)]
    assert found == [{"Archive-Pass": "p", "Archive-About": "outer"}, {}]


def test_a_number_is_remembered_by_each_block_around_it_once() -> None:
    with about(about="x") as outer:
        with about(inputs=["y"]) as first:
            assert (judgment({"Archive-Judgment": "7"}), judgment({"Archive-Judgment": "7"})) == (7, 7)
        with about(inputs=["z"]) as second:
            judgment({"Archive-Judgment": "8"})
            judgment({"Archive-Judgment": "9"})
    assert (first.judgments, second.judgments, outer.judgments) == ((7,), (8, 9), (7, 8, 9))
    assert (first.judgment, outer.judgment) == (7, 9)
    with about() as none, pytest.raises(NoJudgment):
        _ = none.judgment


@pytest.mark.parametrize("name", ["Archive-Judgment", "archive-judgment", "ARCHIVE-JUDGMENT"])
def test_a_number_is_read_from_plain_headers_too_in_any_letters(name: str) -> None:
    message = Message()
    message[name] = "7"
    assert judgment({name: "7"}) == judgment(httpx2.Headers({name: "7"})) == judgment(message) == 7


@pytest.mark.parametrize(
    "reply", [{"archive-judgment": "x"}, {"archive-judgment": ""}, "7", {}, None, httpx2.Response(200), object()]
)
def test_a_reply_without_a_number_is_an_error_and_never_silently_nothing(reply: object) -> None:
    with pytest.raises(NoJudgment):
        judgment(reply)


# -- with real clients -------------------------------------------------------------------------------------------------


def ask_with_sdk(url: str, **more: Any) -> list[int]:
    """Ask with the official SDK, headers handed over at each call; the numbers."""
    client: Any = sdk.TypeSafeClient(api_key="k", base_url=url, **more)
    with (
        client,
        about(pass_="sdk", reading="yes: q.noul > 0.5; else no"),
        about(about="a", inputs=["Is it really so?"]),
    ):
        said = client.system_one("Is it really so?", {"q": sdk.Noul(instructions="Ok?")}, extra_headers=headers())
        return [judgment(said)]


def hook_with_sdk(url: str) -> Iterable[int]:
    """Ask twice with the official SDK, nothing done at the call."""
    client: Any = sdk.TypeSafeClient(
        api_key="k", base_url=url, http_client=httpx2.Client(event_hooks=hooks()), retry=sdk.RetryPolicy(max_retries=0)
    )
    with client, about(pass_="sdk") as block:
        for words in ("Is it really so?", "Is it?"):
            with about(about=words, inputs=[words]):
                client.system_one(words, {"q": sdk.Noul(instructions="Ok?")})
    return block.judgments


async def number_of(here: Site, number: int) -> Naming:
    return (await here.door.send(Judged(number))).asking.naming


async def test_the_official_sdk_names_its_calls(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        assert await asyncio.to_thread(ask_with_sdk, here.url) == [1]
        assert await asyncio.to_thread(hook_with_sdk, here.url) == (2, 3)
        reading = "yes: q.noul > 0.5; else no"
        assert await number_of(here, 1) == Naming("sdk", "a", reading, (Input("", "Is it really so?"),))
        assert await number_of(here, 2) == Naming("sdk", "Is it really so?", "", (Input("", "Is it really so?"),))
        assert await number_of(here, 3) == Naming("sdk", "Is it?", "", (Input("", "Is it?"),))
        assert (await here.door.send(Judged(1))).asking.comes_to == "yes"
    assert len(model.got) == 2


async def test_the_official_sdks_errors_have_the_number_too(tmp_path: Path) -> None:
    def refused(url: str) -> int:
        try:
            ask_with_sdk(url)
        except sdk.TypeSafeAPIError as error:
            return judgment(error)
        return 0

    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status = 400
        assert await asyncio.to_thread(refused, here.url) == 1


async def test_an_asynchronous_httpx_client_and_aiohttp_name_their_calls(tmp_path: Path) -> None:
    json_ = {"Content-Type": "application/json"}
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        path = f"{here.url}/v1/systemone"
        with about(pass_="p") as block:
            async with httpx2.AsyncClient(event_hooks=async_hooks()) as client:
                with about(about="httpx"):
                    assert judgment(await client.post(path, content=body(), headers=json_)) == 1
            async with aiohttp.ClientSession(middlewares=[middleware]) as session:
                with about(about="aiohttp"):
                    async with session.post(path, data=body(), headers=json_) as response:
                        assert judgment(response) == 2
        assert block.judgments == (1, 2)
        assert [(await number_of(here, number)).about for number in (1, 2)] == ["httpx", "aiohttp"]
