"""The owner at a terminal: `askonce` speaks to the server that has the store, and opens it itself where none runs."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

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
    assert (diff.code, same.code, missing.code, gone.code) == (0, 0, 1, 1)
    assert f"{call}:1" in diff.text
    assert "q  No  0.01        No  0.03" in diff.text
    assert '-      "noul": 0.01\n  +      "noul": 0.03' in diff.text
    assert same.json["response"] == {"same_bytes": True, "diff": []}
    assert "Answer 4 is not on record" in missing.err
    assert "withdrawn on 1 January 1970" in gone.err
    assert "asked by mistake" in gone.err
    assert [line["standing"] for line in rows.lines] == ["kept", "withdrawn", "kept"]
    assert rows.lines[1]["why"] == "asked by mistake"
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
        assert await ask("one") == (5, "The model's server refused it.\n")
        sent = len(model.got)

        async def hang_up(_: Any, writer: asyncio.StreamWriter) -> None:
            writer.close()

        model.behave = hang_up
        assert (await ask("two"))[0] == 4
        unsure = await ask("two", "--fresh")
        assert (unsure[0], "may have been paid for" in unsure[1]) == (4, True)
        assert len(model.got) == sent + 1
        model.behave, model.status, model.headers = None, 429, [("Retry-After", "600")]
        assert (await ask("three"))[0] == 5
        cooling = await ask("four", "--json")
        assert cooling[0] == 3
        assert json.loads(cooling[1])["error"].keys() == {"code", "text", "until"}


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
