"""The owner's own mistakes with files, on real processes: what was acknowledged is found again, none begins anew.

C-09, C-11. On a clock that is moved by hand: tests/archive/actor/test_health.py.
"""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from archive.actor.store.copies import all_faults
from archive.actor.store.file import opened
from tests.archive.actor.recorded import fill
from tests.fakes import SPOOL_BYTES, body, upstream
from tests.process import ROOT, Ended, Process, lock_of, process
from tests.stored import answers, assert_sound

ASKS = 5


async def asked(here: Process, *words: str) -> None:
    """Each is answered and acknowledged."""
    for word in words:
        said = await here.ask(body(word))
        assert (said.status, said.headers["Archive-Answer"]) == (200, "1/1")


async def refusal(store: Path, model_url: str, spool: Path | None = None) -> str:
    """What a start says that is refused."""
    with pytest.raises(Ended) as ended:
        async with process(store, model_url, ASKONCE_SPOOL=str(spool or "")):
            pass
    assert ended.value.status == 1, ended.value.output
    assert "Traceback" not in ended.value.output
    return ended.value.output


async def dies(here: Process) -> str:
    """It notices with whatever is asked next, tells nobody that anything was kept, and ends; its output."""
    with pytest.raises(Exception, match=r"(?i)disconnect|reset|closed"):
        await here.ask(body("afterwards"))
    assert await here.wait() == 70
    return here.output()


def count(store: Path) -> int:
    """How many answers are kept, in a file that is sound."""
    assert_sound(store)
    return sum(map(len, answers(store).values()))


async def test_a_store_that_was_moved_has_all_that_was_kept_and_no_empty_one_is_begun_in_its_place(
    tmp_path: Path,
) -> None:
    store, moved = tmp_path / "a.db", tmp_path / "z.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            await asked(here, *(f"words {n}" for n in range(ASKS)))
            store.rename(moved)
            said = await dies(here)
        assert f"all that was kept is in {moved}" in said
        refused = await refusal(store, model.url)
        assert f"{store} is missing" in refused and f"{store}-wal" in refused and not store.exists()
        moved.rename(store)
        async with process(store, model.url) as here:
            await asked(here, *(f"words {n}" for n in range(ASKS)))
            await here.terminate()
        assert len(model.got) == ASKS
    assert count(store) == ASKS


async def test_a_store_that_was_moved_while_somebody_reads_it_is_whole_again_under_its_name(tmp_path: Path) -> None:
    """The reader keeps the log from being folded in: it stays where it is, and no start throws it away."""
    store, moved = tmp_path / "a.db", tmp_path / "z.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            await asked(here, "before")
            with closing(sqlite3.connect(store, isolation_level=None)) as db:
                db.execute("BEGIN")
                db.execute("SELECT count(*) FROM answer").fetchone()
                await asked(here, "after")
                store.rename(moved)
                said = await dies(here)
        assert f"rename it to {store} again" in said
        assert f"{store}-wal" in await refusal(store, model.url)
    moved.rename(store)
    assert count(store) == 2


async def test_a_file_moved_over_the_store_spoils_neither(tmp_path: Path) -> None:
    """Both the file that was moved there and all that was acknowledged before are whole."""
    store, backup = tmp_path / "a.db", tmp_path / "b.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            await asked(here, "old 1", "old 2")
            await here.terminate()
        shutil.copy(store, backup)
        async with process(store, model.url) as here:
            await asked(here, *(f"words {n}" for n in range(ASKS)))
            backup.replace(store)
            said = await dies(here)
        saved = tmp_path / "a.db.before-it-went-1"
        assert f"all that was kept was copied to {saved}" in said
        async with process(store, model.url) as here:
            await asked(here, "old 1", "old 2")
            await here.terminate()
    assert (count(store), count(saved)) == (2, 2 + ASKS)
    with opened(saved) as copy:
        assert (copy.faults, all_faults(copy.db)) == ([], [])
    assert saved.stat().st_mode & 0o77 == 0


async def test_a_file_moved_over_the_store_while_somebody_reads_it_spoils_neither(tmp_path: Path) -> None:
    """The log cannot be folded in: it is moved away, so that it is not read into the file that is none of its own."""
    store, backup = tmp_path / "a.db", tmp_path / "b.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            await asked(here, "old 1", "old 2")
            await here.terminate()
        shutil.copy(store, backup)
        async with process(store, model.url) as here:
            await asked(here, "before")
            with closing(sqlite3.connect(store, isolation_level=None)) as db:
                db.execute("BEGIN")
                db.execute("SELECT count(*) FROM answer").fetchone()
                await asked(here, *(f"words {n}" for n in range(ASKS)))
                backup.replace(store)
                await dies(here)
        assert count(store) == 2
        assert count(tmp_path / "a.db.before-it-went-1") == 3 + ASKS


async def test_a_store_moved_away_and_another_put_there_are_both_whole(tmp_path: Path) -> None:
    store, moved = tmp_path / "a.db", tmp_path / "z.db"
    other = tmp_path / "other" / "a.db"
    other.parent.mkdir()
    async with upstream() as model:
        async with process(other, model.url) as here:
            await asked(here, "other")
            await here.terminate()
        async with process(store, model.url) as here:
            await asked(here, "before")
            with closing(sqlite3.connect(store, isolation_level=None)) as db:
                db.execute("BEGIN")
                db.execute("SELECT count(*) FROM answer").fetchone()
                await asked(here, "after")
                store.rename(moved)
                shutil.copy(other, store)
                assert f"all that was kept is in {moved}" in await dies(here)
    assert (count(store), count(moved)) == (1, 2)


async def test_a_store_that_was_removed_while_it_is_open_is_copied_before_the_process_ends(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            await asked(here, *(f"words {n}" for n in range(ASKS)))
            store.unlink()
            await dies(here)
        saved = tmp_path / "a.db.before-it-went-1"
        assert str(saved) in await refusal(store, model.url)
    assert count(saved) == ASKS


async def test_without_its_lock_file_a_server_tells_nobody_anything_more_that_a_second_one_may_contradict(
    tmp_path: Path,
) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with process(store, model.url) as first:
            await asked(first, "before")
            (tmp_path / "a.db.lock").unlink()
            assert "the spool of a server that runs" in await refusal(store, model.url)
            said = await dies(first)
            assert f"{store}.lock is no longer the file" in said
            async with process(store, model.url) as second:
                await asked(second, "before", "after")
                await second.terminate()
        assert [b"afterwards" in got.body for got in model.got] == [False, False]
    assert count(store) == 2


async def test_a_store_with_a_second_name_is_opened_by_neither(tmp_path: Path) -> None:
    store, link = tmp_path / "a.db", tmp_path / "b.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            link.hardlink_to(store)
            assert "hard link" in await refusal(link, model.url)
            await asked(here, "still")
            await here.terminate()
        assert "hard link" in await refusal(store, model.url)
        link.unlink()
        async with process(store, model.url) as here:
            await asked(here, "still")
    assert len(model.got) == 1


KILLED = """
import os, signal, sys

left = int(sys.argv.pop(1))


def killing(call):
    def one(*given, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **more)

    return one


os.rename, os.link, os.unlink = killing(os.rename), killing(os.link), killing(os.unlink)
from web.cli import main

main(["restore", sys.argv.pop(1)])
"""
"""`askonce restore`, killed before one of what it does with names."""


def restore(store: Path, backup: Path, nth: int) -> int:
    env = {"PATH": os.environ["PATH"], "ASKONCE_STORE": str(store), "ASKONCE_SPOOL_BYTES_MAX": str(SPOOL_BYTES)}
    words = [sys.executable, "-c", KILLED, str(nth), str(backup)]
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, check=False).returncode


async def test_killed_anywhere_a_restore_leaves_the_old_store_the_new_one_or_one_that_no_start_takes(
    tmp_path: Path,
) -> None:
    """And done again it comes to its end, with log and spool of the old store beside that."""
    live, made = tmp_path / "live", tmp_path / "made"
    live.mkdir()
    backup = tmp_path / "b.db"
    await asyncio.to_thread(fill, backup)
    async with upstream() as model:
        async with process(live / "a.db", model.url) as here:
            await asked(here, "words")
            async with lock_of(live / "a.db"):
                assert (await here.ask(body("spooled"))).status == 200
                await here.kill()
                shutil.copytree(live, made)
        seen = list[str]()
        for nth in range(1, 20):
            folder = tmp_path / str(nth)
            shutil.copytree(made, folder)
            store = folder / "a.db"
            assert (folder / "a.db-wal").stat().st_size
            if restore(store, backup, nth) == 0:
                break
            refused, before = "", len(model.got)
            try:
                async with process(store, model.url) as here:
                    assert [(await here.ask(body(word))).status for word in ("words", "spooled")] == [200, 200]
                    await here.terminate()
                    # The store as it was, with log and spool; the new one would have sent both.
                    seen.append({before: "old", before + 2: "new"}[len(model.got)])
                    if seen[-1] == "new":
                        assert count(next(folder.glob("a.db.before-*[Z]"))) == 1
            except Ended as ended:
                refused = ended.output
                seen.append("refused")
                assert "askonce restore` was cut off" in refused
                (folder / "a.db.part").unlink()
                assert restore(store, backup, 0) == 0
                aside = next(folder.glob("a.db.before-*[Z]"))
                assert len(list(folder.glob("a.db.before-*.spool"))) == 1
                assert count(aside) == 1
                assert count(store) == count(backup)
        else:
            pytest.fail("it never came to its end")
    assert seen[0] == "old" and "refused" in seen, seen
    assert len(seen) > 3


def gone(store: Path) -> None:
    store.unlink()


def emptied(store: Path) -> None:
    os.truncate(store, 0)


@pytest.mark.parametrize("lost", [gone, emptied])
@pytest.mark.parametrize("left", ["ledger", "spool", "before", "part", "log"])
async def test_where_something_of_a_store_is_left_and_the_store_is_not_no_record_is_begun(
    tmp_path: Path, lost: Callable[[Path], None], left: str
) -> None:
    store = tmp_path / "a.db"
    await asyncio.to_thread(fill, store)
    files = {
        "ledger": ("a.db.erased", b"1 00 2\n"),
        "spool": ("a.db.spool", bytes(1024) + b"waits"),
        "before": ("a.db.before-x", b"x"),
        "part": ("a.db.part", b"x"),
        "log": ("a.db-wal", b"x"),
    }
    name, data = files[left]
    lost(store)
    for end in ("-wal", "-shm"):
        store.with_name(store.name + end).unlink(missing_ok=True)
    (tmp_path / name).write_bytes(data)
    said = await refusal(store, "")
    assert str(tmp_path / name) in said and "askonce restore FILE" in said
    assert (tmp_path / name).read_bytes() == data
    (tmp_path / name).unlink()
    async with process(store) as here:
        assert (await here.send("GET", "/health")).status == 200
