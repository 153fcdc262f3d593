"""The reserved file for what the store cannot take: sendings and what came of them, until they can be written.

Its room is taken from the disk at the start, so that a full disk does not matter to it. A frame is on disk before
anything is said of it; frames are read back whole or not at all. Which were loaded into the store is known by the
epoch, which the store notes in the very transaction that loads them: a frame counts while its epoch is a later one.
What must never be here: what a frame means, and the store.
"""

import fcntl
import json
import os
import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import msgspec

from archive.actor.disk import on_disk, write_at
from archive.frames import SPOOL_MAGIC, SPOOL_STEP, Frame, may_be_spool

_HEAD = struct.Struct("<8s16sQQ32s")
"""Magic, the store's id, epoch, length of the payload, SHA-256 over all of that and the payload."""

_BYTES = "bytes"
"""The one key of what stands for bytes in a payload."""

ID_BYTES = 16


class SpoolUnusable(Exception):
    """The file cannot be had; the text says why."""


class SpoolTaken(Exception):
    """The file is somebody else's; the text says what to do."""


class Spool:
    """The open file, for one epoch at a time. Used by one thread at a time."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        """Take `bytes_max` of disk at `path`. Raises SpoolUnusable, SpoolTaken."""
        self.path = path
        self.fault = ""
        """What stands against writing into it, in words: its name stands for another file."""
        self._size = bytes_max - bytes_max % SPOOL_STEP
        self._end = 0
        self._used = 0
        self._epoch = 0
        self.is_stale = False
        """There are frames that the store has: the process ended before they were wiped."""
        self._store = bytes(ID_BYTES)
        self._file = self._taken(0)

    def _taken(self, how: int) -> int:
        """The file open and locked, with its room; `how` it is opened beside. Raises SpoolUnusable, SpoolTaken."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
        except OSError as error:
            raise SpoolUnusable(f"{self.path}: {error.strerror}") from error
        try:
            self._check(file)
            if self._size:
                os.posix_fallocate(file, 0, self._size)
        except OSError as error:
            os.close(file)
            raise SpoolUnusable(f"{self.path}: no room for {self._size} bytes: {error.strerror}") from error
        except SpoolTaken:
            os.close(file)
            raise
        return file

    def _check(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SpoolTaken(
                f"{self.path} is the spool of a server that runs; stop that, or name another file"
            ) from None
        if not may_be_spool(os.pread(file, SPOOL_STEP, 0)):
            raise SpoolTaken(f"{self.path} is no spool, and what is in it would be written over; name another file")

    def close(self) -> None:
        os.close(self._file)

    @property
    def room(self) -> int:
        """Bytes that still fit, a frame's head included."""
        return 0 if self.fault else self._size - self._end

    def keep(self) -> str:
        """See to it that the next process finds what is in here, by its name; what changed, in words, or nothing.

        Where the name is free a new file takes it, with all that waits. Where it stands for another file, that is left
        alone, and nothing more is written until it is gone.
        """
        before = self.fault
        if self._is_named:
            self.fault = ""
            return "the spool is where it was again" if before else ""
        try:
            self._renew()
        except (OSError, SpoolUnusable, SpoolTaken) as error:
            self.fault = f"the spool was removed or replaced, and there is no new one: {error}"
            return "" if before else self.fault
        self.fault = ""
        return "the spool was removed; a new one was made, and all that waits is in it"

    @property
    def _is_named(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))  # noqa: PTH116 - as quick as can be
        except OSError:
            return False

    def _renew(self) -> None:
        new = self._taken(os.O_EXCL)
        try:
            write_at(new, os.pread(self._file, self._end, 0), 0)
            os.fsync(new)
            on_disk(self.path.parent)
        except OSError:
            # What is not whole must not stand there as if it were.
            self.path.unlink()
            os.close(new)
            raise
        os.close(self._file)
        self._file = new

    def begin(self, store: bytes, loaded: int) -> list[Frame]:
        """The frames of epochs after `loaded`, the last one that the store has in it; the newest of them goes on.

        `store` is the store's id, 16 bytes. Raises SpoolTaken when something in it waits for another store.
        """
        self._store, self._epoch = store, loaded + 1
        frames: list[Frame] = []
        self._end = self._used = 0
        for end, epoch, frame in self._whole():
            if epoch > loaded:
                frames.append(frame)
                self._end, self._epoch = end, max(self._epoch, epoch)
            else:
                self.is_stale = True
        # What an earlier epoch, or a damaged frame, left behind is wiped together with these.
        self._used = self._size
        return frames

    def add(self, frame: Frame) -> bool:
        """Put a frame on disk; False, and nothing has changed, when it does not fit. Raises OSError."""
        data = _packed(frame, self._store, self._epoch)
        if self.fault or self._end + len(data) > self._size:
            return False
        write_at(self._file, data, self._end)
        os.fdatasync(self._file)
        # Before anybody is told that it is kept.
        if not self._is_named:
            return False
        self._end += len(data)
        self._used = max(self._used, self._end)
        return True

    def doubt(self) -> None:
        """The store was told to note the epoch, and nobody knows whether it did: what comes from now on is of the next
        one. So it counts, whichever it was, and what was there before counts only if it is not in the store.
        """
        self._epoch += 1

    def loaded(self) -> None:
        """All frames are in the store, which noted the epoch: the next begins, and people's words are wiped here."""
        self._epoch += 1
        self.is_stale = False
        used, self._end, self._used = self._used, 0, 0
        blank = bytes(1024 * 1024)
        for at in range(0, used, len(blank)):
            os.pwrite(self._file, blank[: used - at], at)
        os.fdatasync(self._file)

    @property
    def epoch(self) -> int:
        """The one whose frames wait; the store notes it when it has loaded them."""
        return self._epoch

    def _whole(self) -> Iterator[tuple[int, int, Frame]]:
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        at = data.find(SPOOL_MAGIC)
        while at >= 0:
            found = None if at % SPOOL_STEP else self._frame(data, at)
            if found is not None:
                yield found
            at = data.find(SPOOL_MAGIC, at + 1 if found is None else found[0])

    def _frame(self, data: bytes, at: int) -> tuple[int, int, Frame] | None:
        """Where the next frame may begin, the epoch of the one at `at`, and that; None when it is none of ours."""
        if len(data) < at + _HEAD.size:
            return None
        head = cast("tuple[bytes, bytes, int, int, bytes]", _HEAD.unpack_from(data, at))
        _, store, epoch, length, seal = head
        start = at + _HEAD.size
        if length > len(data) - start:
            return None
        payload = data[start : start + length]
        if _seal(store, epoch, payload) != seal:
            return None
        if store != self._store:
            raise SpoolTaken(f"{self.path} holds what waits for another store; name another file for this one")
        try:
            return _next(start + length), epoch, _read(payload)
        except (ValueError, msgspec.ValidationError):
            return None


def _packed(frame: Frame, store: bytes, epoch: int) -> bytes:
    # Python's JSON keeps lone surrogates, which headers may hold and UTF-8 does not. Bytes stand as the text they are,
    # so that words in them are found by who searches the file for them.
    said = json.dumps(msgspec.to_builtins(frame, builtin_types=(bytes,)), default=_as_text, ensure_ascii=False)
    payload = said.encode("utf-8", "surrogatepass")
    head = _HEAD.pack(SPOOL_MAGIC, store, epoch, len(payload), _seal(store, epoch, payload))
    return (head + payload).ljust(_next(len(head) + len(payload)), b"\0")


def _read(payload: bytes) -> Frame:
    said = json.loads(payload.decode("utf-8", "surrogatepass"), object_hook=_as_bytes)
    return msgspec.convert(said, Frame, strict=False, builtin_types=(bytes,))


def _as_text(data: bytes) -> dict[str, str]:
    return {_BYTES: data.decode("utf-8", "surrogateescape")}


def _as_bytes(said: dict[str, Any]) -> Any:
    return said[_BYTES].encode("utf-8", "surrogateescape") if said.keys() == {_BYTES} else said


def _seal(store: bytes, epoch: int, payload: bytes) -> bytes:
    return sha256(b"%b%d:%d:" % (store, epoch, len(payload)) + payload).digest()


def _next(at: int) -> int:
    return -(-at // SPOOL_STEP) * SPOOL_STEP
