"""An answer as people read it: one table of words, numbers as they were supplied, and nothing odd that raises."""

import json
import math
from typing import Any

import msgspec
import pytest

from archive.answer import Answer, Detail, Option, read, stored, word
from archive.messages import Conclusion

BANDS = (  # first hundredth, last hundredth, words
    (0, 6, "No"),
    (7, 24, "Probably no"),
    (25, 41, "Leaning no"),
    (42, 57, "Torn"),
    (58, 74, "Leaning yes"),
    (75, 92, "Probably yes"),
    (93, 100, "Yes"),
)
CHOICE = {"type": "choice", "criteria": {"tea": None, "coffee": None, "water": None}}
SCORE = {"type": "score", "criteria": ["none", "some", "all"]}


def choice(**more: Any) -> dict[str, Any]:
    return {"type": "choice", "choice": "tea", "probabilities": {"coffee": 0.2, "tea": 0.7, "water": 0.1}, **more}


def score(**more: Any) -> dict[str, Any]:
    return {"type": "score", "score": 1.2, "probabilities": {"0": 0.1, "1": 0.6, "2": 0.3}, **more}


def told(said: object, asked: object = None) -> tuple[Answer, Detail]:
    """What is read, which must be there."""
    answer = read(said, asked)
    assert answer is not None and answer.detail is not None
    return answer, answer.detail


def test_every_hundredth_has_its_words_and_the_bands_mirror_each_other() -> None:
    words = [word(hundredth / 100) for hundredth in range(101)]
    assert words == [name for first, last, name in BANDS for _ in range(first, last + 1)]
    for first, last, _ in BANDS:
        assert told({"type": "noul", "noul": first / 100})[0].words == words[first] == words[last]


@pytest.mark.parametrize(("first", "name"), [(first, name) for first, _, name in BANDS if first])
def test_a_band_begins_at_its_number_and_not_a_hair_below(first: int, name: str) -> None:
    assert word(first / 100) == name
    assert word(math.nextafter(first / 100, 0)) != name


@pytest.mark.parametrize(
    ("noul", "certainty", "weight"),
    [(0.5, 0.0, 250), (0.0, 1.0, 850), (1.0, 1.0, 850), (0.75, 0.5, 550), (0.25, 0.5, 550), (0.83, 0.66, 650)],
)
def test_certainty_is_the_distance_from_torn_and_weighs_the_words(noul: float, certainty: float, weight: int) -> None:
    answer, detail = told({"type": "noul", "noul": noul})
    assert answer.certainty == certainty, "not 0.6599999999999999"
    assert answer.weight == weight
    assert (detail.kind, detail.probability, detail.confidence) == ("noul", noul, None)


def test_every_weight_is_one_the_pages_have_a_rule_for() -> None:
    weights = {Answer("x", n / 1000).weight for n in range(-500, 2000)}
    assert weights == set(range(250, 851, 50))
    assert stored("Yes").weight == 400


def test_a_confidence_that_was_given_is_kept_and_one_worked_out_says_so() -> None:
    _, given = told(choice(confidence=0.41), CHOICE)
    assert (given.confidence, given.confidence_given) == (0.41, True)
    _, worked = told(choice(), CHOICE)
    assert worked.confidence == pytest.approx((0.7 - 1 / 3) / (1 - 1 / 3))
    assert not worked.confidence_given
    _, levels = told(score(), SCORE)
    assert levels.confidence == pytest.approx(1 - (0.1 + 0.3) / (2 / 3))
    assert not levels.confidence_given
    assert told(score(confidence=0.0), SCORE)[1].confidence_given


@pytest.mark.parametrize("shares", [{}, {"0": 0.5}, {"0": 0.5, "1": None, "2": 0.5}, {"0": "0.5", "1": 0.1, "2": 0.1}])
def test_no_confidence_is_worked_out_of_probabilities_that_are_not_all_there(shares: dict[str, Any]) -> None:
    _, detail = told(score(probabilities=shares), SCORE)
    assert (detail.confidence, detail.confidence_given) == (None, False)


@pytest.mark.parametrize(
    ("shares", "total", "adds_up"),
    [
        ({"a": 0.33, "b": 0.33, "c": 0.33}, 0.99, True),
        ({"a": 0.34, "b": 0.34, "c": 0.33}, 1.01, True),
        ({"a": 0.5, "b": 0.3}, 0.8, False),
        ({"a": 0.9, "b": 0.9}, 1.8, False),
        ({"a": 1.0}, 1.0, True),
        ({"a": 1}, 1.0, True),
        ({}, None, True),
    ],
)
def test_numbers_stay_as_supplied_and_their_total_is_told(
    shares: dict[str, float], total: float | None, adds_up: bool
) -> None:
    _, detail = told({"type": "choice", "choice": "a", "probabilities": shares})
    assert {option.label: option.probability for option in detail.options} == shares
    assert detail.total == (None if total is None else pytest.approx(total))
    assert detail.adds_up is adds_up


def test_options_stand_in_the_order_they_were_asked_in_whatever_the_replys_order_is() -> None:
    _, detail = told(choice(), CHOICE)
    assert [option.label for option in detail.options] == ["tea", "coffee", "water"]
    assert [option.probability for option in detail.options] == [0.7, 0.2, 0.1]
    _, unasked = told(choice(), None)
    assert [option.label for option in unasked.options] == ["coffee", "tea", "water"]


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "none"), (0.49, "none"), (0.5, "some"), (1.49, "some"), (1.5, "all"), (2, "all"), (9, "all"), (-9, "none")],
)
def test_a_score_is_told_by_the_level_nearest_to_it(number: float, words: str) -> None:
    assert told(score(score=number), SCORE)[0].words == words


def test_levels_come_from_the_question_else_from_the_legend_else_stay_a_number() -> None:
    legend = {"1": "b", "0": "a", "2": "c"}
    assert told(score(legend=legend), SCORE)[0].words == "some"
    assert told(score(legend=legend))[0].words == "b"
    assert told(score())[0].words == "1.2"
    structured = {"type": "score", "criteria": [{"a": 1}, ["b"], "c"]}
    assert [option.label for option in told(score(), structured)[1].options] == ["level 0", "level 1", "c"]


def test_an_answer_of_which_only_words_were_kept_is_words_alone() -> None:
    assert stored("Yes") == Answer("Yes", None, None)


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_pair_never_reaches_what_is_written_as_utf_8(half: str) -> None:
    """B49."""
    said = {"type": "choice", "choice": half, "probabilities": {half: 0.5, "b": 0.5}}
    answer, detail = told(json.loads(json.dumps(said)), {"type": "choice", "criteria": {half: None, "b": None}})
    assert msgspec.json.decode(msgspec.json.encode(Conclusion("which", answer)), type=Conclusion).answer == answer
    assert detail.options[0].label.encode() == half.encode("utf-8", "replace")
    levels, _ = told(score(score=0), {"type": "score", "criteria": [half, "b", "c"]})
    assert levels.words.encode()


HUGE = 10**400
NUMBERS: list[Any] = [None, True, "0.5", [], {}, math.nan, math.inf, -math.inf, HUGE, -HUGE]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:8])
def test_what_is_no_number_is_none_at_all(number: object) -> None:
    assert read({"type": "noul", "noul": number}, None) is None
    assert read(score(score=number), SCORE) is None
    odd = told(choice(confidence=number, probabilities={"tea": number}), CHOICE)[1]
    assert (odd.confidence, odd.options) == (None, (Option("tea", None),))


ODD: list[Any] = [
    None, 0, "", [], {}, {"type": None}, {"type": "box"}, {"type": ["noul"]}, {"type": "noul"}, {"type": "choice"},
    {"type": "choice", "choice": 1}, {"type": "score"}, {"noul": 0.5},
]  # fmt: skip
STRANGE: list[Any] = [
    {"type": "choice", "choice": "", "probabilities": {"": 1.0}},
    {"type": "choice", "choice": "a", "probabilities": [0.5]},
    {"type": "choice", "choice": "a", "probabilities": {"a": -5, "b": 7e300}},
    {"type": "score", "score": 1e308, "legend": {"0": None, "1": 5}},
    {"type": "score", "score": -1e308, "legend": {"1": "from one"}},
    {"type": "score", "score": 0, "legend": {}, "probabilities": {"0": 0}},
    {"type": "score", "score": 3, "legend": {"0": "a"}, "probabilities": {"0": 0.0}},
    {"type": "noul", "noul": 7},
    {"type": "noul", "noul": -7.5},
]
QUESTIONS: list[Any] = [None, [], "x", {}, {"criteria": None}, {"criteria": []}, {"criteria": ["a"]}, {"criteria": {}}]


@pytest.mark.parametrize("asked", QUESTIONS)
def test_no_reply_however_odd_ever_raises(asked: object) -> None:
    """A kept reply that raised would break its page for ever."""
    for said in ODD:
        assert read(said, asked) is None
    for said in STRANGE:
        answer, detail = told(said, asked)
        assert 250 <= answer.weight <= 850
        assert detail.adds_up in {True, False}
