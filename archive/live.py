"""What an open page says to us and hears from us. The words are those of the page; how they travel is web's matter."""

import msgspec

from archive.attempts import State


class Place(msgspec.Struct, frozen=True, tag=True):
    """Where a page is: a route and a question's number. Never a URL with words in it."""

    route: str
    question: int | None = None


class Seen(msgspec.Struct, frozen=True, tag=True):
    """The last thing a page showed of a call."""

    call_id: str
    n: int


class Patch(msgspec.Struct, frozen=True, tag=True):
    """A call has changed: it went on the wire (`state` None), or ended; `n` is the version that came of it."""

    call_id: str
    state: State | None = None
    n: int | None = None


class Stale(msgspec.Struct, frozen=True, tag=True):
    """The page missed something: it should read its own URL again."""


Notice = Patch | Stale
