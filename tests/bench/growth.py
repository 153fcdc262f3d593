"""Section 5: what grows with the record: a hit that reaches it, a new answer, the start."""

from contextlib import ExitStack

from tests.bench.filling import Stores
from tests.bench.hits import SMALL_MAP_BYTES, Contender
from tests.bench.keeping import IN_FLIGHT
from tests.bench.load import Work
from tests.bench.processes import Load, Program, product
from tests.bench.report import Row, middle, most, progress, table

FLAT = 1.5
START_SECONDS = 2.0


def run(stores: Stores, load: Load, sizes: list[int], rounds: int, count: int) -> None:
    """Measure and print."""
    sizes = sorted(set(sizes))
    starts: dict[int, list[float]] = {size: [] for size in sizes}
    for size in sizes:
        stores.of(size)
    for at in range(rounds):
        progress(f"starting: round {at + 1} of {rounds}")
        for size in sizes:
            with _serve(stores, size) as server:
                starts[size].append(server.start_seconds)
    news: dict[int, list[float]] = {size: [] for size in sizes}
    with ExitStack() as stack:
        servers = {size: stack.enter_context(_serve(stores, size)) for size in sizes}
        hits = {
            size: Contender(server, Work(server.port, count, min(size, count), step=max(1, size // count)))
            for size, server in servers.items()
        }
        for at in range(rounds + 1):
            progress(f"how it grows: round {at} of {rounds}" if at else "how it grows: warming up")
            for size, server in servers.items():
                hits[size].round(load, warm=not at)
                before = server.cpu()
                few = count // 2
                load.run(Work(server.port, few, few, stores.numbers(few), connections=IN_FLIGHT))
                if at:
                    news[size].append((server.cpu() - before) / few * 1e6)
    least = sizes[0]
    rows: list[Row] = []
    for name, unit, figures in (
        ("a hit from the record", "µs", {size: hits[size].figures.cpu for size in sizes}),
        ("a new answer", "µs", {size: middle(news[size]) for size in sizes}),
        ("start-up", "ms", {size: middle(starts[size]) * 1000 for size in sizes}),
    ):
        beside = f"{figures[least]:.0f} {unit} at {least:,}"
        rows.append(Row(f"{name}, {least:,} kept", f"{figures[least]:.0f} {unit}"))
        for size in sizes[1:]:
            row = most(
                f"{name}, {size:,} kept", f"{figures[size]:.0f} {unit}", beside, figures[size] / figures[least], FLAT
            )
            if name == "start-up":
                seconds = figures[size] / 1000
                row = row._replace(target=f"< {START_SECONDS:.0f} s", met=seconds < START_SECONDS)
            rows.append(row)
    table("5. How it grows", ["The server's CPU time; start-up by the clock, from exec to listening."], rows)


def _serve(stores: Stores, size: int) -> Program:
    return product(stores.of(size), stores.model_url, recent_bytes_max=str(SMALL_MAP_BYTES))
