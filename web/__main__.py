"""`python -m web`: read the settings, take the store, serve until told to stop. One process, one worker."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
import uvloop
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from web.app import Front, Lines, ModelUnusable, StoreTaken, StoreUnusable, app, house, lock
from web.fast import protocol
from web.live import MESSAGE_BYTES_MAX
from web.settings import SettingError, Settings, read


class Server(uvicorn.Server):
    """uvicorn, stopping the house's way: the actor hears of a signal at once, and the process ends with status 0.

    Its own `capture_signals` raises the signal again at the end, which would kill the process before the record closed.
    """

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._stop()


class Sockets(WebSocketsSansIOProtocol):
    """uvicorn's WebSockets, which forget those whose first words cannot be read, such as a GET with a body.

    They would stay open for good without an answer, and break the stop of the whole server at the end.
    """

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.close_sent:
            self.close_sent = True
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()


def bind(settings: Settings) -> socket.socket:
    """The listening socket. Raises SettingError when host and port cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise SettingError(f"ASKONCE_HOST {settings.host}, ASKONCE_PORT {settings.port}: {error.strerror}") from error
    return listening


async def serve(settings: Settings, listening: socket.socket, secret: str) -> None:
    """Open the house, serve it at `listening`, and close it again. `secret`: for programs at /wire."""
    port = listening.getsockname()[1]
    lines = Lines()
    async with house(settings) as opened:
        config = configured(app(settings, port, opened, lines, secret), settings)
        # Whoever reads the line may connect at once: from here on the system lets them wait for us.
        listening.listen(config.backlog)
        say(settings, port, opened.root.url, is_open=not opened.door.tokens)
        await Server(config, opened.door.stop).serve(sockets=[listening])
    lines.flush()


def configured(site: Front, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the site: one worker, no log of its own, no compression, pings that find dead pages."""
    return uvicorn.Config(
        site,
        http=protocol(site.plain),
        ws=Sockets,
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_per_message_deflate=False,
        ws_ping_interval=25.0,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=round(settings.stop_seconds_max) + 5,
    )


def say(settings: Settings, port: int, model_url: str, *, is_open: bool) -> None:
    """A few lines for whoever started it. `is_open`: no access token was ever made."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    model = model_url or "the built-in model: a rough guess from wording, offline, English"
    print(f"Askonce is at http://{host}:{port}")
    print(f"  answers come from {model}")
    print(f"  and are kept in {settings.store_path}")
    who = (
        "whoever can reach it may use the API: there is no token (askonce token new NAME makes one)"
        if is_open
        else "the API takes a token"
    )
    print(f"  {who}", flush=True)


def main() -> int:
    """The exit status: 0 stopped as asked, 1 refused to start."""
    os.umask(0o077)  # whoever may read the files may read every kept answer
    logging.basicConfig(
        level=logging.INFO,
        format='{"at":%(created).3f,"level":"%(levelname)s","text":"%(message)s"}',
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        settings = read(os.environ)
        held = lock(settings)
        listening = bind(settings)
        address, port, *_ = listening.getsockname()
        secret = secrets.token_urlsafe()
        held.say({"pid": os.getpid(), "host": address, "port": port, "secret": secret})
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, listening, secret))
    except (SettingError, StoreTaken, StoreUnusable, ModelUnusable) as error:
        print(f"Askonce cannot start: {error}", file=sys.stderr)
        return 1
    held.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
