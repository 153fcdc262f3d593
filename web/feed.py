"""The lists of the front page: which part of which one an address asks for, and the address of what follows.

A cursor is two numbers, `place-number`: by what its row stands there (microseconds since 1970, or times asked) and the
row's own number. What must never be here: HTML, HTTP, a name from an address on its way to SQL.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from archive.errors import Invalid
from archive.messages import After, Feed, Listed, Order, Remembered

TITLES = {Order.LATELY: "Asked lately", Order.MOST: "Most asked"}

_CURSOR = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Section(msgspec.Struct, frozen=True):
    """A part of a list as the page shows it. `further`: not its beginning. `next`: where it goes on, if it does."""

    order: Order
    title: str
    rows: tuple[Remembered, ...]
    further: bool
    next: str | None


def section(asked: Feed, listed: Listed) -> Section:
    """What came for `asked`, ready for the page."""
    after = listed.after
    following = None if after is None else f"/?{asked.order}={after.place}-{after.number}"
    return Section(asked.order, TITLES[asked.order], listed.rows, asked.after is not None, following)


def further(fields: Mapping[str, Sequence[str]]) -> Feed | None:
    """The part of a list that the fields of the front page's address ask for; None: the whole front page.

    Raises Invalid for a cursor that cannot be read and for a list there is not. Fields that mean nothing here are left
    alone, since others add them to links, unless their names could not be anybody's.
    """
    if "sort" in fields or not all(_NAME.fullmatch(name) for name in fields):
        raise Invalid("This address names a list that is not here. There are two: asked lately, and most asked.")
    named = [(order, text) for order in Order for text in fields.get(order, ())]
    if not named:
        return None
    if len(named) > 1:
        raise Invalid("This address asks for more than one part of a list; each has a page of its own.")
    order, text = named[0]
    cursor = _CURSOR.fullmatch(text)
    if cursor is None:
        raise Invalid("This address does not say where in the list it is. The lists begin on the front page.")
    place, number = map(int, cursor.groups())
    return Feed(order, After(place, number))
