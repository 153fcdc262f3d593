"""`askonce prove`, `backup` and `restore`: that what is kept cannot be changed, and that it is kept twice.

What must never be here: how any of it is done (archive/actor/).
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

import click

from archive.actor.offline import prove_copy
from archive.actor.offline import restore as put_back
from archive.actor.store import StoreTaken, StoreUnusable
from archive.admin import BackUp, Check, CheckFile, Mark, Proof, Prove, Tried
from archive.errors import Busy
from archive.messages import Totals
from web.commands.home import CannotOpen, Home, Ways, alone, command
from web.commands.output import Output, bold, dim, many, visible
from web.render import size

ROWS_A_CALL = 8
"""About how many rows a call leaves; only the bar goes by it."""

FAULTS_MAX = 20
"""More of them say nothing more."""

FILE = click.Path(path_type=Path, resolve_path=True)


def mark(well: bool) -> str:
    """The sign before a finding."""
    return click.style("✓", fg="green") if well else click.style("✗", fg="red", bold=True)


async def check_all(home: Home, out: Output) -> tuple[int, list[str]]:
    """Have the file checked, and the whole chain, piece by piece under a bar: how many rows, what is wrong in words."""
    with out.waiting("SQLite is checking the store's file; a large one takes a while."):
        try:
            faults = [*await home.door.send(CheckFile())]
        except Busy as cut_off:
            faults = [cut_off.text]
    rows = 0
    totals = await home.door.send(Totals())
    with out.bar("Checking the record", totals.sent * ROWS_A_CALL) as advance:
        place: Mark | None = Mark()
        while place is not None:
            checked = await home.door.send(Check(place))
            faults += checked.faults
            place = checked.mark
            rows += checked.rows
            advance(checked.rows)
    return rows, faults


# -- prove -------------------------------------------------------------------------------------------------------------


@click.command("prove")
@click.argument("file", required=False, type=FILE)
@alone
def prove(ways: Ways, out: Output, file: Path | None) -> None:
    """Prove that what is kept cannot be changed.

    Every road to a changed record is tried in a transaction that is undone, and each line says what the database said
    to it. Then the file and every row are checked. With FILE, a backup or another copy nobody uses is proved
    instead, with whatever guards it has. Ends with 6 when it is not proved.
    """
    if file is None:
        proof, rows, faults = asyncio.run(_proved(ways, out))
    else:
        try:
            found = prove_copy(file, out.bar)
        except StoreTaken as taken:
            raise CannotOpen(f"{taken} To prove the store in use, leave the file out.") from None
        except StoreUnusable as error:
            raise CannotOpen(str(error)) from None
        proof, rows, faults = found.proof, found.rows, found.faults
        if not out.as_json:
            _print_proof(out, proof)
    holds = proof.holds and not faults
    if out.as_json:
        out.document(_proof_json(proof, rows, faults))
    else:
        _print_end(out, proof, rows, faults)
    if not holds:
        click.get_current_context().exit(6)


async def _proved(ways: Ways, out: Output) -> tuple[Proof, int, Sequence[str]]:
    async with ways.opened(False) as home:
        proof = await home.door.send(Prove())
        if not out.as_json:
            _print_proof(out, proof)
        return proof, *await check_all(home, out)


def _proof_json(proof: Proof, rows: int, faults: Iterable[str]) -> dict[str, Any]:
    tried = [
        {"road": one.road, "said": one.said, "open": one.open, "wanted": one.wanted, "as_promised": one.as_promised}
        for one in proof.tried
    ]
    faults = list(faults)
    return {
        "proved": proof.holds and not faults,
        "tried": tried,
        "unchanged": proof.unchanged,
        "rows": rows,
        "faults": faults,
    }


def _print_proof(out: Output, proof: Proof) -> None:
    shut, wanted = ([one for one in proof.tried if one.wanted is is_wanted] for is_wanted in (False, True))
    width = max(len(one.road) for one in proof.tried)
    for title, told, roads in (
        ("Must be refused", "roads to a changed record", shut),
        ("Must be possible", "or the record could not grow, nor give words back", wanted),
    ):
        out.line(f"{bold(title)}  {dim(told)}")
        for one in roads:
            out.line(f"  {mark(one.as_promised)} {one.road:{width}}  {_said(one)}")
        out.line()


def _said(one: Tried) -> str:
    """What the database said; and where that is not as promised, what it means."""
    if one.as_promised:
        return dim(visible(one.said))
    wrong = "it is open: nothing stood in the way" if one.open else f"refused: {visible(one.said)}"
    return click.style(wrong, fg="red")


def _print_end(out: Output, proof: Proof, rows: int, faults: Sequence[str]) -> None:
    tried = len(proof.tried)
    out.line(bold("Afterwards"))
    same = f"unchanged after {tried} tries: as many rows, the same ends of each table, the same guards"
    out.line(f"  {mark(proof.unchanged)} {same if proof.unchanged else 'changed: what was tried left a trace'}")
    if not faults:
        out.line(f"  {mark(True)} {many(rows, 'row is', 'rows are')} as written: each agrees with the chain")
    for fault in faults[:FAULTS_MAX]:
        out.line(f"  {mark(False)} {visible(fault)}")
    if len(faults) > FAULTS_MAX:
        out.line(f"  {mark(False)} and {size(len(faults) - FAULTS_MAX)} more")
    out.line()
    wrong = sum(not one.as_promised for one in proof.tried)
    if proof.holds and not faults:
        shut = sum(not one.wanted for one in proof.tried)
        kept = many(rows, "row is", "rows are")
        said = f"Proved. {shut} roads are shut, {tried - shut} are open that must be, and {kept} as written."
        out.line(click.style(said, fg="green", bold=True))
        return
    parts = [many(wrong, "road is", "roads are") + " not as promised"] if wrong else []
    parts += [] if proof.unchanged else ["the record changed"]
    parts += [many(len(faults), "fault")] if faults else []
    out.line(click.style(f"Not proved: {', '.join(parts)}.", fg="red", bold=True))


# -- backup and restore ------------------------------------------------------------------------------------------------


@click.command("backup")
@click.argument("file", type=FILE)
@command()
async def backup(home: Home, out: Output, file: Path) -> None:
    """Write a copy of the whole record to FILE.

    While a server runs or without one. The copy is opened, checked and counted before it gets its name; nothing is ever
    written over. Keep the ends of the chain somewhere else: they show later whether rows were altered.
    """
    with out.waiting("Copying the record, and checking the copy; a large one takes a while. Nobody waits for it."):
        made = await home.door.send(BackUp(str(file)))
    if out.as_json:
        out.document({"file": made.file, "bytes": made.bytes, "answers": made.answers, "heads": made.heads})
        return
    out.line(bold(made.file))
    out.table([[dim("answers"), size(made.answers)], [dim("bytes"), size(made.bytes)]])
    out.line(f"\n{bold('Ends of the chain')}  {dim('keep them beside it and elsewhere: row, and its link')}")
    out.table([[table, *head.split(":")] for table, head in made.heads.items()], right=(1,))


@click.command("restore")
@click.argument("file", type=FILE)
@alone
def restore(ways: Ways, out: Output, file: Path) -> None:
    """Put a backup in the store's place.

    FILE is checked whole first, and stays as it is. The store that was there is kept beside the new one, and so is what
    waited in its spool. Refused while a server or a command has the store.
    """
    moment = datetime.fromtimestamp(time.time(), UTC).strftime("%Y%m%dT%H%M%SZ")
    with ways.held() as (store, spool):
        if file.exists() and store.exists() and file.samefile(store):
            raise CannotOpen(f"{file} is the store itself.")
        try:
            restored = put_back(file, store, moment, spool, out.bar)
        except StoreUnusable as error:
            raise CannotOpen(str(error)) from None
    aside, waits = restored.aside, restored.spool
    if out.as_json:
        where = {"store": str(store), "before": aside and str(aside), "spool": waits and str(waits)}
        out.document({"file": str(file), "answers": restored.answers, **where})
        return
    out.line(bold(f"{many(restored.answers, 'answer')} put back"))
    rows = [["from", str(file)], ["to", str(store)]]
    rows += [] if aside is None else [["before", f"{aside}  {dim('the store that was there until now')}"]]
    rows += [] if waits is None else [["spool", f"{waits}  {dim('what waited to be written into that store')}"]]
    out.table([[dim(name), value] for name, value in rows])
    if waits is not None and aside is not None:
        out.line("\n  The store before had not taken everything: the rest waits in that spool. To have it:")
        out.line(f"  ASKONCE_STORE={quote(str(aside))} ASKONCE_SPOOL={quote(str(waits))} askonce export FILE")
        out.line("  askonce import FILE")
    out.line(dim("\n  What was answered after that backup is not on record any more: asked again, it is sent again."))
