"""The store cannot be written: kept answers are served, nothing is sent, and what was paid for is not lost."""

import asyncio
import logging
import sqlite3
import threading
from pathlib import Path

import pytest

from archive.actor.store import Record, StoreUnusable
from archive.actor.unwritten import RETRY_SECONDS
from archive.attempts import Came, Lost, NotSent, Reply, State
from archive.errors import CallFailed, CallUnknown
from archive.live import Changed, Place
from archive.messages import Answered, Health, Noted, Question, Sent
from archive.picks import Fresh, KeptOnly, Latest, Version
from archive.request import call_id
from tests.actors import all_at_once, assert_whole, echoing, locked, queued, refused, settled, told
from tests.fakes import answer, ask, reply, request
from tests.stored import counts, outcomes, rows

pytestmark = pytest.mark.usefixtures("impatient")


async def test_kept_answers_are_served_and_nothing_is_sent(tmp_path: Path) -> None:
    """C-08, B38."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        for pick in (Latest(), Fresh()):
            await door.send(ask("kept", pick))
    async with echoing(path) as (door, model, _):
        with locked(path):
            for pick, n in [(Version(1), 1), (Version(2), 2), (Latest(), 2), (KeptOnly(), 2)]:
                assert (await door.send(ask("kept", pick))).kept.n == n
            assert (await refused(door, ask("never asked"))).code == "record_closed"
            assert (await refused(door, ask("kept", Fresh()))).code == "record_closed"
            assert (await refused(door, ask("never asked", KeptOnly()))).code == "not_kept"
            assert (await refused(door, ask("kept", Version(3)))).code == "not_kept"
        assert model.requests == []
        assert (await door.send(ask("never asked"))).sent is Sent.NOW
    assert_whole(path)


async def test_each_time_that_nothing_can_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        for time in (1, 2):
            with locked(path):
                for _ in range(3):
                    assert not (await door.send(Health())).ok
            assert (await door.send(Health())).ok
            assert sum("cannot be written" in record.message for record in caplog.records) == time


async def test_a_whole_group_is_served_and_refused_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask("kept"))
    async with echoing(path) as (door, model, _):
        with locked(path):
            asks = all_at_once(door, [ask("kept", Version(1)), ask("new"), ask("kept", Version(1)), ask("newer")])
            said = [await told(one) for one in asks]
        assert [one.sent if isinstance(one, Answered) else one.code for one in said] == ["no", "record_closed"] * 2
        assert model.requests == []


async def test_an_answer_that_cannot_be_kept_yet_is_handed_out_marked_and_kept_later_once(tmp_path: Path) -> None:
    """B38: waiters, later askers, and the record in the end."""
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        asks = all_at_once(door, [ask()] * 3)
        came = await model.next()
        await settled(door)
        with locked(path):
            came.set_result(reply())
            said = [await told(one) for one in asks]
            for one in [*said, await door.send(ask())]:
                assert isinstance(one, Answered)
                assert (one.kept.body, one.kept.n, one.kept.recorded) == (answer(), 0, False)
            assert (await refused(door, ask(pick=Fresh()))).code == "record_closed"
            assert (await refused(door, ask(pick=KeptOnly()))).code == "not_kept"
            assert (await refused(door, ask("other"))).code == "record_closed"
            for _ in range(3):
                clock.advance(RETRY_SECONDS)
                await settled(door)
        clock.advance(RETRY_SECONDS)
        await settled(door)
        kept = await door.send(ask())
        assert (kept.kept.n, kept.kept.total, kept.kept.recorded, kept.sent) == (1, 1, True, Sent.NOT_SENT)
        other = asyncio.create_task(door.send(ask("other")))
        (await model.next()).set_result(reply())
        assert (await other).sent is Sent.NOW, "once all is written, calls are made again"
    assert rows(path, "SELECT dispatch, n, state FROM outcome ORDER BY id") == [(1, 1, 1), (2, 1, 1)]
    assert counts(path) == {"now": 2, "shared": 3, "no": 1}
    assert_whole(path)


@pytest.mark.parametrize(
    ("came", "state"),
    [(NotSent(), "failed"), (Reply(400, b"{}"), "failed"), (Reply(200, b"{}"), "failed"), (Lost(), "unknown")],
    ids=str,
)
async def test_what_is_no_answer_is_held_and_told_too(tmp_path: Path, came: Came, state: str) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        call = await model.next()
        with locked(path):
            call.set_result(came)
            expected = CallUnknown if state == "unknown" else CallFailed
            assert isinstance(await told(asking), expected)
            assert isinstance(await refused(door, ask()), expected)
        clock.advance(RETRY_SECONDS)
        await settled(door)
        assert len(model.requests) == 1
    assert outcomes(path) == [state]
    assert_whole(path)


async def test_a_limit_that_runs_out_and_a_late_reply_are_both_held_and_both_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        with locked(path):
            clock.advance(30)
            assert isinstance(await told(asking), CallUnknown)
            came.set_result(reply())
            await settled(door)
        clock.advance(RETRY_SECONDS)
        await settled(door)
        assert (await door.send(ask())).kept.n == 1
    assert rows(path, "SELECT dispatch, n, state FROM outcome ORDER BY id") == [(1, 1, 3), (1, 2, 1)]
    assert_whole(path)


async def test_what_is_held_is_written_by_itself_a_second_after_the_lock_is_gone(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        await settled(door)
        with locked(tmp_path / "a.db"):
            came.set_result(reply())
            await told(asking)
        async with door.watch(Place("call")) as notices:
            clock.advance(RETRY_SECONDS)
            assert await anext(notices) == Changed(call_id(request()), State.ANSWERED, 1)


async def test_what_is_held_is_written_when_it_stops_though_nobody_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        with locked(path):
            came.set_result(reply())
            await told(asking)
    assert outcomes(path) == ["answered"]
    assert_whole(path)


async def test_what_could_never_be_written_is_unknown_after_a_restart_and_not_sent_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        with locked(path):
            came.set_result(reply())
            await told(asking)
            door.stop()
            await asyncio.wait([one for one in asyncio.all_tasks() if one.get_name() == "actor"])
    async with echoing(path) as (door, echo, _):
        assert (await refused(door, ask())).code == "call_unknown"
        assert echo.requests == []


async def test_a_locked_store_cannot_be_opened_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    async with echoing(path):
        pass
    monkeypatch.setattr("archive.actor.store.start.LOCKED_MS_MAX", 300)
    with locked(path), pytest.raises(StoreUnusable, match="another program has it locked, and a start needs a store"):
        async with echoing(path):
            pass
    async with echoing(path) as (door, _, _):
        await door.send(ask())


async def test_a_start_waits_for_a_lock_that_is_held_for_a_moment_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, holding, told_so = tmp_path / "a.db", threading.Event(), threading.Event()
    async with echoing(path):
        pass
    monkeypatch.setattr("archive.actor.store.start.LOCKED_MS_MAX", 60_000)

    def hold() -> None:
        with locked(path):
            holding.set()
            told_so.wait(20)

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "the start waits" in record.getMessage():
                told_so.set()

    handler = Told()
    logging.getLogger("askonce").addHandler(handler)
    holder = threading.Thread(target=hold)
    holder.start()
    try:
        await asyncio.to_thread(holding.wait)
        async with echoing(path) as (door, _, _):
            assert told_so.is_set()
            assert (await door.send(ask())).kept.n == 1
    finally:
        told_so.set()
        holder.join()
        logging.getLogger("askonce").removeHandler(handler)


async def test_what_only_changes_is_refused_while_it_cannot_be_written(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        with locked(tmp_path / "a.db"):
            noting = asyncio.create_task(door.send(Noted(Question("Is it?"), 1)))
            await asyncio.wait([noting])
        assert getattr(noting.exception(), "code", "") == "record_closed"


async def test_a_message_the_store_chokes_on_is_refused_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that fails for one message and would fail again: everybody else's goes through."""
    add_request = Record.add_request

    def broken(record: Record, asked: object) -> object:
        if asked == request("choke"):
            raise sqlite3.OperationalError("about the sentinel")
        return add_request(record, request("fine"))

    async with echoing(tmp_path / "a.db") as (door, model, _):
        with monkeypatch.context() as patched:
            patched.setattr(Record, "add_request", broken)
            asks = all_at_once(door, [ask("choke"), ask("fine")])
            said = [await told(one) for one in asks]
        assert [one.sent if isinstance(one, Answered) else one.code for one in said] == ["record_closed", "now"]
        assert model.requests == [request("fine")]
    assert_whole(tmp_path / "a.db")


async def test_a_held_answer_is_in_no_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """B48."""
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        asking = asyncio.create_task(door.send(ask("sentinel")))
        came = await model.next()
        with locked(path):
            came.set_result(Reply(200, answer()[:-1] + b',"x":"sentinel"}'))
            await told(asking)
            await refused(door, ask("sentinel too"))
    ours = [one.getMessage() for one in caplog.records if one.name == "askonce"]
    assert any("the record cannot be written" in line for line in ours)
    assert "sentinel" not in "".join(ours)
