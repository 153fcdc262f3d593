"""Taking a Content-Encoding off: gzip, zstd, deflate. Never more than so many bytes come out.

What must never be here: sockets, and which messages may be encoded how.
"""

import zlib
from typing import Protocol

import zstandard

from archive.errors import Invalid, TooLarge

MEMBERS_MAX = 1_000
"""Streams in a row, taken for one. RFC 1952 and RFC 8878 know no limit; many tiny ones would cost time for nothing."""

_WINDOW_BYTES = 256
"""What is fed at a time. A quarter of a kilobyte of zstd holds at most some 8 MB, so a bomb is stopped in time."""

_ZSTD_BYTES = 8 * 1024 * 1024
"""RFC 9659: over HTTP a zstd frame needs no larger window than this, unless what is in it is larger."""


class _Stream(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: memoryview, /) -> bytes: ...


class Decoder:
    """Takes one encoding off, piece by piece."""

    def __init__(self, name: str, bytes_max: int) -> None:
        """`name` as in Content-Encoding; `bytes_max`: how much may come out. Raises Invalid for an unknown name."""
        self._name = name.strip().lower()
        if self._name not in {"gzip", "x-gzip", "zstd", "deflate"}:
            raise Invalid("Content-Encoding may be gzip, zstd or deflate, or be left out.")
        self._bytes_max = bytes_max
        self._stream: _Stream | None = None
        self._members = 0
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """What comes out of the next piece. Raises TooLarge, or Invalid for what is no such stream."""
        view, at, pieces = memoryview(data), 0, list[bytes]()
        try:
            while at < len(view):
                window = view[at : at + _WINDOW_BYTES]
                stream = self._stream
                if stream is None or stream.eof:
                    stream = self._stream = self._next(window[0])
                plain = stream.decompress(window)
                at += len(window) - len(stream.unused_data)
                self._size += len(plain)
                if self._size > self._bytes_max:
                    raise TooLarge(f"The body is larger than {self._bytes_max} bytes, the most that is taken here.")
                pieces.append(plain)
        except (zlib.error, zstandard.ZstdError):
            raise self.torn() from None
        return b"".join(pieces)

    @property
    def is_whole(self) -> bool:
        """Has a stream ended, and has nothing begun after it?"""
        return self._stream is not None and self._stream.eof

    def torn(self) -> Invalid:
        """The error for what is cut off, or something else."""
        return Invalid(f"The body is not whole {self._name}, as Content-Encoding says it is.")

    def _next(self, first: int) -> _Stream:
        """A new stream, which begins with the byte `first`."""
        self._members += 1
        if self._members > (1 if self._name == "deflate" else MEMBERS_MAX):
            raise self.torn()
        if self._name == "zstd":
            window = max(_ZSTD_BYTES, self._bytes_max)
            return zstandard.ZstdDecompressor(max_window_size=window).decompressobj()
        if self._name == "deflate":
            # RFC 9110 §8.4.1.2: deflate is a zlib stream, which begins with 8 in its low four bits; some send it bare.
            return zlib.decompressobj(zlib.MAX_WBITS if first & 15 == 8 else -zlib.MAX_WBITS)
        return zlib.decompressobj(zlib.MAX_WBITS | 16)


def decode(body: bytes, name: str, bytes_max: int) -> bytes:
    """A whole body with its Content-Encoding taken off. Raises Invalid or TooLarge."""
    decoder = Decoder(name, bytes_max)
    plain = decoder.feed(body)
    if not decoder.is_whole:
        raise decoder.torn()
    return plain
