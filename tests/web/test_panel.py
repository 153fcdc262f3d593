"""Stored bytes as a page shows them: always the very text, laid out where it is JSON, and never a tag of its own."""

import json
from typing import Any

import pytest

from tests.html import Element, fragment
from web.panel import COLOURED_BYTES_MAX, SHOWN_BYTES_MAX, panel
from web.render import environment

SHOWN = environment.from_string("<pre>{{ data|panel|attr('shown') }}</pre>")


def shown(data: bytes) -> Element:
    """What a page shows, parsed."""
    return fragment(SHOWN.render(data=data)).one("pre")


HOSTILE = '</pre><script>alert("1")</script>\\"&amp;\'{},[]:\u202e\u2028\\'
JSONS: list[Any] = [
    {}, [], "", 0, None, True, {"a": {}}, {"a": [1, 2, {"b": []}], "c": "d"}, {HOSTILE: HOSTILE}, [[[[[[[[[[1]]]]]]]]]],
    {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": 1, "i": 2}}}}}}}}, {"a,b": "c{d}", "e\\": '"'}, [-1.5e-7, 1e30],
]  # fmt: skip
SPACED: list[dict[str, Any]] = [{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}]


@pytest.mark.parametrize("value", JSONS, ids=lambda value: json.dumps(value)[:20])
@pytest.mark.parametrize("spaced", SPACED, ids=str)
def test_the_text_of_json_is_the_stored_text(value: Any, spaced: dict[str, Any]) -> None:
    text = json.dumps(value, **spaced)
    assert shown(text.encode()).text == text
    assert {(e.tag, e.attributes.get("class", "")[:2]) for e in shown(text.encode()).all("")} <= {
        ("span", "l "), ("i", ""), ("b", "")
    }  # fmt: skip


NOT_JSON = [
    b"", b" ", b"<b>&", b"{", b'{"a":1', b'{"a":NaN}', b'"a', b'"' * 9999, b'"\\"' * 4000, b"{]", b"]", b",",
    b'{"a":1}x', b"\xef\xbb\xbf{}", b"[" * 20_000, b"null,", b"\n\n{",
]  # fmt: skip


@pytest.mark.parametrize("data", NOT_JSON, ids=lambda data: repr(data[:12]))
def test_what_is_no_json_is_plain_text(data: bytes) -> None:
    assert shown(data).text == data.decode()
    assert shown(data).all("") == []
    assert panel(data).note == ""


def test_members_stand_in_lines_by_their_depth_and_what_holds_values_together_is_faint() -> None:
    text = '{"model":"jev","state":{"a":1,"b":[1,2]},"q":{"x":{"y":true}}}'
    lines = shown(text.encode()).all("span")
    assert [(line["class"], line.text) for line in lines] == [
        ("l d0", '{"model":"jev",'),
        ("l d1", '"state":{"a":1,'),
        ("l d2", '"b":[1,2]},'),
        ("l d1", '"q":{"x":{"y":true}}}'),
    ]
    assert [part.text for part in lines[0].all("i")] == ['{"model":', ","]
    assert [part.text for part in shown(text.encode()).all("b")] == ["1", "1", "2", "true"]


def test_json_with_lines_of_its_own_keeps_them() -> None:
    assert shown(b'{\n "a": 1,\n "b": 2\n}').all("span") == []
    assert [part.text for part in shown(b'{\n "a": 1,\n "b": 2\n}').all("b")] == ["1", "2\n"]


def test_bytes_that_are_not_utf8_are_said_to_be() -> None:
    found = panel(b'{"a":"\xff"}')
    assert (found.shown, "Not text in UTF-8" in found.note) == ('{"a":"\ufffd"}', True)


def test_many_bytes_are_plain_and_very_many_are_cut_and_said_to_be() -> None:
    large = json.dumps(["é" * 10] * 3000, ensure_ascii=False).encode()
    assert COLOURED_BYTES_MAX < len(large) < SHOWN_BYTES_MAX * 2
    assert panel(large[:SHOWN_BYTES_MAX].rstrip(b"\xc3")).note == ""
    whole, cut = panel(b"x" * SHOWN_BYTES_MAX), panel("é".encode() * SHOWN_BYTES_MAX + b"x")
    assert (len(whole.shown), whole.note) == (SHOWN_BYTES_MAX, "")
    assert cut.shown == "é" * (SHOWN_BYTES_MAX // 2)
    assert cut.note == "The first 65,536 bytes; raw has all of them."
