"""Askings that are named are written down, each with a number, whether or not anything was sent; others are not."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archive.attempts import Lost, NotSent, Reply, State
from archive.errors import ArchiveError, Invalid, NotFound
from archive.messages import Abouts, Answered, Ask, Judged, Look, Sent
from archive.naming import Input, Naming
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from tests.actors import all_at_once, assert_whole, echoing, locked, queued, refused, settled, told
from tests.archive.actor.recorded import stranger
from tests.fakes import START, ask, body, reply, request
from tests.stored import rows

NAMING = Naming("keeper.pair", "pair:12-40", "yes: noul >= 0.8; else no")
ASKINGS = "SELECT id, request, answer, dispatch, inputs, inputs_missing, at FROM asking ORDER BY id"


def named(words: str = "Is it?", pick: Pick = Latest(), naming: Naming = NAMING) -> Ask:  # noqa: B008 - a constant
    """An Ask about `words` that is named."""
    return Ask(request(words), pick, naming=naming)


async def test_each_named_asking_is_a_row_by_how_it_was_served(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, clock):
        said = [await door.send(named())]
        clock.advance(1)
        said += [await door.send(named(pick=pick)) for pick in (Latest(), KeptOnly(), Version(1), Fresh())]
        said.append(await door.send(named(pick=Version(1))))
        assert [(one.judgment, one.sent, one.kept.n) for one in said] == [
            (1, Sent.NOW, 1),
            (2, Sent.NOT_SENT, 1),
            (3, Sent.NOT_SENT, 1),
            (4, Sent.NOT_SENT, 1),
            (5, Sent.NOW, 2),
            (6, Sent.NOT_SENT, 1),
        ]
        assert len(model.requests) == 2
    later = START + 1_000_000
    assert rows(path, ASKINGS) == [
        (1, 1, None, 1, 0, 0, START),
        (2, 1, 1, None, 0, 0, later),
        (3, 1, 1, None, 0, 0, later),
        (4, 1, 1, None, 0, 0, later),
        (5, 1, None, 2, 0, 0, later),
        (6, 1, 1, None, 0, 0, later),
    ]
    assert_whole(path)


async def test_those_who_share_a_call_have_a_number_each_and_who_names_nothing_has_none(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        asks = [asyncio.create_task(door.send(named()))]
        came = await model.next()
        asks += all_at_once(door, [ask(), named(), named(pick=Fresh())])
        await settled(door)
        came.set_result(reply())
        said = [await one for one in asks]
        assert [(one.judgment, one.sent) for one in said] == [
            (1, Sent.NOW),
            (None, Sent.SHARED),
            (2, Sent.SHARED),
            (3, Sent.SHARED),
        ]
        assert (await door.send(ask())).judgment is None
    assert [row[1:4] for row in rows(path, ASKINGS)] == [(1, None, 1)] * 3


async def test_one_who_joins_in_the_same_group_has_a_number_too(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        asks = all_at_once(door, [ask(), named(), named()])
        (await model.next()).set_result(reply())
        assert [(await one).judgment for one in asks] == [None, 1, 2]


async def test_plain_asks_write_no_asking(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        for pick in (Latest(), Latest(), Version(1), KeptOnly(), Fresh()):
            assert (await door.send(ask(pick=pick))).judgment is None
    assert rows(path, "SELECT * FROM asking") == []


@pytest.mark.parametrize(
    ("came", "code", "state"),
    [(Lost(), "call_unknown", State.UNKNOWN), (Reply(400, b"no"), "call_failed", State.FAILED)],
)
async def test_an_asking_whose_call_came_to_no_answer_has_its_number_too(
    tmp_path: Path, came: Any, code: str, state: State
) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        asks = all_at_once(door, [named(), ask(), named()])
        (await model.next()).set_result(came)
        errors = [await told(one) for one in asks]
        assert [(one.code, one.judgment) for one in errors if isinstance(one, ArchiveError)] == [
            (code, 1),
            (code, None),
            (code, 2),
        ]
        judgment = await door.send(Judged(2))
        assert (judgment.asking.state, judgment.asking.n, judgment.kept) == (state, None, None)
        assert judgment.request == request()


async def test_an_asking_that_nothing_served_and_nothing_was_sent_for_is_none(tmp_path: Path) -> None:
    """Refused before anything happened: there is nothing on record that the number could stand for."""
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, _):
        lost = asyncio.create_task(door.send(ask()))
        (await model.next()).set_result(Lost())
        await told(lost)
        for pick in (KeptOnly(), Version(1)):
            assert (await refused(door, named(pick=pick))).judgment is None
    assert rows(path, "SELECT * FROM asking") == []


async def test_who_is_told_of_an_earlier_call_that_came_to_nothing_has_a_number_for_it(tmp_path: Path) -> None:
    """Nothing is sent for it: a refusal that was paid for is shown for 60 s, and an unknown call for good."""
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        asked = {"paid": [Reply(200, b"<html>")], "lost": [Lost()], "lost, then not begun": [Lost(), NotSent()]}
        for words, cames in asked.items():
            for came in cames:
                first = asyncio.create_task(door.send(named(words, Fresh())))
                (await model.next()).set_result(came)
                assert (error := await told(first)) and isinstance(error, ArchiveError)
        sent = len(model.requests)
        errors = [await refused(door, named(words)) for words in asked]
        errors.append(await refused(door, named("lost", Fresh(sure=False))))
        plain = [await refused(door, ask(words)) for words in asked]
        found = [(await door.send(Judged(number))).asking for number in (5, 6, 7, 8)]
        assert (sent, len(model.requests)) == (4, 4)
        clock.advance(61)
        again = asyncio.create_task(door.send(named("paid")))
        (await model.next()).set_result(reply())
        assert isinstance(await told(again), Answered)
    codes = ["call_failed", "call_unknown", "call_unknown", "call_unknown"]
    assert [(error.code, error.judgment) for error in errors] == list(zip(codes, (5, 6, 7, 8), strict=True))
    assert [(error.code, error.judgment) for error in plain] == [(code, None) for code in codes[:3]]
    assert [one.state for one in found] == [State.FAILED, *[State.UNKNOWN] * 3]
    assert [row[3] for row in rows(path, ASKINGS)] == [1, 2, 3, 4, 1, 2, 3, 2, 5]
    assert_whole(path)


async def test_what_cannot_be_named_so_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, _):
        for naming in (Naming(reading="x: y.noul > 1; else z"), Naming(about="x" * 501)):
            with pytest.raises(Invalid):
                await door.send(named(naming=naming))
        assert (await door.send(Look(request()))).request_id is None
        assert model.requests == []
    assert rows(path, "SELECT id FROM dispatch UNION ALL SELECT id FROM asking") == []


async def test_a_late_answer_is_the_askings_answer_from_then_on(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, clock):
        asking = asyncio.create_task(door.send(named()))
        came = await model.next()
        clock.advance(60)
        assert (error := await told(asking)) and isinstance(error, ArchiveError) and error.judgment == 1
        assert (await door.send(Judged(1))).asking.state is State.UNKNOWN
        came.set_result(reply(0.9))
        await settled(door)
        judgment = await door.send(Judged(1))
        assert (judgment.asking.state, judgment.asking.n, judgment.asking.comes_to) == (State.ANSWERED, 1, "yes")


async def test_a_judgment_number_leads_to_all_of_it(tmp_path: Path) -> None:
    inputs = (Input("claim", "It is so, they say."), Input("", "short"), Input("", "words that are not there"))
    naming = Naming("keeper.pair", "pair:12-40", "yes: noul >= 0.8; else no", inputs)
    asked = "We know: It is so, they say."
    async with queued(tmp_path / "a.db") as (door, model, _):
        asking = asyncio.create_task(door.send(named(asked, naming=naming)))
        came = await model.next()
        open_ = (await door.send(Judged(1))).asking
        assert (open_.state, open_.n, open_.comes_to) == (None, None, None)
        came.set_result(reply(0.83))
        await asking
        again = asyncio.create_task(door.send(named(asked, Fresh(), naming)))
        (await model.next()).set_result(reply(0.1))
        await again
        first, second = await door.send(Judged(1)), await door.send(Judged(2))
        for number in (0, 3, -1, 2**70):
            with pytest.raises(NotFound):
                await door.send(Judged(number))
    assert (first.request, second.request) == (request(asked),) * 2
    assert first.kept is not None and second.kept is not None
    assert (first.kept.body, second.kept.body) == (reply(0.83).body, reply(0.1).body)
    one = first.asking
    assert (one.number, one.at, one.naming, one.n, one.comes_to) == (1, START, naming, 1, "yes")
    assert (one.found_at, one.inputs_missing) == ((body(asked).index(b"It is"), None, None), 1)
    assert (one.asked_model, one.answered_model, one.gone, one.erased) == ("jev-latest", "jev-1.13.0", "", False)
    assert (second.asking.n, second.asking.comes_to) == (2, "no")


async def test_all_that_was_asked_about_something_is_found_newest_first(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        for about in ("a", "b", "a", "", "a"):
            await door.send(named(about or "?", naming=Naming("step", about)))
        assert [one.number for one in await door.send(Abouts("a"))] == [5, 3, 1]
        assert [one.number for one in await door.send(Abouts("a", most=2))] == [5, 3]
        assert [one.number for one in await door.send(Abouts("a", before=3))] == [1]
        assert [one.number for one in await door.send(Abouts("b"))] == [2]
        assert await door.send(Abouts("nothing")) == await door.send(Abouts("")) == ()
    with closing(sqlite3.connect(path)) as db:
        plan = db.execute("EXPLAIN QUERY PLAN SELECT * FROM asking k WHERE k.about = 1 AND k.id < 9 ORDER BY k.id DESC")
        assert [row[3] for row in plan] == ["SEARCH k USING INDEX asking_about (about=? AND rowid<?)"]


async def test_an_asking_of_an_answer_that_was_withdrawn_or_erased_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(named("one", naming=Naming(about="x", inputs=(Input("", "private words"),))))
        await door.send(named("two", naming=Naming(about="y")))
    with stranger(path) as db:
        db.execute(
            "INSERT INTO withdrawal (id, answer, withdrawn, at, chain) VALUES (1, 2, 1, ?, CAST('x' AS BLOB))", (START,)
        )
        for words in (b'"one"', b"private words"):
            db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 1 WHERE bytes = ?", (words,))
    async with echoing(path) as (door, _, _):
        erased, withdrawn = await door.send(Judged(1)), await door.send(Judged(2))
        assert (erased.request, erased.kept, erased.asking.erased) == (None, None, True)
        assert "erased" in erased.asking.gone and erased.asking.naming.about == "x"
        assert (withdrawn.request, withdrawn.kept, withdrawn.asking.n) == (request("two"), None, 1)
        assert "withdrawn" in withdrawn.asking.gone
        assert [one.erased for one in await door.send(Abouts("x"))] == [True]


@pytest.mark.usefixtures("impatient")
async def test_while_nothing_can_be_written_a_named_asking_is_refused_and_a_plain_one_served(tmp_path: Path) -> None:
    """A result that is written without its number is lost to the record; a second later there is one."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, _):
        await door.send(ask())
        with locked(path):
            error = await refused(door, named())
            assert (error.code, error.judgment) == ("record_closed", None)
            assert "would have no number" in error.text
            assert isinstance(await told(asyncio.create_task(door.send(ask(pick=Version(1))))), Answered)
        assert (await door.send(named())).judgment == 1
        assert len(model.requests) == 1
    assert_whole(path)


async def test_an_asking_names_the_answer_or_the_sending_and_never_both_or_none(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(named())
    insert = (
        "INSERT INTO asking (id, request, answer, dispatch, inputs, inputs_missing, at, chain)"
        " VALUES (?, 1, ?, ?, 0, 0, 1, x'')"
    )
    with stranger(path) as db:
        for answer, dispatch in ((None, None), (1, 1)):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                db.execute(insert, (2, answer, dispatch))
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute(insert, (2, None, None))
