"""Taking an encoding off piece by piece: the same bytes however it is cut, never more than allowed, nothing torn."""

import gzip
import random
import zlib
from collections.abc import Iterator

import pytest
import zstandard

from archive.encoding import MEMBERS_MAX, Decoder, decode
from archive.errors import Invalid, TooLarge

PLAIN = b"Is it? " * 999 + random.Random(1).randbytes(999)
ZSTD = zstandard.ZstdCompressor()
BARE = zlib.compressobj(wbits=-zlib.MAX_WBITS)

PACKED: dict[str, tuple[str, bytes]] = {
    "gzip": ("gzip", gzip.compress(PLAIN)),
    "gzip by its old name": (" X-GZIP ", gzip.compress(PLAIN)),
    "gzip in members": ("gzip", b"".join(gzip.compress(PLAIN[at : at + 999]) for at in range(0, len(PLAIN), 999))),
    "zstd": ("zstd", ZSTD.compress(PLAIN)),
    "zstd in frames": ("zstd", b"".join(ZSTD.compress(PLAIN[at : at + 999]) for at in range(0, len(PLAIN), 999))),
    "zstd with a frame to skip": ("zstd", b"\x50\x2a\x4d\x18\x03\0\0\0abc" + ZSTD.compress(PLAIN)),
    "deflate": ("deflate", zlib.compress(PLAIN)),
    "deflate, bare": ("deflate", BARE.compress(PLAIN) + BARE.flush()),
}


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 255, 256, 257, 10**6])
@pytest.mark.parametrize("name", PACKED)
def test_it_comes_off_however_it_is_cut(name: str, size: int) -> None:
    encoding, packed = PACKED[name]
    decoder = Decoder(encoding, len(PLAIN))
    assert b"".join(decoder.feed(piece) for piece in cut(packed, size)) == PLAIN
    assert decoder.is_whole


@pytest.mark.parametrize("name", PACKED)
def test_one_byte_less_is_not_whole_and_one_more_is_something_else(name: str) -> None:
    encoding, packed = PACKED[name]
    for torn in (packed[:-1], packed[: len(packed) // 2], packed + b"x", b"x" + packed, b""):
        with pytest.raises(Invalid):
            decode(torn, encoding, 10**6)


@pytest.mark.parametrize("name", PACKED)
def test_one_byte_more_than_allowed_is_too_large(name: str) -> None:
    encoding, packed = PACKED[name]
    assert decode(packed, encoding, len(PLAIN)) == PLAIN
    with pytest.raises(TooLarge):
        decode(packed, encoding, len(PLAIN) - 1)


@pytest.mark.parametrize("name", ["br", "", "identity", "compress", "gzip, gzip", "zip"])
def test_other_encodings_are_refused_by_name(name: str) -> None:
    with pytest.raises(Invalid, match="gzip, zstd or deflate"):
        Decoder(name, 100)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_streams_in_a_row_have_a_limit_though_nothing_is_in_them(encoding: str) -> None:
    nothing = gzip.compress(b"") if encoding == "gzip" else ZSTD.compress(b"")
    assert decode(nothing * MEMBERS_MAX, encoding, 0) == b""
    with pytest.raises(Invalid):
        decode(nothing * (MEMBERS_MAX + 1), encoding, 0)


def test_a_zstd_frame_that_wants_more_memory_than_a_body_may_have_is_refused() -> None:
    """RFC 9659: a window of 8 MB is enough over HTTP."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    wide = stream.compress(PLAIN) + stream.flush()
    assert zstandard.get_frame_parameters(wide).window_size == 2**27
    with pytest.raises(Invalid):
        decode(wide, "zstd", 10**6)
    assert decode(wide, "zstd", 2**27) == PLAIN
