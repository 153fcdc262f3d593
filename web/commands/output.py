"""How commands speak: words in aligned columns for people, JSON for programs, and a bar while something takes long.

Colour and bars are for terminals alone. Words of other people are shown without what could play tricks there.
What must never be here: what is said.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar
from unicodedata import category, combining, east_asian_width

import click
import msgspec

from archive.attempts import REFUSED_FOR_NOW, cooldown
from archive.errors import ArchiveError, CallFailed
from archive.messages import SAID_BYTES_MAX
from archive.when import SECOND, iso, shown
from web.text import JOINERS, cut, plain

T = TypeVar("T")

BAR_SECONDS = 2.0
"""What takes longer than this shows how far it is."""

SAID_CHARACTERS_MAX = 300
"""Of a provider's own words about a refusal the first ones are shown; a page of HTML says no more in 30,000."""


class Output:
    """Where a command's words go. `as_json`: it says documents, else lines."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def document(self, value: object) -> None:
        """One JSON document, on a line of its own."""
        click.echo(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))

    def raw(self, data: bytes) -> None:
        """Exact bytes, and nothing more."""
        click.echo(data, nl=False)

    def line(self, text: str = "") -> None:
        """A line for people."""
        click.echo(text.encode("utf-8", "replace").decode())

    def table(self, rows: Sequence[Sequence[str]], indent: int = 2, right: Collection[int] = ()) -> None:
        """Rows in aligned columns; cells may be styled. `right`: the columns that end together, as numbers do."""
        widths = [max(map(wide, column), default=0) for column in zip(*rows, strict=True)]
        for row in rows:
            room = [" " * (width - wide(cell)) for cell, width in zip(row, widths, strict=True)]
            cells = [
                free + cell if at in right else cell + free
                for at, (cell, free) in enumerate(zip(row, room, strict=True))
            ]
            self.line(" " * indent + "  ".join(cells).rstrip())

    def aside(self, text: str) -> None:
        """A line for people beside the output: to stderr."""
        click.echo(text, err=True)

    def error(self, code: str, text: str, **more: object) -> None:
        """Why it ended, to stderr: with `--json` a document there, with all of `more` that is not None."""
        if self.as_json:
            said = {"code": code, "text": text} | {name: value for name, value in more.items() if value is not None}
            click.echo(json.dumps({"error": said}), err=True)
        else:
            click.secho(visible(text), fg="red", err=True)

    def refused(self, error: ArchiveError) -> None:
        """Why the archive did not do it; where the model's server refused, its status and first words too."""
        reply = error.reply if isinstance(error, CallFailed) else None
        until, status, words = error.until, None, None
        if reply is not None:
            status, words = reply.status, first_words(reply.body)
            if status in REFUSED_FOR_NOW:
                now = time.time_ns() // 1000
                until = now + round(cooldown(reply, now) * SECOND)
        moments = {"at": None if error.at is None else iso(error.at), "until": None if until is None else iso(until)}
        self.error(error.code, error.text, **moments, status=status, said=words)
        if reply is not None and not self.as_json:
            self.aside(f"  {status}  {words or '(no words)'}")
            if until is not None:
                self.aside(f"  It asks to be left alone until {shown(until)}.")

    def lost(self, error: OSError) -> None:
        """What this command said, or a file it wrote, could not be written."""
        if error.filename is None:
            # What waits in the stream would be tried again, in vain, when the process ends.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = "The output" if error.filename is None else str(error.filename)
        with suppress(OSError):
            self.error("internal", f"{what} could not be written: {error.strerror}.")

    @contextmanager
    def waiting(self, text: str) -> Generator[None, None, None]:
        """While this lasts longer than two seconds, a terminal is told so, once."""
        told = partial(click.secho, text, dim=True, err=True)
        timer = asyncio.get_running_loop().call_later(BAR_SECONDS, told) if sys.stderr.isatty() else None
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    @contextmanager
    def bar(self, label: str, length: int) -> Generator[Callable[[int], None]]:
        """Counts what is done of about `length`; on a terminal, shown as a bar once it has taken two seconds."""
        started = time.monotonic()
        with click.progressbar(length=length, label=label, file=sys.stderr, hidden=True) as shown:

            def advance(count: int) -> None:
                shown.hidden = not sys.stderr.isatty() or time.monotonic() - started <= BAR_SECONDS
                shown.update(count)

            yield advance


def wide(text: str) -> int:
    """Columns of a terminal that a text takes, without its colours."""
    bare = click.unstyle(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in {"W", "F"} else 1 for c in bare)


def visible(text: str, *, laid_out: bool = False) -> str:
    """Text of other people for a terminal, in one line: what is not seen itself is U+FFFD, or it could end the line and
    begin one that looks like ours. `laid_out`: a body, in which newlines and tabs stay.
    """
    shown = JOINERS + "\n\t" if laid_out else JOINERS
    return "".join("\ufffd" if category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c not in shown else c for c in text)


def first_words(reply: bytes) -> str:
    """The first words of a reply, in one line."""
    return cut(plain(reply[:SAID_BYTES_MAX].decode("utf-8", "replace")), SAID_CHARACTERS_MAX)


def pretty(data: bytes) -> str | None:
    """JSON with a line for each value, nothing else changed (twice the same key stays twice); None for what is none."""
    try:
        return msgspec.json.format(data, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def many(count: int, one: str, more: str = "") -> str:
    """A number of things in words: `1 row`, `2,000 rows`; `more` where that is not made by an s."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def dim(text: str) -> str:
    """Less important."""
    return click.style(text, dim=True) if text else ""


def bold(text: str) -> str:
    """What it is about."""
    return click.style(text, bold=True)


def joined(parts: Iterable[str]) -> str:
    """Those that say something, with a dot between them."""
    return dim(" · ").join(part for part in parts if part)
