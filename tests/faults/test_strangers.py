"""Other programs at the store of the real process: one that holds its lock for long, and a disk that is read-only.

C-08, C-14, B38. On a clock that is moved by hand: tests/archive/actor/test_unwritten.py.
"""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.fakes import Said, answer, body, upstream
from tests.faults.account import accounted
from tests.faults.test_full import can_mount
from tests.process import Ended, lock_of, process
from tests.stored import assert_closed_cleanly, outcomes

ASKS, ASKERS = 50, 10

READ_ONLY = """
import os, sys

where = os.path.dirname(os.environ["ASKONCE_STORE"])
mounted = f"mount --bind {where} {where} && mount -o remount,bind,ro {where}"
words = ["sh", "-c", mounted + ' && exec "$@"', "sh", sys.executable, "-m", "web"]
os.execvp("unshare", ["unshare", "-Urm", *words])
"""
"""A server whose store's folder is mounted read-only."""


async def test_fifty_asks_while_a_stranger_holds_the_lock_are_all_answered_and_all_kept_once(tmp_path: Path) -> None:
    store, words, waits = tmp_path / "a.db", iter(range(ASKS)), list[float]()
    said: dict[str, Said] = {}
    async with upstream() as model, process(store, model.url, ASKONCE_SPOOL_BYTES_MAX=str(16 * 1024 * 1024)) as here:
        model.number_answers()

        async def asker() -> None:
            for number in words:
                began = asyncio.get_running_loop().time()
                said[f"words {number}"] = await here.ask(body(f"words {number}"))
                waits.append(asyncio.get_running_loop().time() - began)

        async with lock_of(store):
            await asyncio.gather(*(asker() for _ in range(ASKERS)))
            assert (await here.send("GET", "/health")).status == 503
        assert {one.status for one in said.values()} == {200}
        for word, before in said.items():
            kept = await here.ask(body(word))
            assert (kept.status, kept.body) == (200, before.body)
            assert (kept.headers["Archive-Answer"], kept.headers["Archive-Sent"]) == ("1/1", "no")
        assert (await here.send("GET", "/health")).status == 200
        assert await here.terminate() == 0
    twice = sum(n > 1 for n in Counter(got.body for got in model.got).values())
    assert (len(model.got), twice) == (ASKS, 0)
    assert_closed_cleanly(store)
    assert outcomes(store) == ["answered"] * ASKS
    counts = {"asked": ASKS, "acknowledged": len(said), "sent twice": twice}
    accounted(f"lock of a stranger, longest wait {max(waits):.1f} s", counts)


async def test_on_a_read_only_disk_it_does_not_start_and_says_why_and_the_answers_can_be_read(tmp_path: Path) -> None:
    """C-14."""
    if not can_mount():
        pytest.skip("this user may not mount a file system of its own")
    store = tmp_path / "disk" / "a.db"
    store.parent.mkdir()
    async with upstream() as model:
        async with process(store, model.url) as here:
            await here.ask()
            assert await here.terminate() == 0
        with pytest.raises(Ended) as ended:
            async with process(store, model.url, ("-c", READ_ONLY)):
                pass
        assert ended.value.status == 1
        assert "Read-only file system" in ended.value.output
        assert "Traceback" not in ended.value.output
        assert len(model.got) == 1
    with closing(sqlite3.connect(f"file:{store}?immutable=1", uri=True)) as db:
        assert db.execute("SELECT bytes FROM text WHERE bytes = ?", (answer(),)).fetchall() == [(answer(),)]
