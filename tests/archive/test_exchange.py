"""Answers as lines: every byte comes out as it went in, and a line that is not right is refused in words."""

import json
from typing import Any, cast

import msgspec
import pytest

from archive.attempts import Reply, State
from archive.errors import Invalid
from archive.exchange import (
    Line,
    LineAsking,
    LineInput,
    came_from,
    header,
    header_in,
    line_in,
    may_fill,
    reply_line,
    request_line,
    taken,
    written,
)
from archive.request import Destination, Request
from archive.when import DAY, iso
from tests.fakes import ASK, START, answer, body, reply

LINE = Line(
    call=None,
    n=1,
    standing="kept",
    sent_at=iso(START),
    kept_at=iso(START + 1),
    ms=7,
    asked_model=None,
    model=None,
    input_tokens=None,
    output_tokens=None,
    cost_made=None,
    cut_short=False,
    imported_from=None,
    request=request_line(Request(ASK, body())),
    reply=reply_line(reply()),
)

BODIES = {
    "compact": body(),
    "spaces, a byte-order mark, a newline at the end": b'\xef\xbb\xbf {"state" : 1.0}\r\n',
    "NUL raw and escaped": b'{"state":"a\0b\\u0000c"}',
    "a lone surrogate, escaped": b'{"state":"\\ud800"}',
    "a lone surrogate, as bytes": b'{"state":"\xed\xa0\x80"}',
    "U+2028, U+2029, U+0085": '{"state":"\u2028\u2029\x85"}'.encode(),
    "the same key twice": b'{"state":1,"state":2}',
    "a number that is none here": b'{"state":1e400}',
    "not UTF-8": b"\xff\xfe\0",
    "multipart": b'--b\r\ncontent-disposition: form-data; name="q"\r\n\r\n\x89PNG\xff\r\n--b--\r\n',
    "nothing": b"",
}


@pytest.mark.parametrize("data", BODIES.values(), ids=BODIES)
def test_a_body_comes_out_of_a_line_as_it_went_in(data: bytes) -> None:
    asked = Request(ASK, data, "text/\udcff", (("a", "b: c"), ("a", "\u00fc")), "token 3")
    said = Reply(200, data, "text/\udcff", "req_1", cuts=(len(data), 0))
    one = msgspec.structs.replace(LINE, request=request_line(asked), reply=reply_line(said))
    line = written(one)
    assert len(line.decode().splitlines()) == 1
    assert line_in(line) == one
    assert written(line_in(line)) == line
    fine = msgspec.structs.replace(one, reply=reply_line(Reply(200, answer())))
    assert taken(line_in(written(fine)), START).request == asked


def test_no_line_holds_what_a_reader_may_take_for_its_end() -> None:
    data = BODIES["U+2028, U+2029, U+0085"]
    line = written(msgspec.structs.replace(LINE, request=request_line(Request(ASK, data)), why="\u2028ä"))
    assert len(line.decode().splitlines()) == 1
    assert "ä".encode() in line
    assert taken(line_in(line), START).request.body == data


def test_what_is_utf_8_stands_there_to_be_read() -> None:
    said = json.loads(written(LINE))
    assert said["request"]["body"] == body().decode()
    assert "body_base64" not in said["request"]
    assert (said["cost_made"], said["imported_from"]) == (None, None)


def test_an_answer_is_read_anew_and_keeps_its_own_moments() -> None:
    one = taken(msgspec.structs.replace(LINE, cost_made=0.000119999, model="another", input_tokens=9), START)
    assert one.outcome.state is State.ANSWERED
    assert (one.outcome.answered_model, one.outcome.input_tokens, one.outcome.cost) == ("jev-1.13.0", 131, 119_999)
    assert (one.sent_at, one.kept_at, one.ms, one.asked_model) == (START, START + 1, 7, "jev-latest")
    assert (one.withdrawn_at, taken(LINE, START).outcome.cost) == (None, None)
    back = taken(msgspec.structs.replace(LINE, standing="withdrawn", gone_at=iso(START + 2), why="wrong"), START)
    assert (back.withdrawn_at, back.why) == (START + 2, "wrong")


def _asked(**more: Any) -> dict[str, Any]:
    return {"request": msgspec.to_builtins(LINE.request) | more}


def _place(**more: str) -> dict[str, Any]:
    return _asked(destination={"name": "systemone", "method": "POST", "url": ASK.url} | more)


def _said(**more: Any) -> dict[str, Any]:
    return {"reply": msgspec.to_builtins(LINE.reply) | more}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an error": (_said(body='{"error":"no"}'), "status 200.* no answer"),
    "a refusal": (_said(status=429), "status 429"),
    "a redirect": (_said(status=302), "no answer"),
    "another question's answer": (_said(body='{"answers":{"other":{"type":"noul","noul":0.5}}}'), "no answer"),
    "an answer out of range": (_said(body=answer(0.5).replace(b"0.50", b"1.50").decode()), "no answer"),
    "erased": ({"standing": "erased"}, "missing"),
    "no words": ({"request": None}, "missing"),
    "a standing that is none": ({"standing": "lost"}, "no answer: .*standing"),
    "no number": ({"n": 0}, r"\$\.n"),
    "two bodies": (_asked(body_base64="AA=="), "once"),
    "no body": (_asked(body=None), "once"),
    "half a character": (_asked(body="\ud800"), "once"),
    "bad base64": (_said(body=None, body_base64="A"), "once"),
    "a header in a content type": (_said(content_type="a\r\nset-cookie: b"), "control"),
    "a content type that cannot be sent": (_said(content_type="text/\ud800"), "no text"),
    "a long content type": (_said(content_type="a" * 9_000), "too long"),
    "a header in a header": (_asked(headers=[["a", "b\nc: d"]]), "control"),
    "a header in capitals": (_asked(headers=[["A", "b"]]), "lower case"),
    "headers out of order": (_asked(headers=[["b", "1"], ["a", "2"]]), "order"),
    "a provider's id of two lines": (_said(provider_id="a\nb"), "control"),
    "no scheme": (_place(url="api.example.test"), "no whole URL"),
    "a file": (_place(url="file:///etc/passwd"), "no whole URL"),
    "a key in the URL": (_place(url="https://me:secret@api.example.test/"), "user"),
    "a URL that is none": (_place(url="https://[x"), "no whole URL"),
    "a key in the query": (_place(url="https://api.example.test/?api_key=x"), "looks like a key"),
    "a key in the query of a local name": (_place(url="local:mini@1?apikeys=x"), "looks like a key"),
    "an odd query": (_place(url="https://api.example.test/?a=<b>"), "percent-encoded"),
    "half a character in why": ({"standing": "withdrawn", "why": "\ud800"}, "why it was withdrawn is no text"),
    "half a character in a standing": ({"standing": "\ud800"}, "no text"),
    "a method that is none": (_place(method="post it"), "method"),
    "chunks that do not add up": (_said(cuts=[1, 2]), "add up"),
    "a moment without a zone": ({"kept_at": "2026-05-01T00:00:00"}, "moments is none"),
    "a moment to come": ({"kept_at": iso(START + 2 * DAY)}, "future"),
    "a moment before all": ({"sent_at": "1969-12-31T23:59:59Z"}, "1970"),
    "a cost that is none": ({"cost_made": -1.0}, "cost"),
    "a cost beyond all": ({"cost_made": 1e300}, "cost"),
    "a missing field": ({"ms": None}, r"\$\.ms"),
}


@pytest.mark.parametrize(("changes", "why"), WRONG.values(), ids=WRONG)
def test_a_line_that_is_not_right_is_refused(changes: dict[str, Any], why: str) -> None:
    taken(line_in(json.dumps(msgspec.to_builtins(LINE)).encode()), START)
    with pytest.raises(Invalid, match=why):
        taken(line_in(json.dumps(msgspec.to_builtins(LINE) | changes).encode()), START)


def _everywhere(value: Any, odd: Any) -> "list[Any]":
    """The value with `odd` in the place of each of its parts, one at a time."""
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        return [odd, *(inner | {name: one} for name, part in inner.items() for one in _everywhere(part, odd))]
    return [odd]


@pytest.mark.parametrize(
    "odd",
    ["\ud800", "\udfff\ud800", "\0", "x" * 100_000, 10**400, -1, 1e400, True, None, [], {}, [["\ud800"] * 2]],
    ids=lambda odd: repr(odd)[:9],
)
def test_a_line_with_anything_anywhere_is_taken_or_refused_in_words(odd: Any) -> None:
    asking = LineAsking(1, iso(START), "p", "a", "r", (LineInput("n", "w"),))
    whole = msgspec.structs.replace(LINE, standing="withdrawn", gone_at=iso(START), why="w", askings=(asking,))
    for changed in _everywhere(msgspec.to_builtins(whole), odd):
        line = json.dumps(changed).encode()
        try:
            one = taken(line_in(line), START)
        except Invalid as wrong:
            assert wrong.text
        else:
            for text in (one.why, one.imported_from, one.request.content_type, one.request.destination.url):
                text.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"n":1', b"[]", b"null", b"\xff", b"[" * 100_000, b"1" * 5_000, written(LINE)[:-9]], ids=len
)
def test_what_is_no_line_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        line_in(data)


def test_the_first_line_names_the_format_and_the_record() -> None:
    first = header("3f2a9c01be44", START)
    assert json.loads(first) == {"askonce_export": 1, "record": "3f2a9c01be44", "made_at": iso(START)}
    assert header_in(first) == "3f2a9c01be44"
    assert header_in(written(LINE)) is None
    for other in (b'{"askonce_export":2}', b'{"askonce_export":'):
        with pytest.raises(Invalid):
            header_in(other)


def test_a_local_model_is_a_destination_and_free() -> None:
    place = Destination("systemone", "POST", "local:mini@12345678")
    one = taken(msgspec.structs.replace(LINE, request=request_line(Request(place, body()))), START)
    assert one.outcome.cost == 0


@pytest.mark.parametrize(
    ("others", "fills"),
    [
        ([], True),
        (["jevkit a"], True),
        (["jevkit a; put together", "jevkit a"], True),
        ([None], False),
        (["jevkit a", None], False),
        (["jevkit b"], False),
        (["jevkit"], False),
    ],
)
def test_an_answer_fills_a_request_that_has_none_from_elsewhere(others: list[str | None], fills: bool) -> None:
    assert may_fill(others, "jevkit a") is fills
    assert came_from("jevkit a", "") == "jevkit a"
    assert came_from("askonce 1", "jevkit a; x") == "askonce 1; jevkit a; x"
