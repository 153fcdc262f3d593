"""The store takes nothing, and the limits: of the spool, of the day, of the disk, of patience."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Actor
from archive.actor.spool import Spool
from archive.actor.unwritten import RESERVED_BYTES
from archive.admin import AddToken
from archive.attempts import Reply
from archive.messages import Answered, Caller
from archive.picks import Fresh
from tests.actors import (
    ROOM,
    Writes,
    add_token,
    all_at_once,
    assert_whole,
    echoing,
    locked,
    on,
    refused,
    settled,
    spooling,
    told,
    turns,
)
from tests.fakes import QueueModel, answer, ask, reply
from tests.stored import counts, rows

pytestmark = pytest.mark.usefixtures("impatient")


async def test_when_the_spool_is_full_too_nothing_more_is_sent(tmp_path: Path) -> None:
    """C-05: no call without a place to record it, and room for the reply of each that is out."""
    async with spooling(tmp_path) as (door, model, _):
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask(str(n)) for n in range(10)])
            answering = asyncio.create_task(answer_all(model))
            said = [await told(one) for one in asking]
            answering.cancel()
            sent = sum(isinstance(one, Answered) for one in said)
            assert 0 < sent == len(model.requests) < 10
            assert {one.code for one in said if not isinstance(one, Answered)} == {"record_closed"}


async def test_a_token_that_may_not_ask_afresh_may_not_while_nothing_can_be_written_either(tmp_path: Path) -> None:
    async with spooling(tmp_path) as (door, model, _):
        bound, free = await door.send(add_token(fresh=False)), await door.send(add_token("free"))
        first = asyncio.create_task(door.send(on(free)))
        (await model.next()).set_result(reply())
        await told(first)
        with locked(tmp_path / "a.db"):
            again = asyncio.create_task(door.send(on(free, pick=Fresh())))
            came = await model.next()
            assert (await refused(door, on(bound, pick=Fresh()))).code == "forbidden"
            assert (await refused(door, on(bound, "never asked", Fresh()))).code == "forbidden"
            joined = asyncio.create_task(door.send(on(free, pick=Fresh())))
            await turns(5)
            came.set_result(reply(0.1))
            assert [isinstance(await told(one), Answered) for one in (again, joined)] == [True, True]
        assert len(model.requests) == 2


async def answer_all(model: QueueModel) -> None:
    """Answer every call as it comes."""
    while True:
        (await model.next()).set_result(reply())


async def test_after_an_outcome_that_is_too_large_for_the_spool_nothing_more_is_sent_until_it_is_written(
    tmp_path: Path,
) -> None:
    """C-05, B41: memory alone has it, so it is told and no other is risked."""
    large = Reply(200, answer()[:-1] + b',"pad":"%s"}' % (b"x" * ROOM))
    async with spooling(tmp_path) as (door, model, clock):
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask()])
            (await model.next()).set_result(large)
            said = await told(asking[0])
            assert isinstance(said, Answered) and not said.kept.recorded
            assert (await refused(door, ask("other"))).code == "record_closed"
        clock.advance(60)
        await settled(door)
        assert (await door.send(ask())).kept.n == 1
        asking = all_at_once(door, [ask("other")])
        (await model.next()).set_result(reply())
        assert isinstance(await told(asking[0]), Answered)
        assert len(model.requests) == 2
    assert_whole(tmp_path / "a.db")


async def test_without_a_spool_nothing_is_sent_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    async with echoing(path, spool=tmp_path / "no folder" / "a.spool") as (door, model, _):
        with locked(path):
            for _ in range(3):
                assert (await refused(door, ask())).code == "record_closed"
        assert model.requests == []
    assert sum("there is no spool" in one.getMessage() for one in caplog.records) == 1


async def test_a_store_that_takes_nothing_is_one_clear_alarm_and_no_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B42: it is tried again more and more seldom, and told when it began and when it ended."""
    caplog.set_level(logging.WARNING, "askonce")
    async with spooling(tmp_path) as (door, model, clock):
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask()])
            (await model.next()).set_result(reply())
            await told(asking[0])
            writes = Writes(monkeypatch)
            for _ in range(300):
                clock.advance(1)
                await turns(20)
            # 1, 2, 4, 8, 16 and then every 30 seconds; the slow check of the record comes by each second too.
            assert writes.count == 0
            assert writes.failed > 0
        clock.advance(60)
        await settled(door)
    said = [one.getMessage() for one in caplog.records if one.name == "askonce"]
    assert [line for line in said if "cannot be written" in line] == [
        "the record cannot be written (OperationalError SQLITE_BUSY); what happens meanwhile waits in the spool, which"
        " keeps it safe"
    ]
    assert sum("is written again" in line for line in said) == 1


async def test_budgets_hold_while_the_store_does_not_know_of_what_was_sent(tmp_path: Path) -> None:
    """C-35: the day's calls of everybody and of a token, with what is in the spool counted in."""
    path = tmp_path / "a.db"
    async with spooling(tmp_path, room=40 * RESERVED_BYTES, day_calls_max=5) as (door, model, clock):
        token = (await door.send(AddToken("shop", b"h" * 32, day_calls_max=2))).number
        first = all_at_once(door, [ask("before")])
        (await model.next()).set_result(reply())
        await asyncio.gather(*first)
        with locked(path):
            on_token = [ask(f"token {n}") for n in range(4)]
            asking = all_at_once(door, [type(one)(one.request, caller=Caller(token)) for one in on_token])
            for _ in range(2):
                (await model.next()).set_result(reply())
            said = [await told(one) for one in asking]
            assert [getattr(one, "code", "answered") for one in said] == ["answered"] * 2 + ["over_limit"] * 2
            asking = all_at_once(door, [ask(f"anybody {n}") for n in range(4)])
            for _ in range(2):
                (await model.next()).set_result(reply())
            said = [await told(one) for one in asking]
            assert [getattr(one, "code", "answered") for one in said] == ["answered"] * 2 + ["over_limit"] * 2
        clock.advance(60)
        await settled(door)
        assert (await refused(door, ask("once more"))).code == "over_limit"
        assert len(model.requests) == 5
    assert counts(path)["now"] == 5
    assert_whole(path)


async def test_what_a_visitor_asked_meanwhile_is_for_visitors_once_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, clock):
        with locked(path):
            visitor = ask("a visitor's")
            asking = all_at_once(door, [type(visitor)(visitor.request, caller=Caller(visitor=True)), ask("mine")])
            for _ in range(2):
                (await model.next()).set_result(reply())
            await asyncio.gather(*asking)
        clock.advance(60)
        await settled(door)
    assert rows(path, "SELECT count(*) FROM public_request") == [(1,)]


async def test_a_disk_that_is_full_is_got_past_and_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B41, in small: the answer that does not fit is told, marked, and kept when the limit is lifted."""
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, clock):
        await settled(door)
        store = await page_limit(door, "max_page_count = 1")
        asking = all_at_once(door, [ask("x" * 50_000)])
        (await model.next()).set_result(reply())
        said = await told(asking[0])
        assert isinstance(said, Answered) and not said.kept.recorded
        await page_limit(door, store)
        clock.advance(60)
        await settled(door)
        assert (await door.send(ask("x" * 50_000))).kept.n == 1
        assert len(model.requests) == 1
    assert_whole(path)


async def page_limit(door: Actor, pragma: str) -> str:
    """Let the store grow no further, or again: what the writing connection itself may not be told."""
    db: Any = door._writing._store._db  # pyright: ignore[reportPrivateUsage]

    def change() -> None:
        db._conn.set_authorizer(None)
        db._conn.execute(f"PRAGMA {pragma}").fetchall()

    await db._execute(change)
    return "max_page_count = 1073741823"


async def test_the_spools_room_is_free_again_once_it_was_written(tmp_path: Path) -> None:
    async with spooling(tmp_path) as (door, model, clock):
        for n in range(3):
            with locked(tmp_path / "a.db"):
                asking = all_at_once(door, [ask(str(n))])
                (await model.next()).set_result(reply())
                await told(asking[0])
            clock.advance(60)
            await settled(door)
    spool = Spool(tmp_path / "a.spool", ROOM)
    assert spool.path.read_bytes() == bytes(ROOM)
    spool.close()
