"""A visitor without JavaScript, and an upstream that answers whatever the recipe asks."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from yarl import URL

from tests.fakes import Got, Said, Site, Upstream, site, upstream
from tests.html import Element, read
from web.asking import Askings

FORM = "application/x-www-form-urlencoded"


@dataclass
class Jev:
    """What the upstream says to each question it is asked; to be set at any moment.

    `noul` counts up by a hundredth with every call when `counting`, so that no two answers are alike.
    """

    kind: str = "yes_no"
    fit: float = 0.9
    noul: float = 0.83
    choice: int = 0
    score: float = 2.4
    model: str = "jev-1.13.0"
    counting: bool = False
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def reply(self, body: bytes) -> bytes:
        """A whole System One reply to a request."""
        asked = json.loads(body)
        self.asked.append(asked)
        answers = {name: self._answer(name, question) for name, question in asked["questions"].items()}
        usage = {"input_tokens": 131, "output_tokens": 20, "cost": 0.00006}
        return json.dumps({"model": self.model, "answers": answers, "usage": usage, **self.more}).encode()

    def _answer(self, name: str, question: dict[str, Any]) -> dict[str, Any]:
        options = list(question["criteria"])
        match question["type"]:
            case "noul":
                if self.counting and name == "answer":
                    self.noul = round(self.noul + 0.01, 2)
                return {"type": "noul", "noul": self.fit if name == "fit" else self.noul}
            case "choice":
                chosen = self.kind if name == "kind" else options[self.choice]
                others = round(0.3 / max(1, len(options) - 1), 2)
                shares = {option: 0.7 if option == chosen else others for option in sorted(options)}
                return {"type": "choice", "choice": chosen, "confidence": 0.6, "probabilities": shares}
            case _:
                shares = {str(n): round(1 / len(options), 2) for n in range(len(options))}
                legend = {str(n): option for n, option in enumerate(options)}
                return {
                    "type": "score", "score": self.score, "confidence": 0.4, "legend": legend, "probabilities": shares,
                }  # fmt: skip


@dataclass
class Page:
    """A response, and its HTML where it is some."""

    status: int
    headers: Any
    body: bytes

    @property
    def html(self) -> Element:
        return read(self.body)

    @property
    def words(self) -> str:
        """The few words printed large."""
        return next(p.text for p in self.html.one("main").all("p") if "word" in p["class"].split())

    @property
    def main(self) -> str:
        """All text of the page's own part, with single spaces."""
        return self.html.one("main").spaced

    @property
    def calls(self) -> list[Element]:
        return self.html.all("article")

    @property
    def states(self) -> list[str]:
        """What each call is said to be."""
        return [call["class"].removeprefix("row call ") for call in self.calls]

    @property
    def names(self) -> list[str]:
        """`call_id:n` of each call, or the call_id alone."""
        return [call.one("header").one("code").text for call in self.calls]

    @property
    def refreshes(self) -> bool:
        return [meta.get("content") for noscript in self.html.all("noscript") for meta in
                (found.attributes for found in noscript.all("meta", http_equiv="refresh"))] == ["1"]  # fmt: skip


@dataclass
class Visitor:
    """Somebody with a browser that runs no scripts. `now` is what pages take for this moment: all is just now."""

    here: Site
    askings: list[Askings]
    model: Upstream
    jev: Jev
    now: int = 0

    @property
    def sent(self) -> int:
        """How many requests have gone up."""
        return len(self.model.got)

    async def request(self, method: str, path: str, data: bytes | None = None, **headers: str) -> Page:
        """One request, its address and headers exactly as given; redirects are not followed."""
        address = URL(self.here.url + path, encoded=True)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.here.http.request(method, address, data=data, headers=sent, allow_redirects=False) as response:
            return Page(response.status, response.headers.copy(), await response.read())

    async def get(self, path: str = "/", **headers: str) -> Page:
        return await self.request("GET", path, None, **headers)

    async def look(self, words: str, pins: str = "", **more: list[str]) -> Page:
        """A question's page."""
        return await self.get(address(words, pins, **more))

    async def post(self, words: str, **more: Any) -> Page:
        """Send the form for a question; the redirect, or what was said instead."""
        data = urlencode({"q": words, **more}, doseq=True).encode()
        return await self.submit(data)

    async def press(self, form: Element, **typed: Any) -> Page:
        """Submit a form of a page as it stands, wait until nothing is being asked, and see where it leads."""
        fields = {area["name"]: area.text for area in form.all("textarea")}
        pairs = [(one["name"], one["value"]) for one in form.all("input") if "value" in one.attributes]
        pairs += list({**fields, **typed}.items())
        return await self.follow(await self.submit(urlencode(pairs).encode()))

    async def submit(self, data: bytes) -> Page:
        """Send a form's bytes, as a browser on one of our pages does."""
        return await self.request("POST", "/ask", data, Content_Type=FORM, Sec_Fetch_Site="same-origin")

    async def follow(self, said: Page) -> Page:
        assert said.status == 303, said.body
        await self.settled()
        return await self.get(said.headers["Location"])

    async def ask(self, words: str, **more: Any) -> Page:
        """Ask, wait until the asking is over, and see the page."""
        return await self.follow(await self.post(words, **more))

    async def settled(self) -> None:
        """Wait until nothing is being asked."""
        async with asyncio.timeout(30):
            for askings in self.askings:
                await askings.settled()

    async def api(self, **headers: str) -> Said:
        """Put the question of the last request over the API."""
        return await self.here.ask(self.model.got[-1].body, **headers)


def address(words: str, pins: str = "", **more: list[str]) -> str:
    """The address of a question's page."""
    return "/?" + urlencode({"q": words, **more, **({"pins": pins} if pins else {})}, doseq=True)


@asynccontextmanager
async def visitor(store: Path, at: Upstream | None = None, jev: Jev | None = None, **more: Any) -> AsyncGenerator[
    Visitor, None
]:  # fmt: skip
    """A visitor of a whole server in front of a `Jev`."""
    if at is None:
        async with upstream() as own, visitor(store, own, jev, **more) as found:
            yield found
        return
    model, said, made = at, jev or Jev(), list[Askings]()

    def kept(*args: Any) -> Askings:
        made.append(Askings(*args))
        return made[-1]

    async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
        model.reply = said.reply(got.body)
        writer.write(model.response())
        await writer.drain()

    model.behave = behave
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("web.app.Askings", kept)
        async with site(store, model.url, **more) as here:
            found = Visitor(here, made, model, said)
            patch.setattr("web.pages.now", lambda: found.now)
            yield found
            if model.gate is not None:
                model.gate.set()
            await found.settled()
