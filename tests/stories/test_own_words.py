"""Our own error texts are said and never stored: none of them is ever found where an answer is looked for."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Actor
from archive.actor.model import NetworkModel
from archive.attempts import WHY_TEXT
from tests.actors import locked
from tests.fakes import FakeClock, Said, Site, Upstream, body, site
from tests.fakes import upstream as model_server
from tests.stored import rows
from tests.wires import hangs_up, nobody
from web.errors import STATUS

NOT_RAISED_YET = {"not_found", "disconnected"}
"""Codes that no route of the API can end with: an unknown path has its own words, the other is said by a client."""

REFUSE = "CREATE TRIGGER refuse BEFORE INSERT ON {} BEGIN SELECT RAISE(ABORT, 'refused'); END"


def change(store: Path, *statements: str) -> None:
    """Change a store that nobody has open."""
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


class Failures:
    """Makes every failure happen once, and remembers what was said."""

    def __init__(self, store: Path, model: Upstream, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.model, self.clock, self.monkeypatch = store, model, clock, monkeypatch
        self.said: list[Said] = []

    @asynccontextmanager
    async def site(self, **more: Any) -> AsyncGenerator[Callable[..., Any], None]:
        """A site, as a way to ask it that notes what it said."""
        async with site(self.store, more.pop("model_url", self.model.url), **more) as here:
            yield self.noting(here)

    def noting(self, here: Site) -> Callable[..., Any]:
        async def ask(words: str, **headers: str) -> None:
            self.said.append(await here.ask(body(words), **headers))

        return ask

    async def of_asking(self) -> None:
        async with self.site(body_bytes_max=500) as ask:
            await ask("kept")
            await ask("taken back")
            await ask("forgotten")
            await ask("x" * 500)
            await ask("x", Content_Type="text/plain")
            await ask("x", Content_Encoding="gzip")
            await ask("x", Content_Encoding="br")
            await ask("x", Archive_Answer="x")
            await ask("x", Archive_Answer="fresh", Cache_Control="only-if-cached")
            await ask("x", Origin="https://evil.example")
            await ask("x", Host="evil.example")
            await ask("x", Cache_Control="only-if-cached")
            await ask("kept", Archive_Answer="2")

    async def of_calling(self) -> None:
        self.model.behave = hangs_up()
        async with self.site(day_calls_max=1) as ask:
            await ask("over the day's limit")
        async with self.site() as ask:
            await ask("hung up")
            await ask("hung up")
            self.model.behave, reply = None, self.model.reply
            self.model.reply = b"{}"
            await ask("refused")
            await ask("refused")
            self.model.status, self.model.reply = 307, b""
            await ask("pointed elsewhere")
            self.model.status = 429
            await ask("too many")
            await ask("cooling")
            self.clock.advance(2)
            self.model.status, self.model.reply = 200, reply
        async with nobody() as place, self.site(model_url=f"http://{place}") as ask:
            await ask("nobody there")

    async def of_room(self) -> None:
        self.model.gate, self.model.arrived = asyncio.Event(), asyncio.Semaphore(0)
        async with self.site(calls_max=1) as ask:
            asking = asyncio.create_task(ask("long"))
            await self.model.arrived.acquire()
            await ask("no room")
            self.model.gate.set()
            await asking
        self.model.gate = None

    async def of_us(self) -> None:
        with self.monkeypatch.context() as patch:
            patch.setattr(NetworkModel, "answer", _raise)
            async with self.site() as ask:
                await ask("a fault in the model's client")
        with self.monkeypatch.context() as patch:
            patch.setattr(Actor, "send", _raise)
            async with self.site() as ask:
                await ask("a fault at the door")
        for table in ("dispatch", "answer"):
            async with self.site() as ask:
                change(self.store, REFUSE.format(table))
                await ask(f"no room in {table}")
                await ask(f"nothing in {table}")
                change(self.store, "DROP TRIGGER refuse")
        async with self.site(spool=str(self.store.parent / "no folder" / "a.spool")) as ask:
            with locked(self.store):
                await ask("nowhere to write")
            await ask("on nobody's token", X_Api_Key="ask_nobody")

    async def of_what_is_gone(self) -> None:
        number = "(SELECT a.id FROM answer a JOIN request r ON r.id = a.request JOIN text s ON s.id = r.state"
        number += " WHERE s.bytes = CAST('\"taken back\"' AS BLOB))"
        change(
            self.store,
            f"INSERT INTO withdrawal (id, answer, withdrawn, at, chain) VALUES (1, {number}, 1, 0, x'')",  # noqa: S608
        )
        async with self.site() as ask:
            await ask("taken back")
            await ask("taken back", Archive_Answer="1")
        change(
            self.store,
            "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 0"
            " WHERE id = (SELECT reply FROM outcome WHERE state = 1 ORDER BY id LIMIT 1)",
        )
        async with self.site() as ask:
            await ask("kept", Archive_Answer="1")


async def _raise(*_: object) -> None:
    raise RuntimeError("a fault of ours")


async def test_no_text_of_ours_is_ever_stored(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14: an apology must not become the answer that outlives the outage."""
    store = tmp_path / "a.db"
    async with model_server() as model:
        failures = Failures(store, model, clock, monkeypatch)
        await failures.of_asking()
        await failures.of_calling()
        await failures.of_room()
        await failures.of_us()
        await failures.of_what_is_gone()
    ours = [said for said in failures.said if said.status >= 400 and said.body.startswith(b'{"detail"')]
    assert {said.error for said in ours} == set(STATUS) - NOT_RAISED_YET
    texts = {said.text for said in ours} | {text for text in WHY_TEXT.values() if text}
    stored = [words for (words,) in rows(store, "SELECT bytes FROM text WHERE bytes IS NOT NULL")]
    assert [text for text in texts for words in stored if text.encode() in words] == []
    assert b"{}" in stored  # what the model's server said in place of an answer is, and it is no answer
    assert rows(store, "SELECT count(*) FROM answer a JOIN outcome o ON o.id = a.outcome WHERE o.state <> 1") == [(0,)]
