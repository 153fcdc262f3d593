"""Searching files for words, byte by byte, in a throwaway process that only reads.

Opening the store's file in the process that has it would drop SQLite's locks (file.py), so this file is run as a
script, `python -I search.py`: JSON on stdin (`files`, `words` in hex, and `beside`, files that are not searched), JSON
on stdout: what each file came to (`searched`), and what those beside begin with (`begins`, in hex). The words are never
in its arguments, where others could read them.

A long text is split over pages that stand anywhere in the file, so pieces of the words are looked for as well: 24 bytes
of them in a row. Wherever one stands, every twelfth byte of the file begins twelve bytes that are the words' own; so it
is enough to look there, and where they are, to compare the bytes around them. What must never be here: an import beyond
the standard library, writing.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = 12
PIECE = 24

READ_BYTES = 16 * 1024 * 1024

PLACES_MAX = 200
"""Of twelve bytes that stand in the words more often than this, no more places are compared."""

HITS_MAX = 10_000
"""More of them say nothing more."""

BEGINS_BYTES = 100
"""Of a file; a SQLite file's header has as many."""

PIPE = subprocess.PIPE


def start() -> "subprocess.Popen[bytes]":
    """The process; it waits for `asked`."""
    return subprocess.Popen([sys.executable, "-I", __file__], stdin=PIPE, stdout=PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - this very file


def asked(files: list[Path], words: tuple[bytes, ...], beside: list[Path]) -> bytes:
    """What the process is given: the files to search, the spellings to search them for, and other files."""
    given = {"files": [*map(str, files)], "words": [one.hex() for one in words], "beside": [*map(str, beside)]}
    return json.dumps(given).encode()


def begins(file: Path) -> bytes:
    """The first BEGINS_BYTES of a file; none of one that cannot be read."""
    try:
        with file.open("rb") as read:
            return read.read(BEGINS_BYTES)
    except OSError:
        return b""


def search(file: Path, words: list[bytes]) -> dict[str, Any]:
    """How often the words stand in a file: whole, and in pieces that are not whole."""
    whole, pieces = set[int](), set[int]()
    overlap = 2 * max(map(len, words))
    blocks = _blocks(words)
    before, at = b"", 0
    try:
        with file.open("rb") as read:
            while (data := read.read(READ_BYTES)) and len(whole) + len(pieces) < HITS_MAX:
                chunk, start = before + data, at - len(before)
                here = sorted((place, place + len(one)) for one in words for place in _places(chunk, one))
                whole.update(start + place for place, _ in here)
                pieces.update(start + place for place in _pieces(chunk, blocks, here))
                at += len(data)
                before = chunk[-overlap:]
    except OSError as error:
        return {"bytes": at, "fault": error.strerror or type(error).__name__}
    # At the end of what was read at once, what is whole looked like a piece at first.
    pieces = {place for place in pieces if not any(abs(place - start) < overlap for start in whole)}
    return {"bytes": at, "whole": len(whole), "pieces": len(pieces)}


def _blocks(words: list[bytes]) -> dict[bytes, list[tuple[bytes, int]]]:
    """Every twelve bytes of words that have pieces: which words, and where in them."""
    blocks: dict[bytes, list[tuple[bytes, int]]] = {}
    for word in words:
        for place in range(len(word) - BLOCK + 1) if len(word) > PIECE else ():
            blocks.setdefault(word[place : place + BLOCK], []).append((word, place))
    return blocks


def _pieces(chunk: bytes, blocks: dict[bytes, list[tuple[bytes, int]]], whole: list[tuple[int, int]]) -> Iterator[int]:
    """Where pieces begin that are no part of what was found whole."""
    over = 0
    following = iter([*whole, (len(chunk), len(chunk))])
    begins, ends = next(following)
    for place in range(0, len(chunk) - BLOCK + 1 if blocks else 0, BLOCK):
        if chunk[place : place + BLOCK] not in blocks:
            continue
        while place >= ends:
            begins, ends = next(following)
        if place < over or place + BLOCK > begins:
            continue
        extents = [_extent(chunk, place, *one) for one in blocks[chunk[place : place + BLOCK]][:PLACES_MAX]]
        start, over = max(extents, key=lambda extent: extent[1] - extent[0])
        if over - start >= PIECE:
            yield start


def _extent(chunk: bytes, place: int, word: bytes, block: int) -> tuple[int, int]:
    """Where the piece of `word` begins and ends in the chunk whose block was found at `place`."""
    start, first = place, block
    while start > 0 and first > 0 and chunk[start - 1] == word[first - 1]:
        start, first = start - 1, first - 1
    end, last = place + BLOCK, block + BLOCK
    while end < len(chunk) and last < len(word) and chunk[end] == word[last]:
        end, last = end + 1, last + 1
    return start, end


def _places(chunk: bytes, word: bytes) -> list[int]:
    found: list[int] = []
    place = chunk.find(word)
    while place >= 0 and len(found) < HITS_MAX:
        found.append(place)
        place = chunk.find(word, place + len(word))
    return found


if __name__ == "__main__":
    given = json.load(sys.stdin.buffer)
    spelled = [bytes.fromhex(one) for one in given["words"]]
    found = [search(Path(name), spelled) for name in given["files"]]
    json.dump({"searched": found, "begins": [begins(Path(name)).hex() for name in given["beside"]]}, sys.stdout)
