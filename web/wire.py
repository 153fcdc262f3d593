"""/wire: the archive's door for programs of the owner of this machine, over one WebSocket.

Who may come is who can read the store's lock file, where the server writes a new secret at each start.
What must never be here: what a message does, and how frames look (archive/wire.py).
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from hmac import compare_digest
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from archive.errors import ArchiveError, Forbidden, Invalid
from archive.live import Place
from archive.wire import PROTOCOL, Do, Done, Here, Leave, Noticed, Outside, from_client, message_in, packed, refused
from web.errors import internal
from web.live import protocol_of
from web.system_one import Api, by_name, check_place

UNDER_WAY_MAX = 1_000
"""Messages of one socket that are worked at a time; further ones stay unread, which slows the sender down."""

ROOM_BYTES = 64 * 1024
"""What a frame may hold beside a body."""


class WireRoute:
    """The /wire route, as plain ASGI."""

    def __init__(self, api: Api, here: Here, secret: str) -> None:
        """`secret`: what a client must show; empty: nobody may come."""
        self._api = api
        self._here = packed(here)
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client until it leaves or the server stops."""
        await receive()  # websocket.connect
        started = time.perf_counter()
        try:
            self._check(scope)
        except ArchiveError:
            # Before it is accepted a close is a plain 403.
            await send({"type": "websocket.close"})
            self._api.log("/wire", 403, time.perf_counter() - started)
            return
        await send({"type": "websocket.accept", "subprotocol": PROTOCOL})
        # Only now, and for this connection alone: a page's frames stay small.
        protocol_of(send).conn.max_message_size = self._api.body_bytes_max + ROOM_BYTES
        line = Line(self._api, send)
        try:
            await line.say(self._here)
            await line.listen(receive)
        except OSError:
            pass  # the client is gone: uvicorn's ClientDisconnected is one
        finally:
            await line.end()

    def _check(self, scope: Scope) -> None:
        """Raises Forbidden for web pages, for whoever lacks the secret, and for another version of the protocol."""
        headers = by_name(scope["headers"])
        check_place(headers, self._api.hosts, self._api.origins)
        _, _, shown = headers.get(b"authorization", b"").partition(b" ")
        if not self._secret or not compare_digest(shown, self._secret.encode()):
            raise Forbidden("The secret in the store's lock file was not shown.")
        if b"origin" in headers or PROTOCOL not in scope["subprotocols"]:
            raise Forbidden(f"Only programs that speak {PROTOCOL} may come here, and no web page.")


class Line:
    """One client's end: what it waits for, by number."""

    def __init__(self, api: Api, send: Send) -> None:
        self._api = api
        self._send = send
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(UNDER_WAY_MAX)

    async def say(self, frame: bytes) -> None:
        """Send one frame. Raises OSError when the client is gone."""
        await self._send({"type": "websocket.send", "bytes": frame})

    async def listen(self, receive: Receive) -> None:
        """Take frames until the client leaves; whatever is not one closes the socket (1008)."""
        while True:
            await self._room.acquire()
            message = await receive()
            if message["type"] != "websocket.receive":
                return
            try:
                self._hear(message.get("bytes") or b"")
            except (msgspec.DecodeError, ValueError, RecursionError):
                await self._send({"type": "websocket.close", "code": 1008})
                return

    def _hear(self, frame: bytes) -> None:
        """Raises ValueError for a frame that is none, or a number that is still under way."""
        said = from_client.decode(frame)
        if isinstance(said, Leave):
            self._room.release()
            task = self._tasks.get(said.number)
            if task is not None:
                task.cancel()
            return
        if said.number in self._tasks:
            raise ValueError("this number is under way")
        work = self._do(said) if isinstance(said, Do) else self._watch(said.number, said.place)
        task = self._tasks[said.number] = asyncio.create_task(self._guard(said.number, work), name="wire")
        task.add_done_callback(lambda _: self._over(said.number))

    def _over(self, number: int) -> None:
        del self._tasks[number]
        self._room.release()

    async def _guard(self, number: int, work: Coroutine[Any, Any, None]) -> None:
        with suppress(OSError):
            try:
                await work
            except ArchiveError as error:
                await self.say(packed(refused(number, error)))
            except OSError:
                raise
            except Exception as error:
                await self.say(packed(refused(number, internal(error))))

    async def _do(self, said: Do) -> None:
        started = time.perf_counter()
        try:
            message: Outside = message_in.decode(said.message)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Invalid(f"This server does not take that message: {error}") from None
        reply = await self._api.door.send(message)
        await self.say(packed(Done(said.number, msgspec.Raw(packed(reply)))))
        self._api.log(f"/wire {type(message).__name__}", 200, time.perf_counter() - started)

    async def _watch(self, number: int, place: Place) -> None:
        async with self._api.door.watch(place) as notices:
            await self.say(packed(Done(number, msgspec.Raw(packed(None)))))
            async for notice in notices:
                await self.say(packed(Noticed(number, notice)))

    async def end(self) -> None:
        """The client is gone: nothing more is waited for. Calls on the wire go on without it."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))
