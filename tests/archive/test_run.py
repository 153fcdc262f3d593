"""What conditions and readings come to on real replies, and whether they fit what is asked."""

import json
from typing import Any

import pytest

from archive.errors import Invalid
from archive.grammar import condition, reading
from archive.run import check, comes_to, holds, read_all

ASKED: dict[str, Any] = {
    "state": "a ticket",
    "model": "jev-latest",
    "questions": {
        "a": {"type": "noul", "instructions": "Ok?"},
        "team": {"type": "choice", "criteria": {"billing": None, "technical": None, "other": None}},
        "s": {"type": "score", "criteria": ["low", "middle", "high"]},
        "my question": {"type": "noul", "instructions": "Ok?"},
    },
}
SAID: dict[str, Any] = {
    "answers": {
        "a": {"type": "noul", "noul": 0.6},
        "team": {"type": "choice", "choice": "billing", "confidence": 0.7, "probabilities": {"billing": 0.8}},
        "s": {"type": "score", "score": 1.4, "confidence": 0.71},
        "my question": {"type": "noul", "noul": 0.1},
    }
}
ONE: dict[str, Any] = {"questions": {"only": ASKED["questions"]["a"]}}


def answers(said: Any = SAID, asked: Any = ASKED) -> Any:
    return read_all(asked, json.dumps(said).encode())


HOLDS = [
    ("a.noul >= 0.6", True),
    ("a.noul > 0.6", False),
    ("a.noul <= 0.6", True),
    ("a.noul == 0.6", True),
    ("a.noul != 0.6", False),
    ("a.noul < 0.6000000000000001", True),
    ('"my question".noul < 0.5', True),
    ('team.choice == "billing"', True),
    ('team.choice != "billing"', False),
    ('team.choice == "other"', False),
    ("s.score < 2 and s.confidence >= 0.7", True),
    ("s.score < 2 and s.confidence >= 0.72", False),
    ("team.confidence == 0.7", True),
    ('not team.choice == "other" and (a.noul > 0.9 or s.score > 1)', True),
]


@pytest.mark.parametrize(("text", "held"), HOLDS)
def test_a_condition_holds_by_the_numbers_as_they_were_supplied(text: str, held: bool) -> None:
    assert holds(condition(text), answers()) is held


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("a.noul >= 0.6", None),
        ("not a.noul >= 0.6", None),
        ("a.noul >= 0.6 and s.score > 1", None),
        ("a.noul >= 0.6 and s.score > 2", False),
        ("a.noul >= 0.6 or s.score > 1", True),
        ("a.noul >= 0.6 or s.score > 2", None),
    ],
)
def test_a_number_that_was_not_supplied_makes_a_comparison_neither_true_nor_false(text: str, held: bool | None) -> None:
    for answer in ({"type": "noul"}, {"type": "noul", "noul": True}, {"type": "noul", "noul": "0.9"}, None, 7):
        assert holds(condition(text), answers({"answers": SAID["answers"] | {"a": answer}})) is held


def test_a_name_may_be_left_out_where_one_question_is_asked() -> None:
    said = {"answers": {"only": {"type": "noul", "noul": 0.5}}}
    assert holds(condition("noul >= 0.5"), answers(said, ONE)) is True
    assert holds(condition("noul >= 0.5"), answers()) is None


@pytest.mark.parametrize(("noul", "word"), [(0.6, "found"), (0.59, "undecided"), (0.4, "nothing"), (None, None)])
def test_a_reading_comes_to_the_first_word_whose_condition_holds(noul: float | None, word: str | None) -> None:
    what = reading("found: a.noul >= 0.6; nothing: a.noul <= 0.4; both: a.noul > 0.5 and a.noul < 0.5; else undecided")
    assert comes_to(what, answers({"answers": {"a": {"type": "noul", "noul": noul}}})) == word


def test_a_missing_number_counts_only_where_it_would_have_to_be_known() -> None:
    early = reading("found: s.score > 1; nothing: a.noul < 0.1; else undecided")
    late = reading("nothing: a.noul < 0.1; found: s.score > 1; else undecided")
    said = {"answers": {"s": SAID["answers"]["s"]}}
    assert (comes_to(early, answers(said)), comes_to(late, answers(said))) == ("found", None)


@pytest.mark.parametrize(
    "reply", [b"", b"null", b"[]", b"{", b'{"answers":[]}', b'{"answers":{"a":1e400}}', b"[" * 9000]
)
def test_a_reply_that_cannot_be_read_comes_to_nothing(reply: bytes) -> None:
    assert comes_to(reading("x: a.noul > 0.5; else y"), read_all(ASKED, reply)) is None


RIGHT = [text for text, _ in HOLDS] + ["s.score >= 2", "a.noul == 0 or a.noul == 1"]


@pytest.mark.parametrize("text", RIGHT)
def test_what_fits_the_questions_is_let_through(text: str) -> None:
    check(condition(text), ASKED)
    check(reading(f"x: {text}; else y"), ASKED)


def test_one_question_needs_no_name_and_options_and_levels_that_cannot_be_read_are_not_judged() -> None:
    check(condition("noul >= 0.5"), ONE)
    for criteria in (None, "text", 7):
        check(condition('choice == "x"'), {"questions": {"q": {"type": "choice", "criteria": criteria}}})
        check(condition("score > 7"), {"questions": {"q": {"type": "score", "criteria": criteria}}})


WRONG = [
    ("b.noul > 0.5", "`b.noul > 0.5` names a question that is not asked"),
    ('teem.choice == "other"', "is not asked; did you mean `team`?"),
    ("noul > 0.5", "does not say of which question; 4 are asked: write `a.noul`, `team.noul`"),
    ("a.score > 0.5", "does not fit a noul: it has `a.noul`"),
    ("a.confidence > 0.5", "does not fit a noul"),
    ("team.noul > 0.5", "does not fit a choice: it has `team.choice` and `team.confidence`"),
    ('s.choice == "low"', "does not fit a score: it has `s.score` and `s.confidence`"),
    ('team.choice == "biling"', "names no option; did you mean `billing`?"),
    ('team.choice == "xyz"', 'names no option: there are "billing", "technical", "other".'),
    ("a.noul > 1.5", "can never be anything else: a noul is from 0 to 1 here"),
    ("a.noul > -0.1", "can never be anything else"),
    ("a.noul > 60", "can never be anything else"),
    ("team.confidence >= 70", "a confidence is from 0 to 1 here"),
    ("s.score >= 3", "a score is from 0 to 2 here"),
    ("a.noul > 0.5 and not (s.score >= 3)", "a score is from 0 to 2 here"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_does_not_fit_is_refused_with_what_would_be_right(text: str, said: str) -> None:
    for what in (condition(text), reading(f"x: {text}; else y")):
        with pytest.raises(Invalid) as caught:
            check(what, ASKED)
        assert said in caught.value.text


@pytest.mark.parametrize("asked", [None, [], {}, {"questions": []}, {"questions": {}}, "text"])
def test_a_body_without_questions_that_can_be_read_has_nothing_to_read_from(asked: object) -> None:
    with pytest.raises(Invalid, match="needs questions in the body"):
        check(condition("noul > 0.5"), asked)


@pytest.mark.parametrize("asked", [{"type": "box"}, {"type": 7}, {}, None])
def test_a_question_of_another_type_cannot_be_read(asked: object) -> None:
    with pytest.raises(Invalid, match="none of noul, choice and score"):
        check(condition("q.noul > 0.5"), {"questions": {"q": asked}})
