"""What the actor tells of, and what an open page and we say to each other over /live.

The words are those of the page; how they travel, and what HTML is in them, is web's matter.
"""

import msgspec

from archive.attempts import State
from archive.messages import Question

# -- told by the actor, after its commit --------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True, tag=True):
    """Where a listener is: a route and a question's number. Never a URL with words in it."""

    route: str
    question: int | None = None


class Changed(msgspec.Struct, frozen=True, tag=True):
    """A call went on the wire (`state` None), or ended; `n` is the version that came of it."""

    call_id: str
    state: State | None = None
    n: int | None = None


class Asked(msgspec.Struct, frozen=True, tag=True):
    """A question was asked and noted."""

    question: Question
    listed: bool


class Imported(msgspec.Struct, frozen=True, tag=True):
    """These calls have answers that were given elsewhere."""

    calls: tuple[str, ...]


class Stale(msgspec.Struct, frozen=True, tag=True):
    """Something was missed: what is shown must be read again."""


class Forgotten(msgspec.Struct, frozen=True, tag=True):
    """The owner erased words or withdrew an answer: whatever a listener holds of before is to be let go, and what it
    shows to be read again.
    """


Notice = Changed | Imported | Asked | Stale | Forgotten

# -- said by a page ---------------------------------------------------------------------------------------------


class At(msgspec.Struct, frozen=True, tag=True):
    """Where the page is: its own address, from the / on. Kept in memory while it is open, and nowhere else.

    `more`: this is not all of it; the next message goes on.
    """

    url: str
    more: bool = False


class Seen(msgspec.Struct, frozen=True, tag=True):
    """The last thing the page showed: the token its part came with.

    `looked`: somebody came by a link and has it before their eyes, which counts as asking. A page says so once, when
    it is visible; never one that a form of ours led to (that was counted), a reload, or the way back.
    """

    token: str
    looked: bool = False


# -- said to a page -----------------------------------------------------------------------------------------------


class Build(msgspec.Struct, frozen=True, tag=True):
    """Which build of the site this is; the first thing a page hears."""

    build: str


class Online(msgspec.Struct, frozen=True, tag=True):
    """How many pages are open."""

    pages: int


class Patch(msgspec.Struct, frozen=True, tag=True):
    """Replace the elements of the same ids by these."""

    html: str


class Row(msgspec.Struct, frozen=True, tag=True):
    """A row for the top of the list of questions asked lately."""

    html: str
