"""An answer as people read it: the few words printed large, and the numbers behind them.

One table turns a probability into words; pages, feed, cards and the API all use it. Every number is kept as it was
supplied: two-decimal probabilities that add up to 0.99 or 1.01 are not made to fit.
What must never be here: HTML, and a comparison of confidences across models.
"""

import math
from collections.abc import Callable
from typing import cast

import msgspec

BANDS: tuple[tuple[float, str], ...] = (
    (0.93, "Yes"),
    (0.75, "Probably yes"),
    (0.58, "Leaning yes"),
    (0.42, "Torn"),
    (0.25, "Leaning no"),
    (0.07, "Probably no"),
    (0.0, "No"),
)
"""From which probability on a yes is called what."""

TOLERANCE = 0.01
"""Per option: what two-decimal rounding may take from or add to a total of 1."""

LIGHT, HEAVY, STEP = 250, 850, 50
"""The weights of type from torn to certain."""


class Option(msgspec.Struct, frozen=True):
    """An option or level and its probability, where one was given."""

    label: str
    probability: float | None


class Detail(msgspec.Struct, frozen=True):
    """The numbers behind an answer.

    `kind`: noul, choice or score. `probability` of a yes (noul only). `score` on levels numbered from 0. `confidence`
    as the provider gave it, or worked out here when `confidence_given` is False; a noul has none. `total` of the
    options' probabilities, as supplied.
    """

    kind: str
    probability: float | None = None
    score: float | None = None
    confidence: float | None = None
    confidence_given: bool = True
    options: tuple[Option, ...] = ()
    total: float | None = None

    @property
    def adds_up(self) -> bool:
        """Is the total 1, but for rounding?"""
        return self.total is None or abs(self.total - 1) <= TOLERANCE * max(1, len(self.options))


class Answer(msgspec.Struct, frozen=True):
    """The few words, how certain they are (0 torn to 1 certain), and the numbers; None if they were not kept then."""

    words: str
    certainty: float | None = None
    detail: Detail | None = None

    @property
    def weight(self) -> int:
        """How heavy the words are printed, 250 to 850."""
        certainty = 0.25 if self.certainty is None else min(1.0, max(0.0, self.certainty))
        return LIGHT + STEP * round((HEAVY - LIGHT) * certainty / STEP)


def word(probability: float) -> str:
    """The words for the probability of a yes, by BANDS."""
    return next((name for least, name in BANDS if probability >= least), BANDS[-1][1])


def stored(words: str) -> Answer:
    """An answer of which only the words were kept."""
    return Answer(words)


def read(said: object, asked: object) -> Answer | None:
    """One System One answer, decoded, as an Answer; `asked` is its question. None when it has no such form."""
    if not isinstance(said, dict):
        return None
    answer = cast("dict[str, object]", said)
    question = cast("dict[str, object]", asked) if isinstance(asked, dict) else {}
    kind = answer.get("type")
    if kind == "noul":
        return _noul(_number(answer.get("noul")))
    if kind == "choice":
        return _choice(answer, question)
    if kind == "score":
        return _score(answer, question)
    return None


def _noul(probability: float | None) -> Answer | None:
    if probability is None:
        return None
    return Answer(word(probability), _rounded(abs(probability - 0.5) * 2), Detail("noul", probability))


def _choice(answer: dict[str, object], question: dict[str, object]) -> Answer | None:
    chosen = answer.get("choice")
    if not isinstance(chosen, str):
        return None
    supplied, criteria = _probabilities(answer), question.get("criteria")
    # A reply names options in an order of its own; they are shown in the order they were asked in.
    asked = list(cast("dict[str, object]", criteria)) if isinstance(criteria, dict) else []
    labels = [label for label in asked if label in supplied] + [label for label in supplied if label not in asked]
    options = tuple(Option(_text(label), supplied[label]) for label in labels)
    confidence, given = _confidence(answer, options, _choice_confidence)
    return Answer(_text(chosen), confidence, Detail("choice", None, None, confidence, given, options, _total(options)))


def _score(answer: dict[str, object], question: dict[str, object]) -> Answer | None:
    score = _number(answer.get("score"))
    if score is None:
        return None
    levels = _levels(answer, question)
    supplied = _probabilities(answer)
    options = tuple(Option(label, supplied.get(str(n))) for n, label in enumerate(levels))
    nearest = max(0, min(len(levels) - 1, math.floor(score + 0.5)))
    words = levels[nearest] if levels else f"{score:g}"
    confidence, given = _confidence(answer, options, _score_confidence)
    return Answer(words, confidence, Detail("score", None, score, confidence, given, options, _total(options)))


def _levels(answer: dict[str, object], question: dict[str, object]) -> list[str]:
    """The levels' labels, as they were asked, else as the reply's legend has them."""
    criteria, legend = question.get("criteria"), answer.get("legend")
    values: list[object] = []
    if isinstance(criteria, list):
        values = cast("list[object]", criteria)
    elif isinstance(legend, dict):
        named = cast("dict[str, object]", legend)
        values = [named[str(n)] for n in range(len(named)) if str(n) in named]
    return [_text(value) if isinstance(value, str) else f"level {n}" for n, value in enumerate(values)]


def _confidence(
    answer: dict[str, object], options: tuple[Option, ...], work_out: Callable[[list[float]], float]
) -> tuple[float | None, bool]:
    given = _number(answer.get("confidence"))
    if given is not None:
        return given, True
    known = [option.probability for option in options if option.probability is not None]
    if not known or len(known) != len(options):
        return None, False
    return _rounded(work_out(known)), False


def _choice_confidence(probabilities: list[float]) -> float:
    """(max - 1/n) / (1 - 1/n), as System One's own was measured; one option is certain."""
    n = len(probabilities)
    return 1.0 if n == 1 else max(0.0, (max(probabilities) - 1 / n) / (1 - 1 / n))


def _score_confidence(probabilities: list[float]) -> float:
    """max(0, 1 - sum p|i - mode| / D), D the mean distance from the middle; as System One's own was measured."""
    n = len(probabilities)
    mode = probabilities.index(max(probabilities))
    spread = sum(p * abs(i - mode) for i, p in enumerate(probabilities))
    middle = sum(abs(i - (n - 1) / 2) for i in range(n)) / n
    return 1.0 if n == 1 else max(0.0, 1 - spread / middle)


def _probabilities(answer: dict[str, object]) -> dict[str, float | None]:
    supplied = answer.get("probabilities")
    if not isinstance(supplied, dict):
        return {}
    return {label: _number(value) for label, value in cast("dict[str, object]", supplied).items()}


def _total(options: tuple[Option, ...]) -> float | None:
    known = [option.probability for option in options if option.probability is not None]
    return _rounded(math.fsum(known)) if known else None


def _rounded(worked_out: float) -> float:
    """A number of ours without what binary fractions add to it: 0.66, not 0.6599999999999999."""
    return round(worked_out, 12)


def _text(label: str) -> str:
    """A label that can be written as UTF-8: a lone surrogate, which JSON can spell, becomes a question mark."""
    return label.encode("utf-8", "replace").decode()


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON's integers have no end
        return None
    return number if math.isfinite(number) else None
