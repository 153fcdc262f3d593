"""What handlers see, and what they hand back: the things to be done once all they wrote is on disk.

What must never be here: doing them (actor.py), or deciding for them (handlers.py).
"""

from collections import ChainMap, Counter
from dataclasses import dataclass, field

import msgspec

from archive.actor.calls import Call
from archive.actor.store import Placed
from archive.actor.unwritten import Unwritten
from archive.admin import Checked, InUse
from archive.attempts import Outcome, cooling_place
from archive.errors import ArchiveError
from archive.frames import Sending
from archive.health import Condition
from archive.live import Asked, Forgotten
from archive.messages import (
    Answered,
    Finished,
    Judgment,
    Kept,
    Key,
    Listed,
    Looked,
    Numbered,
    Remembered,
    Shown,
    SoFar,
)
from archive.naming import Asking
from archive.request import Destination, Request
from archive.tokens import Minute, Token
from archive.when import SECOND


class Cooldown(msgspec.Struct, frozen=True):
    """A destination is left alone until `ends` on the monotonic clock; `until` is the moment that is shown."""

    ends: float
    until: int
    status: int


@dataclass
class Scene:
    """What handlers of one group see and add to; the actor takes it over only after the commit."""

    now: int
    monotonic: float
    closed: bool
    stopping: bool
    on_wire: Counter[str]
    cooling: dict[int, Cooldown]
    sent: ChainMap[bytes, Minute]
    """What was sent for each address lately; what this group adds is in the first of its maps."""
    unwritten: Unwritten | None = None
    """What waits, while nothing can be written: what is let out now goes there."""
    places: dict[int, Placed] = field(default_factory=dict[int, Placed])
    """Where sendings that waited stand in the store, by the number they had."""

    def cooling_at(self, place: Destination, key: Key) -> Cooldown | None:
        """The cooldown a call would run into."""
        cooling = self.cooling.get(cooling_place(place, key.secret))
        return cooling if cooling is not None and cooling.ends > self.monotonic else None

    def heed(self, call: Call, outcome: Outcome) -> None:
        """A destination that asks to be left alone is, from now on; one that asked for longer before, for that long."""
        if outcome.cool_seconds is None or outcome.reply is None:
            return
        place = cooling_place(call.request.destination, call.key.secret)
        ends, before = self.monotonic + outcome.cool_seconds, self.cooling.get(place)
        if before is None or before.ends < ends:
            until = self.now + round(outcome.cool_seconds * SECOND)
            self.cooling[place] = Cooldown(ends, until, outcome.reply.status)


class Served(msgspec.Struct, frozen=True):
    """After the commit: hand out an answer; `newest` says whether it may be remembered as that."""

    request: Request
    answered: Answered
    newest: bool


class Joined(msgspec.Struct, frozen=True):
    """After the commit: wait with the others for a call; `judgment` numbers this asking where it was named."""

    dispatch: int
    judgment: int | None


class Unsent(msgspec.Struct, frozen=True):
    """May be let out, though the store cannot be written: as soon as the sending is in the spool."""

    sending: Sending
    call: Call


class Held(msgspec.Struct, frozen=True):
    """An outcome that waits to be written: those who wait for it get it all the same, marked."""

    finished: Finished


class Ended(msgspec.Struct, frozen=True):
    """After the commit: the call has this outcome on record; `kept` if it became an answer."""

    call: Call
    outcome: Outcome
    kept: Kept | None


class Renewed(msgspec.Struct, frozen=True):
    """After the commit: these requests have another newest answer, or none; then the reply."""

    requests: tuple[Request, ...]
    reply: object


class Issued(msgspec.Struct, frozen=True):
    """After the commit: the token whose secret has this hash is so."""

    hash: bytes
    token: Token


_Told = (
    Looked
    | Shown
    | Remembered
    | Listed
    | SoFar
    | Checked
    | Condition
    | Judgment
    | tuple[int, ...]
    | tuple[Kept, ...]
    | tuple[Asking, ...]
    | tuple[Numbered, ...]
    | tuple[InUse, ...]
)
"""Replies that are ready as they are."""

Effect = (
    Served | Joined | Call | Unsent | Held | Ended | Renewed | Issued | _Told | Asked | Forgotten | ArchiveError | None
)
