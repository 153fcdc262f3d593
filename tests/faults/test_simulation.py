"""Random lives of the actor, each from its seed: the promises of the record hold after every step.

`ASKONCE_SEEDS=2000 pytest tests/faults/test_simulation.py` runs more of them; a test's id is its seed.
"""

import os
from pathlib import Path

import pytest

from tests.faults.simulation import Run

SEEDS = int(os.environ.get("ASKONCE_SEEDS", "20"))
STEPS = 150


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whatever_happens_in_whatever_order_the_promises_hold(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(seed, tmp_path, monkeypatch)
    await run.go(STEPS)
    print(f"\nseed {seed}: {dict(run.book.seen)}")
