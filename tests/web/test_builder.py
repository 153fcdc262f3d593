"""The builder: what is typed becomes one exact System One request, and its form comes back from the link."""

import json
from typing import Any

import pytest

from archive.errors import Invalid
from web.builder import asked, body, build, form, read

Fields = dict[str, str]

NOUL: Fields = {
    "type": "noul",
    "instructions": "Damaged?",
    "state": "The box was open.",
    "yes": "Broken",
    "no": "Whole",
}
CHOICE: Fields = {"type": "choice", "instructions": "Team?", "state": "x", "options": "billing: money: and bills\ntech"}
SCORE: Fields = {"type": "score", "instructions": "How bad?", "state": "x", "levels": "low\nhigh"}
STATES = [
    '{"a":1.0,"b":174322306148984899,"c":1e400,"a":-0.0}',
    "[1,  2]",
    "plain text",
    "",
    'a "quoted" text\nof two lines',
    "ü\u2028😀",
    "12",
    "null",
]


def typed(fields: Fields) -> dict[str, list[str]]:
    return {name: [text] for name, text in fields.items()}


@pytest.mark.parametrize("fields", [NOUL, CHOICE, SCORE], ids=["noul", "choice", "score"])
def test_the_form_comes_back_from_the_link(fields: Fields) -> None:
    built = build(typed(fields))
    assert read(built.typed) == built
    assert form(built) == fields


def test_each_kind_becomes_the_question_the_model_reads() -> None:
    assert asked(build(typed(NOUL)))["criteria"] == {"true": "Broken", "false": "Whole"}
    assert asked(build(typed(CHOICE)))["criteria"] == {"billing": "money: and bills", "tech": None}
    assert asked(build(typed(SCORE)))["criteria"] == ["low", "high"]


@pytest.mark.parametrize("state", STATES)
def test_the_state_goes_up_as_it_was_typed(state: str) -> None:
    sent = body(build(typed(NOUL | {"state": state})), "jev-latest")
    whole = json.loads(sent)
    assert list(whole) == ["model", "state", "questions"]
    assert (state.encode() in sent) if state.startswith(("{", "[")) else whole["state"] == state
    assert form(build(typed(NOUL | {"state": state})))["state"] == state


WRONG: list[tuple[Fields, str]] = [
    ({}, "what kind of answer"),
    ({"type": "box"}, "what kind of answer"),
    ({"type": "noul"}, "in the instructions"),
    (CHOICE | {"options": ""}, "1 to 255 options"),
    (CHOICE | {"options": "\n".join(map(str, range(256)))}, "these are 256"),
    (CHOICE | {"options": "a: x\na : y"}, "twice"),
    (SCORE | {"levels": " \n "}, "1 to 255 levels"),
    (NOUL | {"state": '{"a":'}, "begins like JSON and is none"),
    (NOUL | {"state": "[" * 100_000}, "begins like JSON and is none"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named(fields: Fields, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        build(typed(fields))


LINKS: list[Any] = ["", "x", "{}", "[]", '{"state":"x"}', '{"state":null,"question":{"type":"noul"}}',
                    '{"state":"x","question":{"type":"box"}}', '{"state":"x","question":[]}',
                    '{"state":"x","question":{"type":"noul","instructions":3}}', "\ud800"]  # fmt: skip


@pytest.mark.parametrize("link", LINKS, ids=range(len(LINKS)))
def test_a_link_that_holds_no_question_is_refused(link: str) -> None:
    with pytest.raises(Invalid):
        read(link)
