"""How many seeds a fault test tries, and which: a few in `make test`, many in `make faults`, one to replay a failure."""

import os


def seeds(few: int, many: int) -> list[int]:
    """The seeds to try. `python -m tests.faults` says which form it is in ASKONCE_FAULTS: `full`, or one seed."""
    form = os.environ.get("ASKONCE_FAULTS", "")
    if form.isdigit():
        return [int(form)]
    return list(range(many if form == "full" else few))
