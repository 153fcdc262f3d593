"""What is held in memory is bounded: recent answers, what pages have not heard, what waits for the actor."""

import asyncio
import random
from pathlib import Path
from secrets import randbits

import msgspec
import pytest

from archive.actor.actor import Limits
from archive.actor.hub import Hub
from archive.actor.mailbox import Mailbox
from archive.actor.recent import Recent
from archive.errors import Busy, RecordClosed
from archive.live import Changed, Place, Stale
from archive.messages import Count, Kept, Stop
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from archive.request import Request
from tests.actors import Writes, echoing, queued, settled
from tests.fakes import ASK, answer, ask, reply, request


def _kept(n: int, body: bytes = b"{}") -> Kept:
    return Kept("0" * 12, n, n, 200, body, "", "", 0, 0)


def test_recent_answers_never_take_more_than_they_may_and_the_longest_unused_goes_first() -> None:
    seed = randbits(32)
    print("seed", seed)
    dice = random.Random(seed)
    recent = Recent(50_000)
    last: dict[Request, Kept] = {}
    for n in range(2_000):
        asked = request(f"ask {dice.randrange(60)}")
        match dice.randrange(4):
            case 0:
                recent.drop(asked)
                last.pop(asked, None)
            case 1:
                found = recent.get(asked)
                assert found is None or found == last[asked], seed
            case _:
                last[asked] = _kept(n, b"x" * dice.randrange(3_000))
                recent.put(asked, last[asked])
                assert recent.get(asked) == last[asked]
        assert recent.size <= 50_000
    assert 10 < len(recent) < 60
    for asked in last:
        recent.drop(asked)
    assert (len(recent), recent.size) == (0, 0)


def test_what_was_used_last_stays_longest() -> None:
    recent = Recent(20_000)
    for n in range(5):
        recent.put(request(str(n)), _kept(1))
        assert recent.get(request("0")) is not None
    for n in range(5, 50):
        recent.put(request(str(n)), _kept(1))
        assert recent.get(request("0")) is not None
    assert recent.get(request("1")) is None


def test_an_answer_too_large_to_be_remembered_drops_the_older_one_it_replaces() -> None:
    recent = Recent(16_000)
    recent.put(request(), _kept(1))
    recent.put(request(), _kept(2, b"x" * 10_000))
    assert recent.get(request()) is None
    assert recent.size == 0


def test_equal_requests_are_one_entry_and_one_byte_more_is_another() -> None:
    recent = Recent(100_000)
    recent.put(request(), _kept(1))
    assert recent.get(msgspec.structs.replace(request())) == _kept(1)
    assert recent.get(Request(ASK, request().body + b" ")) is None
    assert recent.get(msgspec.structs.replace(request(), partition="bob")) is None


PICKS: list[tuple[Pick, int, bytes]] = [
    (Latest(), 2, answer(0.2)),
    (KeptOnly(), 2, answer(0.2)),
    (Version(2), 2, answer(0.2)),
    (Version(1), 1, answer(0.1)),
]


async def test_a_new_version_is_handed_out_at_once_by_every_pick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = Writes(monkeypatch)
    async with queued(tmp_path / "a.db") as (door, model, _):
        for n, pick in enumerate((Latest(), Fresh()), start=1):
            asking = asyncio.create_task(door.send(ask(pick=pick)))
            (await model.next()).set_result(reply(n / 10))
            assert (await asking).kept.n == n
            for _ in range(2):
                assert (await door.send(ask())).kept.n == n
        for pick, n, body in PICKS:
            kept = (await door.send(ask(pick=pick))).kept
            assert (kept.n, kept.total, kept.body) == (n, 2, body)
        before = writes.count
        for _ in range(100):
            assert (await door.send(ask())).kept.n == 2
        assert writes.count == before, "the newest answer costs no transaction"


async def test_what_does_not_fit_into_memory_is_served_from_the_record(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db", limits=Limits(recent_bytes_max=1)) as (door, model, _):
        for _ in range(2):
            for n in range(10):
                assert (await door.send(ask(f"ask {n}"))).kept.body == answer()
    assert len(model.requests) == 10


def _notice(n: int) -> Changed:
    return Changed(f"{n:012x}")


async def test_a_page_that_falls_behind_loses_its_outbox_and_hears_stale_once() -> None:
    """Rule 8, B70."""
    hub = Hub(8)
    with hub.open(Place("call")) as slow, hub.open(Place("home")) as quick:
        heard: list[object] = []
        for n in range(1_000):
            hub.tell(_notice(n))
            heard.append(await anext(quick))
            assert len(slow) <= 8
        assert heard == [_notice(n) for n in range(1_000)], "the others miss nothing"
        assert await anext(slow) == Stale()
        assert len(slow) == 0
        hub.tell(_notice(7))
        assert await anext(slow) == _notice(7), "and hears what comes after it has caught up"


async def test_an_outbox_that_is_just_full_loses_nothing() -> None:
    hub = Hub(3)
    with hub.open(Place("call")) as page:
        for n in range(3):
            hub.tell(_notice(n))
        assert [await anext(page) for _ in range(3)] == [_notice(n) for n in range(3)]
        for n in range(4):
            hub.tell(_notice(n))
        assert await anext(page) == Stale()


async def test_pages_that_come_and_go_or_are_cancelled_leave_nothing_behind(tmp_path: Path) -> None:
    """B72."""
    hub = Hub(8)
    async with echoing(tmp_path / "a.db") as (door, _, _):

        async def page(opened: asyncio.Event) -> None:
            async with door.watch(Place("call")) as notices:
                with hub.open(Place("call")):
                    opened.set()
                    async for _ in notices:
                        pass

        for n in range(100):
            opened = asyncio.Event()
            task = asyncio.create_task(page(opened))
            await opened.wait()
            assert len(hub) == 1
            if n % 2:
                await door.send(ask(f"ask {n}"))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert len(hub) == 0
        await settled(door)


async def test_a_full_mailbox_refuses_outsiders_and_never_the_house() -> None:
    """Rule 3."""
    mailbox = Mailbox(2)
    mailbox.put(Count())
    mailbox.put(Count())
    with pytest.raises(Busy):
        mailbox.put(Count())
    mailbox.report(Stop())
    assert [type(letter.message) for letter in await mailbox.take(64)] == [Count, Count, Stop]
    mailbox.put(Count())


async def test_letters_are_taken_in_the_order_they_came_and_no_more_than_asked() -> None:
    mailbox = Mailbox(100)
    replies = [mailbox.put(Count()) for _ in range(10)]
    groups = [await mailbox.take(4) for _ in range(3)]
    assert [len(group) for group in groups] == [4, 4, 2]
    assert [letter.reply for group in groups for letter in group] == replies
    taking = asyncio.create_task(mailbox.take(4))
    await asyncio.sleep(0)
    assert not taking.done()
    mailbox.report(Stop())
    assert len(await taking) == 1


async def test_a_closed_mailbox_refuses_everybody_alike_and_hands_over_what_it_has() -> None:
    mailbox, errors = Mailbox(10), list[RecordClosed]()
    mailbox.put(Count())
    mailbox.close(RecordClosed("closed"))
    for _ in range(3):
        with pytest.raises(RecordClosed) as refused:
            mailbox.put(Count())
        errors.append(refused.value)
    assert len({id(error) for error in errors}) == 3, "one object for all would gather everybody's traceback"
    mailbox.report(Stop())
    assert len(await mailbox.take(64)) == 2


async def test_a_reply_to_one_who_has_left_disturbs_nobody() -> None:
    mailbox = Mailbox(10)
    mailbox.put(Count()).cancel()
    mailbox.report(Stop())
    for letter in await mailbox.take(64):
        letter.answer(None)
