"""How figures are printed: one table a section, in plain columns that a terminal shows; progress goes to stderr."""

import sys
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Row(NamedTuple):
    """One figure: what it is, as measured, beside which floor of the same run, their ratio, the target, whether met."""

    what: str
    measured: str
    beside: str = ""
    ratio: str = ""
    target: str = ""
    met: bool | None = None


def table(title: str, notes: Sequence[str], rows: Sequence[Row]) -> None:
    """Print one section."""
    head = ("", "measured", "beside", "ratio", "target", "")
    lines = [head, *((*row[:5], "" if row.met is None else "met" if row.met else "NOT MET") for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    print(f"\n{title}")
    for note in notes:
        print(f"  {note}")
    print()
    for line in lines:
        cells = [
            word.ljust(width) if at in {0, 2, 5} else word.rjust(width)
            for at, (word, width) in enumerate(zip(line, widths, strict=True))
        ]
        print(("  " + "   ".join(cells)).rstrip())
    sys.stdout.flush()


def least(what: str, measured: str, beside: str, ratio: float, target: float) -> Row:
    """A row whose ratio must be at least `target`."""
    return Row(what, measured, beside, f"{ratio:.2f}", f"≥ {target:.2f}", ratio >= target)


def most(what: str, measured: str, beside: str, ratio: float, target: float) -> Row:
    """A row whose ratio must be at most `target`."""
    return Row(what, measured, beside, f"{ratio:.2f}", f"≤ {target:.2f}", ratio <= target)


def progress(text: str) -> None:
    """Say on stderr what is being done."""
    print(f"  … {text}", file=sys.stderr, flush=True)


def middle(values: Sequence[float]) -> float:
    """The median of the rounds; 0 when there are none."""
    return median(values) if values else 0.0


def number(value: float) -> str:
    """A whole number with commas."""
    return f"{value:,.0f}"
