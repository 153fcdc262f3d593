"""All that may be said to the actor. Messages are verbs, reports participles; `Message[R]` names what comes back.

What must never be here: what a message does. That is its handler, in archive/actor/actor.py.
"""

from enum import StrEnum
from typing import Annotated, Generic, TypeVar

import msgspec

from archive.answer import Answer
from archive.attempts import Outcome
from archive.health import Condition
from archive.naming import Asking, Naming
from archive.picks import Latest, Pick, Standing
from archive.request import Request

R = TypeVar("R", covariant=True)

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A row's number, or a version's. What comes from outside the process is held to this; so are the two below."""

Most = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
"""How many of something are wanted at once."""

CallId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{12}\Z")]


class Message(msgspec.Struct, Generic[R], frozen=True, tag=True):
    """Something to be done by the actor, answered with an R."""


class Key(msgspec.Struct, frozen=True):
    """A provider's key on its way to the model. Never stored, and never printed by accident.

    `header` is where it is shown, in lower case; in `authorization` it stands behind the word Bearer.
    """

    secret: str = ""
    header: str = "authorization"

    def __repr__(self) -> str:
        return "Key(…)" if self.secret else "Key()"


NO_KEY = Key()


class Caller(msgspec.Struct, frozen=True):
    """Who asks: on which access token, or without one from where. With neither it is the owner, or the house itself.

    `address` is what calls are counted by, and can no longer be read as an address. `visitor`: through a public page,
    so that what is asked belongs to everybody's pages from then on.
    """

    token: int = 0
    address: bytes = b""
    visitor: bool = False


OWNER = Caller()


class Sent(StrEnum):
    """How this asker got the answer: by a call of its own, by somebody else's, or from the record."""

    NOW = "now"
    SHARED = "shared"
    NOT_SENT = "no"


class Kept(msgspec.Struct, frozen=True, weakref=True):
    """One answer on record: version `n` of `total`, the reply's exact bytes, and what is known of the call.

    `cost` is in billionths of a dollar (None: unknown), `ms` how long the call took, `kept_at` a moment.
    `recorded` is False while the record cannot be written: the answer is real, and has no number yet. `request_id` is
    the request's number. `cuts`: of a stream, the bytes in each chunk it came in. `cut_short`: the model stopped at a
    limit before it had finished, so it never counts as a full answer. `imported_from`: it was not sent from here.
    """

    call_id: str
    n: int
    total: int
    status: int
    body: bytes
    content_type: str
    provider_id: str
    kept_at: int
    ms: int
    answered_model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: int | None = None
    recorded: bool = True
    request_id: int = 0
    cuts: tuple[int, ...] = ()
    cut_short: bool = False
    imported_from: str = ""


class Answered(msgspec.Struct, frozen=True):
    """What an asker gets: a kept answer, and how it came. `judgment`: the number of an asking that was named."""

    kept: Kept
    sent: Sent
    judgment: int | None = None


class Ask(Message[Answered], frozen=True):
    """Get an answer to `request` by the rules of `pick`.

    `key` is the asker's own; a call goes up with it where the destination has none.
    `naming`: what it is about. Such an asking is written down and gets a number, whether or not anything is sent.
    Asked on a private token, `request` is one of that token's own archive, whatever it says.
    """

    request: Request
    pick: Pick = Latest()
    key: Key = NO_KEY
    naming: Naming | None = None
    caller: Caller = OWNER


SAID_BYTES_MAX = 1200
"""Of what a model's server said instead of an answer: enough to see why."""


class Looked(msgspec.Struct, frozen=True):
    """How a request stands, without anything being sent.

    `kept`: the answer that was looked for. `gone`: why a named one cannot be had, `named`: how it stands.
    `on_wire_at`, `unknown_at`: when it was sent that has no outcome yet, or no confirmed one. `failed`: why the last
    attempt failed, if it did, and `said` the first SAID_BYTES_MAX of what came then. `refused`: that was the model's
    server saying no to this very request. `cooling_until`: until when the destination asked to be left alone.
    """

    call_id: str
    request_id: int | None = None
    kept: Kept | None = None
    total: int = 0
    gone: str = ""
    on_wire_at: int | None = None
    unknown_at: int | None = None
    failed: str = ""
    cooling_until: int | None = None
    refused: bool = False
    named: Standing | None = None
    said: bytes = b""


class Look(Message[Looked], frozen=True):
    """See how `request` stands: answer `n`, or the newest. Never sends.

    `visitor`: on a public page, where, once there are access tokens, only what was asked on one is to be seen.
    """

    request: Request
    n: Number | None = None
    visitor: bool = False


class Shown(msgspec.Struct, frozen=True):
    """A request on record: where it went, its exact bytes, and an answer of it."""

    request: Request
    looked: Looked


class Show(Message[Shown], frozen=True):
    """Get request number `request_id` and its answer `n`, or the newest. Raises NotFound, Erased."""

    request_id: Number
    n: Number | None = None


class History(Message[tuple[Kept, ...]], frozen=True):
    """Get the answers of a request that can be had, newest first, at most `most`."""

    request_id: Number
    most: Most = 50


class Numbered(msgspec.Struct, frozen=True):
    """How one version of a request stands; `kept` is None for one that was withdrawn or erased."""

    standing: Standing
    kept: Kept | None


class Versions(Message[tuple[Numbered, ...]], frozen=True):
    """Get every version of a request, those that cannot be had too: the ones after number `after`, at most `most`."""

    request_id: Number
    after: Number = 0
    most: Most = 50


class Named(Message[tuple[int, ...]], frozen=True):
    """The numbers of the requests that have this call_id, those of private archives too; a name may mean several.

    To a `visitor` those of the shared archive alone, and as in Look.
    """

    call_id: CallId
    visitor: bool = False


class Conclusion(msgspec.Struct, frozen=True):
    """What a question came to: its kind, the answer, or what is missing for one (`needs`: options, form, or better).

    `better`: the language model in front was asked for a form, and what it said is none.
    """

    kind: str
    answer: Answer | None = None
    needs: str = ""
    claim: str = ""
    """What was judged true or not, where the language model in front put the question so."""


class Made(msgspec.Struct, frozen=True):
    """A call a question was answered by: its title, the request's number, and the version it gave."""

    title: str
    request_id: int
    n: int


class Question(msgspec.Struct, frozen=True):
    """What somebody asks: the words, and options or levels where they were typed apart. Equal means the same.

    `typed`: a whole System One question put together by hand, as JSON; then the words are its instructions.
    """

    words: str
    options: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    typed: str = ""


class Remembered(msgspec.Struct, frozen=True):
    """A question on record: how often and when it was asked, and what it came to when it was last asked."""

    number: int
    question: Question
    times: int
    first_at: int
    last_at: int
    recipe: int
    calls: tuple[Made, ...]
    conclusion: Conclusion
    listed: bool


class Recall(Message[Remembered | None], frozen=True):
    """Get what is remembered of a question."""

    question: Question


class Noted(Message[None], frozen=True):
    """A question was asked `times` times and came to this. Reports from the pages; writes the question's row.

    `conclusion` None: it was only asked again, and what it came to stays. `alone`: the decision model answered it, with
    no language model in front.
    """

    question: Question
    times: Number
    recipe: Number = 0
    calls: tuple[Made, ...] = ()
    conclusion: Conclusion | None = None
    listed: bool = False
    alone: bool = False


class Visited(Message[None], frozen=True):
    """Somebody looks at the page of question `number`: it counts as asked once more. Written with the next counts.

    When it was asked last stays: looking moves nothing in the list of what was asked lately.
    """

    number: int


class Order(StrEnum):
    """How the listed questions stand in the feed; both with the newer of two equals first."""

    LATELY = "lately"
    MOST = "most"


class After(msgspec.Struct, frozen=True):
    """Where a page of the feed ended: by what its last row stands there (moment, or times asked), and its number."""

    place: Number
    number: Number


class Listed(msgspec.Struct, frozen=True):
    """A page of the feed. `after`: where the next one begins; None: this is the last."""

    rows: tuple[Remembered, ...]
    after: After | None = None


class Feed(Message[Listed], frozen=True):
    """A page of the listed questions, at most `most`, from the top or from where another page ended."""

    order: Order = Order.LATELY
    after: After | None = None
    most: Most = 50


class SoFar(msgspec.Struct, frozen=True):
    """All there was until now. Dollars are in billionths, and each sum has beside it how many prices are unknown.

    `questions` listed or not, `asked` how often. `sent`: calls that left, and ended. `not_sent`: deliveries without a
    call of their own, from the record or shared; `saved` is what their answers cost when they were made. `alone`:
    questions that the decision model answered with no language model in front.
    """

    questions: int = 0
    asked: int = 0
    sent: int = 0
    spent: int = 0
    spent_unknown: int = 0
    not_sent: int = 0
    saved: int = 0
    saved_unknown: int = 0
    alone: int = 0


class Totals(Message[SoFar], frozen=True):
    """Count all there was until now, as far as it is written."""


class Health(Message[Condition], frozen=True):
    """See how the record is."""


class Judgment(msgspec.Struct, frozen=True):
    """One asking whole. `request` and `kept` are None where there is none (yet), or as `asking.gone` says."""

    asking: Asking
    request: Request | None
    kept: Kept | None


class Judged(Message[Judgment], frozen=True):
    """Get the asking that a judgment number names. Raises NotFound."""

    number: Number


class Abouts(Message[tuple[Asking, ...]], frozen=True):
    """All that was ever asked about `about`, newest first, at most `most`; `before`: only numbers below this one."""

    about: str
    before: Number | None = None
    most: Most = 100


class Finished(Message[None], frozen=True):
    """A call ended, or its limit ran out (`Outcome.state` unknown) and it is still listened to."""

    dispatch: int
    outcome: Outcome
    ms: int


class Count(Message[None], frozen=True):
    """Write the delivery counts that have added up in memory."""


class Stop(Message[None], frozen=True):
    """Take nothing more, give the calls on the wire a last limit, close the record."""
