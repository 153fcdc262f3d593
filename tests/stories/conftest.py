"""What several stories need: the moment at which askers have come in, and a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from archive.actor.actor import Actor
from archive.live import Changed, Notice
from tests.fakes import FakeClock


class Asked:
    """How many messages have come to an actor's door."""

    def __init__(self) -> None:
        self._come = asyncio.Semaphore(0)

    def note(self) -> None:
        self._come.release()

    async def wait(self, count: int) -> None:
        """Wait until `count` more have come. What the test lets happen after this happens after them."""
        async with asyncio.timeout(60):
            for _ in range(count):
                await self._come.acquire()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Counts who has come in at any actor of this process."""
    found, send = Asked(), Actor.send

    async def counted(self: Actor, message: Any) -> Any:
        found.note()
        return await send(self, message)

    monkeypatch.setattr(Actor, "send", counted)
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of every server this test starts in this process."""
    found = FakeClock()
    monkeypatch.setattr("web.app.SystemClock", lambda: found)
    monkeypatch.setattr("web.system_one.now", found.now)
    return found


async def ended(notices: AsyncIterator[Notice]) -> Changed:
    """Wait until a call has ended and that is on record."""
    async with asyncio.timeout(60):
        async for notice in notices:
            if isinstance(notice, Changed) and notice.state is not None:
                return notice
    raise AssertionError("notices never end")
