"""jevcompat, an independent conformance suite for System One servers, against this server in front of its own mock.

What it does not look at (reordered options, errors, keys, packed bodies, restarts) is in the stories around this one.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from archive.admin import AddToken
from archive.tokens import PREFIX, hashed
from tests.fakes import EchoModel, actor
from tests.process import process

JEVCOMPAT = str(Path(sys.executable).with_name("jevcompat"))
KEY = "ts_made_up"
TOKEN = PREFIX + "A" * 43


class Mock:
    """jevcompat's mock, in a process of its own: its base URL, and a line of its log for each request it got."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        assert running.stderr is not None
        self._said = running.stderr
        self.url = ""

    async def ready(self) -> None:
        """Wait for the line that says where it is."""
        async with asyncio.timeout(60):
            found = re.search(r"http://[\d.:]+", (await self._said.readline()).decode())
        assert found is not None
        self.url = found[0]

    async def count(self, marker: str) -> int:
        """How many requests it got since this was last asked; one for `marker`, which was just made, ends them."""
        count = 0
        async with asyncio.timeout(60):
            while marker not in (line := (await self._said.readline()).decode()):
                assert line, "the mock ended"
                count += 1
        return count


@asynccontextmanager
async def mock(*options: str) -> AsyncGenerator[Mock, None]:
    """`jevcompat mock` with these options, on a free port."""
    running = await asyncio.create_subprocess_exec(
        JEVCOMPAT, "mock", "--port", "0", "--verbose", *options, stderr=asyncio.subprocess.PIPE
    )
    try:
        here = Mock(running)
        await here.ready()
        yield here
    finally:
        running.kill()
        await running.wait()


async def conformance(url: str, file: Path, *options: str) -> dict[str, Any]:
    """What `jevcompat test` reports of the server at `url`."""
    running = await asyncio.create_subprocess_exec(
        JEVCOMPAT, "test", url, "--json", str(file), *options,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await running.communicate()
    assert running.returncode == 0, said.decode()
    return json.loads(await asyncio.to_thread(file.read_bytes))


def asked(exchange: dict[str, Any]) -> str:
    """What tells a request of the suite from its others."""
    return json.dumps([exchange["method"], exchange["path"], exchange["request"]])


def sends(report: dict[str, Any], kept: set[str]) -> int:
    """How many of a run's requests must go up when `kept` have an answer; those it got are added to them."""
    count = 0
    for exchange in report["exchanges"]:
        count += asked(exchange) not in kept
        if exchange["status"] == 200:
            kept.add(asked(exchange))
    return count


class Way(NamedTuple):
    """A way in: the key the mock wants, the one the suite shows, the server's own, and what cannot be tried so."""

    wanted: tuple[str, ...]
    shown: tuple[str, ...]
    owners: str
    untried: set[str]


WAYS = {
    "open": Way((), (), "", {"auth.bearer", "auth.missing", "auth.invalid"}),
    # What happens without the right key is tried with a request that has been answered: that answer is open to all.
    "a caller's key": Way(
        ("--key", KEY), ("--key", KEY), "", {"auth.ignored-when-off", "auth.missing", "auth.invalid"}
    ),
    "a token": Way(("--key", KEY), ("--key", TOKEN), KEY, {"auth.ignored-when-off"}),
}


@pytest.mark.parametrize("noise", ["0", "0.6"])
@pytest.mark.parametrize("way", WAYS)
async def test_it_is_conformant_and_a_second_run_gets_all_that_was_answered_from_the_record(
    tmp_path: Path, way: str, noise: str
) -> None:
    """With a token every MUST and SHOULD there is for a server with keys is tried, and met."""
    wanted, shown, owners, untried = WAYS[way]
    store = tmp_path / "a.db"
    if way == "a token":
        async with actor(store, EchoModel()) as door:
            await door.send(AddToken("suite", hashed(TOKEN.encode())))
    kept: set[str] = set()
    before: set[str] = set()
    async with mock("--noise", noise, *wanted) as model, process(store, model.url, ASKONCE_MODEL_KEY=owners) as here:
        for run in ("first", "second"):
            report = await conformance(here.url, tmp_path / "report.json", *shown)
            async with here.http.get(f"{model.url}/{run}"):
                went_up = await model.count(f"/{run} ")
            before = set(kept)
            assert went_up == sends(report, kept)
            statuses = {found["id"]: found["status"] for found in report["results"]}
            assert (report["summary"]["verdict"], "fail" in statuses.values()) == ("conformant", False)
            assert {name for name, status in statuses.items() if status == "skip"} == untried
    # What the second run got anew it had marked, so that no record can answer it.
    assert before and all("x_nonce" in one for one in kept - before)
