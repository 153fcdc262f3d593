"""Builds everything: the lock, the models, the actor, the routes. Nothing else but cli.py imports archive.actor.

What must never be here: what a route does.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from archive.actor.actor import Actor, Limits
from archive.actor.local import LocalModel, ModelUnusable
from archive.actor.model import NetworkModel, Wire
from archive.actor.store import Lock, StoreTaken, StoreUnusable
from archive.doors import Model, Upstream
from archive.messages import Key
from archive.request import Destination
from archive.wire import Behind, Here
from web.asking import Askings
from web.callers import Callers
from web.destinations import Provider, Providers, load
from web.errors import Shape, refusal, shape_of
from web.fit import may_list
from web.forge import Forge
from web.health import health
from web.live import Live
from web.pages import Pages, Site
from web.paths import SYSTEM_ONE_PREFIXES, Owners, Way, below, hint, owners, way_of, ways
from web.recipe import Models
from web.settings import Settings, origin_of
from web.system_one import Api, Log, Plain, Route, now
from web.wire import WireRoute

__all__ = ["House", "Lines", "ModelUnusable", "StoreTaken", "StoreUnusable", "app", "here", "house", "lock"]

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
    """The actor, who may be asked, whose each destination is; and where the API's two routes and the pages lead.

    `root` answers System One here; `chat` is the language model in front, `forge` where the source is, if any.
    """

    door: Actor
    providers: Providers
    owners: Owners
    root: Provider
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
async def house(settings: Settings, environment: Mapping[str, str] = os.environ) -> AsyncGenerator[House, None]:
    """Open the record and everything behind it; the lock is held by now. Raises StoreUnusable, SettingError.

    `environment` holds the keys that the file of destinations names.
    """
    providers = load(settings, environment)
    async with AsyncExitStack() as stack:
        wire = Wire(
            settings.connect_seconds_max,
            settings.write_seconds_max,
            settings.read_seconds_max,
            settings.reply_bytes_max,
        )
        public = await stack.enter_async_context(NetworkModel(wire))
        private = await stack.enter_async_context(NetworkModel(wire, private=True))
        upstreams: dict[str, Upstream] = {}
        if providers.root is None:
            local = await stack.enter_async_context(LocalModel())
            root = Provider("built-in", "")
            upstreams[root.name] = Upstream(local, root.name)
            ask, models = local.destination("systemone", "POST"), local.destination("models", "GET")
        else:
            root = providers.root
            ask = Destination("systemone", "POST", f"{root.url}/v1/systemone")
            models = Destination("models", "GET", f"{root.url}/v1/models")
        chat = None
        fixed = {ask: root.name, models: root.name}
        if providers.front is not None:
            chat = Destination("chat", "POST", f"{providers.front.url}/chat/completions")
            fixed[chat] = providers.front.name
        for one in providers.all:
            upstreams[one.name] = _upstream(one, private if one.private else public)
        owned = owners(fixed, providers.listed)
        limits = Limits(
            settings.mailbox_max,
            settings.calls_max,
            settings.call_seconds_max,
            settings.stop_seconds_max,
            settings.recent_bytes_max,
            settings.outbox_max,
            settings.day_calls_max,
            settings.address_calls_max if settings.is_public else 0,
            settings.spool_bytes_max,
        )
        store, spool = settings.store_path.resolve(), settings.spool_path.resolve()
        actor = Actor(store, lambda place: upstreams.get(owned.name(place)), SystemClock(), limits, spool=spool)
        forge = None
        if settings.forge_url:
            # The owner names it, and nothing that a caller says goes there: it may well be inside the owner's network.
            away = await stack.enter_async_context(NetworkModel(FORGE, private=True))
            forge = Forge(away, settings.forge_url, Key(settings.forge_key), time.monotonic)
            await stack.enter_async_context(forge)
        door = await stack.enter_async_context(actor)
        yield House(door, providers, owned, root, ask, models, chat, forge)


def _upstream(provider: Provider, model: Model) -> Upstream:
    return Upstream(
        model,
        provider.name,
        provider.key,
        provider.price,
        provider.day_calls_max,
        provider.calls_max,
        provider.call_seconds_max,
    )


def here(settings: Settings, house: House) -> Here:
    """What a program that asks in the owner's name has to know of this house."""
    behind = tuple(
        Behind(
            one.name,
            one.url,
            one.private,
            bool(one.key.secret),
            one.price,
            settings.day_calls_max if one.day_calls_max is None else one.day_calls_max,
        )
        for one in house.providers.all
    )
    return Here(house.ask, house.chat, settings.model, settings.llm_model, behind)


class Front:
    """The whole site. The API's routes stand before Starlette, whose own road costs as much again as a kept answer."""

    def __init__(self, route: Callable[[Scope], Route | None], sockets: dict[str, ASGIApp], site: ASGIApp) -> None:
        self._route = route
        self._sockets = sockets
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have whoever stands at the address answer."""
        if scope["type"] == "websocket":
            await self._sockets.get(scope["path"], self._site)(scope, receive, send)
        else:
            await (self._route(scope) or self._site)(scope, receive, send)

    def plain(self, scope: Scope) -> Plain | None:
        """What a request's head comes to, see Route.plain; None where no route of the API is."""
        route = self._route(scope)
        return None if route is None else route.plain(scope)


def app(settings: Settings, port: int, house: House, log: Log, secret: str = "") -> Front:
    """Everything put together.

    `secret` is what programs must show at /wire; without one nobody may come there.
    """
    hosts, origins = _places(settings, port)
    api = Api(
        house.door,
        house.door.at_once,
        frozenset(name.encode() for name in hosts),
        frozenset(name.encode() for name in origins),
        settings.body_bytes_max,
        settings.no_cache_is_fresh,
        log,
        Callers(house.door.tokens, now, addresses=settings.is_public),
    )
    models = Models(settings.model, settings.llm_model)
    askings = Askings(house.door, (house.ask, house.chat), models, may_list, settings.askings_max)
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
        "/wire": WireRoute(api, here(settings, house), secret),
    }

    site = Starlette(
        routes=[*pages.routes(), health(house.door)],
        middleware=[Middleware(GZipMiddleware, compresslevel=5)],
        exception_handlers={HTTPException: _nowhere(pages, log)},
    )

    return Front(_finder(api, house), sockets, site)


def _nowhere(pages: Pages, log: Log) -> Callable[[HttpRequest, Exception], Awaitable[Response]]:
    """Says that nothing is at an address, and where a base URL is a little wrong, what to change about it.

    Browsers get a page, all others JSON. The address may hold anybody's words, so it is not repeated.
    """

    async def nowhere(http: HttpRequest, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
        more = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        log("nowhere", status, 0.0)
        path, phrase, code, change = http.scope["path"], HTTPStatus(status).phrase, "invalid", ""
        if status == HTTPStatus.NOT_FOUND:
            code, change = "not_found", hint(path)
        if "text/html" in http.headers.get("accept", ""):
            heading = "There is nothing here" if code == "not_found" else phrase
            response = pages.html(http, "error.html", status, heading=heading, text=change)
            response.headers.update(more)
            return response
        shape = shape_of(path)
        said = refusal(shape, status, code, change or phrase).body
        if shape is Shape.SYSTEM_ONE and not change:
            said = msgspec.json.encode({"detail": phrase})  # the very words of its own server
        return Response(said, status, {"x-content-type-options": "nosniff", **more}, "application/json")

    return nowhere


def _finder(api: Api, house: House) -> Callable[[Scope], Route | None]:
    """Finds the API's route of an address."""
    routes, led = _routes(api, house), _led(api, house)
    return lambda scope: routes.get(scope["path"]) or led(scope)


def _routes(api: Api, house: House) -> dict[str, Route]:
    """System One's two addresses, and the same where OpenRouter's SDK and gateways have them unless the file says who
    is there.
    """
    found: dict[str, Route] = {}
    taken = ways(house.providers)
    for prefix in SYSTEM_ONE_PREFIXES:
        for path, place in ((f"{prefix}/v1/systemone", house.ask), (f"{prefix}/v1/models", house.models)):
            if not prefix or way_of(taken, path) is None:
                found[path] = Route(api, house.root, place, f"{place.method} {path}")
    return found


def _led(api: Api, house: House) -> Callable[[Scope], Route | None]:
    """Finds the route of an address below a provider's prefix."""
    taken = ways(house.providers)
    routes: dict[str, Route] = {}
    for way in taken:

        def find(method: str, path: str, query: str, way: Way = way) -> Destination:
            return house.owners.check(below(way, method, path, query), way.provider)

        routes[way.prefix] = Route(api, way.provider, find, way.prefix)

    def led(scope: Scope) -> Route | None:
        way = way_of(taken, scope["raw_path"].decode("latin-1"))
        return None if way is None else routes[way.prefix]

    return led


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
