"""The actor over a disk of our own: `python -m tests.faults.ondisk power|fail FOLDER FORM SEED...`.

`power` cuts the power at one moment a seed, and says what each cut left; `fail` has the nth change of the disk refused.
FORM is what the store says of `synchronous`, or `careless`: a commit that fails is taken for done. FOLDER takes what
was left, as real files. One JSON line says the whole account. In a process of its own: see disk.py.
"""

import asyncio
import json
import random
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.store import StoreUnusable, file
from archive.attempts import Came, Lost, NotSent
from archive.errors import ArchiveError
from archive.messages import Key
from archive.request import Request
from tests.actors import settled, turns
from tests.chain import INSERT_ONLY, broken
from tests.fakes import EchoModel, FakeClock, actor, ask, reply
from tests.faults.disk import Connected, Disk
from tests.stored import answers, outcomes, rows

WAVES, PATIENT = 14, 3

PATH = Path("/nowhere/a.db")
"""A name on the disk of our own; no real file has it."""

SPOOL_BYTES = 4 * 1024 * 1024

KILLED_CHANGES_MAX = 40
"""So soon after the first failure a process is killed."""

Heads = tuple[int, ...]


class Model(EchoModel):
    """Answers each words in its own way, by what they say; counts what was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    async def answer(self, request: Request, key: Key) -> Came:
        self.sent.append(request.body)
        await turns(len(self.sent) % PATIENT)
        return came(len(request.body))


def came(length: int) -> Came:
    """What comes of a request of so many bytes."""
    if length % 11 == 0:
        return Lost()
    return NotSent() if length % 13 == 0 else reply(length % 101 / 100)


def wave(n: int) -> list[str]:
    """What is asked at once in the nth wave: some of it long, none of it asked before."""
    return [f"{n}/{i} " + "x" * (17 * n + 5 * i + (9_000 if (n + i) % 5 == 0 else 0)) for i in range(1 + 3 * n % 7)]


@dataclass
class Run:
    """One life of a server on a disk of our own."""

    disk: Disk
    sync: str = "FULL"
    careless: bool = False
    model: Model = field(default_factory=Model)
    told: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Words by the answer their asker was told, as one that is in the record."""
    marked: set[str] = field(default_factory=set[str])
    """Words whose asker was told that the answer is not in the record yet."""
    refused: Counter[str] = field(default_factory=Counter[str])
    heads: list[Heads] = field(default_factory=list[Heads])
    """The last number of each insert-only table after each commit."""
    clock: FakeClock = field(default_factory=FakeClock)

    def _said(self, sql: str) -> str:
        return sql.replace("synchronous = FULL", f"synchronous = {self.sync}")

    def _committed(self, db: Any) -> None:
        self.heads.append(heads(db))

    async def live(self, spool: Path | None = None, heal: Callable[[], None] = lambda: None) -> None:
        """Open, ask all waves, have the disk healed, write what waits, and close. Raises StoreUnusable."""

        async def connected(path: Path) -> Any:
            return Connected(self.disk, path, self._said, self._committed, careless=self.careless)

        limits = Limits(spool_bytes_max=SPOOL_BYTES)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(file, "_connected", connected)
            async with actor(PATH, self.model, self.clock, limits, spool=spool) as door:
                for n in range(WAVES):
                    await asyncio.gather(*(self._ask(door, words) for words in wave(n)))
                    if n % 4 == 3:
                        self.clock.advance(1)
                        await settled(door)
                heal()
                await settled(door)

    async def _ask(self, door: Actor, words: str) -> None:
        try:
            said = await door.send(ask(words))
        except ArchiveError as error:
            self.refused[error.code] += 1
            return
        if said.kept.recorded:
            self.told[words] = said.kept.body
        else:
            self.marked.add(words)


def heads(db: Any) -> Heads:
    """The last number of each insert-only table; 0 where there is none."""
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema").fetchall()}
    return tuple(
        db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0] if table in there else 0  # noqa: S608
        for table in INSERT_ONLY
    )


@dataclass
class Cut:
    """What one power cut left, and what had been said by then."""

    seed: int
    image: dict[str, bytes]
    told: Mapping[str, bytes | None]
    sent: list[bytes]
    commits: int


def laid(image: dict[str, bytes], folder: Path) -> Path:
    """The image as real files in a fresh folder; its store."""
    folder.mkdir()
    for name, data in image.items():
        (folder / Path(name).name).write_bytes(data)
    return folder / PATH.name


async def power(folder: Path, sync: str, tried: list[int]) -> dict[str, Any]:
    """Cut the power once a seed, at a moment of its own, and look at each image as the next start finds it."""
    counting = Run(Disk(), sync)
    await counting.live()
    moments: dict[int, list[int]] = {}
    for seed in tried:
        moments.setdefault(random.Random(seed).randint(1, counting.disk.changes), []).append(seed)
    run, cuts = Run(Disk(), sync), list[Cut]()

    def before(n: int, _: str) -> None:
        for seed in moments.get(n, ()):
            image = run.disk.image(random.Random(seed + 1_000_000))
            cuts.append(Cut(seed, image, dict(run.told), list(run.model.sent), len(run.heads)))

    run.disk.before = before
    await run.live()
    found = Counter[str](changes=run.disk.changes, cuts=len(cuts), acknowledged=sum(len(cut.told) for cut in cuts))
    faults: dict[str, list[int]] = {}
    for cut in cuts:
        store = laid(cut.image, folder / f"{sync}-{cut.seed}")
        for fault, many in (await judged(cut, store, run.heads, found)).items():
            found[fault] += many
            faults.setdefault(fault, []).append(cut.seed)
    return {**found, "faults": faults}


async def judged(cut: Cut, store: Path, commits: list[Heads], found: Counter[str]) -> Counter[str]:
    """What is wrong with what a cut left, by name; what the next process makes of it goes into `found`."""
    wrong = Counter[str]()
    try:
        with closing(sqlite3.connect(store)) as db:
            if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)] or broken_in(db):
                return Counter(corrupt=1)
            left = heads(db)
    except sqlite3.DatabaseError:
        return Counter(corrupt=1)
    # What is left is the state after one of the commits, and after none before the last that was reported.
    states = [(0,) * len(INSERT_ONLY), *commits]
    wrong["no prefix"] = left not in states
    wrong["commits lost"] = left not in states[cut.commits :]
    model = Model()
    async with actor(store, model, FakeClock()) as door:
        await settled(door)
    kept = answers(store) if any(left) else {}
    wrong["lost"] = sum(kept.get(state(words)) != [body] for words, body in cut.told.items())
    known = {bytes(body) for body in bodies(store)}
    wrong["sent without a row"] = sum(body not in known for body in cut.sent)
    wrong["half kept"] = "open" in outcomes(store)
    found.update(outcomes(store))
    return +wrong


def broken_in(db: sqlite3.Connection) -> bool:
    return bool(any(heads(db)) and broken(db))


def state(words: str) -> bytes:
    return json.dumps(words).encode()


def bodies(store: Path) -> list[bytes]:
    """Every request that has a sending on record, as it was sent."""
    with_state = rows(
        store, "SELECT s.bytes FROM dispatch d JOIN request r ON r.id = d.request JOIN text s ON s.id = r.state"
    )
    return [ask(json.loads(words)).request.body for (words,) in with_state]


KINDS: dict[str, tuple[type[apsw.Error], set[str]]] = {
    "no room": (apsw.FullError, {"write"}),
    "a write fails": (apsw.IOError, {"write", "cut"}),
    "a sync fails": (apsw.IOError, {"sync"}),
}


async def fail(folder: Path, careless: bool, tried: list[int]) -> dict[str, Any]:
    """Once a seed, refuse the nth change of the disk, and some, none or all after it, until it is healed."""
    counting = Run(Disk())
    await counting.live()
    found, faults = Counter[str](changes=counting.disk.changes), dict[str, list[int]]()
    for seed in tried:
        home = folder / str(seed)
        home.mkdir()
        for fault, many in (await failed(home, careless, seed, counting.disk.changes, found)).items():
            found[fault] += many
            faults.setdefault(fault, []).append(seed)
    return {**found, "faults": faults}


async def failed(folder: Path, careless: bool, seed: int, changes: int, found: Counter[str]) -> Counter[str]:
    """One run whose disk fails; what is wrong with it, by name."""
    dice = random.Random(seed)
    first, lasting = dice.randint(1, changes), dice.choice((1, 3, 20, changes))
    error, whats = KINDS[dice.choice(sorted(KINDS))]
    healed = False
    refusals = 0

    def before(n: int, what: str) -> None:
        nonlocal refusals
        if first <= n < first + lasting and not healed and what in whats:
            refusals += 1
            raise error("refused by the test")

    def heal() -> None:
        nonlocal healed
        healed = True

    run, kills, spool = Run(Disk(), careless=careless), list[Cut](), folder / "a.spool"
    moment = first + dice.randint(0, KILLED_CHANGES_MAX)

    def before_or_end(n: int, what: str) -> None:
        # What is not on disk yet is in the system's memory, and outlives a process.
        if n == moment and spool.exists():
            image = run.disk.image() | {spool.name: spool.read_bytes()}
            kills.append(Cut(seed, image, run.told | dict.fromkeys(run.marked), list(run.model.sent), 0))
        before(n, what)

    run.disk.before = before_or_end
    try:
        await run.live(spool, heal)
    except StoreUnusable:
        # Said at the start, before anything was asked.
        found["did not start"] += 1
        return Counter(asked=1) if run.model.sent else Counter()
    found.update(runs=1, refusals=refusals, acknowledged=len(run.told), marked=len(run.marked))
    found.update({f"refused as {code}": many for code, many in run.refused.items()})
    wrong = Counter[str]()
    store = laid(run.disk.image(), folder / "left")
    with closing(sqlite3.connect(store)) as db:
        wrong["corrupt"] = db.execute("PRAGMA integrity_check").fetchall() != [("ok",)] or broken_in(db)
    kept = answers(store)
    wrong["lost"] = sum(kept.get(state(words)) != [body] for words, body in run.told.items())
    wrong["marked and lost"] = sum(len(kept.get(state(words), [])) != 1 for words in run.marked)
    wrong["sent twice"] = sum(many > 1 for many in Counter(run.model.sent).values())
    on_record = Counter(bodies(store))
    wrong["sent without a row"] = sum(body not in on_record for body in run.model.sent)
    wrong["half kept"] = "open" in outcomes(store)
    found.update(outcomes(store))
    for kill in kills:
        found["kills"] += 1
        wrong += await after_kill(kill, folder / "killed")
    return +wrong


async def after_kill(kill: Cut, folder: Path) -> Counter[str]:
    """What is wrong with what the next process makes of store and spool, as they were when the one before was killed
    in the midst of failures.
    """
    store = laid(kill.image, folder)
    model = Model()
    try:
        async with actor(store, model, FakeClock(), Limits(spool_bytes_max=SPOOL_BYTES), spool=folder / "a.spool"):
            pass
    except StoreUnusable:
        return Counter(killed_and_never_starts=1)
    kept, wrong = answers(store), Counter[str]()
    for words, body in kill.told.items():
        found = kept.get(state(words), [])
        wrong["killed and lost"] += len(found) != 1 or (body is not None and found != [body])
    on_record = Counter(bodies(store))
    wrong["killed and sent without a row"] = sum(not on_record[body] for body in kill.sent)
    wrong["killed and half kept"] = "open" in outcomes(store)
    wrong["killed and kept twice"] = sum(len(versions) > 1 for versions in kept.values())
    return +wrong


def main(kind: str, folder: str, form: str, *numbers: str) -> None:
    tried = [int(number) for number in numbers]
    said = power(Path(folder), form, tried) if kind == "power" else fail(Path(folder), form == "careless", tried)
    print(json.dumps(asyncio.run(said)))


if __name__ == "__main__":
    main(*sys.argv[1:])
