"""Which calls a question needs, in which order. Pure: a generator that is told each reply before it names the next.

A visitor's words stand in `state` and nowhere else, but for the names of options, which are what is chosen from, and
the user message of the language model in front. The questions put about them are ours, whole, and describe every
outcome. Thresholds stand apart from the questions.
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
from web import builder, front

VERSION = 1

KIND_OF_QUESTION = "What kind of question is this?"
SAFE_TO_SHOW = "Is this safe to show publicly?"
ANSWER_IS_YES = "A visitor put this question to a public page. Taken on its merits, is the answer yes?"
ANSWER_IS_WHICH = "A visitor put this question to a public page. Which of the options is the best answer to it?"
ANSWER_IS_HOW_MUCH = "A visitor put this question to a public page. How much, on this scale, is the answer to it?"
CLAIM_IS_TRUE = "A visitor put `question` to a public page. Taken on its merits, is `claim` true?"

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


class Models(msgspec.Struct, frozen=True):
    """The models' names as requests ask for them; `front` is the language model in front, empty where there is none."""

    decision: str
    front: str = ""


class Step(msgspec.Struct, frozen=True):
    """A call to be made: its title for people, the bytes, and whether they go to the language model in front."""

    title: str
    body: bytes
    to_front: bool = False


class Done(msgspec.Struct, frozen=True):
    """What the calls came to, and how fit the question is to be listed as far as the model is asked (0 to 1)."""

    conclusion: Conclusion
    fit: float | None


Recipe = Generator[Step, bytes, Done]


def recipe(question: Question, models: Models) -> Recipe:
    """The calls for a question, one after another; send each reply's body in."""
    if question.typed:
        built = builder.asked(question)
        reply = yield Step("The answer", builder.body(question, models.decision))
        return Done(Conclusion(built["type"], read(_answers(reply).get("answer"), built)), None)
    first = yield Step("What kind of question is it?", _first(question, models.decision))
    said = _answers(first)
    kind = _kind(question, said.get("kind"))
    fit = _noul(said.get("fit"))
    options = question.options or (options_in(question.words) if kind == "which" else ())
    state: Any = question.words
    claim = ""
    if kind == "open" or (kind == "which" and not options):
        if not models.front:
            return Done(Conclusion(kind, needs="options" if kind == "which" else "form"), fit)
        form = front.typed((yield Step(front.TITLE, front.chat(question.words, models.front), to_front=True)))
        if form is None:
            return Done(Conclusion(kind, needs="better"), fit)
        state, asked = _of_front(question.words, form)
        claim = form.claim if isinstance(form, front.Claim) else ""
    else:
        asked = _asked(kind, options, question.levels)
    answered = yield Step("The answer", _body(state, models.decision, {"answer": asked}))
    return Done(Conclusion(kind, read(_answers(answered).get("answer"), asked), claim=claim), fit)


def _of_front(words: str, form: front.Typed) -> tuple[Any, dict[str, Any]]:
    """State and question of the answer call, for a question the language model in front has put into a form."""
    match form:
        case front.Options(options):
            return words, _asked("which", options, ())
        case front.Levels(levels):
            return words, _asked("how_much", (), levels)
        case front.Claim(claim):
            return {"question": words, "claim": claim}, {
                "type": "noul",
                "instructions": CLAIM_IS_TRUE,
                "criteria": {
                    "true": "Someone who knows the subject would call the claim true.",
                    "false": "Someone who knows the subject would call the claim false.",
                },
            }


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


def _body(state: Any, model: str, questions: dict[str, Any]) -> bytes:
    whole = {"model": model, "state": state, "questions": questions}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _answers(body: bytes) -> dict[str, Any]:
    """The answers of a reply. It was kept, so it answers what was asked; numbers may have any length."""
    try:
        said: Any = json.loads(body.decode("utf-8-sig", "replace"), parse_int=float)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", said["answers"])


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

_QUESTION_WORD = re.compile(r"(?:which|what|who|whom|where|when|how)\b", re.IGNORECASE)

_AUXILIARY = re.compile(
    r"(?:is|are|am|was|were|do|does|did|can|could|will|would|should|shall|may|must|has|have|had|pick|choose|select)\b",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEFORE_AN_OPTION = _words(
    "is are am was were be it he she they we i you this that better either like prefer love drink eat choose pick"
    " select have want need take buy get use wear play a an the my your our to with from by"
)
"""Words right after which a one-word option begins: "do you like cats or dogs", "is it hot or cold"."""

_CLOSES = re.compile(
    r"(?:bett|wors|bigg|larg|great|small|tall|short|long|high|low|deep|old|young|fast|quick|slow|heavi|light|strong|weak"
    r"|rich|poor|cheap|healthi|saf|warm|cold|hott|cool|hard|eas[iy]|smart|nic|rar|clos)(?:er|est)|best|worse|worst|more"
    r"|most|first|prefer|like|choose|pick|take|want|recommend|do|go|use|buy|get|it|me|us|you|them",
    re.IGNORECASE,
)
"""Last words of a question that is whole before its options are named: "who is taller, ..."."""

_NEVER_BEGINS = _words(
    "is are am was were do does did can could will would should shall may must has have had which what who whom whose"
    " where when how why if in on at for to with from by of as since because after before during than that and but so"
    " then not i you he she it we they there maybe even just rather"
)
_NEVER_INSIDE = _words(
    "is are am was were do does did can could will would should shall may if in on at for to with from by as because"
    " after before during than that when which who today tomorrow tonight yesterday now then first instead please more"
    " most better best"
)
_NEVER = _words(
    "not no else other so more less fewer longer later otherwise similar never nothing something what maybe"
) | {"something else", "anything else"}
_ARTICLE = re.compile(r"(?:an?|the|my|your|our) ", re.IGNORECASE)
_ARTICLE_AND_WORD = re.compile(r"(?:.*\s)?((?:an?|the|my|your|our)\s\S+)", re.IGNORECASE | re.DOTALL)


def options_in(words: str) -> tuple[str, ...]:
    """The options named in a question, or none when they cannot be told for sure.

    Read are "tea, coffee or water?", "...: cash, card or cheque", "Who is taller, Anna or Ben?" and "Should I take the
    train or the bus?". What is not told for sure is left to whoever asks: wrong options would be paid for and believed.
    """
    text = words.strip().rstrip("?!. ")
    if re.search(r"[.!?;]\s|[\n\"“”«»()\[\]]", text):
        return ()
    _, colon, listed = text.rpartition(": ")
    found = re.fullmatch(r"(.+?),?\s+or\s+([^,]+)", listed if colon else text, re.IGNORECASE | re.DOTALL)
    pieces = [] if found is None else [*_pieces(found[1]), *_pieces(found[2])]
    if pieces and (_QUESTION_WORD.match(pieces[0]) or _AUXILIARY.match(pieces[0])):
        pieces = _without_the_asking(pieces)
    elif pieces:
        pieces[0] = re.sub(r"^either\s", "", pieces[0], flags=re.IGNORECASE)
        if not colon and len({len(piece.split()) for piece in pieces}) > 1:
            return ()
    return tuple(pieces) if _certain(pieces, bool(colon)) else ()


def _pieces(text: str) -> list[str]:
    return [piece.strip() for piece in re.split(r",\s*or\s+|,\s+|\s+or\s+", text, flags=re.IGNORECASE)]


def _without_the_asking(pieces: list[str]) -> list[str]:
    """The first piece holds the question itself; what of it is the first option shows in how the others are built."""
    first, others = pieces[0], pieces[1:]
    *_, second, before, last = ["", "", *first.lower().split()]
    # "which is best tea, ..." names tea; "who is the best player, ..." names nobody yet.
    leads = before in _BEFORE_AN_OPTION or (before == "best" and second != "the")
    if len(others) >= 2 and _QUESTION_WORD.match(first):
        lengths = [len(other.split()) for other in others]
        whole = not leads or _CLOSES.fullmatch(last)
        return others if whole and max(lengths) - min(lengths) <= 1 else []
    if all(_ARTICLE_AND_WORD.fullmatch(other) and len(other.split()) == 2 for other in others):
        found = _ARTICLE_AND_WORD.fullmatch(first)
        return [found[1], *others] if found else []
    one_word = all(len(other.split()) == 1 for other in others)
    return [first.split()[-1], *others] if leads and one_word else []


def _certain(pieces: list[str], listed: bool) -> bool:
    """Can all of them be options, and different ones? `listed`: they stand after a colon, where more is allowed."""
    if not 2 <= len(pieces) <= OPTIONS_MAX or len({piece.lower() for piece in pieces}) != len(pieces):
        return False
    if len({bool(_ARTICLE.match(piece)) for piece in pieces}) > 1:
        return False
    for piece in pieces:
        inside = piece.lower().split()
        if not inside or piece.lower() in _NEVER or (not listed and inside[0] in _NEVER_BEGINS):
            return False
        if not listed and _NEVER_INSIDE & set(inside):
            return False
    return True
