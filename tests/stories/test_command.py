"""The owner at a terminal: `askonce` speaks to the server that has the store, and opens it itself where none runs."""

import asyncio
import json
import os
import re
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.commands import SECONDS_MAX, Owner
from tests.fakes import Got, answer, body, upstream
from tests.pages import Jev, address
from tests.process import ROOT, process

WORDS = "Is a straw one hole?"


async def test_the_same_question_is_asked_once_with_a_server_and_without_one(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        jev = Jev()

        async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
            model.reply = jev.reply(got.body)
            writer.write(model.response())
            await writer.drain()

        model.behave = behave
        owner = Owner(store, model.url)
        alone = await owner.run("ask", WORDS)
        async with process(store, model.url) as here:
            assert here.url.encode() not in alone.out
            page = await here.send("GET", address(WORDS))
            through = await owner.run("ask", WORDS, "--json")
            # The server's settings count, whatever the terminal's are.
            elsewhere = await Owner(store).run("ask", WORDS, "--json")
            fresh = await owner.run("ask", WORDS, "--fresh", "--json")
            doctor = await owner.run("doctor", "--json")
        listed = await owner.run("feed", "--json")
    assert alone.code == through.code == fresh.code == listed.code == 0, alone.err
    assert "Probably yes  0.83" in alone.text
    assert alone.text.count("sent now") == 2
    assert "cost now: $0.00012, when made: $0.00012" in alone.text
    assert b"Probably yes" in page.body
    assert [call["sent"] for call in through.json["calls"]] == ["no", "no"]
    assert through.json["cost_now"] == 0
    assert elsewhere.json["answer"] == through.json["answer"]
    assert [(call["sent"], call["n"]) for call in fresh.json["calls"]] == [("no", 1), ("now", 2)]
    assert listed.json["times"] == 4
    assert len(model.got) == 3
    assert doctor.json["well"], doctor.json
    assert any("reached in" in found["text"] for found in doctor.json["findings"])
    assert [one["url"] for one in doctor.json["destinations"]] == [model.url]


async def test_a_request_of_ones_own_goes_up_byte_for_byte_and_comes_back_so(tmp_path: Path) -> None:
    odd = b'{"state":"\xe2\x80\xa8","state":1e400,  "model":"m","questions":{"q":{"type":"noul"}}}'
    said = b'{"model":"jev","answers":{"q":{"type":"noul","noul":0.5}},"x":"\\u0000","x":1e400}\r\n'
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        model.reply = said
        (tmp_path / "asked.json").write_bytes(odd)
        first = await owner.run("ask", "--body", str(tmp_path / "asked.json"), "--json")
        again = await owner.inside("ask", "--body", "-", stdin=odd)
        call = first.json["call"]
        request, response = [await owner.run("show", call, "--raw", what) for what in ("request", "response")]
        over_http = await here.ask(odd)
        shown = await owner.inside("show", call, "--json")
    assert [got.body for got in model.got] == [odd]
    assert (request.out, response.out, over_http.body) == (odd, said, said)
    assert first.json["sent"] == "now"
    assert "from the record" in again.text
    assert "Torn  0.50" in again.text
    assert shown.json["answer"]["reply"] == said.decode(), "what JSON cannot say again is shown as text"


async def test_versions_and_their_differences_are_shown(tmp_path: Path) -> None:
    async with upstream() as model:
        async with process(tmp_path / "a.db", model.url) as here:
            owner = Owner(tmp_path / "a.db")
            model.number_answers()
            call = (await here.ask()).headers["Archive-Call"]
            await here.ask(Archive_Answer="fresh")
            await here.ask(Archive_Answer="fresh")
            diff = await owner.inside("diff", f"{call}:1", f"{call}:3")
            same = await owner.inside("diff", call, f"{call}:3", "--json")
            missing = await owner.inside("show", f"{call}:4")
        with closing(sqlite3.connect(tmp_path / "a.db")) as db:
            db.execute(
                "INSERT INTO text (id, length, bytes, seal, salt, chain)"
                " VALUES (900, 16, CAST('asked by mistake' AS BLOB), x'', x'', x'')"
            )
            db.execute("INSERT INTO withdrawal (id, answer, withdrawn, why, at, chain) VALUES (1, 2, 1, 900, 7, x'')")
            db.commit()
        words, rows = await owner.inside("versions", call), await owner.inside("versions", call, "--json")
        gone = await owner.inside("show", f"{call}:2")
        shown = await owner.inside("show", call)
        told = await owner.inside("show", f"{call}:2", "--json")
    assert (diff.code, same.code, missing.code, gone.code) == (0, 0, 1, 1)
    assert json.loads(told.err)["error"]["code"] == "withdrawn"
    assert "\\u001b" not in same.text and "\x1b" not in same.text + diff.text
    assert same.json["answers"] == [{"question": "q", "one": "No  0.03", "other": "No  0.03"}]
    assert f"{call}:1" in diff.text
    assert "q  No  0.01        No  0.03" in diff.text
    assert '-      "noul": 0.01\n  +      "noul": 0.03' in diff.text
    assert same.json["response"] == {"same_bytes": True, "diff": []}
    assert "Answer 4 is not on record" in missing.err
    assert "withdrawn on 1 January 1970" in gone.err
    assert "asked by mistake" in gone.err
    assert [line["standing"] for line in rows.lines] == ["kept", "withdrawn", "kept"]
    assert [(line["call"], line["why"]) for line in rows.lines] == [
        (call, None), (call, "asked by mistake"), (call, None),
    ]  # fmt: skip
    first, second, _ = rows.lines
    assert first.keys() == second.keys()
    assert (first["kept_at"] is None, second["kept_at"], second["answers"]) == (False, None, None)
    assert "withdrawn" in words.text
    assert "> 3" in shown.text
    assert len(model.got) == 3


async def test_each_way_to_get_no_answer_has_its_exit_code(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url):
        owner = Owner(tmp_path / "a.db")

        async def ask(words: str, *more: str) -> tuple[int, str]:
            ran = await owner.inside("ask", "--body", "-", *more, stdin=body(words))
            assert ran.out == b""
            return ran.code, ran.err

        assert await ask("one", "--kept-only") == (
            1,
            "This is not on record, and only a kept answer was asked for. Nothing was sent.\n",
        )
        assert (await ask("one", "--version", "2"))[0] == 1
        assert (await ask("one", "--fresh", "--kept-only"))[0] == 2
        model.status, model.reply = 400, b'{"detail":"no"}'
        assert await ask("one") == (5, 'The model\'s server refused it.\n  400  {"detail":"no"}\n')
        refused = json.loads((await ask("one", "--json"))[1])["error"]
        assert (refused["status"], refused["said"]) == (400, '{"detail":"no"}')
        model.reply = b"<p>\x1b[31mno\xff" + b"x" * 5_000
        said = (await ask("one"))[1].splitlines()[1]
        assert said.startswith("  400  <p>[31mno\ufffdxxx") and len(said) < 320
        sent = len(model.got)

        async def hang_up(_: Any, writer: asyncio.StreamWriter) -> None:
            writer.close()

        model.behave = hang_up
        hint = " --fresh --sure sends it again, and may pay again.\n"
        waited, later, unsure = await ask("two"), await ask("two"), await ask("two", "--fresh")
        assert [ran[0] for ran in (waited, later, unsure)] == [4, 4, 4]
        assert waited[1].endswith("by itself." + hint)
        assert later[1].endswith("by itself. Nothing was sent now." + hint)
        assert unsure[1].endswith("Nothing was sent now: --fresh alone never pays twice." + hint)
        assert len(model.got) == sent + 1
        model.behave, model.status, model.headers = None, 429, [("Retry-After", "600")]
        model.reply = b"slow down"
        first = await ask("three")
        assert (first[0], "  429  slow down\n  It asks to be left alone until " in first[1]) == (3, True)
        cooling = await ask("four", "--json")
        assert cooling[0] == 3
        assert json.loads(cooling[1])["error"].keys() == {"code", "text", "until"}
        assert len(model.got) == sent + 2


async def test_show_says_why_a_call_has_no_answer(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        model.number_answers()
        call = (await here.ask()).headers["Archive-Call"]
        model.status, model.reply, model.behave = 422, b'{"detail":"too long"}', None
        await here.ask(body("other"))
        await owner.inside("withdraw", f"{call}:1", "--why", "a mistake")
        one = [await owner.inside("show", call, *more) for more in ((), ("--json",), ("--raw", "response"))]
        compared = await owner.inside("diff", call, call)
        model.status = 200
        model.number_answers()
        await here.ask(Archive_Answer="fresh")
        await owner.inside("erase", '"type":"noul","noul":0.0', "--yes", "--also-shared")
        both, erased = await owner.inside("show", call), await owner.inside("show", call, "--raw", "response")
        failed, told = await owner.inside("show", "@2"), await owner.inside("show", "@2", "--json")
    assert [ran.code for ran in (*one, compared, failed)] == [1, 1, 1, 1, 0]
    head, *_ = one[0].text.splitlines()
    assert re.fullmatch(rf"{call}  no answer: withdrawn on .* UTC: a mistake", head)
    assert [(line["standing"], line["why"]) for line in one[1].json["versions"]] == [("withdrawn", "a mistake")]
    for ran in (one[2], compared):
        assert "Answer 1 was withdrawn on " in ran.err and ran.err.endswith("a mistake\n")
    assert (both.code, erased.code) == (1, 1)
    assert both.text.splitlines()[0] == f"{call}  no answer: both were erased"
    assert "The words of answer 2 were erased on" in erased.err
    assert "Its status was 422." in failed.text
    assert re.search(r'said +\{"detail":"too long"\}', failed.text)
    assert told.json["said"] == '{"detail":"too long"}'


async def test_all_that_was_handed_out_is_listed_with_which_was_which(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        empty = await owner.inside("deliveries")
        secret = (await owner.inside("token", "new", "ann", "--json")).json["secret"]
        call = (await here.ask(X_API_Key=secret)).headers["Archive-Call"]
        for _ in range(9):
            await here.ask(X_API_Key=secret)
        await owner.inside("ask", "--body", "-", stdin=body())
        listed, told = await owner.inside("deliveries"), await owner.inside("deliveries", "--json")
    alone = await owner.inside("deliveries")
    assert len(model.got) == 1
    assert (empty.code, empty.text) == (0, "Nothing was handed out yet.\n")
    assert (alone.code, "only a running one knows" in alone.err) == (6, True)
    *lines, counted = listed.text.splitlines()
    assert [re.split(" {2,}", line)[1:] for line in lines] == [
        [f"{call}:1", "from the record"],
        *[[f"{call}:1", "from the record", "ann"]] * 9,
        [f"{call}:1", "sent now", "ann"],
    ]
    assert counted == "11 answers handed out: 1 sent now, 10 from the record"
    assert (told.json["now"], told.json["shared"], told.json["no"]) == (1, 0, 10)
    assert [one["token"] for one in told.json["deliveries"]] == [None, *["ann"] * 10]
    assert {(one["call"], one["n"]) for one in told.json["deliveries"]} == {(call, 1)}


@pytest.mark.parametrize(
    "words", [["export"], ["facts", "--json"], ["show", "@1"], ["show", "--help"], ["--help"]], ids=" ".join
)
async def test_output_that_cannot_be_written_ends_with_6_in_one_line_or_in_silence(
    tmp_path: Path, words: list[str]
) -> None:
    owner = Owner(tmp_path / "a.db")
    await owner.inside("ask", "--noul", "Is it so?", "--state", "So.")
    with os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb") as full:
        code, err = await _written_to(owner, full, words)
    said = "The output could not be written: No space left on device."
    json_said = json.dumps({"error": {"code": "internal", "text": said}})
    assert (code, err) == (6, f"{json_said if '--json' in words else said}\n")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        assert await _written_to(owner, closed, words) == (6, "")


async def _written_to(owner: Owner, out: BinaryIO, words: list[str]) -> tuple[int, str]:
    env = {"PATH": os.environ["PATH"], "ASKONCE_STORE": str(owner.store)}
    command = [sys.executable, "-m", "web.cli", *words]
    running = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdout=out, stderr=PIPE)
    async with asyncio.timeout(SECONDS_MAX):
        _, err = await running.communicate()
    return await running.wait(), err.decode()


async def test_one_command_at_a_time_may_open_a_store_that_no_server_has(tmp_path: Path) -> None:
    async with upstream() as model:
        model.gate = asyncio.Event()
        owner = Owner(tmp_path / "a.db", model.url)
        first = await owner.start("ask", "--noul", "Ok?", "--state", "Is it?")
        await model.arrived.acquire()
        second = await owner.run("feed")
        model.gate.set()
        await first.communicate()
    assert second.code == 6
    assert f"in use by process {first.pid}" in second.err
    assert second.err.endswith("Several commands at once need a running server.\n")
    assert len(model.got) == 1


async def test_who_presses_ctrl_c_stops_waiting_and_not_the_call(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        model.gate = asyncio.Event()
        owner = Owner(tmp_path / "a.db")
        waiting = await owner.start("ask", "--body", "-")
        assert waiting.stdin is not None
        waiting.stdin.write(body())
        waiting.stdin.close()
        await model.arrived.acquire()
        waiting.send_signal(signal.SIGINT)
        async with asyncio.timeout(SECONDS_MAX):
            _, err = await waiting.communicate()
        model.gate.set()
        again = await here.ask()
    assert waiting.returncode == 130
    assert b"goes on at the server" in err
    assert b"Traceback" not in err
    assert again.body == answer()
    assert len(model.got) == 1


async def test_watching_prints_a_line_for_what_happens_until_ctrl_c(tmp_path: Path) -> None:
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        owner = Owner(tmp_path / "a.db")
        watching = await owner.start("watch")
        assert watching.stdout is not None
        assert watching.stderr is not None
        async with asyncio.timeout(SECONDS_MAX):
            assert b"Watching" in await watching.stderr.readline()
            call = (await here.ask()).headers["Archive-Call"]
            lines = [(await watching.stdout.readline()).decode()[10:] for _ in range(2)]
            watching.send_signal(signal.SIGINT)
            rest, err = await watching.communicate()
    assert watching.returncode == 0, err
    assert lines == [f"sent      {call}\n", f"answered  {call}:1\n"]
    assert (rest, err) == (b"", b"")


async def test_a_server_that_is_gone_takes_its_watchers_with_it_and_says_so(tmp_path: Path) -> None:
    async with process(tmp_path / "a.db") as here:
        watching = await Owner(tmp_path / "a.db").start("watch")
        assert watching.stderr is not None
        async with asyncio.timeout(SECONDS_MAX):
            await watching.stderr.readline()
            assert await here.terminate() == 0
            _, err = await watching.communicate()
    assert watching.returncode == 6
    assert b"server" in err


async def test_the_lock_file_is_for_its_owner_alone_and_its_secret_is_new_at_each_start(tmp_path: Path) -> None:
    lock = tmp_path / "a.db.lock"
    lock.touch(0o644)
    secrets: list[str] = []
    for _ in range(2):
        async with process(tmp_path / "a.db") as here:
            assert lock.stat().st_mode & 0o777 == 0o600
            said = json.loads(lock.read_bytes())
            assert said == {"pid": here.pid, "host": "127.0.0.1", "port": here.port, "secret": said["secret"]}
            assert len(said["secret"]) >= 40
            secrets.append(said["secret"])
            await here.send("GET", "/robots.txt")  # by then it listens to signals
            assert await here.terminate() == 0
            assert said["secret"] not in here.output()
    assert secrets[0] != secrets[1]
    assert lock.read_bytes() == b""


async def test_a_terminal_gets_colours_unless_it_is_told_not_to(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    plain = await owner.run("ask", "--noul", "Is it so?", "--state", "It is so.")
    assert "\x1b" not in plain.text
    seen: dict[str, bytes] = {}
    for name, env in (("colours", {}), ("none", {"NO_COLOR": "1"})):
        reading, writing = os.openpty()
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "web.cli",
            "show",
            _call(plain.text),
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "ASKONCE_STORE": str(tmp_path / "a.db"), "TERM": "xterm", **env},
            stdin=writing,
            stdout=writing,
            stderr=writing,
        )
        os.close(writing)
        found = b""
        while piece := await asyncio.to_thread(_read, reading):
            found += piece
        os.close(reading)
        assert await running.wait() == 0, found
        seen[name] = found
    assert b"\x1b[1m" in seen["colours"]
    assert b"\x1b" not in seen["none"]


def _call(text: str) -> str:
    """The one call_id:n a text names."""
    return next(word for word in text.split() if len(word) > 13 and word[12] == ":")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a terminal says that all have left
        return b""
