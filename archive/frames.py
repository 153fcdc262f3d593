"""What waits outside the store while it takes nothing: a call that was let out, and what came of one.

Both wait in the spool, a file known by how it begins. What must never be here: how they are kept in it
(archive/actor/spool.py).
"""

import msgspec

from archive.attempts import Outcome
from archive.request import Request

SPOOL_MAGIC = b"ASK1SPL\n"
"""What each of them begins with in the file."""

SPOOL_STEP = 512
"""They begin at multiples of this: a damaged one hides none of those after it. It is what disks write as one."""


def may_be_spool(head: bytes) -> bool:
    """May a file that begins with these SPOOL_STEP bytes be taken for the spool: is it blank there, or written by us?

    The beginning of ours is blank too when the process ended while it was first written, or wiped.
    """
    return head.startswith(SPOOL_MAGIC) or not head.strip(b"\0")


class Sending(msgspec.Struct, frozen=True, tag="sending"):
    """A call that was let out while the store could not be written. `number` is below 0; the store gives another.

    `upstream`, `token`: on whose budgets of the day it goes (0: on nobody's). `public`: asked on a public page.
    """

    number: int
    request: Request
    asked_model: str | None
    at: int
    upstream: str = ""
    token: int = 0
    public: bool = False


class Ending(msgspec.Struct, frozen=True, tag="ending"):
    """What came of a sending: one of these (below 0), or one in the store, which `sent_at` names once more.

    `place`: whom a cooldown in it holds for (attempts.cooling_place). `call_id`: the request's. `erased`: the words of
    the request were, so what came back is nobody's and is not in here.
    """

    number: int
    sent_at: int
    outcome: Outcome
    ms: int
    at: int
    place: int = 0
    call_id: str = ""
    erased: bool = False


Frame = Sending | Ending
