"""Builds everything: the lock, the models, the actor, the routes. Nothing else but cli.py imports archive.actor.

What must never be here: what a route does.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from archive.actor.actor import Actor, Limits
from archive.actor.local import LocalModel, ModelUnusable
from archive.actor.model import NetworkModel, Wire
from archive.actor.store import Lock, StoreTaken, StoreUnusable
from archive.doors import Model
from archive.messages import Key
from archive.request import Destination
from archive.wire import Here
from web.asking import Askings, Road
from web.callers import Callers
from web.fit import may_list
from web.forge import Forge
from web.health import health
from web.live import Live
from web.pages import Pages, Site
from web.recipe import Models
from web.settings import Settings, origin_of
from web.system_one import Api, Log, Route, now
from web.wire import WireRoute

__all__ = ["House", "Lines", "ModelUnusable", "StoreTaken", "StoreUnusable", "app", "here", "house", "keys", "lock"]

FORGE = Wire(10.0, 10.0, 10.0, 1024 * 1024)
"""What the forge is given, in seconds and bytes; nobody waits for it."""

LOG_SECONDS = 0.2
"""Log lines are written together this often: one system call a line would cost as much as a kept answer."""


class SystemClock:
    """The real time. See archive.doors.Clock."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    def later(self, seconds: float, then: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, then)


class House(NamedTuple):
    """The actor, the destinations the API's two routes lead to, and the language model and the forge if any."""

    door: Actor
    ask: Destination
    models: Destination
    chat: Destination | None
    forge: Forge | None


def lock(settings: Settings) -> Lock:
    """Take the store for this process's life. Raises StoreTaken, naming who has it, or StoreUnusable."""
    path = settings.store_path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"{path.parent}: {error.strerror}") from error
    return Lock(path)


@asynccontextmanager
async def house(settings: Settings) -> AsyncGenerator[House, None]:
    """Open the record and everything behind it; the lock is held by now. Raises StoreUnusable."""
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(
            NetworkModel(
                Wire(
                    settings.connect_seconds_max,
                    settings.write_seconds_max,
                    settings.read_seconds_max,
                    settings.reply_bytes_max,
                )
            )
        )
        model: Model = network
        if settings.model_url:
            base = settings.model_url.rstrip("/")
            ask = Destination("systemone", "POST", f"{base}/v1/systemone")
            models = Destination("models", "GET", f"{base}/v1/models")
        else:
            model = local = await stack.enter_async_context(LocalModel())
            ask, models = local.destination("systemone", "POST"), local.destination("models", "GET")
        limits = Limits(
            settings.mailbox_max,
            settings.calls_max,
            settings.call_seconds_max,
            settings.stop_seconds_max,
            settings.recent_bytes_max,
            settings.outbox_max,
            settings.day_calls_max,
            settings.address_calls_max if settings.is_public else 0,
        )
        places = {ask: model, models: model}
        chat = None
        if settings.llm_url:
            chat = Destination("chat", "POST", settings.llm_url.rstrip("/") + "/chat/completions")
            places[chat] = network
        actor = Actor(settings.store_path.resolve(), places, SystemClock(), limits)
        forge = None
        if settings.forge_url:
            away = await stack.enter_async_context(NetworkModel(FORGE))
            forge = Forge(away, settings.forge_url, Key(settings.forge_key), time.monotonic)
            await stack.enter_async_context(forge)
        yield House(await stack.enter_async_context(actor), ask, models, chat, forge)


def here(settings: Settings, house: House) -> Here:
    """What a program that asks in the owner's name has to know of this house."""
    return Here(house.ask, house.chat, settings.model, settings.llm_model)


def keys(settings: Settings, house: House) -> Mapping[Destination, Key]:
    """The owner's keys, by where they belong."""
    found = {house.ask: Key(settings.model_key), house.models: Key(settings.model_key)}
    return found if house.chat is None else found | {house.chat: Key(settings.llm_key)}


def app(settings: Settings, port: int, house: House, log: Log, secret: str = "") -> ASGIApp:
    """The whole site. The API's routes stand before Starlette, whose own road costs as much again as a kept answer.

    `secret` is what programs must show at /wire; without one nobody may come there.
    """
    hosts, origins = _places(settings, port)
    api = Api(
        house.door,
        frozenset(name.encode() for name in hosts),
        frozenset(name.encode() for name in origins),
        Key(settings.model_key),
        settings.body_bytes_max,
        settings.no_cache_is_fresh,
        log,
        Callers(house.door.tokens, now, addresses=settings.is_public),
    )
    routes: dict[str, ASGIApp] = {
        "/v1/systemone": Route(api, house.ask, "/v1/systemone"),
        "/v1/models": Route(api, house.models, "/v1/models"),
    }
    to_front = None if house.chat is None else Road(house.chat, Key(settings.llm_key))
    models = Models(settings.model, settings.llm_model)
    askings = Askings(house.door, (Road(house.ask, api.key), to_front), models, may_list, settings.askings_max)
    named = Site(settings.site_name, settings.site_tagline, settings.site_footer, settings.public_url)
    pages = Pages(
        api,
        askings,
        named,
        house.ask.is_local,
        settings.question_characters_max,
        settings.call_seconds_max,
        house.forge,
    )
    sockets: dict[str, ASGIApp] = {
        "/live": Live(api, pages, askings, settings.pages_max, settings.pages_per_address_max),
        "/wire": WireRoute(api, here(settings, house), keys(settings, house), secret),
    }

    async def not_found(http: HttpRequest, error: Exception) -> JSONResponse:
        """What is not here, in JSON and in the words of System One's own server. Its path may hold anybody's words."""
        status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
        log("nowhere", status, 0.0)
        headers = {"x-content-type-options": "nosniff"}
        headers |= dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return JSONResponse({"detail": HTTPStatus(status).phrase}, status, headers)

    site = Starlette(
        routes=[*pages.routes(), health(house.door)],
        middleware=[Middleware(GZipMiddleware, compresslevel=5)],
        exception_handlers={HTTPException: not_found},
    )

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await sockets.get(scope["path"], site)(scope, receive, send)
        else:
            await routes.get(scope["path"], site)(scope, receive, send)

    return front


def _places(settings: Settings, port: int) -> tuple[set[str], set[str]]:
    """The host names we answer to, and the origins whose pages may ask."""
    names = {"localhost", "127.0.0.1", "[::1]"}
    if settings.host not in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        names.add(f"[{settings.host}]" if ":" in settings.host else settings.host.lower())
    origins: set[str] = {f"http://{name}:{port}" for name in names}
    if port == 80:
        origins |= {f"http://{name}" for name in names}
    public = origin_of(settings.public_url) if settings.public_url else None
    if public is not None:
        names.add(public.partition("://")[2])
        origins.add(public)
    return names, origins


class Lines:
    """Our log: a JSON line a request, with route, status and milliseconds, and never a word of anybody's."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __call__(self, route: str, status: int, seconds: float) -> None:
        """Note one request; written a moment later."""
        if not self._lines:
            asyncio.get_running_loop().call_later(LOG_SECONDS, self.flush)
        at = time.time()
        self._lines.append(f'{{"at":{at:.3f},"route":"{route}","status":{status},"ms":{seconds * 1000:.1f}}}\n')

    def flush(self) -> None:
        """Write what has been noted."""
        lines, self._lines = self._lines, []
        sys.stderr.write("".join(lines))
        sys.stderr.flush()
