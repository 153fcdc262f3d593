"""The spool and the owner's mistakes with its file, on real processes: nothing is written over or lost."""

import os
from pathlib import Path

import pytest

from tests.commands import Owner
from tests.fakes import body, upstream
from tests.faults.test_moved import asked, count, refusal
from tests.process import Process, lock_of, process
from tests.stored import outcomes


async def spooled(here: Process, store: Path, word: str) -> bytes:
    """An answer that is acknowledged from the spool alone, with the server killed at once."""
    async with lock_of(store):
        said = await here.ask(body(word))
        assert said.status == 200
        await here.kill()
    return said.body


@pytest.mark.parametrize("name", ["notes.txt", "o.db", "a.db", "a.db-wal", "a.db.erased", "link", "hard"])
async def test_a_file_that_is_something_else_is_no_spool_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    store, other = tmp_path / "a.db", tmp_path / "o.db"
    async with upstream() as model:
        for one in (store, other):
            async with process(one, model.url) as here:
                await asked(here, "words")
                await here.terminate()
    (tmp_path / "notes.txt").write_text("the owner's")
    (tmp_path / "link").symlink_to(store)
    (tmp_path / "hard").hardlink_to(other)
    spool = tmp_path / name
    before = {file: file.read_bytes() for file in (store, other, tmp_path / "notes.txt")}
    assert "ASKONCE_SPOOL" in await refusal(store, "", spool)
    assert {file: file.read_bytes() for file in before} == before
    if name in {"a.db-wal", "a.db.erased"}:
        assert not spool.exists()


async def test_two_servers_cannot_share_one_spool_nor_one_after_the_other_while_anything_waits(tmp_path: Path) -> None:
    one, two, spool = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "s"
    async with upstream() as model:
        model.number_answers()
        async with process(one, model.url, ASKONCE_SPOOL=str(spool)) as here:
            async with process(two, model.url) as other:
                await asked(other, "words")
                await other.terminate()
            assert "the spool of a server that runs" in await refusal(two, model.url, spool)
            said = await spooled(here, one, "spooled")
        assert "waits for another store" in await refusal(two, model.url, spool)
        async with process(one, model.url, ASKONCE_SPOOL=str(spool)) as here:
            assert (await here.ask(body("spooled"))).body == said
            await here.terminate()
        async with process(two, model.url, ASKONCE_SPOOL=str(spool)) as here:
            await asked(here, "words")
        assert len(model.got) == 2


async def test_a_spool_that_is_removed_or_replaced_while_it_holds_an_answer_loses_none(tmp_path: Path) -> None:
    store, spool = tmp_path / "a.db", tmp_path / "a.db.spool"
    async with upstream() as model:
        model.number_answers()
        async with process(store, model.url) as here:
            async with lock_of(store):
                first = (await here.ask(body("first"))).body
                spool.unlink()
                second = (await here.ask(body("second"))).body
                await here.kill()
            assert "a new one was made" in here.output()
        async with process(store, model.url) as here:
            assert (await here.ask(body("first"))).body == first
            assert (await here.ask(body("second"))).body == second
            async with lock_of(store):
                os.rename(spool, tmp_path / "moved")  # noqa: PTH104
                spool.write_text("the owner's")
                assert (await here.ask(body("third"))).status == 503
                health = await here.send("GET", "/health")
                assert (health.status, b"there is no spool" in health.body) == (503, True)
            assert spool.read_text() == "the owner's"
            doctor = await Owner(store).run("doctor")
            assert (doctor.code, "its spool cannot be had" in doctor.text) == (6, True)
            spool.unlink()
            async with lock_of(store):
                assert (await here.ask(body("third"))).status == 200
            await here.terminate()
        assert len(model.got) == 3
    assert count(store) == 3
    assert outcomes(store) == ["answered"] * 3


async def test_a_store_by_a_link_has_the_spool_of_its_real_name(tmp_path: Path) -> None:
    store, link = tmp_path / "a.db", tmp_path / "l.db"
    link.symlink_to(store)
    async with upstream() as model:
        model.number_answers()
        async with process(link, model.url) as here:
            said = await spooled(here, store, "spooled")
        async with process(store, model.url) as here:
            assert (await here.ask(body("spooled"))).body == said
        assert len(model.got) == 1


async def test_a_spool_that_cannot_be_had_is_not_well(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    (tmp_path / "a.db.spool").mkdir()
    async with process(store) as here:
        health = await here.send("GET", "/health")
        assert (health.status, b"there is no spool" in health.body) == (503, True)
        assert (await here.ask(body("is it?"))).status == 200
