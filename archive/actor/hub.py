"""Open pages and their bounded outboxes. Telling never waits for a page.

What must never be here: sockets, HTML. A page that falls behind loses its outbox and hears Stale once.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

from archive.live import Forgotten, Notice, Place, Stale


class Outbox:
    """What one page has not heard yet; an iterator of notices that ends when there is nobody left to tell any."""

    def __init__(self, place: Place, notices_max: int) -> None:
        self.place = place
        self._notices: deque[Notice] = deque()
        self._notices_max = notices_max
        self._something = asyncio.Event()
        self._is_over = False

    def end(self) -> None:
        """No notice follows those that are there."""
        self._is_over = True
        self._something.set()

    def put(self, notice: Notice) -> None:
        """Add a notice; when there is no room all of them make way for one Stale, and always for a Forgotten."""
        if isinstance(notice, Forgotten):
            self._notices.clear()  # they may hold what was erased, and whoever hears this reads everything again
        elif self._notices and isinstance(self._notices[-1], Forgotten):
            return
        elif len(self._notices) >= self._notices_max:
            self._notices.clear()
            notice = Stale()
        elif self._notices and isinstance(self._notices[-1], Stale):
            return  # the page will read itself again anyway
        self._notices.append(notice)
        self._something.set()

    def __aiter__(self) -> AsyncIterator[Notice]:
        return self

    async def __anext__(self) -> Notice:
        while not self._notices:
            if self._is_over:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()
        return self._notices.popleft()

    def __len__(self) -> int:
        return len(self._notices)


class Hub:
    """The pages that are open now."""

    def __init__(self, notices_max: int) -> None:
        self._notices_max = notices_max
        self._outboxes: set[Outbox] = set()

    @contextmanager
    def open(self, place: Place) -> Generator[Outbox, None, None]:
        """An outbox for one page, for as long as it is open."""
        outbox = Outbox(place, self._notices_max)
        self._outboxes.add(outbox)
        try:
            yield outbox
        finally:
            self._outboxes.discard(outbox)

    def tell(self, notice: Notice) -> None:
        """Put a notice into every outbox."""
        for outbox in self._outboxes:
            outbox.put(notice)

    def close(self) -> None:
        """Nothing is told any more: whoever listens hears the end."""
        for outbox in self._outboxes:
            outbox.end()

    def __len__(self) -> int:
        return len(self._outboxes)
