"""A full disk, on the real process: what was paid for is handed out and kept in the end, and then nothing more is sent.

C-04, C-05, B41, B42. A small disk of its own where the system lets us mount one, and a limit on the size of files.
"""

import itertools
import re
import resource
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import Said, Upstream, answer, body, upstream
from tests.faults.account import accounted
from tests.process import Process, process
from tests.stored import assert_sound, rows

MEGABYTE = 1024 * 1024
FREE = 8 * MEGABYTE
"""What the store has room for."""

SPOOL_BYTES = 4 * MEGABYTE
"""On another disk; a few answers fill it."""

COUNTING = """
import sys
from archive.actor.store import Store
from web.__main__ import main

write = Store.write

async def counted(self, work):
    print("a write is tried", flush=True)
    return await write(self, work)

Store.write = counted
sys.exit(main())
"""
"""A server that says how often it tries to write its store."""

SMALL = f"""
import os, sys

where = os.path.dirname(os.environ["ASKONCE_STORE"])
mounted = f"mount -t tmpfs -o size=48m none {{where}} && head -c {40 * MEGABYTE} /dev/zero > {{where}}/filler"
words = ["sh", "-c", mounted + ' && exec "$@"', "sh", sys.executable, "-c", sys.argv[1]]
os.execvp("unshare", ["unshare", "-Urm", *words])
"""
"""Puts the store's folder on a disk of its own in memory, nearly full, and then is that server."""


def can_mount() -> bool:
    """May this user have a file system of its own?"""
    tried = ["unshare", "-Urm", "sh", "-c", "mount -t tmpfs none /mnt"]
    return (
        shutil.which("unshare") is not None and subprocess.run(tried, capture_output=True, check=False).returncode == 0
    )


def filled(here: Process) -> Callable[[], None]:
    """Limit how large the process's files may grow; what lifts the limit."""
    resource.prlimit(here.pid, resource.RLIMIT_FSIZE, (FREE, resource.RLIM_INFINITY))

    def free() -> None:
        resource.prlimit(here.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return free


@pytest.mark.parametrize("disk", ["a small disk", "a limit"])
async def test_on_a_full_disk_answers_are_marked_then_refused_before_calling_and_all_kept_once_there_is_room(
    tmp_path: Path, disk: str
) -> None:
    if disk == "a small disk" and not can_mount():
        pytest.skip("this user may not mount a file system of its own")
    folder = tmp_path / "disk"
    folder.mkdir()
    store, spool = folder / "a.db", str(tmp_path / "a.spool")
    program = ("-c", SMALL, COUNTING) if disk == "a small disk" else ("-c", COUNTING)
    more = {"ASKONCE_SPOOL": spool, "ASKONCE_SPOOL_BYTES_MAX": str(SPOOL_BYTES)}
    async with upstream() as model, process(store, model.url, program, **more) as here:
        model.reply = answer()[:-1] + b',"pad":"%s"}' % (b"x" * MEGABYTE)
        seen = Path(f"/proc/{here.pid}/root{folder}")
        free = (seen / "filler").unlink if disk == "a small disk" else filled(here)
        told: dict[str, Said] = {}
        kept, marked = await until_refused(here, model, told)
        assert kept > 2 and marked > 0
        health = await here.send("GET", "/health")
        assert health.status == 503
        # B42: no loop of writes.
        tries, asks = here.output().count("a write is tried"), len(told)
        for number in range(5):
            refused = await here.ask(body(f"and {number}"))
            assert (refused.status, refused.error) == (503, "record_closed")
        retries = len(re.findall("a write is tried", here.output())) - tries
        assert retries <= 2 * 5 + RETRIES_MAX
        assert tries <= 3 * asks + RETRIES_MAX
        assert len(model.got) == kept + marked
        alarms = [line for line in here.output().splitlines() if "the record cannot be written" in line]
        assert len(alarms) == 1
        assert here.output().count("held in memory alone") <= 1, "after one that does not fit, nothing more is sent"

        free()
        for words, said in told.items():
            again = await here.ask(body(words))
            assert (again.status, again.body) == (200, said.body)
            assert (again.headers["Archive-Answer"], again.headers["Archive-Sent"]) == ("1/1", "no")
        assert (await here.ask(body("and then"))).headers["Archive-Answer"] == "1/1"
        assert (await here.send("GET", "/health")).status == 200
        twice = sum(n > 1 for n in Counter(got.body for got in model.got).values())
        # The disk is gone with the process, so it is looked at while that stands still.
        here.signal(signal.SIGSTOP)
        for name in ("a.db", "a.db-wal"):
            shutil.copy(seen / name, tmp_path / name)
        here.signal(signal.SIGCONT)
        assert await here.terminate() == 0
    left = tmp_path / "a.db"
    assert_sound(left)
    # One answer each, and no reply is stored that is no answer's.
    assert rows(left, "SELECT count(*) FROM answer") == [(len(told) + 1,)]
    assert rows(left, "SELECT count(*) FROM text WHERE length > 1000000") == [(len(told) + 1,)]
    accounted(f"full disk ({disk})", {"acknowledged": len(told), "marked": marked, "refused": 6, "sent twice": twice})


RETRIES_MAX = 8
"""Tries that the clock makes by itself meanwhile: after 1, 2, 4, 8, 16 and then every 30 seconds; and the start."""


async def until_refused(here: Process, model: Upstream, told: dict[str, Said]) -> tuple[int, int]:
    """Ask for answers of a megabyte until nothing more is sent; how many were kept, and how many marked."""
    kept = marked = 0
    for number in itertools.count():
        words = f"words {number}"
        model.reply = answer()[:-1] + b',"pad":"%06d%s"}' % (number, b"x" * MEGABYTE)
        said = await here.ask(body(words))
        if said.status == 503:
            assert said.error == "record_closed"
            return kept, marked
        assert said.status == 200
        told[words] = said
        in_record = said.headers["Archive-Answer"] != "not in the record yet"
        assert not (in_record and marked), "nothing is written past what waits"
        kept, marked = kept + in_record, marked + (not in_record)
    raise AssertionError
