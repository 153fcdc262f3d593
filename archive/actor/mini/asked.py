"""Reads a System One request, or says what is wrong with it the way System One says it.

Here: bytes in, questions or a refusal out. Never here: a vector, an answer, or a refusal of something that the
hosted API is known to accept (one option, one level, an option named "", stray outcomes of a noul, any model name).

Source of shapes and wording: System One's published OpenAPI document and replies seen from the hosted API. The
422 list is FastAPI's; the 400 details are strings, or an object for what this model cannot do at all.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeGuard

BODY_BYTES_MAX = 4 << 20  # ten times what the hosted API reads (64k tokens); more is refused unread
NESTING_MAX = 100  # levels of JSON; far below where a reader of JSON runs out of stack
QUESTIONS_MAX = 1_024
OPTIONS_MAX, LEVELS_MAX = 255, 10  # System One's own limits

NO_IMAGES = "The built-in model does not see images: it answers noul, choice and score questions about text only."
NESTED = f"Nested too deeply. The built-in model reads at most {NESTING_MAX} levels of JSON."
TYPES = "'noul', 'choice', 'score'"

Loc = tuple[str | int, ...]


class Refused(Exception):
    """A request that gets no answer: an HTTP status and what stands under `detail`."""

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Noul:
    """Yes or no. An empty text was not given; at least one of the three is."""

    instructions: str
    true: str
    false: str

    @property
    def texts(self) -> list[str]:
        return [text for text in (self.instructions, self.true, self.false) if text]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options: name -> how it is put before the model, in the order sent."""

    instructions: str
    options: dict[str, str]

    @property
    def texts(self) -> list[str]:
        return [*([self.instructions] if self.instructions else []), *self.options.values()]


@dataclass(frozen=True, slots=True)
class Score:
    """A place on a scale: the levels as text, and as they were sent (the legend repeats them)."""

    instructions: str
    levels: list[str]
    legend: list[object]

    @property
    def texts(self) -> list[str]:
        return [*([self.instructions] if self.instructions else []), *self.levels]


Question = Noul | Choice | Score


@dataclass(frozen=True, slots=True)
class Asked:
    """A whole request: the state as text (empty if there is none to speak of) and the questions in their order."""

    state: str
    questions: dict[str, Question] = field(default_factory=dict[str, Question])


def read_request(body: bytes) -> Asked:
    """The questions in a request body. Raises Refused, and nothing else, for any bytes."""
    if len(body) > BODY_BYTES_MAX:
        raise Refused(400, f"Request too large. The built-in model reads at most {BODY_BYTES_MAX} bytes.")
    request = _parsed(body)
    if not _is_map(request):
        what = "Input should be a valid dictionary or object to extract fields from"
        _invalid("model_attributes_type", (), what, request)
    if request.get("assets"):
        _unable(NO_IMAGES)
    state = _text(_required(request, "state", ()), ("state",))
    questions = _required(request, "questions", ())
    if not _is_map(questions):
        _invalid("dict_type", ("questions",), "Input should be a valid dictionary", questions)
    if not questions:
        what = "Dictionary should have at least 1 item after validation, not 0"
        ctx = {"field_type": "Dictionary", "min_length": 1, "actual_length": 0}
        _invalid("too_short", ("questions",), what, questions, ctx)
    if len(questions) > QUESTIONS_MAX:
        raise Refused(400, f"Too many questions. The built-in model takes at most {QUESTIONS_MAX} at a time.")
    return Asked(state, {key: _question(key, value) for key, value in questions.items()})


def _question(key: str, value: object) -> Question:
    at: Loc = ("questions", key)
    if not key:
        raise Refused(400, "Question key cannot be empty.")
    if not _is_map(value):
        what = "Input should be a valid dictionary or object to extract fields from"
        _invalid("model_attributes_type", at, what, value)
    if "type" not in value:
        what = "Unable to extract tag using discriminator 'type'"
        _invalid("union_tag_not_found", at, what, value, {"discriminator": "'type'"})
    match value["type"]:
        case "noul":
            return _noul(key, value, (*at, "noul"))
        case "choice":
            return _choice(key, value, (*at, "choice"))
        case "score":
            return _score(key, value, (*at, "score"))
        case "box":
            _unable(NO_IMAGES)
        case _:
            tag = in_words(value["type"])
            what = f"Input tag '{tag}' found using 'type' does not match any of the expected tags: {TYPES}"
            ctx = {"discriminator": "'type'", "tag": tag, "expected_tags": TYPES}
            _invalid("union_tag_invalid", at, what, value, ctx)


def _noul(key: str, value: dict[str, object], at: Loc) -> Noul:
    instructions = _optional_text(value.get("instructions"), (*at, "instructions"))
    given = value.get("criteria")
    criteria: object = {} if given is None else given
    if not _is_map(criteria):
        _invalid("dict_type", (*at, "criteria"), "Input should be a valid dictionary", criteria)
    # Only these two names count; anything else in the map is passed over, as upstream does.
    true, false = (_optional_text(criteria.get(side), (*at, "criteria", side)) for side in ("true", "false"))
    if not (instructions or true or false):
        raise Refused(400, f"Noul question must have criteria or instructions: {key}")
    return Noul(instructions, true, false)


def _choice(key: str, value: dict[str, object], at: Loc) -> Choice:
    instructions = _optional_text(value.get("instructions"), (*at, "instructions"))
    criteria = _required(value, "criteria", at)
    if not _is_map(criteria):
        _invalid("dict_type", (*at, "criteria"), "Input should be a valid dictionary", criteria)
    if not criteria:
        raise Refused(400, f"Choice question must have at least one choice: {key}")
    if len(criteria) > OPTIONS_MAX:
        raise Refused(400, f"Too many choices. Must have at most {OPTIONS_MAX} choices.")
    options: dict[str, str] = {}
    for name, description in criteria.items():
        described = _optional_text(description, (*at, "criteria", name))
        spelled = name.replace("_", " ")
        options[name] = f"{spelled}: {described}" if described else spelled
    return Choice(instructions, options)


def _score(key: str, value: dict[str, object], at: Loc) -> Score:
    instructions = _optional_text(value.get("instructions"), (*at, "instructions"))
    criteria = _required(value, "criteria", at)
    if not _is_list(criteria):
        _invalid("list_type", (*at, "criteria"), "Input should be a valid list", criteria)
    if not criteria:
        raise Refused(400, f"Score question must have at least one level: {key}")
    if len(criteria) > LEVELS_MAX:
        raise Refused(400, f"Too many score levels. Must have at most {LEVELS_MAX} levels.")
    levels = [_text(level, (*at, "criteria", place)) for place, level in enumerate(criteria)]
    return Score(instructions, levels, criteria)


def _parsed(body: bytes) -> object:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        _not_json(error.start, error.reason)

    def no_constant(
        name: str,
    ) -> NoReturn:  # NaN and Infinity, which Python would take and JSON does not have
        raise json.JSONDecodeError("Expecting value", text, max(0, text.find(name)))

    try:
        value: object = json.loads(text, parse_constant=no_constant, parse_int=_integer, parse_float=_decimal)
    except json.JSONDecodeError as error:
        _not_json(error.pos, error.msg)
    except RecursionError:
        raise Refused(400, NESTED) from None
    if _is_deep(value):
        raise Refused(400, NESTED)
    return value


def _integer(digits: str) -> int | str:
    """A number that Python cannot hold is kept as its text: it may have to be repeated in a legend."""
    try:
        return int(digits)
    except ValueError:
        return digits


def _decimal(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(NESTING_MAX):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    if _is_map(value):
        return list(value.values())
    return value if _is_list(value) else []


def _required(value: dict[str, object], name: str, at: Loc) -> object:
    if name not in value:
        _invalid("missing", (*at, name), "Field required", value)
    return value[name]


def _optional_text(value: object, at: Loc) -> str:
    return "" if value is None else _text(value, at)


def _text(value: object, at: Loc) -> str:
    """A text, or an object or array put into words. Refuses the rest with one entry per type it might have had."""
    if isinstance(value, str):
        return value
    if _is_map(value) or _is_list(value):
        return in_words(value)
    wanted = (("string", "str"), ("dictionary", "dict[str,any]"), ("list", "list[any]"))
    detail = [
        _entry(
            "dict_type" if kind == "dictionary" else f"{kind}_type",
            (*at, member),
            f"Input should be a valid {kind}",
            value,
        )
        for kind, member in wanted
    ]
    raise Refused(422, detail)


def in_words(value: object) -> str:
    """A JSON value as a line of text: `key: value; key: value`, without brackets, which the model cannot read."""
    if isinstance(value, str):
        return value
    if _is_map(value):
        return "; ".join(f"{key}: {in_words(child)}" for key, child in value.items())
    if _is_list(value):
        return "; ".join(in_words(child) for child in value)
    return json.dumps(value)


def _is_map(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _entry(kind: str, at: Loc, message: str, value: object) -> dict[str, object]:
    return {"type": kind, "loc": ["body", *at], "msg": message, "input": value}


def _invalid(kind: str, at: Loc, message: str, value: object, ctx: Mapping[str, object] | None = None) -> NoReturn:
    entry = _entry(kind, at, message, value)
    raise Refused(422, [entry if ctx is None else {**entry, "ctx": ctx}])


def _not_json(position: int, reason: str) -> NoReturn:
    _invalid("json_invalid", (position,), "JSON decode error", {}, {"error": reason})


def _unable(message: str) -> NoReturn:
    raise Refused(400, {"error_type": "api_usage_error", "message": message})
