"""One sending and what came of it: answered, failed or unknown, and how long a destination asked to be left alone.

The principle behind every line of the tables here (docs/decisions/0008): *failed* means that it surely was not done,
or that the provider itself said so, completely; *unknown* means that it may have been done and no confirmed answer
came. In doubt it is unknown, because unknown is never sent again by itself.
What must never be here: a clock, a socket, a retry. There are none: an attempt is made once.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from hashlib import sha256
from typing import cast
from urllib.parse import urlsplit

import msgspec

from archive.decisions import asked_in_a_list, decided, within
from archive.request import Destination, Request, asked, fingerprint, loads
from archive.streams import hear, is_stream, wants_stream
from archive.when import DAY, SECOND, from_http_date

PAID_REFUSAL_SECONDS = 60
"""How long a refusal that was paid for is shown to everyone who asks, instead of being paid for again."""

COOLDOWN_SECONDS_MAX = DAY // SECOND
"""No destination is left alone for longer than a day, whatever it asks for."""

COOLDOWN_SECONDS_DEFAULT = 1.0
"""How long a destination is left alone that refused for now and did not say for how long."""


class State(IntEnum):
    """What came of an attempt. The numbers are in the record."""

    ANSWERED = 1
    FAILED = 2
    UNKNOWN = 3


class Why(IntEnum):
    """Why there is no answer. The numbers are in the record; never give one a new meaning."""

    NONE = 0
    NO_CONNECTION = 1
    PROVIDER_REFUSED = 2
    NOT_AN_ANSWER = 3
    SLOW = 4
    BROKEN_OFF = 5
    GATEWAY_GAVE_UP = 6
    STOPPED = 7
    REPLY_TOO_LARGE = 8
    REDIRECTED = 9
    OUR_ERROR = 10
    UNREADABLE = 11
    WRONG_ADDRESS = 12
    NOT_BEGUN = 13


WHY_TEXT: Mapping[Why, str] = {
    Why.NONE: "",
    Why.NO_CONNECTION: "No connection could be made, so nothing was sent.",
    Why.PROVIDER_REFUSED: "The model's server refused it.",
    Why.NOT_AN_ANSWER: "The model's server replied, but not with an answer to what was asked.",
    Why.SLOW: "No reply came within the limit.",
    Why.BROKEN_OFF: "The connection broke off before a whole reply came.",
    Why.GATEWAY_GAVE_UP: "A gateway in between gave up waiting for the model.",
    Why.STOPPED: "This server stopped before a reply came.",
    Why.REPLY_TOO_LARGE: "The reply was larger than the limit.",
    Why.REDIRECTED: "The model's server pointed elsewhere; redirects are never followed.",
    Why.OUR_ERROR: "Something went wrong on our side in the middle of the call.",
    Why.UNREADABLE: "The reply came compressed, and could not be unpacked whole.",
    Why.WRONG_ADDRESS: "The destination's name leads to an address inside some network, so nothing was sent.",
    Why.NOT_BEGUN: "The record could not be written for sure at that moment, so nothing was sent.",
}


class Reply(msgspec.Struct, frozen=True):
    """A complete reply: status, the body without its Content-Encoding, and the few headers that are kept.

    `retry_after` and `retry_after_ms` hold every header of that name, as they came. `whole` is False when nothing
    but the end of the connection says that the body ended. `cuts`: of a stream, the bytes in each chunk it came in.
    """

    status: int
    body: bytes
    content_type: str = ""
    provider_id: str = ""
    retry_after: tuple[str, ...] = ()
    retry_after_ms: tuple[str, ...] = ()
    whole: bool = True
    cuts: tuple[int, ...] = ()


class NotSent(msgspec.Struct, frozen=True):
    """Not one byte of the body was written."""

    why: Why = Why.NO_CONNECTION


class Lost(msgspec.Struct, frozen=True):
    """It was sent, or may have been, and no complete reply came."""

    why: Why = Why.BROKEN_OFF


Came = Reply | NotSent | Lost
"""What a model hands back for one sending."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of one attempt. `cost` is in billionths of a dollar; None is unknown, never 0.

    `paid`: refused in a reply that was paid for. `cool_seconds`: how long the destination asked to be left alone.
    `cut_short`: an answer that stopped at a limit of the model's before it had finished; it never counts as a full one.
    """

    state: State
    why: Why = Why.NONE
    reply: Reply | None = None
    paid: bool = False
    answered_model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: int | None = None
    cool_seconds: float | None = None
    cut_short: bool = False


class Price(msgspec.Struct, frozen=True):
    """Billionths of a dollar for a million tokens in and out; None: not known."""

    input: int | None = None
    output: int | None = None


NO_PRICE = Price()

_COST_MAX = 1_000_000 * 10**9
"""A call that costs a million dollars is a mistake in a price or in a reply."""


REFUSED_FOR_NOW = frozenset({429, 503, 529})
"""Statuses that put the destination into a cooldown."""

_GATEWAY_GAVE_UP = frozenset({408, 499, 502, 504, 520, 524})
"""Somebody in the middle stopped waiting: the model may have done the work. 499, 520 and 524: nginx and Cloudflare."""

_REFUSED_5XX = frozenset({500, 501, 503, 505, 506, 507, 508, 510, 511, 521, 522, 523, 525, 526, 529})
"""The provider's own word that there is no answer, or a gateway's that it never reached the provider (521 to 526)."""


def read(request: Request, came: Came, now: int, price: Price = NO_PRICE) -> Outcome:
    """Read what came back as an outcome. `now` is for Retry-After dates, `price` for replies that name no cost. Never
    raises.
    """
    if isinstance(came, NotSent):
        return Outcome(State.FAILED, came.why)
    if isinstance(came, Lost):
        return Outcome(State.UNKNOWN, came.why)
    status = came.status
    if 200 <= status < 300:
        return _read_success(request, came, price)
    if status in _GATEWAY_GAVE_UP:
        return Outcome(State.UNKNOWN, Why.GATEWAY_GAVE_UP, came)
    if 300 <= status < 400:
        return Outcome(State.FAILED, Why.REDIRECTED, came)
    if 400 <= status < 500 or status in _REFUSED_5XX:
        cool = cooldown(came, now) if status in REFUSED_FOR_NOW else None
        return Outcome(State.FAILED, Why.PROVIDER_REFUSED, came, cool_seconds=cool)
    return Outcome(State.UNKNOWN, Why.GATEWAY_GAVE_UP, came)


def following(before: State | None, state: State) -> int | None:
    """The number of an outcome in `state`, by what is on record of its sending; None: it adds nothing to that.

    Only a late answer follows, on *unknown*. Any other that comes again was written by a COMMIT that said it failed.
    """
    if before is None:
        return 1
    return 2 if before is State.UNKNOWN and state is State.ANSWERED else None


def cooldown(reply: Reply, now: int) -> float:
    """Seconds to leave a destination alone: the longest it named, at most a day; a second when it named none.

    `retry-after-ms` is what System One's SDKs read too; Retry-After: RFC 9110 §10.2.3, seconds or a date.
    """
    named = [_seconds(text, 1000) for text in reply.retry_after_ms]
    for text in reply.retry_after:
        moment = None if text.strip().replace(".", "", 1).isdigit() else from_http_date(text)
        named.append(_seconds(text, 1) if moment is None else (moment - now) / SECOND)
    longest = max((seconds for seconds in named if seconds > 0), default=COOLDOWN_SECONDS_DEFAULT)
    return min(longest, float(COOLDOWN_SECONDS_MAX))


def cooling_place(destination: Destination, secret: str) -> int:
    """What a cooldown holds for, an origin (scheme, host, port) and one key, as 64 bits of a hash."""
    url = urlsplit(destination.url)
    return fingerprint(sha256(f"{url.scheme}://{url.netloc}\0{secret}".encode("utf-8", "surrogatepass")).digest())


def _seconds(text: str, divisor: int) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(value) else value / divisor


def _read_success(request: Request, reply: Reply, price: Price) -> Outcome:
    question = asked(request)
    if is_stream(reply.content_type) and wants_stream(question):
        return _read_stream(request, reply, price)
    said = loads(reply.body)
    if not _is_answer(request.destination, question, said):
        if not reply.whole:
            return Outcome(State.UNKNOWN, Why.BROKEN_OFF, reply)
        return Outcome(State.FAILED, Why.NOT_AN_ANSWER, reply, paid=not request.destination.is_local)
    return _answered(request, reply, [cast("dict[str, object]", said)] if isinstance(said, dict) else [], price)


def _read_stream(request: Request, reply: Reply, price: Price) -> Outcome:
    """A stream is an answer when its own end is there; in a format that has none we know, its transport's must be."""
    heard = hear(reply.body)
    if heard.failed:
        return Outcome(State.FAILED, Why.PROVIDER_REFUSED, reply, paid=True)
    if not (reply.whole if heard.ended is None else heard.ended):
        return Outcome(State.UNKNOWN, Why.BROKEN_OFF, reply)
    if not heard.events:
        return Outcome(State.FAILED, Why.NOT_AN_ANSWER, reply, paid=True)
    return _answered(request, reply, heard.objects, price)


def _answered(request: Request, reply: Reply, objects: Iterable[dict[str, object]], price: Price) -> Outcome:
    """What an answer says of itself; in a stream the last word counts, for each number alone."""
    model, numbers, cut_short = None, dict[str, object](), False
    for said in objects:
        named, usage = said.get("model"), said.get("usage")
        model = named if isinstance(named, str) else model
        if isinstance(usage, dict):
            counted = cast("dict[str, object]", usage)
            numbers |= {name: value for name, value in counted.items() if value is not None}
        cut_short = cut_short or _is_cut_short(said)
    # Chat completions have other names for the same two.
    tokens_in = _count(numbers.get("input_tokens", numbers.get("prompt_tokens")))
    tokens_out = _count(numbers.get("output_tokens", numbers.get("completion_tokens")))
    paid = _billionths(numbers.get("cost"))
    return Outcome(
        State.ANSWERED,
        reply=reply,
        answered_model=model,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=0 if request.destination.is_local else cost(price, tokens_in, tokens_out) if paid is None else paid,
        cut_short=cut_short,
    )


def cost(price: Price, tokens_in: int | None, tokens_out: int | None) -> int | None:
    """What tokens cost, in billionths of a dollar, rounded to the nearest; None where a price or a count is missing."""
    if price.input is None and price.output is None:
        return None
    parts: list[int] = []
    for each, tokens in ((price.input, tokens_in), (price.output, tokens_out)):
        if each == 0 or tokens == 0:
            continue
        if each is None or tokens is None:
            return None
        parts.append(each * tokens)
    total = (sum(parts) + 500_000) // 1_000_000
    return total if total < _COST_MAX else None


_LIMITS = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
"""Why a model stopped before it had finished: OpenAI's chat completions; Anthropic's messages."""


def _is_cut_short(said: dict[str, object]) -> bool:
    """Did the model stop at a limit? `incomplete` is the Responses API's word for it."""
    choices = said.get("choices")
    reasons = [said.get("stop_reason")]
    for choice in cast("list[object]", choices) if isinstance(choices, list) else []:
        reasons.append(cast("dict[str, object]", choice).get("finish_reason") if isinstance(choice, dict) else None)
    return said.get("status") == "incomplete" or any(isinstance(why, str) and why in _LIMITS for why in reasons)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _billionths(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _COST_MAX // 10**9:
        return None
    return round(value * 1_000_000_000)


def _is_answer(place: Destination, question: object, said: object) -> bool:
    reader = READERS.get(place.name)
    if isinstance(said, dict):
        answer = cast("dict[str, object]", said)
        return not answer.get("error") if reader is None else reader(question, answer)
    # An API that nothing is known of may say anything that is JSON.
    return reader is None and said is not None


def _models(asked: object, said: dict[str, object]) -> bool:
    """System One lists models under `models`, OpenAI's API and those like it under `data`."""
    return isinstance(said.get("models"), list) or isinstance(said.get("data"), list)


def _chat(asked: object, said: dict[str, object]) -> bool:
    """Is there a message? (OpenAI's chat completions.)"""
    choices = said.get("choices")
    return isinstance(choices, list) and bool(cast("list[object]", choices)) and not said.get("error")


def _system_one(asked: object, said: dict[str, object]) -> bool:
    """Is every question that was asked answered, with its own type and numbers in range? (System One 0.2.0.)"""
    answers = said.get("answers")
    if not isinstance(answers, dict) or not answers or said.get("error"):
        return False
    questions = cast("dict[str, object]", asked).get("questions") if isinstance(asked, dict) else None
    if not isinstance(questions, dict):
        # What was asked cannot be read here, though the model could: an answer is then whatever it calls one.
        return True
    given = cast("dict[str, object]", answers)
    return all(_answers(question, given.get(name)) for name, question in cast("dict[str, object]", questions).items())


def _answers(question: object, answer: object) -> bool:
    if not isinstance(answer, dict) or not isinstance(question, dict):
        return False
    asked, said = cast("dict[str, object]", question), cast("dict[str, object]", answer)
    kind, criteria = asked.get("type"), asked.get("criteria")
    if isinstance(kind, str) and said.get("type") != kind:
        return False
    if kind == "noul":
        return within(said.get("noul"), 1)
    if kind == "choice":
        chosen = said.get("choice")
        offered = not isinstance(criteria, dict) or chosen in tuple(cast("dict[str, object]", criteria))
        return isinstance(chosen, str) and offered and _probabilities(said.get("probabilities"))
    if kind == "score":
        top = len(cast("list[object]", criteria)) - 1 if isinstance(criteria, list) else math.inf
        return within(said.get("score"), top) and _probabilities(said.get("probabilities"))
    return True


def _probabilities(value: object) -> bool:
    """Absent is allowed; there, it is a map of numbers from 0 to 1. They need not add up (two decimals are usual)."""
    return value is None or (
        isinstance(value, dict) and all(within(number, 1) for number in cast("dict[str, object]", value).values())
    )


def _decisions(asked: object, said: dict[str, object]) -> bool:
    return (decided if asked_in_a_list(asked) else _system_one)(asked, said)


READERS = {"systemone": _system_one, "models": _models, "chat": _chat, "decisions": _decisions}
"""By the destination's name: does this reply answer what was asked? Any other name: whatever is JSON and no error."""
