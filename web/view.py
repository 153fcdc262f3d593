"""What a question's page shows, put together from the record alone. Looking never sends.

What must never be here: HTML, HTTP.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

import msgspec

from archive.answer import Answer, read
from archive.doors import Door
from archive.errors import Erased
from archive.messages import Conclusion, History, Kept, Look, Looked, Question, Recall, Remembered, Show
from archive.picks import KeptOnly, Pins, Version, pick_next, print_pins
from archive.request import Request, call_id
from archive.when import shown
from web import front
from web.asking import Asking, Askings
from web.recipe import VERSION, Step, recipe

NOTE_CHARACTERS_MAX = 1_000
"""Of what the language model in front wrote; the reply below has all of it."""


class Said(msgspec.Struct, frozen=True):
    """One answer of a call: which question of the request it answers, and how."""

    name: str
    answer: Answer


class CallView(msgspec.Struct, frozen=True):
    """One call as the page shows it.

    `state`: now, shared, record, pinned, lookup (after a pin), or for a call without an answer: missing, waiting,
    unknown, failed, gone. `text` says what is wrong, or what the language model in front wrote. `earlier`, `later`:
    pins that lead to the answer before, after; `pins`: what is held above it.
    """

    title: str
    name: str
    state: str
    request: Request
    kept: Kept | None
    total: int
    said: tuple[Said, ...] = ()
    text: str = ""
    since: int | None = None
    earlier: str | None = None
    later: str | None = None
    may_press: bool = False
    same_again: bool = False
    pins: str = ""
    cooling_until: int | None = None
    refused: bool = False
    unsure_at: int | None = None
    """A later sending of it is unknown: ↻ may pay for it twice."""


class Moment(msgspec.Struct, frozen=True):
    """One answer among those a call ever got."""

    n: int
    kept_at: int
    model: str
    answer: Answer


class View(msgspec.Struct, frozen=True):
    """A question's page. `state`: unasked, asking, answered, needs, stopped, or aside (something is not on record)."""

    question: Question
    state: str
    calls: tuple[CallView, ...]
    conclusion: Conclusion | None = None
    remembered: Remembered | None = None
    asking: Asking | None = None
    last: Asking | None = None
    pins: Pins = Pins()
    strange_pins: tuple[str, ...] = ()
    older_recipe: int | None = None
    elsewhere: bool = False
    """The answer on record is another model's or another address's than would be asked now."""

    history: tuple[Moment, ...] = ()
    """How the answer's call was answered over time, oldest first; empty where it was answered once."""

    @property
    def token(self) -> str:
        """Names what is shown, times that pass apart: pages with the same one show the same."""
        calls = [(call.name, call.state, call.kept and call.kept.n, call.total, call.text) for call in self.calls]
        # By when it was asked last, not how often: a look counts too, and no page is told of every look at another.
        asked = 0 if self.remembered is None else self.remembered.last_at
        trouble = None if self.last is None or self.last.trouble is None else self.last.trouble.text
        shown = (self.page, self.state, calls, asked, self.asking is None, self.asked_again, trouble)
        return sha256(repr(shown).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def page(self) -> str:
        """Names the page, whatever stands on it now: a question, and what is held."""
        return sha256(repr((self.question, self.pins.held)).encode("utf-8", "replace")).hexdigest()[:16]

    @property
    def asked_again(self) -> bool:
        """Does an answer stand here while another one is being asked for?"""
        if self.asking is None or self.state == "asking":
            return False
        return any(call.name not in self.asking.got for call in self.calls)

    @property
    def halt(self) -> str:
        """Which of four ways it stopped: refused, limit, ours (our error), or model (out of reach, cooling, unknown).

        Empty where something is not there any more, which is no stop of an asking.
        """
        ended, trouble = self.calls[-1], None if self.last is None else self.last.trouble
        code = "" if trouble is None else trouble.code
        if code in {"over_limit", "busy"}:
            return "limit"
        if code in {"internal", "record_closed"}:
            return "ours"
        if ended.refused or code == "invalid":
            return "refused"
        return "model" if code == "cooling" or ended.state in {"unknown", "waiting", "failed"} else ""

    @property
    def next(self) -> str:
        """What whoever met a stop may do now."""
        ended, trouble = self.calls[-1], None if self.last is None else self.last.trouble
        until = ended.cooling_until if trouble is None else trouble.until or ended.cooling_until
        match self.halt:
            case "refused":
                return "put the question another way. The same request would most likely be refused again."
            case "limit" | "model" if until is not None:
                return f"try again after {shown(until)}."
            case "limit":
                return "try again in a moment."
            case "ours":
                return "try again. If it stays so, tell whoever runs this site what stands above."
            case "model" if ended.state == "unknown":
                return f"wait, since the reply may still come, or decide at call {len(self.calls)} to send it again."
            case "model" if ended.state == "waiting":
                return "wait. This page shows the reply when it comes."
            case "model":
                return "try again in a while."
            case _:
                return ""

    @property
    def pinned(self) -> bool:
        """Is a call of this page held still?"""
        names = {call.name for call in self.calls}
        return any(name in names for name, _ in self.pins.held)

    @property
    def held(self) -> str:
        """The pins of this page, as text."""
        return print_pins(self.pins)

    @property
    def may_press_all(self) -> bool:
        """Is ↻ offered for all calls at once?"""
        may = all(call.kept is not None and call.may_press and call.unsure_at is None for call in self.calls)
        return may and len(self.calls) > 1 and not self.pinned and self.asking is None

    @property
    def cost(self) -> int | None:
        """What all calls cost when they were made, in billionths of a dollar; None: not known of each."""
        return _added([call.kept for call in self.calls if call.kept is not None])

    @property
    def spent(self) -> int | None:
        """What was sent for this page just now cost; as `cost`."""
        return _added([call.kept for call in self.calls if call.kept is not None and call.state == "now"])

    @property
    def saved(self) -> int | None:
        """What was not sent for this page cost when it was sent; as `cost`."""
        return _added([call.kept for call in self.calls if call.kept is not None and call.state != "now"])

    @property
    def all_pins(self) -> str:
        """Pins that hold this page as it is."""
        return ",".join(f"{call.name}:{call.kept.n}" for call in self.calls if call.kept is not None)


def _added(answers: Sequence[Kept]) -> int | None:
    """What these answers cost together; None where that of one is not known."""
    costs = [kept.cost for kept in answers]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


async def view(door: Door, askings: Askings, question: Question, pins: Pins) -> View:
    """The page of a question, as the record has it now."""
    remembered = await door.send(Recall(question))
    asking = askings.running(question, pins)
    last = askings.last(question)
    if remembered is not None and remembered.recipe != VERSION and asking is None:
        with suppress(Erased):  # then nothing of it is left to show
            return await _older(door, remembered, pins, last)
    calls, conclusion = await _walk(door, askings, question, pins)
    history = await _history(door, calls[-1]) if conclusion is not None and not conclusion.needs else ()
    ended = calls[-1]
    never_sent = len(calls) == 1 and ended.state == "missing"
    if remembered is not None and remembered.recipe == VERSION and never_sent and asking is None:
        with suppress(Erased):
            return await _older(door, remembered, pins, last)
    if asking is not None and ended.kept is None:
        state = "asking"
    elif conclusion is not None:
        state = "needs" if conclusion.needs else "answered"
    elif ended.state != "missing":
        state = "stopped"
    elif len(calls) > 1:
        state = "stopped" if _kept_from_sending(last) else "aside"
    else:
        state = "stopped" if _kept_from_sending(last) else "unasked"
    strange = _strange(pins, calls)
    return View(question, state, tuple(calls), conclusion, remembered, asking, last, pins, strange, history=history)


async def _walk(
    door: Door, askings: Askings, question: Question, pins: Pins
) -> tuple[list[CallView], Conclusion | None]:
    """The calls of the recipe as far as they are on record, and what they come to if all of them are."""
    walk = recipe(question, askings.models)
    calls: list[CallView] = []
    sent = askings.running(question, pins) or askings.last(question)
    got: Mapping[str, str] = {} if sent is None or not (sent.lately or sent.ended_at is None) else sent.got
    step = next(walk)
    while True:
        request = askings.request(step)
        earlier = tuple(call.name for call in calls)
        pick = pick_next(call_id(request), pins, None, earlier)
        looked = await door.send(Look(request, pick.n if isinstance(pick, Version) else None, visitor=True))
        state = "pinned" if isinstance(pick, Version) else _how(got.get(looked.call_id))
        state = "lookup" if isinstance(pick, KeptOnly) else state
        calls.append(_call(step, request, looked, state, _kept_pins(pins, earlier)))
        if looked.kept is None:
            return calls, None
        try:
            step = walk.send(looked.kept.body)
        except StopIteration as end:
            return calls, end.value.conclusion


async def _history(door: Door, call: CallView) -> tuple[Moment, ...]:
    """The answers of a call over time, oldest first, where there is more than one."""
    if call.kept is None or call.total < 2:
        return ()
    moments: list[Moment] = []
    for kept in await door.send(History(call.kept.request_id)):
        said = answers_in(call.request.body, kept.body)
        if said:
            moments.append(Moment(kept.n, kept.kept_at, kept.answered_model or "", said[0].answer))
    return tuple(reversed(moments))


async def _older(door: Door, remembered: Remembered, pins: Pins, last: Asking | None) -> View:
    """The page of a question that an older recipe, or another model, answered: its calls as they were, free."""
    calls: list[CallView] = []
    held = dict(pins.held)
    for made in remembered.calls:
        shown = await door.send(Show(made.request_id, made.n))
        n = held.get(shown.looked.call_id)
        if n is not None and n != made.n:
            shown = await door.send(Show(made.request_id, n))
        earlier = tuple(call.name for call in calls)
        step = Step(made.title, shown.request.body)
        calls.append(
            _call(step, shown.request, shown.looked, "record" if n is None else "pinned", _kept_pins(pins, earlier))
        )
        if shown.looked.kept is None:
            break
    conclusion = remembered.conclusion
    ended = calls[-1]
    if ended.kept is not None and ended.kept.n != remembered.calls[-1].n and ended.said:
        conclusion = Conclusion(conclusion.kind, ended.said[0].answer)
    whole = "needs" if conclusion.needs else "answered"
    return View(
        remembered.question,
        "stopped" if ended.kept is None else whole,
        tuple(msgspec.structs.replace(call, may_press=False) for call in calls),
        conclusion,
        remembered,
        None,
        last,
        pins,
        _strange(pins, calls),
        None if remembered.recipe == VERSION else remembered.recipe,
        remembered.recipe == VERSION,
    )


def _call(step: Step, request: Request, looked: Looked, state: str, pins: str) -> CallView:
    kept = looked.kept
    before = pins + "," if pins else ""
    since, text = None, ""
    if kept is None:
        state, text, since = _without_answer(looked, state)
    elif step.to_front:
        text = front.content(kept.body)[:NOTE_CHARACTERS_MAX]
    n = 0 if kept is None else kept.n
    return CallView(
        step.title,
        looked.call_id,
        state,
        request,
        kept,
        looked.total,
        () if kept is None else answers_in(request.body, kept.body),
        text,
        since,
        f"{before}{looked.call_id}:{n - 1}" if n > 1 else None,
        f"{before}{looked.call_id}:{n + 1}" if 0 < n < looked.total else None,
        state not in {"lookup", "waiting"},
        request.destination.is_local,
        pins,
        looked.cooling_until,
        looked.refused,
        looked.unknown_at if kept is not None and looked.on_wire_at is None else None,
    )


def _without_answer(looked: Looked, state: str) -> tuple[str, str, int | None]:
    """State, text and moment of a call that has no answer to show."""
    if looked.gone:
        return "gone", looked.gone, None
    if looked.total and looked.on_wire_at is None:
        return "gone", "Every answer to this was withdrawn or erased.", None
    if looked.on_wire_at is not None:
        return "waiting", "", looked.on_wire_at
    if looked.unknown_at is not None:
        return "unknown", "", looked.unknown_at
    if looked.failed and state not in {"lookup", "pinned"}:
        return "failed", looked.failed, None
    return "missing", "", None


def answers_in(asked: bytes, replied: bytes) -> tuple[Said, ...]:
    """Every answer in a reply that can be read as one."""
    try:
        questions: Any = json.loads(asked.decode("utf-8", "replace"), parse_int=float)["questions"]
        answers: Any = json.loads(replied.decode("utf-8-sig", "replace"), parse_int=float)["answers"]
        pairs = [(str(name), read(answers.get(name), question)) for name, question in questions.items()]
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ()
    return tuple(Said(name, answer) for name, answer in pairs if answer is not None)


def _how(sent: str | None) -> str:
    return sent if sent in {"now", "shared"} else "record"


def _kept_pins(pins: Pins, earlier: tuple[str, ...]) -> str:
    """The pins of the calls above: a step of one call keeps what is held before it and lets go of what comes after."""
    return print_pins(Pins(tuple(pair for pair in pins.held if pair[0] in earlier)))


def _kept_from_sending(last: Asking | None) -> bool:
    """Did the last asking end before a call was made? What came of a call that was made, the call itself tells."""
    trouble = None if last is None or not last.stands else last.trouble
    return trouble is not None and trouble.code not in {"call_unknown", "call_failed"}


def _strange(pins: Pins, calls: list[CallView]) -> tuple[str, ...]:
    """Pins that could not be read, or that name no call of this page."""
    names = {call.name for call in calls}
    return (*pins.malformed, *(f"{name}:{n}" for name, n in pins.held if name not in names))
