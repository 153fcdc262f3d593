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
from archive.actor.store import Store
from archive.actor.unwritten import RESERVED_BYTES
from archive.admin import Withdraw
from archive.attempts import Came, Lost, NotSent, Reply
from archive.doors import Upstream
from archive.errors import ArchiveError
from archive.messages import Count, Key, Look
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from archive.request import Request
from tests.actors import turns
from tests.fakes import ASK, START, FakeClock, answer, ask, body
from tests.faults.fate import Fate, Killed
from tests.faults.promises import Book, Sending

DAY_CALLS_MAX = 20
WORDS = {body(words): words for words in ("one", "two", "three", "four", "five")}
KEYS = {words: "ab"[number % 2] for number, words in enumerate(WORDS.values())}
END_TURNS_MAX = 2_000


class SimulatedModel:
    """Says what the run decides, when it decides."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def answer(self, request: Request, key: Key) -> Came:
        came: asyncio.Future[Came] = asyncio.get_running_loop().create_future()
        self._book.sent(WORDS[request.body], key.secret, came)
        return await came


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
        self._replies = 0
        self._full = False
        self._stranger: sqlite3.Connection | None = None
        self._asking: dict[asyncio.Task[None], str] = {}
        self._fate = Fate(seed, self._leave_behind)
        self._fate.rule(monkeypatch)

    def _leave_behind(self) -> None:
        """What the next process finds. Another program copies it: nobody opens the store in this one."""
        there = self._path.parent
        self._place(self._life + 1).mkdir()
        files = [there / name for name in ("a.db", "a.db-wal", "a.spool") if (there / name).exists()]
        subprocess.run(["cp", "--sparse=always", *map(str, files), str(self._place(self._life + 1))], check=True)  # noqa: S607

    def _place(self, life: int) -> Path:
        return self._folder / str(life)

    @property
    def _path(self) -> Path:
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
        await self._stop()
        self._judge()

    def _judge(self) -> None:
        assert not self.book.faults, "\n".join([*self.steps, "", *self.book.faults])

    async def _start(self, *, stopped: bool, clean: bool) -> None:
        """Start until it stays."""
        while True:
            clock = FakeClock()
            clock.step((self.clock.now() - START) / 1_000_000)
            self.clock, self._fate.dead, self._full = clock, False, False
            self.book.restarted(clock)
            spool = self._path.with_name("a.spool") if self._has_spool else None
            limits = Limits(spool_bytes_max=7 * RESERVED_BYTES, day_calls_max=DAY_CALLS_MAX)
            behind = {ASK: Upstream(SimulatedModel(self.book), "model")}
            self.door = Actor(self._path, behind.get, clock, limits, lambda: None, spool)
            try:
                await self.door.__aenter__()
                break
            except Killed:
                self.steps.append("killed at the start")
                self.book.seen["kills"] += 1
                self._move()
                stopped = False
        self._db = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, isolation_level=None)
        self.book.step()
        self.book.begin(self._db, stopped=stopped, clean=clean)
        self.book.look(self._db, caught_up=True)
        self.book.whole(self._db)

    def _move(self) -> None:
        shutil.rmtree(self._place(self._life))
        self._life += 1
        self._fate.fuse = 0

    async def _bury(self) -> None:
        """Whoever spoke to the process that was killed hears no more of it, and it touches its old files alone."""
        self.book.seen["kills"] += 1
        self._db.close()
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
        if self._fate.dead:
            await self._bury()
        else:
            await self._start(stopped=clean or self._has_spool, clean=clean)

    async def _stop(self) -> bool:
        """End it in good order; was all of it written?"""
        self.book.step()
        writable = self._writable
        self.door.stop()
        task = self.door._task  # pyright: ignore[reportPrivateUsage]
        for _ in range(END_TURNS_MAX):
            if task.done():
                break
            self.book.time_passes(1)
            self.clock.advance(1)
            await turns(5)
        assert task.done(), "it does not end"
        if self._fate.dead:
            return False
        self._unlock()
        if not self._has_spool and not writable:
            self.book.owed.clear()
        waiting, self._asking = list(self._asking), {}
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        self._db.close()
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
            self._fate.fuse = dice.choice((1, 1, 2, 3, 4, 6))
            self.steps.append(f"kill after {self._fate.fuse}")
        elif rare < 0.12:
            await self._toggle_store()
        elif rare < 0.15:
            await self._withdraw()
        self._let_time_pass()
        for _ in range(dice.randint(1, 4)):
            self._act()
        await self._settle()
        if self._fate.dead:
            self.steps.append("killed")
            await self._bury()
        elif self._writable:
            self.book.look(self._db, caught_up=True)
            self.book.account(self._db)
        else:
            self.book.look(self._db, caught_up=False)

    @property
    def _writable(self) -> bool:
        return self._stranger is None and not self._full

    async def _settle(self) -> None:
        """Until all that was said is worked, or the process is dead."""
        task = self.door._task  # pyright: ignore[reportPrivateUsage]
        for _ in range(4):
            count = asyncio.create_task(self.door.send(Count()))
            await asyncio.wait([count, task], return_when=asyncio.FIRST_COMPLETED, timeout=20)
            if task.done():
                count.cancel()
                if not self._fate.dead:
                    self.book.fault("the actor died")
                    self._judge()
                return
            assert count.done(), "it hangs"
            with suppress(ArchiveError):
                count.result()
            await turns(3)

    def _act(self) -> None:
        dice, kind = self.dice, self.dice.random()
        calls = [one for stands in self.book.standings.values() for one in stands.sendings if one.outcome is None]
        if kind < 0.5 or (not calls and kind < 0.93):
            self._ask(dice.choice(list(WORDS.values())), self._pick())
        elif kind < 0.93:
            self._reply(dice.choice(calls))
        elif self._asking:
            task = dice.choice(list(self._asking))
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

    def _ask(self, words: str, pick: Pick) -> None:
        stands = self.book.of(words)
        before = (stands.newest, frozenset(set(stands.bodies) - stands.withdrawn))
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
        mark = b',"id":%d}' % self._replies
        came: Came = self.dice.choice(
            (
                *[Reply(200, answer()[:-1] + mark, "application/json")] * 6,
                Reply(400, b'{"error":"no"' + mark),
                Reply(200, b'{"error":"paid"' + mark),
                Reply(429, b"{}", retry_after=(self.dice.choice(("3", "20", "never", "-1")),)),
                Reply(503, b"{}", retry_after_ms=("1500",)),
                Reply(502, b"gateway"),
                Lost(),
                NotSent(),
            )
        )
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
            self._stranger = sqlite3.connect(self._path, isolation_level=None, timeout=5)
            self._stranger.execute("BEGIN IMMEDIATE")
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

    def _unlock(self) -> None:
        if self._stranger is not None:
            self._stranger.close()
            self._stranger = None

    async def _withdraw(self) -> None:
        """The owner takes an answer back, or his word on it."""
        kept = [(words, n) for words, stands in self.book.standings.items() for n in stands.bodies]
        if not kept or not self._writable or self._fate.fuse:
            return
        words, n = self.dice.choice(kept)
        withdrawn = self.book.of(words).withdrawn
        back = n in withdrawn
        self.steps.append(f"{'give back' if back else 'withdraw'} {words} {n}")
        await self._settle()
        looked = await self.door.send(Look(ask(words).request))
        assert looked.request_id is not None
        await self.door.send(Withdraw(looked.request_id, n, withdrawn=not back))
        (withdrawn.remove if back else withdrawn.add)(n)
        self.book.seen["the owner's words"] += 1
