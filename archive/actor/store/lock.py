"""The lock file beside the store, held for life: one process at a time may have a store.

What must never be here: the store's own file.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Any, cast


class StoreTaken(Exception):
    """Another process has this store; the text says who, `holder` all it wrote of itself when it took it."""

    def __init__(self, store: Path, holder: dict[str, Any]) -> None:
        port = f" at port {holder['port']}" if "port" in holder else ""
        who = f"process {holder['pid']}{port}" if "pid" in holder else "another process"
        super().__init__(f"{store} is in use by {who}. One process at a time may have it.")
        self.holder = holder


class StoreUnusable(Exception):
    """The file cannot be used as a store; the text says why."""


class Lock:
    """A lock file beside the store, held from here until the process ends."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + ".lock")
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            # One that was here before may have been open to others, and a server writes its secret into it.
            os.fchmod(self._descriptor, 0o600)
        except OSError as error:
            raise StoreUnusable(f"{self.path}: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(os.read(self._descriptor, 1000))
            os.close(self._descriptor)
            raise StoreTaken(store, holder) from None
        self.say({"pid": os.getpid()})

    def say(self, holder: dict[str, Any]) -> None:
        """Write who holds the store, for whoever comes second."""
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)

    def release(self) -> None:
        """Let go. The file stays: removing it would let two processes lock two files of one name."""
        os.truncate(self._descriptor, 0)
        os.close(self._descriptor)


def _holder(text: bytes) -> dict[str, Any]:
    try:
        said: object = json.loads(text)
    except ValueError:
        said = None
    return cast("dict[str, Any]", said) if isinstance(said, dict) else {}
