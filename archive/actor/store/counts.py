"""Numbers that are added up as things happen, by name, so that no page has to count a whole record.

`now`, `shared`, `no` (how answers were delivered), `saved` and `saved_unknown` exist only here. The others say again
what the record says, are added to in the transaction that writes it, and can be counted anew (`recount`).
What must never be here: words of anybody's.
"""

from collections.abc import Mapping

from archive.actor.store.rows import Rows
from archive.messages import Sent, SoFar

COUNT_MAX = 2**61
"""No count grows past this: a model that names absurd prices must not keep its answers from being written."""

_OUTCOMES = """
SELECT coalesce(sum(o.n = 1 AND (o.state <> 2 OR o.reply IS NOT NULL)), 0),
       coalesce(sum(o.cost), 0),
       coalesce(sum((o.cost IS NULL AND (o.state <> 2 OR o.paid)) - (o.n = 2)), 0)
FROM outcome o JOIN dispatch d ON d.id = o.dispatch WHERE d.origin = 1"""
"""Calls that left (all but those that failed without a reply), what they cost, and how many prices are unknown: those
of answers without a price, of refusals that were paid for, and of unknown calls as long as no late answer tells."""

_QUESTIONS = "SELECT count(*), coalesce(sum(times), 0), coalesce(sum(alone), 0) FROM question"


class Counts(Rows):
    """The part of the record that is about how much."""

    def count(self, added: Mapping[str, int]) -> None:
        """Add to the counts; what is added may be negative."""
        self.db.executemany(
            f"INSERT INTO count (name, value) VALUES (?1, min(?2, {COUNT_MAX}))"
            f" ON CONFLICT (name) DO UPDATE SET value = min(value + excluded.value, {COUNT_MAX})",
            [(name, min(value, COUNT_MAX)) for name, value in added.items() if value],
        )

    def count_outcome(self, number: int) -> None:
        """Add what outcome `number` changes."""
        self.count(_sent(self.db.execute(_OUTCOMES + " AND o.id = ?", (number,)).fetchone()))

    def recount(self) -> None:
        """Count anew what the record says; reads all of it."""
        counted = _sent(self.db.execute(_OUTCOMES).fetchone())
        questions, asked, alone = self.db.execute(_QUESTIONS).fetchone()
        counted |= {"questions": questions, "asked": asked, "alone": alone}
        self.db.executemany("DELETE FROM count WHERE name = ?", [(name,) for name in counted])
        self.count(counted)

    def counts(self) -> dict[str, int]:
        """The counts as written; one that is 0 may be missing."""
        return dict(self.db.execute("SELECT name, value FROM count").fetchall())

    def so_far(self) -> SoFar:
        """All there was until now, as far as it is written."""
        counts = self.counts()
        return SoFar(
            questions=counts.get("questions", 0),
            asked=counts.get("asked", 0),
            sent=counts.get("sent", 0),
            spent=counts.get("spent", 0),
            spent_unknown=counts.get("spent_unknown", 0),
            not_sent=counts.get(Sent.NOT_SENT, 0) + counts.get(Sent.SHARED, 0),
            saved=counts.get("saved", 0),
            saved_unknown=counts.get("saved_unknown", 0),
            alone=counts.get("alone", 0),
        )


def _sent(row: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(("sent", "spent", "spent_unknown"), row, strict=True))
