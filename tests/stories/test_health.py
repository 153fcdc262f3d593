"""`GET /health`, as whoever watches the server asks it."""

import json
from pathlib import Path

from tests.actors import locked
from tests.fakes import site, upstream


async def test_health_says_that_answers_are_kept_and_how_the_record_is(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        said = await here.send("GET", "/health")
        assert said.status == 200
        assert json.loads(said.body)["ok"] is True
        assert json.loads(said.body).keys() >= {"writable", "held", "calls", "cooling", "schema", "wal_bytes", "faults"}
        assert said.headers["Cache-Control"] == "no-store"
        assert (await here.send("HEAD", "/health")).status == 200


async def test_health_is_503_when_answers_are_not_being_kept(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        with locked(store):
            said = await here.send("GET", "/health")
            assert (said.status, json.loads(said.body)["ok"]) == (503, False)
        assert (await here.send("GET", "/health")).status == 200


async def test_health_says_nothing_of_what_was_asked_and_asks_nothing(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        said = await here.send("GET", "/health")
        assert len(model.got) == 1
        assert b"Is it" not in said.body
