"""What a caller may say an asking is about: its pass, what is judged, how the answer is read, the inputs.

None of it is sent, and none of it is part of what makes two requests one. What must never be here: HTTP, the record.
"""

import json

import msgspec

from archive import grammar, run
from archive.attempts import State
from archive.errors import Invalid, TooLarge
from archive.request import Request, asked

NAME_CHARACTERS_MAX = 500
"""Of a pass and of an about: names and numbers of what the caller keeps elsewhere, not its words."""

INPUTS_MAX = 100
INPUTS_BYTES_MAX = 64 * 1024
"""Of all inputs of one asking together, as UTF-8. Larger ones are the state itself, which the record has anyway."""

SEARCHED_BYTES_MIN = 12
"""Shorter inputs are kept and not searched for: they stand somewhere in almost any body."""


class Input(msgspec.Struct, frozen=True):
    """Words that went into the body; `name` may be empty."""

    name: str
    words: str


class Naming(msgspec.Struct, frozen=True):
    """The pass (which step of a program asks), what is judged, and a reading (archive/grammar.py); all optional."""

    pass_: str = ""
    about: str = ""
    reading: str = ""
    inputs: tuple[Input, ...] = ()


class Asking(msgspec.Struct, frozen=True):
    """One asking that was named, as it is on record; `number` is the judgment number.

    `found_at`: for each input its byte offset in the body, None where it is not there or too short to be searched for.
    `state` and `n`: what came of it and which answer served it, both None while it is on the wire. `comes_to`: what
    the reading comes to. `gone`: why request or answer cannot be shown any more. `erased`: some of the naming was.
    """

    number: int
    request_id: int
    at: int
    naming: Naming
    found_at: tuple[int | None, ...]
    inputs_missing: int
    state: State | None = None
    n: int | None = None
    asked_model: str | None = None
    answered_model: str | None = None
    comes_to: str | None = None
    gone: str = ""
    erased: bool = False


class PassFacts(msgspec.Struct, frozen=True):
    """Numbers of one pass, over its askings.

    `requests` and `versions` are distinct (a version: the bytes of the instructions); `whole` of the requests are
    stored whole. `sent`: calls that left for it, or that it waited for; `not_sent`: all its other askings. Then by
    what came of them; `open` are on the wire. `readings`: reading, what it comes to (None: cannot be told, or no
    answer), how often. `models`: asked for, answered, how often. `stored_bytes`: the distinct texts behind its
    askings (parts of bodies, replies, naming), each once; `whole_bytes`: body, reply and naming for each asking anew.
    """

    pass_: str
    askings: int
    requests: int
    versions: int
    whole: int
    sent: int
    not_sent: int
    answered: int
    failed: int
    unknown: int
    open: int
    readings: tuple[tuple[str, str | None, int], ...]
    models: tuple[tuple[str | None, str | None, int], ...]
    stored_bytes: int
    whole_bytes: int


class Counted(msgspec.Struct, frozen=True):
    """What is known of all named askings, pass by pass, by name; and of every answer, named or not.

    `stored_bytes`: all texts of the record, each once; `whole_bytes`: body and reply of each answer anew.
    """

    passes: tuple[PassFacts, ...]
    answers: int
    stored_bytes: int
    whole_bytes: int


def check(naming: Naming, request: Request) -> None:
    """May this asking be named so? Raises Invalid or TooLarge, with what would be right."""
    reading = check_alone(naming)
    if reading is not None:
        run.check(reading, asked(request))


def check_alone(naming: Naming) -> grammar.Reading | None:
    """As much of `check` as needs no request; the reading, if one is named."""
    for what, words in (("The pass", naming.pass_), ("What it is about", naming.about)):
        if len(words) > NAME_CHARACTERS_MAX:
            raise TooLarge(f"{what} has {len(words)} characters; at most {NAME_CHARACTERS_MAX} are kept.")
        utf8(words)
    if len(naming.inputs) > INPUTS_MAX:
        raise TooLarge(f"There are {len(naming.inputs)} inputs; at most {INPUTS_MAX} can be named.")
    size = sum(len(utf8(one.name)) + len(utf8(one.words)) for one in naming.inputs)
    if size > INPUTS_BYTES_MAX:
        raise TooLarge(f"The inputs have {size} bytes together; at most {INPUTS_BYTES_MAX} can be named.")
    utf8(naming.reading)
    return grammar.reading(naming.reading) if naming.reading else None


def utf8(words: str) -> bytes:
    """The words as they are stored. Raises Invalid for half a surrogate pair, which is no text."""
    try:
        return words.encode()
    except UnicodeEncodeError:
        raise Invalid("What an asking is named with holds half a character (a lone surrogate).") from None


def found_at(words: str, body: bytes) -> int | None:
    """Where the words stand in the body, as a byte offset: raw, or escaped as JSON either way. None: nowhere."""
    spellings = (words, json.dumps(words, ensure_ascii=False)[1:-1], json.dumps(words)[1:-1])
    places = (body.find(utf8(spelling)) for spelling in spellings)
    return next((place for place in places if place >= 0), None)


def comes_to(reading: str, question: object, said: bytes) -> str | None:
    """What a reading comes to where `question`, a decoded body, got the reply `said`; None where it cannot be told."""
    return run.comes_to(grammar.reading(reading), run.read_all(question, said))
