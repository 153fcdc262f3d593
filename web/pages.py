"""The public pages: the front page, a question's page, asking, and the exact bytes of a call. All of it plain HTML.

GET never sends a call. What must never be here: what a question needs (recipe.py), what a page shows (view.py).
"""

import asyncio
import re
import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from archive.errors import ArchiveError, Forbidden, Invalid, NotFound, NotKept, TooLarge
from archive.messages import Feed, Kept, Named, Noted, Order, Question, Recall, Remembered, Show, Totals
from archive.picks import Known, Pins, Version, decide, parse_pins, print_pins
from web import builder
from web.asking import Askings
from web.card import Card, Cards
from web.errors import internal, status_of
from web.feed import further, section
from web.forge import Forge
from web.forgetting import Forgetting
from web.recipe import LEVELS_MAX, OPTIONS_MAX, VERSION
from web.render import HERE, page, part, query
from web.settings import origin_of
from web.share import SITE_CARD, SITEMAP_MAX, of_question, of_site, pictured, robots, sitemap, words_in
from web.system_one import Api, by_name, check_place, now, read_body
from web.view import View, view

FORM_BYTES_MAX = 64 * 1024
"""A form of ours is never larger."""

FIELDS_MAX = 100

TYPED_CHARACTERS_MAX = 20_000
"""Of a built question, as its link holds it: what browsers and proxies let pass."""

OPTION_CHARACTERS_MAX = 100

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}

Shown = tuple[Question, Pins]
"""What a page shows: a question, and what is held still."""

Handler = Callable[[HttpRequest], Awaitable[Response]]


class Static(StaticFiles):
    """Our own files, whose type no browser may guess at; those that change with a build are asked for each time."""

    def file_response(self, *args: Any, **more: Any) -> Response:
        response = super().file_response(*args, **more)
        response.headers["x-content-type-options"] = "nosniff"
        is_font = response.headers.get("content-type", "").startswith("font/")
        response.headers["cache-control"] = "public, max-age=604800" if is_font else "no-cache"
        return response


class Site(msgspec.Struct, frozen=True):
    """What the owner calls the site, and a line below its name; what stands at its foot, before our own words.

    `public_url`: where others reach it, for what a link to it says elsewhere; empty: as each visitor did.
    """

    name: str
    tagline: str = ""
    footer: str = ""
    public_url: str = ""


class Pages:
    """The handlers of the public pages."""

    def __init__(
        self,
        api: Api,
        askings: Askings,
        site: Site,
        built_in: bool,
        question_characters_max: int,
        call_seconds_max: float,
        forge: Forge | None,
    ) -> None:
        """`api`: whom the pages let in, and where they log, is as there. `built_in`: every page says so.

        `call_seconds_max`: after which a call is said to time out.
        """
        self._door = api.door
        self._api = api
        self._askings = askings
        self._site = site
        self._common = {
            "built_in": built_in,
            "characters_max": question_characters_max,
            "call_seconds_max": call_seconds_max,
            "site": site,
        }
        self._characters_max = question_characters_max
        self._forge = forge
        self._public = origin_of(site.public_url)
        self.cards = Cards()
        self._forgetting = Forgetting(api.door, self.cards.forget, askings.forget)

    def routes(self) -> list[Route | Mount]:
        """The routes of the site."""
        return [
            self._route("GET", "/", self._home),
            self._route("POST", "/ask", self._ask),
            self._route("GET", "/build", self._build),
            self._route("GET", "/call/{name}/request", self._request),
            self._route("GET", "/call/{name}/{n}", self._reply),
            self._route("GET", SITE_CARD, self._site_card),
            self._route("GET", "/card/{name}/{n}.png", self._card),
            self._route("GET", "/robots.txt", self._robots),
            self._route("GET", "/sitemap.xml", self._sitemap),
            Mount("/static", Static(directory=HERE / "static")),
        ]

    def _route(self, method: str, path: str, handler: Handler) -> Route:
        """Every page checks where it is called from, tells an error as a page, and has its line in the log."""

        async def guarded(http: HttpRequest) -> Response:
            started = time.perf_counter()
            try:
                check_place(by_name(http.scope["headers"]), self._api.hosts, self._api.origins)
                response = await handler(http)
            except ArchiveError as error:
                response = self.html(http, "error.html", status_of(error), text=error.text)
            except Exception as error:
                status = HTTPStatus.INTERNAL_SERVER_ERROR
                response = self.html(http, "error.html", status, text=internal(error).text)
            self._api.log(f"{method} {path}", response.status_code, time.perf_counter() - started)
            return response

        return Route(path, guarded, methods=[method])

    def html(self, http: HttpRequest, template: str, status: int = HTTPStatus.OK, **values: object) -> Response:
        """A page. What a link to it says elsewhere is `share`, and where that is not given, what the site says."""
        if "share" not in values:
            is_whole = status == HTTPStatus.OK and not http.scope["query_string"]
            path = http.url.path if is_whole else ""
            hidden = status != HTTPStatus.OK
            values["share"] = of_site(self._origin(http), path, hidden=hidden, site=self._site.name)
        body = page(template, **self._common, now=now(), **values)
        return Response(body, status, {**HEADERS, "content-type": "text/html; charset=utf-8"})

    # -- for /live, and for the pages themselves ---------------------------------------------------------------------

    def shown(self, query: str) -> Shown | None:
        """What a page's address shows; None is the front page. Raises Invalid for an address that shows neither."""
        fields = _fields(query.encode())
        if not fields.get("q", [""])[0].strip() and "typed" not in fields:
            return None
        return self._question(fields), parse_pins(fields.get("pins", [""])[0])

    async def view(self, shown: Shown) -> View:
        """A question's page, as the record has it now."""
        return await view(self._door, self._askings, *shown)

    def part(self, seen: View) -> str:
        """The part of a question's page that changes."""
        return part("view.html", **self._common, now=now(), view=seen)

    def row(self, item: Remembered) -> str:
        """A row of the list of questions asked lately."""
        return part("row.html", **self._common, now=now(), item=item)

    # -- looking -----------------------------------------------------------------------------------------------------

    async def _home(self, http: HttpRequest) -> Response:
        fields = _fields(http.scope["query_string"])
        if not fields.get("q", [""])[0].strip() and "typed" not in fields:
            return await self._front(http, further(fields))
        try:
            question = self._question(fields)
        except Invalid as error:
            return await self._refused(http, fields, error)
        seen = await self.view((question, parse_pins(fields.get("pins", [""])[0])))
        share = of_question(seen, self._origin(http), self._site.name)
        return self.html(http, "question.html", share=share, view=seen, refresh=seen.asking is not None)

    async def _build(self, http: HttpRequest) -> Response:
        """The builder, empty or with a question that was built."""
        fields = _fields(http.scope["query_string"])
        held = builder.form(builder.read(fields["typed"][0])) if "typed" in fields else {}
        return self.html(http, "build.html", held=held)

    async def _refused(self, http: HttpRequest, fields: dict[str, list[str]], error: Invalid) -> Response:
        """The front page with what is wrong, and with all that was typed; what cannot be shown stands as U+FFFD."""
        if "type" in fields:
            held = {name: _shown(values[0]) for name, values in fields.items()}
            return self.html(http, "build.html", status_of(error), held=held, wrong=error.text)
        words = _shown(fields.get("q", [""])[0])
        return await self._front(http, None, status_of(error), words=words, wrong=error.text)

    async def _front(
        self, http: HttpRequest, asked: Feed | None, status: int = HTTPStatus.OK, **typed: str
    ) -> Response:
        """The front page, or the page of one list from further down. `typed`: what stands in its form, and why."""
        if asked is not None:
            sections, so_far = [section(asked, await self._door.send(asked))], None
        else:
            lately, most = Feed(Order.LATELY), Feed(Order.MOST)
            listed, counted, so_far = await asyncio.gather(
                self._door.send(lately), self._door.send(most), self._door.send(Totals())
            )
            sections = [section(lately, listed)]
            if counted.rows:
                sections.append(section(most, counted))
        traffic = None if self._forge is None else self._forge.traffic()
        shown = {"sections": sections, "so_far": so_far, "traffic": traffic, "words": "", **typed}
        return self.html(http, "home.html", status, **shown)

    async def _request(self, http: HttpRequest) -> Response:
        return _raw((await self._door.send(Show(await self._number(http)))).request.body)

    async def _reply(self, http: HttpRequest) -> Response:
        _, kept = await self._answer(http)
        return _raw(kept.body)

    async def _answer(self, http: HttpRequest) -> tuple[bytes, Kept]:
        """The request's bytes and the answer that an address names. Raises NotFound, NotKept, Withdrawn, Erased."""
        number = str(http.path_params["n"])
        if re.fullmatch(r"[1-9][0-9]{0,8}", number, re.ASCII) is None:
            raise NotFound("Answers are numbered from 1.")
        n = int(number)
        shown = await self._door.send(Show(await self._number(http), n))
        if shown.looked.kept is None:
            decide(Version(n), Known(shown.looked.total, named=shown.looked.named), 0)
            raise NotKept(shown.looked.gone)
        return shown.request.body, shown.looked.kept

    async def _number(self, http: HttpRequest) -> int:
        """The one request a name means."""
        name = str(http.path_params["name"])
        if len(name) != 12 or not set(name) <= set("0123456789abcdef"):
            raise NotFound("A call is named by twelve hex digits.")
        numbers = await self._door.send(Named(name, visitor=True))
        if not numbers:
            raise NotFound(f"No call on record is named {name}.")
        first, *others = numbers
        if others:
            raise Invalid(f"{len(numbers)} requests on record are named {name}; the name alone does not decide.")
        return first

    # -- elsewhere ---------------------------------------------------------------------------------------------------

    def _origin(self, http: HttpRequest) -> str:
        """Where this site is for others; empty for a visitor who came by a name that is not ours."""
        host = http.headers.get("host", "").lower()
        name, _, port = host.rpartition(":")
        ours = host.encode() in self._api.hosts or (
            name.encode() in self._api.hosts and port.isascii() and port.isdigit()
        )
        return self._public or (f"{http.url.scheme}://{host}" if ours else "")

    async def _site_card(self, _: HttpRequest) -> Response:
        return _picture(await self.cards.png(Card(site=self._site.name)), "public, max-age=86400")

    async def _card(self, http: HttpRequest) -> Response:
        """The card of an answer; the site's own for one that is not, or not any more, of a listed question."""
        asked, kept = await self._answer(http)
        words = words_in(asked)
        remembered = None if words is None else await self._door.send(Recall(Question(words)))
        found = pictured(remembered, asked, kept)
        if found is None:
            return _picture(await self.cards.png(Card(site=self._site.name)), HEADERS["cache-control"])
        self._forgetting.begin()
        return _picture(await self.cards.png(Card(*found, self._site.name)), "public, max-age=31536000, immutable")

    async def _robots(self, http: HttpRequest) -> Response:
        return _raw(robots(self._origin(http)).encode())

    async def _sitemap(self, http: HttpRequest) -> Response:
        listed = await self._door.send(Feed(most=SITEMAP_MAX))
        headers = {**HEADERS, "content-type": "application/xml; charset=utf-8"}
        return Response(sitemap(self._origin(http), listed.rows), headers=headers)

    # -- asking ------------------------------------------------------------------------------------------------------

    async def _ask(self, http: HttpRequest) -> Response:
        self._check_own(http)
        body = await read_body(http.receive, by_name(http.scope["headers"]), FORM_BYTES_MAX)
        fields = _fields(body)
        try:
            question = self._question(fields)
        except Invalid as error:
            return await self._refused(http, fields, error)
        pins = parse_pins(fields.get("pins", [""])[0])
        pressed = fields["again"][0] if "again" in fields else None
        if await self._is_free(question, pins, renew="renew" in fields):
            await self._door.send(Noted(question, 1))
        else:
            self._forgetting.begin()
            self._askings.start(question, pins, pressed, self._api.callers.of_page(http.scope), sure="sure" in fields)
        return RedirectResponse(query(question, print_pins(pins)), HTTPStatus.SEE_OTHER, HEADERS)

    async def _is_free(self, question: Question, pins: Pins, *, renew: bool) -> bool:
        """Is there nothing to start? What an older recipe came to stays free, for ↻ of a page from before as well; the
        new one is offered on the page.
        """
        remembered = None if renew else await self._door.send(Recall(question))
        if remembered is None or remembered.recipe == VERSION:
            return False
        return (await view(self._door, self._askings, question, pins)).older_recipe is not None

    def _check_own(self, http: HttpRequest) -> None:
        """A form must come from a page of ours: by its Origin (checked with the Host), or by Sec-Fetch-Site."""
        if "origin" not in http.headers and http.headers.get("sec-fetch-site") != "same-origin":
            raise Forbidden("This form can only be sent from a page of this site.")
        media = http.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/x-www-form-urlencoded":
            raise Invalid("Send the form as application/x-www-form-urlencoded.")

    def _question(self, fields: dict[str, list[str]]) -> Question:
        """The question in a form or address. Raises Invalid with a sentence for whoever typed it."""
        if "type" in fields or "typed" in fields:
            question = builder.build(fields) if "type" in fields else builder.read(fields["typed"][0])
            check_text(question.typed, "question", TYPED_CHARACTERS_MAX)
            return question
        words = fields.get("q", [""])[0].replace("\r\n", "\n").strip()
        if not words:
            raise Invalid("Type a question first.")
        check_text(words, "question", self._characters_max)
        return question_of(words, fields.get("option", []), fields.get("level", []))


def _fields(data: bytes) -> dict[str, list[str]]:
    """The fields of a form or a query string. Raises Invalid for bytes that are no text, or too many fields."""
    if data.count(b"&") >= FIELDS_MAX:
        raise Invalid(f"The form has more than {FIELDS_MAX} fields.")
    try:
        return parse_qs(data.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise Invalid("The form holds bytes that are not text in UTF-8.") from None


def question_of(words: str, options: Sequence[str], levels: Sequence[str]) -> Question:
    """A question as it was typed, with options or levels typed apart. Raises Invalid with a sentence for the typist."""
    found, steps = _list(options, "option", OPTIONS_MAX), _list(levels, "level", LEVELS_MAX)
    if found and steps:
        raise Invalid("Give options or levels, not both.")
    return Question(words, found, steps)


def _list(typed: Sequence[str], name: str, most: int) -> tuple[str, ...]:
    """Options or levels, typed one a line or one a field."""
    lines = [line.strip() for text in typed for line in text.splitlines()]
    found: tuple[str, ...] = tuple(line for line in lines if line)
    for line in found:
        check_text(line, name, OPTION_CHARACTERS_MAX)
    if len(set(found)) != len(found):
        raise Invalid(f"The same {name} stands there twice.")
    if len(found) == 1 or len(found) > most:
        raise Invalid(f"Give 2 to {most} {name}s, one a line; these are {len(found)}.")
    return found


def check_text(text: str, name: str, characters_max: int) -> None:
    """Is what somebody typed short enough, and can all of it be shown? Raises TooLarge or Invalid."""
    if len(text) > characters_max:
        count = f"{len(text):,} characters; at most {characters_max:,} are taken"
        raise TooLarge(f"The {name} has {count}. Nothing was sent.")
    if any(_is_control(c) for c in text):
        raise Invalid(f"The {name} holds a control character that cannot be shown. Take it out and ask again.")


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t"


def _shown(text: str) -> str:
    """What was typed, with U+FFFD for what cannot be shown."""
    return "".join("\ufffd" if _is_control(c) else c for c in text).strip()


def _raw(data: bytes) -> Response:
    """Exact bytes, as text that no browser runs."""
    return Response(data, headers={**HEADERS, "content-type": "text/plain; charset=utf-8"})


def _picture(png: bytes, lasts: str) -> Response:
    """A card, and for how long others may hold it."""
    return Response(png, headers={**HEADERS, "content-type": "image/png", "cache-control": lasts})
