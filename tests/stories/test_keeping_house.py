"""The owner keeps house at a terminal: what was asked is counted, the record proved, copied, put back and mended."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.actors import crashed, killed_with_a_full_hand
from tests.commands import Owner
from tests.fakes import Got, answer, body, reply, upstream
from tests.process import process
from tests.stored import answers, assert_sound, rows

RULE = "found: q.noul >= 0.6; nothing: q.noul <= 0.4; else undecided"

INPUTS = json.dumps({"pair": "a pair of two things", "short": "tea", "": "words that stand nowhere"})


def about(pass_: str, name: str, **more: str) -> dict[str, str]:
    """The headers that say what a call is about."""
    return {"Archive_Pass": pass_, "Archive_About": name, "Archive_Reading": RULE, **more}


async def test_every_asking_is_counted_by_its_pass_and_found_by_what_it_was_about(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        none = await owner.inside("facts")
        for words in ("one", "two", "one"):
            await here.ask(body(words), **about("keeper.pair", f"pair:{words}"))
        model.reply = answer(0.10)
        await here.ask(body("one"), **about("keeper.pair", "pair:one", Archive_Answer="fresh"))
        model.status, model.reply = 400, b'{"detail":"no"}'
        await here.ask(body("three"), Archive_About="pair:one")
        facts, told = await owner.inside("facts", "--json"), await owner.inside("facts")
        one, words = (
            await owner.inside("facts", "--about", "pair:one", "--json"),
            await owner.inside("facts", "--about", "pair:one"),
        )
        nobody = await owner.inside("facts", "--about", "pair:none")
    assert (none.code, facts.code, told.code, one.code, words.code, nobody.code) == (0, 0, 0, 0, 0, 1)
    assert "No asking on record says what it is about" in none.text
    nameless, pair = facts.json["passes"]
    assert (nameless["pass"], nameless["failed"], nameless["sent"]) == ("", 1, 1)
    wanted = {"askings": 4, "requests": 2, "versions": 1, "sent": 3, "not_sent": 1, "answered": 4, "stored_whole": 0}
    assert {name: pair[name] for name in wanted} == wanted
    assert pair["models"] == [{"asked": "jev-latest", "answered": "jev-1.13.0", "times": 4}]
    assert [(read["comes_to"], read["times"]) for read in pair["readings"]] == [("found", 3), ("nothing", 1)]
    assert 0 < pair["stored_bytes"] < pair["whole_bytes"]
    lines = told.text.splitlines()
    assert lines[:3] == [
        "Asked               askings  requests  versions  sent  not sent  stored whole",
        "  no pass                 1         1         1     1         0             0",
        "  keeper.pair             4         2         1     3         1             0",
    ]
    assert f"  keeper.pair       found         3  {RULE}" in lines
    assert "                    nothing       1" in lines
    assert [(line["judgment"], line["comes_to"], line["n"], line["state"]) for line in one.lines] == [
        (5, None, None, "failed"),
        (4, "nothing", 2, "answered"),
        (3, "found", 1, "answered"),
        (1, "found", 1, "answered"),
    ]
    assert "#4  keeper.pair  nothing  @1:2  jev-1.13.0" in words.text
    assert nobody.err == "Nothing on record was asked about pair:none.\n"
    assert len(model.got) == 4


async def test_a_judgment_number_leads_back_to_what_was_asked_and_the_answer_that_served_it(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        asked = body("a pair of two things")
        number = (await here.ask(asked, **about("keeper.pair", "pair:1-2", Archive_Inputs=INPUTS))).headers[
            "Archive-Judgment"
        ]
        model.reply = answer(0.10)
        await here.ask(asked, Archive_Answer="fresh")

        async def hang_up(_: Got, writer: asyncio.StreamWriter) -> None:
            writer.close()

        model.behave = hang_up
        lost = (await here.ask(body("lost"), **about("keeper.pair", "pair:3"))).headers["Archive-Judgment"]
        model.behave = None
        await here.ask(body("lost"), Archive_Answer="fresh")
        shown, said = await owner.inside("show", f"#{number}"), await owner.inside("show", f"#{number}", "--json")
        raw = [await owner.inside("show", f"#{number}", "--raw", what) for what in ("request", "response")]
        unknown, none = (
            await owner.inside("show", f"#{lost}"),
            await owner.inside("show", f"#{lost}", "--raw", "response"),
        )
        diff = await owner.inside("diff", f"#{number}", "@1:2")
        nothing = await owner.inside("diff", f"#{lost}", "@1:2")
    assert shown.code == 0, shown.err
    for line in (
        "  pass         keeper.pair",
        "  about        pair:1-2",
        f"  reading      {RULE}",
        "  comes to     found",
        f"  input pair   a pair of two things  at byte {asked.index(b'a pair')} of the request",
        "  input short  tea  too short to be looked for",
        "  input        words that stand nowhere  not found word for word in the request",
    ):
        assert line in shown.text.splitlines(), line
    assert "answer 1 of 2" in shown.text, "the answer that served it, not the newest"
    assert (said.json["judgment"]["comes_to"], said.json["answer"]["n"]) == ("found", 1)
    assert [ran.out for ran in raw] == [asked, answer()]
    assert (unknown.code, none.code, nothing.code) == (0, 1, 1)
    assert "came of it  unknown" in unknown.text
    assert re.search("^[0-9a-f]{12}  no answer$", unknown.text, re.MULTILINE), "a later answer served others"
    assert none.err == f"Judgment #{lost} has no answer.\n"
    assert '-      "noul": 0.83\n  +      "noul": 0.10' in diff.text


async def test_no_name_of_anybodys_begins_a_line_that_looks_like_ours(tmp_path: Path) -> None:
    said = "a\n  comes to   yes\u2028  cost  free\r\tb"
    headers = {f"Archive_{name}": quote(said) for name in ("Pass", "About")}
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        model.reply = answer().replace(b"jev-1.13.0", json.dumps(said)[1:-1].encode())
        asked = await here.ask(**headers, Archive_Inputs=quote(json.dumps({said: "the words"})))
        name = asked.headers["Archive-Call"]
        commands = (["show", "#1"], ["show", name], ["versions", name], ["facts"])
        shown = [await owner.inside(*words) for words in commands]
        shown.append(await owner.inside("facts", "--about", said))
        nothing = await owner.inside("facts", "--about", said + "x")
        why = await owner.inside("withdraw", f"{name}:1", "--why", said)
        gone = [await owner.inside("show", f"{name}:1"), await owner.inside("versions", name)]
        await here.terminate()
    assert [ran.code for ran in (*shown, nothing, why, *gone)] == [*[0] * 5, 1, 0, 1, 0]
    for ran in (*shown, nothing, *gone):
        printed = (ran.text + ran.err).partition("\nRequest")[0]
        forged = ("  comes to   yes", "  cost  free")
        assert [line for line in printed.splitlines() if line.startswith(forged)] == []
        assert not set(printed) & set("\t\r\u2028")


async def test_the_record_is_proved_while_a_server_has_it_and_a_copy_without_a_guard_is_not(tmp_path: Path) -> None:
    backup, spoilt = tmp_path / "b.db", tmp_path / "c.db"
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        await here.ask()
        live, document = await owner.inside("prove"), await owner.inside("prove", "--json")
        await owner.inside("backup", str(backup))
        in_use = await owner.inside("prove", str(tmp_path / "a.db"))
        await here.ask(body("two"))
    shutil.copy(backup, spoilt)
    with closing(sqlite3.connect(spoilt)) as db:
        db.execute("DROP TRIGGER answer_delete")
    before = sha256(backup.read_bytes()).digest()
    sound, opened = await owner.run("prove", str(backup)), await owner.run("prove", str(spoilt))
    said = await owner.inside("prove", str(spoilt), "--json")
    alone = await owner.inside("prove")
    for ran in (live, sound, alone):
        assert ran.code == 0, ran.err
        assert "✗" not in ran.text
        assert "✓ delete a row of answer                       answer is write-once" in ran.text
        assert "✓ drop a trigger                               not authorized" in ran.text
        assert "unchanged after 102 tries" in ran.text
        assert ran.text.splitlines()[-1].startswith("Proved. 99 roads are shut, 3 are open that must be, and ")
    assert document.json["proved"]
    assert sha256(backup.read_bytes()).digest() == before
    assert (opened.code, said.code, said.json["proved"], in_use.code) == (6, 6, False, 6)
    assert "✗ delete a row of answer                       it is open" in opened.text
    assert "✗ trigger answer_delete is missing" in opened.text
    assert opened.text.splitlines()[-1] == "Not proved: 2 roads are not as promised, 1 fault."
    assert [one["road"] for one in said.json["tried"] if not one["as_promised"]] == [
        "delete a row of answer",
        "delete all of answer",
    ]
    assert f"in use by process {here.pid} at port {here.port}" in in_use.err


async def test_a_backup_is_made_while_asking_goes_on_and_put_back_once_nobody_has_the_store(tmp_path: Path) -> None:
    """The drill: a sound copy, a server in the way, the old store beside, and answers that are not paid for twice."""
    store, backup = tmp_path / "a.db", tmp_path / "copies" / "b.db"
    backup.parent.mkdir()
    async with upstream() as model:
        async with process(store, model.url) as here:
            owner = Owner(store, model.url)
            await here.ask(body("before"))
            made, words = await owner.run("backup", str(backup), "--json"), await owner.inside("backup", str(backup))
            await here.ask(body("after"))
            refused = await owner.inside("restore", str(backup))
            assert refused.code == 6
            assert f"in use by process {here.pid} at port {here.port}" in refused.err
        assert (made.code, words.code, made.json["answers"]) == (0, 2, 1)
        assert "is there already" in words.err
        assert made.json["bytes"] == backup.stat().st_size
        number, link = rows(backup, "SELECT id, chain FROM answer")[0]
        assert made.json["heads"]["answer"] == f"{number}:{link.hex()}"
        restored = await owner.run("restore", str(backup), "--json")
        assert restored.code == 0, restored.err
        assert (restored.json["answers"], restored.json["spool"]) == (1, None)
        async with process(store, model.url) as here:
            assert (await here.ask(body("before"))).headers["Archive-Sent"] == "no"
            assert (await here.ask(body("after"))).headers["Archive-Sent"] == "now"
    aside = Path(restored.json["before"])
    assert rows(aside, "SELECT count(*) FROM answer") == [(2,)]
    for file in (store, aside, backup):
        assert_sound(file)


async def test_what_waited_for_the_store_before_is_named_when_a_backup_is_put_back_and_can_be_had(
    tmp_path: Path,
) -> None:
    store = await killed_with_a_full_hand(tmp_path, "waits", reply(0.25))
    owner, backup = Owner(store), crashed(store, tmp_path / "b.backup")
    put_back = await owner.inside("restore", str(backup))
    aside = next(line.split()[1] for line in put_back.text.splitlines() if line.split()[:1] == ["before"])
    said = [line.strip() for line in put_back.text.splitlines() if "askonce export" in line]
    assert said == [f"ASKONCE_STORE={aside} ASKONCE_SPOOL={aside}.spool askonce export FILE"]
    lines = tmp_path / "lines"
    ran = await owner.inside("export", str(lines), ASKONCE_STORE=aside, ASKONCE_SPOOL=f"{aside}.spool")
    assert (ran.code, answers(store)) == (0, {})
    assert (await owner.inside("import", str(lines), "--yes")).code == 0
    assert answers(store) == {b'"waits"': [answer(0.25)]}


async def test_what_is_no_backup_is_not_put_back_and_the_store_stays(tmp_path: Path) -> None:
    store, other = tmp_path / "a.db", tmp_path / "notes.txt"
    owner = Owner(store)
    await owner.inside("ask", "--noul", "Is it so?", "--state", "So.")
    other.write_text("not a database " * 100)
    before = store.read_bytes()
    for file, why in (
        (other, "cannot be read as a record"),
        (tmp_path / "none", "There is no file"),
        (store, "itself"),
    ):
        ran = await owner.inside("restore", str(file))
        assert (ran.code, why in ran.err) == (6, True), ran.err
    assert store.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["a.db", "a.db.lock", "a.db.spool", "notes.txt"]  # noqa: PTH208 - one look


async def test_doctor_mends_look_ups_that_were_spoilt_through_the_server_that_has_the_store(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        owner = Owner(store, model.url)
        for words in ("one", "two"):
            await owner.inside("ask", "--body", "-", stdin=body(words))
        with closing(sqlite3.connect(store)) as db:
            record = _insert_only(db)
            db.execute("DELETE FROM request_key")
            db.execute("UPDATE text_key SET hash = hash / 2")
            db.execute("UPDATE count SET value = 40 WHERE name = 'sent'")
            db.commit()
        async with process(store, model.url) as here:
            spoilt, proof = await owner.inside("doctor"), await owner.inside("prove")
            mended, again = (
                await owner.inside("doctor", "--rebuild"),
                await owner.inside("doctor", "--rebuild", "--json"),
            )
            for words in ("one", "two"):
                assert (await here.ask(body(words))).headers["Archive-Sent"] == "no"
            plain = await owner.inside("doctor")
        with closing(sqlite3.connect(store)) as db:
            assert _insert_only(db) == record
    assert mended.code == again.code == plain.code == 0, mended.text
    assert spoilt.code == proof.code == 6
    for said in (spoilt.text, proof.text):
        assert "2 cannot be found, and would be sent again; `askonce doctor --rebuild` mends it" in said
    assert "2 requests can be found" in mended.text
    assert "missing and" in mended.text
    assert "1 count that did not say what the record says" in mended.text
    assert "no row of them was missing or wrong" in [one["text"] for one in again.json["findings"]]
    assert "Look-ups" not in plain.text
    for line in ("nothing waits to be written", "its schema is number 1", "no call is on the wire"):
        assert line in plain.text
    assert len(model.got) == 2


def _insert_only(db: sqlite3.Connection) -> list[Any]:
    tables = ("text", "destination", "request", "dispatch", "outcome", "answer")
    return [db.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() for table in tables]  # noqa: S608 - our own
