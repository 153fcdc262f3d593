"""What conditions and readings mean: whether they fit a question, and what they come to on its answer.

One grammar (archive/grammar.py) serves readings, filters and checks. Numbers are compared exactly as they were
supplied; one that was not supplied makes a comparison neither true nor false, and a reading that needs it comes to
nothing.
What must never be here: a clock, the record, a rounded number.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from archive.answer import Answer, read
from archive.errors import Invalid
from archive.grammar import All, Compare, Condition, Either, Not, Reading, clean, did_you_mean, name_of, printed
from archive.request import loads

FIELDS: Mapping[str, tuple[str, ...]] = {
    "noul": ("noul",),
    "choice": ("choice", "confidence"),
    "score": ("score", "confidence"),
}
"""By a question's type: what of its answer can be compared."""

_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}

Answers = Mapping[str, Answer | None]
"""By question: its answer as archive/answer.py reads it; None where it could not be read."""


# -- checking against what is asked ------------------------------------------------------------------------------------


def check(what: Reading | Condition, asked: object) -> None:
    """Can it be read from an answer to `asked`, a decoded System One body? Raises Invalid: what would be right."""
    questions = _questions(asked)
    if not questions:
        raise Invalid("A reading needs questions in the body to read the answers of; here are none that can be read.")
    for compare in _compares(what):
        _check(compare, questions)


def _questions(asked: object) -> dict[str, object]:
    body = cast("dict[str, object]", asked) if isinstance(asked, dict) else {}
    questions = body.get("questions")
    return cast("dict[str, object]", questions) if isinstance(questions, dict) else {}


def _compares(what: Reading | Condition) -> list[Compare]:
    match what:
        case Reading(clauses):
            return [compare for clause in clauses for compare in _compares(clause.condition)]
        case Compare():
            return [what]
        case Not(inner):
            return _compares(inner)
        case All(parts) | Either(parts):
            return [compare for part in parts for compare in _compares(part)]


def _check(compare: Compare, questions: dict[str, object]) -> None:
    named = {clean(name): question for name, question in questions.items()}
    here = f"In the reading, `{printed(compare)}`"
    name = compare.question
    if name is None:
        if len(named) > 1:
            few = ", ".join(f"`{name_of(one)}.{compare.field}`" for one in list(named)[:3])
            raise Invalid(f"{here} does not say of which question; {len(named)} are asked: write {few} or the like.")
        name = next(iter(named))
    elif name not in named:
        raise Invalid(f"{here} names a question that is not asked{did_you_mean(name, named)}")
    asked = cast("dict[str, object]", named[name]) if isinstance(named[name], dict) else {}
    kind, criteria = asked.get("type"), asked.get("criteria")
    fields = FIELDS.get(kind, ()) if isinstance(kind, str) else ()
    if not fields:
        raise Invalid(f"{here} asks for a question whose type is none of noul, choice and score.")
    if compare.field not in fields:
        fit = " and ".join(f"`{name_of(name)}.{field}`" for field in fields)
        raise Invalid(f"{here} does not fit a {kind}: it has {fit}.")
    if isinstance(compare.value, str):
        options = (
            [clean(option) for option in cast("dict[str, object]", criteria)] if isinstance(criteria, dict) else []
        )
        if options and compare.value not in options:
            few = ", ".join(f'"{option}"' for option in options[:8]) + (", …" if len(options) > 8 else "")
            raise Invalid(f"{here} names no option{did_you_mean(compare.value, options) or f': there are {few}.'}")
        return
    top = 1.0
    if compare.field == "score" and isinstance(criteria, list):
        top = float(len(cast("list[object]", criteria)) - 1)
    if not 0 <= compare.value <= top and (compare.field != "score" or isinstance(criteria, list)):
        raise Invalid(f"{here} can never be anything else: a {compare.field} is from 0 to {top:g} here.")


# -- reading an answer -------------------------------------------------------------------------------------------------


def holds(what: Condition, answers: Answers) -> bool | None:
    """Does it hold? None where a number it needs was not supplied, and the others do not settle it."""
    match what:
        case Compare():
            return _compared(what, answers)
        case Not(inner):
            held = holds(inner, answers)
            return None if held is None else not held
        case All(parts):
            found = {holds(part, answers) for part in parts}
            return False if False in found else None if None in found else True
        case Either(parts):
            found = {holds(part, answers) for part in parts}
            return True if True in found else None if None in found else False


def comes_to(what: Reading, answers: Answers) -> str | None:
    """The word of the first clause that holds; None where a number is missing that would have to be known."""
    for clause in what.clauses:
        held = holds(clause.condition, answers)
        if held is None:
            return None
        if held:
            return clause.label
    return what.otherwise


def read_all(asked: object, said: bytes) -> Answers:
    """The answers in the reply `said`, JSON, to each question of `asked`, a decoded System One body."""
    reply = loads(said)
    given: object = cast("dict[str, object]", reply).get("answers") if isinstance(reply, dict) else None
    answers = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    return {clean(name): read(answers.get(name), question) for name, question in _questions(asked).items()}


def _compared(compare: Compare, answers: Answers) -> bool | None:
    if compare.question is None:
        answer = next(iter(answers.values())) if len(answers) == 1 else None
    else:
        answer = answers.get(compare.question)
    if answer is None or answer.detail is None:
        return None
    detail = answer.detail
    match compare.field:
        case "noul":
            value = detail.probability
        case "score":
            value = detail.score
        case "confidence":
            value = detail.confidence
        case _:
            value = answer.words if detail.kind == "choice" else None
    return None if value is None else _SIGNS[compare.sign](value, compare.value)
