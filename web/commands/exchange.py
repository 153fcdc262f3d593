"""`askonce export` and `askonce import`: answers out of the record and into it, a line each.

What must never be here: how a line looks, which may be taken in (archive/exchange.py), other formats (foreign.py).
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click

from archive.actor.store import belongs
from archive.admin import LINES_MAX, Chosen, Export, Import
from archive.errors import Invalid
from archive.exchange import Took, Verdict, header
from archive.when import parse
from web.commands.foreign import Piece, export_pieces, gateway_count, gateway_pieces, jevkit_pieces
from web.commands.home import Home, command
from web.commands.output import Output, many, visible
from web.render import size
from web.settings import Settings

BATCH_BYTES_MAX = 1024 * 1024
"""Lines that are sent together: what the server reads and writes in some 20 ms."""

REFUSED_SHOWN_MAX = 20
"""More of them are counted; `--json` says all."""


class MomentType(click.ParamType[int]):
    """Reads `2026-11-30`, the day's first moment in UTC, and `2026-11-30T14:12:31Z`."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """See click.ParamType."""
        try:
            return parse(value if "T" in value else f"{value}T00:00:00Z")
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no moment; they look like 2026-11-30 or 2026-11-30T14:12:31Z.", param, ctx)


@click.command("export")
@click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--since", type=MomentType(), metavar="MOMENT", help="Kept from then on: 2026-11-30, 2026-11-30T14:12Z.")
@click.option("--until", type=MomentType(), metavar="MOMENT", help="Kept before then.")
@click.option(
    "--destination", default="", metavar="NAME", help="Asked there: a name of the destinations file, or a (base) URL."
)
@click.option("--pass", "pass_", default="", metavar="NAME", help="Asked by this step of a program.")
@click.option("--about", default="", metavar="NAME", help="Asked about this.")
@click.option("--private", is_flag=True, help="Private archives too.")
@command()
async def export(home: Home, out: Output, file: Path, destination: str, **chosen: Any) -> None:
    """Write answers as lines of JSON.

    One answer a line, oldest first, with its request and every byte of both; a first line says what it is. FILE must
    not be there yet; without one, or with -, it goes to stdout. Nothing is sent, and nobody waits for it.
    """
    places = _places(home)
    with _written(out, file, home.settings) as write:
        message = Export(Chosen(destination=places.get(destination, destination), **chosen))
        page = await home.door.send(message)
        if page.elsewhere is not None and destination.rstrip("/") not in {*places, *places.values()}:
            raise Invalid(_no_such_place(destination, places, page.elsewhere))
        write(header(page.record, time.time_ns() // 1000) + b"\n")
        count, after = 0, 0
        with out.bar("Exporting", page.end) as advance:
            while True:
                write(b"".join(line + b"\n" for line in page.lines))
                count += len(page.lines)
                advance((page.end if page.after is None else page.after) - after)
                if page.after is None:
                    break
                after = page.after
                page = await home.door.send(Export(message.chosen, after))
    if str(file) == "-":
        out.aside(many(count, "answer"))
    elif out.as_json:
        out.document({"answers": count, "file": str(file)})
    else:
        out.line(f"{many(count, 'answer')} in {file}")


def _places(home: Home) -> dict[str, str]:
    """Who may be asked now, by name: the base URL of each, and of the built-in model in each of its versions."""
    places = {one.name: one.url for one in home.here.behind}
    return places | ({"built-in": home.here.ask.url.partition("@")[0]} if home.here.ask.is_local else {})


def _no_such_place(named: str, places: dict[str, str], on_record: Sequence[str]) -> str:
    parts = [f"No destination is called {visible(named)!r}, and no answer on record was asked there."]
    for title, there in (
        ("Destinations", [f"{name} ({url})" for name, url in places.items()]),
        ("On record", [visible(one) for one in on_record]),
    ):
        parts += [f"{title}: {', '.join(there)}."] if there else []
    return " ".join(parts)


@contextmanager
def _written(out: Output, file: Path, settings: Settings) -> Generator[Callable[[bytes], object], None, None]:
    """What takes the bytes. A file gets its name when it is whole and on disk; one that is there is left alone."""
    if str(file) == "-":
        yield out.raw
        return
    part = file.with_name(file.name + ".part")
    if belongs(settings.store_path.resolve(), file.resolve(), settings.spool_path.resolve()):
        raise Invalid(f"{file} is a name that the store needs for itself. Name another file.")
    if file.exists():
        raise Invalid(f"{file} is there already. An export never writes over anything: name another file.")
    try:
        written = part.open("xb")
    except OSError as error:
        raise Invalid(f"{part} cannot be made: {error.strerror}") from None
    try:
        with written:
            yield written.write
            written.flush()
            os.fsync(written.fileno())
        part.rename(file)
    except BaseException as error:
        part.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(file)) from None
        raise


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--from",
    "program",
    type=click.Choice(["askonce", "decision-gateway", "jevkit"]),
    default="askonce",
    show_default=True,
    help="Which program wrote it.",
)
@click.option("--url", default="", help="Where a jevkit record was asked, as https://api.typesafe.ai/v1/systemone.")
@click.option("--append", is_flag=True, help="Also where a request has other answers here.")
@click.option("--private", is_flag=True, help="Into private archives too: token numbers must mean the same here.")
@click.option("--yes", is_flag=True, help="Do it; without this it only says what it would do.")
@command(makes=True)
async def import_(home: Home, out: Output, file: Path, program: str, url: str, **given: Any) -> None:
    """Take answers in from elsewhere.

    FILE is an export, a store of decision-gateway, or a .jevl file of jevkit's; - is stdin. First it only says what
    it would do; --yes does it. The same file twice adds nothing. Nothing is ever sent.
    """
    _check(home, file, program, url)
    tally = Tally(out)
    with _pieces(file, program, url) as (pieces, length), out.bar("Importing", length) as advance:
        await _import(home, pieces, tally, advance, **given)
    tally.told(given["yes"])


def _check(home: Home, file: Path, program: str, url: str) -> None:
    store = home.settings.store_path.resolve()
    # Closing another descriptor of a store that this very process has open would drop SQLite's locks.
    near = [store, *(store.with_name(store.name + end) for end in ("-wal", "-shm", ".lock"))]
    if str(file) != "-" and any(one.exists() and one.samefile(file) for one in near):
        raise Invalid("This is the store itself.")
    if str(file) == "-" and program == "decision-gateway":
        raise Invalid("A store of decision-gateway's is a file; name it.")
    if (program == "jevkit") != bool(url):
        raise Invalid(
            "A .jevl record does not say where it was asked: say it with --url, and only there. TypeSafe's own is"
            " https://api.typesafe.ai/v1/systemone."
        )


@contextmanager
def _pieces(file: Path, program: str, url: str) -> Generator[tuple[Iterator[Piece], int], None, None]:
    """What is in the file, and about how much that is."""
    if program == "decision-gateway":
        yield gateway_pieces(file), gateway_count(file)
        return
    read = export_pieces if program == "askonce" else partial(jevkit_pieces, name=file.name, url=url)
    if str(file) == "-":
        yield read(sys.stdin.buffer), 0
        return
    with file.open("rb") as opened:
        yield read(opened), file.stat().st_size


@dataclass
class Tally:
    """What became of each record."""

    out: Output
    counts: Counter[Took] = field(default_factory=Counter[Took])

    def add(self, where: str, verdict: Verdict) -> None:
        """Count one, and say it at once if it was refused; in JSON also if there were others here."""
        self.counts[verdict.took] += 1
        if self.out.as_json and verdict.took in {Took.REFUSED, Took.OTHERS}:
            self.out.document({"where": where, "verdict": verdict.took.value, "why": verdict.why})
        elif verdict.took is Took.REFUSED and self.counts[Took.REFUSED] <= REFUSED_SHOWN_MAX:
            self.out.aside(visible(f"{where} is refused: {verdict.why.rstrip('.')}."))

    def told(self, done: bool) -> None:
        """Say what was done, or would be. Ends with 2 when something was refused."""
        new, refused = self.counts[Took.NEW], self.counts[Took.REFUSED]
        if self.out.as_json:
            self.out.document({took.value: self.counts[took] for took in Took} | {"done": done})
        else:
            rows = [
                ["added" if done else "would be added", size(new)],
                ["here already", size(self.counts[Took.HERE])],
                ["left out: their requests have other answers here (--append)", size(self.counts[Took.OTHERS])],
                ["left out: their words were erased where they come from", size(self.counts[Took.ERASED])],
                ["refused", size(refused)],
            ]
            self.out.table([[count.rjust(6), what] for what, count in rows if count != "0" or what == rows[0][0]], 0)
            if not done and new:
                self.out.line("Nothing was written. The same with --yes does it.")
        if refused:
            click.get_current_context().exit(2)


async def _import(
    home: Home,
    pieces: Iterator[Piece],
    tally: Tally,
    advance: Callable[[int], None],
    *,
    append: bool,
    private: bool,
    yes: bool,
) -> None:
    batch = list[Piece]()

    async def send() -> None:
        lines = tuple(piece.line for piece in batch)
        verdicts = await home.door.send(Import(lines, batch[0].source, append, private, yes)) if batch else ()
        for piece, verdict in zip(batch, verdicts, strict=True):
            tally.add(piece.where, verdict)
        batch.clear()

    # What one frame may hold; the server counts its own room for the rest of a message beside it.
    most = home.settings.body_bytes_max if home.address else sys.maxsize
    for piece in pieces:
        advance(piece.size)
        why = piece.why
        if len(piece.line) > most:
            why = "it is larger than what a server takes at once; stop the server and import without it"
        if why:
            tally.add(piece.where, Verdict(Took.REFUSED, why))
        elif piece.line:
            waiting = sum(len(one.line) for one in batch) + len(piece.line)
            if batch and (
                len(batch) == LINES_MAX or waiting > min(BATCH_BYTES_MAX, most) or batch[0].source != piece.source
            ):
                await send()
            batch.append(piece)
    await send()
