"""Section 7: one change told to many open pages, beside bare sends of the same bytes over the same sockets.

A kept answer is asked for over HTTP meanwhile, and must hardly notice.
"""

import subprocess
import sys
from typing import Self

import psutil

from tests.bench.filling import Stores
from tests.bench.load import Work
from tests.bench.pages import PATCH_BYTES
from tests.bench.processes import ROOT, Load
from tests.bench.report import Row, middle, most, number, progress, table

TARGET = 2.2
KEPT = 400
ASKERS = 2
"""Connections that ask one after another: enough to be seen, too few to be what a kept answer waits for."""


class Told:
    """A process of pages.py that is told things a line at a time."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.pages", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.first = self.hear()
        self._watched = psutil.Process(self._process.pid)

    def say(self, word: str) -> None:
        """Tell it something."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """The line it says next."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the pages' process ended")
        return line

    def memory(self) -> int:
        """Bytes it has resident."""
        return int(self._watched.memory_info().rss)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(60)


class Figures:
    """What was measured with so many pages open."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.bytes_each = 0.0
        self.seconds: dict[str, list[float]] = {"patch": [], "floor": []}
        self.alone: list[float] = []
        self.meanwhile: list[float] = []


def run(stores: Stores, load: Load, sizes: list[int], rounds: int, sockets: int) -> None:
    """Measure and print. `sockets`: how many files a process may open."""
    every = [size for size in sizes if size < sockets - 200]
    found = [_measure(stores, load, size, rounds) for size in every]
    rows = [row for figures in found for row in _rows(figures)]
    notes = [
        f"One patch of {PATCH_BYTES} bytes, from its commit to the last page that has it; the pages stand apart.",
        "The floor is a loop of socket.send in the server's process over the very same sockets.",
    ]
    if every != sizes:
        notes.append(f"Only {number(sockets)} open files are allowed here, so more pages were left out.")
    table("7. One change told to many open pages", notes, rows)


def _measure(stores: Stores, load: Load, size: int, rounds: int) -> Figures:
    figures = Figures(size)
    with Told("serve", str(stores.empty()), stores.model_url) as server:
        port = int(server.first.rsplit(":", 1)[1])
        work = Work(port, 4_000, KEPT, stores.numbers(KEPT), connections=ASKERS)
        load.run(Work(port, KEPT, KEPT, work.first))
        before = server.memory()
        progress(f"opening {size:,} pages")
        with Told("look", str(port), str(size)) as pages:
            figures.bytes_each = (server.memory() - before) / size
            for at in range(rounds + 1):
                progress(f"{size:,} open pages: round {at} of {rounds}")
                for way, took in figures.seconds.items():
                    pages.say("wait")
                    server.say(way)
                    took.append(-float(server.hear()) + float(pages.hear()))
                figures.alone.append(load.run(work).p99_ms)
                figures.meanwhile.append(_while_telling(load, work, server, pages))
    for measured in (*figures.seconds.values(), figures.alone, figures.meanwhile):
        measured.pop(0)  # that warmed it up
    return figures


def _while_telling(load: Load, work: Work, server: Told, pages: Told) -> float:
    """The p99 of kept answers while one patch after another is told, in ms."""
    load.start(work)
    for _ in range(5):
        pages.say("wait")
        server.say("patch")
        server.hear()
        pages.hear()
    return load.result().p99_ms


def _rows(figures: Figures) -> list[Row]:
    told, floor = (middle(took) * 1000 for took in figures.seconds.values())
    alone, meanwhile = middle(figures.alone), middle(figures.meanwhile)
    name = f"{figures.pages:,} pages"
    return [
        most(f"{name}: the last one told", f"{told:.1f} ms", f"{floor:.1f} ms: bare sends", told / floor, TARGET),
        Row(
            "  a kept answer's p99 meanwhile", f"{meanwhile:.1f} ms", f"{alone:.1f} ms: nothing told",
            f"{meanwhile / alone:.2f}",
        ),
        Row("  memory a page", f"{number(figures.bytes_each)} bytes", "", "", "≤ 25,000", figures.bytes_each <= 25_000),
    ]  # fmt: skip
