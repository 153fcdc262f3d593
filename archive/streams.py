"""Streams of events (text/event-stream): what was said in one, and whether its end is there.

Formats: WHATWG HTML §9.2 for the events; OpenAI's chat completions and Responses, and Anthropic's messages for what
is in them (their API references). What must never be here: how a stream came, or goes out.
"""

import itertools
import re
from typing import cast

import msgspec

from archive.request import loads

MEDIA = "text/event-stream"

_LINE = re.compile(r"\r\n|\n|\r")  # and no others: U+2028 and its like may stand inside a line

_FAILED = frozenset({"error", "response.failed", "response.cancelled"})
_ENDED = frozenset({"message_stop", "response.completed", "response.incomplete"})
_BEGAN = ("message_start", "response.")


class Heard(msgspec.Struct, frozen=True):
    """What a stream said: every JSON object of it that may name a model, count tokens or say why it stopped, in order.

    `ended`: its own end is there; None for a format that has none we know, if its last event is whole. `failed`: it
    carries an error.
    """

    objects: tuple[dict[str, object], ...]
    events: int
    ended: bool | None
    failed: bool


def is_stream(content_type: str) -> bool:
    """Is this the content type of a stream of events?"""
    return content_type.partition(";")[0].strip().lower() == MEDIA


def wants_stream(asked: object) -> bool:
    """Does a request, decoded, ask for a stream?"""
    return isinstance(asked, dict) and cast("dict[str, object]", asked).get("stream") is True


def hear(body: bytes) -> Heard:
    """Read a stream. Never raises: what cannot be read is no event of a known format."""
    objects: list[dict[str, object]] = []
    choices: dict[object, bool] = {}
    known = ended = failed = False
    events, is_tidy = _events(body)
    for name, data in events:
        if data.strip() == "[DONE]":
            known = ended = True
            continue
        said = _object(data)
        if said is None:
            failed |= name == "error"
            continue
        kind = said.get("type")
        kind = kind if isinstance(kind, str) else name
        known |= kind.startswith(_BEGAN)
        ended |= kind in _ENDED
        failed |= kind in _FAILED or bool(said.get("error"))
        for choice in _list(said.get("choices")):
            reason = choice.get("finish_reason")
            failed |= reason == "error"
            index = repr(choice.get("index", 0))
            choices[index] = choices.get(index, False) or isinstance(reason, str)
        inner = (said.get(key) for key in ("response", "message", "delta"))
        objects += [said, *(cast("dict[str, object]", layer) for layer in inner if isinstance(layer, dict))]
    ended |= bool(choices) and all(choices.values())
    return Heard(tuple(objects), len(events), None if is_tidy and not (known or choices or ended) else ended, failed)


def said_in(body: bytes) -> list[object]:
    """The JSON values that stand in a stream's events, in order. Never raises: what is no JSON is left out."""
    return [value for _, data in _events(body)[0] if (value := loads(data)) is not None]


def _events(body: bytes) -> tuple[list[tuple[str, str]], bool]:
    """Name and data of each event, and whether the last one has its empty line after it. It counts without it too."""
    events: list[tuple[str, str]] = []
    name, data = "", list[str]()
    lines = _LINE.split(body.decode("utf-8-sig", "replace"))
    last = itertools.takewhile(bool, reversed(lines if lines[-1] else lines[:-1]))
    is_tidy = all(line.startswith(":") for line in last)
    for line in [*lines, ""]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append((name, "\n".join(data)))
            name, data = "", []
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return events, is_tidy


def _object(data: str) -> dict[str, object] | None:
    said = loads(data)
    return cast("dict[str, object]", said) if isinstance(said, dict) else None


def _list(value: object) -> list[dict[str, object]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]
