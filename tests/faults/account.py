"""How many seeds a fault test tries, and the account of what it did to the record and what came of it.

A few seeds in `make test`, many in `make faults`, one to replay a failure; read here and nowhere else.
"""

import os
from collections import Counter
from collections.abc import Mapping

NEVER = ("lost", "sent twice", "half kept")
"""What is nought in every account; it is counted to show that it was looked for."""

TOTAL: Counter[str] = Counter()
"""All tests of this process together."""


def seeds(few: int, many: int) -> list[int]:
    """The seeds to try; ASKONCE_FAULTS is empty, `full`, or the number of the one to replay."""
    form = os.environ.get("ASKONCE_FAULTS", "")
    if form.isdigit():
        return [int(form)]
    return list(range(many if form == "full" else few))


def accounted(test: str, counts: Mapping[str, int]) -> None:
    """Print what a test counted, and add it to the total."""
    TOTAL.update(counts)
    print(f"\n{test}: {line(counts)}")


def line(counts: Mapping[str, int]) -> str:
    """`12 kills, 340 acknowledged, 0 lost, ...`: the noughts that are promised are always said."""
    shown = {name: many for name, many in counts.items() if many and name not in NEVER}
    shown |= {name: counts.get(name, 0) for name in NEVER}
    return ", ".join(f"{many:,} {name}" for name, many in shown.items())
