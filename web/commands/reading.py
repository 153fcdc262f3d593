"""`askonce show`, `versions` and `diff`: what is on record of a call. None of them ever sends."""

import difflib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from archive.doors import Door
from archive.errors import ArchiveError, Erased, NotKept, Withdrawn
from archive.messages import Judged, Judgment, Kept, Looked, Numbered, Show, Shown, Versions
from archive.picks import Standing
from archive.when import iso, shown
from web.commands.answers import cost, kept_json, large, loaded, options, rows_of, short
from web.commands.facts import asking_json, print_asking
from web.commands.home import Called, CallType, Home, command, find
from web.commands.output import Output, bold, dim, first_words, pretty, visible
from web.render import size
from web.view import Said, answers_in

PAGE = 20
"""Versions that are read at a time: their replies may be long."""

BODY_BYTES_MAX = 8 * 1024
"""Of a longer request or reply `show` prints the beginning; `--raw` has all of it."""


@click.command("show")
@click.argument("called", metavar="CALL[:N]", type=CallType())
@click.option("--raw", type=click.Choice(["request", "response"]), help="Its exact bytes and nothing else.")
@command()
async def show(home: Home, out: Output, called: Called, raw: str | None) -> None:
    """Show a call and its answer.

    The request, the answer, what is known of the call, and every answer it ever got. CALL is the call_id on receipts
    and pages (3f2a9c01be44), N which answer; without it the newest. @17 is a request by its number. '#1234' is a
    judgment by its number: what was asked and about what, the very answer it got, and what its reading comes to. Ends
    with 1 where every answer was withdrawn or erased.
    """
    if called.judgment:
        await _show_judgment(home, out, await home.door.send(Judged(called.judgment)), raw)
        return
    number, _ = await find(home.door, called)
    found = await home.door.send(Show(number, called.n))
    kept = found.looked.kept
    if raw == "request":
        out.raw(found.request.body)
        return
    if kept is None and (called.n is not None or raw == "response"):
        raise await _not_there(home.door, called, found.looked)
    if kept is not None and raw == "response":
        out.raw(kept.body)
        return
    versions = [numbered async for page in _versions(home.door, number) for numbered in page]
    if out.as_json:
        out.document(_document(found, versions))
    else:
        _print(out, found, versions)
    if kept is None and versions:
        click.get_current_context().exit(1)


async def _not_there(door: Door, called: Called, looked: Looked) -> ArchiveError:
    """Why there is no answer to be had; of several that are gone, why the last one is."""
    if called.n is None and looked.request_id is not None and looked.total:
        looked = (await door.send(Show(looked.request_id, looked.total))).looked
    standing = looked.named
    if standing is None or standing.usable:
        return NotKept(looked.gone or f"{called.text} has no answer on record.")
    return (Erased if standing.erased else Withdrawn)(looked.gone, at=standing.gone_at)


async def _show_judgment(home: Home, out: Output, judged: Judgment, raw: str | None) -> None:
    asking, request, kept = judged.asking, judged.request, judged.kept
    if raw is not None:
        data = request.body if raw == "request" and request else kept.body if raw == "response" and kept else None
        if data is None:
            raise NotKept(asking.gone or f"Judgment #{asking.number} has no answer.")
        out.raw(data)
        return
    found, versions = None, list[Numbered]()
    # Of a request whose words were erased only the asking is left to be shown.
    with suppress(Erased):
        found = await home.door.send(Show(asking.request_id, asking.n))
        # Without an answer of its own it must not be shown with the newest, which served others.
        found = msgspec.structs.replace(found, looked=msgspec.structs.replace(found.looked, kept=kept))
        versions = [numbered async for page in _versions(home.door, asking.request_id) for numbered in page]
    if out.as_json:
        out.document({"judgment": asking_json(asking)} | ({} if found is None else _document(found, versions)))
        return
    print_asking(out, asking)
    if found is not None:
        out.line()
        _print(out, found, versions)


def _document(found: Shown, versions: list[Numbered]) -> dict[str, Any]:
    request, looked = found.request, found.looked
    place = request.destination
    return {
        "call": looked.call_id,
        "request_number": looked.request_id,
        "private_to": request.partition or None,
        "destination": {"name": place.name, "method": place.method, "url": place.url},
        "content_type": request.content_type,
        "headers": dict(request.headers),
        "request": loaded(request.body),
        "answer": None if looked.kept is None else kept_json(looked.kept, request.body),
        "on_the_wire_since": None if looked.on_wire_at is None else iso(looked.on_wire_at),
        "unknown_since": None if looked.unknown_at is None else iso(looked.unknown_at),
        "failed": looked.failed or None,
        "said": first_words(looked.said) or None,
        "versions": [_version_json(numbered, looked.call_id, request.body) for numbered in versions],
    }


_NAMES = tuple(kept_json(Kept("", 0, 0, 0, b"", "", "", 0, 0)))
"""What is said of an answer; of one that is gone the same, and nothing behind it."""


def _version_json(numbered: Numbered, call: str, asked: bytes) -> dict[str, Any]:
    """The same names for every version; None where there is nothing."""
    standing, kept = numbered.standing, numbered.kept
    said = {} if kept is None else kept_json(kept, asked)
    return {name: said.get(name) for name in (*_NAMES, "answers")} | {
        "call": call,
        "n": standing.n,
        "standing": _standing(standing),
        "at": None if standing.gone_at is None else iso(standing.gone_at),
        "why": standing.why or None,
    }


def _standing(standing: Standing) -> str:
    return "erased" if standing.erased else "withdrawn" if standing.withdrawn else "kept"


def _print(out: Output, found: Shown, versions: list[Numbered]) -> None:
    request, looked, kept = found.request, found.looked, found.looked.kept
    n = "" if kept is None else f":{kept.n}"
    gone = [numbered.standing for numbered in versions if numbered.kept is None]
    title = dim(f"answer {kept.n} of {kept.total}" if kept else "no answer")
    if gone and len(gone) == len(versions):
        title = click.style(f"no answer: {_all_gone(gone)}", fg="yellow")
    out.line(f"{bold(f'{looked.call_id}{n}')}  {title}")
    place = request.destination
    facts = [["private", f"to {visible(request.partition)}"]] if request.partition else []
    facts.append(["to", f"{place.method} {visible(place.url)}"])
    facts += [[name, visible(value)] for name, value in request.headers]
    if kept is not None:
        facts.append(["kept", shown(kept.kept_at)])
        facts.append(["model", visible(kept.answered_model or "not named")])
        facts.append(["took", f"{size(kept.ms)} ms"])
        facts.append(["tokens", f"{_count(kept.input_tokens)} in, {_count(kept.output_tokens)} out"])
        facts.append(["cost", cost(kept.cost)])
        facts += [["imported", f"from {visible(kept.imported_from)}"]] if kept.imported_from else []
        facts += [["cut short", "the model stopped at a limit before it had finished"]] if kept.cut_short else []
        facts += [["provider's id", visible(kept.provider_id)]] if kept.provider_id else []
    if looked.on_wire_at is not None:
        facts.append(["on the wire", f"since {shown(looked.on_wire_at)}"])
    if looked.unknown_at is not None:
        facts.append(["unknown", f"sent {shown(looked.unknown_at)}, no confirmed reply"])
    if looked.failed:
        facts.append(["failed", looked.failed])
        facts += [["said", first_words(looked.said)]] if looked.said else []
    out.table([[dim(name), value] for name, value in facts])
    if kept is not None:
        _print_answers(out, answers_in(request.body, kept.body))
    _print_body(out, "Request", request.body)
    if kept is not None:
        _print_body(out, "Response", kept.body)
    if len(versions) > 1 or gone:
        out.line("\n" + bold("Versions"))
        _print_versions(out, versions, request.body, kept)


def _all_gone(gone: list[Standing]) -> str:
    """How it came that nothing is left of the answers there were."""
    ways = sorted({_standing(standing) for standing in gone}, reverse=True)
    if len(gone) > 1:
        return f"{'both' if len(gone) == 2 else f'all {len(gone)}'} were {' or '.join(ways)}"
    moment = "" if gone[0].gone_at is None else f" on {shown(gone[0].gone_at)}"
    return f"{ways[0]}{moment}" + (f": {visible(gone[0].why)}" if gone[0].why else "")


def _count(tokens: int | None) -> str:
    return "unknown" if tokens is None else size(tokens)


def _print_answers(out: Output, said: tuple[Said, ...]) -> None:
    if not said:
        return
    out.line("\n" + bold("Answer"))
    out.table(rows_of(said))
    for one in said:
        if one.answer.detail is not None and one.answer.detail.options:
            out.line(f"\n  {dim(short(one.name))}")
            out.table(options(one.answer), indent=4)


def _print_body(out: Output, title: str, data: bytes) -> None:
    out.line("\n" + bold(title) + dim(f"  {size(len(data))} bytes"))
    text = pretty(data)
    text = visible(data.decode("utf-8", "replace") if text is None else text, laid_out=True)
    cut = text[:BODY_BYTES_MAX]
    for line in cut.splitlines():
        out.line("  " + line)
    if len(cut) < len(text):
        out.line(dim(f"  … {size(len(text) - len(cut))} characters more; --raw {title.lower()} prints all of it"))


@click.command("versions")
@click.argument("called", metavar="CALL", type=CallType())
@command()
async def versions(home: Home, out: Output, called: Called) -> None:
    """List every answer a call ever got.

    Those that were withdrawn or erased too, with when and why.
    """
    number, _ = await find(home.door, called)
    found = await home.door.send(Show(number))
    call, asked = found.looked.call_id, found.request.body
    some = False
    async for page in _versions(home.door, number):
        some = True
        if out.as_json:
            for numbered in page:
                out.document(_version_json(numbered, call, asked))
        else:
            _print_versions(out, page, asked, None)
    if not some:
        raise NotKept(f"{called.text} has no answer on record.")


async def _versions(door: Door, number: int) -> AsyncIterator[tuple[Numbered, ...]]:
    after = 0
    while page := await door.send(Versions(number, after, PAGE)):
        yield page
        after = page[-1].standing.n


def _print_versions(out: Output, found: Sequence[Numbered], asked: bytes, here: Kept | None) -> None:
    rows: list[list[str]] = []
    for numbered in found:
        standing, kept = numbered.standing, numbered.kept
        mark = ">" if here is not None and here.n == standing.n else " "
        if kept is None:
            gone = click.style(_standing(standing), fg="yellow")
            moment = "" if standing.gone_at is None else shown(standing.gone_at)
            rows.append([f"{mark} {standing.n}", moment, gone, visible(standing.why), ""])
            continue
        said = answers_in(asked, kept.body)
        words = ", ".join(large(one.answer) for one in said[:3]) + (" …" if len(said) > 3 else "")
        rows.append(
            [
                f"{mark} {kept.n}",
                shown(kept.kept_at),
                words,
                dim(visible(kept.answered_model or "")),
                dim(", ".join([cost(kept.cost), *_marks(kept)])),
            ]
        )
    out.table(rows, indent=1)


def _marks(kept: Kept) -> list[str]:
    """What sets an answer apart from a whole one that was sent from here."""
    cut = ["cut short"] if kept.cut_short else []
    return cut + ([f"imported from {visible(kept.imported_from)}"] if kept.imported_from else [])


@click.command("diff")
@click.argument("one", metavar="CALL:1", type=CallType())
@click.argument("other", metavar="CALL:2", type=CallType())
@command()
async def diff(home: Home, out: Output, one: Called, other: Called) -> None:
    """Compare two answers.

    Their numbers side by side, and what differs in the bytes. Of two different calls the requests are compared too.
    Without :N a call's newest answer is meant.
    """
    left, right = [await _answered(home.door, called) for called in (one, other)]
    pairs = [] if left[0].body == right[0].body else [("request", left[0].body, right[0].body)]
    pairs.append(("response", left[1].body, right[1].body))
    names = (f"{left[1].call_id}:{left[1].n}", f"{right[1].call_id}:{right[1].n}")
    sides = _sides(answers_in(left[0].body, left[1].body), answers_in(right[0].body, right[1].body))
    if out.as_json:
        out.document(
            {
                "answers": [
                    {"question": name, "one": click.unstyle(a), "other": click.unstyle(b)} for name, a, b in sides
                ],
                **{title: {"same_bytes": a == b, "diff": _lines(a, b, names)} for title, a, b in pairs},
            }
        )
        return
    out.table([["", dim(names[0]), dim(names[1])], *([name, a, b] for name, a, b in sides)], indent=0)
    for title, a, b in pairs:
        out.line(f"\n{bold(title.capitalize())}  {_bytes_note(a, b)}")
        for line in _lines(a, b, names):
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            out.line("  " + click.style(visible(line, laid_out=True), fg=colour))


async def _answered(door: Door, called: Called) -> tuple[Any, Kept]:
    number, n = await find(door, called)
    found = await door.send(Show(number, n))
    if called.judgment and n is None:
        raise NotKept(f"{called.text} has no answer on record.")
    if found.looked.kept is None:
        raise await _not_there(door, msgspec.structs.replace(called, n=n), found.looked)
    return found.request, found.looked.kept


def _sides(one: tuple[Said, ...], other: tuple[Said, ...]) -> list[tuple[str, str, str]]:
    """A row a question that either has: its name, and how each answers it."""
    left, right = ({said.name: said.answer for said in side} for side in (one, other))
    names = [*left, *(name for name in right if name not in left)]
    return [
        (short(name, 40), large(left[name]) if name in left else "", large(right[name]) if name in right else "")
        for name in names
    ]


def _lines(a: bytes, b: bytes, names: tuple[str, str]) -> list[str]:
    """What differs, as a unified diff: of the JSON laid out, else of the text as it is."""
    one, other = pretty(a), pretty(b)
    if one is None or other is None:
        one, other = a.decode("utf-8", "replace"), b.decode("utf-8", "replace")
    return list(difflib.unified_diff(one.splitlines(), other.splitlines(), *names, lineterm=""))


def _bytes_note(a: bytes, b: bytes) -> str:
    """How the bytes compare, where the laid-out texts may not show it."""
    if a == b:
        return dim(f"the same {size(len(a))} bytes")
    at = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    same = pretty(a) is not None and pretty(a) == pretty(b)
    what = "the same JSON in other bytes" if same else "different"
    return dim(f"{what}: {size(len(a))} and {size(len(b))} bytes, the first difference at byte {size(at)}")
