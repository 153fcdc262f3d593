"""What is asked and answered in the benchmark: made-up bytes of fixed sizes, every number its own, always the same.

What must never be here: a clock, a socket, a store.
"""

from functools import cache
from hashlib import sha256

BODY_BYTES = 600
REPLY_BYTES = 400


@cache
def _questions(size: int) -> bytes:
    filler = words("instructions", size)
    return (
        b'"questions":{"q":{"type":"choice","instructions":"%s","criteria":{"yes":"it does","no":"it does not"}}}'
        % filler
    )


def words(seed: str, size: int) -> bytes:
    """`size` bytes of ASCII words that depend on `seed` alone."""
    pieces: list[bytes] = []
    length = 0
    at = 0
    while length < size:
        letters = sha256(f"{seed} {at}".encode()).hexdigest().translate(_LETTERS)
        piece = f"{letters[:5]} {letters[5:12]} {letters[12:15]} {letters[15:24]} {letters[24:31]} ".encode()
        pieces.append(piece)
        length += len(piece)
        at += 1
    return b"".join(pieces)[:size]


_LETTERS = str.maketrans("0123456789abcdef", "etaoinshrdlucmfw")


def ask(number: int) -> bytes:
    """The body of request `number`: a System One choice of exactly BODY_BYTES under instructions all share."""
    head, tail = b'{"state":"', b'","model":"jev-latest",' + _questions(200) + b"}"
    return head + _state(number, BODY_BYTES - len(head) - len(tail)) + tail


def answer(number: int) -> bytes:
    """The body of a reply to `ask`, exactly REPLY_BYTES; every number's differs."""
    head = b'{"model":"jev-1.13.0","answers":{"q":{"type":"choice","choice":"yes","confidence":0.91,"note":"'
    tail = b'","probabilities":{"yes":0.95,"no":0.05}}},"usage":{"input_tokens":131,"output_tokens":31}}'
    return head + _state(number, REPLY_BYTES - len(head) - len(tail)) + tail


def provider_id(number: int) -> bytes:
    """An id as System One gives each reply."""
    return b"req_%032x" % (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)


def _state(number: int, size: int) -> bytes:
    # One hash a number: a generator must not be slower than what it asks.
    return (b"%010d " % number + sha256(b"%d" % number).hexdigest().translate(_LETTERS).encode() * 9)[:size]


def http(body: bytes, headers: bytes = b"") -> bytes:
    """`body` as an HTTP/1.1 POST to System One's route."""
    return (
        b"POST /v1/systemone HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        b"%scontent-length: %d\r\n\r\n%s" % (headers, len(body), body)
    )


def decide_set(copies: int) -> list[tuple[bytes, bytes, bytes]]:
    """(body, reply, provider id): `copies` times 147 requests over 138 states of ~156 bytes, one text of ~1,700 each.

    Nine of the states are asked of a second model.
    """
    made: list[tuple[bytes, bytes, bytes]] = []
    for copy in range(copies):
        instructions = words(f"decide {copy}", 1600)
        for at in range(147):
            state = words(f"claim {copy} {at % 138}", 156)
            model = b"jev-latest" if at < 138 else b"jev-preview"
            made.append(_judged(state, model, instructions, len(made)))
    return made


def extract_set(copies: int) -> list[tuple[bytes, bytes, bytes]]:
    """(body, reply, provider id): `copies` times 33 sources of 12 KB, each read under the same 80 instructions."""
    made: list[tuple[bytes, bytes, bytes]] = []
    for copy in range(copies):
        sources = [words(f"source {copy} {at}", 12_000) for at in range(33)]
        for reading in range(80):
            instructions = words(f"reading {copy} {reading}", 600)
            for source in sources:
                made.append(_judged(source, b"jev-latest", instructions, len(made)))
    return made


def _judged(state: bytes, model: bytes, instructions: bytes, number: int) -> tuple[bytes, bytes, bytes]:
    body = b'{"state":"%s","model":"%s","questions":{"q":{"type":"choice","instructions":"%s","criteria":null}}}' % (
        state,
        model,
        instructions,
    )
    reply = answer(number)
    spare = REPLY_BYTES - 330
    return body, reply.replace(_state(number, 200)[:spare], b"", 1), provider_id(number)
