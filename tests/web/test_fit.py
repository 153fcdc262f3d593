"""What may be listed in public: the model's word, and plain rules that it cannot overrule."""

import pytest

from web.fit import may_list
from web.recipe import FIT_MIN

FIT = (
    "Is a straw one hole or two?",
    "Is 1 < 2?",
    "Will it rain on 30 November 2026?",
    "Was 1969 a good year?",
    "Is pi 3.14159 or 22/7?",
    "Is it wrong to be @ home?",
    "Does Scunthorpe lie near Sussex?",
    "Is cancer curable?",
    "Who was better, Anna Karenina or Emma Bovary?",
    "日本は大きいですか",
    "Is 😀 a face?",
    "",
)
UNFIT = {
    "an e-mail address": "Is anna@example.org nice?",
    "... in capitals": "IS ANNA@EXAMPLE.ORG NICE?",
    "a card": "Is 4111 1111 1111 1111 a good card?",
    "... with dashes": "Is 4111-1111-1111-1111 a good card?",
    "... in one piece": "Is 4111111111111111 a good card?",
    "a phone": "Should I call 0171 234567?",
    "an identity number": "Is 123-45-6789 taken?",
    "a link": "Is https://shop.example cheap?",
    "a bare link": "Is www.shop.example cheap?",
    "a link in capitals": "Is HTTP://SHOP.EXAMPLE cheap?",
    "a name and a diagnosis": "Does John Smith have cancer?",
    "... the other way round": "Is it depression that ails John Smith?",
    "... in lower case": "does john smith have hiv?",
    "... over a line": "Is John Smith ill?\nIs it diabetes?",
    "an address": "Is 12 Baker Street nice?",
    "... shortened": "is 221 baker st. nice",
    "a slur": "Are you a faggot?",
    "... in capitals, with a digit": "ARE YOU A F4GGOT?",
}


@pytest.mark.parametrize("words", FIT)
def test_a_plain_question_that_the_model_finds_fit_is_listed(words: str) -> None:
    assert may_list(words, 0.9)
    assert may_list(words, FIT_MIN)


@pytest.mark.parametrize("name", UNFIT)
def test_no_number_of_the_models_overrules_a_rule(name: str) -> None:
    assert not may_list(UNFIT[name], 1.0)


@pytest.mark.parametrize("fit", [None, 0.0, FIT_MIN - 0.01, float("nan")])
def test_what_the_model_finds_unfit_or_says_nothing_of_is_not_listed(fit: float | None) -> None:
    assert not may_list("Is it?", fit)


@pytest.mark.parametrize("words", ["a" * 2000, "1-" * 3 + "a" * 2000, "a@" * 1000, "Ab Cd " * 400, "1 A street" * 200])
def test_a_long_text_is_judged_too(words: str) -> None:
    assert may_list(words, 1.0) in {True, False}
