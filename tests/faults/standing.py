"""How each request stands in the book of promises, and copies of that, as backups have it.

What must never be here: what is a fault.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from archive.attempts import Came, Outcome, State


@dataclass(eq=False)
class Sending:
    """One call as the model saw it."""

    words: str
    key: str
    sent: float
    came: asyncio.Future[Came]
    stands: "Standing"
    outcome: Outcome | None = None
    overdue: bool = False
    cool_until: int = 0

    @property
    def states(self) -> tuple[int, ...]:
        """The outcomes that the record must have of it."""
        if self.outcome is None:
            return (State.UNKNOWN,) if self.overdue else ()
        if self.overdue:
            return (State.UNKNOWN, State.ANSWERED) if self.outcome.state is State.ANSWERED else (State.UNKNOWN,)
        return (self.outcome.state,)


@dataclass
class Standing:
    """What is known of one request."""

    bodies: dict[int, bytes] = field(default_factory=dict[int, bytes])
    withdrawn: set[int] = field(default_factory=set[int])
    emptied: set[int] = field(default_factory=set[int])
    """Versions whose words were erased."""
    unknown: bool = False
    paid_until: int = 0
    settled: int = 0
    """Sendings on record that earlier processes made."""
    sendings: list[Sending] = field(default_factory=list[Sending])
    """Those of this process."""

    @property
    def usable(self) -> frozenset[int]:
        return frozenset(set(self.bodies) - self.withdrawn - self.emptied)

    @property
    def newest(self) -> int:
        return max(self.usable, default=0)


class Before(NamedTuple):
    """How a request stood, and how often anything had been erased."""

    newest: int
    usable: frozenset[int]
    erasures: int


@dataclass
class Page:
    """All that an older copy of the record may bring back."""

    standings: dict[str, Standing] = field(default_factory=dict[str, Standing])
    gone: dict[int, Standing] = field(default_factory=dict[int, Standing])
    """Requests whose words were erased, by their number on record; the same words later are another."""
    day_calls: Counter[int] = field(default_factory=Counter[int])
    cooled: list[Sending] = field(default_factory=list[Sending])

    def copy(self) -> "Page":
        return Page(_copied(self.standings), _copied(self.gone), self.day_calls.copy(), self.cooled.copy())

    def erase(self, words: str, request: int | None) -> None:
        """These words are nowhere any more, and if they were a request's it matches nothing."""
        for stands in (*self.standings.values(), *self.gone.values()):
            stands.emptied |= {n for n, body in stands.bodies.items() if words.encode() in body}
        stands = self.standings.pop(words, None)
        if stands is not None and request is not None:
            self.gone[request] = stands


K = TypeVar("K")


def _copied(standings: dict[K, Standing]) -> dict[K, Standing]:
    copies: dict[K, Standing] = {}
    for key, one in standings.items():
        sets = {"withdrawn": set(one.withdrawn), "emptied": set(one.emptied)}
        copy = copies[key] = replace(one, bodies=dict(one.bodies), sendings=[], **sets)
        copy.sendings = [replace(sending, stands=copy) for sending in one.sendings]
    return copies
