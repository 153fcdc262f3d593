"""Everything this house can refuse or fail at, as one small tree; each error has a code and a public text.

    ArchiveError
    ├── Invalid        the asking itself is wrong
    │   └── TooLarge   ... because it is too big
    ├── NotFound       there is no such thing
    │   └── NotKept    ... no such answer on record, and nothing may be sent
    ├── Withdrawn      the owner took the answer back (`at`)
    ├── Erased         a person's words were taken out (`at`)
    ├── BadToken       no access token was shown (`missing`), or none that counts here
    ├── Forbidden      not from there, not with that
    ├── OverLimit      a limit is used up; `until` says when it lifts
    ├── Busy           no room at this moment
    ├── Cooling        the destination told us to wait; `until` says when that ends
    ├── CallFailed     the model did not answer (`reply` is what it said, if it said anything)
    ├── CallUnknown    sent, no confirmed reply (`at`); never sent again by itself
    ├── RecordClosed   the record cannot be written, so nothing may be sent
    └── Disconnected   the server that was spoken to over /wire is gone; what it was doing goes on there

What must never be here: HTTP statuses (web/errors.py has them), a caller's words, text of a foreign exception.
"""

from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from archive.attempts import Reply


class ArchiveError(Exception):
    """What an asker is told instead of an answer. `text` may be shown to anyone.

    `judgment`: the number of a named asking whose call came to no answer; it is on record all the same.
    """

    code: ClassVar[str] = "internal"
    judgment: int | None = None

    def __init__(self, text: str, *, at: int | None = None, until: int | None = None) -> None:
        """`at`: the moment it speaks of; `until`: the moment it ends. Both in microseconds since 1970, UTC."""
        super().__init__(text)
        self.text = text
        self.at = at
        self.until = until

    def again(self) -> Self:
        """The same error as another object: one that many are told of is raised by each for himself."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__)
        return other


class Invalid(ArchiveError):
    code = "invalid"


class TooLarge(Invalid):
    code = "too_large"


class NotFound(ArchiveError):
    code = "not_found"


class NotKept(NotFound):
    code = "not_kept"


class Withdrawn(ArchiveError):
    code = "withdrawn"


class Erased(ArchiveError):
    code = "erased"


class BadToken(ArchiveError):
    """`missing` is true for those who showed none. The code is System One's own, which its clients look for."""

    code = "authentication_error"

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class Forbidden(ArchiveError):
    code = "forbidden"


class OverLimit(ArchiveError):
    code = "over_limit"


class Busy(ArchiveError):
    code = "busy"


class Cooling(ArchiveError):
    """`status` is the one the destination used (429, 503 or 529)."""

    code = "cooling"

    def __init__(self, text: str, *, until: int, status: int) -> None:
        super().__init__(text, until=until)
        self.status = status


class CallFailed(ArchiveError):
    """`reply` is the provider's own refusal, complete; None when nothing reached it."""

    code = "call_failed"

    def __init__(self, text: str, *, reply: "Reply | None" = None, at: int | None = None) -> None:
        super().__init__(text, at=at)
        self.reply = reply


class CallUnknown(ArchiveError):
    """`waited` is true for those who waited on the very call, false for those who asked later."""

    code = "call_unknown"

    def __init__(self, text: str, *, at: int, waited: bool) -> None:
        super().__init__(text, at=at)
        self.waited = waited


class RecordClosed(ArchiveError):
    code = "record_closed"


class Disconnected(ArchiveError):
    code = "disconnected"
