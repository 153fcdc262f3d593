"""How each version stands: there, withdrawn by the owner's newest word, or erased; and writing such a word.

What must never be here: what follows from it (archive/picks.py), emptying a text (erasing.py).
"""

from archive.actor.store.rows import Rows
from archive.admin import Withdraw
from archive.errors import Erased, NotFound
from archive.picks import Standing

_ERASED = """
SELECT max(t.emptied_at) FROM request r JOIN destination d ON d.id = r.destination
JOIN text t ON t.id IN
    (r.partition, r.content_type, r.headers, r.instructions, r.state, r.model, d.name, d.method, d.url)
WHERE r.id = ?"""

_VERSION = """
SELECT a.id, t.bytes IS NULL, t.emptied_at
FROM answer a JOIN outcome o ON o.id = a.outcome JOIN text t ON t.id = o.reply
WHERE a.request = ? AND a.n = ?"""

_WORD = """
SELECT w.withdrawn, w.at, t.bytes FROM withdrawal w LEFT JOIN text t ON t.id = w.why
WHERE w.answer = ? ORDER BY w.id DESC LIMIT 1"""


class Standings(Rows):
    """The part of the record that is about what may still be shown."""

    def erased_at(self, request: int) -> int | None:
        """When any part of a request was erased, so that its bytes are known no more; None: they are all there."""
        return self.db.execute(_ERASED, (request,)).fetchone()[0]

    def standing(self, request: int, n: int) -> Standing | None:
        """How version `n` of a request stands; None when there never was one."""
        row = self.db.execute(_VERSION, (request, n)).fetchone()
        if row is None:
            return None
        answer, emptied, emptied_at = row
        if emptied:
            return Standing(n, erased=True, gone_at=emptied_at)
        erased_at = self.erased_at(request)
        if erased_at is not None:
            return Standing(n, erased=True, gone_at=erased_at)
        word = self.db.execute(_WORD, (answer,)).fetchone()
        if word is None or not word[0]:
            return Standing(n)
        why = b"" if word[2] is None else word[2]
        return Standing(n, withdrawn=True, gone_at=word[1], why=why.decode("utf-8", "surrogatepass"))

    def withdraw(self, word: Withdraw, at: int) -> None:
        """Write the owner's word on a version. Raises NotFound, Erased."""
        standing = self.standing(word.request_id, word.n)
        if standing is None:
            raise NotFound(f"Request number {word.request_id} has no answer {word.n} on record.")
        if standing.erased:
            raise Erased(
                f"The words of answer {word.n} were erased; there is nothing to withdraw.", at=standing.gone_at
            )
        (answer,) = self.db.execute(
            "SELECT id FROM answer WHERE request = ? AND n = ?", (word.request_id, word.n)
        ).fetchone()
        self.add("withdrawal", answer, int(word.withdrawn), None, self.optional(word.why), at)
