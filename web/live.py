"""/live: what is pushed to open pages, and the little they say to us.

One task hears the actor's notices. A part of a page is rendered once for all who show it, made one frame, and handed
straight to their connections, 64 at a time, so that asking goes on in between. A page that does not take what it is
given is passed over and told later to read itself again; one that takes nothing for seconds is closed (1013), and so
is one too many. Nobody ever waits for a page.
What must never be here: a decision about the record; a URL that outlives its socket.
"""

import asyncio
import ipaddress
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.types import Receive, Scope, Send
from websockets.frames import Frame, Opcode

from archive.errors import ArchiveError, Invalid
from archive.live import Asked, At, Build, Forgotten, Imported, Notice, Online, Patch, Place, Row, Seen, Stale
from archive.messages import Feed, Question, Recall, Visited
from archive.when import iso
from web.asking import Askings
from web.pages import Pages, Shown
from web.render import BUILD
from web.system_one import Api, by_name, check_place
from web.view import View

SLICE = 64
"""Pages that are written to before the loop is given back: more made a kept answer wait several times longer."""

UNSENT_BYTES_MAX = 64 * 1024
"""A page that has this much unsent is passed over, and told to read itself again when it has caught up."""

BEHIND_SECONDS_MAX = 5.0
"""A page that has not caught up by then is closed (1013); if it reads on it sees that, and comes back by itself."""

CLOSE_SECONDS_MAX = 2.0
"""How long a connection that is closed may go on taking what it was given before."""

SWEEP_SECONDS = 1.0
"""How often pages that fell behind are seen to, and all are told how many there are, if that has changed."""

MESSAGE_BYTES_MAX = 4096
"""A page says where it is and what it saw; a longer message closes it (1009)."""

ADDRESS_BYTES_MAX = 64 * 1024
"""An address comes in as many messages as it needs; a longer one closes the page (1009). A form is never longer."""

log = logging.getLogger("askonce")

_said = msgspec.json.Decoder(At | Seen)


class Page:
    """One open page: its connection, what it shows, and whether it has fallen behind."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.shown: Shown | None = None
        self.at_home = False
        self.looked = False
        self.address = ""
        self.told = 0
        self.behind_since: float | None = None

    def write(self, frame: bytes, now: float) -> None:
        """Hand over one ready frame, or pass the page over."""
        self.told += 1
        transport = self._protocol.transport
        if transport is None or transport.is_closing() or self._protocol.close_sent:
            return
        if self.behind_since is not None or transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            self.pass_over(now)
            return
        transport.write(frame)

    def pass_over(self, now: float) -> None:
        """It missed something: it is told to read itself again at the next sweep that finds it has taken all."""
        self.behind_since = self.behind_since or now

    def catch_up(self, now: float) -> None:
        """A page that fell behind: tell it to read itself again once it has taken all, or close it."""
        transport = self._protocol.transport
        unsent = transport.get_write_buffer_size()
        if transport.is_closing():
            if unsent:  # it answered no ping, and would stay until the system gives its connection up
                transport.abort()
        elif self.behind_since is not None and not unsent:
            self.behind_since = None
            self.write(_STALE, now)
        elif self.behind_since is not None and now - self.behind_since > BEHIND_SECONDS_MAX:
            self.close(1013, "This page takes nothing.")

    def close(self, code: int, reason: str = "") -> None:
        """Say that it is over behind all that is unsent, and wait neither for that nor for the page's own word.

        uvicorn's own way waits until the page takes something.
        """
        protocol = self._protocol
        if protocol.close_sent or protocol.transport.is_closing():
            return
        protocol.conn.send_close(code, reason)
        protocol.transport.write(b"".join(protocol.conn.data_to_send()))
        protocol.close_sent = True
        # Until the page answers, what it still says is read and dropped: what lies unread when a connection is closed
        # makes the system throw away what is unsent.
        protocol.close_timer = asyncio.get_running_loop().call_later(CLOSE_SECONDS_MAX, protocol.transport.abort)
        protocol.queue.put_nowait({"type": "websocket.disconnect", "code": code})

    def let_go(self) -> None:
        """It is over: what is not taken within a moment is not delivered, so that stopping need not wait for it."""
        transport = self._protocol.transport
        if transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(CLOSE_SECONDS_MAX, transport.abort)


class Showing:
    """All pages that show the same, and the calls that are on it."""

    def __init__(self) -> None:
        self.pages: set[Page] = set()
        self.names: frozenset[str] = frozenset()

    def has(self, call_id: str) -> bool:
        """Is this call on the page? While that is not known yet, it may be."""
        return not self.names or call_id in self.names

    def is_now(self, view: View) -> None:
        """What it shows has been read."""
        self.names = frozenset(call.name for call in view.calls)


def frame(said: msgspec.Struct) -> bytes:
    """One unmasked WebSocket text frame, ready for the wire (RFC 6455 §5)."""
    return Frame(Opcode.TEXT, msgspec.json.encode(said)).serialize(mask=False)


_STALE = frame(Stale())


class Live:
    """The /live route, as plain ASGI."""

    def __init__(self, api: Api, rendered: Pages, askings: Askings, pages_max: int, pages_per_address_max: int) -> None:
        """`rendered`: where the parts of pages come from, so that each has one source. `askings`: tell what stopped."""
        self._api = api
        self._door = api.door
        self._rendered = rendered
        self._build = frame(Build(BUILD))
        self._pages_max = pages_max
        self._pages_per_address_max = pages_per_address_max
        self._pages: set[Page] = set()
        self._from: Counter[str] = Counter()
        self._home: set[Page] = set()
        self._showing: defaultdict[Shown, Showing] = defaultdict(Showing)
        self._desk: asyncio.Task[None] | None = None
        self._telling = asyncio.Lock()
        self._number_told = 0
        askings.stopped = self._stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one page for as long as it is open."""
        await receive()  # websocket.connect
        headers = by_name(scope["headers"])
        try:
            check_place(headers, self._api.hosts, self._api.origins)
        except ArchiveError:
            headers.pop(b"origin", None)
        if b"origin" not in headers:
            # Before it is accepted a close is a plain 403.
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        page = Page(protocol_of(send))
        whose = household(scope["client"])
        if len(self._pages) >= self._pages_max or self._from[whose] >= self._pages_per_address_max:
            # Accepted first, since no browser tells its page why a socket was not: it comes back, ever more slowly.
            page.close(1013, "Too many pages are open.")
            return
        self._pages.add(page)
        self._from[whose] += 1
        self._open_desk()
        try:
            page.write(self._build, _now())
            page.write(frame(Online(len(self._pages))), _now())
            await self._listen(page, receive)
        finally:
            self._pages.discard(page)
            self._from[whose] -= 1
            if not self._from[whose]:
                del self._from[whose]
            self._leave(page)
            page.let_go()
            if not self._pages:
                self._close_desk()

    async def _listen(self, page: Page, receive: Receive) -> None:
        while (message := await receive())["type"] == "websocket.receive":
            text: str = message.get("text") or ""
            code = 1009 if len(text) > MESSAGE_BYTES_MAX else await self._hear(page, text)
            if code is not None:
                page.close(code)
                return

    async def _hear(self, page: Page, text: str) -> int | None:
        """One message of a page; with which code to close it, if at all."""
        try:
            match _said.decode(text):
                case At(piece, more):
                    page.address += piece
                    if len(page.address) > ADDRESS_BYTES_MAX:
                        return 1009
                    if not more:
                        self._stands(page)
                case Seen(token) if page.at_home:
                    await self._greet_home(page, token)
                case Seen() as seen:
                    await self._greet(page, seen)
        except (msgspec.DecodeError, Invalid, ValueError):
            return 1008
        except ArchiveError:
            return 1013  # no room at this moment
        return None

    def _stands(self, page: Page) -> None:
        """A page has said where it is."""
        self._leave(page)
        address, page.address = urlsplit(page.address), ""
        if address.path != "/":
            return
        page.shown = self._rendered.shown(address.query)
        page.at_home = page.shown is None
        (self._home if page.shown is None else self._showing[page.shown].pages).add(page)

    def _leave(self, page: Page) -> None:
        """A page is no longer where it was."""
        self._home.discard(page)
        if page.shown is not None:
            showing = self._showing[page.shown]
            showing.pages.discard(page)
            if not showing.pages:
                del self._showing[page.shown]
        page.shown, page.at_home = None, False

    async def _greet_home(self, page: Page, token: str) -> None:
        """A front page has said the moment of its newest row: if there is a newer one, it reads itself again."""
        listed = await self._door.send(Feed(most=1))
        newest = iso(listed.rows[0].last_at) if listed.rows else ""
        if token != newest:
            page.write(_STALE, _now())

    async def _greet(self, page: Page, seen: Seen) -> None:
        """A page has said what it shows: give it what has changed since, if anything has. Its look counts once."""
        while page.shown is not None:
            told, shown = page.told, page.shown
            view = await self._rendered.view(shown)
            if page.told != told or page.shown != shown:
                continue  # the desk was quicker, and what was read may be older than what it told
            self._showing[shown].is_now(view)
            if view.token != seen.token:
                page.write(frame(Patch(self._rendered.part(view))), _now())
            if seen.looked and not page.looked and view.remembered is not None:
                page.looked = True
                await self._door.send(Visited(view.remembered.number))
            return

    # -- the desk ----------------------------------------------------------------------------------------------------

    def _open_desk(self) -> None:
        if self._desk is None or self._desk.done():
            self._desk = asyncio.create_task(self._work(), name="live")

    def _close_desk(self) -> None:
        if self._desk is not None:
            # Forgotten at once: whoever comes before it is gone needs another one.
            self._desk.cancel()
            self._desk = None

    async def _work(self) -> None:
        """Hear notices and tell pages, until the last page is gone."""
        sweeping = asyncio.create_task(self._sweep(), name="live sweep")
        try:
            async with self._door.watch(Place("/live")) as notices:
                async for notice in notices:
                    async with self._telling:
                        await self._tell(notice)
        finally:
            sweeping.cancel()

    async def _stopped(self, question: Question) -> None:
        """An asking of a question ended in trouble, whether or not a call was made."""
        async with self._telling:
            await self._tell_shown([shown for shown in self._showing if shown[0] == question])

    async def _tell(self, notice: Notice) -> None:
        if isinstance(notice, Stale | Forgotten):
            await self._write(self._pages, _STALE)
            return
        if isinstance(notice, Asked):
            concerned = [shown for shown in self._showing if shown[0] == notice.question]
            await self._tell_home(notice)
        else:
            calls = notice.calls if isinstance(notice, Imported) else (notice.call_id,)
            concerned = [shown for shown, showing in self._showing.items() if any(map(showing.has, calls))]
        await self._tell_shown(concerned)

    async def _tell_shown(self, concerned: list[Shown]) -> None:
        """Show what is so now to all pages that show these; one at a time, or an older view may come last."""
        for shown in concerned:
            try:
                view = await self._rendered.view(shown)
                showing = self._showing.get(shown)
                if showing is not None:
                    showing.is_now(view)
                    await self._write(showing.pages, frame(Patch(self._rendered.part(view))))
            except Exception as error:
                self._could_not(error, self._showing[shown].pages if shown in self._showing else ())

    async def _tell_home(self, asked: Asked) -> None:
        if not self._home or not asked.listed:
            return
        try:
            remembered = await self._door.send(Recall(asked.question))
            if remembered is not None:
                await self._write(self._home, frame(Row(self._rendered.row(remembered))))
        except Exception as error:
            self._could_not(error, self._home)

    @staticmethod
    def _could_not(error: Exception, pages: Iterable[Page]) -> None:
        """What could not be read for them, the pages read for themselves a moment later."""
        log.error("pages could not be told: %s", type(error).__name__)
        for page in pages:
            page.pass_over(_now())

    async def _write(self, pages: Iterable[Page], ready: bytes) -> None:
        now = _now()
        for place, page in enumerate(list(pages), start=1):
            page.write(ready, now)
            if place % SLICE == 0:
                await asyncio.sleep(0)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = _now()
            for page in list(self._pages):
                page.catch_up(now)
            if self._number_told != len(self._pages):
                self._number_told = len(self._pages)
                await self._write(self._pages, frame(Online(self._number_told)))


def household(client: tuple[str, int] | None) -> str:
    """Whom a page counts for: its address; of an IPv6 one the first 64 bits, which is what one customer is given."""
    host = client[0] if client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))


def protocol_of(send: Send) -> Any:
    """uvicorn's own object behind an ASGI `send`: the one place that reaches behind it.

    Awaiting `send` page by page would let one dead reader stop them all, and a task a page costs three times as much.
    tests/stories/test_live.py notices when it moves.
    """
    inside: Any = send
    return inside.__self__


def _now() -> float:
    return asyncio.get_running_loop().time()
