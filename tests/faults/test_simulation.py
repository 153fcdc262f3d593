"""Random lives of the actor, each from its seed: the promises of the record hold after every step.

`make faults` runs more of them, and `python -m tests.faults --seed N` one again; a test's id is its seed.
"""

from pathlib import Path

import pytest

from tests.faults.account import seeds
from tests.faults.simulation import Run

STEPS = 150


@pytest.mark.parametrize("seed", seeds(12, 300))
async def test_whatever_happens_in_whatever_order_the_promises_hold(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(seed, tmp_path, monkeypatch)
    await run.go(STEPS)
    print(f"\nseed {seed}: {dict(run.book.seen)}")
