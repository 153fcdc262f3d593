"""All that may be said to the actor. Messages are verbs, reports participles; `Message[R]` names what comes back.

What must never be here: what a message does. That is its handler, in archive/actor/actor.py.
"""

from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from archive.attempts import Outcome
from archive.picks import Latest, Pick
from archive.request import Request

R = TypeVar("R", covariant=True)


class Message(msgspec.Struct, Generic[R], frozen=True):
    """Something to be done by the actor, answered with an R."""


class Key(msgspec.Struct, frozen=True):
    """A provider's key on its way to the model. Never stored, and never printed by accident."""

    secret: str = ""

    def __repr__(self) -> str:
        return "Key(…)" if self.secret else "Key()"


NO_KEY = Key()


class Sent(StrEnum):
    """How this asker got the answer: by a call of its own, by somebody else's, or from the record."""

    NOW = "now"
    SHARED = "shared"
    NOT_SENT = "no"


class Kept(msgspec.Struct, frozen=True):
    """One answer on record: version `n` of `total`, the reply's exact bytes, and what is known of the call.

    `cost` is in billionths of a dollar (None: unknown), `ms` how long the call took, `kept_at` a moment.
    `recorded` is False while the record cannot be written: the answer is real, and has no number yet.
    """

    call_id: str
    n: int
    total: int
    status: int
    body: bytes
    content_type: str
    provider_id: str
    kept_at: int
    ms: int
    answered_model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: int | None = None
    recorded: bool = True


class Answered(msgspec.Struct, frozen=True):
    """What an asker gets: a kept answer, and how it came."""

    kept: Kept
    sent: Sent


class Ask(Message[Answered], frozen=True):
    """Get an answer to `request` by the rules of `pick`. `key` is for the model, if a call is made."""

    request: Request
    pick: Pick = Latest()
    key: Key = NO_KEY


class Finished(Message[None], frozen=True):
    """A call ended, or its limit ran out (`Outcome.state` unknown) and it is still listened to."""

    dispatch: int
    outcome: Outcome
    ms: int


class Count(Message[None], frozen=True):
    """Write the delivery counts that have added up in memory."""


class Stop(Message[None], frozen=True):
    """Take nothing more, give the calls on the wire a last limit, close the record."""
