"""Makes heads.npz: `python -m archive.actor.mini.training.fit`. Prints what cross-validation says of each read-out.

Here: ridge regressions on vectors, and their calibration. Never here: a random number (folds are taken by counting),
or a text from tests/quality. The numbers are rounded so that the same bytes come out on every run; the archive
has fixed dates and names in order.
"""

import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from archive.actor.mini.embedder import Embedder
from archive.actor.mini.encoder import Floats
from archive.actor.mini.readouts import HEADS, KINDS, Blend, Means, centred_cosine, likeness, signs_of_form, softmax

HERE = Path(__file__).parent
FOLDS = 10
# Strengths of the ridge and what may be tried for a blend; the strengths were chosen by cross-validation.
FACT_RIDGE, SAFE_RIDGE, KIND_RIDGE = 1.0, 1.0, 1.0
SHARPNESS = (5.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0)
QUESTION_SHARES = (0.0, 0.15, 0.3, 0.45)
MEAN_SHARES = (0.0, 0.5, 1.0)

Doubles = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Report = Callable[[str], None]


class Example(NamedTuple):
    """A text, a question about it, and whether the answer is yes; `family` holds what must not be split."""

    text: str
    question: str
    answer: bool
    family: int


class Ranked(NamedTuple):
    """A text, a question, the options as put before the model, and the place of the right one."""

    text: str
    question: str
    options: list[str]
    right: int


def make_heads(embedder: Embedder, report: Report) -> bytes:
    """The bytes of heads.npz, from the files beside this one. Takes some ten seconds."""

    def vectors(texts: Sequence[str]) -> Doubles:
        return np.stack(embedder.vectors([embedder.read(text) for text in texts])).astype(np.float64)

    examples = _examples()
    means = Means(
        _mean_of(vectors, (example.text for example in examples)),
        _mean_of(vectors, (example.question for example in examples)),
    )
    heads = {
        "text_mean": means.text,
        "question_mean": means.question,
        "about": _fit_about(examples, vectors, means, report),
        "fact": _fit_fact(vectors, report),
        "safe": _fit_safe(vectors, report),
        "kind": _fit_kind(vectors, report),
        "choice_blend": _fit_blend("choice", embedder, means, report),
        "score_blend": _fit_blend("score", embedder, means, report),
    }
    return pack(heads)


# The read-outs


def _fit_fact(vectors: Callable[[Sequence[str]], Doubles], report: Report) -> Doubles:
    """Yes or no with no text: line n of the true and of the false file are about the same thing, so kept together."""
    true, false = _lines("fact_true.txt"), _lines("fact_false.txt")
    more = [row for row in _rows("dev.jsonl") if row["group"] == "yesno"]
    texts = [*true, *false, *(row["instructions"] for row in more)]
    answers = np.array([True] * len(true) + [False] * len(false) + [row["expected"] for row in more])
    families = np.array([*range(len(true)), *range(len(false)), *range(len(more))])
    features = vectors(texts)
    guessed = _cross_validated(features, _signs(answers), families, FACT_RIDGE)[:, 0]
    report(f"fact: {_share(guessed, answers)}")
    return _calibrated(features, answers, guessed, FACT_RIDGE)


def _fit_safe(vectors: Callable[[Sequence[str]], Doubles], report: Report) -> Doubles:
    safe, unsafe = _lines("safe.txt"), _lines("unsafe.txt")
    answers = np.array([True] * len(safe) + [False] * len(unsafe))
    features = vectors([*safe, *unsafe])
    guessed = _cross_validated(features, _signs(answers), np.arange(len(answers)), SAFE_RIDGE)[:, 0]
    report(f"safe: {_share(guessed, answers)}")
    return _calibrated(features, answers, guessed, SAFE_RIDGE)


def _fit_kind(vectors: Callable[[Sequence[str]], Doubles], report: Report) -> Doubles:
    lines = [_lines(f"kind_{kind}.txt") for kind in KINDS]
    texts = [text for kind in lines for text in kind]
    right = np.repeat(np.arange(len(KINDS)), [len(kind) for kind in lines])
    features = np.concatenate([vectors(texts), np.stack([signs_of_form(text) for text in texts])], axis=1)
    targets = np.eye(len(KINDS))[right] * 2 - 1
    guessed = _cross_validated(features, targets, np.arange(len(texts)), KIND_RIDGE)
    report(f"kind: {int((guessed.argmax(axis=1) == right).sum())} of {len(texts)} right in cross-validation")

    def loss(sharpness: float) -> float:
        return sum(_surprise(sharpness * row, place) for row, place in zip(guessed, right.tolist(), strict=True))

    weights, offsets = _ridge(features, targets, KIND_RIDGE)
    return np.concatenate([weights, offsets[None]]) * min((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), key=loss)


def _fit_about(
    examples: list[Example], vectors: Callable[[Sequence[str]], Doubles], means: Means, report: Report
) -> Doubles:
    """Slope and offset for the centred cosine; every family of questions, and in it yes and no, weigh the same."""
    texts = vectors([example.text for example in examples]) - means.text
    questions = vectors([example.question for example in examples]) - means.question
    cosines = np.array([centred_cosine(*pair) for pair in zip(texts, questions, strict=True)])
    answers = np.array([example.answer for example in examples])
    families = np.array([example.family for example in examples])
    weights = np.zeros(len(examples))
    for family in np.unique(families):
        for side in (True, False):
            chosen = (families == family) & (answers == side)
            weights[chosen] = 1 / max(1, int(chosen.sum()))
    slope, offset = _logistic(cosines, answers, weights / weights.sum())
    right = (slope * cosines + offset > 0) == answers
    report(f"about: {float((weights * right).sum() / weights.sum()):.3f} right (two numbers fitted, all sides alike)")
    return np.array([slope, offset])


def _fit_blend(kind: str, embedder: Embedder, means: Means, report: Report) -> Doubles:
    """The blend of a small grid under which the right options are least surprising."""

    def vectors(texts: Iterable[str]) -> list[Floats]:
        return embedder.vectors([embedder.read(text) for text in texts])

    examples = _ranked(kind)
    prepared = [(*vectors([row.text, row.question]), vectors(row.options), row.right) for row in examples]

    def outcome(blend: Blend) -> tuple[float, int]:
        surprise, hits = 0.0, 0
        for text, question, options, right in prepared:
            likes = likeness(blend, means, text, question, options)
            surprise += _surprise(blend.sharpness * likes, right)
            hits += int(likes.argmax()) == right
        return surprise, hits

    blends = [Blend(*numbers) for numbers in product(SHARPNESS, QUESTION_SHARES, MEAN_SHARES)]
    outcomes = {blend: outcome(blend) for blend in blends}
    best = min(blends, key=lambda blend: outcomes[blend][0])
    surprise, hits = outcomes[best]
    report(f"{kind}: {hits} of {len(examples)} right with {tuple(best)}; mean surprise {surprise / len(examples):.3f}")
    return np.array(best)


# The arithmetic


def _ridge(features: Doubles, targets: Doubles, strength: float) -> tuple[Doubles, Doubles]:
    """Weights (features, targets) and offsets (targets,) of a ridge regression, solved among the examples."""
    centre: Doubles = features.mean(axis=0)
    level: Doubles = targets.mean(axis=0)
    centred = features - centre
    square: Doubles = centred @ centred.T + strength * np.eye(len(features))
    solved = np.linalg.solve(square, targets - level).astype(np.float64)
    weights: Doubles = centred.T @ solved
    return weights, level - centre @ weights


def _cross_validated(features: Doubles, targets: Doubles, families: npt.NDArray[np.intp], strength: float) -> Doubles:
    """For each example the guess of a regression that has not seen its family."""
    guessed = np.zeros_like(targets)
    for fold in range(FOLDS):
        held = families % FOLDS == fold
        weights, offsets = _ridge(features[~held], targets[~held], strength)
        guessed[held] = features[held] @ weights + offsets
    return guessed


def _calibrated(features: Doubles, answers: Truths, guessed: Doubles, strength: float) -> Doubles:
    """Weights and one offset whose sum is a log-odds, scaled by what cross-validation found the guesses worth."""
    weights, offsets = _ridge(features, _signs(answers), strength)
    slope, offset = _logistic(guessed, answers, np.full(len(answers), 1 / len(answers)))
    return np.concatenate([weights[:, 0] * slope, offsets * slope + offset])


def _logistic(values: Doubles, answers: Truths, weights: Doubles) -> tuple[float, float]:
    """Slope and offset that turn values into log-odds (Platt's scaling, by Newton's method)."""
    slope, offset = 1.0, 0.0
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(slope * values + offset, -50, 50)))
        error, spread = weights * (chance - answers), weights * chance * (1 - chance)
        gradient = np.array([(error * values).sum(), error.sum()])
        mixed = (spread * values).sum()
        curvature = np.array([[(spread * values * values).sum() + 1e-6, mixed], [mixed, spread.sum() + 1e-9]])
        step = np.linalg.solve(curvature, gradient)
        slope, offset = slope - float(step[0]), offset - float(step[1])
        if float(np.abs(step).max()) < 1e-10:
            break
    return slope, offset


def _surprise(scores: Doubles, right: int) -> float:
    return -float(np.log(softmax(scores)[right]))


def _signs(answers: Truths) -> Doubles:
    return np.where(answers, 1.0, -1.0)[:, None]


def _share(guessed: Doubles, answers: Truths) -> str:
    return f"{int(((guessed > 0) == answers).sum())} of {len(answers)} right in cross-validation"


def _mean_of(vectors: Callable[[Sequence[str]], Doubles], texts: Iterable[str]) -> Doubles:
    # Rounded here, not only when packed: what is fitted on top must see what a running server will see.
    return vectors(sorted(set(texts))).mean(axis=0).round(4)


# The files


def pack(heads: dict[str, Doubles]) -> bytes:
    """An .npz whose bytes depend on nothing but its numbers: float32 of few decimals, stored, dated 1980."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(heads):
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3  # the same on every system
            stored = io.BytesIO()
            decimals = 4 if name.endswith("_mean") else 2
            np.lib.format.write_array(stored, heads[name].round(decimals).astype("<f4"), version=(1, 0))
            archive.writestr(entry, stored.getvalue())
    return packed.getvalue()


def _examples() -> list[Example]:
    """Topics times families of questions, and some single pairs; a family passes over topics that are arguable."""
    topics: dict[str, list[str]] = {row["topic"]: row["texts"] for row in _rows("about_texts.jsonl")}
    examples: list[Example] = []
    for family, row in enumerate(_rows("about_questions.jsonl")):
        for topic, texts in topics.items():
            if topic not in row["skip"]:
                pairs = product(texts, row["questions"])
                examples += [Example(text, question, topic in row["yes"], family) for text, question in pairs]
    families: dict[str, int] = {}
    for row in _rows("about_pairs.jsonl"):
        family = families.setdefault(row["question"], 1_000 + len(families))
        examples.append(Example(row["text"], row["question"], row["answer"], family))
    return examples


def _ranked(kind: str) -> list[Ranked]:
    """Choices or scores, from their own file and from dev.jsonl."""
    rows = [(row["instructions"], row["criteria"], row["expected"]) for row in _rows(f"{kind}s.jsonl")]
    rows += [
        (row["instructions"], row["criteria"], {row["state"]: row["expected"]})
        for row in _rows("dev.jsonl")
        if row["group"] == kind
    ]
    ranked: list[Ranked] = []
    for question, criteria, expected in rows:
        options = criteria
        if kind == "choice":
            options = [f"{name}: {described}" if described else name for name, described in criteria.items()]
        for text, right in expected.items():
            place = list(criteria).index(right) if kind == "choice" else right
            ranked.append(Ranked(text, question, options, place))
    return ranked


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _lines(name)]


def _lines(name: str) -> list[str]:
    return (HERE / name).read_text(encoding="utf-8").splitlines()


def main() -> None:
    """Fits every read-out and writes heads.npz beside the package's code."""
    HEADS.write_bytes(make_heads(Embedder.load(), lambda line: print(line, file=sys.stderr)))


if __name__ == "__main__":
    main()
