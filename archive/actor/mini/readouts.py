"""What is read out of vectors: a few thousand trained numbers and the arithmetic over them.

Here: probabilities from vectors. Never here: a request, a reply, rounding, or how the numbers were trained
(training/fit.py, which writes heads.npz).
"""

import hashlib
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archive.actor.mini.encoder import Floats

HEADS = Path(__file__).with_name("heads.npz")
KINDS = ("yes_no", "which", "how_much", "open")

Doubles = npt.NDArray[np.float64]

# Words a question of some kind begins with. The vector of a question tells its topic better than its form, so the
# read-out for the kind of question also sees a few signs of form.
ASKING = frozenset(
    {"is", "are", "am", "was", "were", "do", "does", "did", "can", "could", "will", "would", "should", "shall", "may"}
    | {"might", "must", "has", "have", "had", "isn", "aren", "wasn", "weren", "don", "doesn", "didn", "won", "wouldn"}
    | {"shouldn", "couldn", "hasn", "haven"}
)
AFTER_HOW = ASKING | {"to", "about", "come", "i"}  # "How do I ...": not a matter of degree
RATING = re.compile(r"\b(rate|grade|score|scale|rating|estimate|percentage|degree|extent)\b|\d (to|and) \d")
SIGN_WEIGHT = 0.3  # beside a vector of length 1; chosen by cross-validation


class Blend(NamedTuple):
    """How options are compared with a text: how sharply, less what they owe to the question and to any text."""

    sharpness: float
    question_share: float
    mean_share: float


class Means(NamedTuple):
    """The vector of no text, and of no question, in particular: what all of them have in common."""

    text: Doubles
    question: Doubles


class Readouts:
    """The trained numbers. Vectors go in as float32 (384,); sums are done in float64."""

    def __init__(self, heads: bytes) -> None:
        """Takes the bytes of heads.npz. Raises KeyError or ValueError for another file."""
        self.sha256 = hashlib.sha256(heads).hexdigest()
        with np.load(io.BytesIO(heads), allow_pickle=False) as stored:
            numbers: dict[str, Doubles] = {name: stored[name].astype(np.float64) for name in stored.files}
        self.means = Means(numbers["text_mean"], numbers["question_mean"])
        self._fact = numbers["fact"]
        self._about = numbers["about"]
        self._safe = numbers["safe"]
        self._kind = numbers["kind"]
        self.choice_blend = Blend(*numbers["choice_blend"].tolist())
        self.score_blend = Blend(*numbers["score_blend"].tolist())

    @classmethod
    def load(cls) -> "Readouts":
        """The read-outs that lie beside this file."""
        return cls(HEADS.read_bytes())

    def fact(self, question: Floats) -> float:
        """How far a question without a text leans to yes: a log-odds, 0 is undecided."""
        return float(self._fact[:-1] @ question + self._fact[-1])

    def about(self, text: Floats, question: Floats) -> float:
        """How far a question (or a statement) fits a text: a log-odds, 0 is undecided."""
        slope, offset = self._about.tolist()
        return slope * centred_cosine(text - self.means.text, question - self.means.question) + offset

    def contrast(self, text: Floats, true: Floats, false: Floats) -> float:
        """Which of two described outcomes a text is nearer to: a log-odds, above 0 for `true`."""
        return self.choice_blend.sharpness * float((text - self.means.text) @ (true - false))

    def safe(self, text: Floats) -> float:
        """The probability that a text may be shown publicly."""
        return probability(float(self._safe[:-1] @ text + self._safe[-1]))

    def kinds(self, vector: Floats, text: str) -> Doubles:
        """The probabilities of KINDS, in that order, for a question given as a vector and as its text."""
        features = np.concatenate([vector, signs_of_form(text)])
        return softmax(features @ self._kind[:-1] + self._kind[-1])

    def options(self, blend: Blend, text: Floats | None, question: Floats | None, options: Sequence[Floats]) -> Doubles:
        """The probabilities of options or levels. Without a text the question is the text; without both, all alike."""
        return softmax(blend.sharpness * likeness(blend, self.means, text, question, options))


def likeness(
    blend: Blend, means: Means, text: Floats | None, question: Floats | None, options: Sequence[Floats]
) -> Doubles:
    """How like the text each option is, beyond what it owes to the question and to any text (options,)."""
    if text is not None:
        direction = text - blend.mean_share * means.text
        if question is not None:
            direction = direction - blend.question_share * question
    elif question is not None:
        direction = question - blend.mean_share * means.question
    else:
        return np.zeros(len(options))
    return np.array([float(option @ direction) for option in options])


def signs_of_form(text: str) -> Doubles:
    """Nine signs of how a question is built, each 0 or SIGN_WEIGHT; English only."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    first, second = (*words[:2], "", "")[:2]
    alternatives, asks = "or" in words, first in ASKING
    plain_how = first == "how" and second in AFTER_HOW
    signs = (
        asks and not alternatives,
        asks and alternatives,
        alternatives and not asks,
        "which" in words[:3],
        plain_how,
        "how" in words[:3] and not plain_how,
        first in ("what", "why", "when", "where", "who", "whose"),
        RATING.search(text.lower()) is not None,
        text.rstrip().endswith("?"),
    )
    return SIGN_WEIGHT * np.array(signs, np.float64)


def centred_cosine(left: npt.NDArray[np.floating], right: npt.NDArray[np.floating]) -> float:
    """The cosine of two vectors from which the mean of their kind has been taken; 0 if one is the mean."""
    length = math.sqrt(float(left @ left) * float(right @ right))
    return float(left @ right) / length if length > 0 else 0.0


def probability(log_odds: float) -> float:
    """The logistic function, without overflow."""
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, log_odds))))


def softmax(scores: Doubles) -> Doubles:
    """Probabilities that grow with the scores and sum to 1."""
    weights: Doubles = np.exp(scores - scores.max())
    return weights / weights.sum()
