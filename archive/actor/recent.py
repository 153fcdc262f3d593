"""A bounded map of kept answers in front of the mailbox: the newest usable answer of requests used lately.

Filled and emptied by the actor after its commit. Safe because a kept answer never changes.
"""

from collections import OrderedDict

from archive.messages import Ask, Kept
from archive.picks import KeptOnly, Latest, Version
from archive.request import Request

_ENTRY_BYTES = 1200
"""What an entry costs beside its body and reply, about."""

_CUT_BYTES = 36
"""What a chunk's length costs at most."""


class Recent:
    """Request → its newest kept answer, for the latest used; as many as fit into `bytes_max`."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[Request, Kept] = OrderedDict()
        self.size = 0

    def get(self, request: Request) -> Kept | None:
        """The newest kept answer, if this request was used lately."""
        kept = self._entries.get(request)
        if kept is not None:
            self._entries.move_to_end(request)
        return kept

    def picked_by(self, ask: Ask) -> Kept | None:
        """The newest kept answer, if it is the one that is asked for."""
        newest, pick = self.get(ask.request), ask.pick
        if newest is None or isinstance(pick, Latest | KeptOnly):
            return newest
        return newest if isinstance(pick, Version) and pick.n == newest.n else None

    def put(self, request: Request, kept: Kept) -> None:
        """Remember the newest answer, in place of an older one."""
        self.drop(request)
        size = _size(request, kept)
        if size > self._bytes_max // 8:
            return
        self._entries[request] = kept
        self.size += size
        while self.size > self._bytes_max:
            self.size -= _size(*self._entries.popitem(last=False))

    def drop(self, *requests: Request) -> None:
        """Forget requests: their newest answer is another one now, or none."""
        for request in requests:
            kept = self._entries.pop(request, None)
            if kept is not None:
                self.size -= _size(request, kept)

    def clear(self) -> None:
        """Forget all of them."""
        self._entries.clear()
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)


def _size(request: Request, kept: Kept) -> int:
    return len(request.body) + len(kept.body) + _CUT_BYTES * len(kept.cuts) + _ENTRY_BYTES
