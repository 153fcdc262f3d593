"""A COMMIT that is reported as failed has reached the disk all the same: it comes right by itself, and nothing is sent
twice, neither written twice nor lost.

A real disk shows it at the next start: what was not synced is found in the log.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from archive.actor.handlers import Handlers
from archive.actor.store import Record, Store
from archive.attempts import Lost, NotSent, State, following
from archive.errors import CallFailed, CallUnknown
from archive.messages import Answered, Health, Sent
from archive.picks import Fresh
from tests.actors import all_at_once, assert_whole, echoing, locked, queued, refused, settled, spooling, told, turns
from tests.fakes import answer, ask, reply
from tests.stored import outcomes, rows


def test_only_a_late_answer_follows_an_outcome() -> None:
    for state in State:
        assert following(None, state) == 1
        assert following(State.ANSWERED, state) is None
        assert following(State.FAILED, state) is None
    assert [following(State.UNKNOWN, state) for state in State] == [2, None, None]


class Commits:
    """The next `wrong` ones are done and reported as failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wrong = 0
        transact = Store._transact  # pyright: ignore[reportPrivateUsage]

        def transacted(store: Store, raw: sqlite3.Connection, work: Callable[[Record], Any], *how: str) -> Any:
            result = transact(store, raw, work, *how)
            if how[-1] != "COMMIT" or not self.wrong:
                return result
            self.wrong -= 1
            store._record.undone()  # pyright: ignore[reportPrivateUsage]
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR, "SQLITE_IOERR"
            raise error

        monkeypatch.setattr(Store, "_transact", transacted)


@pytest.fixture(name="commits")
def _commits(monkeypatch: pytest.MonkeyPatch, impatient: None) -> Commits:
    return Commits(monkeypatch)


async def test_a_sending_that_was_written_and_not_made_ends_as_failed_and_its_request_is_sent(
    tmp_path: Path, commits: Commits
) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, _):
        commits.wrong = 1
        assert (await door.send(ask())).sent is Sent.NOW
        assert len(model.requests) == 1
    assert outcomes(path) == ["failed", "answered"]
    assert rows(path, "SELECT why FROM outcome WHERE dispatch = 1") == [(13,)]
    assert_whole(path)


async def test_a_sending_that_was_written_twice_and_not_made_does_not_block_its_request(
    tmp_path: Path, commits: Commits
) -> None:
    """The store then takes nothing for a moment: the asker is refused, the next one is not, without a start."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, clock):
        commits.wrong = 2
        assert (await refused(door, ask())).code == "record_closed"
        clock.advance(60)
        assert (await door.send(ask())).kept.n == 1
        assert len(model.requests) == 1
    assert outcomes(path) == ["failed", "failed", "answered"]


async def test_with_nothing_put_right_the_sending_blocks_its_request(
    tmp_path: Path, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard off."""

    def nothing(handlers: Handlers, record: Record) -> None: ...

    monkeypatch.setattr(Handlers, "end_unsent", nothing)
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        commits.wrong = 1
        for _ in range(3):
            assert (await refused(door, ask())).code == "record_closed"
            clock.advance(60)
        assert model.requests == []


async def test_a_call_on_the_wire_is_not_taken_for_one_that_was_not_made(tmp_path: Path, commits: Commits) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        first = all_at_once(door, [ask()])
        call = await model.next()
        commits.wrong = 1
        other = all_at_once(door, [ask("other")])
        (await model.next()).set_result(NotSent())
        assert isinstance(await told(other[0]), CallFailed)
        call.set_result(reply())
        assert isinstance(await told(first[0]), Answered)
    assert sorted(outcomes(path)) == ["answered", "failed", "failed"]


@pytest.mark.parametrize(
    ("came", "ends"), [(reply(), "answered"), (NotSent(), "failed"), (Lost(), "unknown")], ids=["answer", "no", "lost"]
)
@pytest.mark.parametrize("often", [1, 2])
@pytest.mark.parametrize("spool", ["a.spool", None])
async def test_an_outcome_that_the_store_has_counts_as_written(
    tmp_path: Path, commits: Commits, came: Any, ends: str, often: int, spool: str | None
) -> None:
    path = tmp_path / "a.db"
    async with queued(path, spool=spool and tmp_path / spool) as (door, model, clock):
        asking = all_at_once(door, [ask()])
        call = await model.next()
        commits.wrong = often
        call.set_result(came)
        said = await told(asking[0])
        assert isinstance(said, {"answered": Answered, "failed": CallFailed, "unknown": CallUnknown}[ends])
        clock.advance(60)
        await settled(door)
        condition = await door.send(Health())
        assert (condition.ok, condition.held, condition.calls) == (True, 0, 0)
        if ends == "answered":
            kept = (await door.send(ask())).kept
            assert (kept.n, kept.total, kept.body, kept.recorded) == (1, 1, answer(), True)
        assert len(model.requests) == 1
    assert outcomes(path) == [ends]
    assert_whole(path)


async def test_a_late_answer_that_the_store_has_counts_as_written(tmp_path: Path, commits: Commits) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        asking = all_at_once(door, [ask()])
        call = await model.next()
        clock.advance(30)
        assert isinstance(await told(asking[0]), CallUnknown)
        commits.wrong = 1
        call.set_result(reply())
        clock.advance(60)
        await settled(door)
        assert (await door.send(ask())).kept.n == 1
        assert (await door.send(Health())).held == 0
    assert rows(path, "SELECT n, state FROM outcome ORDER BY id") == [(1, 3), (2, 1)]


@pytest.mark.parametrize("often", [1, 2, 3])
async def test_what_waited_in_the_spool_is_written_once_though_that_was_reported_as_failed(
    tmp_path: Path, commits: Commits, often: int
) -> None:
    path = tmp_path / "a.db"
    async with spooling(tmp_path) as (door, model, _):
        with locked(path):
            asking = all_at_once(door, [ask("answered"), ask("on the wire")])
            (await model.next()).set_result(reply())
            await told(asking[0])
            call = await model.next()
        commits.wrong = often
        while commits.wrong:
            await settled(door)
        more = all_at_once(door, [ask("after")])
        (await model.next()).set_result(reply(0.3))
        await told(more[0])
        call.set_result(reply(0.2))
        assert isinstance(await told(asking[1]), Answered)
        await settled(door)
        for words, body in (("answered", answer()), ("on the wire", answer(0.2)), ("after", answer(0.3))):
            kept = (await door.send(ask(words))).kept
            assert (kept.n, kept.total, kept.body) == (1, 1, body)
        assert len(model.requests) == 3
    assert outcomes(path) == ["answered"] * 3
    assert_whole(path)


@pytest.mark.parametrize("reached", [True, False], ids=["reached the disk", "did not"])
async def test_what_is_spooled_after_a_doubtful_commit_is_found_by_the_next_process_whichever_it_was(
    tmp_path: Path, commits: Commits, reached: bool
) -> None:
    """Killed before the store is written again: frames from before the COMMIT, and after it, each count once."""
    path, left = tmp_path / "a.db", tmp_path / "left"
    async with spooling(tmp_path) as (door, model, clock):
        before = all_at_once(door, [ask("kept")])
        (await model.next()).set_result(reply(0.9))
        await told(before[0])
        with locked(path):
            asking = all_at_once(door, [ask("before"), ask("ends after")])
            (await model.next()).set_result(reply(0.1))
            await told(asking[0])
            late = await model.next()
        if not reached:
            # As it is found when the log's last frames were not synced.
            _copy(tmp_path, left, ("a.db", "a.db-wal"))
        commits.wrong = 1
        clock.advance(60)
        await _until(lambda: not commits.wrong)
        with locked(path):
            late.set_result(reply(0.2))
            await told(asking[1])
            more = all_at_once(door, [ask("after")])
            (await model.next()).set_result(reply(0.3))
            await told(more[0])
            _copy(tmp_path, left, ("a.db", "a.db-wal", "a.spool") if reached else ("a.spool",))
    for again in range(2):
        async with spooling(left) as (door, model, _):
            said = [(await door.send(ask(words))).kept for words in ("kept", "before", "ends after", "after")]
            assert [(one.n, one.body) for one in said] == [(1, answer(noul)) for noul in (0.9, 0.1, 0.2, 0.3)], again
            assert model.requests == []
    assert outcomes(left / "a.db") == ["answered"] * 4
    assert_whole(left / "a.db")


async def test_an_outcome_found_in_the_log_and_in_the_spool_does_not_stop_the_next_start(
    tmp_path: Path, commits: Commits
) -> None:
    """Its COMMIT was not synced, so it went to the spool as well; then the process was killed."""
    left = tmp_path / "left"
    async with spooling(tmp_path) as (door, model, _):
        asking = all_at_once(door, [ask("answered"), ask("refused")])
        calls = [await model.next(), await model.next()]
        commits.wrong = 4
        calls[0].set_result(reply())
        await told(asking[0])
        calls[1].set_result(NotSent())
        await told(asking[1])
        _copy(tmp_path, left, ("a.db", "a.db-wal", "a.spool"))
    async with spooling(left) as (door, model, _):
        assert (await door.send(ask("answered"))).kept.n == 1
        assert model.requests == []
    assert outcomes(left / "a.db") == ["answered", "failed"]
    assert_whole(left / "a.db")


async def test_a_fresh_one_that_was_written_and_not_made_leaves_the_kept_answer(
    tmp_path: Path, commits: Commits
) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, _):
        await door.send(ask())
        commits.wrong = 1
        assert (await door.send(ask(pick=Fresh()))).kept.n == 2
        assert len(model.requests) == 2
    assert outcomes(path) == ["answered", "failed", "answered"]


def _copy(there: Path, left: Path, names: tuple[str, ...]) -> None:
    left.mkdir(exist_ok=True)
    for name in names:
        with suppress(FileNotFoundError):
            shutil.copy(there / name, left / name)


async def _until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not happened():
            await turns(1)
