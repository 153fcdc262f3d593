"""`askonce facts`, and askings as every command says them: what a judgment number stands for.

What must never be here: counting (archive/actor/store/facts.py).
"""

import time
from collections.abc import Sequence
from typing import Any

import click

from archive.admin import Facts
from archive.attempts import State
from archive.errors import NotFound
from archive.messages import Abouts
from archive.naming import SEARCHED_BYTES_MIN, Asking, Counted, Input, PassFacts, utf8
from archive.when import ago, iso, shown
from web.commands.answers import short
from web.commands.home import Home, command
from web.commands.output import Output, bold, dim, many, visible
from web.render import size

PAGE = 100

NAME_MAX = 30
"""Characters of a pass or a model in a table."""

CAME: dict[State | None, str] = {
    None: "on the wire",
    State.ANSWERED: "answered",
    State.FAILED: "failed",
    State.UNKNOWN: "unknown",
}


@click.command("facts")
@click.option("--about", metavar="X", help="All that was ever asked about X, newest first, and nothing else.")
@command()
async def facts(home: Home, out: Output, about: str | None) -> None:
    """Count what was asked, pass by pass.

    Askings that said what they are about: how many, of how many requests, what was sent for them, what came of it, what
    their readings come to, which models answered, and the bytes they take. Sends nothing.
    """
    if about is not None:
        await _tell_about(home, out, about)
        return
    with out.waiting("Reading every asking on record; many take a while."):
        counted = await home.door.send(Facts())
    if out.as_json:
        out.document(_document(counted))
    else:
        _print(out, counted)


def _document(counted: Counted) -> dict[str, Any]:
    return {
        "passes": [_pass_json(one) for one in counted.passes],
        "answers": counted.answers,
        "stored_bytes": counted.stored_bytes,
        "whole_bytes": counted.whole_bytes,
    }


def _pass_json(one: PassFacts) -> dict[str, Any]:
    return {
        "pass": one.pass_,
        "askings": one.askings,
        "requests": one.requests,
        "versions": one.versions,
        "sent": one.sent,
        "not_sent": one.not_sent,
        "stored_whole": one.whole,
        "answered": one.answered,
        "failed": one.failed,
        "unknown": one.unknown,
        "on_the_wire": one.open,
        "readings": [{"reading": rule, "comes_to": word, "times": times} for rule, word, times in one.readings],
        "models": [{"asked": asked, "answered": said, "times": times} for asked, said, times in one.models],
        "stored_bytes": one.stored_bytes,
        "whole_bytes": one.whole_bytes,
    }


def _print(out: Output, counted: Counted) -> None:
    if not counted.passes:
        out.line("No asking on record says what it is about. See “Say what a call is about” in the README.")
        return
    passes = counted.passes
    table = _Tables(out, passes)
    heads = ["askings", "requests", "versions", "sent", "not sent", "stored whole"]
    rows = [[p.askings, p.requests, p.versions, p.sent, p.not_sent, p.whole] for p in passes]
    table.numbers("Asked", heads, rows)
    heads = ["answered", "failed", "unknown", "on the wire"]
    table.numbers("Came of it", heads, [[p.answered, p.failed, p.unknown, p.open] for p in passes])
    table.several("Models", ["asked for", "answered", "times"], [_models(p) for p in passes])
    if any(p.readings for p in passes):
        table.several("Read as", ["comes to", "times", "reading"], [_readings(p) for p in passes], times=2)
    sizes = [(p.stored_bytes, p.whole_bytes) for p in passes]
    table.sizes("Bytes", ["stored", "each call whole", ""], [*sizes, (counted.stored_bytes, counted.whole_bytes)])
    out.line()
    for told in (
        "versions: different instructions, which is all of a body but its state and model",
        "stored whole: bodies that cannot be cut into parts · stored: each text once, whoever shares it",
        f"the whole record: every text in it, beside the bodies and replies of its {many(counted.answers, 'answer')}",
    ):
        out.line(dim(f"  {told}"))


class _Tables:
    """Tables below each other whose first column, the pass, is of one width."""

    def __init__(self, out: Output, passes: Sequence[PassFacts]) -> None:
        self._out = out
        self._names = ["  " + (short(p.pass_, NAME_MAX) or "no pass") for p in passes]
        self._width = max(len(name) for name in [*self._names, "  the whole record"])
        self._some = False

    def _table(self, title: str, heads: Sequence[str], rows: list[list[str]], right: range | tuple[int, ...]) -> None:
        if self._some:
            self._out.line()
        self._some = True
        first = bold(title) + " " * (self._width - len(title))
        self._out.table([[first, *map(dim, heads)], *rows], indent=0, right=right)

    def numbers(self, title: str, heads: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
        """A row a pass, all of it numbers."""
        said = [[name, *map(size, row)] for name, row in zip(self._names, rows, strict=True)]
        self._table(title, heads, said, range(1, len(heads) + 1))

    def several(
        self, title: str, heads: Sequence[str], rows: Sequence[Sequence[list[str]]], times: int | None = None
    ) -> None:
        """Some rows a pass, its name before the first; one column, the last if none is named, is numbers."""
        said: list[list[str]] = []
        for name, found in zip(self._names, rows, strict=True):
            said += [[name if at == 0 else "", *row] for at, row in enumerate(found)]
        self._table(title, heads, said, (times or len(heads),))

    def sizes(self, title: str, heads: Sequence[str], rows: Sequence[tuple[int, int]]) -> None:
        """Bytes stored against bytes if each call were stored whole; the last row is everything there is."""
        names = [*self._names, "  the whole record"]
        shares = [f"{100 * stored / whole:.0f} %" if whole else "" for stored, whole in rows]
        said = [[name, size(a), size(b), share] for name, (a, b), share in zip(names, rows, shares, strict=True)]
        self._table(title, heads, said, range(1, 4))


def _models(one: PassFacts) -> list[list[str]]:
    return [
        [short(asked or "not named", NAME_MAX), short(said or "not named", NAME_MAX), size(times)]
        for asked, said, times in one.models
    ]


def _readings(one: PassFacts) -> list[list[str]]:
    rows: list[list[str]] = []
    told = ""
    for rule, word, times in sorted(one.readings, key=lambda found: found[0]):
        said = dim("cannot be told") if word is None else bold(short(word, NAME_MAX))
        rows.append([said, size(times), "" if rule == told else dim(short(rule, 80))])
        told = rule
    return rows


async def _tell_about(home: Home, out: Output, about: str) -> None:
    before = None
    while page := await home.door.send(Abouts(about, before, PAGE)):
        if out.as_json:
            for asking in page:
                out.document(asking_json(asking))
        else:
            out.table([_row(asking) for asking in page], indent=0)
        before = page[-1].number
    if before is None:
        raise NotFound(f"Nothing on record was asked about {visible(about)}.")
    if not out.as_json:
        out.line(dim(f"\naskonce show '#{before}' shows one of them whole"))


def _row(asking: Asking) -> list[str]:
    came = CAME[asking.state]
    return [
        bold(f"#{asking.number}"),
        short(asking.naming.pass_, NAME_MAX),
        came if asking.comes_to is None else bold(short(asking.comes_to, NAME_MAX)),
        f"@{asking.request_id}" + ("" if asking.n is None else f":{asking.n}"),
        dim(short(asking.answered_model or "", NAME_MAX)),
        dim("erased" if asking.erased else "gone" if asking.gone else ago(asking.at, time.time_ns() // 1000)),
    ]


# -- one asking --------------------------------------------------------------------------------------------------------


def asking_json(asking: Asking) -> dict[str, Any]:
    """An asking for JSON."""
    naming = asking.naming
    inputs = zip(naming.inputs, asking.found_at, strict=True)
    return {
        "judgment": asking.number,
        "at": iso(asking.at),
        "pass": naming.pass_,
        "about": naming.about,
        "reading": naming.reading,
        "comes_to": asking.comes_to,
        "inputs": [{"name": one.name, "words": one.words, "found_at": place} for one, place in inputs],
        "inputs_missing": asking.inputs_missing,
        "request_number": asking.request_id,
        "n": asking.n,
        "state": "on the wire" if asking.state is None else asking.state.name.lower(),
        "asked_model": asking.asked_model,
        "answered_model": asking.answered_model,
        "gone": asking.gone or None,
        "erased": asking.erased,
    }


def print_asking(out: Output, asking: Asking) -> None:
    """What one judgment number stands for: when, which step, about what, and how the answer is read."""
    naming = asking.naming
    out.line(bold(f"#{asking.number}") + dim("  judgment"))
    facts = [["asked", shown(asking.at)]]
    facts += [[name, visible(said)] for name, said in (("pass", naming.pass_), ("about", naming.about)) if said]
    if naming.reading:
        untold = "cannot be told: a number it needs was not supplied" if asking.n and not asking.gone else "no answer"
        facts.append(["reading", visible(naming.reading)])
        facts.append(["comes to", dim(untold) if asking.comes_to is None else bold(visible(asking.comes_to))])
    for one, place in zip(naming.inputs, asking.found_at, strict=True):
        name = f"input {short(one.name, NAME_MAX)}".strip()
        facts.append([name, f"{short(one.words)}  {dim(_where(one, place))}".strip()])
    if asking.state is not State.ANSWERED:
        facts.append(["came of it", CAME[asking.state]])
    if asking.gone:
        facts.append(["gone", visible(asking.gone)])
    if asking.erased:
        facts.append(["erased", "some of what it was named with"])
    out.table([[dim(name), value] for name, value in facts])


def _where(one: Input, place: int | None) -> str:
    if place is not None:
        return f"at byte {size(place)} of the request"
    searched = len(utf8(one.words)) >= SEARCHED_BYTES_MIN
    return "not found word for word in the request" if searched else "too short to be looked for"
