"""A reply of the Decisions API is an answer when every question has its own, in either of the two forms."""

import json
from typing import Any

import pytest

from archive.attempts import Reply, State, read
from archive.request import Destination, Request
from tests.examples import EXAMPLES
from tests.fakes import START

PLACE = Destination("decisions", "POST", "https://a.test/v1/decisions")
ASKED: list[dict[str, Any]] = [
    {"type": "predicate", "name": "spam", "instructions": "Spam?"},
    {"type": "choice", "choices": [{"value": "junk"}, {"value": True, "description": "yes"}]},
    {"type": "score", "name": "n", "levels": [{"label": "low"}, {"label": "mid"}, {"label": "high"}]},
]
SAID: list[dict[str, Any]] = [
    {"type": "predicate", "name": "spam", "probability": 0.98},
    {"type": "choice", "name": None, "choice": "junk", "confidence": 0.9, "probabilities": [
        {"value": "junk", "probability": 0.97}, {"value": True, "probability": 0.03}]},
    {"type": "score", "name": "n", "score": 1.5, "confidence": 0.5, "probabilities": [
        {"label": "low", "value": 0, "probability": 0.2}]},
]  # fmt: skip


def state(answers: Any, asked: Any = ASKED, **more: Any) -> State:
    request = Request(PLACE, json.dumps({"model": "gpt-6-luna", "input": "x", "questions": asked}).encode())
    return read(request, Reply(200, json.dumps({"model": "m", "answers": answers, **more}).encode()), START).state


def test_every_question_answered_at_its_own_place_is_an_answer() -> None:
    assert state(SAID) is State.ANSWERED
    assert state(SAID, usage=None) is State.ANSWERED
    assert state([*SAID[:1], {**SAID[1], "choice": True}, *SAID[2:]]) is State.ANSWERED
    assert state([], []) is State.ANSWERED


def test_a_refusal_stands_for_an_answer() -> None:
    """Other questions of the request are answered beside it, and all of it was paid for."""
    refusals = [{"type": "refusal", "name": asked.get("name")} for asked in ASKED]
    assert state(refusals) is State.ANSWERED
    assert state([SAID[0], refusals[1], SAID[2]]) is State.ANSWERED


WRONG: dict[str, Any] = {
    "none": None,
    "a map": {"spam": SAID[0]},
    "one too few": SAID[:2],
    "one too many": [*SAID, SAID[0]],
    "another order": [SAID[1], SAID[0], SAID[2]],
    "another name": [{**SAID[0], "name": "ham"}, *SAID[1:]],
    "another's refusal": [{"type": "refusal", "name": "ham"}, *SAID[1:]],
    "another type": [{**SAID[0], "type": "noul"}, *SAID[1:]],
    "no probability": [{"type": "predicate", "name": "spam"}, *SAID[1:]],
    "a probability above 1": [{**SAID[0], "probability": 1.01}, *SAID[1:]],
    "a probability that is a word": [{**SAID[0], "probability": "high"}, *SAID[1:]],
    "a choice that was not offered": [SAID[0], {**SAID[1], "choice": "true"}, SAID[2]],
    "a choice that is a number": [SAID[0], {**SAID[1], "choice": 1}, SAID[2]],
    "a map of probabilities": [SAID[0], {**SAID[1], "probabilities": {"junk": 1}}, SAID[2]],
    "an empty probability": [SAID[0], {**SAID[1], "probabilities": [{"value": "junk"}]}, SAID[2]],
    "a score above the top": [*SAID[:2], {**SAID[2], "score": 2.01}],
    "an answer that is a list": [[], *SAID[1:]],
}


@pytest.mark.parametrize("name", WRONG)
def test_anything_else_was_paid_for_and_is_no_answer(name: str) -> None:
    assert state(WRONG[name]) is State.FAILED


def test_an_error_beside_answers_is_no_answer() -> None:
    assert state(SAID, error={"message": "no"}) is State.FAILED


@pytest.mark.parametrize("name", ["16-openrouter-decisions", "17-openai-decisions"])
def test_the_examples_of_both_forms_are_answers_to_their_own_questions_only(name: str) -> None:
    asked, other = EXAMPLES[name], EXAMPLES["01-noul"]
    said = read(Request(PLACE, asked.asked), Reply(200, asked.said), START)
    assert (said.state, said.input_tokens) == (State.ANSWERED, {"16": 95, "17": 71}[name[:2]])
    assert said.cost == (3990 if name.startswith("16") else None)
    assert read(Request(PLACE, asked.asked), Reply(200, other.said), START).state is State.FAILED
    assert read(Request(PLACE, other.asked), Reply(200, asked.said), START).state is State.FAILED
