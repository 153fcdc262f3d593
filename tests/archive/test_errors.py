"""The one tree of errors: each has a code, each code an HTTP status, and a copy is as good as the first."""

import inspect
from http import HTTPStatus

import pytest

from archive import errors
from archive.attempts import Reply
from archive.errors import ArchiveError, BadToken, CallFailed, CallUnknown, Cooling
from web.errors import STATUS, status_of

TREE = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, ArchiveError)
]  # fmt: skip

NAMES = (
    "ArchiveError BadToken Busy CallFailed CallUnknown Cooling Disconnected Erased Forbidden Invalid NotFound NotKept"
    " OverLimit RecordClosed TooLarge Withdrawn"
)


def _one(kind: type[ArchiveError]) -> ArchiveError:
    if kind is BadToken:
        return BadToken("text", missing=True)
    if kind is Cooling:
        return Cooling("text", until=7, status=529)
    if kind is CallFailed:
        return CallFailed("text", reply=Reply(400, b"{}"), at=7)
    if kind is CallUnknown:
        return CallUnknown("text", at=7, waited=True)
    return kind("text", at=7, until=8)


def test_the_tree_is_the_one_that_is_drawn_on_top_of_the_file() -> None:
    assert " ".join(kind.__name__ for kind in TREE) == NAMES
    drawn = inspect.getdoc(errors) or ""
    assert all(kind.__name__ in drawn for kind in TREE)


def test_each_code_has_an_http_status_and_each_status_a_code() -> None:
    codes = [kind.code for kind in TREE]
    assert len(set(codes)) == len(codes)
    assert STATUS.keys() == set(codes)
    assert all(status >= HTTPStatus.BAD_REQUEST for status in STATUS.values())


@pytest.mark.parametrize("kind", TREE)
def test_the_same_error_for_another_asker_says_all_of_it(kind: type[ArchiveError]) -> None:
    first = _one(kind)
    again = first.again()
    assert again is not first
    assert type(again) is kind
    assert vars(again) == vars(first)
    assert (str(again), again.args) == (str(first), first.args) == ("text", ("text",))
    assert again.__traceback__ is None


def test_a_copy_made_after_raising_carries_no_trace_of_where_the_first_was_raised() -> None:
    for _ in range(3):
        with pytest.raises(ArchiveError) as told:
            raise _one(errors.Busy)
        assert told.value.again().__traceback__ is None


STATUSES = [
    (CallUnknown("", at=0, waited=True), 504),
    (CallUnknown("", at=0, waited=False), 409),
    (Cooling("", until=0, status=429), 429),
    (Cooling("", until=0, status=503), 503),
    (Cooling("", until=0, status=529), 503),
    (errors.NotKept(""), 404),
    (errors.Withdrawn(""), 410),
    (errors.Erased(""), 410),
    (errors.OverLimit(""), 429),
    (errors.Busy(""), 503),
    (errors.RecordClosed(""), 503),
    (errors.TooLarge(""), 413),
    (errors.Invalid(""), 400),
    (errors.Forbidden(""), 403),
    (CallFailed(""), 502),
    (ArchiveError(""), 500),
]


@pytest.mark.parametrize(("error", "status"), STATUSES)
def test_who_waited_gets_another_status_than_who_comes_later(error: ArchiveError, status: int) -> None:
    assert status_of(error) == status
