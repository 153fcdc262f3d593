"""One seeded run of the actor over a real store: asks, leavings, replies, lost time, locks, full disks, ends, starts.

Every choice comes from the seed, and threads are waited for where they are used, so that a run can be had again.
What must never be here: what is promised (promises.py).
"""

import asyncio
import random
import shutil
import sqlite3
import subprocess
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.offline import restore
from archive.actor.store import Store, StoreUnusable
from archive.actor.unwritten import RESERVED_BYTES
from archive.doors import Upstream
from archive.errors import ArchiveError
from archive.messages import Count
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from tests.actors import turns
from tests.fakes import ASK, START, FakeClock, ask
from tests.faults import owner
from tests.faults.fate import Fate, Killed
from tests.faults.promises import Book
from tests.faults.standing import Before, Sending
from tests.faults.upstream import KEYS, PEOPLE, SimulatedModel, reply_number, some_reply

DAY_CALLS_MAX = 20
END_TURNS_MAX = 2_000
LIVE = ("a.db", "a.db-wal", "a.spool", "a.db.erased")


class Run:
    """The world of one seed."""

    def __init__(self, seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dice = random.Random(seed)
        self.clock = FakeClock()
        self.book = Book(self.clock, DAY_CALLS_MAX)
        self.steps: deque[str] = deque(maxlen=40)
        self._folder = folder
        self._life = 0
        self._has_spool = self.dice.random() < 0.85
        self._replies = self._restores = 0
        self._full = False
        self._stranger: sqlite3.Connection | None = None
        self._asking: dict[asyncio.Task[None], str] = {}
        self.fate = Fate(seed, self._leave_behind)
        self.fate.rule(monkeypatch)
        owner.rule(monkeypatch, self.book)

    def _leave_behind(self) -> None:
        """What the next process finds. Another program copies it: nobody opens the store in this one."""
        there = self.path.parent
        self._place(self._life + 1).mkdir()
        files = [there / name for name in (*LIVE, "b.backup") if (there / name).exists()]
        subprocess.run(["cp", "--sparse=always", *map(str, files), str(self._place(self._life + 1))], check=True)  # noqa: S607

    def _place(self, life: int) -> Path:
        return self._folder / str(life)

    @property
    def path(self) -> Path:
        return self._place(self._life) / "a.db"

    # -- lives ---------------------------------------------------------------------------------------------------------

    async def go(self, steps: int) -> None:
        """Live as long as this, several times over. Raises AssertionError, with the last steps."""
        # Where each task was made is asked for some 10,000 times a run otherwise, which takes half of its time.
        asyncio.get_running_loop().set_debug(False)
        self._place(0).mkdir()
        await self._start(stopped=True, clean=True)
        for _ in range(steps):
            await self._step()
            self._judge()
        await self._restart()
        for words in PEOPLE:
            self.book.step()
            await owner.erase(self, words, alone=True)
        await self._stop()
        self._judge()

    def _judge(self) -> None:
        assert not self.book.faults, "\n".join([*self.steps, "", *self.book.faults])

    async def _start(self, *, stopped: bool, clean: bool) -> None:
        """Start until it stays."""
        while True:
            clock = FakeClock()
            clock.step((self.clock.now() - START) / 1_000_000)
            self.clock, self.fate.dead, self._full = clock, False, False
            self.book.restarted(clock)
            spool = self.path.with_name("a.spool") if self._has_spool else None
            limits = Limits(spool_bytes_max=7 * RESERVED_BYTES, day_calls_max=DAY_CALLS_MAX)
            behind = {ASK: Upstream(SimulatedModel(self.book), "model")}
            self.door = Actor(self.path, behind.get, clock, limits, lambda: None, spool)
            is_locked = self.path.exists() and self.dice.random() < 0.15
            if is_locked:
                self._lock()
            try:
                await self.door.__aenter__()
                if is_locked:
                    self.book.fault("it started though it could write nothing")
                break
            except StoreUnusable as refused:
                self.steps.append(f"not started: {refused}")
                self.book.seen["not started"] += 1
                if not is_locked:
                    self.book.fault(f"it does not start: {refused}")
                    self._judge()
                self._unlock()
            except Killed:
                self.steps.append("killed at the start")
                self.book.seen["kills"] += 1
                self._move()
                stopped = False
        self.db = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, isolation_level=None)
        self.book.step()
        self.book.begin(self.db, stopped=stopped, clean=clean)
        self.book.look(self.db, caught_up=True)
        self.book.whole(self.db, self.path)

    def _move(self) -> None:
        shutil.rmtree(self._place(self._life))
        self._life += 1
        self.fate.fuse = 0
        self.book.search([self.path.with_name("a.spool")])

    async def _bury(self) -> None:
        """Whoever spoke to the process that was killed hears no more of it, and it touches its old files alone."""
        self.book.seen["kills"] += 1
        self.db.close()
        self.door._task.cancel()  # pyright: ignore[reportPrivateUsage]
        calls = [task for task in asyncio.all_tasks() if task.get_name().startswith("call ")]
        for task in (*self._asking, *calls):
            task.cancel()
        await asyncio.gather(*self._asking, *calls, self.door._task, return_exceptions=True)  # pyright: ignore[reportPrivateUsage]
        self._asking.clear()
        self._unlock()
        if not self._has_spool:
            self.book.owed.clear()
        self._move()
        await self._start(stopped=False, clean=False)

    async def _restart(self) -> None:
        clean = await self._stop()
        if self.fate.dead:
            await self._bury()
        else:
            await self._start(stopped=clean or self._has_spool, clean=clean)

    async def _stop(self) -> bool:
        """End it in good order; was all of it written?"""
        self.book.step()
        writable = self.writable
        self.door.stop()
        task = self.door._task  # pyright: ignore[reportPrivateUsage]
        for _ in range(END_TURNS_MAX):
            if task.done():
                break
            self.book.time_passes(1)
            self.clock.advance(1)
            await turns(5)
        assert task.done(), "it does not end"
        if self.fate.dead:
            return False
        self._unlock()
        if not self._has_spool and not writable:
            self.book.owed.clear()
        waiting, self._asking = list(self._asking), {}
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        self.db.close()
        if writable:
            self.book.search(self.path.with_name(name) for name in LIVE)
        return writable

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def _step(self) -> None:
        self.book.step()
        dice = self.dice
        rare = dice.random()
        if rare < 0.02:
            self.steps.append("restart")
            await self._restart()
            return
        if rare < 0.06:
            self.fate.fuse = dice.choice((1, 1, 2, 3, 4, 6))
            self.steps.append(f"kill after {self.fate.fuse}")
        elif rare < 0.12:
            await self._toggle_store()
        elif rare < 0.25:
            await self._owner(rare)
            if self.fate.dead:
                await self._bury()
                return
        self._let_time_pass()
        for _ in range(dice.randint(1, 4)):
            self._act()
        await self.settle()
        if self.fate.dead:
            self.steps.append("killed")
            await self._bury()
        elif self.writable:
            self.book.look(self.db, caught_up=True)
            self.book.account(self.db)
        else:
            self.book.look(self.db, caught_up=False)

    async def _owner(self, rare: float) -> None:
        if rare < 0.15:
            await owner.withdraw(self)
        elif rare < 0.21:
            await owner.erase(self, self._words_to_erase())
        elif rare < 0.23:
            await owner.back_up(self)
        elif (self.path.parent / "b.backup").exists():
            await self._restore()

    async def _restore(self) -> None:
        """The server is stopped, the backup put in the store's place, and the server started."""
        self.steps.append("restore")
        await self._stop()
        if self.fate.dead:
            await self._bury()
            return
        spool = self.path.with_name("a.spool")
        restored = restore(
            self.path.with_name("b.backup"), self.path, f"{len(list(self.path.parent.iterdir()))}", spool
        )
        assert restored.aside is not None
        self.book.restored()
        await self._start(stopped=True, clean=True)

    @property
    def writable(self) -> bool:
        return self._stranger is None and not self._full

    async def settle(self) -> None:
        """Until all that was said is worked, or the process is dead."""
        task = self.door._task  # pyright: ignore[reportPrivateUsage]
        for _ in range(4):
            count = asyncio.create_task(self.door.send(Count()))
            await asyncio.wait([count, task], return_when=asyncio.FIRST_COMPLETED, timeout=20)
            if task.done():
                count.cancel()
                if not self.fate.dead:
                    self.book.fault("the actor died")
                    self._judge()
                return
            assert count.done(), "it hangs"
            with suppress(ArchiveError):
                count.result()
            await turns(3)

    def _act(self) -> None:
        if self.dice.random() < 0.93:
            self.ask_or_reply()
        elif self._asking:
            task = self.dice.choice(list(self._asking))
            self.steps.append(f"leave: {self._asking[task]}")
            task.cancel()

    def _let_time_pass(self) -> None:
        """Before anything is said in a step: which of a reply and a limit comes first is no question then."""
        kind = self.dice.random()
        if kind < 0.25:
            seconds = self.dice.choice((0.5, 1, 5, 29, 31, 70))
            self.steps.append(f"{seconds} s pass")
            self.book.time_passes(seconds)
            self.clock.advance(seconds)
        elif kind < 0.3:
            seconds = self.dice.choice((-3600, -61, -1, 1, 61, 3600, 86_400))
            self.steps.append(f"the clock is set by {seconds} s")
            self.clock.step(seconds)
            self.book.clock_set(seconds)

    def _pick(self) -> Pick:
        picks: list[Pick] = [Latest(), Latest(), Latest(), Fresh(), Fresh(sure=False), KeptOnly()]
        return self.dice.choice([*picks, Version(self.dice.randint(1, 4))])

    def ask_or_reply(self) -> None:
        calls = [one for _, stands in self.book.all() for one in stands.sendings if one.outcome is None]
        if not calls or self.dice.random() < 0.54:
            self._ask()
        else:
            self._reply(self.dice.choice(calls))

    def _words_to_erase(self) -> str:
        """A person's, or those of one reply."""
        if self._replies and self.dice.random() < 0.5:
            return reply_number(self.dice.randint(1, self._replies))
        return self.dice.choice(PEOPLE)

    def _ask(self) -> None:
        words, pick = self.dice.choice(PEOPLE), self._pick()
        stands = self.book.of(words)
        before = Before(stands.newest, stands.usable, self.book.erasures)
        self.book.asked(words, pick)
        self.steps.append(f"ask {words} {pick}")
        door, book = self.door, self.book

        async def asking() -> None:
            try:
                said = await door.send(ask(words, pick, KEYS[words]))
            except ArchiveError as error:
                said = error
            except asyncio.CancelledError:
                book.seen["left"] += 1
                return
            book.told(words, pick, before, said)

        task = asyncio.create_task(asking())
        self._asking[task] = f"{words} {pick}"
        task.add_done_callback(lambda task: self._asking.pop(task, None))

    def _reply(self, sending: Sending) -> None:
        if sending.came.done():
            return
        self._replies += 1
        came = some_reply(self.dice, sending.words, self._replies)
        self.steps.append(f"reply to {sending.words}: {came}")
        self.book.replied(sending, came)
        sending.came.set_result(came)

    async def _toggle_store(self) -> None:
        """A stranger takes or frees its lock; the disk is full, or has room again."""
        if self._stranger is not None:
            self.steps.append("unlocked")
            self._unlock()
        elif self._full:
            self.steps.append("room again")
            await self._room(1073741823)
        elif self.dice.random() < 0.7:
            self.steps.append("locked")
            self._lock()
        else:
            self.steps.append("full")
            await self._room(1)
        self._full = self._full and self._stranger is None

    async def _room(self, pages: int) -> None:
        """Let the store grow so far: what the writing connection itself may not be told."""
        db: Any = self._store._db  # pyright: ignore[reportPrivateUsage]

        def change() -> None:
            db._conn.set_authorizer(None)
            db._conn.execute(f"PRAGMA max_page_count = {pages}").fetchall()

        await db._execute(change)
        self._full = pages == 1

    @property
    def _store(self) -> Store:
        return self.door._writing._store  # pyright: ignore[reportPrivateUsage]

    def _lock(self) -> None:
        self._stranger = sqlite3.connect(self.path, isolation_level=None, timeout=5)
        self._stranger.execute("BEGIN IMMEDIATE")

    def _unlock(self) -> None:
        if self._stranger is not None:
            self._stranger.close()
            self._stranger = None
