"""The helper for other programs' tests: it fails where a machine's result is written without its judgment number."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archive.attempts import Lost
from archive.client.testing import assert_judged
from archive.messages import Ask
from archive.naming import Naming
from tests.actors import queued, told
from tests.fakes import reply, request

NAMED = Ask(request(), naming=Naming("pass"))


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncGenerator[sqlite3.Connection, None]:
    """A store with judgments 1 (the call), 2 (from the record), and 3, whose call came to no answer."""
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        asks = [asyncio.create_task(door.send(NAMED))]
        (await model.next()).set_result(reply())
        asks.append(asyncio.create_task(door.send(NAMED)))
        await asyncio.wait(asks)
        lost = asyncio.create_task(door.send(Ask(request("lost"), naming=Naming("pass"))))
        (await model.next()).set_result(Lost())
        await told(lost)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        yield db


@pytest.fixture
def ours(tmp_path: Path) -> sqlite3.Connection:
    """A program's own database."""
    db = sqlite3.connect(tmp_path / "ours.db")
    db.execute("CREATE TABLE verdict (label TEXT, judgment INTEGER)")
    return db


VERDICTS = "SELECT label, judgment FROM verdict"


def test_results_with_their_numbers_pass(ours: sqlite3.Connection, archive: sqlite3.Connection) -> None:
    with closing(ours):
        ours.executemany("INSERT INTO verdict VALUES (?, ?)", [("same", 1), ("same", 2), (None, None)])
        assert_judged(ours.execute(VERDICTS), archive)
    assert_judged([("same", 5)], lambda number: number == 5)


WRONG = [
    (("same", None), "1. 'same': written without a judgment number"),
    (("same", 4), "there is no judgment number 4 in the archive"),
    (("same", 2**70), "there is no judgment number"),
    (("same", 0), "there is no judgment number 0"),
    (("same", 3), "the asking 3 came to no answer"),
    (("same", "1"), "is '1', which is no whole number"),
    (("same", True), "is True, which is no whole number"),
]


@pytest.mark.parametrize(("row", "said"), WRONG)
def test_a_result_without_a_number_that_stands_for_it_fails(
    archive: sqlite3.Connection, row: tuple[object, object], said: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_judged([row, ("same", 1)], archive)
    assert str(caught.value).startswith("1 of 2 results have no judgment that stands for them:")
    assert said in str(caught.value)


def test_an_archive_that_is_not_open_is_said_to_be_none() -> None:
    name: Any = "a.db"
    with pytest.raises(TypeError, match=r"sqlite3\.connect"):
        assert_judged([("same", 1)], name)


def test_a_test_that_looks_at_nothing_fails_and_a_long_list_is_cut() -> None:
    with pytest.raises(AssertionError, match="no results"):
        assert_judged([], lambda _: True)
    with pytest.raises(AssertionError, match="and 10 more"):
        assert_judged([("same", None)] * 20, lambda _: True)
    with pytest.raises(AssertionError, match="7 is no judgment number of an answer"):
        assert_judged([("same", 7)], lambda _: False)
