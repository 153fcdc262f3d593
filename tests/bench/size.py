"""Section 4: bytes a kept answer takes in the file, all in, for two sets of requests such as evaluations make."""

from pathlib import Path
from unittest import mock

from archive.request import Parts
from tests.bench.filling import Stores, fill, pair
from tests.bench.report import Row, most, number, progress, table
from tests.bench.words import decide_set, extract_set

DECIDE_TARGET, EXTRACT_TARGET = 1_100, 950

WHOLE = 3_000
"""So many of a set are stored whole as well: enough for what stands in the file beside them not to matter."""

Set = list[tuple[bytes, bytes, bytes]]


def run(stores: Stores, quick: bool) -> None:
    """Measure and print."""
    copies, few = (20, 1) if quick else (80, 4)
    decide, extract = decide_set(copies), extract_set(few)
    rows = [_row(stores, "decide", decide, DECIDE_TARGET), _row(stores, "extract", extract, EXTRACT_TARGET)]
    table(
        "4. Size: bytes a kept answer, all in",
        [
            "The file after a checkpoint, divided by its answers. Replies of 330 bytes, each with its own request id.",
            f"decide: {len(decide):,} answers, {copies} times 147 requests over 138 states of 156 bytes under one text",
            "of 1,700 bytes (nine states go to a second model too). Every copy has words of its own.",
            f"extract: {len(extract):,} answers, {few} times 33 sources of 12 KB, each read under the same 80 texts",
            "of 690 bytes. Beside them: the first copies kept in the same record with every body stored whole.",
        ],
        rows,
    )


def _row(stores: Stores, name: str, made: Set, target: int) -> Row:
    progress(f"keeping the set {name}, {len(made):,} answers")
    parts = _bytes_each(stores, stores.empty(), made)
    with mock.patch("archive.actor.store.record.split", Parts):
        whole = _bytes_each(stores, stores.empty(), made[:WHOLE])
    row = most(name, f"{number(parts)} bytes", f"{number(whole)} bytes stored whole", parts, target)
    return row._replace(ratio=f"{parts / whole:.2f}", target=f"≤ {target:,} bytes")


def _bytes_each(stores: Stores, path: Path, made: Set) -> float:
    fill(path, (pair(stores.place, *one) for one in made))
    size = path.stat().st_size / len(made)
    path.unlink()
    return size
