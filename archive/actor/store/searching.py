"""The receipt of an erasure: the live files searched for the words by a process of its own (search.py).

What must never be here: opening any of these files.
"""

import subprocess
from pathlib import Path
from threading import Timer
from typing import Any

import msgspec

from archive.actor.store.erasing import Emptied
from archive.actor.store.search import asked, start
from archive.actor.store.start import OWN
from archive.admin import Erase, Receipt, Searched, check_words
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
        copies = sorted(str(file) for file in store.parent.glob(f"{store.name}*") if file not in live)
        try:
            found = self._found(live, spellings(check_words(erased.words)))
        except OSError:
            found = None
        searched = tuple(
            Searched(str(file), **said) for file, said in zip(live, found or [_GIVEN_UP] * len(live), strict=True)
        )
        return Receipt(emptied.at, emptied.texts, emptied.uses, emptied.stayed, searched, tuple(copies))

    def _found(self, files: list[Path], words: tuple[bytes, ...]) -> list[dict[str, Any]] | None:
        """What each file came to; None when the search was given up."""
        with start() as child:
            self._children.add(child)
            limit = Timer(SECONDS_MAX, child.kill)
            limit.start()
            try:
                if self._is_over:
                    child.kill()
                said, _ = child.communicate(asked(files, words))
            finally:
                limit.cancel()
                self._children.discard(child)
        return msgspec.json.decode(said) if child.returncode == 0 else None


_GIVEN_UP: dict[str, Any] = {"bytes": 0, "fault": "the search was not ended"}
