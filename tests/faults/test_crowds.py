"""Crowds: askers who leave, messages that fail on a bug of ours, more askers than there is room for.

C-15, C-17, C-21.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Limits
from archive.actor.store import Record, Store
from archive.errors import ArchiveError, Busy
from archive.messages import Answered, Sent
from tests.fakes import EchoModel, QueueModel, actor, ask, body, reply, site, upstream
from tests.stored import answers, assert_sound, counts, outcomes, rows

SEED = 20261130


async def test_when_every_fifth_asker_leaves_each_call_ends_once_and_the_others_are_answered(tmp_path: Path) -> None:
    """C-15."""
    store, model, dice = tmp_path / "a.db", QueueModel(), random.Random(SEED)
    async with actor(store, model) as door:
        words = [f"words {number % 40}" for number in range(200)]
        asks = [asyncio.create_task(door.send(ask(word))) for word in words]
        leaving = dice.sample(asks, 40)
        for task in leaving[:20]:
            await asyncio.sleep(0)
            task.cancel()
        calls = [await model.next() for _ in range(40)]
        for task in leaving[20:]:
            task.cancel()
        for came in calls:
            came.set_result(reply())
        said = await asyncio.gather(*asks, return_exceptions=True)
        again = [await door.send(ask(f"words {number}")) for number in range(40)]
    stayed = [one for one, task in zip(said, asks, strict=True) if task not in leaving]
    assert len(stayed) == 160
    assert all(isinstance(one, Answered) and one.kept.n == 1 for one in stayed)
    assert {one.sent for one in again} == {Sent.NOT_SENT}
    assert len(model.requests) == 40
    assert [len(kept) for kept in answers(store).values()] == [1] * 40
    handed_out = Counter(one.sent.value for one in stayed if isinstance(one, Answered))
    assert counts(store) == {**handed_out, "no": 40}


async def test_a_bug_in_every_hundredth_message_fails_these_alone_and_leaves_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C-17. The bug strikes after the message has written its rows."""
    store, add = tmp_path / "a.db", Record.add_dispatch

    def failing(self: Record, request: int, *more: Any) -> int:
        number = add(self, request, *more)
        state = self.one("SELECT t.bytes FROM request r JOIN text t ON t.id = r.state WHERE r.id = ?", request)[0]
        if state.endswith(b'50"'):
            raise RuntimeError(f"a bug that quotes {state}")
        return number

    monkeypatch.setattr(Record, "add_dispatch", failing)
    async with actor(store, EchoModel()) as door:
        asks = [asyncio.create_task(door.send(ask(f"words {number}"))) for number in range(300)]
        said = await asyncio.gather(*asks, return_exceptions=True)
    failed = [number for number, one in enumerate(said) if isinstance(one, ArchiveError)]
    assert failed == [50, 150, 250]
    assert {one.code for one in said if isinstance(one, ArchiveError)} == {"internal"}
    assert sum(isinstance(one, Answered) for one in said) == 297
    assert outcomes(store) == ["answered"] * 297
    assert len(answers(store)) == rows(store, "SELECT count(*) FROM request")[0][0] == 297
    assert rows(store, "SELECT count(*) FROM text WHERE bytes LIKE '%50\"'") == [(0,)]
    assert_sound(store)
    assert "RuntimeError" in caplog.text and "quotes" not in caplog.text


async def test_when_the_mailbox_is_full_the_rest_are_refused_at_once_and_all_who_were_taken_are_answered(
    tmp_path: Path,
) -> None:
    """C-21, ten times as many as there is room for, before the actor has a turn."""
    store, model, room = tmp_path / "a.db", EchoModel(), 20
    async with actor(store, model, limits=Limits(mailbox_max=room)) as door:
        asks = [asyncio.create_task(door.send(ask(f"words {number}"))) for number in range(10 * room)]
        await asyncio.sleep(0)
        refused = [task for task in asks if task.done()]
        assert len(refused) == 9 * room
        assert {type(task.exception()) for task in refused} == {Busy}
        said = await asyncio.gather(*(task for task in asks if task not in refused))
    assert {one.sent for one in said} == {Sent.NOW}
    assert len(model.requests) == room


async def test_over_http_a_full_mailbox_is_a_503_while_the_actor_is_busy_and_nobody_is_left_hanging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-21, with the store held up in the middle of a transaction."""
    room, write = 10, Store.write
    busy, go_on = asyncio.Event(), asyncio.Event()

    async def held_up(self: Store, work: Any) -> Any:
        if started:
            busy.set()
            await go_on.wait()
        return await write(self, work)

    started = False
    monkeypatch.setattr(Store, "write", held_up)
    async with asyncio.timeout(60), upstream() as model, site(tmp_path / "a.db", model.url, mailbox_max=room) as here:
        started = True
        first = asyncio.create_task(here.ask())
        await busy.wait()
        asks = {asyncio.create_task(here.ask(body(f"words {number}"))) for number in range(10 * room)}
        refused: set[asyncio.Task[Any]] = set()
        while len(refused) < 9 * room:
            done, _ = await asyncio.wait(asks - refused, return_when=asyncio.FIRST_COMPLETED)
            refused |= done
        go_on.set()
        taken = await asyncio.gather(first, *(asks - refused))
    said = [task.result() for task in refused]
    assert {(one.status, one.error, one.headers["Retry-After"]) for one in said} == {(503, "busy", "1")}
    assert [one.status for one in taken] == [200] * (room + 1)
    assert len(model.got) == room + 1
