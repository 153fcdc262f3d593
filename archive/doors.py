"""The two doors of the house, and the clock: outsiders hold a Door, whoever is asked stands behind a Model."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

import msgspec

from archive.attempts import NO_PRICE, Came, Price
from archive.live import Notice, Place
from archive.messages import NO_KEY, Key, Message
from archive.request import Request

R = TypeVar("R")


class Door(Protocol):
    """The way in: one actor stands behind it, here or over a wire."""

    async def send(self, message: Message[R]) -> R:
        """Have `message` done and hand back its reply. Raises ArchiveError for all that can be refused or fail."""
        ...

    def watch(self, place: Place) -> AbstractAsyncContextManager[AsyncIterator[Notice]]:
        """Hear the notices for a listener at `place`, from now until left."""
        ...


class Model(Protocol):
    """The way out: something that answers requests."""

    async def answer(self, request: Request, key: Key) -> Came:
        """Send once and hand back what came. Never retries, never raises for what the other side does."""
        ...


class Upstream(msgspec.Struct, frozen=True):
    """What the actor knows of the provider behind destinations: who sends, with which key, at which price, how much.

    `name` is whose day's calls and whose calls at once are counted together. `key` empty: each asker's own goes up.
    A limit that is None is the house's own; `day_calls_max` 0 means none.
    """

    model: Model
    name: str = ""
    key: Key = NO_KEY
    price: Price = NO_PRICE
    day_calls_max: int | None = None
    calls_max: int | None = None
    call_seconds_max: float | None = None


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, as the actor is given it."""

    def now(self) -> int:
        """The moment, in microseconds since 1970, UTC. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; for measuring and for waiting."""
        ...

    def later(self, seconds: float, then: Callable[[], None]) -> Timer:
        """Call `then` once, `seconds` from now, unless cancelled first."""
        ...
