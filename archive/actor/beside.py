"""What is done outside of the transaction that others share: before it, alone, or beside it, on its own connection.

What must never be here: what is done.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable

from archive.actor.mailbox import Letter
from archive.errors import ArchiveError, RecordClosed

log = logging.getLogger("askonce")


class Beside:
    """Work that has its own reply, and the tasks of what goes on beside the actor."""

    def __init__(self, ended: Callable[[Letter, object], None]) -> None:
        """`ended` is told what each letter came to, before its asker is."""
        self._ended = ended
        self._tasks: set[asyncio.Task[None]] = set()

    async def work(self, letter: Letter, work: Awaitable[object]) -> None:
        """Wait for the work, and answer its letter."""
        try:
            said = await work
        except ArchiveError as refused:
            said = refused
        except sqlite3.Error as error:
            log.error("%s could not be done (%s)", type(letter.message).__name__, type(error).__name__)
            said = RecordClosed("The record could not be read or written at this moment.")
        except Exception as error:
            # A bug in here fails its own asker, who would wait for ever, and not the process. No text: it may quote.
            log.exception("%s failed: %s", type(letter.message).__name__, type(error).__name__, exc_info=False)
            said = ArchiveError("Something went wrong on our side.")
        self._ended(letter, said)
        letter.answer(said)

    def begin(self, letter: Letter, work: Awaitable[object]) -> None:
        """Let the work go on beside the others."""
        task = asyncio.create_task(self.work(letter, work), name=type(letter.message).__name__)
        # The loop itself keeps only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def quiet(self) -> None:
        """Wait until none of it goes on."""
        if self._tasks:
            await asyncio.wait(self._tasks)
