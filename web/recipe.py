"""Which calls a question needs, in which order. Pure: a generator that is told each reply before it names the next.

A visitor's words stand in `state` and nowhere else, but for the names of options, which are what is chosen from. The
questions put about them are ours, whole, and describe every outcome. Thresholds stand apart from the questions.
A change of any byte sent is a new VERSION: answers of older ones stay on their pages as what they are.
What must never be here: the record, a clock, HTML.
"""

import json
import re
from collections.abc import Generator
from typing import Any, cast

import msgspec

from archive.answer import read
from archive.messages import Conclusion, Question

VERSION = 1

KIND_OF_QUESTION = "What kind of question is this?"
SAFE_TO_SHOW = "Is this safe to show publicly?"
ANSWER_IS_YES = "A visitor put this question to a public page. Taken on its merits, is the answer yes?"
ANSWER_IS_WHICH = "A visitor put this question to a public page. Which of the options is the best answer to it?"
ANSWER_IS_HOW_MUCH = "A visitor put this question to a public page. How much, on this scale, is the answer to it?"

KINDS = {
    "yes_no": "The question can be answered yes or no.",
    "which": "The question asks to pick one of several named options.",
    "how_much": "The question asks for a degree, amount or rating.",
    "open": "The question is open-ended and needs free text.",
}
LEVELS = ("not at all", "a little", "somewhat", "quite", "very much")

FIT_MIN = 0.5
"""From which probability on a question is fit to be listed, as far as the model is asked."""

OPTIONS_MAX, LEVELS_MAX = 20, 10
"""What a visitor may type: options that a page can show, and as many levels as the API takes."""


class Step(msgspec.Struct, frozen=True):
    """A call to be made: its title for people, and the bytes."""

    title: str
    body: bytes


class Done(msgspec.Struct, frozen=True):
    """What the calls came to, and how fit the question is to be listed as far as the model is asked (0 to 1)."""

    conclusion: Conclusion
    fit: float | None


Recipe = Generator[Step, bytes, Done]


def recipe(question: Question, model: str) -> Recipe:
    """The calls for a question, one after another; send each reply's body in."""
    first = yield Step("What kind of question is it?", _first(question, model))
    said = _answers(first)
    kind = _kind(question, said.get("kind"))
    fit = _noul(said.get("fit"))
    options = question.options or (options_in(question.words) if kind == "which" else ())
    if kind == "open" or (kind == "which" and not options):
        return Done(Conclusion(kind, needs="options" if kind == "which" else "form"), fit)
    asked = _asked(kind, options, question.levels)
    second = yield Step("The answer", _body(question.words, model, {"answer": asked}))
    return Done(Conclusion(kind, read(_answers(second).get("answer"), asked)), fit)


def _first(question: Question, model: str) -> bytes:
    return _body(
        question.words,
        model,
        {
            "kind": {"type": "choice", "instructions": KIND_OF_QUESTION, "criteria": KINDS},
            "fit": {
                "type": "noul",
                "instructions": SAFE_TO_SHOW,
                "criteria": {
                    "true": "Harmless and free of private data.",
                    "false": "Private, hateful, violent or dangerous.",
                },
            },
        },
    )


def _asked(kind: str, options: tuple[str, ...], levels: tuple[str, ...]) -> dict[str, Any]:
    if kind == "which":
        return {"type": "choice", "instructions": ANSWER_IS_WHICH, "criteria": dict.fromkeys(options)}
    if kind == "how_much":
        return {"type": "score", "instructions": ANSWER_IS_HOW_MUCH, "criteria": list(levels or LEVELS)}
    return {
        "type": "noul",
        "instructions": ANSWER_IS_YES,
        "criteria": {
            "true": "Someone who knows the subject would say yes.",
            "false": "Someone who knows the subject would say no.",
        },
    }


def _body(words: str, model: str, questions: dict[str, Any]) -> bytes:
    whole = {"model": model, "state": words, "questions": questions}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _answers(body: bytes) -> dict[str, Any]:
    """The answers of a reply. It was kept, so it answers what was asked."""
    return cast("dict[str, Any]", json.loads(body.decode("utf-8-sig", "replace"))["answers"])


def _kind(question: Question, said: Any) -> str:
    """What kind it is: as typed, else as the model says."""
    if question.options:
        return "which"
    if question.levels:
        return "how_much"
    answer = read(said, None)
    return answer.words if answer is not None else "open"


def _noul(said: Any) -> float | None:
    answer = read(said, None)
    return answer.detail.probability if answer is not None and answer.detail is not None else None


# -- options that stand in the question ---------------------------------------------------------------------------

_ASKING = (
    r"(?:which|what|who|where|when|how|is|are|am|was|were|do|does|did|can|could|will|would|should|shall|may|has|have"
    r"|had|pick|choose|select)\b"
)
_ARTICLE = re.compile(r".*\b((?:an?|the|my|your|our) .+)", re.IGNORECASE | re.DOTALL)
_NOT_AN_OPTION = {"not", "no", "else", "something else", "other", "so"}


def options_in(words: str) -> tuple[str, ...]:
    """The options named in a question, or none when they cannot be told for sure.

    Read are "tea, coffee or water?", "...: cash, card or cheque", "Who is taller, Anna or Ben?" and "Should I take the
    train or the bus?". What is not told for sure is left to whoever asks.
    """
    text = words.strip().rstrip("?!. ")
    _, colon, listed = text.rpartition(":")
    pieces = [piece.strip() for piece in re.split(r",\s*or\s+|,\s+|\s+or\s+", listed if colon else text, flags=re.I)]
    if len(pieces) < 2 or not re.search(r"\sor\s", f" {listed} ", re.IGNORECASE):
        return ()
    if not colon and re.match(_ASKING, text, re.IGNORECASE):
        pieces = _without_the_asking(pieces)
    options = tuple(dict.fromkeys(piece for piece in pieces if piece))
    certain = 2 <= len(options) <= OPTIONS_MAX and len(options) == len(pieces)
    return options if certain and not _NOT_AN_OPTION & {option.lower() for option in options} else ()


def _without_the_asking(pieces: list[str]) -> list[str]:
    """The first piece holds the question itself; what of it is the first option shows in how the others are built."""
    first, others = pieces[0], pieces[1:]
    if len(others) >= 2 and re.match(r"(which|what|who|where|when|how)\b", first, re.IGNORECASE):
        return others
    articles = [_ARTICLE.fullmatch(" " + other) for other in others]
    if all(articles):
        found = _ARTICLE.fullmatch(first)
        return [found[1], *others] if found else []
    length = max(len(other.split()) for other in others)
    return [" ".join(first.split()[-length:]), *others] if length == 1 else []
