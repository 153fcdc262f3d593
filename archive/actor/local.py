"""The embedded default model behind the Model door: no key, no network, and never the loop's time.

What must never be here: how it answers (mini/).
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from archive.actor.mini import Mini
from archive.attempts import Came, Reply
from archive.messages import Key
from archive.request import Destination, Request


class ModelUnusable(Exception):
    """The embedded model cannot be used; the text says why."""


class LocalModel:
    """Answers in one worker thread, one request after another. Use as `async with LocalModel() as model`."""

    async def __aenter__(self) -> Self:
        """Load it. Raises ModelUnusable when the weights are not the ones it was made for."""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mini")
        try:
            self._mini = await asyncio.get_running_loop().run_in_executor(self._worker, Mini.load)
        except BaseException as error:
            self._worker.shutdown(wait=False)
            if isinstance(error, RuntimeError):
                raise ModelUnusable(str(error)) from error
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    def destination(self, name: str, method: str) -> Destination:
        """Where its requests go: another version of weights or read-outs is another place."""
        return Destination(name, method, f"local:mini@{self._mini.name}")

    async def answer(self, request: Request, key: Key) -> Came:
        """See Model.answer. The key is of no use here."""
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._worker, self._mini.reply, request.destination.method, request.body)
        status, body = await work
        return Reply(status, body, "application/json")
