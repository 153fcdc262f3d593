"""The ledger of erasures: a file beside the store that says which texts were emptied, and holds no words.

A backup made before an erasure still has the words. The ledger is not in the backup and stays where it is when one is
put back, and at every start what it names is emptied before anything is served, and after the spool was taken in:
what waited there may come to use a text that was erased, where an older copy lies beside it.

A line is the number of a text, its link in the chain, and the moment. The link is made of every text before it, so a
number means nothing in another store, or where another text came to have it after an older backup was put back.

Order: the texts are emptied inside a transaction; their lines are written and on disk; only then comes COMMIT. Wherever
the process ends in between, the words are gone or the erasure never happened:
- before the lines are on disk: the transaction is undone by SQLite. A line that is not whole (no newline) was never
  answered for; it is passed over, and cut off before the next is written.
- after the lines, before COMMIT: the texts are still there, and are emptied at the next start.
- after COMMIT: nothing is left to do, and the lines find their texts empty.

What must never be here: a word of anybody's, the store's own file.
"""

import os
from pathlib import Path
from typing import NamedTuple

from archive.actor.disk import on_disk, write_at

SUFFIX = ".erased"


class LedgerBroken(Exception):
    """A line cannot be read; the text says which. What it names cannot be kept from coming back."""


class Line(NamedTuple):
    """A text that was emptied: its number, its link in the chain, the moment."""

    text: int
    chain: bytes
    at: int


class Ledger:
    """The file beside the store."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + SUFFIX)

    def lines(self) -> list[Line]:
        """All that was ever erased. Raises LedgerBroken, OSError."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return [self._line(number, line) for number, line in enumerate(data.split(b"\n")[:-1], start=1)]

    def _line(self, number: int, line: bytes) -> Line:
        try:
            text, chain, at = line.decode("ascii").split(" ")
            return Line(int(text), bytes.fromhex(chain), int(at))
        except ValueError:
            raise LedgerBroken(
                f"{self.path}: line {number} cannot be read, and what it names may come back. Put the ledger back from"
                " a copy; without one, remove that line, and erase again what may have been in it"
            ) from None

    def append(self, lines: list[Line]) -> None:
        """Write lines; they are on disk when this returns. Raises OSError."""
        said = "".join(f"{line.text} {line.chain.hex()} {line.at}\n" for line in lines).encode()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = _whole(descriptor)
            os.ftruncate(descriptor, end)
            write_at(descriptor, said, end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        on_disk(self.path.parent)


def _whole(descriptor: int) -> int:
    """How many bytes of the file are whole lines."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).rfind(b"\n") + 1
