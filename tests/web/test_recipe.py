"""The recipe: which calls a question needs, told one at a time, and bytes that never change without a new version."""

import json
from hashlib import sha256
from typing import Any

import pytest

from archive.messages import Question
from tests.pages import Jev
from web import recipe as module
from web.recipe import KINDS, LEVELS, OPTIONS_MAX, VERSION, Done, Models, Step, options_in, recipe

WORDS = 'Tea, "coffee" or <water> & {{ x }}\u2028ü😀?'

GOLDEN = {
    "first": "8d91b35917efa081bd50e83c4e457b0d22f90cd1f5db15c21818d7c35a5f71f6",
    "yes_no": "b675524b769bd594e9686228e19dc9d47cee58ecad3fd644ded3c7028924e63b",
    "which": "0e98c3b7acee3583e2b37b992f034d6262728cfff9535f6a91b83a905ec8f39f",
    "options": "bd68a960bcd9cad6537478f4fc69c61bdd62f382902b31fbc876e14ded6bb22e",
    "how_much": "a0fcae34078d94218546c1fad2d6f110f451e999881b4f6ddac944f8655c2abe",
    "levels": "0c7eea04d8cf582e9536f4684bd5fe0390ac6960c5780b5c4d370ffcb0f22e15",
}
"""SHA-256 of each body of version 1. Another byte is another request, paid for again: it needs another VERSION."""


def walked(question: Question, jev: Jev | None = None) -> tuple[list[Step], Done]:
    """Every step of a question, and what it came to."""
    said, walk = jev or Jev(), recipe(question, Models("jev-latest"))
    steps = [next(walk)]
    while True:
        try:
            steps.append(walk.send(said.reply(steps[-1].body)))
        except StopIteration as end:
            return steps, end.value


BODIES: dict[str, tuple[Question, str, int]] = {
    "first": (Question("Is it?"), "yes_no", 0),
    "yes_no": (Question("Is it?"), "yes_no", 1),
    "which": (Question("Tea or coffee?"), "which", 1),
    "options": (Question("Which?", options=("ü", "a b")), "open", 1),
    "how_much": (Question("How much?"), "how_much", 1),
    "levels": (Question("How much?", levels=("none", "all")), "yes_no", 1),
}


@pytest.mark.parametrize("name", BODIES)
def test_no_byte_that_is_sent_changes_without_a_new_version(name: str) -> None:
    question, kind, place = BODIES[name]
    steps, _ = walked(question, Jev(kind=kind, score=0.5))
    assert VERSION == 1, "a new VERSION has new fingerprints"
    assert sha256(steps[place].body).hexdigest() == GOLDEN[name], steps[place].body.decode()


def _without_state(body: bytes) -> dict[str, Any]:
    asked = json.loads(body)
    assert list(asked) == ["model", "state", "questions"]
    del asked["state"]
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_visitors_words_stand_in_state_alone(kind: str) -> None:
    """What is asked is ours, whole: it is the same for every question of a kind."""
    mine, _ = walked(Question(WORDS), Jev(kind=kind))
    others, _ = walked(Question("plain"), Jev(kind=kind))
    assert [json.loads(step.body)["state"] for step in mine] == [WORDS] * len(mine)
    assert [_without_state(step.body) for step in mine] == [_without_state(step.body) for step in others]
    assert [step.title for step in mine] == [step.title for step in others]


@pytest.mark.parametrize("field", ["options", "levels"])
def test_what_is_chosen_from_stands_in_criteria_and_nowhere_else(field: str) -> None:
    def apart(words: str, typed: tuple[str, ...]) -> Question:
        return Question(words, typed) if field == "options" else Question(words, levels=typed)

    typed = ('ignore all "that"', "</x>", "{{ 1 }}")
    steps, _ = walked(apart("q", typed))
    asked = _without_state(steps[1].body)["questions"]["answer"]
    criteria = asked.pop("criteria")
    assert tuple(criteria) == typed
    assert field == "levels" or set(criteria.values()) == {None}
    plain, _ = walked(apart("p", ("a", "b")))
    other = _without_state(plain[1].body)["questions"]["answer"]
    del other["criteria"]
    assert asked == other
    assert not any(text in step.title for step in steps for text in typed)


def test_every_question_of_ours_describes_every_outcome() -> None:
    for kind in KINDS:
        for step in walked(Question("Tea or coffee?"), Jev(kind=kind))[0]:
            for question in json.loads(step.body)["questions"].values():
                assert question["instructions"]
                if question["type"] == "noul":
                    assert set(question["criteria"]) == {"true", "false"}
                    assert all(question["criteria"].values())
    first = json.loads(walked(Question("x"))[0][0].body)["questions"]
    assert all(first["kind"]["criteria"].values())


def test_the_first_call_asks_the_kind_and_whether_it_is_fit_in_one_request() -> None:
    steps, done = walked(Question("Is it?"), Jev(fit=0.31))
    assert list(json.loads(steps[0].body)["questions"]) == ["kind", "fit"]
    assert len(steps) == 2
    assert done.fit == 0.31


def test_the_same_question_is_the_same_bytes_and_another_model_is_other_bytes() -> None:
    question = Question(WORDS)
    assert next(recipe(question, Models("a"))).body == next(recipe(question, Models("a"))).body
    assert next(recipe(question, Models("a"))).body != next(recipe(question, Models("b"))).body


@pytest.mark.parametrize(
    ("question", "kind", "expected", "calls"),
    [
        (Question("Is it?"), "yes_no", ("yes_no", "Probably yes", ""), 2),
        (Question("Tea or coffee?"), "which", ("which", "Tea", ""), 2),
        (Question("How much?"), "how_much", ("how_much", "somewhat", ""), 2),
        (Question("Why?"), "open", ("open", None, "form"), 1),
        (Question("Which one?"), "which", ("which", None, "options"), 1),
        (Question("Why?", options=("a", "b")), "open", ("which", "a", ""), 2),
        (Question("Why?", levels=("a", "b", "c")), "yes_no", ("how_much", "c", ""), 2),
    ],
)
def test_a_question_comes_to_an_answer_or_to_what_is_missing_for_one(
    question: Question, kind: str, expected: tuple[str, str | None, str], calls: int
) -> None:
    steps, done = walked(question, Jev(kind=kind))
    found = done.conclusion
    assert (found.kind, found.answer and found.answer.words, found.needs) == expected
    assert len(steps) == calls


def test_a_question_of_how_much_is_put_on_the_plain_scale_of_five() -> None:
    steps, _ = walked(Question("How much?"), Jev(kind="how_much"))
    assert json.loads(steps[1].body)["questions"]["answer"]["criteria"] == list(LEVELS)
    assert len(LEVELS) == 5


def test_a_number_of_any_length_in_a_reply_is_only_odd() -> None:
    """The wire takes what Python's own reader refuses; a page that raised on it would be broken for ever."""
    jev = Jev(more={"x_long": 7})
    walk = recipe(Question("Is it?"), Models("m"))
    first = jev.reply(next(walk).body).replace(b'"x_long": 7', b'"x_long": ' + b"9" * 5000)
    assert json.loads(walk.send(first).body)["questions"]["answer"]["type"] == "noul"


def test_the_texts_are_read_where_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    before = walked(Question("Is it?"))[0][1].body
    monkeypatch.setattr(module, "ANSWER_IS_YES", "Is it so?")
    assert walked(Question("Is it?"))[0][1].body != before


NAMED: dict[str, tuple[str, ...]] = {
    "Tea, coffee or water?": ("Tea", "coffee", "water"),
    "tea, coffee, or water": ("tea", "coffee", "water"),
    "Tea or coffee?": ("Tea", "coffee"),
    "Either tea or coffee?": ("tea", "coffee"),
    "Tea or coffee or water?": ("Tea", "coffee", "water"),
    "New York or Los Angeles?": ("New York", "Los Angeles"),
    "C++ or C#?": ("C++", "C#"),
    "How shall we pay: cash, card or by cheque?": ("cash", "card", "by cheque"),
    "Which planet is bigger: Mars or Venus?": ("Mars", "Venus"),
    "My boss asks: should I stay or go?": ("stay", "go"),
    "Who is taller, Anna or Ben?": ("Anna", "Ben"),
    "Which is better, New York or Paris?": ("New York", "Paris"),
    "Which do you prefer, tea or coffee?": ("tea", "coffee"),
    "What has more caffeine, tea or coffee?": ("tea", "coffee"),
    "Who is the best player, Messi or Ronaldo?": ("Messi", "Ronaldo"),
    "Which is it, red, green, or blue?": ("red", "green", "blue"),
    "Who would win, a lion or a tiger?": ("a lion", "a tiger"),
    "Which is heavier, a pound of feathers or a pound of lead?": ("a pound of feathers", "a pound of lead"),
    "Should I take the train or the bus?": ("the train", "the bus"),
    "Should I get a dog or a cat?": ("a dog", "a cat"),
    "Was it a cat, a dog or a bird?": ("a cat", "a dog", "a bird"),
    "Is a tomato a fruit or a vegetable?": ("a fruit", "a vegetable"),
    "Do you like cats or dogs?": ("cats", "dogs"),
    "Is it hot or cold?": ("hot", "cold"),
    "Is tea better hot or cold?": ("hot", "cold"),
    "Pick tea, coffee or water": ("tea", "coffee", "water"),
    "IS IT HOT OR COLD?!": ("HOT", "COLD"),
}
UNTOLD = """
Is it?|Why is the sky blue?|Which one?|or|tea or|or tea?|Tea or tea?|Tea or TEA?|or or or|Is it true or not?
Should I eat meat or not?|Is it worth it or something else?|Will it take one year or more?
Will 3 or more people come?|Should I take the train or the bus to the airport?|Is the moon or the sun bigger?
Did the chicken or the egg come first?|Is it New York or Boston?|Should I visit New York or Paris?
Is he in high school or college?|Choose ice cream, cake or pie|Do cats or dogs make better pets?
Is tea or coffee better?|Can I pay with a credit card or cash?|Was it a hot dog or a pie?
In winter, is tea or coffee better?|If I have the flu, should I rest or work?|On a hot day, beer or wine?
Drink tea or coffee?|Tea or coffee in the morning?|Tea or coffee today?|Cats are better than dogs or birds?
People prefer tea or coffee?|Should we meet at 10:30 or at noon?|Which colour, red or blue, is better?
Which, tea or coffee, is better?|Which of these, in your opinion, is best, tea or coffee?
Which is best tea, coffee or water?|What if I lose, win or draw?|Which is better, my friend, tea or coffee?
Which is better, tea or coffee in the morning?|Who should I hug, kiss or marry?|I like tea. Tea or coffee?
Which one? Tea or coffee?|Who wrote "Pride or Prejudice"?|Is tea (green or black) good?
Should I buy a used car or a bike?|Do I say thank you or sorry?|Is it on Monday morning or evening?
Is it type A or B?
"""


@pytest.mark.parametrize("words", NAMED)
def test_options_that_stand_in_the_question_are_found(words: str) -> None:
    assert options_in(words) == NAMED[words]
    assert options_in(f"  {words}\n") == NAMED[words]


@pytest.mark.parametrize("words", [words for line in UNTOLD.strip().splitlines() for words in line.split("|")])
def test_options_that_cannot_be_told_for_sure_are_left_to_whoever_asks(words: str) -> None:
    """Wrong ones would be paid for, and the answer believed."""
    assert options_in(words) == ()


def test_no_more_options_are_read_than_may_be_typed() -> None:
    names = [f"n{n}" for n in range(OPTIONS_MAX + 1)]
    assert len(options_in(f"Which: {', '.join(names[:-2])} or {names[-1]}?")) == OPTIONS_MAX
    assert options_in(f"Which: {', '.join(names[:-1])} or {names[-1]}?") == ()


@pytest.mark.parametrize(
    "text", [" " * 500, "or " * 160, "a, " * 160 + "or b", "," * 500, " or" * 160, "the " * 120 + "or the x"]
)
def test_reading_options_never_takes_long_or_raises(text: str) -> None:
    assert len(options_in(text)) in {0, 2}
