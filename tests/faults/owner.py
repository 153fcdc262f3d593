"""What the owner does in a simulated run: takes answers back, erases words, makes copies.

What must never be here: what is promised (promises.py).
"""

import asyncio
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from archive.actor.store import Store
from archive.actor.store.searching import Found, Search
from archive.admin import BackUp, Erase, Withdraw
from archive.errors import ArchiveError, RecordClosed
from archive.messages import Look
from tests.actors import turns
from tests.fakes import ask

if TYPE_CHECKING:
    from tests.faults.promises import Book
    from tests.faults.simulation import Run


def rule(monkeypatch: pytest.MonkeyPatch, book: "Book") -> None:
    """The book is told of an erasure when it is on disk, and the receipt's search costs little."""
    apart = Store._apart  # pyright: ignore[reportPrivateUsage]

    def done(store: Store, raw: Any, message: Any, now: int) -> Any:
        said = apart(store, raw, message, now)
        if isinstance(message, Erase):
            book.erased()
        return said

    def found(_: Search, files: list[Path], words: tuple[bytes, ...], beside: list[Path]) -> Found:
        # Another program reads them: nobody opens the store in this one.
        data = subprocess.run(["cat", *map(str, files)], check=True, capture_output=True).stdout  # noqa: S607
        return Found([{"bytes": 0, "whole": sum(map(data.count, words))} for _ in files], [""] * len(beside))

    monkeypatch.setattr(Store, "_apart", done)
    monkeypatch.setattr(Search, "_found", found)


async def withdraw(run: "Run") -> None:
    """Take an answer back, or the word on it."""
    kept = [(words, n) for words, stands in run.book.page.standings.items() for n in stands.bodies]
    kept = [(words, n) for words, n in kept if n not in run.book.of(words).emptied]
    if not kept or not run.writable or run.fate.fuse:
        return
    words, n = run.dice.choice(kept)
    withdrawn = run.book.of(words).withdrawn
    back = n in withdrawn
    run.steps.append(f"{'give back' if back else 'withdraw'} {words} {n}")
    await run.settle()
    looked = await run.door.send(Look(ask(words).request))
    assert looked.request_id is not None
    await run.door.send(Withdraw(looked.request_id, n, withdrawn=not back))
    (withdrawn.remove if back else withdrawn.add)(n)
    run.book.seen["the owner's words"] += 1


async def erase(run: "Run", words: str, *, alone: bool = False) -> None:
    """Take words out; unless `alone` while others ask and replies come, or soon killed."""
    await run.settle()
    if run.fate.dead:
        return
    if not alone and run.dice.random() < 0.3:
        run.fate.fuse = run.dice.choice((1, 1, 2, 3))
    run.steps.append(f"erase {words}" + (f", killed after {run.fate.fuse}" if run.fate.fuse else ""))
    run.book.look(run.db, caught_up=False)
    run.book.erasing(words, run.db)
    before = run.book.erasures
    erasing = asyncio.create_task(run.door.send(Erase(words)))
    await turns(1)  # it lies in the mailbox
    for _ in range(0 if alone else run.dice.randint(0, 2)):
        run.ask_or_reply()
    await run.settle()
    if run.fate.dead:
        erasing.cancel()
        await asyncio.gather(erasing, return_exceptions=True)
        return
    try:
        receipt = await asyncio.wait_for(erasing, 20)
    except ArchiveError as refused:
        run.steps.append(f"refused: {refused}")
        run.book.not_erased()
        if run.writable or not isinstance(refused, RecordClosed) or run.book.erasures != before:
            run.book.fault(f"{words}: not erased ({refused})")
        return
    if run.book.erasures == before:
        run.book.fault(f"{words}: a receipt of what was not erased")
    if receipt.stayed or not (receipt.done or run.book.was_asked(words)):
        run.book.fault(f"{words}: erased, and not done: {receipt}")


async def back_up(run: "Run") -> None:
    """Copy the record while it is in use."""
    await run.settle()
    if run.fate.dead or not run.writable:
        return
    run.steps.append("backup")
    file = run.path.with_name("b.backup")
    file.unlink(missing_ok=True)
    run.book.look(run.db, caught_up=True)
    await run.door.send(BackUp(str(file)))
    run.book.backed_up()
