"""Which answer somebody wants, what a page holds still, and what follows from it. Plain rules, no record, no clock.

The table of picks is the heart of the promise: only `Send` ever costs anything, and only `Latest` on a request that
never had an answer, and `Fresh`, lead to it.
"""

import re
from typing import Annotated

import msgspec

from archive.attempts import PAID_REFUSAL_SECONDS, State
from archive.errors import ArchiveError, CallFailed, CallUnknown, Erased, Invalid, NotKept, Withdrawn
from archive.when import SECOND, shown


class Version(msgspec.Struct, frozen=True, tag=True):
    """Answer number `n` and no other; never sends."""

    n: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class Latest(msgspec.Struct, frozen=True, tag=True):
    """The newest kept answer; else the call on the wire; else, if there never was an answer, a call."""


class KeptOnly(msgspec.Struct, frozen=True, tag=True):
    """The newest kept answer or nothing; never sends."""


class Fresh(msgspec.Struct, frozen=True, tag=True):
    """Joins the call on the wire, else sends; the answer becomes the newest version.

    `sure`: also when an earlier sending of it is unknown and may be paid for twice. That takes a person's word.
    """

    sure: bool = True


Pick = Version | Latest | KeptOnly | Fresh


class Standing(msgspec.Struct, frozen=True):
    """How one version stands. `gone_at` and `why` speak of a withdrawal or an erasure."""

    n: int
    withdrawn: bool = False
    erased: bool = False
    gone_at: int | None = None
    why: str = ""

    @property
    def usable(self) -> bool:
        return not self.withdrawn and not self.erased


class Last(msgspec.Struct, frozen=True):
    """The last attempt at a request and what came of it (`state` None: still on the wire)."""

    dispatch: int
    sent_at: int
    state: State | None = None
    ended_at: int = 0
    paid: bool = False
    failure: CallFailed | None = None


class Known(msgspec.Struct, frozen=True):
    """What the record knows of one request, as far as a pick needs it.

    `total`: versions ever kept. `newest`: the newest usable one. `named`: the one a Version(n) asks for.
    `unknown`, `unknown_at`: the youngest attempt that is still unknown, if no answer was kept since, and when it was
    sent.
    """

    total: int = 0
    newest: int | None = None
    named: Standing | None = None
    last: Last | None = None
    unknown_at: int | None = None
    unknown: int | None = None


class Serve(msgspec.Struct, frozen=True):
    """Hand out version `n`; nothing is sent."""

    n: int


class Join(msgspec.Struct, frozen=True):
    """Wait with the others for the call that is on the wire."""

    dispatch: int


class Send(msgspec.Struct, frozen=True):
    """Nothing on record stands in the way of a call."""


def decide(pick: Pick, known: Known, now: int) -> Serve | Join | Send:
    """What a pick leads to. Raises NotKept, Withdrawn, Erased, CallUnknown or CallFailed where it leads nowhere."""
    match pick:
        case Version(n):
            return _version(n, known)
        case KeptOnly():
            if known.newest is None:
                raise NotKept("This is not on record, and only a kept answer was asked for. Nothing was sent.")
            return Serve(known.newest)
        case Latest():
            return Serve(known.newest) if known.newest is not None else _first(known, now)
        case Fresh(sure):
            if known.last is not None and known.last.state is None:
                return Join(known.last.dispatch)
            if known.unknown_at is not None and not sure:
                raise unknown(known.unknown_at, waited=False)
            return Send()


def _version(n: int, known: Known) -> Serve:
    standing = known.named
    if standing is None:
        there = "none yet" if known.total == 0 else f"{known.total}, numbered from 1"
        raise NotKept(f"Answer {n} is not on record (there are {there}). Nothing was sent.")
    if standing.usable:
        return Serve(n)
    moment = "" if standing.gone_at is None else f" on {shown(standing.gone_at)}"
    if standing.erased:
        raise Erased(f"The words of answer {n} were erased{moment}.", at=standing.gone_at)
    why = f": {standing.why}" if standing.why else ""
    raise Withdrawn(f"Answer {n} was withdrawn{moment}{why}", at=standing.gone_at)


def _first(known: Known, now: int) -> Join | Send:
    last = known.last
    if last is not None and last.state is None:
        return Join(last.dispatch)
    if known.total:
        raise Withdrawn("Every answer to this was withdrawn or erased. Only asking afresh sends it again.")
    if known.unknown_at is not None:
        raise unknown(known.unknown_at, waited=False)
    if last is not None and last.state is State.ANSWERED:
        # Only a damaged record says so. It was paid for, and what came may be in a backup.
        raise CallUnknown(
            "This was sent and answered, and its answer is missing in the record: the record is damaged. It is not sent"
            " again by itself.",
            at=last.sent_at,
            waited=False,
        )
    refused_lately = last is not None and last.paid and now < last.ended_at + PAID_REFUSAL_SECONDS * SECOND
    if last is not None and last.failure is not None and refused_lately:
        raise last.failure
    return Send()


def unknown(sent_at: int, *, waited: bool) -> CallUnknown:
    """What is said of a request that was sent and has no confirmed reply."""
    return CallUnknown(
        f"This was sent on {shown(sent_at)} and no confirmed reply came. It may have been paid for, so it is not sent"
        " again by itself.",
        at=sent_at,
        waited=waited,
    )


def told_of(refused: ArchiveError, known: Known) -> int | None:
    """The sending that an asker is told of instead of an answer: one that is unknown, or was refused and paid for."""
    match refused:
        case CallUnknown():
            return known.unknown
        case CallFailed():
            return known.last and known.last.dispatch
        case _:
            return None


class Pins(msgspec.Struct, frozen=True):
    """What a page holds still: which call at which answer. `malformed` are the pieces that could not be read."""

    held: tuple[tuple[str, int], ...] = ()
    malformed: tuple[str, ...] = ()


EVERY = "all"
"""Stands for the call_id where ↻ is pressed on every call of a page at once; no call is named so."""

_PIN = re.compile(r"([0-9a-f]{12}):([1-9][0-9]{0,8})", re.ASCII)


def parse_pins(text: str) -> Pins:
    """Pins from `3f2a9c01be44:2,...`. Never guesses: what cannot be read, or names a call twice, is malformed."""
    held: dict[str, int] = {}
    malformed: list[str] = []
    for piece in filter(None, text.split(",")):
        match = _PIN.fullmatch(piece)
        if match is None or match[1] in held:
            malformed.append(piece)
        else:
            held[match[1]] = int(match[2])
    return Pins(tuple(held.items()), tuple(malformed))


def print_pins(pins: Pins) -> str:
    """The text `parse_pins` reads; malformed pieces are not carried on."""
    return ",".join(f"{name}:{n}" for name, n in pins.held)


def pick_next(name: str, pins: Pins, pressed: str | None, earlier: tuple[str, ...], *, sure: bool = False) -> Pick:
    """The pick for the next call of a page.

    `name` is its call_id, `pressed` the call_id ↻ was pressed on, or EVERY (`sure`: though it may be paid for twice),
    `earlier` the calls above it, in order.
    """
    held = dict(pins.held)
    if pressed in {name, EVERY}:
        return Fresh(sure)
    if name in held:
        return Version(held[name])
    for above in reversed(earlier):
        if above == pressed:
            return Latest()
        if above in held:
            return KeptOnly()
    return Latest()


def parse_pick(answer: str | None, only_if_cached: bool) -> Pick:
    """The pick an HTTP caller asks for: the value of `Archive-Answer`, and whether `only-if-cached` was said.

    Raises Invalid for a value that is neither a whole number from 1 nor `fresh`.
    """
    if answer is None:
        return KeptOnly() if only_if_cached else Latest()
    word = answer.strip().lower()
    if re.fullmatch(r"[1-9][0-9]{0,8}", word, re.ASCII):
        return Version(int(word))
    if word != "fresh":
        raise Invalid("Archive-Answer takes the number of an answer (1, 2, ...) or the word fresh.")
    if only_if_cached:
        raise Invalid("Archive-Answer: fresh sends, Cache-Control: only-if-cached never does. Leave one of them out.")
    return Fresh()
