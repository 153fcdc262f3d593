"""For a program's own tests: whatever a machine judged is written together with its judgment number.

    def test_each_verdict_has_its_judgment(db, archive):
        assert_judged(db.execute("SELECT label, judgment FROM verdict"), archive)

`db` is the program's database after it ran, `archive` Askonce's store, opened with `sqlite3.connect` in a process that
is not the server's. What must never be here: an import of pytest.
"""

import sqlite3
from collections.abc import Callable, Iterable

SHOWN_MAX = 10
"""Of the results that are wrong so many are named."""

_ASKING = """
SELECT coalesce(s.id, (SELECT a.id FROM outcome o JOIN answer a ON a.request = k.request AND a.outcome = o.id
                       WHERE o.dispatch = k.dispatch ORDER BY o.n DESC LIMIT 1))
FROM asking k LEFT JOIN answer s ON s.id = k.answer WHERE k.id = ?"""

Archive = sqlite3.Connection | Callable[[int], bool]
"""Askonce's store; or a function: was this judgment number given, and did the asking come to an answer?"""


def assert_judged(results: Iterable[tuple[object, object]], archive: Archive) -> None:
    """Does every result have the number of an asking that was answered? Raises AssertionError, which names the others.

    `results`: pairs of what a machine judged and its judgment number, as from `SELECT label, judgment FROM ...`. Where
    nothing was judged (None) no number is needed. No results at all is an error too: then nothing was tested.
    """
    if not isinstance(archive, sqlite3.Connection) and not callable(archive):
        raise TypeError('archive is Askonce\'s store, opened: sqlite3.connect("askonce.db"); or a function of a number')
    rows = list(results)
    if not rows:
        raise AssertionError("There are no results to look at: let the program write some first.")
    wrong: list[str] = []
    for at, (result, number) in enumerate(rows, start=1):
        why = "" if result is None else _wrong(number, archive)
        if why:
            wrong.append(f"  {at}. {str(result)[:60]!r}: {why}")
    if wrong:
        more = [f"  and {len(wrong) - SHOWN_MAX} more"] if len(wrong) > SHOWN_MAX else []
        head = f"{len(wrong)} of {len(rows)} results have no judgment that stands for them:"
        raise AssertionError("\n".join([head, *wrong[:SHOWN_MAX], *more]))


def _wrong(number: object, archive: Archive) -> str:
    if number is None:
        return "written without a judgment number"
    if not isinstance(number, int) or isinstance(number, bool):
        return f"its judgment number is {number!r}, which is no whole number"
    if not isinstance(archive, sqlite3.Connection):
        return "" if archive(number) else f"{number} is no judgment number of an answer"
    row = archive.execute(_ASKING, (number,)).fetchone() if 0 < number < 2**63 else None
    if row is None:
        return f"there is no judgment number {number} in the archive"
    return "" if row[0] is not None else f"the asking {number} came to no answer"
