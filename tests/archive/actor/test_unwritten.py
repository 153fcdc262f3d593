"""The store takes nothing: calls go on by way of the spool, and all of it is in the record in the end, exactly once."""

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from archive.attempts import Lost, NotSent, Reply
from archive.errors import CallFailed, CallUnknown
from archive.messages import Answered, Health, Sent
from archive.picks import Fresh, KeptOnly, Version
from tests.actors import (
    all_at_once,
    assert_whole,
    locked,
    refused,
    settled,
    spooling,
    told,
    turns,
)
from tests.fakes import answer, ask, reply
from tests.stored import outcomes, rows

pytestmark = pytest.mark.usefixtures("impatient")


async def test_a_call_goes_out_and_its_answer_is_kept_though_the_store_was_locked_all_the_while(tmp_path: Path) -> None:
    """C-08, B38: told at once, marked; numbered and served from the record as soon as it can be written."""
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, clock):
        with locked(path):
            asking = all_at_once(door, [ask(), ask(), ask("other")])
            for _ in range(2):
                (await model.next()).set_result(reply())
            said = [await told(one) for one in asking]
            for one in said:
                assert isinstance(one, Answered)
                assert (one.kept.body, one.kept.n, one.kept.recorded) == (answer(), 0, False)
            assert sorted(one.sent for one in said if isinstance(one, Answered)) == [Sent.NOW, Sent.NOW, Sent.SHARED]
            later = await told(asyncio.create_task(door.send(ask())))
            assert isinstance(later, Answered) and (later.sent, later.kept.recorded) == (Sent.SHARED, False)
            assert not (await door.send(Health())).ok
        clock.advance(60)
        await settled(door)
        kept = await door.send(ask())
        assert (kept.kept.n, kept.kept.recorded, kept.sent) == (1, True, Sent.NOT_SENT)
        assert kept.kept.request_id > 0
        assert (await door.send(Health())).ok
        assert len(model.requests) == 2
    assert outcomes(path) == ["answered", "answered"]
    assert_whole(path)


async def test_nothing_is_sent_afresh_for_an_answer_that_has_no_number_yet(tmp_path: Path) -> None:
    async with spooling(tmp_path) as (door, model, _):
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask()])
            (await model.next()).set_result(reply())
            await asyncio.gather(*asking)
            assert (await refused(door, ask(pick=Fresh()))).code == "record_closed"
            assert (await refused(door, ask(pick=KeptOnly()))).code == "not_kept"
            assert (await refused(door, ask(pick=Version(1)))).code == "not_kept"
        assert len(model.requests) == 1


async def test_the_process_ends_before_the_store_was_written_and_the_next_one_takes_it_in_once(tmp_path: Path) -> None:
    """Kill after the spool write and before the load: nothing is lost and nothing is sent twice."""
    path, spool = tmp_path / "a.db", tmp_path / "a.spool"
    async with spooling(tmp_path) as (door, model, clock):
        kept = all_at_once(door, [ask("kept before")])
        (await model.next()).set_result(reply(0.1))
        await asyncio.gather(*kept)
        with locked(path):
            asking = all_at_once(door, [ask("answered"), ask("refused"), ask("on the wire")])
            (await model.next()).set_result(reply(0.2))
            (await model.next()).set_result(Reply(400, b"{}"))
            await told(asking[0])
            await told(asking[1])
            await model.next()
            saved = spool.read_bytes()
            door.stop()
            await turns(20)
            clock.advance(10)
            await asyncio.wait([one for one in asyncio.all_tasks() if one.get_name() == "actor"])
    for again in range(2):
        # The second time as if the process had ended between the commit and the wiping of the spool.
        spool.write_bytes(saved)
        async with spooling(tmp_path) as (door, model, _):
            assert (await door.send(ask("answered"))).kept.body == answer(0.2), again
            assert isinstance(await refused(door, ask("on the wire")), CallUnknown)
            assert model.requests == []
    assert outcomes(path) == ["answered", "answered", "failed", "unknown"]
    assert rows(path, "SELECT count(*) FROM answer") == [(2,)]
    assert_whole(path)


async def test_an_outcome_of_a_call_made_before_goes_to_the_spool_and_is_found_by_the_next_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, _):
        asking = all_at_once(door, [ask()])
        came = await model.next()
        with locked(path):
            came.set_result(reply())
            assert isinstance(await told(asking[0]), Answered)
            door.stop()
            await asyncio.wait([one for one in asyncio.all_tasks() if one.get_name() == "actor"])
    async with spooling(tmp_path) as (door, model, _):
        assert (await door.send(ask())).kept.n == 1
        assert model.requests == []
    assert outcomes(path) == ["answered"]


async def test_a_frame_that_names_a_sending_of_another_record_is_left_alone(tmp_path: Path) -> None:
    """An older backup was put back: its sending number 1 is another one than the spool speaks of."""
    path, older = tmp_path / "a.db", tmp_path / "older.db"
    async with spooling(tmp_path) as (door, model, clock):
        await settled(door)
        with sqlite3.connect(path) as db:
            db.execute("VACUUM INTO ?", (str(older),))
        db.close()
        asking = all_at_once(door, [ask("first")])
        came = await model.next()
        with locked(path):
            came.set_result(reply())
            await told(asking[0])
            door.stop()
            await asyncio.wait([one for one in asyncio.all_tasks() if one.get_name() == "actor"])
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copy(older, path)
    saved = (tmp_path / "a.spool").read_bytes()
    (tmp_path / "a.spool").unlink()
    clock.advance(1)
    async with spooling(tmp_path, clock) as (door, model, _):
        asking = all_at_once(door, [ask("second")])
        (await model.next()).set_result(NotSent())
        await told(asking[0])
    (tmp_path / "a.spool").write_bytes(saved)
    async with spooling(tmp_path, clock):
        pass
    assert outcomes(path) == ["failed"]
    assert rows(path, "SELECT count(*) FROM answer") == [(0,)]


async def test_a_limit_that_runs_out_and_a_late_reply_both_wait_and_both_count(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, clock):
        with locked(path):
            asking = all_at_once(door, [ask()])
            came = await model.next()
            clock.advance(30)
            assert isinstance(await told(asking[0]), CallUnknown)
            assert isinstance(await refused(door, ask()), CallUnknown)
            came.set_result(reply())
            await settled(door)
        clock.advance(60)
        await settled(door)
        assert (await door.send(ask())).kept.n == 1
        assert len(model.requests) == 1
    assert rows(path, "SELECT dispatch, n, state FROM outcome ORDER BY id") == [(1, 1, 3), (1, 2, 1)]
    assert_whole(path)


async def test_a_reply_that_comes_after_the_store_is_written_again_finds_its_sending(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, clock):
        with locked(path):
            asking = all_at_once(door, [ask("one"), ask("two")])
            first, second = await model.next(), await model.next()
        clock.advance(1)
        await settled(door)
        first.set_result(reply(0.1))
        assert isinstance(await told(asking[0]), Answered)
        with locked(path):
            more = all_at_once(door, [ask("three")])
            third = await model.next()
            second.set_result(reply(0.2))
            third.set_result(reply(0.3))
            await told(asking[1])
            await told(more[0])
        clock.advance(1)
        await settled(door)
        bodies = [(await door.send(ask(words))).kept.body for words in ("one", "two", "three")]
        assert bodies == [answer(0.1), answer(0.2), answer(0.3)]
        assert len(model.requests) == 3
    assert outcomes(path) == ["answered"] * 3
    assert_whole(path)


@pytest.mark.parametrize(("came", "error"), [(NotSent(), CallFailed), (Lost(), CallUnknown)])
async def test_what_is_no_answer_is_told_and_written_too(tmp_path: Path, came: NotSent | Lost, error: type) -> None:
    async with spooling(tmp_path) as (door, model, clock):
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask()])
            (await model.next()).set_result(came)
            assert isinstance(await told(asking[0]), error)
            assert isinstance(await refused(door, ask()), error)
        clock.advance(60)
        await settled(door)
    assert outcomes(tmp_path / "a.db") == ["failed" if error is CallFailed else "unknown"]


async def test_a_destination_that_asks_to_be_left_alone_is_though_that_cannot_be_written(tmp_path: Path) -> None:
    async with spooling(tmp_path) as (door, model, clock):
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask()])
            (await model.next()).set_result(Reply(429, b"{}", retry_after=("20",)))
            assert isinstance(await told(asking[0]), CallFailed)
            assert (await refused(door, ask("another"))).code == "cooling"
        clock.advance(19)
        await settled(door)
        assert (await refused(door, ask("another"))).code == "cooling"


@pytest.mark.parametrize("came", [None, NotSent(), Lost()])
async def test_a_kept_answer_is_served_while_a_fresh_one_is_asked_for_that_comes_to_nothing(
    tmp_path: Path, came: NotSent | Lost | None
) -> None:
    async with spooling(tmp_path) as (door, model, _):
        asking = all_at_once(door, [ask()])
        (await model.next()).set_result(reply())
        await told(asking[0])
        with locked(tmp_path / "a.db"):
            asking = all_at_once(door, [ask(pick=Fresh())])
            call = await model.next()
            if came is not None:
                call.set_result(came)
                await told(asking[0])
            door._recent.drop(ask().request)  # pyright: ignore[reportPrivateUsage]
            kept = await told(all_at_once(door, [ask()])[0])
            assert isinstance(kept, Answered) and (kept.sent, kept.kept.n) == (Sent.NOT_SENT, 1)
            if came is None:
                call.set_result(NotSent())
