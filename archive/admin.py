"""What only the owner may have done: messages about the record as a whole, and what they are answered with.

What must never be here: how any of it is done.
"""

from typing import TypeVar

import msgspec

from archive.messages import Message
from archive.naming import Counted

R = TypeVar("R", covariant=True)


class Aside(Message[R], frozen=True):
    """A message that is worked beside all others, on a connection that only reads."""


class Apart(Message[R], frozen=True):
    """A message that is worked alone, outside of the transaction that others share."""


class Tried(msgspec.Struct, frozen=True):
    """One road to a changed record that was tried: what the database said to it, and whether it was open.

    `wanted`: this one has to be open (a text may be emptied, an answer added).
    """

    road: str
    said: str
    open: bool
    wanted: bool = False

    @property
    def as_promised(self) -> bool:
        return self.open is self.wanted


class Proof(msgspec.Struct, frozen=True):
    """Every road that was tried, and whether the record is the same after as before."""

    tried: tuple[Tried, ...]
    unchanged: bool

    @property
    def holds(self) -> bool:
        return self.unchanged and all(one.as_promised for one in self.tried)


class Prove(Apart[Proof], frozen=True):
    """Try to change what is kept, on every road there is, inside a transaction that is undone."""


class Mark(msgspec.Struct, frozen=True):
    """How far a check of the chain has come: after row `number` of `table`, whose link is `link`. The first: Mark()."""

    table: str = "text"
    number: int = 0
    link: bytes = b""


class Checked(msgspec.Struct, frozen=True):
    """What a check of some rows found: where it goes on (None: this was the last), how many rows, faults in words."""

    mark: Mark | None
    rows: int
    faults: tuple[str, ...]


class Check(Message[Checked], frozen=True):
    """Check the chain of the next `most` rows after `mark`."""

    mark: Mark = Mark()
    most: int = 2_000


class BackedUp(msgspec.Struct, frozen=True):
    """A backup that was opened, checked and counted: its file, size, how many answers it holds, the ends of the chain.

    `heads`: by table, the number and link of the last row. Kept elsewhere, they show later whether rows were altered.
    """

    file: str
    bytes: int
    answers: int
    heads: dict[str, str]


class BackUp(Aside[BackedUp], frozen=True):
    """Write a copy of the whole record to `file`, a name on the server that is not taken. Raises Invalid."""

    file: str


class CheckFile(Aside[tuple[str, ...]], frozen=True):
    """Have SQLite check the store's file; what it finds wrong, in words."""


class Facts(Aside[Counted], frozen=True):
    """Count what is known of all named askings, pass by pass. Reads all of them."""
