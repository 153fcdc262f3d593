"""A System One server that is as cheap as Python is: `python -m tests.bench.upstream MS` answers everything after MS.

`GET /count` says how many it was asked. It looks at nothing but lengths, and gives each reply an id of its own.
"""

import asyncio
import sys
from itertools import count
from typing import cast

import uvloop

from tests.bench import words


class Upstream(asyncio.Protocol):
    """One connection; requests on it are answered one after another."""

    asked = count(1)
    last = 0
    seconds = 0.0

    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no asyncio.Transport by class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._data:
            data = self._data + data
        end = data.find(b"\r\n\r\n")
        if end >= 0 and data.startswith(b"GET"):
            self._reply(b"%d" % Upstream.last, b"")
            return
        head = data[:end].lower()
        at = head.find(b"content-length: ")
        if end < 0 or len(data) < end + 4 + int(head[at + 16 :].split(b"\r", 1)[0]):
            self._data = data
            return
        self._data = b""
        Upstream.last = number = next(Upstream.asked)
        if self.seconds:
            asyncio.get_running_loop().call_later(self.seconds, self._answer, number)
        else:
            self._answer(number)

    def _answer(self, number: int) -> None:
        self._reply(words.answer(number), words.provider_id(number))

    def _reply(self, body: bytes, provider_id: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-typesafe-request-id: %s\r\n"
            b"content-length: %d\r\n\r\n%s" % (provider_id, len(body), body)
        )


async def main() -> None:
    """Serve until killed."""
    Upstream.seconds = float(sys.argv[1]) / 1000
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=4096)
    print(f"at http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
