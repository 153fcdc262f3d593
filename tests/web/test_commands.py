"""What `askonce` prints, with a store of its own and no server: every command as a stranger reads it."""

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archive.request import Destination, Request, call_id, call_id_of, named_between
from tests.commands import Owner, Ran
from tests.fakes import answer, body, upstream
from tests.stored import rows
from tests.wires import nobody
from web.commands.home import CODES, EXIT
from web.commands.output import Output, visible, wide
from web.errors import STATUS


async def test_what_was_never_there_is_not_made_by_looking(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "folder" / "a.db")
    for words in (["feed"], ["show", "3f2a9c01be44"], ["doctor"], ["watch"]):
        ran = await owner.inside(*words)
        assert (ran.code, ran.out) == (6, b"")
        assert f"There is no store at {owner.store.resolve()}" in ran.err
    assert not owner.store.parent.exists()


async def test_watching_needs_a_server(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    await owner.inside("ask", "--noul", "Is it so?", "--state", "So.")
    ran = await owner.inside("watch")
    assert (ran.code, ran.out, ran.err) == (6, b"", "No server has this store open, so there is nothing to watch.\n")


async def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    ran = await Owner(tmp_path / "a.db").inside("feed", ASKONCE_PORT="door")
    assert (ran.code, ran.err) == (6, "ASKONCE_PORT must be a whole number, not 'door'\n")


async def test_words_become_the_calls_the_page_makes_and_stand_in_the_feed(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    questions = ["Is a hot dog a sandwich?", "Is a straw one hole?", "Is water wet?"]
    for question in [*questions, questions[0]]:
        assert (await owner.inside("ask", question)).code == 0
    words = await owner.inside("ask", questions[0], "--kept-only")
    picked = await owner.inside("ask", "Which one?", "--option", "tea", "--option", "coffee")
    opened = await owner.inside("ask", "Why is the sky blue?")
    first = await owner.inside("feed", "--count", "2")
    after = first.text.split()[-1]
    second = await owner.inside("feed", "--after", after)
    most = await owner.inside("feed", "--most", "--json")
    assert "nothing was sent, when made: free" in words.text
    assert [line.split("  ")[1].strip() for line in words.text.splitlines() if ":1" in line]
    assert "tea" in picked.text
    assert "coffee" in picked.text
    assert "an open question" in opened.text
    assert [questions[n] in first.text for n in range(3)] == [True, False, True]
    assert questions[1] in second.text
    assert (await owner.inside("feed", "--after", "here")).code == 2
    assert (most.lines[0]["question"], most.lines[0]["times"]) == (questions[0], 2)
    assert (await owner.inside("ask", "Never asked?", "--kept-only")).code == 1


async def test_a_typed_question_is_put_together_on_the_line(tmp_path: Path) -> None:
    async with upstream() as model:
        owner = Owner(tmp_path / "a.db", model.url)
        blue = b'"choice","choice":"blue","probabilities":{"blue":0.7,"red":0.3}'
        high = b'"score","score":0.8,"confidence":0.4,"probabilities":{"0":0.2,"1":0.8}'
        for kind, more, said in (
            ("choice", ["--option", "red=like blood", "--option", "blue"], blue),
            ("score", ["--level", "low", "--level", "high"], high),
        ):
            model.reply = b'{"model":"m","answers":{"answer":{"type":%s}}}' % said
            ran = await owner.inside("ask", f"--{kind}", "Which?", "--state", '{"a": 1}', *more)
            assert ran.code == 0, ran.err
            assert ("blue  0.70" if kind == "choice" else "high  0.80") in ran.text
            assert "█" in ran.text
            assert "price unknown" in ran.text
    assert model.got[0].body == (
        b'{"model":"jev-latest","state":{"a": 1},"questions":{"answer":{"type":"choice","instructions":"Which?",'
        b'"criteria":{"red":"like blood","blue":null}}}}'
    )
    assert b'"criteria":["low","high"]' in model.got[1].body


WRONG = [
    ["ask"],
    ["ask", "   "],
    ["ask", "x" * 501],
    ["ask", "One?", "--noul", "Two?"],
    ["ask", "One?", "--state", "x"],
    ["ask", "One?", "--option", "only"],
    ["ask", "--choice", "Which?"],
    ["ask", "--choice", "Which?", "--option", "a", "--option", "a=b"],
    ["ask", "--noul", "Ok?", "--state", "{"],
    ["ask", "--noul", "Ok?", "--fresh", "--version", "1"],
    ["ask", "--body", "/nowhere/at/all"],
    ["show", "nonsense"],
    ["show", "3f2a9c01be44:0"],
    ["diff", "3f2a9c01be44:1"],
    ["explain"],
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
async def test_what_is_asked_wrongly_ends_with_2_and_sends_nothing(tmp_path: Path, words: list[str]) -> None:
    async with upstream() as model:
        ran = await Owner(tmp_path / "a.db", model.url).inside(*words)
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err
    assert model.got == []


@pytest.mark.parametrize(
    "words",
    [
        ["show", "zz"],
        ["show", "#99999999999999999999999"],
        ["versions", "nope"],
        ["ask", "--version", "0", "x"],
        ["ask", "--body", "/nowhere"],
        ["import", "/nowhere"],
        ["export", "--since", "2026-13-01"],
        ["token", "new", "x", "--day-calls", "-1"],
        ["withdraw"],
        ["explain"],
        ["token", "explain"],
    ],
    ids=" ".join,
)
async def test_with_json_also_what_was_typed_wrongly_is_told_in_json(tmp_path: Path, words: list[str]) -> None:
    owner = Owner(tmp_path / "a.db")
    told, plain = await owner.inside(*words, "--json"), await owner.inside(*words)
    assert (told.code, told.out, plain.code, plain.out) == (2, b"", 2, b"")
    error = json.loads(told.err)["error"]
    assert error["code"] == "invalid"
    assert error["text"] in " ".join(plain.err.split()) or error["text"] in plain.err
    assert "Usage: " in plain.err
    if words[-1].startswith("#"):
        assert "more than 18 digits" in error["text"]


async def test_no_command_colours_what_is_no_terminal(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    words = ["ask", "--score", "How good?", "--state", "So.", "--level", "bad", "--level", "good"]
    call = (await owner.inside(*words, "--json")).json["calls"][0]["call"]
    for more in (["show", call], ["versions", call], ["diff", call, call], ["feed"], ["facts"], ["doctor"], words):
        for as_json in ([], ["--json"]):
            ran = await owner.inside(*more, *as_json)
            assert ran.code == 0
            assert "\x1b" not in ran.text + ran.err
            assert "\\u001b" not in ran.text


async def test_a_question_no_model_can_answer_does_not_end_well(tmp_path: Path) -> None:
    ran = await Owner(tmp_path / "a.db").inside("ask", "Why is the sky blue?")
    assert (ran.code, "It is an open question" in ran.text) == (2, True)


async def test_a_name_that_means_several_requests_is_listed_and_never_guessed(tmp_path: Path) -> None:
    async with upstream() as model:
        owner = Owner(tmp_path / "a.db", model.url)
        call = (await owner.inside("ask", "--body", "-", "--json", stdin=body("one"))).json["call"]
        await owner.inside("ask", "--body", "-", stdin=body("two"))
        with closing(sqlite3.connect(owner.store)) as db:
            db.execute("INSERT INTO request_key (hash, request) VALUES (?, 2)", named_between(call)[:1])
            db.commit()
        several = await owner.inside("show", call)
        chosen = await owner.inside("show", "@2:1", "--raw", "request")
        not_there = await owner.inside("show", "#1234")
    assert (several.code, several.out) == (1, b"")
    assert f"2 requests are named {call}: @1, @2." in several.err
    assert (chosen.code, chosen.out) == (0, body("two"))
    assert (not_there.code, not_there.err) == (1, "There is no judgment number 1234.\n")


async def test_the_same_json_in_other_bytes_is_said_to_be_that(tmp_path: Path) -> None:
    async with upstream() as model:
        owner = Owner(tmp_path / "a.db", model.url)
        call = (await owner.inside("ask", "--body", "-", "--json", stdin=body())).json["call"]
        model.reply = answer().replace(b'"model":', b'"model" : ')
        await owner.inside("ask", "--body", "-", "--fresh", stdin=body())
        ran = await owner.inside("diff", f"{call}:1", f"{call}:2")
    assert "the same JSON in other bytes: 114 and 116 bytes, the first difference at byte 8" in ran.text
    assert "+++" not in ran.text


async def test_nothing_in_anybodys_words_plays_tricks_on_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;mine\x07\x9b31m\u202egnp.\u2066"
    async with upstream() as model:
        owner = Owner(tmp_path / "a.db", model.url)
        said = {"model": evil, "answers": {"q": {"type": "choice", "choice": evil}}}
        model.reply = json.dumps(said, ensure_ascii=False).encode()
        asked = body(questions={"q": {"type": "choice", "instructions": evil, "criteria": {evil: None}}})
        first = await owner.inside("ask", "--body", "-", stdin=asked)
        call = call_id_of(rows(owner.store, "SELECT hash FROM request_key")[0][0])
        shown = [await owner.inside(word, call) for word in ("show", "versions")]
        told = await owner.inside("diff", call, call)
    for ran in (first, *shown, told):
        assert ran.code == 0, ran.err
        assert not set(ran.text) & set("\x1b\x07\x9b\u202e\u2066")
        assert "gnp" in ran.text


async def test_an_answer_that_stopped_at_a_limit_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    async with upstream() as model:
        owner = Owner(tmp_path / "a.db", model.url)
        whole = await owner.inside("ask", "--body", "-", stdin=body())
        model.reply = answer()[:-1] + b',"stop_reason":"max_tokens"}'
        cut = await owner.inside("ask", "--body", "-", "--fresh", stdin=body())
        call = call_id(Request(Destination("systemone", "POST", f"{model.url}/v1/systemone"), body()))
        listed, told = await owner.inside("versions", call), await owner.inside("versions", call, "--json")
        shown = [await owner.inside("show", f"{call}:{n}") for n in (1, 2)]
    assert ["cut short" in ran.text for ran in (whole, cut)] == [False, True]
    assert ["cut short" in line for line in listed.text.splitlines()] == [False, True]
    assert [one["cut_short"] for one in told.lines] == [False, True]
    assert ["stopped at a limit" in ran.text for ran in shown] == [False, True]


async def test_doctor_says_what_is_well_and_sends_nothing(tmp_path: Path) -> None:
    async with upstream() as model:
        owner = Owner(tmp_path / "a.db", model.url)
        await owner.inside("ask", "--body", "-", stdin=body())
        well = await owner.inside("doctor")
        assert len(model.got) == 1
    alone = await owner.inside("doctor", "--json")
    assert well.code == 0, well.text
    assert "✗" not in well.text
    assert "rows are as written" in well.text
    assert "no price is known yet" in well.text
    assert (alone.code, alone.json["well"]) == (6, False)
    (wrong,) = [one for one in alone.json["findings"] if not one["well"]]
    assert "no connection" in wrong["text"]


SEVERAL = """
[typesafe]
url = "{0}"
serves = "/"
key_env = "KEY"
input_price = 0.042
output_price = 0
day_calls_max = 1

[gone]
url = "{1}"
input_price = 3

[openrouter]
url = "{0}/api"
serves = "/api"
"""


async def test_doctor_looks_at_every_destination_and_sends_nothing_to_any(tmp_path: Path) -> None:
    owner, file = Owner(tmp_path / "a.db"), tmp_path / "d.toml"
    env: dict[str, Any] = {"ASKONCE_DESTINATIONS": str(file), "KEY": "sentinel", "ASKONCE_DAY_CALLS_MAX": "1500"}
    async with upstream() as model:
        there = model.url + "/gone"
        file.write_text(SEVERAL.format(model.url, there))
        await owner.inside("ask", "--body", "-", **env, stdin=body())
        well = await owner.inside("doctor", **env)
        async with nobody() as address:
            gone = f"http://{address}"
            file.write_text(SEVERAL.format(model.url, gone))
            alone, told = await owner.inside("doctor", **env), await owner.inside("doctor", "--json", **env)
        env["KEY"] = ""
        keyless = await owner.inside("doctor", **env)
        assert len(model.got) == 1
    assert [well.code, alone.code, told.code, keyless.code] == [0, 6, 6, 6]
    lines = [line.strip() for line in well.text.splitlines()]
    for name, url, then in (
        ("typesafe", model.url, "your key is set; a million tokens in: $0.042, out: free; at most 1 call a day"),
        ("gone", there, "no key is set, so each caller's own goes up; a million tokens in: $3, out: price unknown;"
                           " at most 1,500 calls a day"),
        ("openrouter", model.url + "/api", "no key is set, so each caller's own goes up; price not known;"
                                           " at most 1,500 calls a day"),
    ):  # fmt: skip
        at = lines.index(f"Destination {name}  {url}")
        assert re.fullmatch(r"✓ reached in \d+ ms; nothing was asked", lines[at + 1])
        assert lines[at + 2] == f"✓ {then}"
    assert well.text.count("Destination ") == 3
    assert "✗" not in well.text
    assert re.findall("✗.*", alone.text) == ["✗ no connection: Connection refused"]
    assert told.json["destinations"] == [
        {"name": "typesafe", "url": model.url, "reached": True, "key": True, "input_price": 0.042, "output_price": 0.0,
         "day_calls_max": 1},
        {"name": "gone", "url": gone, "reached": False, "key": False, "input_price": 3.0, "output_price": None,
         "day_calls_max": 1500},
        {"name": "openrouter", "url": model.url + "/api", "reached": True, "key": False, "input_price": None,
         "output_price": None, "day_calls_max": 1500},
    ]  # fmt: skip
    assert not told.json["well"]
    assert "KEY is not set" in keyless.err
    assert "sentinel" not in well.text + alone.text + told.text


async def test_doctor_needs_no_destination(tmp_path: Path) -> None:
    owner, file = Owner(tmp_path / "a.db"), tmp_path / "d.toml"
    file.write_text("")
    await owner.inside("ask", "--noul", "Is it so?", "--state", "So.")
    plain = await owner.inside("doctor", ASKONCE_DESTINATIONS=str(file))
    told = await owner.inside("doctor", "--json", ASKONCE_DESTINATIONS=str(file))
    assert (plain.code, told.code, told.json["destinations"]) == (0, 0, [])
    assert "the built-in model needs no network and no key" in plain.text
    assert "Destination" not in plain.text


async def test_doctor_finds_a_row_that_was_altered_and_a_guard_that_is_gone(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    await owner.inside("ask", "--noul", "Is it so?", "--state", "So.")
    with closing(sqlite3.connect(owner.store)) as db:
        (guard,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'outcome_update'").fetchone()
        db.execute("DROP TRIGGER outcome_update")
        db.execute("UPDATE outcome SET cost = 7")
        db.execute(guard)
        db.commit()
    altered = await owner.inside("doctor")
    with closing(sqlite3.connect(owner.store)) as db:
        db.execute("DROP TRIGGER outcome_update")
        db.commit()
    unguarded = await owner.inside("doctor")
    assert altered.code == unguarded.code == 6
    assert re.search("✗ .*outcome", altered.text)
    assert "outcome_update is missing" in unguarded.err


async def test_doctor_finds_damaged_pages(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    await owner.inside("ask", "--noul", "Is it so?", "--state", "It is so. " * 50)
    place = rows(owner.store, "SELECT rootpage FROM sqlite_schema WHERE name = 'outcome_key'")[0][0]
    size = rows(owner.store, "PRAGMA page_size")[0][0]
    data = bytearray(owner.store.read_bytes())
    data[(place - 1) * size + 8 : place * size] = bytes(size - 8)
    owner.store.write_bytes(data)
    ran = await owner.inside("doctor")
    assert ran.code == 6
    assert re.search(r"✗ .*outcome", ran.text)


async def test_every_command_explains_itself(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db")
    whole = await owner.inside("--help")
    names = [line.split()[0] for line in whole.text.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    names = names[: names.index("Exit")]
    assert "..." not in whole.text.partition("Commands:")[2], "each command is told in a whole sentence"
    for line in CODES.splitlines()[1:]:
        assert line.strip() in whole.text
    for name in names:
        ran: Ran = await owner.inside(name, "--help")
        assert ran.code == 0
        assert "--json" in ran.text
    assert not owner.store.exists()


def test_every_error_has_an_exit_code_that_is_documented() -> None:
    assert EXIT.keys() == STATUS.keys()
    assert all(f"\n  {code}  " in CODES for code in {0, *EXIT.values()})


@pytest.mark.parametrize(("terminal", "seconds", "shown"), [(True, 3, True), (True, 1, False), (False, 3, False)])
def test_a_bar_is_for_terminals_and_for_what_takes_long(
    terminal: bool, seconds: int, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0, *[seconds] * 100])
    monkeypatch.setattr("web.commands.output.time.monotonic", lambda: next(times))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with Output(False).bar("Checking", 3) as advance:
        for _ in range(3):
            advance(1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("Checking" in captured.err) is shown


def test_columns_are_counted_as_a_terminal_shows_them() -> None:
    assert [wide(text) for text in ("abc", "\x1b[1mabc\x1b[0m", "日本", "e\u0301")] == [3, 3, 4, 1]
    odd = "a\tb\nc\x1bd\u202ee\u200df\u2028\x85g"
    assert visible(odd, laid_out=True) == "a\tb\nc\ufffdd\ufffde\u200df\ufffd\ufffdg"
    assert visible(odd) == "a\ufffdb\ufffdc\ufffdd\ufffde\u200df\ufffd\ufffdg"
