"""Says what calls are about, for any Python client: blocks that nest, and headers that go with each call.

    with about(pass_="keeper.pair", about="pair:12-40", reading="same: noul >= 0.6; else other"):
        with about(inputs=[left, right]) as block:
            client.system_one(..., extra_headers=headers())

Blocks follow the flow of control: into functions and tasks made inside them, into threads that are given a copy of the
context (`asyncio.to_thread`, `contextvars.copy_context().run`).
What must never be here: an import of any HTTP client.
"""

import json
import string
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote

from archive.naming import Input, Naming, check_alone

_PLAIN = "".join(sorted({*string.punctuation, " "} - {"%"}))
"""What stands in a header as it is."""


class NoJudgment(LookupError):
    """A reply without a judgment number: the asking was not named, was refused, or did not go through Askonce."""


class Block:
    """What is named inside one `with about(...)`, and the judgment numbers that came back inside it."""

    def __init__(self, naming: Naming, outer: "Block | None") -> None:
        self.naming = naming
        self._outer = outer
        self._judgments: dict[int, None] = {}

    @property
    def judgments(self) -> tuple[int, ...]:
        """The numbers that came back, in order, each once."""
        return tuple(self._judgments)

    @property
    def judgment(self) -> int:
        """The last of them. Raises NoJudgment."""
        if not self._judgments:
            raise NoJudgment("No judgment number has come back inside this block.")
        return next(reversed(self._judgments))

    def note(self, number: int) -> None:
        """A number came back, here and so in every block around this one."""
        self._judgments[number] = None
        if self._outer is not None:
            self._outer.note(number)


_current: ContextVar[Block | None] = ContextVar("askonce_about", default=None)


@contextmanager
def about(
    *, pass_: str = "", about: str = "", reading: str = "", inputs: Sequence[str] | Mapping[str, str] = ()
) -> Generator[Block, None, None]:
    """Name every asking made inside: its pass, what is judged, how the answer is read, the inputs (named or not).

    What is left out comes from the block around; inputs are added to those of the block around. Raises
    archive.errors.Invalid for a reading that cannot be read, and for what is too long; TypeError for what is no string.
    """
    for name, words in (("pass_", pass_), ("about", about), ("reading", reading)):
        _check_string(name, words)
    outer = _current.get()
    above = Naming() if outer is None else outer.naming
    naming = Naming(
        pass_ or above.pass_, about or above.about, reading or above.reading, (*above.inputs, *_inputs(inputs))
    )
    check_alone(naming)
    block = Block(naming, outer)
    token = _current.set(block)
    try:
        yield block
    finally:
        _current.reset(token)


def _inputs(given: Sequence[str] | Mapping[str, str]) -> list[Input]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("inputs is a list of strings, or a dict of names and strings")
    pairs = list(given.items()) if isinstance(given, Mapping) else [("", words) for words in given]
    for name, words in pairs:
        _check_string("the name of an input", name)
        _check_string("an input", words)
    return [Input(name, words) for name, words in pairs]


def _check_string(what: str, said: object) -> None:
    if not isinstance(said, str):
        raise TypeError(f"{what} is a string, not {type(said).__name__}")


def headers() -> dict[str, str]:
    """The headers that name an asking as the blocks around say; none outside of any."""
    block = _current.get()
    if block is None:
        return {}
    naming = block.naming
    inputs = [{one.name: one.words} if one.name else one.words for one in naming.inputs]
    named = {
        "Archive-Pass": naming.pass_,
        "Archive-About": naming.about,
        "Archive-Reading": naming.reading,
        "Archive-Inputs": json.dumps(inputs) if inputs else "",
    }
    return {header: _encoded(words) for header, words in named.items() if words}


def _encoded(words: str) -> str:
    inner = quote(words, safe=_PLAIN)
    # HTTP takes spaces off a header's ends.
    start, end = len(inner) - len(inner.lstrip(" ")), len(inner) - len(inner.rstrip(" "))
    return "%20" * start + inner.strip(" ") + "%20" * end


def judgment(reply: object) -> int:
    """The judgment number of a reply; the block around remembers it. Raises NoJudgment.

    `reply`: headers, a plain dict too, or what has them: a response of httpx, aiohttp or requests, of the official SDK,
    or its error.
    """
    number = _number(reply)
    if number is None:
        raise NoJudgment("This reply has no Archive-Judgment: name the asking with headers(), and ask through Askonce.")
    _note(number)
    return number


def _number(reply: object) -> int | None:
    found: Any = reply
    for name in ("raw_http_response", "response", "headers"):
        found = getattr(found, name, found)
    # Clients' own headers are read in any letters, a plain dict is not.
    said = {str(name).lower(): str(value) for name, value in found.items()} if hasattr(found, "items") else {}
    value = said.get("archive-judgment", "")
    return int(value) if value.isdecimal() else None


def _note(number: int | None) -> None:
    block = _current.get()
    if block is not None and number is not None:
        block.note(number)


# -- hooks: with these nothing need be done at each call ---------------------------------------------------------------


def hooks() -> dict[str, list[Any]]:
    """`event_hooks` for an httpx client; for the official SDK: `http_client=httpx2.Client(event_hooks=hooks())`."""
    return {"request": [_put], "response": [_took]}


def async_hooks() -> dict[str, list[Any]]:
    """`event_hooks` for an asynchronous httpx client."""

    async def put(request: Any) -> None:
        _put(request)

    async def took(response: Any) -> None:
        _took(response)

    return {"request": [put], "response": [took]}


async def middleware(request: Any, handler: Any) -> Any:
    """For aiohttp 3.12 or newer: `ClientSession(middlewares=[middleware])`."""
    _put(request)
    response = await handler(request)
    _took(response)
    return response


def _put(request: Any) -> None:
    request.headers.update(headers())


def _took(response: Any) -> None:
    _note(_number(response.headers))
