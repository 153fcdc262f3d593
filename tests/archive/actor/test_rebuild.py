# ruff: noqa: S608 - SQL put together from our own tables' names
"""Look-ups that were lost or spoilt are worked out anew from the record, which itself stays as it is."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from archive.actor.store import Record, file
from archive.actor.store.rows import COLUMNS
from archive.admin import Rebuild, Rebuilt
from archive.errors import ArchiveError, RecordClosed
from archive.messages import Abouts, Count, Named, Sent
from archive.picks import KeptOnly
from archive.request import call_id
from tests.actors import assert_whole, queued
from tests.archive.actor.recorded import fill, stranger
from tests.fakes import ask, request
from tests.stored import rows

LOOK_UPS = ("text_key", "request_key")

SPOIL = """
DELETE FROM text_key WHERE text % 3 = 0; UPDATE text_key SET hash = hash / 2 WHERE text % 3 = 1;
INSERT INTO text_key VALUES (7, 1), (8, 9999);
DELETE FROM request_key; INSERT INTO request_key VALUES (7, 2), (-9, 777);
UPDATE count SET value = value + 40 WHERE name = 'sent'; DELETE FROM count WHERE name = 'spent_unknown'"""


def dump(path: Path, *tables: str) -> dict[str, list[Any]]:
    """All rows of these tables."""
    return {table: sorted(rows(path, f"SELECT * FROM {table}"), key=repr) for table in tables}


async def rebuilt(path: Path) -> Rebuilt:
    """What a rebuild on an opened store finds to mend."""
    async with queued(path) as (door, _, _):
        return await door.send(Rebuild())


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """A filled record that was opened before: its open sendings are unknown, its counts are right."""
    path = tmp_path / "a.db"
    fill(path)
    asyncio.run(rebuilt(path))
    return path


async def test_what_cannot_be_found_any_more_is_found_again_and_nothing_of_the_record_changes(path: Path) -> None:
    look_ups, record, counts = dump(path, *LOOK_UPS), dump(path, *COLUMNS), dump(path, "count")
    with stranger(path) as db:
        for statement in SPOIL.split(";"):
            db.execute(statement)
    assert dump(path, *LOOK_UPS) != look_ups
    done = await rebuilt(path)
    assert (done.texts, done.requests) == (len(look_ups["text_key"]), len(look_ups["request_key"]))
    assert (done.missing > 0, done.wrong > 0, done.counts) == (True, True, 2)
    assert dump(path, *LOOK_UPS) == look_ups
    assert dump(path, *COLUMNS) == record
    assert dump(path, "count") == counts
    assert_whole(path)
    assert await rebuilt(path) == Rebuilt(done.texts, done.requests, 0, 0, 0)


async def test_with_the_look_ups_gone_nothing_is_found_and_after_a_rebuild_all_of_it(path: Path) -> None:
    with stranger(path) as db:
        for table in LOOK_UPS:
            db.execute(f"DELETE FROM {table}")
    async with queued(path) as (door, model, _):
        with pytest.raises(ArchiveError):
            await door.send(ask("one", KeptOnly()))
        assert await door.send(Named(call_id(request("two")))) == ()
        assert await door.send(Abouts("ticket 7")) == ()
        await door.send(Rebuild())
        assert (await door.send(ask("one"))).sent is Sent.NOT_SENT
        assert await door.send(Named(call_id(request("two")))) == (2,)
        assert [one.number for one in await door.send(Abouts("ticket 7"))] == [3, 2, 1]
        assert model.requests == []


@pytest.mark.parametrize(
    ("number", "part"), [(1, "state"), (1, "model"), (3, "instructions"), (3, "partition"), (3, "headers")]
)
async def test_erased_words_get_no_look_up_back(path: Path, number: int, part: str) -> None:
    ((text,),) = rows(path, f"SELECT {part} FROM request WHERE id = ?", number)
    with stranger(path) as db:
        db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = ?", (text,))
        db.execute("DELETE FROM text_key")
    done = await rebuilt(path)
    assert rows(path, "SELECT * FROM text_key WHERE text = ?", text) == []
    assert rows(path, "SELECT request FROM request_key WHERE request = ?", number) == []
    assert done.texts == rows(path, "SELECT count(*) FROM text WHERE bytes IS NOT NULL")[0][0]


async def test_a_rebuild_that_fails_in_the_middle_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stranger(path) as db:
        db.execute("UPDATE text_key SET hash = hash / 2")
    before = dump(path, *LOOK_UPS)

    def broken(_: Record) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Record, "recount", broken)
    async with queued(path) as (door, _, _):
        with pytest.raises(RecordClosed):
            await door.send(Rebuild())
        await door.send(Count())
    assert dump(path, *LOOK_UPS) == before


async def test_a_bug_in_what_is_worked_apart_fails_its_asker_and_nobody_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Record) -> Rebuilt:
        raise ZeroDivisionError

    async with queued(path) as (door, _, _):
        monkeypatch.setattr(file, "rebuild", broken)
        with pytest.raises(ArchiveError) as caught:
            await door.send(Rebuild())
        assert (await door.send(ask("one"))).sent is Sent.NOT_SENT
    assert type(caught.value) is ArchiveError


async def test_a_request_that_cannot_be_read_does_not_keep_the_others_from_being_found(path: Path) -> None:
    ((kind,),) = rows(path, "SELECT content_type FROM request WHERE id = 3")
    with stranger(path) as db:
        (guard,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'text_update'").fetchone()
        db.execute("DROP TRIGGER text_update")
        db.execute("UPDATE text SET bytes = x'ffff' WHERE id = ?", (kind,))
        db.execute(guard)
        db.execute("DELETE FROM request_key")
    await rebuilt(path)
    found = {number for (number,) in rows(path, "SELECT request FROM request_key")}
    assert found == {number for (number,) in rows(path, "SELECT id FROM request")} - {3}
