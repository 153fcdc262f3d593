"""What is done outside of the transaction that others share: before it, alone, or beside it, on its own connection.

What must never be here: what is done.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Collection
from typing import Any, cast

from archive.actor.mailbox import Letter
from archive.actor.store import Emptied, Store
from archive.admin import Apart, CheckFile, Erase, Rebuilt
from archive.errors import ArchiveError, RecordClosed

log = logging.getLogger("askonce")


class Beside:
    """Work that has its own reply, and the tasks of what goes on beside the actor."""

    def __init__(
        self,
        checked: Callable[[tuple[str, ...] | None], None],
        mended: Callable[[], None],
        forget: Callable[[Collection[int]], None],
    ) -> None:
        """`checked` is told what a check of the file that nobody asked for has found; None: it came to no end.

        `mended` is told that the look-ups were worked out anew.

        `forget` is called when words are erased: before, with nothing, so that nothing is handed out past the record
        while they go, and after it with the numbers of the requests whose words are gone.
        """
        self._checked = checked
        self._mended = mended
        self._forget = forget
        self._tasks: set[asyncio.Task[None]] = set()

    async def alone(self, letter: Letter, store: Store, now: int, *, held: bool) -> None:
        """Do what is done alone, and answer its letter. `held`: there are outcomes that wait to be written."""
        message = cast("Apart[Any]", letter.message)
        if not isinstance(message, Erase):
            await self._work(letter, store.apart(message, now))
            return
        if held:
            letter.answer(RecordClosed("There are answers that wait to be written; erase when they are. See /health."))
            return
        self._forget(())
        said = await self._said(letter, store.apart(message, now))
        if not isinstance(said, Emptied):
            letter.answer(said)
            return
        self._forget(said.requests)
        # The search takes its time, and others need not wait for it.
        self.begin(letter, store.receipt(message, said))

    async def _work(self, letter: Letter, work: Awaitable[object]) -> None:
        said = await self._said(letter, work)
        if isinstance(letter.message, CheckFile) and letter.reply is None:
            self._checked(None if isinstance(said, ArchiveError) else cast("tuple[str, ...]", said))
        if isinstance(said, Rebuilt):
            self._mended()
        letter.answer(said)

    async def _said(self, letter: Letter, work: Awaitable[object]) -> object:
        try:
            return await work
        except ArchiveError as refused:
            return refused
        except sqlite3.Error as error:
            log.error("%s could not be done (%s)", type(letter.message).__name__, type(error).__name__)
            return RecordClosed("The record could not be read or written at this moment.")
        except Exception as error:
            # A bug in here fails its own asker, who would wait for ever, and not the process. No text: it may quote.
            log.exception("%s failed: %s", type(letter.message).__name__, type(error).__name__, exc_info=False)
            return ArchiveError("Something went wrong on our side.")

    def begin(self, letter: Letter, work: Awaitable[object]) -> None:
        """Let the work go on beside the others."""
        task = asyncio.create_task(self._work(letter, work), name=type(letter.message).__name__)
        # The loop itself keeps only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def quiet(self) -> None:
        """Wait until none of it goes on."""
        if self._tasks:
            await asyncio.wait(self._tasks)
