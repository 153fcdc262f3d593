"""What was erased stays so: through an end of the process at any moment, and when an older backup is put back."""

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from archive.actor.actor import Limits
from archive.actor.offline import restore
from archive.actor.store import StoreUnusable, file
from archive.actor.store.ledger import Ledger, Line
from archive.admin import BackUp, Erase
from archive.attempts import NotSent, Reply
from archive.errors import ArchiveError, Erased, RecordClosed
from archive.messages import (
    Feed,
    Show,
)  # fmt: skip
from archive.picks import KeptOnly
from archive.spelling import spellings
from tests.actors import ROOM, all_at_once, assert_whole, crashed, echoing, locked, queued, refused, settled, told
from tests.erasing import JSON, PERSON, RAW, UNTOUCHED, erase, everywhere, in_files, quoting
from tests.fakes import ask, reply
from tests.stored import outcomes, rows


async def test_an_older_backup_that_is_put_back_is_emptied_before_anything_is_served(tmp_path: Path) -> None:
    path, backup = tmp_path / "a.db", tmp_path / "b.backup"
    async with echoing(path) as (door, model, _):
        await everywhere(door, model)
        await door.send(BackUp(str(backup)))
        receipt = await erase(door)
        assert receipt.done
    assert PERSON not in Ledger(path).path.read_text()
    await asyncio.to_thread(restore, backup, path, "backup")
    assert in_files(tmp_path, RAW, JSON) != []
    async with echoing(path) as (door, _, _):
        assert [row.question.words for row in (await door.send(Feed())).rows] == [UNTOUCHED]
        with pytest.raises(Erased) as caught:
            await door.send(Show(1))
        assert caught.value.at == receipt.at
        assert (await erase(door)).done
    assert in_files(tmp_path, RAW, JSON) == []
    assert_whole(path)


async def test_erased_words_that_an_older_store_and_the_spool_beside_it_both_hold_do_not_come_back(
    tmp_path: Path,
) -> None:
    """Put back by hand, from before the erasure, beside a spool that was not wiped: what is taken in is emptied too."""
    path, spool = tmp_path / "a.db", tmp_path / "a.spool"
    limits = Limits(spool_bytes_max=ROOM)
    async with queued(path, limits=limits, spool=spool) as (door, model, _):
        first = all_at_once(door, [ask(PERSON)])
        (await model.next()).set_result(NotSent())
        await told(first[0])
        older = crashed(path, tmp_path / "older")
        with locked(path):
            asking = all_at_once(door, [ask(PERSON)])
            (await model.next()).set_result(reply())
            await told(asking[0])
            waited = spool.read_bytes()
        await settled(door)
        assert (await erase(door)).done
    older.replace(path)
    spool.write_bytes(waited)
    async with echoing(path, limits=limits, spool=spool) as (door, _, _):
        assert (await refused(door, ask(PERSON, KeptOnly()))).code == "not_kept"
        assert (await erase(door)).texts == ()
        assert (await erase(door)).done
    assert in_files(tmp_path, RAW, JSON) == []
    # The answer is there, a version of a request whose words are known no more.
    assert outcomes(path) == ["failed", "answered"]
    assert_whole(path)


async def test_the_numbers_of_another_store_empty_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask(UNTOUCHED))
    Ledger(path).append([Line(number, bytes(32), 7) for number in range(1, 20)])
    async with echoing(path) as (door, _, _):
        assert (await door.send(ask(UNTOUCHED))).sent == "no"


async def test_a_ledger_that_cannot_be_read_lets_nothing_start(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask(PERSON))
        await erase(door)
    with Ledger(path).path.open("ab") as ledger:
        ledger.write(b"7 zz 7\n")
    with pytest.raises(StoreUnusable, match="line 2"):
        async with echoing(path):
            pass


class Ended(Exception):
    """The process ended here."""


@pytest.mark.parametrize("step", ["before the ledger", "within the ledger", "after the ledger", "after the commit"])
async def test_wherever_the_process_ends_the_words_are_gone_or_nothing_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a.db"
    append, fold = Ledger.append, file.fold

    def ends(ledger: Ledger, lines: list[Line]) -> None:
        if step != "before the ledger":
            append(ledger, lines)
        if step == "within the ledger":
            os.truncate(ledger.path, ledger.path.stat().st_size - 9)
        raise Ended

    def folds(db: sqlite3.Connection) -> None:
        if not over.is_set():
            raise Ended
        fold(db)

    over = asyncio.Event()
    if step == "after the commit":
        monkeypatch.setattr(file, "fold", folds)
    else:
        monkeypatch.setattr(Ledger, "append", ends)
    async with echoing(path) as (door, _, _):
        await door.send(ask(PERSON))
        with pytest.raises(ArchiveError):
            await door.send(Erase(PERSON))
        over.set()
    monkeypatch.undo()
    async with echoing(path) as (door, _, _):
        stays = step in {"before the ledger", "within the ledger"}
        assert await door.send(ask(PERSON, KeptOnly())) if stays else await refused(door, ask(PERSON, KeptOnly()))
        assert len(Ledger(path).lines()) == (0 if stays else 1)
        assert len((await erase(door)).texts) == (1 if stays else 0)
        assert (await erase(door)).done
    assert len(Ledger(path).lines()) == 1
    assert in_files(tmp_path, RAW) == []


async def test_where_the_ledger_or_the_store_cannot_be_written_nothing_is_erased(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask(PERSON))
        Ledger(path).path.mkdir()
        with pytest.raises(RecordClosed, match="nothing was erased"):
            await erase(door)
        Ledger(path).path.rmdir()
        await settled(door)
        with locked(path), pytest.raises(RecordClosed):
            await erase(door)
        assert (await door.send(ask(PERSON))).sent == "no"
        assert Ledger(path).lines() == []
        assert (await erase(door)).done


async def test_while_answers_wait_to_be_written_nothing_is_erased(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        waiting = asyncio.create_task(door.send(ask(PERSON)))
        call = await model.next()
        with locked(path):
            call.set_result(quoting())
            assert not (await waiting).kept.recorded
            with pytest.raises(ArchiveError, match="wait to be written"):
                await door.send(Erase(PERSON))
        await settled(door)
        assert (await erase(door)).done
    assert in_files(tmp_path, RAW, JSON) == []


@pytest.mark.parametrize("came", [quoting(), Reply(422, RAW)], ids=["an answer", "an error"])
@pytest.mark.parametrize("killed", [True, False])
async def test_what_comes_back_for_an_erased_request_while_the_store_takes_nothing_leaves_no_word_anywhere(
    tmp_path: Path, came: Reply, killed: bool
) -> None:
    """Neither in the spool, nor with the next process in the record."""
    path, spool, limits = tmp_path / "a.db", tmp_path / "a.spool", Limits(spool_bytes_max=ROOM)
    async with queued(path, limits=limits, spool=spool) as (door, model, _):
        asking = all_at_once(door, [ask(PERSON)])
        call = await model.next()
        assert (await erase(door)).done
        with locked(path):
            call.set_result(came)
            assert isinstance(await told(asking[0]), Erased)
            await settled(door)
            waited = spool.read_bytes()
            left = crashed(path, tmp_path / "left")
        await settled(door)
    assert not any(spelled in waited for spelled in spellings(RAW))
    if killed:
        left.replace(path)
        spool.write_bytes(waited)
        async with echoing(path, limits=limits, spool=spool) as (door, _, _):
            assert (await erase(door)).done
    assert in_files(tmp_path, RAW, JSON, but="left") == []
    answered = came.status == 200
    assert outcomes(path) == ["answered" if answered else "failed"]
    assert rows(path, "SELECT t.bytes, t.emptied_at > 0 FROM outcome o JOIN text t ON t.id = o.reply") == [(None, 1)]
    assert rows(path, "SELECT count(*) FROM answer") == [(int(answered),)]
    assert_whole(path)


async def test_words_that_a_killed_process_had_no_time_to_wipe_from_the_spool_are_gone_after_the_next_start(
    tmp_path: Path,
) -> None:
    """Killed between the COMMIT that took them in and the wiping: else no erasure of them would ever be done."""
    path, spool, limits = tmp_path / "a.db", tmp_path / "a.spool", Limits(spool_bytes_max=ROOM)
    async with queued(path, limits=limits, spool=spool) as (door, model, _):
        with locked(path):
            asking = all_at_once(door, [ask(PERSON)])
            (await model.next()).set_result(reply())
            await told(asking[0])
            waited = spool.read_bytes()
        await settled(door)
    spool.write_bytes(waited)
    async with echoing(path, limits=limits, spool=spool) as (door, model, _):
        assert (await door.send(ask(PERSON))).kept.n == 1
        receipt = await erase(door)
        assert receipt.done, receipt
    assert in_files(tmp_path, RAW, JSON) == []
