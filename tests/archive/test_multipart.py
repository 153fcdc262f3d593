"""A multipart body's boundary follows from its parts: tables of bodies that are read whole, and of those left alone."""

import re
from itertools import pairwise
from typing import Any

import pytest

from archive import multipart
from archive.multipart import asked_in, parted, rebound
from archive.request import Request, asked, asked_model, call_id
from tests.fakes import ASK

JSON = (
    b'Content-Disposition: form-data; name="request"\r\nContent-Type: application/json\r\n\r\n{"state":1,"model":"m"}'
)
IMAGE = (
    b'Content-Disposition: form-data; name="asset-0"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n\xff--\r\n--'
)


def form(boundary: str, *parts: bytes, end: bytes = b"\r\n") -> bytes:
    """A body of these parts, as System One's SDK writes it."""
    line = b"--" + boundary.encode()
    return b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--" + end


def typed(boundary: str) -> str:
    return f"multipart/form-data; boundary={boundary}"


WHOLE: dict[str, tuple[bytes, ...]] = {
    "JSON and an image": (JSON, IMAGE),
    "one part": (JSON,),
    "an empty content": (b"a: b\r\n\r\n",),
    "no headers": (b"\r\nwords",),
    "no headers and no content": (b"\r\n",),
    "content that ends with line ends": (JSON + b"\r\n\r\n", IMAGE + b"\n"),
    "a part inside a part": (b"Content-Type: multipart/mixed; boundary=in\r\n\r\n" + form("in", JSON), IMAGE),
}


@pytest.mark.parametrize("name", WHOLE)
def test_the_same_parts_are_the_same_bytes_whatever_parted_them(name: str) -> None:
    """Every byte of each part is there, in order; and what was rebound once stays as it is."""
    parts = WHOLE[name]
    made = {rebound(typed(boundary), form(boundary, *parts)) for boundary in ("x", "3f2a9c01be44", "-" * 70, "'+_./?")}
    ((content_type, body),) = made
    found = parted(content_type, body)
    assert found is not None and found.parts == parts
    assert re.fullmatch(r"multipart/form-data; boundary=[0-9a-f]{64}", content_type)
    assert rebound(content_type, body) == (content_type, body)


def test_other_parts_another_order_and_another_cut_are_other_requests() -> None:
    bodies = [
        (JSON, IMAGE), (IMAGE, JSON), (JSON,), (JSON, IMAGE, IMAGE), (JSON, IMAGE + b" "), (JSON + b" ", IMAGE),
        (JSON, IMAGE.replace(b"asset-0", b"asset-1")), (b"a: 1\r\n\r\n1", b"b: 2\r\n\r\n2"),
        (b"a: 1\r\n\r\n1b: 2\r\n\r\n2",),
    ]  # fmt: skip
    made = [rebound(typed("x"), form("x", *parts)) for parts in bodies]
    names = {call_id(Request(ASK, body, content_type)) for content_type, body in made}
    assert len(names) == len(bodies)
    assert len({content_type for content_type, _ in made}) == len(bodies), "each has a boundary of its own"
    assert rebound(typed("x"), form("x", JSON, end=b"")) != rebound(typed("x"), form("x", JSON))


SPELLED = [
    ('multipart/form-data; boundary="x y"', "x y", "multipart/form-data; boundary="),
    ("Multipart/Form-Data;boundary=x", "x", "Multipart/Form-Data;boundary="),
    (" multipart/form-data ; BOUNDARY=x ", "x", " multipart/form-data ; BOUNDARY="),
    ("multipart/form-data; boundary=a=b", "a=b", "multipart/form-data; boundary="),
]


@pytest.mark.parametrize(("content_type", "boundary", "before"), SPELLED)
def test_a_boundary_may_be_quoted_and_the_rest_of_the_content_type_stays(
    content_type: str, boundary: str, before: str
) -> None:
    made, body = rebound(content_type, form(boundary, JSON))
    assert made.startswith(before) and body == rebound(typed("z"), form("z", JSON))[1]


GOOD = form("x", JSON, IMAGE)
ALONE: dict[str, tuple[str, bytes]] = {
    "JSON": ("application/json", GOOD),
    "another kind of multipart": ("multipart/mixed; boundary=x", GOOD),
    "no boundary": ("multipart/form-data", GOOD),
    "another boundary": (typed("y"), GOOD),
    "an empty boundary": (typed(""), GOOD),
    "a boundary that is too long": (typed("x" * 71), form("x" * 71, JSON)),
    "more than a boundary": (typed("x; charset=utf-8"), GOOD),
    "two boundaries": (typed("x; boundary=x"), GOOD),
    "a boundary that is no ASCII": (typed("é"), GOOD),
    "something before": (typed("x"), b"\r\n" + GOOD),
    "something after": (typed("x"), GOOD + b"epilogue"),
    "two line ends after": (typed("x"), GOOD + b"\r\n"),
    "a space behind a boundary": (typed("x"), GOOD.replace(b"--x\r\n", b"--x \r\n")),
    "the boundary inside a part": (typed("x"), form("x", JSON + b"--x", IMAGE)),
    "a line that begins as a boundary": (typed("x"), form("x", JSON + b"\r\n--xy", IMAGE)),
    "the end in the middle": (typed("x"), form("x", JSON) + form("x", IMAGE)),
    "cut off": (typed("x"), GOOD[:-7]),
    "without its first boundary": (typed("x"), GOOD[5:]),
    "bare line feeds": (typed("x"), GOOD.replace(b"\r\n", b"\n")),
    "a part without its headers' end": (typed("x"), form("x", b"a: b")),
    "no parts": (typed("x"), b"--x--\r\n"),
    "no parts, twice": (typed("x"), b"--x\r\n--x--\r\n"),
    "nothing": (typed("x"), b""),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_cannot_be_read_whole_and_in_one_way_goes_as_it_came(name: str) -> None:
    assert rebound(*ALONE[name]) == ALONE[name]


def test_a_part_that_holds_its_own_boundary_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part can hold the hash of itself; so the hash here is a weak one, that counts."""
    names = iter(["aa", "bb", "cc"])

    class Weak:
        def __init__(self, *_: Any) -> None: ...

        def update(self, *_: Any) -> None: ...

        def digest(self) -> bytes:
            return b""

        def hexdigest(self) -> str:
            return next(names)

    monkeypatch.setattr(multipart, "sha256", Weak)
    content_type, body = rebound(typed("x"), form("x", b"\r\n--aa", b"\r\nof bb"))
    assert content_type == typed("cc")
    assert body == form("cc", b"\r\n--aa", b"\r\nof bb")


SAID: list[tuple[bytes, ...]] = [
    (JSON, IMAGE),
    (IMAGE, JSON),
    (b'content-type:application/vnd.x+json; charset=utf-8\r\na: b\r\n\r\n{"state":1,"model":"m"}',),
]


@pytest.mark.parametrize("parts", SAID)
def test_what_a_multipart_request_asks_is_read_from_its_json(parts: tuple[bytes, ...]) -> None:
    request = Request(ASK, form("x", *parts), typed("x"))
    assert asked(request) == {"state": 1, "model": "m"}
    assert asked_model(request) == "m"


def test_nothing_is_asked_where_no_part_is_json() -> None:
    for parts in [(IMAGE,), (b"\r\n" + JSON,), (b"X-Content-Type: application/json\r\n\r\n{}",)]:
        assert asked_in(typed("x"), form("x", *parts)) == b""
    assert asked(Request(ASK, form("x", IMAGE), typed("x"))) is None
    assert asked_in("application/json", b"{}") == b"{}"


def test_every_boundary_stands_between_two_parts_only() -> None:
    """What `parted` finds put together again is the body, for every way to cut a good one in two."""
    for at, after in pairwise(range(0, len(GOOD), 7)):
        torn = GOOD[:at] + GOOD[after:]
        found = parted(typed("x"), torn)
        if found is not None:
            assert form("x", *found.parts, end=found.end) == torn
