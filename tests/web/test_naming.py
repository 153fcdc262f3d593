"""The headers that name an asking, read."""

import json
from urllib.parse import quote

import pytest

from archive.errors import Invalid, TooLarge
from archive.naming import Input, Naming
from web.naming import HEADER_BYTES_MAX, read_naming


def named(**headers: bytes) -> Naming | None:
    return read_naming({b"archive-" + name.strip("_").encode(): value for name, value in headers.items()})


def test_nothing_named_is_no_naming() -> None:
    assert named() is named(pass_=b"", about=b"", inputs=b"") is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"pair:12-40", "pair:12-40"),
        (b"sch%C3%B6n", "schön"),
        ("schön".encode(), "schön"),
        (b"50%25 off", "50% off"),
        (b"a+b", "a+b"),
        (b"%0A", "\n"),
    ],
)
def test_a_header_is_utf8_percent_encoded_where_it_must_be(value: bytes, words: str) -> None:
    assert named(about=value) == Naming(about=words)
    assert named(pass_=value) == Naming(pass_=words)


@pytest.mark.parametrize("value", [b"50%", b"50% off", b"%zz", b"sch\xf6n", b"sch%F6n"])
def test_what_is_neither_is_refused_rather_than_guessed(value: bytes) -> None:
    for header in ("pass_", "about", "reading", "inputs"):
        with pytest.raises(Invalid, match=f"Archive-{header.strip('_').capitalize()}"):
            named(**{header: value})


@pytest.mark.parametrize(
    ("inputs", "read"),
    [
        (["left", "right"], (Input("", "left"), Input("", "right"))),
        ({"claim": "c", "other": "o"}, (Input("claim", "c"), Input("other", "o"))),
        (["left", {"claim": "c"}], (Input("", "left"), Input("claim", "c"))),
        ([], ()),
        ({}, ()),
    ],
)
def test_inputs_are_a_list_or_an_object_of_strings(inputs: object, read: tuple[Input, ...]) -> None:
    for ascii_only in (True, False):
        assert named(inputs=quote(json.dumps(inputs, ensure_ascii=ascii_only)).encode()) == Naming(inputs=read)


def test_a_name_that_is_given_twice_keeps_both_inputs() -> None:
    assert named(inputs=b'{"a":"1","a":"2"}') == Naming(inputs=(Input("a", "1"), Input("a", "2")))


@pytest.mark.parametrize(
    "value", [b"text", b"7", b"null", b'"text"', b"[1]", b'{"a":1}', b'["a",null]', b"[[]]", b"[" * 9000]
)
def test_inputs_that_are_anything_else_are_refused(value: bytes) -> None:
    with pytest.raises(Invalid, match="Archive-Inputs is a JSON list of strings"):
        named(inputs=value)


def test_a_header_that_cannot_be_within_the_limit_is_refused_with_the_limit() -> None:
    with pytest.raises(TooLarge, match="65536"):
        named(inputs=b"x" * (HEADER_BYTES_MAX + 1))
