"""When words are erased, what the site holds in memory for its pages is let go of, whether or not a page is open.

What must never be here: what is held.
"""

import asyncio
from collections.abc import Callable

from archive.doors import Door
from archive.live import Forgotten, Place


class Forgetting:
    """Listens from the first time that there may be something to let go of."""

    def __init__(self, door: Door, *forget: Callable[[], None]) -> None:
        self._door = door
        self._forget = forget
        self._listening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """From now on something may be held. The listener ends with the record."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="forgetting")

    async def _listen(self) -> None:
        async with self._door.watch(Place("/")) as notices:
            async for notice in notices:
                if isinstance(notice, Forgotten):
                    for forget in self._forget:
                        forget()
