"""The power is cut, and single writes fail, anywhere in a run: what was acknowledged is there, nothing is sent twice.

C-01, C-03. On a disk of our own (disk.py), in a process of its own (ondisk.py).
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.faults.account import accounted, seeds
from tests.process import ROOT

CUTS, CUTS_FULL = 12, 200
REFUSED, REFUSED_FULL = 10, 200


async def on_disk(kind: str, folder: Path, form: str, tried: list[int]) -> dict[str, Any]:
    """What a run of ondisk.py says."""
    words = ("-m", "tests.faults.ondisk", kind, str(folder), form, *map(str, tried))
    running = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, said = await running.communicate()
    assert running.returncode == 0, said.decode()[-4000:]
    assert b"Traceback" not in said
    return json.loads(out)


async def test_after_a_power_cut_anywhere_a_prefix_is_left_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    """C-01. The state after one commit, whole; what was sent has its row, and what came of it is known or unknown."""
    tried = seeds(CUTS, CUTS_FULL)
    found = await on_disk("power", tmp_path, "FULL", tried)
    faults = found.pop("faults")
    accounted("power cuts", found)
    assert faults == {}, "the seeds to replay with --seed"
    assert found["cuts"] == len(tried)


async def test_with_a_store_that_does_not_wait_for_the_disk_the_same_cuts_lose_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    """C-01 with the guard off: synchronous=NORMAL loses commits, OFF damages the file."""
    tried = list(range(CUTS))
    normal = (await on_disk("power", tmp_path, "NORMAL", tried))["faults"]
    assert normal.keys() >= {"lost", "commits lost", "sent without a row"} and "corrupt" not in normal
    assert "corrupt" in (await on_disk("power", tmp_path, "OFF", tried))["faults"]


async def test_whichever_write_fails_every_answer_is_kept_or_marked_and_kept_later_or_refused(tmp_path: Path) -> None:
    """C-03: no room, a failed write, a failed sync; once, a few times, or until the disk is healed."""
    tried = seeds(REFUSED, REFUSED_FULL)
    found = await on_disk("fail", tmp_path, "careful", tried)
    faults = found.pop("faults")
    accounted("failing writes", found)
    assert faults == {}, "the seeds to replay with --seed"
    assert found.get("runs", 0) + found.get("did not start", 0) == len(tried)


async def test_with_failed_commits_taken_for_done_the_same_failures_lose_answers(tmp_path: Path) -> None:
    """C-03 with the guard off."""
    faults = (await on_disk("fail", tmp_path, "careless", list(range(4))))["faults"]
    assert faults.keys() >= {"marked and lost", "sent without a row"}
