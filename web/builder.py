"""The builder: a System One question put together by hand, and the form it came from again.

Pure. A built question is one call and no judgment of ours: its state and instructions are the visitor's own, so it is
never listed. Its link holds all of it. What must never be here: HTML, limits of the model (it has its own word).
"""

import json
from typing import Any

import msgspec

from archive.errors import Invalid
from archive.messages import Question

TYPES = ("noul", "choice", "score")
LINES_MAX = 255
"""Options, as many as System One takes."""


class Built(msgspec.Struct, frozen=True):
    """A built question as its link holds it. `state` is any JSON but null, byte for byte as it was typed."""

    state: msgspec.Raw
    question: msgspec.Raw


def build(fields: dict[str, list[str]]) -> Question:
    """A question from the builder's form. Raises Invalid, naming the field that is wrong.

    Fields: type, instructions, state (text, or JSON when it begins with { or [), yes and no (noul), options ("name:
    description" a line) and levels (one a line).
    """
    kind = _one(fields, "type")
    if kind not in TYPES:
        raise Invalid("Choose what kind of answer is wanted: noul, choice or score.")
    instructions = _one(fields, "instructions")
    return typed(kind, instructions, _one(fields, "state"), _criteria(kind, fields))


def typed(kind: str, instructions: str, state: str, criteria: Any) -> Question:
    """A question from its pieces. `state` as in the form; `criteria` as System One has them. Raises Invalid."""
    if not instructions and not criteria:
        raise Invalid("Say in the instructions what is asked.")
    question: dict[str, Any] = {"type": kind}
    question |= {"instructions": instructions} if instructions else {}
    question |= {"criteria": criteria} if criteria else {}
    whole = f'{{"state":{_state(state)},"question":{_json(question)}}}'
    return Question(instructions or "A question without instructions", typed=whole)


def read(link: str) -> Question:
    """A question from what a link holds of it. Raises Invalid when it holds none."""
    try:
        built = msgspec.json.decode(link.encode(), type=Built)
        question: Any = json.loads(bytes(built.question))
        state: Any = json.loads(bytes(built.state))
        kind, instructions = question["type"], question.get("instructions")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, msgspec.DecodeError):
        raise Invalid("This link holds no question that was built here.") from None
    if kind not in TYPES or state is None or not isinstance(instructions, str | None):
        raise Invalid("This link holds no question that was built here.")
    return Question(instructions or "A question without instructions", typed=link)


def body(question: Question, model: str) -> bytes:
    """The one call a built question is, with its state exactly as typed."""
    built = msgspec.json.decode(question.typed.encode(), type=Built)
    whole = b'{"model":%s,"state":%s,"questions":{"answer":%s}}'
    return whole % (_json(model).encode(), bytes(built.state), bytes(built.question))


def asked(question: Question) -> dict[str, Any]:
    """The System One question in a built question."""
    built = msgspec.json.decode(question.typed.encode(), type=Built)
    return json.loads(bytes(built.question))


def form(question: Question) -> dict[str, str]:
    """What the builder's form held: field name to text."""
    built, inner = msgspec.json.decode(question.typed.encode(), type=Built), asked(question)
    criteria, state = inner.get("criteria"), bytes(built.state).decode()
    found = {"type": inner["type"], "instructions": inner.get("instructions", "")}
    found["state"] = json.loads(state) if state.startswith('"') else state
    if inner["type"] == "choice":
        pairs: dict[str, Any] = criteria or {}
        found["options"] = "\n".join(name if text is None else f"{name}: {text}" for name, text in pairs.items())
    elif inner["type"] == "score":
        found["levels"] = "\n".join(criteria or [])
    elif criteria:
        found |= {"yes": criteria.get("true", ""), "no": criteria.get("false", "")}
    return found


def _criteria(kind: str, fields: dict[str, list[str]]) -> Any:
    if kind == "noul":
        described = {"true": _one(fields, "yes"), "false": _one(fields, "no")}
        return {outcome: text for outcome, text in described.items() if text}
    name = "options" if kind == "choice" else "levels"
    lines = [line.strip() for line in _one(fields, name).splitlines() if line.strip()]
    if not lines or len(lines) > LINES_MAX:
        raise Invalid(f"Give 1 to {LINES_MAX} {name}, one a line; these are {len(lines)}.")
    if kind == "score":
        return lines
    pairs = [line.partition(":") for line in lines]
    options = {option.strip(): text.strip() or None for option, _, text in pairs}
    if len(options) != len(lines):
        raise Invalid("The same option stands there twice.")
    return options


def _state(text: str) -> str:
    """The state as JSON: as typed where it is an object or a list, else a string."""
    if not text.startswith(("{", "[")):
        return _json(text)
    try:
        msgspec.json.decode(text.encode(), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(
            f"The state begins like JSON and is none: {error}. Text that is no JSON may not begin so."
        ) from None
    return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _one(fields: dict[str, list[str]], name: str) -> str:
    return fields.get(name, [""])[0].replace("\r\n", "\n").strip()
