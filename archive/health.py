"""How the record is, and whether that is well; and how large the log beside the store may become.

What must never be here: finding it out.
"""

import msgspec

WAL_BYTES_MAX = 256 * 1024 * 1024
"""Past this our own long readings are cut off, so that the store's log can be folded in, and all is not well."""

WAL_BYTES_FULL = 1024 * 1024 * 1024
"""From this on, when another program keeps the log from being folded in, nothing more is written into it."""


def log_held(readers: str = "") -> str:
    """Why a log is large, in words; `readers` names the programs that keep it so, where that is known."""
    who = f"another program ({readers})" if readers else "another program"
    return f"{who} has been reading the store and keeps its log from being folded in"


class Condition(msgspec.Struct, frozen=True):
    """How the record is. `ok` is False as soon as an answer that came now might not be kept.

    `held`: outcomes that wait to be written. `calls`: on the wire. `cooling`: destinations that asked to be left alone.
    `readers`: which other programs keep a large log from being folded in, where that can be seen.
    `checked_at`: when the whole record was last checked (None: not yet since the start), `checking`: rows since then.
    `faults`: what is wrong with what is kept, in words. `spool`: is there a file for what the store cannot take?
    """

    writable: bool
    held: int
    calls: int
    cooling: int
    schema: int
    wal_bytes: int = 0
    readers: str = ""
    checked_at: int | None = None
    checking: int = 0
    faults: tuple[str, ...] = ()
    spool: bool = True

    @property
    def why(self) -> str:
        """What is not well, in words; empty while all is."""
        said = {
            log_held(self.readers): self.wal_bytes > WAL_BYTES_MAX,
            "the store cannot be written at this moment": not self.writable,
            f"calls and outcomes wait to be written: {self.held}": self.held,
            "there is no spool: while the store cannot be written, nothing is sent": not self.spool,
            "what is kept has faults": self.faults,
        }
        return "; ".join(words for words, wrong in said.items() if wrong)

    @property
    def ok(self) -> bool:
        return not self.why
