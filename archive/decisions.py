"""Does a reply of the Decisions API answer what was asked? The same address is spoken in two forms.

OpenRouter and others take System One's maps there (archive/attempts.py reads those); OpenAI takes lists.
What must never be here: what follows from it.
"""

import math
from typing import cast


def within(value: object, top: float) -> bool:
    """Is it a number from 0 to `top`?"""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= top


def asked_in_a_list(asked: object) -> bool:
    """Are the questions of this request a list, as OpenAI's are?"""
    return isinstance(asked, dict) and isinstance(cast("dict[str, object]", asked).get("questions"), list)


def decided(asked: object, said: dict[str, object]) -> bool:
    """Has every question of the list its answer, at its own place and of its own type? (OpenAI's SDK 3.57.0.)

    A refusal stands in an answer's place and is one: the others are answered, and all were paid for.
    """
    questions = cast("dict[str, list[object]]", asked)["questions"]
    answers = said.get("answers")
    if not isinstance(answers, list) or said.get("error"):
        return False
    given = cast("list[object]", answers)
    return len(given) == len(questions) and all(map(_decides, questions, given))


def _decides(question: object, answer: object) -> bool:
    if not isinstance(question, dict) or not isinstance(answer, dict):
        return False
    asked, said = cast("dict[str, object]", question), cast("dict[str, object]", answer)
    kind = said.get("type")
    if said.get("name") != asked.get("name"):
        return False
    if kind == "refusal":
        return True
    if kind != asked.get("type"):
        return False
    if kind == "predicate":
        return within(said.get("probability"), 1)
    if kind == "choice":
        return _offered(said.get("choice"), asked.get("choices")) and _probable(said.get("probabilities"))
    if kind == "score":
        levels = asked.get("levels")
        top = len(cast("list[object]", levels)) - 1 if isinstance(levels, list) else math.inf
        return within(said.get("score"), top) and _probable(said.get("probabilities"))
    return True


def _offered(chosen: object, choices: object) -> bool:
    """Is it one of the choices? A string and a boolean that read alike are two."""
    if not isinstance(chosen, str | bool):
        return False
    if not isinstance(choices, list):
        return True
    offered = [cast("dict[str, object]", c).get("value") for c in cast("list[object]", choices) if isinstance(c, dict)]
    return any(type(value) is type(chosen) and value == chosen for value in offered)


def _probable(value: object) -> bool:
    """Absent is allowed; there, it is a list whose every entry has a number from 0 to 1."""
    return value is None or (
        isinstance(value, list)
        and all(
            isinstance(entry, dict) and within(cast("dict[str, object]", entry).get("probability"), 1)
            for entry in cast("list[object]", value)
        )
    )
