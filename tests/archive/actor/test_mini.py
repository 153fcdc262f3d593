"""The built-in model's answers: their numbers, their bounds, their bytes, and how often they are right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archive.actor.mini import Mini, answers, embedder, readouts
from archive.actor.mini.training import fit
from tests.archive.actor.asking_mini import CHOICE, NOUL, SCORE, STATE, Json, ask, request
from tests.quality import report
from web import recipe

KINDS: Json = dict.fromkeys(readouts.KINDS)


@pytest.fixture(scope="module")
def mini() -> Mini:
    return Mini.load()


# Numbers


def test_numbers_have_four_decimals_and_agree_with_each_other(mini: Mini) -> None:
    for question in (CHOICE, SCORE, {**CHOICE, "criteria": {f"queue {at}": None for at in range(255)}}):
        answer = ask(mini, question)
        shown = list(answer["probabilities"].values())
        assert all(value == round(value, 4) for value in [*shown, answer["confidence"]])
        assert abs(sum(shown) - 1) <= 0.00005 * len(shown)
        if answer["type"] == "choice":
            assert answer["choice"] == max(answer["probabilities"], key=lambda name: answer["probabilities"][name])
            assert answer["confidence"] == answers.choice_confidence(shown)
        else:
            assert answer["score"] == round(sum(at * value for at, value in enumerate(shown)), 4)
            assert answer["confidence"] == answers.score_confidence(shown)


def test_equal_options_fall_to_the_first(mini: Mini) -> None:
    answer = ask(mini, {"type": "choice", "criteria": {"b": None, "a": None, "c": None}}, "")
    assert answer["choice"] == "b" and answer["confidence"] == 0.0
    assert list(answer["probabilities"].values()) == [0.3333] * 3


@pytest.mark.parametrize(
    ("shown", "choice", "score"),
    [
        ([1.0], 1.0, 1.0),
        ([0.5, 0.5], 0.0, 0.0),
        ([0.8, 0.2], 0.6, 0.6),
        ([0.0, 0.0, 1.0], 1.0, 1.0),
        ([0.1, 0.7, 0.2], 0.55, 0.55),
        ([0.2, 0.2, 0.6], 0.4, 0.1),
        ([0.4, 0.2, 0.4], 0.1, 0.0),
    ],
)
def test_confidence_follows_the_published_formulas(shown: list[float], choice: float, score: float) -> None:
    assert answers.choice_confidence(shown) == choice
    assert answers.score_confidence(shown) == score


def test_a_general_yes_or_no_is_never_surer_than_it_may_be(mini: Mini) -> None:
    lines = (Path(fit.__file__).with_name("fact_true.txt")).read_text(encoding="utf-8").splitlines()
    criteria = {"true": STATE, "false": "A poem about the sea."}
    questions = {line: {"type": "noul", "instructions": line} for line in lines} | {
        "far": {"type": "noul", "criteria": criteria},
        "near": {"type": "noul", "criteria": {"true": criteria["false"], "false": criteria["true"]}},
    }
    for state in ("", STATE):
        nouls = [
            answer["noul"]
            for answer in json.loads(mini.reply("POST", request(questions, state))[1])["answers"].values()
        ]
        assert all(0.10 <= noul <= 0.90 for noul in nouls)
    assert {0.10, 0.90} <= set(nouls)


# The product's own judgments


def test_a_judgment_of_the_product_is_chosen_by_its_exact_words_and_nothing_like_them(mini: Mini) -> None:
    insult = "You stupid worthless idiot, I will kill you."
    assert ask(mini, {"type": "noul", "instructions": answers.SAFE_TO_SHOW}, insult)["noul"] < 0.10
    assert ask(mini, {"type": "noul", "instructions": answers.SAFE_TO_SHOW + " "}, insult)["noul"] >= 0.10
    assert ask(mini, {"type": "noul", "instructions": answers.IS_YES_NO}, "Is the shop open today?")["noul"] > 0.90
    assert ask(mini, {"type": "noul", "instructions": answers.IS_YES_NO.upper()}, "Is it open?")["noul"] <= 0.90


def test_the_kind_of_a_question_does_not_depend_on_the_order_of_the_four_options(mini: Mini) -> None:
    question = {"type": "choice", "instructions": answers.KIND_OF_QUESTION, "criteria": KINDS}
    turned = {**question, "criteria": dict(reversed(KINDS.items()))}
    first, second = ask(mini, question, "How tall is the tower?"), ask(mini, turned, "How tall is the tower?")
    assert first["choice"] == second["choice"] == "how_much"
    assert first["probabilities"] == second["probabilities"]
    fewer = {**question, "criteria": dict(list(KINDS.items())[:3])}
    assert set(ask(mini, fewer, "How tall is it?")["probabilities"]) == set(list(KINDS)[:3])


def test_a_question_that_is_the_state_is_answered_as_if_it_were_asked_about_nothing(mini: Mini) -> None:
    words = "Is a rose a flower?"
    recipes = (
        ({"type": "noul", "criteria": {"true": "They would say yes.", "false": "No."}}, answers.ANSWER_IS_YES),
        ({**CHOICE, "criteria": {"plant": None, "animal": None}}, answers.ANSWER_IS_WHICH),
        (SCORE, answers.ANSWER_IS_HOW_MUCH),
    )
    for question, instructions in recipes:
        asked = ask(mini, {**question, "instructions": instructions}, words)
        assert asked == ask(mini, {**question, "instructions": words}, "")
        assert asked != ask(mini, {**question, "instructions": instructions + " "}, words)


def test_the_recipe_of_the_pages_asks_in_the_words_the_built_in_model_knows() -> None:
    for name in ("SAFE_TO_SHOW", "KIND_OF_QUESTION", "ANSWER_IS_YES", "ANSWER_IS_WHICH", "ANSWER_IS_HOW_MUCH"):
        assert getattr(recipe, name) == getattr(answers, name)
    assert set(recipe.KINDS) == set(readouts.KINDS)


def test_a_text_that_was_not_read_to_its_end_is_never_called_safe(mini: Mini) -> None:
    question = {"type": "noul", "instructions": answers.SAFE_TO_SHOW}
    assert ask(mini, question, "What is the tallest building in the world? " * 20)["noul"] > 0.5
    assert ask(mini, question, "What is the tallest building in the world? " * 40)["noul"] <= 0.40


# The same bytes, always


def test_the_same_request_gives_the_same_bytes_in_another_process_with_other_threads(mini: Mini) -> None:
    body = request({"n": NOUL, "c": CHOICE, "s": SCORE, "k": {**NOUL, "criteria": {"true": "Yes.", "false": "No."}}})
    program = (
        "import sys; from archive.actor.mini import Mini; "
        "sys.stdout.buffer.write(Mini.load().reply('POST', sys.stdin.buffer.read())[1])"
    )
    here = mini.reply("POST", body)[1]
    for seed, threads in (("1", "1"), ("77", "2")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-c", program], input=body, env=environment, capture_output=True, check=True
        )
        assert run.stdout == here


def test_an_answer_owes_nothing_to_its_id_its_neighbours_their_order_or_what_was_asked_before(
    mini: Mini, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = {"a": NOUL, "b": CHOICE, "c": SCORE}
    monkeypatch.setattr(embedder, "KEPT_VECTORS_MAX", 2)
    alone = {key: ask(Mini.load(), question) for key, question in questions.items()}
    more = {f"more {at}": {**NOUL, "instructions": f"Is a number like {at} in it?"} for at in range(40)}
    together = json.loads(mini.reply("POST", request(more | dict(reversed(questions.items()))))[1])["answers"]
    assert {key: together[key] for key in questions} == alone
    renamed = json.loads(mini.reply("POST", request({key + " 🙂": value for key, value in questions.items()}))[1])
    assert list(renamed["answers"].values()) == list(alone.values())


# How good they are


@pytest.mark.parametrize(
    ("file", "right", "total"),
    [("quality.jsonl", 70, 80), ("quality_extra.jsonl", 18, 20), ("quality_routing.jsonl", 57, 60)],
)
def test_the_model_is_right_as_often_as_we_say(mini: Mini, file: str, right: int, total: int) -> None:
    groups = report.measure(mini, file).values()
    assert sum(group.total for group in groups) == total
    assert sum(group.right for group in groups) >= right
