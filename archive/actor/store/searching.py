"""The receipt of an erasure: the live files searched for the words by a process of its own (search.py).

What must never be here: opening any of these files.
"""

import subprocess
from pathlib import Path
from stat import S_ISREG
from threading import Timer
from typing import Any

import msgspec

from archive.actor.store.erasing import Emptied
from archive.actor.store.guards import APPLICATION_ID
from archive.actor.store.search import asked, start
from archive.actor.store.start import OWN
from archive.admin import Erase, Receipt, Searched, check_words
from archive.exchange import HEADER
from archive.spelling import spellings

SECONDS_MAX = 120.0
"""A search that takes longer is given up, and the receipt says so: 10 GB and short words are read in less."""


class Search:
    """Searches for words; what is under way can be broken off."""

    def __init__(self) -> None:
        self._children: set[subprocess.Popen[bytes]] = set()
        self._is_over = False

    def break_off(self) -> None:
        """Give up what is being searched, and search for nothing more."""
        self._is_over = True
        for child in tuple(self._children):
            child.kill()

    def receipt(self, store: Path, spool: Path | None, erased: Erase, emptied: Emptied) -> Receipt:
        """What was erased, and whether any live file still has the words. Takes seconds; run in a thread."""
        names = [store, *(store.with_name(store.name + end) for end in OWN)] + ([spool] if spool else [])
        live = [file for file in names if file.exists()]
        beside = _beside(store, live)
        try:
            found = self._found(live, spellings(check_words(erased.words)), beside)
        except OSError:
            found = None
        found = found or Found([_GIVEN_UP] * len(live), [""] * len(beside))
        searched = tuple(Searched(str(file), **said) for file, said in zip(live, found.searched, strict=True))
        begins = map(bytes.fromhex, found.begins)
        ours = [file.name for file, first in zip(beside, begins, strict=True) if is_copy(first)]
        copies = tuple(str(file) for file in beside if file.name.startswith((store.name, *ours)))
        return Receipt(emptied.at, emptied.texts, emptied.uses, emptied.stayed, searched, copies)

    def _found(self, files: list[Path], words: tuple[bytes, ...], beside: list[Path]) -> "Found | None":
        """What each file came to; None when the search was given up."""
        with start() as child:
            self._children.add(child)
            limit = Timer(SECONDS_MAX, child.kill)
            limit.start()
            try:
                if self._is_over:
                    child.kill()
                said, _ = child.communicate(asked(files, words, beside))
            finally:
                limit.cancel()
                self._children.discard(child)
        return msgspec.json.decode(said, type=Found) if child.returncode == 0 else None


class Found(msgspec.Struct):
    """What search.py says."""

    searched: list[dict[str, Any]]
    begins: list[str]


def is_copy(begins: bytes) -> bool:
    """Is a file that begins so a record of ours, whatever it is called, or an export?"""
    is_record = begins.startswith(b"SQLite format 3\0") and begins[68:72] == APPLICATION_ID.to_bytes(4, "big")
    return is_record or begins.startswith(HEADER)


def _beside(store: Path, live: list[Path]) -> list[Path]:
    """The other files in the store's folder, in order; a second name of a live one is that very file."""
    taken = {_file(one) for one in live} | {None}
    return sorted(one for one in store.parent.iterdir() if _file(one) not in taken)


def _file(path: Path) -> tuple[int, int] | None:
    """Which file that is; None where it is none, or gone by now."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if S_ISREG(found.st_mode) else None


_GIVEN_UP: dict[str, Any] = {"bytes": 0, "fault": "the search was not ended"}
