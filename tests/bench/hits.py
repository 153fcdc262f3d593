"""Section 1: a kept answer over HTTP, beside Starlette on uvicorn returning a constant.

The servers' own CPU time a request is compared, because the generator, being Python, would be the slower of the two.
"""

from contextlib import ExitStack
from shutil import copyfile
from typing import NamedTuple

import msgspec

from tests.bench.filling import Stores
from tests.bench.load import Work
from tests.bench.processes import Load, Program, floor, product
from tests.bench.report import Row, least, middle, number, progress, table

SMALL_MAP_BYTES = 1_000_000
"""A map of recent answers this small holds about 450 of ours, so that cycling through more keys always misses it."""

KEYS = 400


class Figures(NamedTuple):
    """Medians of one server: µs of its CPU a request, requests a second, ms."""

    cpu: float
    rate: float
    p50: float
    p99: float


class Contender:
    """A server and what it is asked, round after round."""

    def __init__(self, server: Program, work: Work) -> None:
        self.server = server
        self._work = work
        self._rounds: list[Figures] = []

    def round(self, load: Load, warm: bool = False) -> None:
        """Ask once more; the first time, only to warm it up."""
        before = self.server.cpu()
        result = load.run(self._work)
        if result.others:
            raise RuntimeError(f"{result.others} requests were not answered with 200")
        if not warm:
            cpu = (self.server.cpu() - before) / result.answered * 1e6
            self._rounds.append(Figures(cpu, result.answered / result.seconds, result.p50_ms, result.p99_ms))

    @property
    def figures(self) -> Figures:
        """The medians over the rounds."""
        columns = list(zip(*self._rounds, strict=True))
        return Figures(*(middle(column) for column in columns))


def run(stores: Stores, load: Load, rows: int, rounds: int, count: int) -> None:
    """Measure and print."""
    store = stores.of(rows)
    second = stores.folder / f"second-{rows}.db"
    # Before any process has it open.
    copyfile(store, second)
    many = min(rows, count // 2)
    step = rows // many
    with ExitStack() as stack:
        enter = stack.enter_context
        few = Work(0, count, min(KEYS, rows))
        constant = _contender(enter(floor("constant")), few)
        in_dict = _contender(enter(floor("dict", KEYS)), few)
        from_map = _contender(enter(product(store, stores.model_url)), few)
        # A pick in a header is out of the ordinary for web/fast.py; it finds the same answers.
        by_pick = _contender(from_map.server, Work(0, count, few.keys, headers="cache-control: only-if-cached\r\n"))
        small = enter(product(second, stores.model_url, recent_bytes_max=str(SMALL_MAP_BYTES)))
        from_record = _contender(small, Work(0, count // 2, many, step=step))
        every = [constant, in_dict, from_map, by_pick, from_record]
        for contender in every:
            contender.round(load, warm=True)
        for at in range(rounds):
            progress(f"kept answers over HTTP: round {at + 1} of {rounds}")
            for contender in every:
                contender.round(load)
    _print(rows, [contender.figures for contender in every])
    second.unlink()


def _contender(server: Program, work: Work) -> Contender:
    return Contender(server, msgspec.structs.replace(work, port=server.port))


def _print(rows: int, every: list[Figures]) -> None:
    constant, in_dict, from_map, by_pick, from_record = every
    beside = f"{constant.cpu:.0f} µs: Starlette, a constant"
    table(
        "1. A kept answer over HTTP",
        [
            f"600-byte body, 400-byte reply, {rows:,} kept, 32 connections. The server's CPU a request; floor / this.",
            "Requests/s and ms come from a Python generator on the other core: look at the ratio of CPU times.",
            "A head that was read before is answered from uvicorn's connection; one with a pick goes by way of ASGI.",
        ],
        [
            _row("floor: Starlette + uvicorn, a constant", constant, beside, constant),
            _row("Starlette + a dict of known bodies", in_dict, beside, constant),
            least("Askonce, from the recent map", _cpu(from_map), beside, constant.cpu / from_map.cpu, 1.0),
            _row("Askonce, from the map by way of ASGI", by_pick, beside, constant),
            _row("Askonce, from the record (misses the map)", from_record, beside, constant),
            *(
                Row(f"  {name}", f"{number(f.rate)}/s, p50 {f.p50:.2f} ms, p99 {f.p99:.2f} ms", f"{base}", "")
                for name, f, base in (
                    ("floor", constant, ""),
                    ("from the recent map", from_map, f"{number(constant.rate)}/s"),
                    ("from the record", from_record, f"{number(constant.rate)}/s"),
                )
            ),
        ],
    )


def _cpu(figures: Figures) -> str:
    return f"{figures.cpu:.0f} µs"


def _row(what: str, figures: Figures, beside: str, constant: Figures) -> Row:
    return Row(what, _cpu(figures), beside, f"{constant.cpu / figures.cpu:.2f}")
