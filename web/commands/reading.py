"""`askonce show`, `versions` and `diff`: what is on record of a call. None of them ever sends."""

import difflib
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from archive.doors import Door
from archive.errors import Erased, NotKept
from archive.messages import Judged, Judgment, Kept, Numbered, Show, Shown, Versions
from archive.when import iso, shown
from web.commands.answers import cost, kept_json, large, loaded, options, rows_of, short
from web.commands.facts import asking_json, print_asking
from web.commands.home import Called, CallType, Home, command, find
from web.commands.output import Output, bold, dim, pretty, visible
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
    judgment by its number: what was asked and about what, the very answer it got, and what its reading comes to.
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
    if called.n is not None and kept is None:
        raise NotKept(found.looked.gone)
    if raw == "response":
        if kept is None:
            raise NotKept(f"{called.text} has no answer on record.")
        out.raw(kept.body)
        return
    versions = [numbered async for page in _versions(home.door, number) for numbered in page]
    if out.as_json:
        out.document(_document(found, versions))
    else:
        _print(out, found, versions)


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
        "destination": {"name": place.name, "method": place.method, "url": place.url},
        "content_type": request.content_type,
        "headers": dict(request.headers),
        "request": loaded(request.body),
        "answer": None if looked.kept is None else kept_json(looked.kept, request.body),
        "on_the_wire_since": None if looked.on_wire_at is None else iso(looked.on_wire_at),
        "unknown_since": None if looked.unknown_at is None else iso(looked.unknown_at),
        "failed": looked.failed or None,
        "versions": [_version_json(numbered, request.body) for numbered in versions],
    }


def _version_json(numbered: Numbered, asked: bytes) -> dict[str, Any]:
    standing, kept = numbered.standing, numbered.kept
    if kept is not None:
        return kept_json(kept) | {"standing": "kept", "answers": kept_json(kept, asked)["answers"]}
    return {
        "n": standing.n,
        "standing": "erased" if standing.erased else "withdrawn",
        "at": None if standing.gone_at is None else iso(standing.gone_at),
        "why": standing.why,
    }


def _print(out: Output, found: Shown, versions: list[Numbered]) -> None:
    request, looked, kept = found.request, found.looked, found.looked.kept
    n = "" if kept is None else f":{kept.n}"
    out.line(bold(f"{looked.call_id}{n}") + dim(f"  answer {kept.n} of {kept.total}" if kept else "  no answer"))
    place = request.destination
    facts = [["to", f"{place.method} {visible(place.url)}"]]
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
    out.table([[dim(name), value] for name, value in facts])
    if kept is not None:
        _print_answers(out, answers_in(request.body, kept.body))
    _print_body(out, "Request", request.body)
    if kept is not None:
        _print_body(out, "Response", kept.body)
    if len(versions) > 1:
        out.line("\n" + bold("Versions"))
        _print_versions(out, versions, request.body, kept)


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
    text = visible(data.decode("utf-8", "replace") if text is None else text)
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
    asked = (await home.door.send(Show(number))).request.body
    some = False
    async for page in _versions(home.door, number):
        some = True
        if out.as_json:
            for numbered in page:
                out.document(_version_json(numbered, asked))
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
            gone = "erased" if standing.erased else "withdrawn"
            moment = "" if standing.gone_at is None else shown(standing.gone_at)
            rows.append([f"{mark} {standing.n}", moment, click.style(gone, fg="yellow"), visible(standing.why), ""])
            continue
        said = answers_in(asked, kept.body)
        words = ", ".join(large(one.answer) for one in said[:3]) + (" …" if len(said) > 3 else "")
        rows.append(
            [
                f"{mark} {kept.n}",
                shown(kept.kept_at),
                words,
                dim(visible(kept.answered_model or "")),
                dim(cost(kept.cost) + (", cut short" if kept.cut_short else "")),
            ]
        )
    out.table(rows, indent=1)


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
                "answers": [{"question": name, "one": a, "other": b} for name, a, b in sides],
                **{title: {"same_bytes": a == b, "diff": _lines(a, b, names)} for title, a, b in pairs},
            }
        )
        return
    out.table([["", dim(names[0]), dim(names[1])], *([name, a, b] for name, a, b in sides)], indent=0)
    for title, a, b in pairs:
        out.line(f"\n{bold(title.capitalize())}  {_bytes_note(a, b)}")
        for line in _lines(a, b, names):
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            out.line("  " + click.style(visible(line), fg=colour))


async def _answered(door: Door, called: Called) -> tuple[Any, Kept]:
    number, n = await find(door, called)
    found = await door.send(Show(number, n))
    if found.looked.kept is None or (called.judgment and n is None):
        raise NotKept(found.looked.gone or f"{called.text} has no answer on record.")
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
