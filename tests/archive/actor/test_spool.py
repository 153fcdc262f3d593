"""The reserved file: what is whole in it is read back, and nothing else is, however it was cut or damaged."""

import random
import struct
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from archive.actor.spool import Spool, SpoolTaken, SpoolUnusable
from archive.attempts import Outcome, Reply, State, Why
from archive.frames import SPOOL_STEP, Ending, Frame, Sending
from archive.request import Destination, Request
from tests.fakes import START, answer, request

STORE, OTHER = b"a" * 16, b"b" * 16
ROOM = 256 * 1024

ODD = Request(
    Destination("systemone", "POST", "https://elsewhere.test/v1/systemone"),
    b'\xef\xbb\xbf{"state":"\x00\xff","model":1e400}',
    "text/json",
    (("typesafe-danger-zone-images", "\udcff"),),
    "bob",
)

FRAMES: list[Frame] = [
    Sending(-1, request("first"), "jev-latest", START),
    Sending(-2, ODD, None, START + 1),
    Ending(-1, START, Outcome(State.ANSWERED, reply=Reply(200, answer(), "\udcfe", "req_1"), cost=7), 412, START + 2),
    Ending(77, START, Outcome(State.FAILED, Why.NO_CONNECTION), 3, START + 3),
]


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "a.spool"


def opened(path: Path, store: bytes = STORE, loaded: int = 0) -> tuple[Spool, list[Frame]]:
    spool = Spool(path, ROOM)
    return spool, spool.begin(store, loaded)


def read(path: Path, store: bytes = STORE, loaded: int = 0) -> list[Frame]:
    """What a process that starts now finds."""
    spool, frames = opened(path, store, loaded)
    spool.close()
    return frames


def filled(path: Path) -> list[int]:
    """Write FRAMES; where each ends."""
    spool, found = opened(path)
    assert found == []
    ends: list[int] = []
    for frame in FRAMES:
        assert spool.add(frame)
        ends.append(ROOM - spool.room)
    spool.close()
    return ends


@pytest.fixture(name="seeded")
def _seeded(request: pytest.FixtureRequest) -> Generator[random.Random, None, None]:
    yield random.Random(request.node.name)


def test_frames_come_back_as_they_were_in_their_order(path: Path) -> None:
    filled(path)
    assert read(path) == FRAMES


def test_frames_that_were_loaded_are_not_found_again_whether_they_were_wiped_or_not(path: Path) -> None:
    """C-07: the store noted the epoch, and the process ended before anything here was changed."""
    filled(path)
    assert read(path, loaded=1) == []
    spool, _ = opened(path)
    spool.loaded()
    spool.close()
    assert read(path) == read(path, loaded=1) == []


def test_words_are_wiped_once_they_were_loaded(path: Path) -> None:
    filled(path)
    spool, _ = opened(path)
    spool.loaded()
    spool.close()
    assert path.read_bytes() == bytes(ROOM)


def test_a_second_epoch_begins_where_the_first_one_did(path: Path) -> None:
    filled(path)
    spool, _ = opened(path)
    spool.loaded()
    assert spool.room == ROOM
    assert spool.add(FRAMES[3])
    spool.close()
    assert read(path, loaded=1) == [FRAMES[3]]
    assert read(path, loaded=2) == []


def test_when_nobody_knows_whether_an_epoch_was_noted_what_comes_after_counts_whichever_it_was(path: Path) -> None:
    spool, _ = opened(path)
    assert spool.add(FRAMES[0])
    spool.doubt()
    assert spool.add(FRAMES[1])
    spool.doubt()
    assert spool.add(FRAMES[2])
    spool.close()
    assert [read(path, loaded=epoch) for epoch in range(4)] == [FRAMES[:3], FRAMES[1:3], FRAMES[2:3], []]
    spool, found = opened(path)
    assert (found, spool.epoch) == (FRAMES[:3], 3)
    assert spool.add(FRAMES[3])
    spool.loaded()
    spool.close()
    assert path.read_bytes() == bytes(ROOM)


def test_what_waits_for_another_store_is_neither_taken_in_nor_written_over(path: Path) -> None:
    filled(path)
    before = path.read_bytes()
    with pytest.raises(SpoolTaken, match="waits for another store"):
        read(path, OTHER)
    assert path.read_bytes() == before


def test_one_at_a_time_has_it(path: Path) -> None:
    spool, _ = opened(path)
    with pytest.raises(SpoolTaken, match="a server that runs"):
        Spool(path, ROOM)
    spool.close()
    assert read(path) == []


def test_what_is_in_a_file_of_another_kind_is_left_as_it_is(path: Path) -> None:
    path.write_bytes(b"a letter")
    with pytest.raises(SpoolTaken, match="no spool"):
        Spool(path, ROOM)
    assert path.read_bytes() == b"a letter"


def moved(path: Path) -> None:
    path.rename(path.with_name("moved"))


@pytest.mark.parametrize("goes", [Path.unlink, moved])
def test_a_file_that_went_is_made_anew_with_all_that_waits(path: Path, goes: Callable[[Path], object]) -> None:
    spool, _ = opened(path)
    assert spool.add(FRAMES[0]) and spool.add(FRAMES[1])
    goes(path)
    assert not spool.add(FRAMES[2])
    assert "a new one was made" in spool.keep()
    assert spool.keep() == ""
    assert spool.add(FRAMES[2])
    spool.close()
    assert read(path) == FRAMES[:3]


def test_a_file_that_was_put_in_its_place_is_left_alone_and_nothing_more_is_written_until_it_is_gone(
    path: Path,
) -> None:
    spool, _ = opened(path)
    assert spool.add(FRAMES[0])
    path.rename(path.with_name("moved"))
    path.write_bytes(b"a letter")
    assert "there is no new one" in spool.keep()
    assert spool.keep() == ""
    assert spool.room == 0 and not spool.add(FRAMES[1])
    assert path.read_bytes() == b"a letter"
    path.with_name("moved").replace(path)
    assert "again" in spool.keep()
    assert spool.add(FRAMES[1])
    spool.close()
    assert read(path) == FRAMES[:2]


def test_a_frame_that_does_not_fit_changes_nothing(path: Path) -> None:
    filled(path)
    spool, _ = opened(path)
    room = spool.room
    assert not spool.add(Sending(-3, request("x" * ROOM), None, START))
    assert spool.room == room
    while spool.add(FRAMES[3]):
        pass
    assert spool.room < SPOOL_STEP * 2
    spool.close()
    assert read(path)[: len(FRAMES)] == FRAMES


def test_cut_anywhere_exactly_the_whole_frames_are_read(path: Path, seeded: random.Random) -> None:
    """C-06: 200 truncations, as a power cut leaves them."""
    ends = filled(path)
    data = path.read_bytes()
    for _ in range(200):
        at = seeded.randrange(ends[-1])
        path.write_bytes(data[:at])
        # What follows a frame up to the next step is padding.
        whole = sum(at >= _payload_end(data, start) for start in [0, *ends[:-1]])
        assert read(path) == FRAMES[:whole], at


def test_damaged_anywhere_exactly_the_damaged_frame_is_missing(path: Path, seeded: random.Random) -> None:
    """C-06: 200 flipped bits."""
    ends = filled(path)
    starts = [0, *ends[:-1]]
    data = path.read_bytes()
    for _ in range(200):
        at, bit = seeded.randrange(ends[-1]), 1 << seeded.randrange(8)
        flipped = bytearray(data)
        flipped[at] ^= bit
        path.write_bytes(flipped)
        hit = max(n for n, start in enumerate(starts) if start <= at)
        in_padding = at >= _payload_end(data, starts[hit])
        expected = [frame for n, frame in enumerate(FRAMES) if n != hit or in_padding]
        assert read(path) == expected, at


def _payload_end(data: bytes, start: int) -> int:
    (length,) = struct.unpack_from("<Q", data, start + 32)
    return start + 72 + length


def test_what_follows_a_damaged_frame_is_not_written_over(path: Path) -> None:
    filled(path)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    spool, found = opened(path)
    assert found == FRAMES[1:]
    assert spool.add(FRAMES[0])
    spool.close()
    assert read(path) == [*FRAMES[1:], FRAMES[0]]


def test_its_room_is_taken_at_once(path: Path) -> None:
    spool, _ = opened(path)
    found = path.stat()
    assert found.st_size == ROOM
    assert found.st_blocks * 512 >= ROOM
    assert found.st_mode & 0o777 == 0o600
    spool.close()


def test_a_file_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpoolUnusable, match="No such file"):
        Spool(tmp_path / "no folder" / "a.spool", ROOM)
    with pytest.raises(SpoolUnusable, match="no room"):
        Spool(tmp_path / "a.spool", 2**50)
    assert not (tmp_path / "no folder").exists()
