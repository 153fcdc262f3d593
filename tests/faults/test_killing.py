"""kill -9 of the real process: what was acknowledged is there, nothing is half there, nothing is sent twice.

C-02, C-11. What becomes of one call, and of who asks again: tests/stories/test_unknown.py (B33).
"""

import asyncio
import itertools
import random
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from zlib import crc32

import aiohttp
import pytest

from tests.fakes import Got, Upstream, answer, body, upstream
from tests.faults.account import accounted, seeds
from tests.process import Ended, Process, lock_of, process
from tests.stored import STATES, answers, assert_closed_cleanly, assert_sound, rows

KILLS = 4
"""Of one store, one after the other."""

ASKERS = 16

ROOMY = str(64 * 1024 * 1024)
"""A spool that takes all of a test's asks: a quarter of a megabyte stays free for the reply to each."""


def answer_to(words: str) -> bytes:
    """The one answer the upstream has to these words."""
    return answer(crc32(words.encode()) % 101 / 100)


class Load:
    """Askers that each ask one new thing after the other, and a book of what they were told."""

    def __init__(self, model: Upstream) -> None:
        self.acknowledged: dict[str, bytes] = {}
        self.doubtful: list[str] = []
        self._words = (f"words {number}" for number in itertools.count())
        self._by_body: dict[bytes, str] = {}
        self._told = asyncio.Semaphore(0)
        self._model = model
        self.stuck_every = 11
        self.stopping = False
        model.behave = self._behave

    async def _behave(self, got: Got, writer: asyncio.StreamWriter) -> None:
        words = self._by_body[got.body]
        if self.stuck_every and len(self._model.got) % self.stuck_every == 0:
            await asyncio.Event().wait()
        self._model.reply = answer_to(words)
        writer.write(self._model.response())
        await writer.drain()

    async def _ask(self, here: Process, words: str) -> None:
        self._by_body[body(words)] = words
        said = await here.ask(body(words))
        if self.stopping and said.status in {503, 504}:
            # It was not sent any more, or did not end in time.
            self.doubtful.append(words)
            return
        assert said.status == 200
        self.acknowledged[words] = said.body
        self._told.release()

    async def _asker(self, here: Process) -> None:
        for words in self._words:
            try:
                await self._ask(here, words)
            except aiohttp.ClientError:
                self.doubtful.append(words)
                return

    @asynccontextmanager
    async def until_killed(self, here: Process) -> AsyncGenerator[None, None]:
        """Keep all askers asking for as long as the block lasts, then kill the process."""
        askers = [asyncio.create_task(self._asker(here)) for _ in range(ASKERS)]
        yield
        assert await here.kill() == -9
        await asyncio.gather(*askers)

    @asynccontextmanager
    async def until_stopped(self, here: Process) -> AsyncGenerator[None, None]:
        """The same, and wait until the process has gone by itself."""
        askers = [asyncio.create_task(self._asker(here)) for _ in range(ASKERS)]
        self.stopping = True
        yield
        await here.wait()
        await asyncio.gather(*askers)
        self.stopping = False

    async def more(self, acknowledgements: int) -> None:
        """Wait until so many more asks have been answered."""
        for _ in range(acknowledgements):
            await self._told.acquire()

    async def settle(self, here: Process) -> None:
        """Ask again what was in doubt: it is kept, or told to be unknown, or it never went out and goes out now."""
        self.stuck_every, usual = 0, self.stuck_every
        for words in self.doubtful:
            said = await here.ask(body(words))
            assert said.status in {200, 409}
            if said.status == 200:
                self.acknowledged[words] = said.body
        self.doubtful.clear()
        self.stuck_every = usual


@pytest.mark.parametrize("seed", seeds(1, 12))
async def test_after_kill_9_under_load_every_acknowledged_answer_is_whole_and_nothing_is_sent_twice(
    tmp_path: Path, seed: int
) -> None:
    """C-02. The accounting is closed: each request the upstream saw is kept or unknown, and was seen once."""
    store, dice = tmp_path / "a.db", random.Random(seed)
    async with upstream() as model:
        load = Load(model)
        for _ in range(KILLS):
            async with process(store, model.url) as here:
                await load.settle(here)
                async with load.until_killed(here):
                    await load.more(dice.randint(20, 80))
            assert_sound(store)
        async with process(store, model.url) as here:
            await load.settle(here)
            assert await here.terminate() == 0
    close_account(f"kill -9 under load, seed {seed}", store, load, model)


@pytest.mark.parametrize("seed", seeds(1, 12))
async def test_after_kill_9_with_answers_in_the_spool_they_are_in_the_record_and_nothing_is_sent_twice(
    tmp_path: Path, seed: int
) -> None:
    """C-02, C-07, C-08: while a stranger holds the store's lock, or just when it lets go and all of it is loaded."""
    store, dice = tmp_path / "a.db", random.Random(seed)
    async with upstream() as model:
        load = Load(model)
        for locked in (False, True):
            async with process(store, model.url, ASKONCE_SPOOL_BYTES_MAX=ROOMY) as here:
                await load.settle(here)
                async with load.until_killed(here):
                    await load.more(dice.randint(5, 20))
                    async with lock_of(store):
                        await load.more(dice.randint(20, 60))
                        if locked:
                            assert await here.kill() == -9
            assert_sound(store)
        async with process(store, model.url, ASKONCE_SPOOL_BYTES_MAX=ROOMY) as here:
            await load.settle(here)
            assert await here.terminate() == 0
    close_account(f"kill -9 with answers in the spool, seed {seed}", store, load, model, 2)


@pytest.mark.parametrize("seed", seeds(1, 12))
async def test_after_two_signals_at_once_under_load_the_same_holds(tmp_path: Path, seed: int) -> None:
    """C-20: SIGTERM and SIGINT, with which no server gets to end in order."""
    store, dice = tmp_path / "a.db", random.Random(seed)
    async with upstream() as model:
        load = Load(model)
        for _ in range(2):
            async with process(store, model.url, ASKONCE_STOP_SECONDS_MAX="0.2") as here:
                await load.settle(here)
                async with load.until_stopped(here):
                    await load.more(dice.randint(20, 80))
                    here.signal(signal.SIGTERM)
                    here.signal(signal.SIGINT)
            assert_closed_cleanly(store)
        async with process(store, model.url) as here:
            await load.settle(here)
            assert await here.terminate() == 0
    close_account(f"SIGTERM and SIGINT under load, seed {seed}", store, load, model, 2)


def close_account(name: str, store: Path, load: Load, model: Upstream, kills: int = KILLS) -> None:
    """All that was acknowledged is kept as it was told; all the upstream saw is kept or unknown, and was seen once."""
    seen = Counter(got.body for got in model.got)
    assert_closed_cleanly(store)
    kept = {str(about, "utf-8").strip('"'): replies for about, replies in answers(store).items()}
    assert all(kept.get(words) == [said] for words, said in load.acknowledged.items())
    assert all(replies == [answer_to(words)] for words, replies in kept.items())
    assert max(seen.values()) == 1
    states = Counter(state_of_each_request(store).values())
    unaccounted = {body(words) for words in state_of_each_request(store)}
    assert set(seen) <= unaccounted
    assert set(states) <= {"answered", "unknown"}
    accounted(
        name,
        {
            "kills": kills,
            "acknowledged": len(load.acknowledged),
            "kept": states["answered"],
            "unknown": states["unknown"],
            "seen upstream": len(seen),
            "dispatched and not seen": len(unaccounted - set(seen)),
        },
    )


def state_of_each_request(store: Path) -> dict[str, str]:
    """By the words it asked about, the one outcome that counts of each request's one sending."""
    found = rows(
        store,
        "SELECT s.bytes, count(DISTINCT d.id), (SELECT state FROM outcome o WHERE o.dispatch = d.id ORDER BY n DESC"
        " LIMIT 1) FROM request r JOIN text s ON s.id = r.state JOIN dispatch d ON d.request = r.id GROUP BY r.id",
    )
    assert {sendings for _, sendings, _ in found} == {1}
    return {str(words, "utf-8").strip('"'): STATES.get(state, "open") for words, _, state in found}


async def test_a_second_process_on_the_same_store_ends_at_once_and_says_who_has_it(tmp_path: Path) -> None:
    """C-11."""
    store = tmp_path / "a.db"
    async with upstream() as model, process(store, model.url) as here:
        await here.ask()
        with pytest.raises(Ended) as ended:
            async with process(store, model.url):
                pass
        assert ended.value.status == 1
        assert f"process {here.pid} at port {here.port}" in ended.value.output
        assert "Traceback" not in ended.value.output
        assert (await here.ask()).headers["Archive-Sent"] == "no"
        assert await here.terminate() == 0
        async with process(store, model.url) as after:
            assert (await after.ask()).headers["Archive-Sent"] == "no"
    assert len(model.got) == 1


async def test_an_answer_kept_after_a_failure_is_the_newest_after_kill_9(tmp_path: Path) -> None:
    """B84: killed the moment it was acknowledged; what failed before it does not come back in its place."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            model.status = 400
            assert (await here.ask()).status == 400
            model.status = 200
            said = await here.ask()
            assert await here.kill() == -9
        async with process(store, model.url) as here:
            again = await here.ask()
        assert (again.status, again.body, again.headers["Archive-Answer"]) == (200, said.body, "1/1")
        assert (said.status, again.headers["Archive-Sent"], len(model.got)) == (200, "no", 2)


async def test_a_killed_process_leaves_no_lock_behind(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with process(store) as here:
        await here.kill()
    async with process(store) as here:
        assert here.pid
