"""`python -m tests.faults [--full] [--seed N]`: all fault tests, and the account of all of them together."""

import os

import click
import pytest

from tests.faults import account

WHERE = (
    "tests/faults",
    "tests/archive/actor/test_doubt.py",
    "tests/archive/actor/test_unwritten.py",
    "tests/archive/actor/test_unwritten_limits.py",
    "tests/archive/actor/test_spool.py",
)


@click.command()
@click.option("--full", is_flag=True, help="Many seeds; some minutes.")
@click.option("--seed", type=click.IntRange(0), help="This seed alone, as a failure named it.")
def main(full: bool, seed: int | None) -> None:
    """Cut the power, kill, fill the disk, lock and damage the record, and close the account."""
    if seed is not None:
        os.environ["ASKONCE_FAULTS"] = str(seed)
    elif full:
        os.environ["ASKONCE_FAULTS"] = "full"
    status = pytest.main(["-s", *WHERE])
    click.echo(f"\nAll together: {account.line(account.TOTAL)}")
    raise SystemExit(int(status))


if __name__ == "__main__":
    main()
