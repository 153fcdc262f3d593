"""Facts: what is counted pass by pass, on a few askings by hand; and the saving on the benchmark's synthetic sets."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from archive.actor.store import Store, add_asking, facts
from archive.admin import Facts
from archive.attempts import Lost, Reply
from archive.errors import Busy, RecordClosed
from archive.messages import Ask, Judged
from archive.naming import Counted, Input, Naming, PassFacts
from archive.picks import Fresh, Latest, Pick
from archive.request import Request
from tests.actors import HANG_SECONDS_MAX, echoing, queued, told
from tests.bench.filling import START, keep, pair
from tests.bench.words import decide_set, extract_set
from tests.erasing import PERSON, erase
from tests.fakes import ASK, answer, ask, reply, request
from tests.stored import assert_closed_cleanly, rows

RULE = "yes: noul >= 0.8; else no"


def named(words: str, naming: Naming, pick: Pick = Latest()) -> Ask:  # noqa: B008 - a constant
    return Ask(request(words), pick, naming=naming)


async def test_every_number_of_a_pass_is_counted_from_its_rows(tmp_path: Path) -> None:
    pass_, other = Naming("pair", "1", RULE), Naming("", "1", "", (Input("", "an input of some length"),))
    async with queued(tmp_path / "a.db") as (door, model, _):

        async def send(message: Ask, *came: Any) -> None:
            asking = asyncio.create_task(door.send(message))
            if came:
                (await model.next()).set_result(*came)
            await told(asking)

        assert await door.send(Facts()) == Counted((), 0, 0, 0)
        await send(named("a", pass_), reply(0.83))
        await send(named("a", pass_))
        await send(named("a", pass_, Fresh()), reply(0.1))
        await send(named("b", pass_), Lost())
        await send(named("c", pass_), Reply(400, b"{}"))
        await send(Ask(Request(ASK, b"[]"), naming=Naming("pair")), Reply(200, answer(0.9), "application/json"))
        await send(named("b", other, Fresh()), reply(0.83))
        waiting = asyncio.create_task(door.send(named("d", pass_)))
        came = await model.next()
        found = await door.send(Facts())
        came.set_result(reply())
        await waiting
    nameless, pair_ = found.passes
    assert (nameless.pass_, nameless.askings, nameless.sent, nameless.readings) == ("", 1, 1, ())
    instructions, models = len(request("a").body) - len(b'"a"') - len(b'"jev-latest"'), len(b'"jev-latest"')
    bodies = [len(request(words).body) for words in ("a", "a", "a", "b", "c", "d")] + [2]
    replies = [len(reply(noul).body) for noul in (0.83, 0.83, 0.1)] + [2, len(answer(0.9))]
    naming = len("pair") + len("1") + len(RULE)
    assert pair_ == PassFacts(
        "pair",
        askings=7,
        requests=5,
        versions=2,
        whole=1,
        sent=6,
        not_sent=1,
        answered=4,
        failed=1,
        unknown=1,
        open=1,
        readings=((RULE, None, 3), (RULE, "yes", 2), (RULE, "no", 1)),
        models=(("jev-latest", "jev-1.13.0", 3), (None, "jev-1.13.0", 1)),
        # states a to d, [], {}, three replies; each once
        stored_bytes=instructions + models + 4 * len(b'"a"') + 2 + 2 + 3 * len(reply().body) + naming,
        whole_bytes=sum(bodies) + sum(replies) + 6 * naming + len("pair"),
    )
    assert found.answers == 4
    assert found.whole_bytes == sum(bodies[:2]) + bodies[3] + 2 + 3 * len(reply().body) + len(answer(0.9))


async def test_erased_words_take_no_bytes(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(named(f"about {PERSON}", Naming("pair")))
        await door.send(named("somebody else", Naming("pair")))
        before = await door.send(Facts())
        receipt = await erase(door)
        after = await door.send(Facts())
    (emptied,) = receipt.texts
    ((length,),) = rows(tmp_path / "a.db", "SELECT length FROM text WHERE id = ?", emptied)
    assert before.stored_bytes - after.stored_bytes == length
    assert rows(tmp_path / "a.db", "SELECT sum(length(bytes)) FROM text") == [(after.stored_bytes,)]
    assert before.passes[0].stored_bytes - after.passes[0].stored_bytes == length
    assert before.passes[0].whole_bytes - after.passes[0].whole_bytes == length
    assert before.whole_bytes - after.whole_bytes == length


async def test_the_slices_it_reads_in_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        for number in range(7):
            naming = Naming(str(number % 3), "", RULE, (Input("n", f"input {number % 2}"),) * number)
            await door.send(named(f"{number % 4}", naming))
        whole = await door.send(Facts())
        for size in (1, 2, 3, 7):
            monkeypatch.setattr(facts, "SLICE", size)
            assert await door.send(Facts()) == whole
    assert [one.askings for one in whole.passes] == [3, 2, 2]


async def test_stopping_ends_what_is_being_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, slices, go_on = tmp_path / "a.db", threading.Semaphore(0), threading.Event()
    slice_ = facts._slice  # pyright: ignore[reportPrivateUsage]

    def held(*given: Any) -> Any:
        slices.release()
        assert go_on.wait(HANG_SECONDS_MAX)
        return slice_(*given)

    closing, break_off = asyncio.Event(), Store.break_off

    def broken_off(store: Store) -> None:
        break_off(store)
        closing.set()

    monkeypatch.setattr(Store, "break_off", broken_off)
    async with echoing(path) as (door, _, _):
        await door.send(named("a", Naming("x")))
        monkeypatch.setattr(facts, "_slice", held)
        counting = asyncio.create_task(door.send(Facts()))
        assert await asyncio.to_thread(slices.acquire, timeout=HANG_SECONDS_MAX)
        door.stop()
        await closing.wait()
        go_on.set()
        with pytest.raises(RecordClosed):
            await counting
        with pytest.raises(Busy):
            await door.send(Facts())
    assert_closed_cleanly(path)


async def test_an_asker_who_leaves_stops_neither_the_counting_nor_the_store_from_closing(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask())
        counting = asyncio.create_task(door.send(Facts()))
        await asyncio.sleep(0)
        counting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await counting


@pytest.mark.parametrize(
    ("made", "saved"), [(decide_set(1), 864 / 2_675), (extract_set(1), 686 / 13_292)], ids=["decide", "extract"]
)
async def test_on_the_synthetic_sets_the_saving_is_at_least_what_is_stated(
    tmp_path: Path, made: list[tuple[bytes, bytes, bytes]], saved: float
) -> None:
    """Stated are bytes in the file, all in; here the texts alone are weighed, which tests.bench.size does not."""
    store = await Store.open(tmp_path / "a.db")

    def fill(record: Any) -> None:
        for number, one in enumerate(made, start=1):
            asked, outcome = pair(ASK, *one)
            keep(record, [(asked, outcome)])
            add_asking(record, asked, number, Naming("set"), START, n=1)

    await store.write(fill)
    found = await store.aside(Facts())
    await store.close()
    (one,) = found.passes
    assert (one.askings, one.requests, one.whole, one.answered) == (len(made), len(made), 0, len(made))
    assert one.stored_bytes / one.whole_bytes <= saved
    assert found.stored_bytes / found.whole_bytes <= saved


async def test_a_reading_is_read_from_the_json_part_of_a_multipart_body_too(tmp_path: Path) -> None:
    parts = b'--b\r\nContent-Disposition: form-data; name="r"\r\nContent-Type: application/json\r\n\r\n%s\r\n--b--\r\n'
    asked = Request(ASK, parts % request().body, "multipart/form-data; boundary=b")
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(Ask(asked, naming=Naming("images", "", RULE)))
        assert (await door.send(Judged(1))).asking.comes_to == "yes"
        (one,) = (await door.send(Facts())).passes
        assert (one.readings, one.whole) == (((RULE, "yes", 1),), 1)
