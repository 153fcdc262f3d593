"""What only the owner may have done: messages about the record as a whole and about access tokens, and their replies.

What must never be here: how any of it is done, a token's secret.
"""

import unicodedata
from typing import Annotated, TypeVar

import msgspec

from archive.errors import Invalid
from archive.exchange import Verdict
from archive.messages import Message, Number, Sent
from archive.naming import Counted
from archive.tokens import Token

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


class Rebuilt(msgspec.Struct, frozen=True):
    """The look-ups lead to this many texts and requests again; erased ones are not found any more.

    `missing` and `wrong` are rows of the look-ups that were mended, `counts` the counts that were not what the record
    says.
    """

    texts: int
    requests: int
    missing: int
    wrong: int
    counts: int


class Rebuild(Apart[Rebuilt], frozen=True):
    """Work out look-ups and counts anew from the record, all of them or none. Nothing else is done meanwhile."""


class Mark(msgspec.Struct, frozen=True):
    """How far a check of the chain has come: after row `number` of `table`, whose link is `link`. The first: Mark()."""

    table: str = "text"
    number: int = 0
    link: bytes = b""


MENDED = "`askonce doctor --rebuild` mends it"
"""What a fault says that a rebuild takes away."""


class Checked(msgspec.Struct, frozen=True):
    """What a check of some rows found: where it goes on (None: this was the last), how many rows, faults in words."""

    mark: Mark | None
    rows: int
    faults: tuple[str, ...]


class Check(Message[Checked], frozen=True):
    """Check the chain of the next `most` rows after `mark`, and that texts and requests are found."""

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
    """Have SQLite check the store's file, and its tables against each other; what is wrong with them, in words."""


class Facts(Aside[Counted], frozen=True):
    """Count what is known of all named askings, pass by pass. Reads all of them."""


# -- answers on their way out of the record, and into it --------------------------------------------------------------


class Chosen(msgspec.Struct, frozen=True):
    """Which answers are meant: kept from `since` on and before `until` (moments), asked of one destination (its name,
    URL or base URL), named with a pass or an about. `private`: those of private archives too.
    """

    since: int | None = None
    until: int | None = None
    destination: str = ""
    pass_: str = ""
    about: str = ""
    private: bool = False


class Exported(msgspec.Struct, frozen=True):
    """Some answers as lines (archive/exchange.py), oldest first. The next follow after number `after`; None: no more.

    `record` names the record they are of, `end` is the number of its last answer. `elsewhere`: where the destination
    that is meant is not on record, some that are; else None.
    """

    lines: tuple[bytes, ...]
    record: str
    after: int | None
    end: int
    elsewhere: tuple[str, ...] | None = None


class Export(Aside[Exported], frozen=True):
    """Get the answers after number `after`, as many as are read at a time."""

    chosen: Chosen = Chosen()
    after: Number = 0


LINES_MAX = 100
"""Lines that are taken in by one message: some 20 ms in which nobody else is served."""


class Import(Message[tuple[Verdict, ...]], frozen=True):
    """Take answers in that were given elsewhere; a verdict for each line. Nothing is sent, ever.

    `source`: where they come from. `append`: also where a request has other answers here. `private`: into private
    archives too. Without `write` it is only found out what would be done.
    """

    lines: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=LINES_MAX)]
    source: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    append: bool = False
    private: bool = False
    write: bool = False


# -- taking words out, and taking answers back ------------------------------------------------------------------

WORDS_BYTES_MAX = 16 * 1024
"""Of words to be erased: a long question. Longer ones are found by a piece of them."""


class Uses(msgspec.Struct, frozen=True):
    """Who uses a text, or several: how many requests (by whatever part, reply or naming), answers, questions, askings.

    `others`: names of access tokens, and words the owner gave as a reason. `calls`: the call_ids of some requests.
    `one_question`: all of these requests are calls that one question was answered with.
    """

    requests: int = 0
    answers: int = 0
    questions: int = 0
    askings: int = 0
    others: int = 0
    calls: tuple[str, ...] = ()
    one_question: bool = False

    @property
    def shared(self) -> bool:
        """May it be somebody else's too? A question and its own calls are one use."""
        return (self.requests > 1 and not self.one_question) or self.questions > 1 or self.others > 0


class Holding(msgspec.Struct, frozen=True):
    """A stored text that holds the words: its number, length in bytes, who uses it. `begins`: shown in a preview."""

    text: int
    length: int
    uses: Uses
    begins: str = ""


class Previewed(msgspec.Struct, frozen=True):
    """Every text that would go; `upto` is the number of the last text that was looked at."""

    texts: tuple[Holding, ...]
    upto: int


class Preview(Aside[Previewed], frozen=True):
    """Find every text that holds `words`, in whichever spelling. Reads all texts. Raises Invalid."""

    words: str


class Searched(msgspec.Struct, frozen=True):
    """A file that was searched for the words: how often they stand there whole, and how often 24 bytes of them or more.

    `fault`: why it could not be searched to its end.
    """

    file: str
    bytes: int
    whole: int = 0
    pieces: int = 0
    fault: str = ""

    @property
    def clean(self) -> bool:
        return not (self.whole or self.pieces or self.fault)


class Receipt(msgspec.Struct, frozen=True):
    """What was erased, at which moment, and what is left. It holds none of the words.

    `texts`: the numbers of the texts that were emptied, `uses` who used them. `stayed`: texts that hold the words and
    stayed, since others use them too. `searched`: the live files. `copies`: what lies beside the store and was not
    searched.
    """

    at: int
    texts: tuple[int, ...]
    uses: Uses
    stayed: tuple[Holding, ...]
    searched: tuple[Searched, ...]
    copies: tuple[str, ...]

    @property
    def done(self) -> bool:
        """Are the words gone from every live file?"""
        return not self.stayed and bool(self.searched) and all(one.clean for one in self.searched)


class Erase(Apart[Receipt], frozen=True):
    """Empty every text that holds `words`, in whichever spelling, for good. Raises Invalid, RecordClosed.

    A text that more than one request or question uses goes only if `also_shared`; a question and its own calls are one
    use. `found` and `upto` are what a preview found: those texts are looked at again and beside them only newer ones,
    so that others need not wait for all texts to be read.
    """

    words: str
    also_shared: bool = False
    found: tuple[Number, ...] = ()
    upto: Number = 0


def check_words(words: str) -> bytes:
    """The bytes of words that are to be erased. Raises Invalid."""
    data = words.encode("utf-8", "surrogatepass")
    if not words.strip():
        raise Invalid("There are no words to look for.")
    if len(data) > WORDS_BYTES_MAX:
        raise Invalid(f"Words to be erased may have {WORDS_BYTES_MAX} bytes. Name a piece of them.")
    return data


class Withdraw(Message[None], frozen=True):
    """Take answer `n` of a request back, or the word that took it back. Nothing is overwritten, the newest word counts.

    Raises NotFound, Erased.
    """

    request_id: Number
    n: Number
    why: str = ""
    withdrawn: bool = True


# -- access tokens, and who was given what ----------------------------------------------------------------------

NAME_CHARACTERS_MAX = 100

LIMIT_MAX = 10**9
"""Of calls a day and asks a minute: beyond any use, and safe to count with."""


class AddToken(Message[Token], frozen=True):
    """Let whoever shows the secret with this `hash` (SHA-256, 32 bytes) ask over the API.

    The secret is made, and shown once, by who sends this. The fields are those of Token. Raises Invalid.
    """

    name: str
    hash: bytes
    private: bool = False
    fresh: bool = True
    day_calls_max: int = 0
    minute_asks_max: int = 0


class RevokeToken(Message[Token], frozen=True):
    """Let nobody in by token `number` any more, from this moment on. Raises NotFound; twice is as good as once."""

    number: int


class InUse(msgspec.Struct, frozen=True):
    """A token, and how many calls were sent for it today (UTC)."""

    token: Token
    sent_today: int


class Tokens(Message[tuple[InUse, ...]], frozen=True):
    """Every token there ever was, in the order they were made."""


class Delivery(msgspec.Struct, frozen=True):
    """An answer that was handed out: version `n` of a call, when, how, and on which token (0: on none)."""

    call_id: str
    n: int
    at: int
    sent: Sent
    token: int


class Deliveries(Message[tuple[Delivery, ...]], frozen=True):
    """The last deliveries, newest first, as long as this process has lived; they are held in memory alone."""


def check_token(added: AddToken) -> None:
    """Raises Invalid, in words for whoever makes the token."""
    name = added.name
    if not name.strip() or len(name) > NAME_CHARACTERS_MAX or any(unicodedata.category(c)[0] == "C" for c in name):
        raise Invalid(f"A token's name has 1 to {NAME_CHARACTERS_MAX} characters that can be seen.")
    if len(added.hash) != 32:
        raise Invalid("A token is kept as the SHA-256 of its secret, which has 32 bytes.")
    if not (0 <= added.day_calls_max <= LIMIT_MAX and 0 <= added.minute_asks_max <= LIMIT_MAX):
        raise Invalid(f"A token's limits are whole numbers from 0, which means none, to {LIMIT_MAX}.")
