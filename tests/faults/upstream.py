"""The model of a simulated run: what is asked of it, and what it says.

What must never be here: when it says it.
"""

import asyncio
import random

from archive.attempts import Came, Lost, NotSent, Reply
from archive.messages import Key
from archive.request import Request
from tests.fakes import answer, body
from tests.faults.promises import Book

PEOPLE = ("ann of aachen", "bob of berlin", "cyd of calais", "dan of dublin", "eve of essen")
WORDS = {body(words): words for words in PEOPLE}
"""Long enough to be looked for in files: shorter words are erased only where they are all of a text."""
KEYS = {words: "ab"[number % 2] for number, words in enumerate(WORDS.values())}


def reply_number(number: int) -> str:
    """What is in each reply, and in no other."""
    return f"reply number {number:05}"


class SimulatedModel:
    """Says what the run decides, when it decides."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def answer(self, request: Request, key: Key) -> Came:
        came: asyncio.Future[Came] = asyncio.get_running_loop().create_future()
        self._book.sent(WORDS[request.body], key.secret, came)
        return await came


def some_reply(dice: random.Random, words: str, number: int) -> Came:
    """What comes back for words; half the time it says them again."""
    said = reply_number(number) + (f" to {words}" if dice.random() < 0.5 else "")
    mark = b',"id":"%b"}' % said.encode()
    return dice.choice(
        (
            *[Reply(200, answer()[:-1] + mark, "application/json")] * 6,
            Reply(400, b'{"error":"no"' + mark),
            Reply(200, b'{"error":"paid"' + mark),
            Reply(429, b"{}", retry_after=(dice.choice(("3", "20", "never", "-1")),)),
            Reply(503, b"{}", retry_after_ms=("1500",)),
            Reply(502, b"gateway"),
            Lost(),
            NotSent(),
        )
    )
