"""Telling over HTTP what a call is about: the number that comes back, and that nothing else changes."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from multidict import CIMultiDict

from archive.messages import Abouts, Judged
from archive.naming import INPUTS_BYTES_MAX, Input
from tests.fakes import Said, answer, body, site, upstream
from tests.stored import rows

NAMED = {
    "Archive_Pass": "keeper.pair",
    "Archive_About": "pair:12-40",
    "Archive_Reading": "found: q.noul >= 0.8; nothing: q.noul <= 0.2; else undecided",
}


async def test_a_named_asking_has_a_number_and_its_reading_a_word_sent_or_not(tmp_path: Path) -> None:
    async with upstream() as model:
        async with site(tmp_path / "a.db", model.url) as here:
            plain = await here.ask()
            said = [await here.ask(**NAMED), await here.ask(body("Another?"), **NAMED)]
            model.reply = answer(0.5)
            said.append(await here.ask(Archive_Answer="fresh", **NAMED))
        async with site(tmp_path / "a.db", model.url) as here:
            said.append(await here.ask(Archive_Answer="1", **NAMED))
            judgment = await here.door.send(Judged(4))
    assert "Archive-Judgment" not in plain.headers and "Archive-Reading" not in plain.headers
    assert [(one.headers["Archive-Judgment"], one.headers["Archive-Reading"]) for one in said] == [
        ("1", "found"),
        ("2", "found"),
        ("3", "undecided"),
        ("4", "found"),
    ]
    assert [one.headers["Archive-Sent"] for one in said] == ["no", "now", "now", "no"]
    assert {one.body for one in (plain, said[0], said[1], said[3])} == {answer()}
    assert judgment.kept is not None and (judgment.kept.n, judgment.asking.comes_to) == (1, "found")


async def test_naming_is_no_part_of_the_identity_and_does_not_go_up(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = [
            await here.ask(Archive_About=f"pair:{number}", Archive_Inputs='["Is it really so?"]') for number in range(3)
        ]
    assert (len(model.got), {one.headers["Archive-Answer"] for one in said}) == (1, {"1/1"})
    assert [name for name in model.got[0].headers if "archive" in name] == []


async def test_words_that_are_not_ascii_come_percent_encoded_and_are_found_in_the_body(tmp_path: Path) -> None:
    words = "Das ist schön, nicht wahr?"
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for at, named in enumerate([[words, "kurz", "Das steht nicht darin."], {"claim": words}], start=1):
            inputs = quote(json.dumps(named, ensure_ascii=at == 1))
            said = await here.ask(body(words), Archive_About="schön".encode().decode("latin-1"), Archive_Inputs=inputs)
            assert said.headers["Archive-Judgment"] == str(at)
        listed, named = [(await here.door.send(Judged(number))).asking for number in (1, 2)]
        assert [one.number for one in await here.door.send(Abouts("schön"))] == []
        assert [one.number for one in await here.door.send(Abouts(listed.naming.about))] == [2, 1]
    at = body(words).index(words.encode())
    assert listed.naming.inputs == (Input("", words), Input("", "kurz"), Input("", "Das steht nicht darin."))
    assert (listed.found_at, listed.inputs_missing) == ((at, None, None), 1)
    assert (named.naming.inputs, named.found_at, named.inputs_missing) == ((Input("claim", words),), (at,), 0)


WRONG = [
    ({"Archive_Reading": "found: q.nuol >= 0.8; else no"}, 400, "did you mean `noul`?"),
    ({"Archive_Reading": "found: p.noul >= 0.8; else no"}, 400, "names a question that is not asked"),
    ({"Archive_Reading": "found: q.noul >= 0.8"}, 400, "else undecided"),
    ({"Archive_Inputs": "a claim"}, 400, "JSON list of strings"),
    ({"Archive_Pass": "50%"}, 400, "%25"),
    ({"Archive_About": "x" * 501}, 413, "at most 500"),
    ({"Archive_Inputs": json.dumps(["x" * (INPUTS_BYTES_MAX + 1)])}, 413, str(INPUTS_BYTES_MAX)),
]


@pytest.mark.parametrize(("headers", "status", "words"), WRONG)
async def test_what_cannot_be_named_so_is_told_before_anything_is_sent(
    tmp_path: Path, headers: dict[str, str], status: int, words: str
) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(**headers)
        assert (said.status, words in said.text, "Archive-Judgment" in said.headers) == (status, True, False)
        await here.ask()
        assert (await here.ask(**headers)).status == status
    assert len(model.got) == 1
    assert rows(tmp_path / "a.db", "SELECT * FROM asking") == []


async def test_the_largest_inputs_come_through_whole(tmp_path: Path) -> None:
    words = "ü" * (INPUTS_BYTES_MAX // 2)
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(body(words), Archive_Inputs=quote(json.dumps([words], ensure_ascii=False)))
        judgment = await here.door.send(Judged(int(said.headers["Archive-Judgment"])))
    assert judgment.asking.naming.inputs == (Input("", words),)
    assert judgment.asking.inputs_missing == 0


@pytest.mark.parametrize(("status", "error"), [(400, None), (502, "call_unknown")])
async def test_a_call_that_came_to_no_answer_has_its_number_too(tmp_path: Path, status: int, error: str | None) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.status = status
        said = await here.ask(**NAMED)
        assert (said.status, said.headers["Archive-Judgment"]) == (status if error is None else 504, "1")
        later = await here.ask(**NAMED)
        assert (later.status, later.headers["Archive-Judgment"]) == (status if error is None else 409, "2")
        assert (await here.door.send(Judged(1))).kept is None


async def test_a_header_of_ours_that_is_there_twice_is_refused_in_so_many_words(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for name in ("Archive-Inputs", "Archive-Pass", "Archive-Answer"):
            twice = CIMultiDict([("Content-Type", "application/json"), (name, '["a"]'), (name, '["b"]')])
            async with here.http.post(f"{here.url}/v1/systemone", data=body(), headers=twice) as response:
                said = Said(response.status, await response.read(), response.headers.copy())
            assert (said.status, said.error) == (400, "invalid")
            assert f"{name} is there more than once; one line says all of it." in said.text
    assert model.got == []


async def test_a_reading_that_cannot_be_told_says_no_word(tmp_path: Path) -> None:
    asked = json.dumps({"questions": {"q": {"type": "score", "criteria": ["a", "b"]}}}).encode()
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        model.reply = b'{"model":"m","answers":{"q":{"type":"score","score":1}}}'
        said = await here.ask(asked, Archive_Reading="sure: q.confidence > 0.5; else unsure")
    assert (said.headers["Archive-Judgment"], "Archive-Reading" in said.headers) == ("1", False)
