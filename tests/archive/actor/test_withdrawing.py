"""One wrong answer is taken back without losing the others: hidden, named as such, and back when the owner says so."""

import asyncio
from pathlib import Path

import pytest

from archive.admin import Withdraw
from archive.errors import NotFound, NotKept, Withdrawn
from archive.live import Forgotten, Place
from archive.messages import History, Look, Named, Show, Versions
from archive.picks import Fresh, KeptOnly, Version
from archive.when import shown
from tests.actors import assert_whole, echoing, locked, refused, settled
from tests.erasing import PERSON, erase
from tests.fakes import ask, reply, request
from tests.stored import rows

WHY = "It answers the wrong ticket."


async def test_a_version_that_is_withdrawn_is_hidden_and_says_why_and_all_numbers_stay(tmp_path: Path) -> None:
    """B88: of three answers the second."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, clock):
        for noul in (0.1, 0.2, 0.3):
            model.came = reply(noul)
            kept = (await door.send(ask(pick=Fresh()))).kept
        clock.advance(60)
        await door.send(Withdraw(kept.request_id, 2, WHY))
        assert (await door.send(ask())).kept == kept
        gone = await refused(door, ask(pick=Version(2)))
        assert isinstance(gone, Withdrawn)
        assert (gone.at, WHY in gone.text, shown(clock.now()) in gone.text) == (clock.now(), True, True)
        assert (await door.send(Look(request(), 2))).gone == gone.text
        assert [one.n for one in await door.send(History(kept.request_id))] == [3, 1]
        standings = [one.standing for one in await door.send(Versions(kept.request_id))]
        assert [(one.n, one.withdrawn, one.why) for one in standings] == [
            (1, False, ""),
            (2, True, WHY),
            (3, False, ""),
        ]
        # Withdrawing the newest: the newest left is served, and it still is the first of three.
        await door.send(Withdraw(kept.request_id, 3))
        older = (await door.send(ask())).kept
        assert (older.n, older.total) == (1, 3)
        assert [(one.n, one.total) for one in await door.send(History(kept.request_id))] == [(1, 3)]
        model.came = reply(0.4)
        assert (await door.send(ask(pick=Fresh()))).kept.n == 4
    assert rows(path, "SELECT n FROM answer ORDER BY id") == [(1,), (2,), (3,), (4,)]
    assert_whole(path)


async def test_a_word_that_is_taken_back_counts_since_it_is_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        kept = (await door.send(ask())).kept
        await door.send(Withdraw(kept.request_id, 1, WHY))
        assert isinstance(await refused(door, ask()), Withdrawn)
        assert isinstance(await refused(door, ask(pick=KeptOnly())), NotKept)
        await door.send(Withdraw(kept.request_id, 1, "It was right after all.", withdrawn=False))
        assert (await door.send(ask())).kept == kept
        assert (await door.send(ask(pick=Version(1)))).kept == kept
    assert rows(path, "SELECT withdrawn FROM withdrawal ORDER BY id") == [(1,), (0,)]


async def test_an_answer_that_was_used_a_moment_ago_is_not_handed_out_any_more(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _), door.watch(Place("/")) as notices:
        kept = (await door.send(ask())).kept
        await door.send(ask())
        await door.send(Withdraw(kept.request_id, 1))
        assert isinstance(await refused(door, ask()), Withdrawn)
        assert len(model.requests) == 1
        assert isinstance(await anext(notices), Forgotten)


async def test_all_versions_withdrawn_sends_nothing_by_itself(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _):
        kept = (await door.send(ask())).kept
        await door.send(Withdraw(kept.request_id, 1))
        await refused(door, ask())
        assert len(model.requests) == 1
        assert (await door.send(ask(pick=Fresh()))).kept.n == 2


async def test_what_is_not_there_cannot_be_withdrawn(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        kept = (await door.send(ask())).kept
        for number, n in ((kept.request_id, 2), (kept.request_id, 0), (99, 1)):
            with pytest.raises(NotFound):
                await door.send(Withdraw(number, n))
        await settled(door)
        with locked(path), pytest.raises(Exception, match="cannot be written"):
            await door.send(Withdraw(kept.request_id, 1))
        assert (await door.send(ask())).kept == kept


async def test_the_words_of_a_reason_are_erased_like_all_others(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        kept = (await door.send(ask())).kept
        await door.send(Withdraw(kept.request_id, 1, f"{PERSON} asked for it"))
        receipt = await erase(door)
        assert [one.uses.others for one in receipt.stayed] == [1]
        assert (await erase(door, also_shared=True)).done
        gone = await refused(door, ask(pick=Version(1)))
        assert isinstance(gone, Withdrawn)
        assert (await door.send(Show(kept.request_id))).looked.kept is None
        assert await door.send(Named(kept.call_id)) == (kept.request_id,)


async def test_a_hundred_words_at_once_are_all_written_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        kept = (await door.send(ask())).kept
        said = [door.send(Withdraw(kept.request_id, 1, str(n), n % 2 == 0)) for n in range(100)]
        await asyncio.gather(*said)
        assert (await door.send(ask())).kept == kept
    assert [n for (n,) in rows(path, "SELECT withdrawn FROM withdrawal ORDER BY id")] == [1, 0] * 50
