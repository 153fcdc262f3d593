"""What waits for the actor: letters in the order they came, bounded.

What must never be here: what a message means.
"""

import asyncio
from collections import deque
from typing import Any, NamedTuple

from archive.errors import ArchiveError, Busy
from archive.messages import Message


class Letter(NamedTuple):
    """A message and where its reply goes (None: nobody waits).

    A reply is a value or an ArchiveError, never set as an exception: one error may be for many askers.
    """

    message: Message[Any]
    reply: asyncio.Future[Any] | None

    def answer(self, value: object) -> None:
        """Hand over the reply, unless the asker has left."""
        if self.reply is not None and not self.reply.done():
            self.reply.set_result(value)


class Mailbox:
    """Letters for one actor. Outsiders are refused when it is full; what the house itself reports never is."""

    def __init__(self, letters_max: int) -> None:
        self._letters: deque[Letter] = deque()
        self._letters_max = letters_max
        self._something = asyncio.Event()
        self._closed: ArchiveError | None = None

    def put(self, message: Message[Any]) -> asyncio.Future[Any]:
        """Leave a message; the future of its reply. Raises Busy when there is no room."""
        if self._closed is not None:
            raise self._closed.again()
        if len(self._letters) >= self._letters_max:
            raise Busy("Too many requests are waiting here at this moment. Try again in a second.")
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._leave(Letter(message, reply))
        return reply

    def report(self, message: Message[Any]) -> None:
        """Leave what the house itself has to say. There is always room: each call on the wire ends at most twice."""
        self._leave(Letter(message, None))

    def _leave(self, letter: Letter) -> None:
        self._letters.append(letter)
        self._something.set()

    async def take(self, most: int) -> list[Letter]:
        """Wait for a letter; what lies there then, at most `most`."""
        await self._something.wait()
        group = [self._letters.popleft() for _ in range(min(most, len(self._letters)))]
        if not self._letters:
            self._something.clear()
        return group

    def close(self, reason: ArchiveError) -> None:
        """Refuse outsiders from now on, with `reason`; what waits is still taken."""
        self._closed = reason

    def __len__(self) -> int:
        return len(self._letters)
