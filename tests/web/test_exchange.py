"""`askonce export` and `import` as their owner runs them, and what other programs' own packages wrote.

tests/data/exchange was made by decision-gateway 0.0.1 (three calls through its gateway to its own FakeTransport, one of
them asked twice) and by jevkit-core 0.2.0 (write_records, append_record), each with its clock set.
"""

import errno
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from archive.errors import Invalid
from archive.exchange import line_in, taken
from archive.when import iso, parse
from tests.commands import Owner
from tests.fakes import answer, body, upstream
from tests.pages import address
from tests.process import process
from tests.stored import assert_closed_cleanly, rows
from web.commands import exchange, foreign

DATA = Path(__file__).parents[1] / "data" / "exchange"
URL = "https://api.typesafe.ai/v1/systemone"
NOW = parse("2025-03-10T00:00:00Z")


async def _asked(owner: Owner, *states: str) -> None:
    for state in states:
        ran = await owner.inside("ask", "--noul", "Is it so?", "--state", state)
        assert ran.code == 0, ran.err


async def test_what_one_owner_exports_another_looks_at_and_then_takes_in(tmp_path: Path) -> None:
    one, other = Owner(tmp_path / "a.db"), Owner(tmp_path / "b.db")
    file = tmp_path / "answers.jsonl"
    await _asked(one, "First.", "Second.")
    made = await one.inside("export", str(file))
    piped = await one.inside("export")
    assert (made.code, made.text) == (0, f"2 answers in {file}\n")
    assert (piped.err, piped.out.splitlines()[1:]) == ("2 answers\n", file.read_bytes().splitlines()[1:])
    assert not (tmp_path / "answers.jsonl.part").exists()
    looked = await other.inside("import", str(file))
    nothing = await other.inside("export")
    assert (looked.code, looked.text) == (
        0,
        "     2  would be added\nNothing was written. The same with --yes does it.\n",
    )
    assert len(nothing.out.splitlines()) == 1
    done = await other.inside("import", str(file), "--yes")
    again = await other.inside("import", "-", "--yes", "--json", stdin=file.read_bytes())
    assert (done.code, done.text) == (0, "     2  added\n")
    assert again.json == {"new": 0, "here": 2, "others": 0, "erased": 0, "refused": 0, "done": True}
    kept = await other.inside("ask", "--noul", "Is it so?", "--state", "First.", "--kept-only", "--json")
    here, there = [(await owner.inside("versions", kept.json["calls"][0]["call"])).text for owner in (one, other)]
    assert ("imported from askonce" in here, "imported from askonce" in there) == (False, True)
    assert [call["sent"] for call in kept.json["calls"]] == ["no"]
    assert_closed_cleanly(tmp_path / "b.db")


async def test_an_export_knows_a_destination_by_every_name_people_have_for_it(tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    async with upstream() as model:
        lan = f"{model.url}/lan"
        url = f'url = "{lan}"\nprivate = true\n'
        file.write_text(f'[typesafe]\nurl = "{model.url}"\nserves = "/"\n[lan]\n{url}[idle]\nurl = "{lan}/2"\n')
        owner = Owner(tmp_path / "a.db")
        async with process(owner.store, ASKONCE_DESTINATIONS=str(file)) as here:
            await here.ask()
            for path in ("/v1/things?v=1", "/q"):
                await here.send("POST", f"/to/lan{path}", b'{"a":1}', Content_Type="application/json")

            async def count(destination: str) -> int:
                ran = await owner.inside("export", "--destination", destination)
                assert ran.code == 0, ran.err
                return len(ran.out.splitlines()) - 1

            for name, answers in (
                ("lan", 2), ("typesafe", 3), (lan, 2), (lan + "/", 2), (f"{lan}/v1/things", 1),
                (f"{lan}/q", 1), (f"{lan}/v1/things?v=1", 1), (model.url, 3), ("systemone", 1), ("json", 2),
                ("idle", 0), (f"{lan}/2", 0),
            ):  # fmt: skip
                assert await count(name) == answers, name
    for name in ("nope", f"{lan}/v1/thin", "chat"):
        ran = await owner.inside("export", str(tmp_path / "x.jsonl"), "--destination", name,
                                 ASKONCE_DESTINATIONS=str(file))  # fmt: skip
        assert (ran.code, ran.out) == (2, b"")
        assert f"typesafe ({model.url}), lan ({lan})" in ran.err
        assert f"On record: json, systemone, {lan}/q, " in ran.err
        assert not (tmp_path / "x.jsonl").exists() and not (tmp_path / "x.jsonl.part").exists()


async def test_the_built_in_model_and_the_settings_own_are_destinations_too(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    await _asked(owner, "First.")
    ran = await owner.inside("export", "--destination", "built-in")
    assert ran.err == "1 answer\n"
    async with upstream() as model:
        owner.model_url = model.url
        await owner.inside("ask", "--body", "-", stdin=body())
    assert (await owner.inside("export", "--destination", "ASKONCE_MODEL_URL")).err == "1 answer\n"
    assert "On record: " in (await owner.inside("export", "--destination", "built-in")).err


@pytest.mark.parametrize("more", [(), ("--from", "jevkit", "--url", URL)], ids=["askonce", "jevkit"])
async def test_an_import_of_nothing_at_all_is_an_error(tmp_path: Path, more: tuple[str, ...]) -> None:
    owner = Owner(tmp_path / "a.db")
    for stdin in (b"", b"\n \n"):
        ran = await owner.inside("import", "-", *more, stdin=stdin)
        assert (ran.code, ran.out) == (2, b"")
        assert ran.err.startswith("Nothing came")


async def test_an_export_to_a_full_disk_ends_with_6_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner(tmp_path / "a.db")
    await _asked(owner, "First.")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(exchange, "os", SimpleNamespace(fsync=full))
    ran = await owner.inside("export", str(tmp_path / "x.jsonl"))
    assert (ran.code, ran.err) == (
        6,
        f"{tmp_path / 'x.jsonl'} could not be written: No space left on device.\n",
    )
    assert not (tmp_path / "x.jsonl").exists() and not (tmp_path / "x.jsonl.part").exists()


async def test_what_a_server_exports_another_serves_byte_for_byte_and_sends_nothing(tmp_path: Path) -> None:
    async with upstream() as model:
        odd = b'{"state":"\xff\0","model":"m","questions":{"q":{"type":"noul"}}}'
        said = b'{"model":"jev","answers":{"q":{"type":"noul","noul":0.5}},"x":1e400,"x":"\\ud800"}'
        model.reply = said
        model.headers = [("content-type", "application/json"), ("x-typesafe-request-id", "req_\xff")]
        one, other = Owner(tmp_path / "a.db"), Owner(tmp_path / "b.db")
        async with process(one.store, model.url) as here:
            first = await here.ask(odd)
            model.reply = answer()
            await here.ask(body("\u2028"), Archive_Pass="p")
            exported = await one.run("export")
            one_pass = await one.inside("export", "--pass", "p")
            done = await one.inside("import", "-", "--yes", stdin=exported.out)
        async with process(other.store, model.url) as there:
            taken_in = await other.inside("import", "-", "--yes", "--json", stdin=exported.out)
            again = await there.ask(odd)
            after = await other.inside("export")
            shown = await other.inside("show", again.headers["Archive-Call"])
    assert (done.code, done.text) == (0, "     0  added\n     2  here already\n")
    assert len(one_pass.out.splitlines()) == 2
    assert taken_in.json["new"] == 2
    assert (again.status, again.body, again.headers["Archive-Sent"]) == (200, said, "no")
    assert again.headers["x-typesafe-request-id"] == first.headers["x-typesafe-request-id"]
    assert len(model.got) == 2
    assert f"from askonce {json.loads(exported.out.splitlines()[0])['record']}" in shown.text
    lines = [[json.loads(line) for line in ran.out.splitlines()[1:]] for ran in (exported, after)]
    assert [one["reply"] for one in lines[0]] == [one["reply"] for one in lines[1]]


async def test_a_page_says_which_answers_were_imported(tmp_path: Path) -> None:
    one, other = Owner(tmp_path / "a.db"), Owner(tmp_path / "b.db")
    words = "Is a straw one hole?"
    async with process(one.store) as here:
        await one.inside("ask", words)
        exported = await one.inside("export")
        at_home = await here.send("GET", address(words))
    await other.inside("import", "-", "--yes", stdin=exported.out)
    async with process(other.store) as there:
        page = await there.send("GET", address(words))
    assert b"Imported from" not in at_home.body
    assert page.body.count(b"Imported from <bdi>askonce ") == 2


async def test_nothing_is_written_over_and_the_store_is_never_opened_as_a_file(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    await _asked(owner, "First.")
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"mine")
    over = await owner.inside("export", str(file))
    (tmp_path / "b.jsonl.part").write_bytes(b"mine too")
    part = await owner.inside("export", str(tmp_path / "b.jsonl"))
    nowhere = await owner.inside("export", str(tmp_path / "no" / "a.jsonl"))
    link = tmp_path / "link.jsonl"
    link.symlink_to(owner.store)
    before = owner.store.read_bytes()
    own = [await owner.inside("export", f"{owner.store}{end}") for end in ("-wal", "-journal", ".erased", ".before-x")]
    stores = [
        await owner.inside("import", str(path), *more)
        for path in (owner.store, link, tmp_path / "a.db.lock")
        for more in ([], ["--from", "jevkit", "--url", URL], ["--from", "decision-gateway"])
    ]
    assert (over.code, part.code, nowhere.code) == (2, 2, 2)
    assert "never writes over" in over.err
    assert (file.read_bytes(), (tmp_path / "b.jsonl.part").read_bytes()) == (b"mine", b"mine too")
    assert {(ran.code, ran.err) for ran in stores} == {(2, "This is the store itself.\n")}
    assert {(ran.code, "needs for itself" in ran.err) for ran in own} == {(2, True)}
    os.link(owner.store, tmp_path / "hard.jsonl")
    assert "hard link" in (await owner.inside("import", str(tmp_path / "hard.jsonl"))).err
    assert owner.store.read_bytes() == before


async def test_what_cannot_be_read_is_refused_with_its_line_and_the_rest_gets_in(tmp_path: Path) -> None:
    one, other = Owner(tmp_path / "a.db"), Owner(tmp_path / "b.db")
    await _asked(one, "First.", "Second.")
    first, *answers = (await one.inside("export")).out.splitlines()
    bad = json.loads(answers[0])
    bad["reply"] |= {"status": 500}
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\n".join([first, answers[0][:-5], b"", json.dumps(bad).encode(), answers[1], answers[0][:40]]))
    looked = await other.inside("import", str(file))
    done = await other.inside("import", str(file), "--yes", "--json")
    assert looked.code == done.code == 2
    said = [line.partition(" is refused: ") for line in looked.err.splitlines()]
    assert [where for where, _, _ in said] == ["line 2", "line 4", "line 6"]
    assert "not whole" in said[0][2]
    assert said[1][2].startswith("its reply (status 500) is no answer: ")
    assert [(one["where"], one["verdict"]) for one in done.lines[:-1]] == [
        ("line 2", "refused"),
        ("line 4", "refused"),
        ("line 6", "refused"),
    ]
    assert done.lines[-1] == {"new": 1, "here": 0, "others": 0, "erased": 0, "refused": 3, "done": True}
    assert rows(other.store, "SELECT count(*) FROM answer") == [(1,)]


@pytest.mark.parametrize(
    ("content", "more", "why"),
    [
        (b"", [], "Nothing came"),
        (b"hello\n", [], "no export of Askonce"),
        (b'{"v":1}\n', [], "no export of Askonce"),
        (b'{"askonce_export":2}\n', [], "another format"),
        (b"x", ["--from", "jevkit"], "--url"),
        (b"x", ["--url", URL], "--url"),
        (b"SQLite format 3\0", ["--from", "decision-gateway"], "no store of decision-gateway"),
        (b"hello", ["--from", "decision-gateway"], "no store of decision-gateway"),
    ],
)
async def test_a_file_that_is_something_else_is_said_to_be(
    tmp_path: Path, content: bytes, more: list[str], why: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    ran = await Owner(tmp_path / "a.db").inside("import", str(file), *more)
    assert ran.code == 2
    assert why in ran.err


async def test_a_store_of_decision_gateway_is_taken_in(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    file = tmp_path / "gateway.sqlite"
    shutil.copyfile(DATA / "gateway.sqlite", file)
    done = await owner.inside("import", str(file), "--from", "decision-gateway", "--yes")
    again = await owner.inside("import", str(file), "--from", "decision-gateway", "--yes")
    with closing(sqlite3.connect(file)) as db:
        stored = db.execute("SELECT endpoint, request, response, asked_at FROM observations ORDER BY rowid").fetchall()
    found = [json.loads(line) for line in (await owner.inside("export")).out.splitlines()[1:]]
    assert (done.code, done.text) == (0, "     3  added\n")
    assert again.text == "     0  added\n     3  here already\n"
    assert [
        (one["request"]["destination"]["url"], one["request"]["body"], one["reply"]["body"], parse(one["kept_at"]))
        for one in found
    ] == [(endpoint, asked, said, parse(at)) for endpoint, asked, said, at in stored]
    assert [one["n"] for one in found] == [1, 1, 2], "what was asked there twice is two answers"
    assert {one["cost_made"] for one in found} == {0.001}
    assert {one["imported_from"] for one in found} == {f"decision-gateway gateway.sqlite; {foreign.RESORTED}"}, (
        "each says where it comes from, and that its bytes are not the ones that were sent"
    )


async def test_an_observation_that_is_none_is_refused_and_loses_nothing_else(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    file = tmp_path / "gateway.sqlite"
    shutil.copyfile(DATA / "gateway.sqlite", file)
    with closing(sqlite3.connect(file)) as db:
        db.execute("UPDATE observations SET response = '{\"error\":1}' WHERE rowid = 1")
        db.execute("UPDATE observations SET asked_at = 'lately' WHERE rowid = 2")
        db.execute("INSERT INTO observations VALUES ('odd', '', CAST(x'ff' AS TEXT), x'00', '', '', '', '', '')")
        db.commit()
    done = await owner.inside("import", str(file), "--from", "decision-gateway", "--yes", "--json")
    assert done.code == 2
    assert [one["why"].partition(":")[0] for one in done.lines[:-1]] == [
        "its moment is none",
        "its moment is none",
        "its reply (status 200) is no answer",
    ]
    assert done.lines[1]["where"] == "observation odd"
    assert done.lines[-1]["new"] == 1


async def test_records_of_jevkit_are_taken_in_and_found_by_the_sdks_own_bytes(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    words = ("import", str(DATA / "golden.jevl"), "--from", "jevkit", "--url", URL, "--yes")
    done, again = await owner.inside(*words), await owner.inside(*words)
    found = [json.loads(line) for line in (await owner.inside("export")).out.splitlines()[1:]]
    assert (done.text, again.text) == ("     3  added\n", "     0  added\n     3  here already\n")
    assert [one["n"] for one in found] == [1, 1, 2]
    assert [one["kept_at"] for one in found][::2] == ["2025-03-01T10:00:00.000000Z", "2025-03-02T10:00:00.000000Z"]
    assert found[1]["request"]["body"] == (
        '{"state":{"n":1.0,"big":12345678901234567890,"s":"Straße"},"model":"jev-latest","questions":{"team":{"type":'
        '"choice","instructions":"Which team?","criteria":{"zeta":"last first","alpha":null}}}}'
    ), "as TypeSafe's SDK puts it together: options in their order, 1.0 as 1.0"
    assert found[0]["reply"]["body"] == (
        '{"model":"jev-latest","answers":{"damaged":{"type":"noul","noul":0.83}},"usage":{"input_tokens":131,'
        '"output_tokens":20}}'
    )
    assert {one["imported_from"] for one in found} == {f"jevkit golden.jevl; {foreign.REBUILT}"}


GOLDEN = (DATA / "golden.jevl").read_bytes().splitlines()[0]


def _record(**more: Any) -> bytes:
    return json.dumps(json.loads(GOLDEN) | more).encode()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (_record(v=2), "format 2"),
        (_record(v="1"), r"v"),
        (_record(ts="yesterday"), "moment"),
        (_record(ts="2025-03-01T10:00:00"), "moment"),
        (_record(model=None), "model"),
        (_record(request=[]), "request"),
        (_record(request={"state": 1}), "questions"),
        (_record(answers={}), "no answer"),
        (_record(answers={"damaged": {"type": "noul", "noul": 7}}), "no answer"),
        (GOLDEN[:-1], "no record"),
        (b"[]", "no record"),
        (b"[" * 100_000, "no record"),
        (GOLDEN.replace(b"late", b"\xff"), "UTF-8"),
    ],
)
def test_a_record_of_jevkit_that_is_none_is_refused(line: bytes, why: str) -> None:
    taken(line_in(foreign.jevkit_line(GOLDEN, URL)), NOW)
    with pytest.raises(Invalid, match=why):
        taken(line_in(foreign.jevkit_line(line, URL)), NOW)


def test_values_of_a_record_of_jevkit_are_taken_as_they_stand() -> None:
    odd = b'{"v": 1, "ts": "2025-03-01T10:00:00Z", "model": "m", "request": {"questions": {"q": {"type": "noul"}}, "state": {"a" : 1e400, "a": -0.0, "b": "x \\u0000 \\/"}}, "answers": {"q": {"type": "noul", "noul": 1e-1, "x": 1e400}}}'  # noqa: E501
    one = taken(line_in(foreign.jevkit_line(odd, URL)), NOW)
    assert one.request.body == (
        b'{"state":{"a":1e400,"a":-0.0,"b":"x \\u0000 \\/"},"model":"m","questions":{"q":{"type":"noul"}}}'
    )
    assert one.outcome.reply is not None
    assert one.outcome.reply.body == b'{"model":"m","answers":{"q":{"type":"noul","noul":1e-1,"x":1e400}}}'
    without = foreign.jevkit_line(odd.replace(b', "state"', b', "other"'), URL)
    assert taken(line_in(without), NOW).request.body == b'{"model":"m","questions":{"q":{"type":"noul"}}}'


def test_a_line_without_end_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(foreign, "LINE_BYTES_MAX", 1_000)
    file = tmp_path / "long"
    file.write_bytes(b"a" * 5_000 + b"\n" + GOLDEN + b"\n" + b"b" * 1_500)
    with file.open("rb") as opened:
        found = list(foreign.jevkit_pieces(opened, "x;y", URL))
    assert [(one.where, bool(one.line), one.why, one.size) for one in found] == [
        ("line 1", False, "it is too long", 5_001),
        ("line 2", True, "", len(GOLDEN) + 1),
        ("line 3", False, "it is too long", 1_500),
    ]
    assert found[1].source == "jevkit x,y"


def test_moments_are_read_as_a_day_or_whole() -> None:
    moment = exchange.MomentType()
    assert iso(moment.convert("2026-11-30", None, None)) == "2026-11-30T00:00:00.000000Z"
    assert iso(moment.convert("2026-11-30T14:12:31+01:00", None, None)) == "2026-11-30T13:12:31.000000Z"


async def test_a_large_line_is_not_sent_to_a_server_that_would_not_take_it(tmp_path: Path) -> None:
    async with process(tmp_path / "a.db", ASKONCE_BODY_BYTES_MAX="20000") as here:
        owner = Owner(tmp_path / "a.db")
        first = await owner.run("export")
        line = foreign.jevkit_line(_record(usage={"x": "y" * 30_000}), URL)
        small = foreign.jevkit_line(GOLDEN, URL)
        given = b"\n".join([first.out.splitlines()[0].replace(b'""', b'"x"'), line, *[small] * 60])
        done = await owner.run("import", "-", "--yes", stdin=given, ASKONCE_BODY_BYTES_MAX="20000")
        assert here.url
    assert done.code == 2
    assert "larger than what a server takes" in done.err
    assert "1  added\n    59  here already" in done.text
