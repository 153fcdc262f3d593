"""A person's words are taken out: from every text that holds them and from the files' bytes, and they stay out.

The rows stay, the numbers too, and whoever shares a text is not harmed unasked.
"""

import asyncio
import json
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest

from archive.actor.store import file, searching
from archive.actor.store.ledger import Ledger
from archive.admin import BackUp, Check, Erase, Preview, Prove
from archive.answer import Answer
from archive.attempts import Lost, Reply
from archive.errors import Erased, Invalid, NotKept
from archive.exchange import header
from archive.live import Asked, Forgotten, Place
from archive.messages import (
    Abouts,
    Ask,
    Conclusion,
    Feed,
    History,
    Judged,
    Made,
    Named,
    Noted,
    Question,
    Recall,
    Show,
    Versions,
)  # fmt: skip
from archive.naming import Naming
from archive.picks import Fresh, KeptOnly, Version
from archive.request import Destination, Request, call_id
from tests.actors import assert_whole, echoing, queued, refused, settled, standing, told
from tests.archive.actor.recorded import stranger
from tests.erasing import JSON, LONG, PERSON, RAW, UNTOUCHED, erase, everywhere, in_files, quoting
from tests.fakes import ASK, Behind, EchoModel, answer, ask, body, reply, request
from tests.stored import rows


async def test_no_live_file_holds_a_word_of_hers_and_every_row_is_still_there(tmp_path: Path) -> None:
    """C-31, B86, B87: question, option, answer, naming, reading, feed row, error text, stream, long text."""
    path = tmp_path / "a.db"
    counted = "SELECT (SELECT count(*) FROM text), (SELECT count(*) FROM answer), (SELECT count(*) FROM asking_input)"
    async with echoing(path) as (door, model, _):
        await everywhere(door, model)
        await door.send(BackUp(str(tmp_path / "a.db.backup")))
        receipt = await erase(door)
        assert receipt.done, receipt
        assert not receipt.stayed
        assert receipt.uses.requests == 5
        assert (receipt.uses.questions, receipt.uses.askings, receipt.uses.answers) == (1, 1, 4)
        assert {Path(one.file).name for one in receipt.searched} >= {"a.db", "a.db-wal", "a.db.erased"}
        assert receipt.copies == (str(tmp_path / "a.db.backup"),)
        listed = await door.send(Feed())
        assert [row.question.words for row in listed.rows] == [UNTOUCHED]
        assert await door.send(Recall(Question(f"Is it {PERSON}?", (PERSON, "tea")))) is None
        assert (await door.send(ask(UNTOUCHED))).sent == "no"
        assert (await door.send(Prove())).holds
        assert (await door.send(Check(most=1_000))).faults == ()
    assert in_files(tmp_path, RAW, JSON, JSON.replace(b"/", b"\\/")) == []
    assert {name for name, _ in in_files(tmp_path, RAW, but="?")} == {"a.db.backup"}
    assert rows(path, counted) == rows(tmp_path / "a.db.backup", counted)
    assert rows(path, "SELECT count(*) FROM text WHERE emptied_at IS NOT NULL") == [(len(receipt.texts),)]
    assert rows(path, "SELECT count(*) FROM question WHERE listed = 1") == [(1,)]
    # Of two requests the words stay: somebody else's, and the one whose reply alone quoted her.
    assert rows(path, "SELECT count(*) FROM request_key") == [(2,)]
    assert rows(path, "SELECT count(*) FROM text_key") == rows(
        path, "SELECT count(*) FROM text WHERE bytes IS NOT NULL"
    )
    assert_whole(path)


async def test_copies_that_were_not_searched_are_named_whatever_they_are_called(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask(f"about {PERSON}"))
        for name in ("monday.db", "old", "a.db.backup"):
            await door.send(BackUp(str(tmp_path / name)))
        (tmp_path / "old-wal").write_bytes(b"what stands in no file yet")
        (tmp_path / "lines").write_bytes(header("record", 0) + b"\n")
        (tmp_path / "again.db").hardlink_to(path)
        (tmp_path / "there.db").symlink_to(tmp_path / "monday.db")
        (tmp_path / "of another program.db").write_bytes(b"SQLite format 3\0" + bytes(84))
        (tmp_path / "notes.txt").write_text("none of ours")
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "pipe")
        receipt = await erase(door)
        named = {Path(one).name for one in receipt.copies}
        assert named == {"monday.db", "old", "old-wal", "a.db.backup", "lines", "there.db"}
        assert receipt.done


async def test_an_erased_request_matches_nothing_and_its_versions_say_erased(tmp_path: Path) -> None:
    words = f"What does {PERSON} want?"
    naming = Naming(about="ticket 7")
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        first = await door.send(Ask(request(words), naming=naming))
        number = first.kept.request_id
        clock.advance(60)
        receipt = await erase(door)
        assert receipt.done
        for gone in (Show(number), Show(number, 1)):
            with pytest.raises(Erased, match="erased on") as caught:
                await door.send(gone)
            assert caught.value.at == receipt.at == clock.now()
        (version,) = await door.send(Versions(number))
        assert (version.standing.erased, version.standing.gone_at, version.kept) == (True, receipt.at, None)
        assert await door.send(History(number)) == ()
        assert await door.send(Named(call_id(request(words)))) == ()
        judgment = await door.send(Judged(first.judgment or 0))
        assert (judgment.request, judgment.kept) == (None, None)
        assert "erased" in judgment.asking.gone
        assert [asking.number for asking in await door.send(Abouts("ticket 7"))] == [first.judgment]
        assert isinstance(await refused(door, ask(words, KeptOnly())), NotKept)
        again = await door.send(ask(words))
        assert (again.sent, again.kept.n) == ("now", 1)
        assert again.kept.request_id != number
        assert len(model.requests) == 2


async def test_an_answer_that_quotes_her_is_erased_and_the_request_stays(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _):
        model.came = quoting()
        await door.send(ask("Who was it?"))
        model.came = Reply(200, answer(0.2))
        await door.send(ask("Who was it?", Fresh()))
        receipt = await erase(door)
        assert receipt.done
        assert (receipt.uses.answers, receipt.uses.requests) == (1, 1)
        gone = await refused(door, ask("Who was it?", Version(1)))
        assert isinstance(gone, Erased)
        assert gone.at == receipt.at
        assert (await door.send(ask("Who was it?"))).kept.n == 2


async def test_what_others_use_too_stays_until_that_is_confirmed_and_the_receipt_says_which(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        for pass_ in ("Ok?", "Not ok?"):
            await door.send(Ask(Request(ASK, body(PERSON, pass_=pass_))))
        alone = await door.send(ask(f"{PERSON} alone"))
        preview = await door.send(Preview(PERSON))
        shared, own = sorted(preview.texts, key=lambda one: one.length)
        assert (shared.uses.shared, shared.uses.requests, own.uses.shared) == (True, 2, False)
        assert own.uses.calls == (alone.kept.call_id,)
        assert own.begins == json.dumps(f"{PERSON} alone", ensure_ascii=False)
        receipt = await erase(door)
        assert (receipt.texts, [one.text for one in receipt.stayed]) == ((own.text,), [shared.text])
        assert not receipt.done
        assert (await door.send(Ask(Request(ASK, body(PERSON, pass_="Ok?"))))).sent == "no"
        confirmed = await erase(door, also_shared=True)
        assert (confirmed.texts, confirmed.stayed, confirmed.done) == ((shared.text,), (), True)
        assert (await door.send(Ask(Request(ASK, body(PERSON, pass_="Ok?"))))).sent == "now"


@pytest.mark.parametrize("other", ["a request", "a question", "both calls of another question"])
async def test_a_question_and_its_own_calls_are_one_use_until_something_else_uses_them(
    tmp_path: Path, other: str
) -> None:
    def noted(words: str, *numbers: int) -> Noted:
        calls = tuple(Made("It is.", number, 1) for number in numbers)
        return Noted(Question(words), 1, 1, calls, Conclusion("which", Answer("Yes")), True)

    async with echoing(tmp_path / "a.db") as (door, _, _):
        made = [
            (await door.send(Ask(Request(ASK, body(PERSON, pass_=pass_))))).kept.request_id
            for pass_ in ("What kind?", "Yes or no?")
        ]
        await door.send(noted(PERSON, *made))
        found = await door.send(Preview(PERSON))
        assert max(one.uses.requests for one in found.texts) == 2
        assert [one.uses.shared for one in found.texts] == [False] * len(found.texts)
        if other == "a request":
            await door.send(Ask(Request(ASK, body(PERSON, pass_="Somebody else's?"))))
        elif other == "a question":
            await door.send(noted(PERSON + "!", made[0]))
        else:
            await door.send(noted(PERSON + "!", *made))
        receipt = await erase(door)
        assert [one.uses.requests for one in receipt.stayed] == [3 if other == "a request" else 2]
        assert not receipt.done
        assert (await erase(door, also_shared=True)).done


async def test_short_words_take_whole_texts_alone(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask("Zoë"))
        await door.send(ask("Zoë and more"))
        found = await door.send(Preview("Zoë"))
        assert [one.length for one in found.texts] == [len('"Zoë"'.encode())]
        receipt = await erase(door, "Zoë")
        assert len(receipt.texts) == 1
        assert not receipt.done  # others' text holds them too, and that is what the bytes say
        assert (await door.send(ask("Zoë and more"))).sent == "no"


async def test_a_whole_long_text_is_erased_by_a_long_piece_of_it(tmp_path: Path) -> None:
    words = LONG[:9_000]
    async with echoing(tmp_path / "a.db") as (door, model, _):
        model.came = quoting(LONG)
        await door.send(ask(LONG))
        receipt = await erase(door, words)
        assert len(receipt.texts) == 2
        assert receipt.done
    assert in_files(tmp_path, RAW, JSON) == []


async def test_words_in_an_address_that_somebody_asked_at_are_erased(tmp_path: Path) -> None:
    place = Destination("any", "POST", f"https://api.example.test/find?who={quote(PERSON)}")
    async with standing(tmp_path / "a.db", lambda _: Behind(EchoModel())) as door:
        first = await door.send(Ask(Request(place, body("Who is it?"))))
        receipt = await erase(door)
        assert (len(receipt.texts), receipt.uses.requests, receipt.done) == (1, 1, True)
        with pytest.raises(Erased):
            await door.send(Show(first.kept.request_id))
        assert (await door.send(Ask(Request(place, body("Who is it?"))))).sent == "now"


async def test_erasing_twice_is_as_good_as_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask(PERSON))
        first = await erase(door)
        second = await erase(door)
        without_preview = await door.send(Erase(PERSON))
        assert first.done
        assert second.done
        assert without_preview.done
        assert (len(first.texts), second.texts, without_preview.texts) == (1, (), ())
    assert len(Ledger(path).lines()) == 1


async def test_what_came_after_the_preview_goes_too_and_what_it_named_wrongly_stays(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask(PERSON))
        await door.send(ask(UNTOUCHED))
        found = await door.send(Preview(PERSON))
        await door.send(ask(f"{PERSON} once more"))
        everything = tuple(range(found.upto + 1))
        receipt = await door.send(Erase(PERSON, False, everything, found.upto))
        assert len(receipt.texts) == 2
        assert receipt.done
        assert (await door.send(ask(UNTOUCHED))).sent == "no"


async def test_what_comes_back_for_a_call_on_the_wire_is_kept_as_numbers_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with queued(path) as (door, model, clock):
        waiting = asyncio.create_task(door.send(ask(f"What does {PERSON} want?")))
        first = await model.next()
        slow = asyncio.create_task(door.send(ask(f"slowly, {PERSON}")))
        late = await model.next()
        clock.advance(40)
        assert (await told(slow)).code == "call_unknown"  # type: ignore[union-attr]
        await told(waiting)
        receipt = await erase(door)
        assert receipt.done
        again = asyncio.create_task(door.send(ask(f"What does {PERSON} want?")))
        other = await model.next()  # the same bytes are a new request: not joined
        first.set_result(quoting())
        late.set_result(quoting())
        await settled(door)
        assert not again.done()
        other.set_result(Reply(200, answer(0.4)))
        assert (await again).kept.body == answer(0.4)
        assert (await erase(door)).done
    assert in_files(tmp_path, RAW, JSON) == []
    found = rows(path, "SELECT a.n, o.input_tokens, t.length, t.bytes, t.salt FROM answer a JOIN outcome o ON"
                       " o.id = a.outcome JOIN text t ON t.id = o.reply WHERE o.n = 2")  # fmt: skip
    assert found == [(1, 131, len(quoting().body), None, None)] * 2
    assert_whole(path)


async def test_who_waits_on_a_call_whose_words_are_erased_is_told_so(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        for came in (quoting(), Reply(422, PERSON.encode()), Lost()):
            waiting = asyncio.create_task(door.send(ask(PERSON)))
            call = await model.next()
            assert (await erase(door)).done
            # The same bytes are a new request, though the other is on the wire yet.
            other = asyncio.create_task(door.send(ask(PERSON)))
            new = await model.next()
            call.set_result(came)
            assert isinstance(await told(waiting), Erased)
            assert not other.done()
            new.set_result(reply())
            await other
            await erase(door)


async def test_what_came_back_late_for_an_erased_request_is_not_handed_out(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        waiting = asyncio.create_task(door.send(ask(PERSON)))
        call = await model.next()
        await erase(door)
        call.set_result(quoting())
        await told(waiting)
        assert isinstance(await refused(door, ask(PERSON, KeptOnly())), NotKept)


async def test_whoever_listens_lets_go_and_nothing_of_before_is_handed_out_past_the_record(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _), door.watch(Place("/")) as notices:
        await door.send(ask(PERSON))
        await door.send(ask(PERSON))
        await door.send(Noted(Question(PERSON), 1, 1, (), Conclusion("which"), True))
        await erase(door)
        # What waited to be heard held her words.
        assert isinstance(await anext(notices), Forgotten)
        assert (await door.send(ask(PERSON))).sent == "now"
        await door.send(Noted(Question(UNTOUCHED), 1))
        while not isinstance(heard := await anext(notices), Asked):
            pass
        assert heard.question == Question(UNTOUCHED)


async def test_words_that_are_none_or_too_many_are_refused(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        for words in ("", " \n", "x" * 20_000):
            for message in (Preview(words), Erase(words)):
                with pytest.raises(Invalid):
                    await door.send(message)


# -- guards off: the search must see what is there ---------------------------------------------------------------


async def test_with_secure_delete_off_the_words_are_found_in_the_file_and_nothing_is_called_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA secure_delete = 0").fetchall()

    monkeypatch.setattr(file, "stand_guard", careless)
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask(LONG))
        receipt = await erase(door)
        assert len(receipt.texts) == 1
        assert not receipt.done
        (store,) = [one for one in receipt.searched if one.file.endswith("a.db")]
        assert store.whole > 0
    assert in_files(tmp_path, json.dumps(PERSON, ensure_ascii=False)[1:-1].encode()) != []


async def test_without_a_checkpoint_the_words_are_found_in_the_log(tmp_path: Path) -> None:
    """A stranger who reads keeps the log from being folded: the receipt is not done, and the next one is."""
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask(PERSON))
        with stranger(path) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM text").fetchall()
            receipt = await erase(door)
            assert len(receipt.texts) == 1
            assert not receipt.done
            assert [one.whole for one in receipt.searched if one.file.endswith("-wal")] != [0]
        assert (await erase(door)).done


async def test_a_search_that_is_not_ended_is_not_called_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "SECONDS_MAX", 0.0)
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(ask(PERSON))
        receipt = await erase(door)
    assert len(receipt.texts) == 1
    assert not receipt.done
    assert {one.fault for one in receipt.searched} == {"the search was not ended"}


async def test_a_piece_of_the_words_at_a_pages_edge_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with echoing(path) as (door, _, _):
        await door.send(ask())
        left = path.with_name("a.db.part")
        left.write_bytes(b"\0" * 4096 + RAW[-25:] + b"\0" * 4096 + RAW[:20])
        receipt = await erase(door)
        assert [(one.whole, one.pieces) for one in receipt.searched if one.file == str(left)] == [(0, 1)]
        assert not receipt.done
        left.unlink()
        assert (await erase(door)).done
