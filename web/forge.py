"""How often the code was taken from its forge: clones of its repository, pulls of its image.

It goes out by the house's one HTTP client, at most once an hour and only when somebody looks, and no page waits for it.
What must never be here: anything the record depends on.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Self, TypeVar

import msgspec

from archive.attempts import Reply
from archive.doors import Model
from archive.messages import Key
from archive.request import Destination, Request

EVERY_SECONDS = 3600.0
"""The forge is asked no oftener, whatever it replied."""


_Count = Annotated[int, msgspec.Meta(ge=0)]

T = TypeVar("T")


class Traffic(msgspec.Struct, frozen=True):
    """`clones` in the last 14 days, `pulls` ever. None: not told."""

    clones: int | None = None
    pulls: int | None = None


class _Clones(msgspec.Struct):
    """GitHub's `/repos/OWNER/NAME/traffic/clones`: docs.github.com/rest/metrics/traffic."""

    count: _Count


class _Image(msgspec.Struct):
    """Docker Hub's `/v2/repositories/OWNER/NAME`: docs.docker.com/reference/api/hub."""

    pull_count: _Count


class Forge:
    """The forge at one address. Use as `async with Forge(...) as forge`."""

    def __init__(self, model: Model, url: str, key: Key, monotonic: Callable[[], float]) -> None:
        """`url`: what the forge's API has of the code, as `https://api.github.com/repos/OWNER/NAME`."""
        self._model = model
        self._url = url.rstrip("/")
        self._key = key
        self._monotonic = monotonic
        self._told = Traffic()
        self._asked_at: float | None = None
        self._asking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def traffic(self) -> Traffic:
        """What the forge told last; has it asked again when that is an hour old."""
        now = self._monotonic()
        if self._asked_at is None or now - self._asked_at >= EVERY_SECONDS:
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask(), name="forge")
        return self._told

    async def settled(self) -> None:
        """Wait until nothing is being asked."""
        if self._asking is not None:
            await asyncio.wait([self._asking])

    async def _ask(self) -> None:
        clones = await self._get("/traffic/clones", _Clones)
        image = await self._get("", _Image)
        if clones or image:
            self._told = Traffic(clones and clones.count, image and image.pull_count)

    async def _get(self, path: str, shape: type[T]) -> T | None:
        came = await self._model.answer(Request(Destination("forge", "GET", self._url + path), b""), self._key)
        if not isinstance(came, Reply) or came.status != 200:
            return None
        try:
            return msgspec.json.decode(came.body, type=shape)
        except (msgspec.DecodeError, ValueError):
            return None
