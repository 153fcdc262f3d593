"""Leaving and stopping at every moment: no open transaction, nothing half kept, nobody waits for ever.

C-15, C-16, B43, B44. In a loop that is stepped by hand, so that every await is hit.
"""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from archive.actor.actor import Limits
from archive.attempts import Came
from archive.errors import Busy
from archive.messages import Answered, Key, Sent
from archive.picks import KeptOnly
from archive.request import Request
from tests.fakes import EchoModel, QueueModel, actor, ask, reply
from tests.stored import answers, assert_closed_cleanly, counts, outcomes

STEPS = 60
"""Turns of the loop; an ask that is answered at once takes far fewer."""


async def turns(n: int) -> None:
    """Let the loop go round n times."""
    for _ in range(n):
        await asyncio.sleep(0)


async def test_an_asker_cancelled_at_any_await_leaves_no_transaction_open_and_its_answer_is_kept(
    tmp_path: Path,
) -> None:
    store, model = tmp_path / "a.db", EchoModel()
    async with actor(store, model) as door:
        for n in range(STEPS):
            leaving = asyncio.create_task(door.send(ask(f"leaving {n}")))
            await turns(n)
            leaving.cancel()
            # The loop ends the process when a transaction is left open, so this also says that none is.
            staying = await door.send(ask(f"staying {n}"))
            assert (staying.sent, staying.kept.n) == (Sent.NOW, 1)
            await asyncio.gather(leaving, return_exceptions=True)
    assert_closed_cleanly(store)
    # A task cancelled before its first step never asked.
    assert [len(kept) for kept in answers(store).values()] == [1] * (2 * STEPS - 1)
    assert outcomes(store) == ["answered"] * (2 * STEPS - 1)
    assert len(model.requests) == 2 * STEPS - 1


@pytest.mark.parametrize("words", ["kept", "not kept"])
async def test_an_asker_cancelled_while_the_record_is_read_takes_nobody_along(tmp_path: Path, words: str) -> None:
    """What is answered or refused from the record alone: a reply to somebody who has left must not be fatal."""
    store, model = tmp_path / "a.db", EchoModel()
    async with actor(store, model, limits=Limits(recent_bytes_max=1)) as door:
        await door.send(ask("kept"))
        for n in range(STEPS // 2):
            leaving = asyncio.create_task(door.send(ask(words, KeptOnly())))
            await turns(n)
            leaving.cancel()
            assert (await door.send(ask("kept"))).sent is Sent.NOT_SENT
            await asyncio.gather(leaving, return_exceptions=True)
    assert len(model.requests) == 1
    assert_closed_cleanly(store)


@pytest.mark.parametrize("throw", [True, False])
async def test_an_asking_that_is_dropped_at_its_only_await_disturbs_nobody(tmp_path: Path, throw: bool) -> None:
    store, model = tmp_path / "a.db", QueueModel()
    async with actor(store, model) as door:
        asking = door.send(ask())
        asking.send(None)
        if throw:
            with pytest.raises(asyncio.CancelledError):
                asking.throw(asyncio.CancelledError())
        else:
            asking.close()
        came = await model.next()
        joined = asyncio.create_task(door.send(ask()))
        await turns(1)
        came.set_result(reply())
        assert (await joined).kept.n == 1
    assert outcomes(store) == ["answered"]


@pytest.mark.parametrize("n", range(0, STEPS, 2))
async def test_a_stop_at_any_moment_leaves_nobody_waiting_and_nothing_half_kept(tmp_path: Path, n: int) -> None:
    store, model = tmp_path / "a.db", SlowModel()
    async with asyncio.timeout(30), actor(store, model) as door:
        asks = [asyncio.create_task(door.send(ask(f"{n} {i}"))) for i in range(3)]
        await turns(n)
        door.stop()
        late = asyncio.create_task(door.send(ask(f"{n} late")))
        said = await asyncio.gather(*asks, late, return_exceptions=True)
    assert {type(one) for one in said} <= {Answered, Busy}
    assert_closed_cleanly(store)
    kept = sum(isinstance(one, Answered) for one in said)
    assert outcomes(store) == ["answered"] * kept == ["answered"] * len(model.requests)
    assert counts(store) == ({"now": kept} if kept else {})


class SlowModel(EchoModel):
    """Answers after some turns of the loop."""

    async def answer(self, request: Request, key: Key) -> Came:
        await turns(20)
        return await super().answer(request, key)


async def test_nothing_is_sent_any_more_once_stopping_has_begun(tmp_path: Path) -> None:
    store, model = tmp_path / "a.db", SlowModel()
    async with asyncio.timeout(30), actor(store, model) as door:
        before = await door.send(ask("before"))
        asks = [asyncio.create_task(door.send(ask(words))) for words in ("before", "with the stop", "with it too")]
        await turns(1)
        door.stop()
        said = await asyncio.gather(*asks, return_exceptions=True)
    assert before.sent is Sent.NOW
    assert isinstance(said[0], Answered) and said[0].sent is Sent.NOT_SENT
    assert {type(one) for one in said[1:]} == {Busy}
    assert len(model.requests) == 1
    assert outcomes(store) == ["answered"]


async def test_what_is_handed_out_while_stopping_is_counted_to_the_last_one(tmp_path: Path) -> None:
    store, handed_out = tmp_path / "a.db", 0
    async with actor(store, EchoModel()) as door:
        await door.send(ask())
        door.stop()
        with suppress(Busy):
            for _ in range(500):
                await door.send(ask())
                handed_out += 1
                await turns(1)
    assert counts(store) == {"now": 1, "no": handed_out}


@pytest.mark.parametrize("n", range(0, STEPS, 3))
async def test_a_start_cancelled_at_any_moment_leaves_no_thread_and_no_open_file(tmp_path: Path, n: int) -> None:
    threads = set(threading.enumerate())
    opening = asyncio.create_task(actor(tmp_path / "a.db", EchoModel()).__aenter__())
    await turns(n)
    opening.cancel()
    with suppress(asyncio.CancelledError):
        await (await opening).__aexit__()
    left = set(threading.enumerate()) - threads
    for thread in left:
        await asyncio.to_thread(thread.join, 30)
    assert not [thread for thread in left if thread.is_alive()]
    assert not [file for file in psutil.Process().open_files() if Path(file.path).is_relative_to(tmp_path)]
