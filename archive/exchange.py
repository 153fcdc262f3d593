"""Answers as lines of JSON: how one is written down for another record, and which lines may be taken in.

A line is one answer with its request, every byte of both: a body that is UTF-8 stands there as a string, any other as
base64. What must never be here: files, the record, the formats of other programs (web/commands/foreign.py).
"""

import base64
import json
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, cast
from urllib.parse import urlsplit

import msgspec

from archive.attempts import WHY_TEXT, Outcome, Reply, State, read
from archive.errors import Invalid
from archive.reach import query_problem
from archive.request import Destination, Request, asked_model
from archive.when import DAY, iso, parse

FORMAT = 1
"""A change that an older program would misread gets another number."""

HEADER_CHARACTERS_MAX = 8 * 1024
"""Of a URL, a content type, the value of a header: they go out as headers again."""

COST_MAX = 1_000_000.0
"""Dollars of one answer; as in archive/attempts.py."""

HEADER = b'{"askonce_export":'
"""What every export begins with."""

_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_METHOD = re.compile(r"[A-Z]{1,20}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATORS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Some readers take these for the end of a line. In JSON they can only stand inside a string."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class LineRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was asked; see archive.request.Request."""

    destination: Destination
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()
    partition: str = ""
    body: str | None = None
    body_base64: str | None = None


class LineReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came back; see archive.attempts.Reply."""

    status: int
    content_type: str = ""
    provider_id: str = ""
    body: str | None = None
    body_base64: str | None = None
    cuts: tuple[Count, ...] = ()


class LineInput(msgspec.Struct, frozen=True):
    """Words that went into a named asking."""

    name: str
    words: str


class LineAsking(msgspec.Struct, frozen=True, omit_defaults=True):
    """An asking that was named and got this answer; `judgment` is its number in the record it comes from."""

    judgment: int
    at: str
    pass_: str = msgspec.field(name="pass", default="")
    about: str = ""
    reading: str = ""
    inputs: tuple[LineInput, ...] = ()


class Line(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One answer: version `n` of a call, when it was sent and kept, and what is known of it.

    `model` is the one that answered. `cost_made` is in dollars; None is unknown. `withdrawn`: `gone_at` and `why` are
    the owner's. `erased`: neither request nor reply is there any more. Of the askings the first are listed.
    """

    call: str | None
    n: Annotated[int, msgspec.Meta(ge=1)]
    standing: Literal["kept", "withdrawn", "erased"]
    sent_at: str
    kept_at: str
    ms: Count
    asked_model: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_made: float | None
    cut_short: bool
    imported_from: str | None
    gone_at: str | None = None
    why: str = ""
    request: LineRequest | None = None
    reply: LineReply | None = None
    askings: tuple[LineAsking, ...] = ()
    askings_left_out: int = 0


class Took(StrEnum):
    """What became of a line: taken in, already here, not taken since there are others here or since its words were
    erased where it comes from, or refused."""

    NEW = "new"
    HERE = "here"
    OTHERS = "others"
    ERASED = "erased"
    REFUSED = "refused"


class Verdict(msgspec.Struct, frozen=True):
    """What became of a line, and why it was refused, if it was."""

    took: Took
    why: str = ""


class Taken(msgspec.Struct, frozen=True):
    """An answer that may go into the record, read as if it had come from the model itself.

    `imported_from` is what the line says of its own origin; `withdrawn_at`, `why`: the owner there took it back.
    """

    request: Request
    outcome: Outcome
    sent_at: int
    kept_at: int
    ms: int
    asked_model: str | None
    imported_from: str
    withdrawn_at: int | None
    why: str


def header(record: str, at: int) -> bytes:
    """The first line of an export: its format, which record it is of, and when it was made."""
    return written({"askonce_export": FORMAT, "record": record, "made_at": iso(at)})


def header_in(line: bytes) -> str | None:
    """The record that a first line names; None for any other line. Raises Invalid for a format that is not known."""
    if not line.startswith(HEADER):
        return None
    said = _loaded(line)
    found = cast("dict[str, object]", said) if isinstance(said, dict) else {}
    if found.get("askonce_export") != FORMAT:
        raise Invalid(f"This export is of another format; this program reads format {FORMAT}.")
    name = found.get("record")
    return _header_text(name if isinstance(name, str) else "", "the record's name")


def written(said: object) -> bytes:
    """A line of JSON, without its end. Texts that are no Unicode are escaped, so that they come back as they were."""
    said = msgspec.to_builtins(said)
    text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
    for character, escaped in _SEPARATORS.items():
        text = text.replace(character, escaped)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(said, separators=(",", ":")).encode()


def request_line(request: Request) -> LineRequest:
    """A request as it stands in a line."""
    body, base = _told(request.body)
    return LineRequest(request.destination, request.content_type, request.headers, request.partition, body, base)


def reply_line(reply: Reply) -> LineReply:
    """A reply as it stands in a line."""
    return LineReply(reply.status, reply.content_type, reply.provider_id, *_told(reply.body), reply.cuts)


def _told(body: bytes) -> tuple[str | None, str | None]:
    try:
        return body.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(body).decode()


def line_in(data: bytes) -> Line:
    """Read a line. Raises Invalid, saying what is wrong with it."""
    try:
        return msgspec.convert(_loaded(data), Line)
    except msgspec.ValidationError as error:
        raise Invalid(f"it is no answer: {error}") from None
    except UnicodeEncodeError:
        # msgspec says which value is wrong, and cannot say this one.
        raise Invalid("it is no answer: where a number or a word of the format belongs it holds no text") from None


def _loaded(data: bytes) -> object:
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError:
        raise Invalid("it is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"it is no JSON, or not whole: {error}") from None


def taken(line: Line, now: int) -> Taken:
    """What of a line goes into the record; its reply is read by the rules for replies. Raises Invalid."""
    if line.standing == "erased" or line.request is None or line.reply is None:
        raise Invalid("its words are missing")
    request, reply = _request(line.request), _reply(line.reply)
    sent_at, kept_at = _moment(line.sent_at, now), _moment(line.kept_at, now)
    outcome = read(request, reply, kept_at)
    if outcome.state is not State.ANSWERED:
        raise Invalid(f"its reply (status {reply.status}) is no answer: {WHY_TEXT[outcome.why]}")
    if line.cost_made is not None and not request.destination.is_local:
        if not 0 <= line.cost_made < COST_MAX:
            raise Invalid("its cost is none")
        outcome = msgspec.structs.replace(outcome, cost=round(line.cost_made * 1e9))
    withdrawn_at = None
    if line.standing == "withdrawn":
        withdrawn_at = kept_at if line.gone_at is None else _moment(line.gone_at, now)
    return Taken(
        request,
        outcome,
        sent_at,
        kept_at,
        line.ms,
        asked_model(request),
        _header_text(line.imported_from or "", "where it was imported from"),
        withdrawn_at,
        _text(line.why, "why it was withdrawn"),
    )


def _request(said: LineRequest) -> Request:
    place = said.destination
    _header_text(place.name, "the destination's name")
    url = urlsplit(_header_text(place.url, "the destination's URL")) if _is_url(place.url) else None
    if not place.is_local and (url is None or url.scheme not in {"http", "https"} or not url.netloc):
        raise Invalid("its destination has no whole URL")
    if url is not None and ("@" in url.netloc or url.fragment):
        raise Invalid("its destination's URL holds a user or a fragment")
    problem = "" if url is None else query_problem(url.query)
    if problem:
        raise Invalid(f"its destination's query {problem}")
    if not _METHOD.fullmatch(place.method):
        raise Invalid("its method is none")
    _header_text(said.content_type, "the request's content type")
    for name, value in said.headers:
        if not _NAME.fullmatch(name):
            raise Invalid("a header's name is none, or not in lower case")
        _header_text(value, f"the header {name}")
    if tuple(sorted(said.headers)) != said.headers:
        raise Invalid("its headers are not in order")
    body = _body(said.body, said.body_base64)
    return Request(place, body, said.content_type, said.headers, _header_text(said.partition, "the partition"))


def _is_url(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return True


def _reply(said: LineReply) -> Reply:
    body = _body(said.body, said.body_base64)
    if said.cuts and sum(said.cuts) != len(body):
        raise Invalid("its reply's chunks do not add up to its body")
    content_type = _header_text(said.content_type, "the reply's content type")
    provider_id = _header_text(said.provider_id, "the provider's id")
    return Reply(said.status, body, content_type, provider_id, cuts=said.cuts)


def _body(text: str | None, base: str | None) -> bytes:
    try:
        if text is not None and base is None:
            return text.encode()
        if base is not None and text is None:
            return base64.b64decode(base, validate=True)
    except ValueError:
        pass
    raise Invalid("a body must stand there once: as text in `body`, or whole in `body_base64`")


def _header_text(text: str, what: str) -> str:
    """What goes out as a header again must not end one and begin another."""
    if _CONTROL.search(text) or len(text) > HEADER_CHARACTERS_MAX:
        raise Invalid(f"{what} is too long, or holds control characters")
    return _text(text, what)


def _text(text: str, what: str) -> str:
    try:
        # How they are written and sent: the odd bytes a header may hold are halves of surrogate pairs here.
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Invalid(f"{what} is no text") from None
    return text


def _moment(text: str, now: int) -> int:
    try:
        moment = parse(text)
    except (ValueError, OverflowError):
        raise Invalid("one of its moments is none: they look like 2026-11-30T14:12:31.000042Z") from None
    if not 0 <= moment <= now + DAY:
        raise Invalid("one of its moments lies before 1970, or in the future")
    return moment


def came_from(source: str, line: str) -> str:
    """What is written down of where an answer came from: the source it was read from, then what it said itself."""
    return f"{source}; {line}" if line else source


def may_fill(others: Iterable[str | None], source: str) -> bool:
    """May an answer from `source` be added without being asked to? `others`: where the answers here came from.

    Yes where there are none, or only such as came from there too: so all versions of a request get in, in order, also
    when the first time was broken off. None: it was sent from here.
    """
    return all(other is not None and other.partition("; ")[0] == source for other in others)
