"""The built-in model: a System One request in, a System One reply out.

Here: which read-out answers which question, and the numbers of a reply. Never here: a clock, a network, a thread,
a random number, or anything remembered between requests but vectors, which are the same every time.

A rough guess from wording, offline, in English: it does not understand "not", does no arithmetic, knows few facts,
and can be wrong with confidence. Whoever shows its answers must say so.

Source of shapes and formulas: System One's published OpenAPI document; the confidence formulas and output token
counts as measured on the hosted API (choice: (max - 1/n)/(1 - 1/n); score: distance from the mode, against the
spread of an even distribution; 20 tokens per noul, 17 per score, 17 and 7 per option for a choice).
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from archive.actor.mini.asked import Asked, Choice, Noul, Question, Refused, Score, read_request
from archive.actor.mini.embedder import Embedder
from archive.actor.mini.encoder import Floats
from archive.actor.mini.readouts import KINDS, Readouts, probability
from archive.actor.mini.wordpiece import Tokens

# The product's own judgments, each with a read-out of its own; the state is the text that is judged. A recipe chooses
# one by giving exactly this text as the instructions, and for the kind of question exactly the options KINDS.
SAFE_TO_SHOW = "Is this safe to show publicly?"
KIND_OF_QUESTION = "What kind of question is this?"
IS_YES_NO = "Is this a yes/no question?"

# With these the state is itself the question: it is answered as if it stood in the instructions, about no text.
ANSWER_IS_YES = "A visitor put this question to a public page. Taken on its merits, is the answer yes?"
ANSWER_IS_WHICH = "A visitor put this question to a public page. Which of the options is the best answer to it?"
ANSWER_IS_HOW_MUCH = "A visitor put this question to a public page. How much, on this scale, is the answer to it?"
QUESTION_IS_THE_STATE = frozenset((ANSWER_IS_YES, ANSWER_IS_WHICH, ANSWER_IS_HOW_MUCH))

# A general yes or no never claims more than this: it is right two times out of three without a text to look at, and
# four out of five with one.
NOUL_MIN, NOUL_MAX = 0.10, 0.90
# A text that goes on behind what was read is never called safe: the harm may stand where nobody looked.
UNREAD_SAFE_MAX = 0.40

# Different texts read for one request, in tokens: about 15 seconds of one core. More is refused, whatever is kept.
REQUEST_TOKENS_MAX = 32_768
DIGITS = 4  # processors differ in the sixth decimal
RELEASED = "2026-11-30"
DESCRIPTION = (
    "Built-in model: a rough guess from wording, offline, English, at most 256 tokens of state. It does not "
    "understand negation, does no arithmetic and knows few facts. Connect a key for Jev."
)

Vectors = dict[str, Floats]


class State(NamedTuple):
    """What a request is about; no vector if there is nothing to read in it, not whole if it went on unread."""

    text: str
    vector: Floats | None
    whole: bool


class Mini:
    """The model. Synchronous, deterministic, for one thread at a time; about 100 MB, loaded in a tenth of a second."""

    def __init__(self, embedder: Embedder, readouts: Readouts) -> None:
        self._embedder = embedder
        self._readouts = readouts
        weights, heads = embedder.weights_sha256, readouts.sha256
        self.name: str = hashlib.sha256(f"{weights} {heads}".encode()).hexdigest()[:8]
        self.model: str = f"askonce-mini-{weights[:8]}-{heads[:8]}"

    @classmethod
    def load(cls) -> "Mini":
        """The model over the installed weights. Raises RuntimeError if they are not the pinned ones."""
        return cls(Embedder.load(), Readouts.load())

    def reply(self, method: str, body: bytes) -> tuple[int, bytes]:
        """(HTTP status, JSON): POST answers the request in `body`, GET lists the models. Raises for no bytes at all.

        Any model name is accepted, since clients ask for `jev-latest` unless told otherwise; `model` in the reply
        names what answered.
        """
        if method == "GET":
            return 200, _json({"models": self._models()})
        if method != "POST":
            return 405, _json({"detail": "Method Not Allowed"})
        try:
            return 200, _json(self._answered(read_request(body)))
        except Refused as refused:
            return refused.status, _json({"detail": refused.detail})

    def _models(self) -> list[dict[str, str]]:
        return [{"name": name, "description": DESCRIPTION, "release_date": RELEASED} for name in ("mini", self.model)]

    def _answered(self, asked: Asked) -> dict[str, object]:
        tokens = self._read(asked)
        vectors = dict(zip(tokens, self._embedder.vectors(list(tokens.values())), strict=True))
        read = tokens[asked.state]
        state = State(asked.state, vectors[asked.state] if read.pieces else None, read.whole)
        answers = {key: self._answer(state, question, vectors) for key, question in asked.questions.items()}
        texts = [text for question in asked.questions.values() for text in question.texts]
        usage = {
            "input_tokens": read.pieces + sum(tokens[text].pieces for text in texts),
            "output_tokens": sum(_output_tokens(question) for question in asked.questions.values()),
        }
        return {"model": self.model, "answers": answers, "usage": usage}

    def _read(self, asked: Asked) -> dict[str, Tokens]:
        """Every different text of a request, with its tokens. Raises Refused when that is more than one may ask."""
        tokens: dict[str, Tokens] = {}
        total = 0
        texts = (text for question in asked.questions.values() for text in question.texts)
        for text in (asked.state, *texts):
            if text in tokens:
                continue
            tokens[text] = self._embedder.read(text)
            total += len(tokens[text].ids)
            if total > REQUEST_TOKENS_MAX:
                raise Refused(
                    400,
                    f"Too much to read at once. The built-in model takes at most {REQUEST_TOKENS_MAX} tokens of "
                    "different texts; ask fewer questions at a time.",
                )
        return tokens

    def _answer(self, state: State, question: Question, vectors: Vectors) -> dict[str, object]:
        match question:
            case Noul():
                return {"type": "noul", "noul": round(self._noul(state, question, vectors), DIGITS)}
            case Choice():
                return self._choice(state, question, vectors)
            case Score():
                return self._score(state, question, vectors)

    def _noul(self, state: State, question: Noul, vectors: Vectors) -> float:
        if state.vector is not None and question.instructions == SAFE_TO_SHOW:
            safe = self._readouts.safe(state.vector)
            return safe if state.whole else min(safe, UNREAD_SAFE_MAX)
        if state.vector is not None and question.instructions == IS_YES_NO:
            return float(self._readouts.kinds(state.vector, state.text)[KINDS.index("yes_no")])
        text, asked = _text_and_question(state, question, vectors)
        votes = [self._fact(asked, question, vectors)] if text is None else self._votes(text, asked, question, vectors)
        return min(NOUL_MAX, max(NOUL_MIN, probability(sum(votes) / len(votes))))

    def _fact(self, asked: Floats | None, question: Noul, vectors: Vectors) -> float:
        """With no text to look at, the question itself must do; a description only where there is no question."""
        if asked is not None:
            return self._readouts.fact(asked)
        if question.true:
            return self._readouts.fact(vectors[question.true])
        return -self._readouts.fact(vectors[question.false])

    def _votes(self, text: Floats, asked: Floats | None, question: Noul, vectors: Vectors) -> list[float]:
        """One log-odds from the question, one from what is described of its outcomes."""
        votes = [] if asked is None else [self._readouts.about(text, asked)]
        if question.true and question.false:
            votes.append(self._readouts.contrast(text, vectors[question.true], vectors[question.false]))
        elif question.true:
            votes.append(self._readouts.about(text, vectors[question.true]))
        elif question.false:
            votes.append(-self._readouts.about(text, vectors[question.false]))
        return votes

    def _choice(self, state: State, question: Choice, vectors: Vectors) -> dict[str, object]:
        names = list(question.options)
        asks_kind = question.instructions == KIND_OF_QUESTION and set(names) == set(KINDS)
        if asks_kind and state.vector is not None:
            by_kind: dict[str, float] = dict(
                zip(KINDS, self._readouts.kinds(state.vector, state.text).tolist(), strict=True)
            )
            supplied = [by_kind[name] for name in names]
        else:
            text, asked = _text_and_question(state, question, vectors)
            options = [vectors[option] for option in question.options.values()]
            supplied = self._readouts.options(self._readouts.choice_blend, text, asked, options).tolist()
        shown = [round(value, DIGITS) for value in supplied]
        return {
            "type": "choice",
            "choice": names[_mode(shown)],
            "confidence": choice_confidence(shown),
            "probabilities": dict(zip(names, shown, strict=True)),
        }

    def _score(self, state: State, question: Score, vectors: Vectors) -> dict[str, object]:
        text, asked = _text_and_question(state, question, vectors)
        levels = [vectors[level] for level in question.levels]
        supplied: list[float] = self._readouts.options(self._readouts.score_blend, text, asked, levels).tolist()
        shown = [round(value, DIGITS) for value in supplied]
        return {
            "type": "score",
            "score": round(sum(place * value for place, value in enumerate(shown)), DIGITS),
            "confidence": score_confidence(shown),
            "legend": {str(place): level for place, level in enumerate(question.legend)},
            "probabilities": {str(place): value for place, value in enumerate(shown)},
        }


def _text_and_question(state: State, question: Question, vectors: Vectors) -> tuple[Floats | None, Floats | None]:
    """What to look at and what is asked about it, either of which may be missing."""
    if question.instructions in QUESTION_IS_THE_STATE and state.vector is not None:
        return None, state.vector
    return state.vector, vectors[question.instructions] if question.instructions else None


def choice_confidence(probabilities: Sequence[float]) -> float:
    """0 where every option is as likely, 1 where one is certain; a forced choice is 1. Rounded."""
    count = len(probabilities)
    if count == 1:
        return 1.0
    confidence = (max(probabilities) - 1 / count) / (1 - 1 / count)
    return round(min(1.0, max(0.0, confidence)), DIGITS)


def score_confidence(probabilities: Sequence[float]) -> float:
    """1 less the mean distance from the likeliest level, in units of an even distribution's spread. Rounded."""
    count = len(probabilities)
    if count == 1:
        return 1.0
    mode = _mode(probabilities)
    distance = sum(value * abs(place - mode) for place, value in enumerate(probabilities))
    spread = sum(abs(place - (count - 1) / 2) for place in range(count)) / count
    return round(min(1.0, max(0.0, 1 - distance / spread)), DIGITS)


def _mode(probabilities: Sequence[float]) -> int:
    """The place of the largest; the first of equals, as shown (after rounding)."""
    return max(range(len(probabilities)), key=lambda place: probabilities[place])


def _output_tokens(question: Question) -> int:
    match question:
        case Noul():
            return 20
        case Choice():
            return 17 + 7 * len(question.options)
        case Score():
            return 17


def _json(value: object) -> bytes:
    # Half of a surrogate pair can come in as an escape and has no UTF-8; backslashreplace writes that escape again.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "backslashreplace"
    )
