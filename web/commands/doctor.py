"""`askonce doctor`: is the store sound, can who is asked be reached, what does asking cost. Nothing is ever sent.

What must never be here: how a store is checked or mended (archive/actor/store/).
"""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from archive.actor.model import reach
from archive.admin import Rebuild
from archive.attempts import NO_PRICE
from archive.health import WAL_BYTES_MAX, Condition, log_held
from archive.messages import Health, Totals
from archive.when import ago
from archive.wire import Behind
from web.commands.answers import cost
from web.commands.home import Home, command
from web.commands.keeping import FAULTS_MAX, check_all, mark
from web.commands.output import Output, bold, dim, many

OURS = "it can be written, and is still the file that was opened"
CLOSED = "it cannot be written at this moment: what must be kept waits in the spool, and kept answers are still served"
SPOOL = "its spool is there for what it cannot take"
NO_SPOOL = "its spool cannot be had (the log says why): while the store cannot be written, nothing is sent"


@dataclass
class Findings:
    """What was looked at: a subject, what was found, and whether that is well."""

    out: Output
    all: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add(self, subject: str, well: bool, text: str) -> None:
        """Note one finding, and say it at once to people."""
        self.all.append({"subject": subject, "well": well, "text": text})
        if not self.out.as_json:
            self.out.line(f"  {mark(well)} {text}")

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
@click.option("--rebuild", is_flag=True, help="First work out the look-ups and counts anew from the record.")
@command()
async def doctor(home: Home, out: Output, rebuild: bool) -> None:
    """Look whether all is well.

    Is the store sound, can each destination be reached, what does asking cost? Sends nothing, and changes nothing
    but with --rebuild the look-ups, by which texts and requests are found; the record itself never. Ends with 6 when
    something is wrong.
    """
    findings = Findings(out)
    store = home.settings.store_path.resolve()
    if rebuild:
        with findings.about("Look-ups", "worked out anew from the record"):
            await _rebuild(home, findings)
    with findings.about("Store", str(store)):
        if home.address:
            findings.add("server", True, f"a server has it open at {home.address}")
        await _check_store(home, findings)
    destinations = await _check_destinations(home, findings)
    with findings.about("Cost", "per call, as far as it is known"):
        await _tell_cost(home, findings)
    if out.as_json:
        said = {"well": findings.well, "store": str(store), "destinations": destinations, "findings": findings.all}
        out.document(said)
    if not findings.well:
        click.get_current_context().exit(6)


async def _rebuild(home: Home, findings: Findings) -> None:
    with findings.out.waiting("Reading every text and request on record; nothing else is done meanwhile."):
        done = await home.door.send(Rebuild())
    findings.add("look-ups", True, f"{many(done.texts, 'text')} and {many(done.requests, 'request')} can be found")
    mended = [(many(done.missing, "row"), done.missing, "missing"), (many(done.wrong, "row"), done.wrong, "wrong")]
    said = " and ".join(f"{rows} {what}" for rows, count, what in mended if count)
    findings.add("look-ups", True, f"mended: {said}" if said else "no row of them was missing or wrong")
    if done.counts:
        findings.add("look-ups", True, f"mended: {many(done.counts, 'count')} that did not say what the record says")


async def _check_store(home: Home, findings: Findings) -> None:
    started = time.monotonic()
    condition = await home.door.send(Health())
    _tell_health(findings, condition, running=bool(home.address))
    rows, faults = await check_all(home, findings.out)
    for fault in faults[:FAULTS_MAX]:
        findings.add("store", False, fault)
    if not faults:
        took = f"{time.monotonic() - started:.1f} s"
        findings.add("store", True, f"the file is sound, and {many(rows, 'row is', 'rows are')} as written ({took})")


def _tell_health(findings: Findings, condition: Condition, *, running: bool) -> None:
    """What /health says, in words; `running`: a server does the slow check, which nobody else has time for."""
    findings.add("writable", condition.writable, OURS if condition.writable else CLOSED)
    waiting = (
        many(condition.held, "call or outcome waits", "calls and outcomes wait") if condition.held else "nothing waits"
    )
    findings.add("held", not condition.held, f"{waiting} to be written")
    findings.add("spool", condition.spool, SPOOL if condition.spool else NO_SPOOL)
    size = f"has {condition.wal_bytes / 2**20:.1f} MiB" if condition.wal_bytes else "is empty"
    log, small = f"its log {size}", condition.wal_bytes <= WAL_BYTES_MAX
    findings.add("log", small, log if small else f"{log}: {log_held(condition.readers)}")
    findings.add("schema", True, f"its schema is number {condition.schema}, with every guard it was made with")
    if running:
        checked = (
            "not yet to its end" if condition.checked_at is None else ago(condition.checked_at, time.time_ns() // 1000)
        )
        so_far = f", {many(condition.checking, 'row')} since then" if condition.checking else ""
        findings.add("check", not condition.faults, f"the server's own slow check of all of it: {checked}{so_far}")
    wire = many(condition.calls, "call is", "calls are") if condition.calls else "no call is"
    asked = many(condition.cooling, "destination has", "destinations have") if condition.cooling else "nobody has"
    findings.add("calls", True, f"{wire} on the wire; {asked} asked to be left alone")


async def _check_destinations(home: Home, findings: Findings) -> list[dict[str, Any]]:
    """Connect to all of them at once and say what is set up for each; the same for programs."""
    if home.here.ask.is_local:
        with findings.about("Model", home.here.ask.url):
            findings.add("model", True, "the built-in model needs no network and no key")
    with findings.out.waiting("Connecting to every destination; nothing is asked of them."):
        came = await asyncio.gather(*(_reached(one, home.settings.connect_seconds_max) for one in home.here.behind))
    found = list[dict[str, Any]]()
    for one, (wrong, ms) in zip(home.here.behind, came, strict=True):
        with findings.about(f"Destination {one.name}", one.url):
            subject = f"destination {one.name}"
            findings.add(subject, not wrong, wrong or f"reached in {ms} ms; nothing was asked")
            findings.add(subject, True, "; ".join((_key(one), _price(one), _day(one))))
        found.append(
            {
                "name": one.name,
                "url": one.url,
                "reached": not wrong,
                "key": one.has_key,
                "input_price": _dollars(one.price.input),
                "output_price": _dollars(one.price.output),
                "day_calls_max": one.day_calls_max or None,
            }
        )
    return found


async def _reached(one: Behind, seconds_max: float) -> tuple[str, int]:
    """What stands against a connection, and how many milliseconds it took."""
    started = time.monotonic()
    wrong = await reach(one.url, seconds_max, private=one.private)
    return wrong, round((time.monotonic() - started) * 1000)


def _key(one: Behind) -> str:
    return "your key is set" if one.has_key else "no key is set, so each caller's own goes up"


def _price(one: Behind) -> str:
    if one.price == NO_PRICE:
        return "price not known"
    return f"a million tokens in: {cost(one.price.input)}, out: {cost(one.price.output)}"


def _day(one: Behind) -> str:
    return f"at most {many(one.day_calls_max, 'call')} a day" if one.day_calls_max else "no limit a day"


def _dollars(billionths: int | None) -> float | None:
    return None if billionths is None else billionths / 1e9


async def _tell_cost(home: Home, findings: Findings) -> None:
    so_far = await home.door.send(Totals())
    if home.here.ask.is_local:
        findings.add("cost", True, "the built-in model is free")
    else:
        known = so_far.sent - so_far.spent_unknown
        each = f"a call cost {cost(so_far.spent // known)} on average" if so_far.spent else "all calls so far were free"
        if known <= 0:
            each = "no price is known yet"
        findings.add("cost", True, each)
    unknown = f", and {many(so_far.spent_unknown, 'price')} unknown" if so_far.spent_unknown else ""
    spent = f"{many(so_far.sent, 'call was', 'calls were')} sent so far: {cost(so_far.spent)}{unknown}"
    findings.add("cost", True, f"{spent}; {many(so_far.not_sent, 'answer')} came from the record")
