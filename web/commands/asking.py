"""`askonce ask`: a question in words, a typed one put together on the line, or a whole System One body."""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from archive.errors import ArchiveError, CallUnknown, Invalid, NotKept
from archive.messages import Ask, Caller, Question, Sent
from archive.picks import Fresh, KeptOnly, Latest, Pick, Pins, Version
from archive.request import Request
from web import builder
from web.asking import Askings
from web.commands.answers import (
    HOW,
    answer_json,
    cost,
    dollars,
    kept_json,
    kept_line,
    large,
    options,
    rows_of,
    short,
    small,
    total,
)
from web.commands.home import EXIT, Home, command
from web.commands.output import Output, dim, visible
from web.pages import TYPED_CHARACTERS_MAX, check_text, question_of
from web.view import CallView, View, answers_in, view

NEEDS_FORM = {
    "options": "It asks to pick one, but what to pick from is not named for sure. Name it: --choice with --option.",
    "form": "It is an open question, and a decision model writes no text. Ask it with --noul, --choice or --score.",
}
"""What is missing where a question was asked so that no answer can be given."""

NEEDS = NEEDS_FORM | {"better": "The language model in front was to put it into a form, and what it wrote is none."}


def _kinds(work: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        [
            click.argument("words", required=False),
            click.option("--noul", metavar="TEXT", help="Ask a yes or no question, as it stands."),
            click.option("--choice", metavar="TEXT", help="Ask which of the --option is right."),
            click.option("--score", metavar="TEXT", help="Ask how much, on the --level given."),
            click.option(
                "--option", "options_", multiple=True, metavar="NAME[=TEXT]", help="An option; once for each."
            ),
            click.option("--level", "levels", multiple=True, metavar="TEXT", help="A level, from least to most."),
            click.option(
                "--state", default="", metavar="TEXT", help="What it is about: text, or a JSON object or list."
            ),
            click.option("--body", type=click.File("rb"), help="A whole System One request from a file; - is stdin."),
            click.option("--fresh", is_flag=True, help="Ask afresh: sends, and may cost."),
            click.option("--sure", is_flag=True, help="With --fresh: also where an earlier sending is unknown."),
            click.option("--kept-only", is_flag=True, help="Only look: never sends."),
            click.option(
                "--version", "n", type=click.IntRange(1), metavar="N", help="Answer N and no other: never sends."
            ),
        ]
    ):
        work = option(work)
    return work


@click.command("ask")
@_kinds
@command(makes=True)
async def ask(home: Home, out: Output, words: str | None, body: BinaryIO | None, **given: Any) -> None:
    """Ask, or look up an answer. Ends with 2 where the words ask for what no decision model can answer.

    WORDS are a question as it would be typed on the page, and become the same calls. --noul, --choice and --score
    put one typed question, like the page's builder. --body sends a request of your own, byte for byte.
    """
    kinds = [kind for kind in ("noul", "choice", "score") if given[kind] is not None]
    if len(kinds) + (words is not None) + (body is not None) != 1:
        raise Invalid("Ask one thing: words, --noul, --choice, --score or --body. `askonce ask --help` says more.")
    pick = _pick(**given)
    try:
        if body is not None:
            await _ask_body(home, out, body.read(), pick)
        else:
            await _ask_question(home, out, _question(home, words, "".join(kinds), given), pick)
    except CallUnknown as unknown:
        if not unknown.waited:
            why = ": --fresh alone never pays twice." if isinstance(pick, Fresh) else "."
            unknown.text += " Nothing was sent now" + why
        unknown.text += " --fresh --sure sends it again, and may pay again."
        raise


def _pick(*, fresh: bool, sure: bool, kept_only: bool, n: int | None, **_: Any) -> Pick:
    if sum([fresh, kept_only, n is not None]) > 1:
        raise Invalid("Give one of --fresh, --kept-only and --version.")
    if fresh:
        return Fresh(sure)
    if kept_only:
        return KeptOnly()
    return Latest() if n is None else Version(n)


def _question(home: Home, words: str | None, kind: str, typed: dict[str, Any]) -> Question:
    options_, levels = typed["options_"], typed["levels"]
    if not kind:
        if typed["state"]:
            raise Invalid("Words alone are a whole question; --state goes with --noul, --choice or --score.")
        said = (words or "").strip()
        if not said:
            raise Invalid("Type a question first.")
        check_text(said, "question", home.settings.question_characters_max)
        return question_of(said, options_, levels)
    criteria: Any = None
    if kind == "choice":
        criteria = {name: text if equals else None for name, equals, text in (o.partition("=") for o in options_)}
        if len(criteria) != len(options_):
            raise Invalid("The same option stands there twice.")
    elif kind == "score":
        criteria = list(levels)
    if kind != "noul" and not criteria:
        raise Invalid(f"--{kind} needs {'--option' if kind == 'choice' else '--level'}, once for each.")
    question = builder.typed(kind, typed[kind], typed["state"], criteria)
    check_text(question.typed, "question", TYPED_CHARACTERS_MAX)
    return question


async def _ask_body(home: Home, out: Output, body: bytes, pick: Pick) -> None:
    place = home.here.ask
    with _leaving(home, out):
        answered = await home.door.send(Ask(Request(place, body), pick))
    kept, is_new = answered.kept, answered.sent is Sent.NOW
    if out.as_json:
        sent = {"sent": answered.sent.value, "cost_now": dollars(kept.cost if is_new else 0)}
        out.document(kept_json(kept, body) | sent)
        return
    said = answers_in(body, kept.body)
    out.table(rows_of(said), indent=0)
    if len(said) == 1 and said[0].answer.detail and said[0].answer.detail.options:
        out.table(options(said[0].answer))
    if not said:
        out.line(visible(kept.body.decode("utf-8", "replace"), laid_out=True))
    out.line()
    name = f"{kept.call_id}:{kept.n}" if kept.recorded else f"{kept.call_id}, not in the record yet"
    facts = kept_line(kept, time.time_ns() // 1000)
    out.table([[name, HOW[answered.sent], facts]])
    out.line("\n  " + dim(_spent([kept.cost] if is_new else [], [kept.cost])))


@contextmanager
def _leaving(home: Home, out: Output) -> Generator[None]:
    """Say that it takes long, where it does; and to who leaves, what becomes of a call that was sent."""
    try:
        with out.waiting("Waiting for the model. Leaving stops nothing at a server: the answer is kept."):
            yield
    except asyncio.CancelledError:
        kept = "goes on at the server, and its answer is kept"
        out.aside(f"Stopped waiting. A call that was sent {kept if home.address else 'gets a last moment to end'}.")
        raise


async def _ask_question(home: Home, out: Output, question: Question, pick: Pick) -> None:
    askings = home.askings()
    seen = await view(home.door, askings, question, Pins())
    last = seen.calls[-1]
    pins = Pins()
    match pick:
        case Version(n):
            pins = Pins(((last.name, n),))
            seen = await view(home.door, askings, question, pins)
        case KeptOnly():
            pass
        case _:
            pressed = last.name if isinstance(pick, Fresh) else None
            seen = await _asked(home, out, askings, question, (pressed, isinstance(pick, Fresh) and pick.sure))
    if seen.conclusion is None:
        raise _not_there(seen)
    got = {} if seen.last is None else seen.last.got
    if out.as_json:
        out.document(_document(seen, got))
    else:
        _print(out, seen, got)
    needs = seen.conclusion.needs
    if needs:
        click.get_current_context().exit(EXIT["invalid" if needs in NEEDS_FORM else "call_failed"])


async def _asked(home: Home, out: Output, askings: Askings, question: Question, press: tuple[str | None, bool]) -> View:
    """Ask as the page's form does, wait for the end, and see the page. Raises what stopped it."""
    # What is asked in words has a page, and is public like what was asked there.
    asking = askings.start(question, Pins(), press[0], Caller(visitor=True), sure=press[1])
    with _leaving(home, out):
        await askings.settled()
    if asking.trouble is not None:
        raise asking.trouble
    return await view(home.door, askings, question, Pins())


def _not_there(seen: View) -> ArchiveError:
    ended = seen.calls[-1]
    text = ended.text or "This is not on record, and only a kept answer was asked for. Nothing was sent."
    return NotKept(text)


def _print(out: Output, seen: View, got: dict[str, Sent]) -> None:
    conclusion = seen.conclusion
    if conclusion is not None and conclusion.answer is not None:
        answer = conclusion.answer
        out.line(large(answer))
        if conclusion.claim:
            out.line(dim("judged was whether this is true: ") + visible(conclusion.claim))
        if small(answer):
            out.line(dim(small(answer)))
        if answer.detail is not None and answer.detail.options:
            out.table(options(answer))
    elif conclusion is not None:
        out.line(NEEDS.get(conclusion.needs, "No answer can be read from what came back."))
    out.line()
    out.table([_row(place, call, got) for place, call in enumerate(seen.calls, start=1)])
    costs = [call.kept.cost for call in seen.calls if call.kept is not None]
    out.line()
    out.line("  " + dim(_spent(_costs_now(seen, got), costs)))


def _costs_now(seen: View, got: dict[str, Sent]) -> list[int | None]:
    """What the calls that were sent just now cost."""
    return [call.kept.cost for call in seen.calls if call.kept is not None and got.get(call.name) is Sent.NOW]


def _spent(now: list[int | None], made: list[int | None]) -> str:
    """What this asking cost, and what its answers cost when they were made."""
    return f"{f'cost now: {total(now)}' if now else 'nothing was sent'}, when made: {total(made)}"


def _row(place: int, call: CallView, got: dict[str, Sent]) -> list[str]:
    name = call.name if call.kept is None else f"{call.name}:{call.kept.n}"
    how = HOW[got.get(call.name, Sent.NOT_SENT)]
    answers = "" if call.kept is None else cost(call.kept.cost)
    return [dim(str(place)), short(call.title, 40), name, how, dim(answers)]


def _document(seen: View, got: dict[str, Sent]) -> dict[str, Any]:
    conclusion = seen.conclusion
    calls = [
        {"title": call.title, "sent": got.get(call.name, Sent.NOT_SENT).value}
        | ({} if call.kept is None else kept_json(call.kept, call.request.body))
        for call in seen.calls
    ]
    now_costs = _costs_now(seen, got)
    known = None if None in now_costs else sum(x or 0 for x in now_costs)
    return {
        "question": seen.question.words,
        "kind": conclusion and conclusion.kind,
        "answer": answer_json(conclusion and conclusion.answer),
        "needs": (conclusion and conclusion.needs) or None,
        "claim": (conclusion and conclusion.claim) or None,
        "cost_now": dollars(known),
        "calls": calls,
    }
