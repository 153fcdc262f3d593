"""Clones and pulls of the code on the front page, from a forge that is really asked over HTTP."""

import asyncio
from pathlib import Path
from typing import Any

from tests.fakes import Got, upstream
from tests.pages import Visitor, visitor


async def code(me: Visitor) -> str:
    """What the front page says about clones and pulls."""
    return (await me.get()).html.one("p", class_="code").text.strip()


async def test_the_front_page_tells_clones_and_pulls_and_never_waits_for_them(tmp_path: Path) -> None:
    async with upstream() as forge:
        replies = {
            "/repos/o/n/traffic/clones": b'{"count":173,"uniques":128,"clones":[]}',
            "/repos/o/n": b'{"pull_count":1204}',
        }

        async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
            forge.reply = replies[got.path]
            writer.write(forge.response())
            await writer.drain()

        forge.behave, forge.gate = behave, asyncio.Event()
        more: dict[str, Any] = {"forge_url": f"{forge.url}/repos/o/n", "forge_key": "forge-key"}
        async with visitor(tmp_path / "a.db", model_key="jev-key", **more) as me:
            await me.ask("Is it?")
            waiting = await code(me)
            await forge.arrived.acquire()
            assert await code(me) == waiting, "it has been asked, has not replied, and no page waits"
            forge.gate.set()
            async with asyncio.timeout(10):
                while (told := await code(me)) == waiting:
                    pass
            for _ in range(5):
                await me.get()
    assert waiting == "How often the code was cloned or pulled is not known at this moment."
    assert told == "The code was cloned 173 times in the last 14 days and pulled 1,204 times in all."
    assert [(got.method, got.path) for got in forge.got] == [("GET", path) for path in replies]
    assert {got.headers["authorization"] for got in forge.got} == {"Bearer forge-key"}
    assert {got.headers["authorization"] for got in me.model.got} == {"Bearer jev-key"}


async def test_a_forge_that_is_not_there_harms_no_page_and_is_left_alone(tmp_path: Path) -> None:
    async with upstream() as gone:
        url = gone.url
    async with visitor(tmp_path / "a.db", forge_url=url) as me:
        await me.ask("Is it?")
        pages = [await code(me) for _ in range(3)]
    assert set(pages) == {"How often the code was cloned or pulled is not known at this moment."}


async def test_without_a_forge_it_is_said_that_nothing_is_counted(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await me.ask("Is it?")
        assert await code(me) == "Clones and pulls of the code are not counted here."
