"""Kept answers straight from uvicorn's connection, for requests whose head says nothing new.

A head that uvicorn's parser and the route have read once means the same each time. It is known again by its SHA-256, so
that no secret is held, and the body behind it is looked up among the recent answers. All else (a head not seen before,
one out of the ordinary, no recent answer, a refusal) goes uvicorn's own road, from its first byte on.
What must never be here: a rule. The route has them (web/system_one.py), for both roads.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, cast

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from web.receipts import lines
from web.system_one import Plain

UVICORN = "0.54."
"""The uvicorn this was written beside. It leans on what is inside; on any other the server does without it."""

HEADS_MAX = 4_096
"""Heads that are known; then all are learned anew. A client has one for each length of a body."""

HEAD_BYTES_MAX = 4_096
"""Larger ones are not learned, since what one comes to may be as large."""

Read = Callable[[Scope], Plain | None]
"""What a head comes to; None where it is out of the ordinary. Raises what it is refused with."""


class Fast(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 on httptools, and in front of it the answers to whole requests with a known head."""

    read: Read
    seen: set[bytes]
    """The hashes of heads that came once: one that never comes again is not worth more than this."""
    heads: dict[bytes, tuple[Plain | None, int]]
    """By its hash: what a head comes to (None: it is out of the ordinary), and how long the body is."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._held = b""
        self._answered_at = 0.0
        self._dated: tuple[object, bytes] = None, b""

    def data_received(self, data: bytes) -> None:
        """Answer a whole request with a known head; wait for the body of one that came without; pass on all else."""
        if self._held:
            data, self._held = self._held + data, b""
        if not self._is_idle():
            super().data_received(data)
            return
        end = data.find(b"\r\n\r\n") + 4
        hashed = sha256(data[:end]).digest()
        known = self.heads.get(hashed)
        if known is None:
            self._learn(data, end, hashed)
            return
        plain, length = known
        if plain is not None and len(data) == end + length and self._answer(plain, data[end:]):
            return
        if plain is not None and len(data) == end < end + length:
            # Many clients send the body by itself. There is nothing to be done before it is here.
            self._unset_keepalive_if_required()
            self._held = data
            return
        super().data_received(data)

    def _is_idle(self) -> bool:
        """Is the next byte the first of a request, all others answered, and may be written at once?"""
        if self.flow.write_paused or self.transport.is_closing() or self.limit_concurrency is not None:
            return False
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None:
            return cast("Scope | None", self.scope) is None
        # The parser makes a new scope when a request begins.
        return cycle.response_complete and not cycle.more_body and self.scope is cycle.scope

    def _learn(self, data: bytes, end: int, hashed: bytes) -> None:
        """Pass data on; learn from it if it was one request, or its beginning, that leaves the connection open."""
        before = self.cycle
        super().data_received(data)
        cycle = self.cycle
        # The parser took for the body what follows the first empty line, so there it ended the head, too.
        if cycle is before or not cycle.keep_alive or bytes(cycle.body) != data[end:] or end > HEAD_BYTES_MAX:
            return
        scope = cast("Scope", cycle.scope)
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or headers.keys() & {b"transfer-encoding", b"expect", b"upgrade"}:
            return
        if hashed not in self.seen:
            if len(self.seen) >= HEADS_MAX:
                self.seen.clear()
            self.seen.add(hashed)
            return
        # What is raised here is met again on uvicorn's road, which says what it is.
        with suppress(Exception):
            plain = type(self).read(scope)
            if len(self.heads) >= HEADS_MAX:
                self.heads.clear()
            self.heads[hashed] = plain, int(length)

    def _answer(self, plain: Plain, body: bytes) -> bool:
        try:
            found = plain.route.at_once(plain, body)
        except Exception:
            # See _learn.
            return False
        if found is None:
            return False
        kept, receipt = found
        dates = self.server_state.default_headers
        if dates is not self._dated[0]:
            self._dated = dates, lines(dates)
        self.transport.writelines([b"%s%s%s\r\n" % (STATUS_LINE[kept.status], self._dated[1], receipt), kept.body])
        if self.timeout_keep_alive_task is None:
            self.on_response_complete()
        else:
            # The timer that runs is left alone: to stop it and start another would cost a fifth of all this.
            self.server_state.total_requests += 1
            self._answered_at = self.loop.time()
        return True

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has rested too long, as uvicorn does."""
        seconds = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if seconds > 0:
            self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol. A head that is held is uvicorn's to end."""
        self._let_go()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """See HttpToolsProtocol. What was begun is answered first."""
        self._let_go()
        super().shutdown()

    def _let_go(self) -> None:
        data, self._held = self._held, b""
        if data:
            super().data_received(data)


def protocol(read: Read) -> type[asyncio.Protocol] | str:
    """What uvicorn is to speak HTTP with: Fast, or by its name what Fast is built on."""
    if not uvicorn.__version__.startswith(UVICORN):
        return "httptools"

    return type("FastHere", (Fast,), {"read": staticmethod(read), "seen": set[bytes](), "heads": {}})
