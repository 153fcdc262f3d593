"""Section 3: many ask the same at once, and one call answers."""

from tests.bench.filling import Stores
from tests.bench.load import Work
from tests.bench.processes import Load, Upstream, product
from tests.bench.report import Row, middle, most, number, progress, table

UPSTREAM_MS = 300
HERDS: dict[int, float | None] = {1: None, 100: None, 1_000: 1.10, 5_000: 1.70}
"""How many ask at once, and how long the last may wait over the upstream's own time."""


def run(stores: Stores, load: Load, rounds: int, sockets: int) -> None:
    """Measure and print. `sockets`: how many files a process may open."""
    rows: list[Row] = []
    sizes = [size for size in HERDS if size < sockets - 100]
    ended: dict[int, list[float]] = {size: [] for size in sizes}
    straight: dict[int, list[float]] = {size: [] for size in sizes}
    calls: dict[int, list[int]] = {size: [] for size in sizes}
    with Upstream(UPSTREAM_MS) as slow, product(stores.empty(), slow.url) as server:
        load.run(Work(server.port, 64, 64, stores.numbers(64), connections=64))
        for at in range(rounds):
            progress(f"many ask the same: round {at + 1} of {rounds}")
            for size in sizes:
                first = stores.numbers(1)
                straight[size].append(load.run(Work(slow.port, size, 1, first, connections=size)).seconds)
                before = slow.calls()
                result = load.run(Work(server.port, size, 1, first, connections=size))
                ended[size].append(result.seconds if result.answered == size else float("inf"))
                calls[size].append(slow.calls() - before)
    for size in sizes:
        made, wanted = sum(calls[size]), rounds
        last, bare = middle(ended[size]) * 1000, middle(straight[size]) * 1000
        what, beside = f"{size:,} at once: last reply", f"{UPSTREAM_MS} ms: the upstream ({bare:.0f} ms asked straight)"
        target = HERDS[size]
        ratio = last / UPSTREAM_MS
        rows.append(Row(f"{size:,} at once: calls", f"{made / rounds:g}", "", "", "= 1", made == wanted))
        if target is None:
            rows.append(Row(what, f"{last:.0f} ms", beside, f"{ratio:.2f}"))
        else:
            rows.append(most(what, f"{last:.0f} ms", beside, ratio, target))
    notes = [f"The upstream answers after {UPSTREAM_MS} ms; connections are open beforehand; from the first byte sent."]
    if len(sizes) < len(HERDS):
        notes.append(f"Only {number(sockets)} open files are allowed here, so larger herds were left out.")
    table("3. The same asked by many at once", notes, rows)
