"""`askonce erase` takes a person's words out of the record, `askonce withdraw` one answer back.

What must never be here: what is found, and what goes (archive/actor/store/erasing.py).
"""

import sys
from typing import Any

import click
import msgspec

from archive.admin import Erase, Holding, Preview, Previewed, Receipt, Searched, Uses, Withdraw
from archive.when import iso, shown
from web.commands.answers import short
from web.commands.home import Called, CallType, Home, command, find
from web.commands.output import Output, bold, dim, joined, many
from web.render import size

SHOWN_MAX = 50
"""Texts of a preview that are printed; `--json` has all."""


@click.command("erase")
@click.argument("words", metavar="WORDS")
@click.option("--yes", is_flag=True, help="Do it. Without this nothing is changed.")
@click.option("--also-shared", is_flag=True, help="Also what others use: more than one request or question.")
@command()
async def erase(home: Home, out: Output, words: str, yes: bool, also_shared: bool) -> None:
    """Take words out of the record, for good.

    Shows every text that holds WORDS, in whichever spelling, and who uses it; with --yes those texts are emptied. Words
    of under 12 bytes must be all of a text. With - the words are read from the standard input, where no shell remembers
    them. Ends with 3 when texts stay because others use them too, and with 6 when the files still hold the words.
    """
    if words == "-":
        words = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").removesuffix("\n")
    with out.waiting("Every text on record is being read; a large one takes a while."):
        found = await home.door.send(Preview(words))
    if not out.as_json:
        _print_preview(out, found, also_shared)
    if not yes:
        if out.as_json:
            out.document(_document(found))
        else:
            out.line(dim("Nothing was changed. --yes does it, and cannot be undone."))
        return
    with out.waiting("The files are being searched."):
        receipt = await home.door.send(Erase(words, also_shared, tuple(one.text for one in found.texts), found.upto))
    if out.as_json:
        out.document({"done": receipt.done, **_document(receipt), "at": iso(receipt.at)})
    else:
        _print_receipt(out, receipt)
    if not receipt.done:
        click.get_current_context().exit(3 if receipt.stayed else 6)


def _document(said: Previewed | Receipt) -> dict[str, Any]:
    return msgspec.to_builtins(said)


def _print_preview(out: Output, found: Previewed, also_shared: bool) -> None:
    if not found.texts:
        out.line("No text on record holds these words.")
    for one in found.texts[:SHOWN_MAX]:
        stays = one.uses.shared and not also_shared
        mark = click.style("stays", fg="yellow") if stays else click.style("goes ", fg="red")
        out.line(f"{mark}  {_text(one)}")
        out.line(f"       {dim(_uses(one.uses))}")
    if len(found.texts) > SHOWN_MAX:
        out.line(dim(f"and {many(len(found.texts) - SHOWN_MAX, 'text')} more; --json has all"))
    if any(one.uses.shared for one in found.texts) and not also_shared:
        out.line(
            dim("What more than one request or question uses goes only with --also-shared. A question and its own")
        )
        out.line(dim("calls are one use."))


def _text(one: Holding) -> str:
    return f"text {one.text}, {size(one.length)} bytes: {short(one.begins, 100)}"


def _uses(uses: Uses) -> str:
    counted = (
        ("request", uses.requests),
        ("answer", uses.answers),
        ("question", uses.questions),
        ("asking", uses.askings),
        ("other use", uses.others),
    )
    numbers = ", ".join(f"{size(count)} {name}{'' if count == 1 else 's'}" for name, count in counted if count)
    one = "one question and its own calls" if uses.one_question and uses.requests > 1 else ""
    return joined([numbers or "used by nothing", one, ", ".join(uses.calls)])


def _print_receipt(out: Output, receipt: Receipt) -> None:
    out.line(bold("Receipt") + dim(f"  {shown(receipt.at)}"))
    out.line(f"  emptied {many(len(receipt.texts), 'text')}: {_uses(receipt.uses)}")
    for one in receipt.stayed:
        out.line(click.style(f"  text {one.text} stayed, others use it too: ", fg="yellow") + dim(_uses(one.uses)))
    for one in receipt.searched:
        mark = click.style("✓", fg="green") if one.clean else click.style("✗", fg="red", bold=True)
        out.line(f"  {mark} {one.file}: {_found(one)}")
    for copy in receipt.copies:
        out.line(dim(f"  not searched: {copy}"))
    out.line(dim("  not searched: backups made before. When one is put back in this place, the words go again."))
    if receipt.done:
        out.line(click.style("Done: no live file holds the words.", fg="green"))
    else:
        out.line(click.style("Not done: see above what still holds the words.", fg="red"))


def _found(one: Searched) -> str:
    if one.fault:
        return f"could not be searched: {one.fault}"
    if one.clean:
        return f"nothing in {size(one.bytes)} bytes"
    return f"the words {size(one.whole)} times, pieces of them {size(one.pieces)} times, in {size(one.bytes)} bytes"


@click.command("withdraw")
@click.argument("called", metavar="CALL:N", type=CallType())
@click.option("--why", default="", help="The reason, for whoever asks for it.")
@click.option("--back", is_flag=True, help="Take the word back: the answer counts again.")
@command()
async def withdraw(home: Home, out: Output, called: Called, why: str, back: bool) -> None:
    """Take one answer back, without changing it.

    It keeps its number and is served no more; whoever asks for it is told so, with the reason and the moment. The
    newest answer is then the one before.
    """
    number, n = await find(home.door, called)
    if n is None:
        raise click.UsageError("Name one answer: CALL:N, such as 3f2a9c01be44:2.")
    await home.door.send(Withdraw(number, n, why, not back))
    if out.as_json:
        out.document({"request_number": number, "n": n, "withdrawn": not back, "why": why})
    else:
        out.line(f"{called.text} is {'back' if back else 'withdrawn'}.")
