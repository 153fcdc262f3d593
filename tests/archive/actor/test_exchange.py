"""Answers out of one record and into another: every byte, in order, once; and what must not come in stays out."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from archive.actor.store import Store, exchange
from archive.admin import Chosen, Export, Import
from archive.attempts import Came, Reply
from archive.doors import Door
from archive.errors import NotKept, RecordClosed
from archive.exchange import Took, Verdict
from archive.live import Changed, Imported, Place
from archive.messages import Ask, Look, Looked, Show, Totals, Versions
from archive.naming import Input, Naming
from archive.picks import Fresh, KeptOnly, Latest, Pick
from archive.request import Request, call_id
from tests.actors import assert_whole, echoing, locked, queued, told
from tests.fakes import ASK, EchoModel, answer, ask, body, reply, request
from tests.stored import rows

FROM = "askonce 3f2a9c01be44"
NEW, HERE, OTHERS, ERASED, REFUSED = Took


async def lines(door: Door, **chosen: Any) -> list[bytes]:
    """All lines of an export."""
    found, after = list[bytes](), 0
    while after is not None:
        page = await door.send(Export(Chosen(**chosen), after))
        found += page.lines
        after = page.after
    return found


async def said(door: Door, **chosen: Any) -> list[dict[str, Any]]:
    """The same, read."""
    return [json.loads(line) for line in await lines(door, **chosen)]


async def put(door: Door, found: list[bytes], source: str = FROM, **more: bool) -> list[Took]:
    """Take lines in; what became of each."""
    return [verdict.took for verdict in await door.send(Import(tuple(found), source, write=True, **more))]


def bare(found: list[bytes]) -> list[dict[str, Any]]:
    """Lines without what is said of where they come from, and without their askings, which stay where they are."""
    kept = [json.loads(line) for line in found]
    return [{name: value for name, value in one.items() if name not in {"imported_from", "askings"}} for one in kept]


STREAM = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
MULTIPART = 'multipart/form-data; boundary="b"'

ODD: list[tuple[Request, Came]] = [
    (Request(ASK, b"\xff\xfe not text"), Reply(200, b'{"answers":{"a":1},"\\ud800":"\\u0000\xc3\xbc\xe2\x80\xa8"}')),
    (Request(ASK, b'{"state":1e400,"state":"\\u0000"}'), Reply(200, b'\xef\xbb\xbf{"answers": {"a" : 1e400}}\r\n')),
    (Request(ASK, body("\u2028\x85")), Reply(200, answer(), "application/json", "req_\udcff")),
    (Request(ASK, b'--b\r\n\r\n\x89PNG\r\n--b--\r\n', MULTIPART), Reply(200, b'{"answers":{"a":1}}')),
    (Request(ASK, b'{"stream":true}'), Reply(200, STREAM, "text/event-stream", cuts=(7, 0, len(STREAM) - 7))),
    (Request(ASK, body("b"), headers=(("typesafe-danger-zone-images", "true"),)), Reply(201, answer())),
]  # fmt: skip


async def keep(door: Door, model: EchoModel, clock: Any, request_: Request, came: Came, pick: Pick = Latest()) -> None:  # noqa: B008
    model.came = came
    clock.advance(1)
    await door.send(Ask(request_, pick))


async def test_what_goes_out_and_into_an_empty_record_comes_out_of_that_the_same(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for asked, came in ODD:
            await keep(door, model, clock, asked, came)
        for n in range(3):
            for words in ("x", "y"):
                await keep(door, model, clock, request(words), reply(n // 2 / 10), Fresh())  # the same words twice
        out = await lines(door)
    async with echoing(tmp_path / "b.db") as (door, model, clock):
        clock.advance(100)
        assert await put(door, out) == [NEW] * len(out)
        back = await lines(door)
        assert bare(back) == bare(out)
        assert {one["imported_from"] for one in map(json.loads, back)} == {FROM}
        assert await put(door, out) == [HERE] * len(out), "the same file twice adds nothing"
        assert await put(door, out, append=True) == [HERE] * len(out)
        assert await put(door, back, "askonce another") == [HERE] * len(out)
        for asked, came in ODD:
            assert isinstance(came, Reply)
            kept = (await door.send(Ask(asked))).kept
            assert (kept.body, kept.cuts, kept.content_type) == (came.body, came.cuts, came.content_type)
            assert kept.provider_id == came.provider_id
        assert model.requests == [], "what was imported is not sent"
        assert (await door.send(Totals())).sent == 0
    assert len(out) == len(ODD) + 6
    assert_whole(tmp_path / "b.db")
    # And home again: what was sent from there is there.
    async with echoing(tmp_path / "a.db") as (door, _, clock):
        clock.advance(100)
        assert await put(door, back, append=True) == [HERE] * len(out)
    assert rows(tmp_path / "a.db", "SELECT DISTINCT origin FROM dispatch") == [(1,)]


async def test_an_answer_is_added_to_others_only_when_that_is_asked_for_and_is_then_the_newest(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for n in range(3):
            await keep(door, model, clock, request(), reply(n / 10), Fresh())
        out = await lines(door)
    async with echoing(tmp_path / "b.db") as (door, model, clock):
        clock.advance(100)
        await keep(door, model, clock, request(), reply(0.9))
        assert await put(door, out) == [OTHERS] * 3
        assert [one["n"] for one in await said(door)] == [1]
        assert (await door.send(ask())).kept.body == answer(0.9)
        assert await put(door, out[:2], append=True) == [NEW] * 2
        assert (await door.send(ask())).kept.body == answer(0.1), "what was remembered of it is forgotten"
        assert await put(door, out, append=True) == [HERE, HERE, NEW]
    async with echoing(tmp_path / "c.db") as (door, _, clock):
        clock.advance(100)
        # Broken off and begun again: the rest of the same source still gets in; another source's does not.
        assert await put(door, out[:1]) == [NEW]
        assert await put(door, out[1:2], "askonce other") == [OTHERS]
        assert await put(door, out) == [HERE, NEW, NEW]
        assert [one["n"] for one in await said(door)] == [1, 2, 3]


async def test_to_find_out_writes_nothing_and_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await keep(door, model, clock, request("a"), reply())
        await keep(door, model, clock, request("b"), reply())
        out = await lines(door)
    wrong = json.dumps(json.loads(out[0]) | {"n": 0}).encode()
    message = Import((out[0], wrong, out[0], out[1], b"{"), FROM)
    async with echoing(path) as (door, _, clock):
        clock.advance(100)
        looked = await door.send(message)
        assert await lines(door) == []
        done = await door.send(msgspec.structs.replace(message, write=True))
    assert looked == done
    assert [verdict.took for verdict in done] == [NEW, REFUSED, HERE, NEW, REFUSED]
    assert done[0] == Verdict(NEW)
    assert rows(path, "SELECT count(*) FROM dispatch") == [(2,)]
    assert_whole(path)


async def test_a_look_that_was_undone_leaves_no_row_behind(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await keep(door, model, clock, request(), reply())
        out = await lines(door)
    async with echoing(tmp_path / "b.db") as (door, model, clock):
        clock.advance(100)
        await door.send(Import(tuple(out), FROM))
        await keep(door, model, clock, request("other"), reply())
    found = rows(
        tmp_path / "b.db", "SELECT (SELECT max(id) FROM request), (SELECT max(id) FROM outcome), max(id) FROM answer"
    )
    assert found == [(1, 1, 1)]
    assert_whole(tmp_path / "b.db")


async def test_an_error_is_never_taken_in_as_an_answer_and_takes_nothing_else_with_it(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for words in ("a", "b", "c"):
            await keep(door, model, clock, request(words), reply())
        out = await lines(door)
    bad = json.loads(out[1])
    bad["reply"]["body"] = '{"error":{"message":"overloaded"}}'
    async with echoing(tmp_path / "b.db") as (door, _, clock):
        clock.advance(100)
        verdicts = await door.send(Import((out[0], json.dumps(bad).encode(), out[2]), FROM, write=True))
        assert [verdict.took for verdict in verdicts] == [NEW, REFUSED, NEW]
        assert "no answer" in verdicts[1].why
        for words, pick in (("a", KeptOnly()), ("c", KeptOnly())):
            await door.send(ask(words, pick))
        with pytest.raises(NotKept):
            await door.send(ask("b", KeptOnly()))


async def test_half_a_character_in_any_field_is_refused_by_line_and_stops_no_other(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for words in ("one", "two"):
            await keep(door, model, clock, request(words), reply())
        one, two = await lines(door)
    whole = json.loads(one)
    bad = [whole | {name: "\ud800"} for name in ("n", "ms", "standing", "request", "reply", "cost_made", "kept_at")]
    bad += [whole | {"request": whole["request"] | {name: "\ud800"}} for name in whole["request"]]
    bad += [whole | {"reply": whole["reply"] | {name: "\ud800"}} for name in ("status", "content_type", "body")]
    bad.append(whole | {"standing": "withdrawn", "why": "\ud800"})
    wrong = [json.dumps(line).encode() for line in bad]
    async with echoing(tmp_path / "b.db") as (door, *_):
        verdicts = await door.send(Import((*wrong, one, *wrong, two), FROM, write=True))
    assert [verdict.took for verdict in verdicts] == [*[REFUSED] * len(wrong), NEW] * 2
    assert all(verdict.why for verdict in verdicts if verdict.took is REFUSED)


async def test_a_request_on_the_wire_is_left_alone(tmp_path: Path) -> None:
    """Else its open sending were no longer the last, and Fresh would send the same bytes beside it."""
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await keep(door, model, clock, request(), reply())
        out = await lines(door)
    async with queued(tmp_path / "b.db") as (door, model, clock):
        clock.advance(100)
        asking = asyncio.create_task(door.send(ask()))
        came = await model.next()
        (verdict,) = await door.send(Import(tuple(out), FROM, append=True, write=True))
        assert verdict.took is REFUSED
        assert "on the wire" in verdict.why
        joining = asyncio.create_task(door.send(ask(pick=Fresh())))
        came.set_result(reply(0.5))
        await asking
        await joining
        assert len(model.requests) == 1
        assert await put(door, out, append=True) == [NEW]


async def test_an_unknown_request_is_answered_by_what_is_imported(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await keep(door, model, clock, request(), reply())
        out = await lines(door)
    async with queued(tmp_path / "b.db") as (door, model, clock):
        clock.advance(100)
        asking = asyncio.create_task(door.send(ask()))
        (await model.next()).set_result(Reply(504, b""))
        await told(asking)
        assert (await door.send(Look(request()))).unknown_at is not None
        assert await put(door, out) == [NEW]
        looked: Looked = await door.send(Look(request()))
        assert (looked.total, looked.unknown_at) == (1, None)


async def test_withdrawn_answers_stay_withdrawn_and_erased_ones_have_no_words(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, model, clock):
        for n in range(3):
            await keep(door, model, clock, request("shared"), reply(n / 10), Fresh())
        await keep(door, model, clock, request("secret words"), reply(0.7))
        await keep(door, model, clock, request("kept words"), Reply(200, answer(0.61)))
    store = await Store.open(path)
    why = b"asked by mistake"
    await store.write(lambda record: record.add("withdrawal", 2, 1, None, record.text(why), 5_000_000))
    for gone in (b'"secret words"', answer(0.61)):
        await store.write(
            lambda record, gone=gone: record.db.execute(
                "UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 7000000 WHERE bytes = ?", (gone,)
            )
        )
    await store.close()
    async with echoing(path) as (door, _, clock):
        out = await lines(door)
    found = [json.loads(line) for line in out]
    assert [one["standing"] for one in found] == ["kept", "withdrawn", "kept", "erased", "erased"]
    assert (found[1]["gone_at"], found[1]["why"]) == ("1970-01-01T00:00:05.000000Z", "asked by mistake")
    assert found[4]["gone_at"] == "1970-01-01T00:00:07.000000Z"
    assert found[3]["call"] is None, "what names it was made from its words"
    for one in found[3:]:
        assert "request" not in one
        assert "reply" not in one
    assert b"kept words" not in b"".join(out[3:])
    async with echoing(tmp_path / "b.db") as (door, _, clock):
        clock.advance(100)
        assert await put(door, out) == [NEW, NEW, NEW, ERASED, ERASED]
        standings = [one.standing for one in await door.send(Versions(1))]
        assert [one.withdrawn for one in standings] == [False, True, False]
        assert (standings[1].gone_at, standings[1].why) == (5_000_000, "asked by mistake")
        assert bare(await lines(door)) == bare(out[:3])


async def test_private_archives_stay_where_they_are_unless_both_sides_say_so(tmp_path: Path) -> None:
    private = msgspec.structs.replace(request(), partition="token 3")
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await keep(door, model, clock, private, reply(0.2))
        await keep(door, model, clock, request(), reply(0.1))
        assert ["partition" in one["request"] for one in await said(door)] == [False]
        out = await lines(door, private=True)
    async with echoing(tmp_path / "b.db") as (door, model, clock):
        clock.advance(100)
        assert await put(door, out) == [REFUSED, NEW]
        assert await put(door, out, private=True) == [NEW, HERE]
        assert (await door.send(Ask(private))).kept.body == answer(0.2)
        assert (await door.send(ask())).kept.body == answer(0.1)


async def test_what_is_exported_can_be_chosen_and_tells_what_it_was_asked_for(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for n, naming in enumerate(
            [Naming("pair", "1"), Naming("pair", "2", "", (Input("a", "w"),)), Naming("x"), None]
        ):
            model.came = reply(n / 10)
            clock.advance(1)
            await door.send(Ask(request(str(n)), naming=naming))
        await door.send(Ask(request("1"), naming=Naming("again", "1")))  # from the record
        start = clock.now()

        async def chosen(**more: Any) -> list[str]:
            return [json.loads(one["request"]["body"])["state"] for one in await said(door, **more)]

        assert await chosen() == ["0", "1", "2", "3"]
        assert await chosen(pass_="pair") == ["0", "1"]
        assert await chosen(about="1") == ["0", "1"]
        assert await chosen(pass_="again", about="1") == ["1"]
        assert await chosen(pass_="pair", about="2") == ["1"]
        assert await chosen(pass_="x", about="1") == []
        assert await chosen(pass_="never") == []
        assert await chosen(since=start - 1_000_000) == ["2", "3"]
        assert await chosen(until=start - 1_000_000) == ["0", "1"]
        assert await chosen(destination="systemone") == await chosen(destination=ASK.url) == ["0", "1", "2", "3"]
        assert await chosen(destination="POST") == await chosen(destination="other") == []
        one = (await said(door))[1]
    assert [(asked["judgment"], asked.get("pass"), asked.get("about")) for asked in one["askings"]] == [
        (2, "pair", "2"),
        (4, "again", "1"),
    ]
    assert one["askings"][0]["inputs"] == [{"name": "a", "words": "w"}]


async def test_an_export_comes_in_pages_and_misses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for n in range(25):
            await keep(door, model, clock, request(str(n)), reply())
        whole = await lines(door)
        for name, value in (("ROWS_SCANNED", 7), ("LINES_MAX", 3), ("LINES_BYTES_MAX", 1), ("ASKINGS_MAX", 1)):
            monkeypatch.setattr(exchange, name, value)
            assert await lines(door) == whole
        page = await door.send(Export())
        assert (len(page.lines), page.after, page.end) == (1, 1, 25)
        assert len(page.record) == 12
        assert [one["request"]["body"] for one in await said(door, since=clock.now())] == [body("24").decode()]
        for _ in range(3):
            await door.send(Ask(request("5"), naming=Naming("p")))
        assert (await said(door))[5]["askings_left_out"] == 2
        assert (await said(door))[6].keys() & {"askings", "askings_left_out"} == set()


async def test_an_empty_record_is_exported_as_nothing(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        page = await door.send(Export())
    assert (page.lines, page.record, page.after, page.end) == ((), "", None, 0)


async def test_while_nothing_can_be_written_nothing_is_taken_in(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        await keep(door, model, clock, request(), reply())
        out = await lines(door)
    async with echoing(tmp_path / "b.db") as (door, _, clock):
        clock.advance(100)
        with locked(tmp_path / "b.db"), pytest.raises(RecordClosed):
            await put(door, out)
        assert await put(door, out) == [NEW]
        assert (await door.send(Show(1))).request == request()
    assert_whole(tmp_path / "b.db")


async def test_listeners_are_told_once_of_all_calls_that_were_taken_in_and_of_none_that_only_would_be(
    tmp_path: Path,
) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        for words in ("x", "y", "x"):
            await keep(door, model, clock, request(words), reply(), Fresh())
        out = await lines(door)
    async with echoing(tmp_path / "b.db") as (door, _, clock), door.watch(Place("/live")) as notices:
        clock.advance(100)
        await door.send(Import(tuple(out), FROM))
        assert await put(door, out) == [NEW] * 3
        assert await put(door, out) == [HERE] * 3
        await door.send(ask("z"))
        told = [await anext(notices) for _ in range(2)]
    calls = tuple(sorted(call_id(request(words)) for words in ("x", "y")))
    assert told == [Imported(calls), Changed(call_id(request("z")))]
