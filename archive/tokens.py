"""Access tokens: who may ask over the API, how often, and out of whose archive. Plain rules on plain values.

A secret holds 32 random bytes, so nobody finds it by trying, and one plain SHA-256 of it is all that is kept. A salt
and a slow hash are for passwords, which people choose; here they would only make every ask slow.
What must never be here: a secret that is kept, a clock, randomness.
"""

from hashlib import sha256

import msgspec

from archive.errors import BadToken, OverLimit
from archive.picks import Fresh, Pick
from archive.when import SECOND

PREFIX = "ask_"
"""How every secret begins, so that it is known for what it is wherever it turns up."""

SECRET_BYTES = 32
"""Random bytes in a secret; they follow the prefix in base64url, without padding."""

MISSING = (
    "Must supply an API key! Show an access token of this server as Authorization: Bearer ask_..., or as X-API-Key."
)
WRONG = "Cannot authenticate with the server. No access token of this server is like that, or it was revoked."
NOT_AFRESH = (
    "This token may not ask afresh. It gets kept answers, and may ask what nobody asked before, and what is unknown."
    " Nothing was sent."
)


class Token(msgspec.Struct, frozen=True):
    """An access token as the record has it; its secret is not in it.

    `private`: its requests make an archive of their own. `fresh`: may it ask afresh what
    is answered? `day_calls_max`: calls that may be
    sent for it a day (UTC), `minute_asks_max`: asks a minute; 0 means no limit. `made_at`, `revoked_at` are moments.
    """

    number: int
    name: str
    private: bool = False
    fresh: bool = True
    day_calls_max: int = 0
    minute_asks_max: int = 0
    made_at: int = 0
    revoked_at: int | None = None

    @property
    def partition(self) -> str:
        """Whose archive its requests belong to. No number is given twice, so no archive gets another owner."""
        return f"token {self.number}" if self.private else ""


def hashed(secret: bytes) -> bytes:
    """What is kept of a secret, 32 bytes."""
    return sha256(secret).digest()


def admit(token: Token | None) -> Token:
    """The token. Raises BadToken for none and for one that was revoked."""
    if token is None or token.revoked_at is not None:
        raise BadToken(WRONG)
    return token


def may_ask(token: Token, pick: Pick, *, unknown: bool) -> bool:
    """May it ask so? `unknown`: the request was sent, and has no confirmed answer and no other one.

    To send that again is no second answer beside a first, so it takes no leave to ask afresh.
    """
    return token.fresh or unknown or not isinstance(pick, Fresh)


class Minute(msgspec.Struct, frozen=True):
    """A minute that began with somebody's first ask, and how many came in it. `ends` in seconds, monotonic."""

    ends: float
    count: int


def one_more(minute: Minute | None, monotonic: float, now: int, most: int, text: str) -> Minute:
    """The minute with one ask more. Raises OverLimit, saying `text` and when it lifts, for one too many.

    `monotonic` and `now` are the same instant, by the clock that never goes back and by the one people read.
    """
    if minute is None or monotonic >= minute.ends:
        return Minute(monotonic + 60.0, 1)
    if minute.count >= most:
        raise OverLimit(text, until=now + round((minute.ends - monotonic) * SECOND))
    return Minute(minute.ends, minute.count + 1)
