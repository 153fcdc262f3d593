"""Files are searched byte by byte: whole words and pieces of them, wherever they stand, and nothing else."""

import random
from pathlib import Path

import pytest

from archive.actor.store import search as searching
from archive.actor.store.search import READ_BYTES, search

WORDS = b"What Zoe O'Hara of Ghent wrote to us on Monday"


def put(path: Path, size: int, *pieces: tuple[int, bytes]) -> Path:
    """A file of noise with these pieces at these places."""
    data = bytearray(random.Random(size).randbytes(size))
    for place, piece in pieces:
        data[place : place + len(piece)] = piece
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("at", [0, 1, 5, 11, 12, 4090, 9_000])
def test_a_piece_of_24_bytes_is_found_at_any_place_and_one_of_23_is_none(tmp_path: Path, at: int) -> None:
    for begin in range(len(WORDS) - 24):
        there = put(tmp_path / "a", 10_000, (at, WORDS[begin : begin + 24]))
        assert search(there, [WORDS]) == {"bytes": 10_000, "whole": 0, "pieces": 1}
    short = put(tmp_path / "a", 10_000, (at, WORDS[3:26]))
    assert search(short, [WORDS]) == {"bytes": 10_000, "whole": 0, "pieces": 0}


def test_what_is_whole_is_counted_whole_and_not_in_pieces(tmp_path: Path) -> None:
    file = put(tmp_path / "a", 5_000, (7, WORDS), (900, WORDS), (2_000, WORDS[:30]), (4_954, WORDS))
    assert search(file, [WORDS, b"short"]) == {"bytes": 5_000, "whole": 3, "pieces": 1}


@pytest.mark.parametrize("shift", [-60, -40, -20, -1, 0, 1])
def test_what_lies_over_the_end_of_what_is_read_at_once_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    monkeypatch.setattr(searching, "READ_BYTES", 4_096)
    file = put(tmp_path / "a", 20_000, (4_096 + shift, WORDS), (12_288 + shift, WORDS[:30]))
    assert search(file, [WORDS]) == {"bytes": 20_000, "whole": 1, "pieces": 1}
    assert len(WORDS) < READ_BYTES


def test_words_of_one_letter_repeated_do_not_take_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"-" * 100_000)
    assert search(file, [b"-" * 2_000])["whole"] > 0
    assert search(file, [b"-" * 2_000 + b"x"])["pieces"] > 0


def test_a_file_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    assert "fault" in search(tmp_path / "gone", [WORDS])
    (tmp_path / "folder").mkdir()
    assert "fault" in search(tmp_path / "folder", [WORDS])
