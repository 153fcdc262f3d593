"""Flipped bits in the store's file: what changes a row of the record is found, most of it by the chain alone.

C-12. SQLite's own check sees damage to its pages and not to what they hold.
"""

import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from archive.actor.store import StoreUnusable, opened
from archive.actor.store.copies import all_faults, file_faults
from tests.archive.actor.recorded import fill
from tests.chain import INSERT_ONLY
from tests.faults.account import accounted, seeds

FLIPS, FLIPS_FULL = 200, 2_000


def content(store: Path) -> list[Any] | None:
    """Every row of the record; None when they cannot all be read."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
            db.text_factory = bytes
            return [db.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in INSERT_ONLY]  # noqa: S608
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def found_in(store: Path) -> tuple[bool, bool]:
    """Is something found by everything we check, and by SQLite's check alone?"""
    try:
        with opened(store) as copy:
            return bool(copy.faults or all_faults(copy.db)), bool(file_faults(copy.db))
    except (StoreUnusable, sqlite3.Error):
        return True, True


def test_a_bit_flipped_anywhere_in_a_row_of_the_record_is_found(tmp_path: Path) -> None:
    whole, damaged = tmp_path / "a.db", tmp_path / "damaged.db"
    fill(whole)
    with closing(sqlite3.connect(whole)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    before, data = content(whole), whole.read_bytes()
    assert before is not None and found_in(whole) == (False, False)
    # Most of a small file is empty space, where a bit says nothing.
    said = [n for n in range(100, len(data)) if data[n]]
    counts, missed = Counter[str](), list[int]()
    for seed in seeds(FLIPS, FLIPS_FULL):
        dice = random.Random(seed)
        at = dice.choice(said)
        flipped = bytearray(data)
        flipped[at] ^= 1 << dice.randrange(8)
        damaged.write_bytes(flipped)
        ours, sqlites = found_in(damaged)
        changed = content(damaged) != before
        counts.update({"flips": 1, "changed a row": changed, "found": ours, "by the chain alone": ours and not sqlites})
        if changed and not ours:
            missed.append(seed)
    accounted("flipped bits", counts)
    assert missed == [], "the seeds to replay with --seed"
    assert counts["flips"] == 1 or counts["by the chain alone"], "SQLite's check would have done"
