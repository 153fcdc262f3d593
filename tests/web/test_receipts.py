"""What an answer from the record says about itself, as headers and as the lines that the short road writes."""

from weakref import ref

import msgspec
import pytest

from archive.messages import Answered, Kept, Sent
from archive.picks import Latest
from archive.when import SECOND
from web.errors import Shape
from web.receipts import Receipts, length, lines

KEPT = Kept("0123456789ab", 2, 3, 200, b"{}", "application/json", "req_1", 5 * SECOND, 40, cost=5_500)
NOW = 17 * SECOND


def test_the_lines_are_the_headers_of_the_same_delivery_with_the_length_before() -> None:
    headers = Receipts().of(Answered(KEPT, Sent.NOT_SENT), Latest(), Shape.SYSTEM_ONE, NOW)
    written = Receipts().lines(KEPT, Shape.SYSTEM_ONE, NOW)
    names = [line.partition(b": ")[0] for line in written.split(b"\r\n")[:-1]]
    assert names == [b"content-length", *(name for name, _ in headers)]
    expected = lines([length(KEPT.body), *headers])
    assert written.partition(b"archive-delivery")[0] == expected.partition(b"archive-delivery")[0]
    assert written.endswith(b"-1\r\nage: 12\r\n") and expected.endswith(b"-1\r\nage: 12\r\n")


def test_an_answer_that_nobody_holds_any_more_is_not_held_for_its_receipt() -> None:
    """Else the answers given lately would stay in memory whole, however large they are."""
    kept, receipts = msgspec.structs.replace(KEPT, body=bytes(1_000_000)), Receipts()
    receipts.of(Answered(kept, Sent.NOT_SENT), Latest(), Shape.SYSTEM_ONE, NOW)
    held = ref(kept)
    del kept
    assert held() is None
    other = msgspec.structs.replace(KEPT, n=3)
    assert b"archive-answer: 3/3" in receipts.lines(other, Shape.SYSTEM_ONE, NOW)


@pytest.mark.parametrize(
    ("change", "has"),
    [
        ({}, True),
        ({"cuts": (1, 1)}, False),
        ({"recorded": False}, False),
        ({"content_type": "a\r\nb: c"}, False),
        ({"provider_id": "a\x7f"}, False),
        ({"provider_id": "\udce9\t"}, True),
    ],
)
def test_a_stream_and_what_uvicorn_would_not_write_has_no_lines(change: dict[str, object], has: bool) -> None:
    assert Receipts().has_lines(msgspec.structs.replace(KEPT, **change), Shape.SYSTEM_ONE) == has
