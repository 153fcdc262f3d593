"""`askonce doctor`: is the store sound, can the model be reached, what does asking cost. Nothing is sent or changed.

What must never be here: mending anything.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from archive.actor.model import reach
from archive.admin import Check, CheckFile, Mark
from archive.messages import Health, Totals
from web.commands.answers import cost
from web.commands.home import Home, command
from web.commands.output import Output, bold, dim
from web.render import size

ROWS_A_CALL = 8
"""About how many rows a call leaves; only the bar goes by it."""

FAULTS_MAX = 20
"""More of them say nothing more."""

CLOSED = "it cannot be written at this moment: nothing is sent, and kept answers are still served"


@dataclass
class Findings:
    """What was looked at: a subject, what was found, and whether that is well."""

    out: Output
    all: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, subject: str, well: bool, text: str) -> None:
        """Note one finding, and say it at once to people."""
        self.all.append({"subject": subject, "well": well, "text": text})
        if not self.out.as_json:
            mark = click.style("✓", fg="green") if well else click.style("✗", fg="red", bold=True)
            self.out.line(f"  {mark} {text}")

    @contextmanager
    def about(self, subject: str, text: str) -> Generator[None]:
        """A heading for people."""
        if not self.out.as_json:
            self.out.line(f"{bold(subject)}  {dim(text)}")
        yield
        if not self.out.as_json:
            self.out.line()

    @property
    def well(self) -> bool:
        return all(found["well"] for found in self.all)


@click.command("doctor")
@command()
async def doctor(home: Home, out: Output) -> None:
    """Look whether all is well.

    Is the store sound, can the model's server be reached, what does asking cost? Sends nothing and changes nothing.
    Ends with 6 when something is wrong.
    """
    findings = Findings(out)
    store = home.settings.store_path.resolve()
    with findings.about("Store", str(store)):
        if home.address:
            findings.add("server", True, f"a server has it open at {home.address}")
        await _check_store(home, findings)
    with findings.about("Model", home.here.ask.url):
        await _check_model(home, findings)
    with findings.about("Cost", "per call, as far as it is known"):
        await _tell_cost(home, findings)
    if out.as_json:
        out.document({"well": findings.well, "store": str(store), "findings": findings.all})
    if not findings.well:
        click.get_current_context().exit(6)


async def _check_store(home: Home, findings: Findings) -> None:
    started = time.monotonic()
    condition = await home.door.send(Health())
    findings.add("writable", condition.writable, "it can be written" if condition.writable else CLOSED)
    if condition.held:
        findings.add("held", False, f"{size(condition.held)} outcomes wait in memory to be written")
    with findings.out.waiting("SQLite is checking the store's file; a large one takes a while."):
        faults = [*await home.door.send(CheckFile())]
    rows, totals = 0, await home.door.send(Totals())
    with findings.out.bar("Checking the record", totals.sent * ROWS_A_CALL) as advance:
        mark: Mark | None = Mark()
        while mark is not None:
            checked = await home.door.send(Check(mark))
            faults += checked.faults
            mark = checked.mark
            rows += checked.rows
            advance(checked.rows)
    for fault in faults[:FAULTS_MAX]:
        findings.add("store", False, fault)
    if not faults:
        took = f"{time.monotonic() - started:.1f} s"
        findings.add("store", True, f"the file is sound, and {size(rows)} rows are as they were written ({took})")


async def _check_model(home: Home, findings: Findings) -> None:
    places = [home.here.ask, *([] if home.here.chat is None else [home.here.chat])]
    for place in places:
        if place.is_local:
            findings.add("model", True, "the built-in model needs no network")
            continue
        started = time.monotonic()
        wrong = await reach(place.url, home.settings.connect_seconds_max)
        took = f"reached in {(time.monotonic() - started) * 1000:.0f} ms; nothing was asked"
        findings.add("model", not wrong, f"{place.url}: {wrong or took}")


async def _tell_cost(home: Home, findings: Findings) -> None:
    so_far = await home.door.send(Totals())
    if home.here.ask.is_local:
        findings.add("cost", True, "the built-in model is free")
    else:
        known = so_far.sent - so_far.spent_unknown
        each = f"a call cost {cost(so_far.spent // known)} on average" if known > 0 else "no price is known yet"
        findings.add("cost", True, each)
    unknown = f", and {size(so_far.spent_unknown)} prices unknown" if so_far.spent_unknown else ""
    spent = f"{size(so_far.sent)} calls were sent so far: {cost(so_far.spent)}{unknown}"
    findings.add("cost", True, f"{spent}; {size(so_far.not_sent)} answers came from the record")
