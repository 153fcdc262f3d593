# ruff: noqa: S608 - SQL put together from our own tables' names
"""What is missing is found before it is paid for again: look-ups that lead nowhere, rows gone at the end of a table."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from archive.actor.offline import prove_copy, restore
from archive.actor.store import StoreUnusable, all_faults, chain
from archive.actor.store.copies import file_faults
from archive.admin import BackUp, Check, CheckFile, Mark, Rebuild
from archive.doors import Door
from archive.errors import CallUnknown, Invalid
from archive.messages import Health, Sent
from tests.actors import queued, refused, settled
from tests.archive.actor.recorded import fill, stranger
from tests.fakes import ask, reply

LOST = "cannot be found, and would be sent again; `askonce doctor --rebuild` mends it"


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """A filled record."""
    path = tmp_path / "a.db"
    fill(path)
    return path


def without_guards(path: Path, *statements: str) -> None:
    """What somebody does who knows the file: guards away, a change, guards back."""
    with stranger(path) as db:
        guards = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            db.execute(statement)
        for _, sql in guards:
            db.execute(sql)


async def checked(door: Door, most: int = 1000) -> tuple[str, ...]:
    """What the check of the rows finds."""
    faults, mark = tuple[str, ...](), Mark()
    while mark is not None:
        found = await door.send(Check(mark, most))
        faults, mark = faults + found.faults, found.mark
    return faults


# -- look-ups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoilt", "fault"),
    [
        ("DELETE FROM request_key", f"request: of rows 1 to 4 4 {LOST}"),
        ("DELETE FROM request_key WHERE request = 2", f"request: of rows 1 to 4 1 {LOST}"),
        ("UPDATE request_key SET hash = hash / 2 WHERE request = 3", f"request: of rows 1 to 4 1 {LOST}"),
        ("DELETE FROM text_key WHERE text IN (2, 5)", "text: of rows 1 to"),
    ],
)
async def test_look_ups_that_lead_nowhere_are_a_fault_until_they_are_mended(
    path: Path, spoilt: str, fault: str
) -> None:
    async with queued(path) as (door, _, clock):
        with stranger(path) as db:
            db.execute(spoilt)
        for _ in range(20):
            clock.advance(20)
            await settled(door)
        found = await door.send(Health())
        assert not found.ok
        assert len(found.faults) == 1
        assert found.faults[0].startswith(fault)
        assert await checked(door) == found.faults
        await door.send(Rebuild())
        assert (await door.send(Health())).ok
        assert await checked(door) == ()


async def test_no_copy_with_look_ups_that_lead_nowhere_counts_as_a_backup_or_is_put_back(path: Path) -> None:
    with stranger(path) as db:
        db.execute("DELETE FROM request_key")
    async with queued(path) as (door, _, _):
        with pytest.raises(Invalid, match="mends it"):
            await door.send(BackUp(str(path.with_name("b.db"))))
    with pytest.raises(StoreUnusable, match="mends it"):
        restore(path, path.with_name("c.db"), "now")
    assert any(LOST in fault for fault in prove_copy(path).faults)


async def test_large_requests_are_looked_at_a_few_at_a_time_and_none_is_left_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stranger(path) as db:
        whole = check_requests(db)
        assert (len(whole), sum(whole)) == (1, 4)
        monkeypatch.setattr(chain, "BYTES_MAX", 1)
        assert check_requests(db) == [1, 1, 1, 1]
        db.execute("DELETE FROM request_key WHERE request = 4")
        assert any(LOST in fault for fault in all_faults(db))


def check_requests(db: sqlite3.Connection) -> list[int]:
    """How many rows each piece of the check had."""
    sizes, mark = list[int](), Mark("request")
    while mark is not None and mark.table == "request":
        found = chain.check(db, mark, 100)
        assert found.faults == ()
        sizes.append(found.rows)
        mark = found.mark
    return sizes


@pytest.mark.parametrize("again", [False, True])
async def test_a_place_whose_look_up_is_lost_does_not_have_its_requests_sent_again(path: Path, *, again: bool) -> None:
    async with queued(path) as (door, model, _):
        with stranger(path) as db:
            db.execute("DELETE FROM text_key")
        if again:
            # Written anew while it cannot be found: the place is there twice, also after the look-ups are mended.
            asking = asyncio.create_task(door.send(ask("something else")))
            (await model.next()).set_result(reply())
            await asking
            await door.send(Rebuild())
            assert (await door.send(ask("something else"))).sent is Sent.NOT_SENT
        assert (await door.send(ask("one"))).sent is Sent.NOT_SENT


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table", ["text", "request", "dispatch", "outcome", "answer", "asking", "asking_input", "destination"]
)
async def test_a_row_missing_at_the_end_is_found_where_another_speaks_of_it(path: Path, table: str) -> None:
    with stranger(path) as db:
        assert all_faults(db) == []
    without_guards(path, f"DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table})")
    with stranger(path) as db:
        faults = all_faults(db)
        assert faults
        assert file_faults(db) or table == "text"
    async with queued(path) as (door, _, _):
        assert [*await door.send(CheckFile()), *await checked(door)]


async def test_a_request_whose_only_sending_is_missing_is_found(path: Path) -> None:
    without_guards(path, "DELETE FROM dispatch WHERE id = (SELECT max(id) FROM dispatch)")
    with stranger(path) as db:
        assert "dispatch: the first of 1 requests are missing" in all_faults(db)


async def test_words_that_are_gone_without_having_been_erased_are_a_fault(path: Path) -> None:
    without_guards(path, "UPDATE text SET bytes = NULL, salt = NULL WHERE id = 3")
    async with queued(path) as (door, _, _):
        assert "text: row 3 has no words though it was not emptied, or has them though it was" in await checked(door)


async def test_what_was_answered_and_lost_its_answer_is_not_sent_again_by_itself(path: Path) -> None:
    without_guards(path, "DELETE FROM answer WHERE request = 1")
    async with queued(path) as (door, model, _):
        said = await refused(door, ask("one"))
        assert isinstance(said, CallUnknown)
        assert "is missing in the record" in said.text
        assert model.requests == []
