"""The log beside the store of the real process: kept from being folded in by another program, and taken away from it.

C-10, B39, B40. On a clock that is moved by hand: tests/archive/actor/test_log.py.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.fakes import Said, body, upstream
from tests.faults.account import accounted
from tests.process import Process, process
from tests.stored import answers, assert_closed_cleanly, assert_sound, rows

PYTHON = Path(sys.executable).name[:15]
"""What the system calls our programs."""

MEGABYTE = 1024 * 1024
LARGE, FULL = 2 * MEGABYTE, 8 * MEGABYTE

BOUNDED = f"""
import sys
from archive import health
health.WAL_BYTES_MAX, health.WAL_BYTES_FULL = {LARGE}, {FULL}
from web.__main__ import main
sys.exit(main())
"""
"""A server whose log is large and full sooner than others'."""

READER = """
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
half = db.execute("SELECT bytes FROM text")
half.fetchone()
print("reading", flush=True)
sys.stdin.read()
"""
"""A program that reads half of a table and thinks of other things."""

UNGUARDED = """
import sys
from archive.actor.store.files import Files
from web.__main__ import main
Files.gone = lambda self: None
sys.exit(main())
"""
"""A server that does not look after its files."""

TRAPPED = """
import os
from archive.actor.store import Store

write = Store.write

async def trapped(self, work):
    open(os.environ["ASKONCE_STORE"], "rb").close()
    return await write(self, work)

Store.write = trapped
"""
"""Put before it: a server that itself opens its store's file by another way than SQLite, and closes it."""

GUARDED = """
import sys
from web.__main__ import main
sys.exit(main())
"""


def log_of(store: Path) -> Path:
    return store.with_name(store.name + "-wal")


@asynccontextmanager
async def reading(store: Path) -> AsyncGenerator[int, None]:
    """Another program has a half-read cursor; its process id."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-c", READER, str(store), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert running.stdout is not None
    try:
        assert await running.stdout.readline() == b"reading\n"
        yield running.pid
    finally:
        await running.communicate(b"\n")


async def test_a_reader_that_never_ends_does_not_make_the_log_grow_without_limit_and_all_is_written_when_it_does(
    tmp_path: Path,
) -> None:
    """B39, B40."""
    store, said, sizes = tmp_path / "a.db", dict[str, Said](), list[int]()
    more = {"ASKONCE_SPOOL_BYTES_MAX": str(4 * MEGABYTE)}
    async with upstream() as model, process(store, model.url, ("-c", BOUNDED), **more) as here:
        model.number_answers()
        said["first"] = await here.ask(body("first"))
        async with reading(store) as reader:
            while (one := await here.ask(body(words := f"{len(said)} " + "x" * 32_000))).status == 200:
                said[words] = one
                sizes.append(log_of(store).stat().st_size)
                assert sizes[-1] < FULL + MEGABYTE // 2
            assert (one.status, one.error) == (503, "record_closed")
            marked = sum(one.headers["Archive-Answer"] == "not in the record yet" for one in said.values())
            assert 0 < marked < len(said)
            before = len(model.got)
            assert (await here.ask(body("first"))).headers["Archive-Sent"] == "no"
            assert (await here.ask(body("another"))).status == 503
            assert len(model.got) == before, "nothing is sent when there is no place to record it"
            health = await here.send("GET", "/health")
            assert health.status == 503
            assert json.loads(health.body)["why"].startswith("another program has been")
        assert max(sizes) > FULL
        health = await here.send("GET", "/health")
        assert (health.status, json.loads(health.body)["why"]) == (200, "")
        assert log_of(store).stat().st_size < LARGE
        for words, one in said.items():
            kept = await here.ask(body(words))
            assert (kept.body, kept.headers["Archive-Answer"], kept.headers["Archive-Sent"]) == (one.body, "1/1", "no")
        assert (await here.ask(body("another"))).status == 200
        assert log_of(store).stat().st_size < LARGE
        assert await here.terminate() == 0
    alarms = [line for line in here.output().splitlines() if "the record cannot be written" in line]
    assert len(alarms) == 1 and f"{PYTHON}, process {reader}" in alarms[0]
    assert_closed_cleanly(store)
    twice = sum(n > 1 for n in Counter(got.body for got in model.got).values())
    assert (len(model.got), twice) == (len(said) + 1, 0)
    counts = {"acknowledged": len(said), "marked": marked, "sent twice": twice}
    accounted(
        f"a reader that never ends, the log at most {max(sizes) / MEGABYTE:.1f} MiB of {FULL // MEGABYTE}", counts
    )


def log_removed(store: Path) -> None:
    log_of(store).unlink()


def log_replaced(store: Path) -> None:
    log_of(store).rename(store.with_name("moved"))
    log_of(store).write_bytes(b"other")


def index_removed(store: Path) -> None:
    store.with_name(store.name + "-shm").unlink()


def both_removed(store: Path) -> None:
    log_removed(store)
    index_removed(store)


def opened_and_closed(store: Path) -> None:
    """By a program that does nothing wrong: SQLite removes the log with what it takes for the last connection."""
    assert rows(store, "SELECT count(*) FROM answer") != [(0,)]
    assert not log_of(store).exists()


async def asked(here: Process, first: int) -> list[bytes]:
    """Ask five things; all are acknowledged as kept."""
    for n in range(first, first + 5):
        assert (await here.ask(body(f"words {n}"))).headers["Archive-Answer"] == "1/1"
    return [f'"words {n}"'.encode() for n in range(first, first + 5)]


@pytest.mark.parametrize(
    ("before", "taken"),
    [
        ("", log_removed),
        ("", log_replaced),
        ("", index_removed),
        ("", both_removed),
        (TRAPPED, opened_and_closed),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
async def test_a_log_that_was_taken_away_ends_the_process_and_nothing_acknowledged_is_lost(
    tmp_path: Path, before: str, taken: Callable[[Path], None]
) -> None:
    """C-10: the process must not go on acknowledging what nobody will find."""
    store = tmp_path / "a.db"
    async with upstream() as model, process(store, model.url, ("-c", before + GUARDED)) as here:
        told = await asked(here, 0)
        taken(store)
        with pytest.raises(aiohttp.ClientError):
            await here.ask(body("afterwards"))
        assert await here.wait() == 70
        assert len(model.got) == 5, "nothing is sent"
    assert "it was removed or replaced; all that was kept is in the main file" in here.output()
    assert_sound(store)
    assert list(answers(store)) == told
    accounted(f"a log that was taken away ({taken.__name__})", {"kills": 1, "acknowledged": len(told)})


@pytest.mark.parametrize(
    ("before", "taken", "lost"),
    [("", log_removed, 10), (TRAPPED, opened_and_closed, 5)],
    ids=["removed", "the trap"],
)
async def test_without_that_guard_what_was_acknowledged_is_lost(
    tmp_path: Path, before: str, taken: Callable[[Path], None], lost: int
) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            told = await asked(here, 0)
            assert await here.terminate() == 0
        async with process(store, model.url, ("-c", before + UNGUARDED)) as here:
            told += await asked(here, 5)
            taken(store)
            told += await asked(here, 10)
            await here.kill()
    assert len(told) - len(answers(store)) == lost
