"""The nine rules of the mailbox: one commit for what waits, then replies, then notices, and nobody hangs."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.calls import Call, Calls
from archive.actor.hub import Hub
from archive.actor.mailbox import Letter
from archive.actor.store import Record, Store
from archive.attempts import Came, State
from archive.doors import Upstream
from archive.errors import ArchiveError, Busy
from archive.live import Changed, Place
from archive.messages import Answered, Ask, Count, Key, Sent
from archive.picks import Fresh, KeptOnly
from archive.request import Destination, Request, call_id
from tests.actors import (
    Writes,
    all_at_once,
    assert_whole,
    crashed,
    echoing,
    queued,
    reader,
    refused,
    settled,
    told,
    turns,
)
from tests.fakes import EchoModel, FakeClock, QueueModel, actor, answer, ask, reply, request
from tests.stored import counts, outcomes, rows


async def test_what_waits_when_a_transaction_begins_shares_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 1."""
    writes = Writes(monkeypatch)
    async with queued(tmp_path / "a.db") as (door, model, _):
        first = await writes.hold(door)
        asks = all_at_once(door, [ask(f"ask {n}") for n in range(128)])
        await turns(2)
        before = writes.count
        writes.gate.set()
        calls = [await model.next() for _ in asks]
        assert writes.count == before + 1 + 2, "the one that was held back, and two groups of 64"
        for came in calls:
            came.set_result(reply())
        await asyncio.gather(first, *asks)
        assert writes.count <= before + 1 + 2 + 3
    assert_whole(tmp_path / "a.db")


async def test_one_message_that_fails_undoes_itself_alone_and_the_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C-17, B48: and its words are in no log line."""
    add_dispatch = Record.add_dispatch

    def broken(record: Record, number: int, asked_model: str | None, at: int) -> int:
        add_dispatch(record, number, asked_model, at)
        if record.one("SELECT count(*) FROM request r JOIN text t ON t.id = r.state WHERE t.bytes = ?", b'"sentinel"')[
            0
        ]:
            raise ValueError("about the sentinel")
        return number

    writes = Writes(monkeypatch)
    async with echoing(tmp_path / "a.db") as (door, model, _):
        first = await writes.hold(door)
        with monkeypatch.context() as patched:
            patched.setattr(Record, "add_dispatch", broken)
            words = ["a", "b", "sentinel", "c", "d"]
            asks = all_at_once(door, [ask(one) for one in words])
            await turns(2)
            writes.gate.set()
            said = dict(zip(words, [await told(one) for one in asks], strict=True))
        await first
        failed = said.pop("sentinel")
        assert isinstance(failed, ArchiveError)
        assert failed.code == "internal"
        assert all(isinstance(one, Answered) and one.kept.n == 1 for one in said.values())
        assert request("sentinel") not in model.requests
        assert (await door.send(ask("sentinel"))).sent is Sent.NOW, "it left nothing behind that stands in the way"
    assert "sentinel" not in caplog.text
    assert_whole(tmp_path / "a.db")


async def test_an_outcome_the_record_refuses_stops_nobody_elses_calls_and_is_written_once_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-17: a bug that hits one call's outcome, again and again."""
    add_answer = Record.add_answer

    def broken(record: Record, number: int, outcome: int) -> int:
        if number == 1:
            raise ValueError
        return add_answer(record, number, outcome)

    async with echoing(tmp_path / "a.db") as (door, _, clock):
        with monkeypatch.context() as patched:
            patched.setattr(Record, "add_answer", broken)
            assert (await door.send(ask("refused"))).kept.recorded is False
            for n in range(3):
                assert (await door.send(ask(f"other {n}"))).sent is Sent.NOW
                clock.advance(1)
                await settled(door)
        clock.advance(1)
        await settled(door)
        assert (await door.send(ask("refused", KeptOnly()))).kept.n == 1
    assert_whole(tmp_path / "a.db")


async def test_while_a_call_is_on_the_wire_everyone_else_is_served(tmp_path: Path) -> None:
    """Rule 2."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        slow = asyncio.create_task(door.send(ask("slow")))
        came = await model.next()
        quick = asyncio.create_task(door.send(ask("quick")))
        (await model.next()).set_result(reply())
        assert (await quick).kept.n == 1
        assert not slow.done()
        came.set_result(reply())
        await slow


async def test_a_full_mailbox_refuses_at_once_and_still_takes_what_calls_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 3, C-21."""
    writes = Writes(monkeypatch)
    async with queued(tmp_path / "a.db", limits=Limits(mailbox_max=3)) as (door, model, _):
        waiting = asyncio.create_task(door.send(ask("first")))
        came = await model.next()
        first = await writes.hold(door)
        asks = all_at_once(door, [ask(f"ask {n}") for n in range(30)])
        await turns(2)
        assert [one.done() for one in asks] == [False] * 3 + [True] * 27
        assert {type(await told(one)) for one in asks[3:]} == {Busy}
        came.set_result(reply())
        await turns(3)
        writes.gate.set()
        assert (await waiting).kept.n == 1
        for _ in range(3):
            (await model.next()).set_result(reply())
        assert [one.kept.n for one in await asyncio.gather(*asks[:3])] == [1, 1, 1]
        await first


async def test_nobody_is_told_anything_that_is_not_on_disk_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules 4 and 5: at the very moment of each reply, notice and call, another connection sees the rows."""
    path = tmp_path / "a.db"
    seen: list[tuple[str, int, int]] = []
    async with queued(path) as (door, model, _):
        with reader(path) as read, monkeypatch.context() as patched:

            def noting(kind: type[Any], name: str) -> Callable[..., Any]:
                plain = getattr(kind, name)

                def noted(*values: Any, **more: Any) -> Any:
                    seen.append((name, read("SELECT count(*) FROM dispatch"), read("SELECT count(*) FROM answer")))
                    return plain(*values, **more)

                return noted

            for kind, name in [(Hub, "tell"), (Letter, "answer"), (Calls, "start"), (Calls, "settle"), (Call, "leave")]:
                patched.setattr(kind, name, noting(kind, name))
            asking = asyncio.create_task(door.send(ask()))
            came = await model.next()
            assert seen == [("start", 1, 0), ("tell", 1, 0)]
            seen.clear()
            came.set_result(reply())
            await asking
            await settled(door)
            assert seen[:3] == [("settle", 1, 1), ("leave", 1, 1), ("tell", 1, 1)]
            assert set(seen[3:]) == {("answer", 1, 1)}


async def test_a_page_hears_of_a_call_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _), door.watch(Place("call")) as notices:
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        name = call_id(request())
        assert await anext(notices) == Changed(name)
        came.set_result(reply())
        assert await anext(notices) == Changed(name, State.ANSWERED, 1)
        await asking


async def test_what_was_on_the_wire_when_the_process_ended_is_unknown_and_is_not_sent_again(tmp_path: Path) -> None:
    """Rule 5, B33."""
    async with queued(tmp_path / "a.db") as (door, model, clock):
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        copy = crashed(tmp_path / "a.db", tmp_path / "copy.db")
        came.set_result(reply())
        await asking
    clock.advance(7)
    async with echoing(copy, clock) as (door, echo, _):
        error = await refused(door, ask())
        assert (error.code, error.at) == ("call_unknown", clock.now() - 7_000_000)
        assert (await refused(door, ask(pick=KeptOnly()))).code == "not_kept"
        assert echo.requests == []
        assert (await door.send(ask(pick=Fresh()))).kept.n == 1
    assert outcomes(copy) == ["unknown", "answered"]
    assert rows(copy, "SELECT ms FROM outcome WHERE state = 3") == [(7_000,)]
    assert_whole(copy)


async def test_what_the_embedded_model_was_at_when_the_process_ended_failed_and_is_done_again(tmp_path: Path) -> None:
    local = Destination("systemone", "POST", "local:mini@12345678")
    model, asked = QueueModel(), Ask(request(destination=local))
    async with Actor(tmp_path / "a.db", {local: Upstream(model)}.get, FakeClock()) as door:
        asking = asyncio.create_task(door.send(asked))
        came = await model.next()
        copy = crashed(tmp_path / "a.db", tmp_path / "copy.db")
        came.set_result(reply())
        await asking
    async with Actor(copy, {local: Upstream(EchoModel())}.get, FakeClock()) as door:
        assert (await door.send(asked)).sent is Sent.NOW
    assert outcomes(copy) == ["failed", "answered"]


async def test_an_asker_who_leaves_takes_nobody_along_and_the_answer_is_kept(tmp_path: Path) -> None:
    """Rule 6, B19, B22, C-15."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        asks = all_at_once(door, [ask()] * 5)
        came = await model.next()
        await settled(door)
        asks[0].cancel()
        asks[3].cancel()
        await turns(2)
        came.set_result(reply())
        stayed = await asyncio.gather(*asks, return_exceptions=True)
        assert [type(one).__name__ for one in stayed] == [
            "CancelledError",
            "Answered",
            "Answered",
            "CancelledError",
            "Answered",
        ]
        assert {one.sent for one in stayed if isinstance(one, Answered)} == {Sent.SHARED}
        alone = asyncio.create_task(door.send(ask("nobody waits")))
        came = await model.next()
        alone.cancel()
        await turns(2)
        came.set_result(reply())
        await settled(door)
        assert (await door.send(ask("nobody waits", KeptOnly()))).kept.body == answer()
    assert len(model.requests) == 2
    assert counts(tmp_path / "a.db") == {"shared": 3, "no": 1}, "an answer nobody took is no delivery"


async def test_a_transaction_that_is_left_open_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 7."""
    died = asyncio.Event()
    async with echoing(tmp_path / "a.db", dead=died.set) as (door, _, _):
        with monkeypatch.context() as patched:
            patched.setattr(Store, "in_transaction", True)
            await door.send(Count())
            await asyncio.wait_for(died.wait(), 30)


async def test_a_loop_that_dies_ends_the_process_and_the_next_one_finds_what_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 9, C-18."""
    died = asyncio.Event()

    class Lost:
        async def answer(self, request: Request, key: Key) -> Came:
            raise AssertionError("never sent")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("about the sentinel")

    with monkeypatch.context() as patched:
        patched.setattr(Calls, "start", broken)
        async with actor(tmp_path / "a.db", Lost(), dead=died.set) as door:
            asking = asyncio.create_task(door.send(ask()))
            await asyncio.wait_for(died.wait(), 30)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert [(one.levelno, one.getMessage()) for one in caplog.records if one.levelno >= logging.CRITICAL] == [
        (logging.CRITICAL, "the actor died of ZeroDivisionError; the process ends")
    ]
    assert "sentinel" not in caplog.text
    async with echoing(tmp_path / "a.db") as (door, _, _):
        assert (await refused(door, ask())).code == "call_unknown"


def test_a_dead_loop_takes_the_process_with_it_unless_told_otherwise(tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from archive.messages import Count\n"
        "from archive.actor.store import Store\n"
        "from tests.fakes import EchoModel, actor\n"
        "async def main():\n"
        "    async with actor(pathlib.Path(sys.argv[1]), EchoModel()) as door:\n"
        "        Store.in_transaction = True\n"
        "        await door.send(Count())\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.db")], timeout=60, check=False)
    assert ran.returncode == 70


def test_the_seed_of_pythons_hashes_does_not_matter(tmp_path: Path) -> None:
    """B05, B06: three processes with other seeds ask the same; one sends, and all name it alike."""
    script = (
        "import asyncio, json, pathlib, sys\n"
        "from tests.fakes import EchoModel, actor, ask\n"
        "async def main():\n"
        "    async with actor(pathlib.Path(sys.argv[1]), EchoModel()) as door:\n"
        "        said = await door.send(ask())\n"
        "        print(json.dumps([said.sent, said.kept.call_id, said.kept.n, said.kept.total]))\n"
        "asyncio.run(main())\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "a.db")],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("0", "1", "4294967295")
    ]
    name = call_id(request())
    assert [json.loads(one) for one in said] == [["now", name, 1, 1], ["no", name, 1, 1], ["no", name, 1, 1]]
