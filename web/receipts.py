"""What each answer over the API says about itself, in headers beside the stored bytes.

What must never be here: a clock, what the reading of an asking comes to (naming.py), writing to a connection.
"""

import itertools
import re
import secrets
from weakref import ReferenceType, ref

import msgspec

from archive.messages import Answered, Kept, Sent
from archive.picks import Fresh, Pick
from archive.when import SECOND, iso
from web.errors import REQUEST_ID, Headers, Shape

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class Same(msgspec.Struct, frozen=True):
    """What is the same in every receipt of an answer that comes from the record: its headers, and those as lines.

    `lines` begin with the body's length. They are empty for a stream, and where uvicorn would refuse a header. The
    answer itself is held by others, as long as they have room for it (archive/actor/recent.py).
    """

    answer: ReferenceType[Kept]
    headers: Headers
    lines: bytes


class Receipts:
    """The receipts of one route; each delivery has a number of its own in them."""

    def __init__(self) -> None:
        self._delivery = f"{secrets.token_hex(4)}-".encode()
        self._deliveries = itertools.count(1)
        self._same: dict[int, Same] = {}

    def of(self, answered: Answered, pick: Pick, shape: Shape, now: int) -> Headers:
        """What an answer is and what it cost."""
        kept, sent = answered.kept, answered.sent
        if sent is Sent.NOT_SENT:
            return self._of(kept, shape).headers + self._own(kept, now)
        return _headers(kept, shape, sent, _cache_status(answered, pick)) + self._own(kept, now)

    def has_lines(self, kept: Kept, shape: Shape) -> bool:
        """Can an answer from the record be written with `lines`?"""
        return bool(self._of(kept, shape).lines)

    def lines(self, kept: Kept, shape: Shape, now: int) -> bytes:
        """The same as `of` for an answer from the record, and its length, as lines."""
        # Only what is on record comes from there, so there is an age.
        return b"%sarchive-delivery: %s\r\nage: %d\r\n" % (self._of(kept, shape).lines, self._next(), _age(kept, now))

    def _of(self, kept: Kept, shape: Shape) -> Same:
        number = id(kept)
        same = self._same.get(number)
        if same is None:
            headers = _headers(kept, shape, Sent.NOT_SENT, b"Askonce; hit")
            written = [length(kept.body), *headers]
            is_plain = kept.recorded and not kept.cuts and not any(_CONTROL.search(value) for _, value in headers)
            # They go with the answer, before another object can come by its id.
            answer = ref(kept, lambda _: self._same.pop(number, None))
            # A route leads to one destination by one address, so its shape is always the same.
            same = self._same[number] = Same(answer, headers, lines(written) if is_plain else b"")
        return same

    def _own(self, kept: Kept, now: int) -> Headers:
        """What each delivery has of its own."""
        delivery = (b"archive-delivery", self._next())
        return [delivery, (b"age", b"%d" % _age(kept, now))] if kept.recorded else [delivery]

    def _next(self) -> bytes:
        return b"%s%d" % (self._delivery, next(self._deliveries))


def _age(kept: Kept, now: int) -> int:
    return max(0, now - kept.kept_at) // SECOND


def length(body: bytes) -> tuple[bytes, bytes]:
    """The header that says how long a body is."""
    return (b"content-length", b"%d" % len(body))


def lines(headers: Headers) -> bytes:
    """Headers as they are written."""
    return b"".join([b"%s: %s\r\n" % header for header in headers])


def _headers(kept: Kept, shape: Shape, sent: Sent, cache_status: bytes) -> Headers:
    headers = [
        (b"content-type", kept.content_type.encode("utf-8", "surrogateescape")),
        (b"archive-call", kept.call_id.encode()),
        (b"archive-cost-made", _dollars(kept.cost)),
    ]
    if kept.recorded:
        headers.append((b"archive-answer", b"%d/%d" % (kept.n, kept.total)))
        headers.append((b"archive-kept-at", iso(kept.kept_at).encode()))
    else:
        headers.append((b"archive-answer", b"not in the record yet"))
    if kept.cut_short:
        headers.append((b"archive-cut-short", b"yes"))
    if kept.provider_id:
        headers.append((REQUEST_ID[shape], kept.provider_id.encode("utf-8", "surrogateescape")))
    headers.append((b"cache-status", cache_status))
    headers.append((b"archive-sent", sent.value.encode()))
    headers.append((b"archive-cost-now", _dollars(kept.cost) if sent is Sent.NOW else b"0"))
    return headers


def _cache_status(answered: Answered, pick: Pick) -> bytes:
    """RFC 9211, where it was no hit: why it went on, whether it is on record, whether the call was another's."""
    why = b"request" if isinstance(pick, Fresh) else b"uri-miss"
    stored = b"; stored" if answered.kept.recorded else b""
    return b"Askonce; fwd=" + why + stored + (b"; collapsed" if answered.sent is Sent.SHARED else b"")


def _dollars(billionths: int | None) -> bytes:
    if billionths is None:
        return b"unknown"
    return f"{billionths // 10**9}.{billionths % 10**9:09d}".rstrip("0").rstrip(".").encode()
