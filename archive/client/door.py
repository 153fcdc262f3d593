"""The Door over /wire: messages go to the server's actor, replies and the house's errors come back.

Nothing here connects again by itself: a message may have been a call that was paid for, and only whoever sent it can
say whether to ask once more. What must never be here: a rule about the record.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.typing import Subprotocol

from archive.errors import ArchiveError, Disconnected, Forbidden
from archive.live import Forgotten, Notice, Place, Stale
from archive.messages import Message
from archive.wire import (
    PROTOCOL,
    Do,
    Done,
    Here,
    Leave,
    Noticed,
    Refused,
    Watch,
    error_in,
    from_server,
    packed,
    reply_to,
)

R = TypeVar("R")

NOTICES_MAX = 1_000
"""Notices that wait to be heard; then they make way for one Stale, as everywhere in the house."""

GONE = (
    "The connection to the server ended before it replied. What it was doing goes on there: a call that was sent is"
    " kept when its reply comes."
)


@asynccontextmanager
async def connect(url: str, secret: str, *, seconds_max: float = 10.0) -> "AsyncGenerator[WireDoor, None]":
    """A Door to the server at `url` (like `http://127.0.0.1:8000`). `secret` stands in its store's lock file.

    Raises Forbidden when the server does not let us in, Disconnected when there is none or it ends later.
    """
    address = url.replace("http", "ws", 1).rstrip("/") + "/wire"
    opening = connect_socket(
        address,
        subprotocols=[Subprotocol(PROTOCOL)],
        additional_headers={"Authorization": f"Bearer {secret}"},
        compression=None,
        max_size=None,
        proxy=None,
        open_timeout=seconds_max,
    )
    try:
        socket = await opening
    except InvalidHandshake:
        raise Forbidden(
            f"The server at {url} does not let this program in: it was started anew, or is another."
        ) from None
    except (OSError, InvalidURI, TimeoutError, EOFError) as error:
        raise Disconnected(f"There is no server at {url}: {error}") from None
    async with socket:
        door = await WireDoor.greeted(socket)
        try:
            yield door
        finally:
            await door.close()


class WireDoor:
    """A Door whose actor is in another process. Made by `connect`; `here` is what the server says of itself."""

    def __init__(self, socket: ClientConnection, here: Here) -> None:
        self.here = here
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._heard: dict[int, Heard] = {}
        self._gone = False
        self._reading = asyncio.create_task(self._read(), name="wire door")

    @classmethod
    async def greeted(cls, socket: ClientConnection) -> "WireDoor":
        """Wait for the server's first word."""
        try:
            first = from_server.decode(await socket.recv(decode=False))
        except (ConnectionClosed, msgspec.DecodeError):
            raise Disconnected(GONE) from None
        if not isinstance(first, Here):
            raise Disconnected("The server did not say what it is.")
        return cls(socket, first)

    async def send(self, message: Message[R]) -> R:
        """See Door.send. Raises Disconnected when the server goes before it replied."""
        number = next(self._numbers)
        reply = await self._ask(number, Do(number, msgspec.Raw(packed(message))))
        return cast("R", reply_to(type(message)).decode(reply))

    @asynccontextmanager
    async def watch(self, place: Place) -> AsyncGenerator[AsyncIterator[Notice], None]:
        """See Door.watch. The notices end with Disconnected when the server does."""
        number = next(self._numbers)
        heard = self._heard[number] = Heard()
        try:
            await self._ask(number, Watch(number, place))
            yield heard
        finally:
            del self._heard[number]
            with suppress(ConnectionClosed):
                await self._socket.send(packed(Leave(number)))

    async def close(self) -> None:
        """Leave; whatever still waits is told so."""
        await self._socket.close()
        await self._reading

    async def _ask(self, number: int, frame: Do | Watch) -> msgspec.Raw:
        if self._gone:
            raise Disconnected(GONE)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            # When it cannot be sent the reading task finds that out too, and sets the error.
            with suppress(ConnectionClosed):
                await self._socket.send(packed(frame))
            return await future
        finally:
            del self._waiting[number]

    async def _read(self) -> None:
        try:
            async for frame in self._socket:
                self._take(from_server.decode(cast("bytes", frame)))
        except (ConnectionClosed, msgspec.DecodeError, TypeError):
            pass
        self._gone = True
        for future in self._waiting.values():
            _fail(future, Disconnected(GONE))
        for heard in self._heard.values():
            heard.end()
        await self._socket.close()

    def _take(self, said: Here | Done | Refused | Noticed) -> None:
        match said:
            case Noticed(number, notice):
                if number in self._heard:
                    self._heard[number].put(notice)
            case Done(number, reply):
                future = self._waiting.get(number)
                if future is not None and not future.done():
                    future.set_result(reply)
            case Refused(number):
                _fail(self._waiting.get(number), error_in(said))
            case Here():
                pass


def _fail(future: "asyncio.Future[Any] | None", error: ArchiveError) -> None:
    if future is not None and not future.done():
        future.set_exception(error)


class Heard:
    """The notices one watcher has not taken yet."""

    def __init__(self) -> None:
        self._notices: deque[Notice] = deque()
        self._something = asyncio.Event()
        self._ended = False

    def put(self, notice: Notice) -> None:
        """Add a notice; when there is no room all of them make way for one Stale, and always for a Forgotten."""
        if isinstance(notice, Forgotten):
            self._notices.clear()
        elif len(self._notices) >= NOTICES_MAX:
            self._notices.clear()
            notice = Stale()
        self._notices.append(notice)
        self._something.set()

    def end(self) -> None:
        """There will be no more."""
        self._ended = True
        self._something.set()

    def __aiter__(self) -> AsyncIterator[Notice]:
        return self

    async def __anext__(self) -> Notice:
        while not self._notices:
            if self._ended:
                raise Disconnected("The server has ended; there is nothing more to hear.")
            self._something.clear()
            await self._something.wait()
        return self._notices.popleft()
