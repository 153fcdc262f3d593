"""Bytes and names on their way to the disk, of files beside the store: written whole, and there after a power cut.

What must never be here: the store's own file. Closing a second descriptor of it drops SQLite's locks.
"""

import os
from pathlib import Path


def write_at(descriptor: int, data: bytes, at: int) -> None:
    """Write all of `data` at the byte `at`; the system may take it in pieces. Raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def on_disk(path: Path) -> None:
    """Have the system write what it holds of a file or, for the names in it, of a folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
