"""What goes over /wire, the door for programs of this machine's owner: messages, their replies and notices, as frames.

One frame is one of these structs in msgpack, tagged with its name. Both ends number what they speak of: a reply, a
refusal or a notice carries the number of the Do or Watch it belongs to, so many may be under way at once.
To let one more message in, add it to `Outside`. What must never be here: sockets, who may come.
"""

from functools import cache
from typing import Any, get_args

import msgspec

from archive.admin import (
    AddToken,
    BackUp,
    Check,
    CheckFile,
    Deliveries,
    Erase,
    Export,
    Facts,
    Import,
    Preview,
    Prove,
    Rebuild,
    RevokeToken,
    Tokens,
    Withdraw,
)
from archive.attempts import Price, Reply
from archive.errors import ArchiveError, BadToken, CallFailed, CallUnknown, Cooling
from archive.live import Notice, Place
from archive.messages import (
    Abouts,
    Ask,
    Feed,
    Health,
    History,
    Judged,
    Look,
    Message,
    Named,
    Noted,
    Recall,
    Show,
    Totals,
    Versions,
)
from archive.request import Destination

PROTOCOL = "askonce.wire.1"
"""The WebSocket subprotocol both ends must name; a change that an older end would misread gets another number."""

Outside = (
    Ask
    | Look
    | Show
    | History
    | Versions
    | Named
    | Recall
    | Noted
    | Feed
    | Totals
    | Judged
    | Abouts
    | Facts
    | Health
    | Check
    | CheckFile
    | Prove
    | BackUp
    | Rebuild
    | AddToken
    | RevokeToken
    | Tokens
    | Deliveries
    | Export
    | Import
    | Preview
    | Erase
    | Withdraw
)
"""All that may be sent from outside the process. What the house tells itself (Finished, Count, Stop) may not."""

# -- from the client ----------------------------------------------------------------------------------------------


class Do(msgspec.Struct, frozen=True, tag=True):
    """Have a message done. It stays raw here, so that one that is not known can be refused by its number."""

    number: int
    message: msgspec.Raw


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Hear the notices for a place, from the Done of this number on."""

    number: int
    place: Place


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Wait no longer for what has this number. A call that is on the wire goes on."""

    number: int


# -- from the server ----------------------------------------------------------------------------------------------


class Behind(msgspec.Struct, frozen=True):
    """Who is behind a base URL, as this server has it. Never a key, only whether it has one.

    `private`: calls may go inside the network. `day_calls_max` 0: no limit.
    """

    name: str
    url: str
    private: bool
    has_key: bool
    price: Price
    day_calls_max: int


class Here(msgspec.Struct, frozen=True, tag=True):
    """The first frame: where this server sends what is asked, and what its pages ask for by default.

    `ask` is where System One questions go, `chat` the language model in front if there is one, `behind` all who may be
    asked but the built-in model.
    """

    ask: Destination
    chat: Destination | None
    model: str
    llm_model: str
    behind: tuple[Behind, ...]


class Done(msgspec.Struct, frozen=True, tag=True):
    """The reply to a message, of the type the message promises."""

    number: int
    reply: msgspec.Raw


class Refused(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """An ArchiveError, whole: what the other end raises again."""

    number: int
    code: str
    text: str
    at: int | None = None
    until: int | None = None
    waited: bool = False
    status: int = 0
    reply: Reply | None = None
    judgment: int | None = None
    missing: bool = False


class Noticed(msgspec.Struct, frozen=True, tag=True):
    """A notice, for the Watch that has this number."""

    number: int
    notice: Notice


_encoder = msgspec.msgpack.Encoder()
from_client = msgspec.msgpack.Decoder(Do | Watch | Leave)
from_server = msgspec.msgpack.Decoder(Here | Done | Refused | Noticed)
message_in = msgspec.msgpack.Decoder(Outside)


def packed(said: object) -> bytes:
    """The msgpack of a struct. A text that is no Unicode (a header's odd bytes) gets U+FFFD for what cannot be sent."""
    try:
        return _encoder.encode(said)
    except UnicodeEncodeError:
        return _encoder.encode(_sendable(msgspec.to_builtins(said, builtin_types=(bytes,))))


def _sendable(value: Any) -> Any:
    match value:
        case str():
            return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
        case dict():
            return {name: _sendable(inner) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_sendable(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


@cache
def reply_to(kind: type[Message[Any]]) -> "msgspec.msgpack.Decoder[Any]":
    """What decodes the reply to a kind of message: the R in its `Message[R]`."""
    ((promised,),) = [get_args(base) for base in kind.__dict__["__orig_bases__"]]
    return msgspec.msgpack.Decoder(promised)


def refused(number: int, error: ArchiveError) -> Refused:
    """An error as a frame."""
    said = Refused(number, error.code, error.text, error.at, error.until, judgment=error.judgment)
    match error:
        case BadToken():
            return msgspec.structs.replace(said, missing=error.missing)
        case CallUnknown():
            return msgspec.structs.replace(said, waited=error.waited)
        case Cooling():
            return msgspec.structs.replace(said, status=error.status)
        case CallFailed():
            return msgspec.structs.replace(said, reply=error.reply)
        case _:
            return said


def error_in(said: Refused) -> ArchiveError:
    """The error a frame holds, of the class it had; plain ArchiveError for a code that is not known here."""
    error = _error(said)
    if said.judgment is not None:
        error.judgment = said.judgment
    return error


def _error(said: Refused) -> ArchiveError:
    match said.code:
        case BadToken.code:
            return BadToken(said.text, missing=said.missing)
        case CallUnknown.code:
            return CallUnknown(said.text, at=said.at or 0, waited=said.waited)
        case Cooling.code:
            return Cooling(said.text, until=said.until or 0, status=said.status)
        case CallFailed.code:
            return CallFailed(said.text, reply=said.reply, at=said.at)
        case code:
            return _kinds().get(code, ArchiveError)(said.text, at=said.at, until=said.until)


@cache
def _kinds() -> dict[str, type[ArchiveError]]:
    found, waiting = dict[str, type[ArchiveError]](), [ArchiveError]
    while waiting:
        kind = waiting.pop()
        found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return found
