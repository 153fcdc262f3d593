"""`python -m tests.bench`: every figure of this house beside a floor measured in the same run.

It is not a test: whatever it finds, it ends with status 0. One machine's absolute figures mean little; look at ratios.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from pathlib import Path

from tests.bench import beside, fanout, feed, growth, herd, hits, keeping, size
from tests.bench.filling import Stores
from tests.bench.processes import Load, Upstream, many_sockets
from tests.bench.report import middle


def main() -> None:
    """Run the sections asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Askonce's figures beside their floors.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller counts, for trying it out")
    parser.add_argument("--full", action="store_true", help="how it grows up to 1,000,000 kept answers")
    parser.add_argument("--rows", type=int, metavar="N", help="kept answers in section 1 (100,000)")
    parser.add_argument("--only", default="12345678", metavar="DIGITS", help="the sections to run, such as 14")
    parser.add_argument("--dir", help="where the stores are made; what is there decides what a commit costs")
    chosen = parser.parse_args()
    quick: bool = chosen.quick
    rows: int = chosen.rows or (5_000 if quick else 100_000)
    rounds = 2 if quick else 5
    began = time.perf_counter()
    sockets = many_sockets()
    with tempfile.TemporaryDirectory(prefix="askonce-bench-", dir=chosen.dir) as folder, Upstream(0) as upstream:
        stores = Stores(Path(folder), upstream.url)
        print(f"Askonce, measured. {_machine(Path(folder))}, {rounds} interleaved rounds, medians.")
        with Load() as load:
            if "1" in chosen.only:
                hits.run(stores, load, rows, rounds, 4_000 if quick else 20_000)
            if "2" in chosen.only:
                keeping.run(stores, upstream, load, rounds, 1_280 if quick else 12_800)
            if "3" in chosen.only:
                herd.run(stores, load, min(rounds, 3), sockets)
            if "4" in chosen.only:
                size.run(stores, quick)
            if "5" in chosen.only:
                sizes = [1_000, rows, *([1_000_000] if chosen.full else [])]
                growth.run(stores, load, sizes, min(rounds, 3), 1_000 if quick else 6_000)
            if "6" in chosen.only:
                feed.run(stores, rows, rounds, 200 if quick else 1_000)
            if "7" in chosen.only:
                fanout.run(stores, load, [1_000, *([10_000] if chosen.full else [])], rounds, sockets)
            if "8" in chosen.only:
                beside.run(stores, upstream, load, min(rounds, 3), 4_000 if quick else 20_000)
    print(f"\nThat took {time.perf_counter() - began:.0f} s.")


def _machine(folder: Path) -> str:
    """What a reader must know of where this ran."""
    file = folder / "sync"
    took: list[float] = []
    with file.open("wb", buffering=0) as out:
        for _ in range(50):
            out.write(b"." * 4096)
            began = time.perf_counter()
            os.fsync(out.fileno())
            took.append(time.perf_counter() - began)
    file.unlink()
    return f"{os.cpu_count()} cores, fsync {middle(took) * 1e6:.0f} µs, SQLite {sqlite3.sqlite_version}"


if __name__ == "__main__":
    main()
