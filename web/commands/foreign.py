"""What `askonce import` reads: an export of ours, decision-gateway's store, jevkit's records; each as lines of ours.

decision-gateway 0.0.1 keeps observations in SQLite, their JSON written anew with its keys sorted. jevkit-core 0.2.0
writes one JSON object a line (.jevl), with the request's and the reply's fields in it. Neither keeps the bytes that
were sent, and what is made of them says so. What must never be here: whether an answer may be taken in.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from archive.actor.store.file import only_reading
from archive.attempts import Reply
from archive.errors import Invalid
from archive.exchange import Line, header_in, reply_line, request_line, written
from archive.request import Destination, Request
from archive.when import iso, parse

LINE_BYTES_MAX = 512 * 1024 * 1024
"""A request and a reply of 32 MiB each, all of it escaped."""

RESORTED = "its keys were sorted there, so these are not the bytes that were sent and received"
REBUILT = "put together from its fields, so these need not be the bytes that were sent and received"

_NOTHING = "Nothing came: not one line is in it. What was to write it may have failed."

_NO_EXPORT = "This is no export of Askonce: its first line is none. --from names the other programs that can be read."


class Piece(msgspec.Struct, frozen=True):
    """One record of what is imported: where it stands, its bytes there, and the line it makes, or why it makes none.

    `source` is where it comes from. Pieces without a line and a reason only count as read.
    """

    where: str
    size: int
    line: bytes = b""
    source: str = ""
    why: str = ""


def export_pieces(file: BinaryIO) -> Iterator[Piece]:
    """The lines of an export; several in a row may be in one file. Raises Invalid for what is none."""
    source, begun = "", False
    for where, line, size in _lines(file):
        if not line:
            yield Piece(where, size, why="it is too long" if size > LINE_BYTES_MAX else "")
            continue
        record = header_in(line)
        if record is not None:
            source = f"askonce {record}"
        elif not begun:
            raise Invalid(_NO_EXPORT)
        begun = True
        yield Piece(where, size, b"" if record is not None else line, source)
    if not begun:
        raise Invalid(_NOTHING)


def jevkit_pieces(file: BinaryIO, name: str, url: str) -> Iterator[Piece]:
    """The records of a .jevl file called `name`, as answers from `url`. Raises Invalid where there is not one."""
    begun = False
    for where, line, size in _lines(file):
        begun = begun or size > LINE_BYTES_MAX or bool(line)
        if not line:
            yield Piece(where, size, why="it is too long" if size > LINE_BYTES_MAX else "")
            continue
        try:
            yield Piece(where, size, jevkit_line(line, url), _source("jevkit", name))
        except Invalid as wrong:
            yield Piece(where, size, why=wrong.text)
    if not begun:
        raise Invalid(_NOTHING)


def gateway_pieces(path: Path) -> Iterator[Piece]:
    """The observations of decision-gateway's store, in the order in which they were written. Raises Invalid."""
    try:
        with closing(only_reading(path)) as db:
            db.execute("PRAGMA trusted_schema = 0")
            db.text_factory = bytes
            for row in db.execute("SELECT id, endpoint, request, response, asked_at FROM observations ORDER BY rowid"):
                where = f"observation {_text(row[0])}"
                try:
                    yield Piece(where, 1, gateway_line(row), _source("decision-gateway", path.name))
                except Invalid as wrong:
                    yield Piece(where, 1, why=wrong.text)
    except sqlite3.Error as error:
        raise Invalid(f"{path} is no store of decision-gateway: {error}") from None


def gateway_count(path: Path) -> int:
    """How many observations there are. Raises Invalid."""
    try:
        with closing(only_reading(path)) as db:
            return db.execute("SELECT count(*) FROM observations").fetchone()[0]
    except sqlite3.Error as error:
        raise Invalid(f"{path} is no store of decision-gateway: {error}") from None


def _source(program: str, name: str) -> str:
    """Where it comes from, in words; what follows a semicolon there is added to it."""
    return f"{program} {name.replace(';', ',')[:400]}"


def _lines(file: BinaryIO) -> Iterable[tuple[str, bytes, int]]:
    """Each line with its name and its bytes; one that is too long comes empty."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        size = len(line)
        if size > LINE_BYTES_MAX:
            while line and not line.endswith(b"\n"):
                line = file.readline(LINE_BYTES_MAX)
                size += len(line)
            line = b""
        yield f"line {number}", line.strip(b" \t\r\n"), size


def gateway_line(row: tuple[Any, ...]) -> bytes:
    """An observation (id, endpoint, request, response, asked_at; texts as bytes) as a line. Raises Invalid."""
    _, endpoint, request, response, asked_at = row
    if not all(isinstance(value, bytes) for value in (endpoint, request, response, asked_at)):
        raise Invalid("it has no endpoint, request, response or moment")
    return _line(_text(endpoint), request, response, _text(asked_at), RESORTED)


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class JevkitRequest(msgspec.Struct, frozen=True):
    """The request in a record of jevkit's; a state may be left out."""

    questions: msgspec.Raw
    state: msgspec.Raw = msgspec.Raw(b"")


class JevkitRecord(msgspec.Struct, frozen=True):
    """A record of jevkit's, format 1; its values are taken as they stand."""

    v: int
    ts: str
    model: str
    request: JevkitRequest
    answers: msgspec.Raw
    usage: msgspec.Raw = msgspec.Raw(b"")


_jevkit = msgspec.json.Decoder(JevkitRecord)


def jevkit_line(line: bytes, url: str) -> bytes:
    """A jevkit record as a line. Raises Invalid.

    The request is put together as TypeSafe's own SDK does it: state, model, questions, without spaces.
    """
    try:
        line.decode()
        record = _jevkit.decode(line)
        if record.v != 1:
            raise Invalid(f"it is of format {record.v}; this program reads format 1")
        model = msgspec.json.encode(record.model)
        asked = {"state": record.request.state, "model": model, "questions": record.request.questions}
        said = {"model": model, "answers": record.answers, "usage": record.usage}
        return _line(url, _object(asked), _object(said), record.ts, REBUILT)
    except UnicodeDecodeError:
        raise Invalid("it is not UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(f"it is no record of jevkit's: {error}") from None


def _object(members: dict[str, msgspec.Raw | bytes]) -> bytes:
    """A JSON object of values as they stand, without spaces; empty ones are left out."""
    pairs = [b'"%s":%s' % (name.encode(), msgspec.json.format(bytes(value), indent=-1)) for name, value in
             members.items() if bytes(value)]  # fmt: skip
    return b"{" + b",".join(pairs) + b"}"


def _line(url: str, asked: bytes, said: bytes, moment: str, note: str) -> bytes:
    """An answer of which only these are known."""
    try:
        at = iso(parse(moment))
    except (ValueError, OverflowError):
        raise Invalid("its moment is none") from None
    line = Line(
        call=None,
        n=1,
        standing="kept",
        sent_at=at,
        kept_at=at,
        ms=0,
        asked_model=None,
        model=None,
        input_tokens=None,
        output_tokens=None,
        cost_made=None,
        cut_short=False,
        imported_from=note,
        request=request_line(Request(Destination("systemone", "POST", url), asked)),
        reply=reply_line(Reply(200, said, "application/json")),
    )
    return written(line)
