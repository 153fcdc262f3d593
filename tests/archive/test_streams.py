"""Which stream of events is an answer, which is not yet one, and what it says of itself. Tables, all of it."""

import json
from typing import Any

import pytest

from archive.attempts import Outcome, Reply, State, Why, read
from archive.request import Destination, Request
from archive.streams import is_stream, wants_stream
from tests.fakes import START

CHAT = Destination("chat", "POST", "https://api.example.test/v1/chat/completions")
ASKED = b'{"model":"m","messages":[],"stream":true}'


def events(*said: Any, names: bool = False) -> bytes:
    """Events of these objects; `names`: with their type as the event's name, as some write it."""
    lines: list[str] = []
    for one in said:
        if names:
            lines.append(f"event: {one['type']}\n")
        data = one if isinstance(one, str) else json.dumps(one)
        lines.append(f"data: {data}\n\n")
    return "".join(lines).encode()


def chunk(text: str = "", stop: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    """A chunk of chat completions."""
    return {"model": "m-1", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": stop}], **more}


NOT_ONE = Why.NOT_AN_ANSWER


def outcome(body: bytes, *, whole: bool = True, asked: bytes = ASKED, media: str = "text/event-stream") -> Outcome:
    """What a 200 with this body is read as."""
    return read(Request(CHAT, asked), Reply(200, body, media, whole=whole, cuts=(len(body),)), START)


USED = {"prompt_tokens": 7, "completion_tokens": 2, "cost": 0.000005}
CHAT_WHOLE = events(chunk("He"), chunk("llo"), chunk(stop="stop"), {"choices": [], "usage": USED}, "[DONE]")
RESPONSES = events(
    {"type": "response.created", "response": {"model": "gpt-6", "status": "in_progress", "error": None, "usage": None}},
    {"type": "response.output_text.delta", "delta": "Hello"},
    {
        "type": "response.completed",
        "response": {"model": "gpt-6-luna", "status": "completed", "usage": {"input_tokens": 5, "output_tokens": 6}},
    },
    names=True,
)
MESSAGES = events(
    {"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 25, "output_tokens": 1}}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
    {"type": "message_stop"},
    names=True,
)
OTHER = events({"token": "He"}, {"token": "llo"}, "bye")

WHOLE: dict[str, tuple[bytes, str | None, int | None, int | None]] = {
    "chat completions": (CHAT_WHOLE, "m-1", 7, 2),
    "chat completions without [DONE]": (events(chunk("He"), chunk(stop="stop")), "m-1", None, None),
    "chat completions without a reason": (events(chunk("He"), "[DONE]"), "m-1", None, None),
    "two choices": (events(chunk("a", "stop"), chunk("b", None, 1), chunk("", "stop", 1)), "m-1", None, None),
    "responses": (RESPONSES, "gpt-6-luna", 5, 6),
    "messages": (MESSAGES, "claude", 25, 15),
    "messages without names": (MESSAGES.replace(b"event: ", b": "), "claude", 25, 15),
    "usage of which the last one counts": (
        events(chunk(usage={"prompt_tokens": 1}), chunk(usage=None), chunk(stop="stop", usage=USED), "[DONE]"),
        "m-1", 7, 2,
    ),
    "a comment to keep it open": (b": OPENROUTER PROCESSING\n\n" + CHAT_WHOLE, "m-1", 7, 2),
    "line ends of all three kinds": (CHAT_WHOLE.replace(b"\n", b"\r\n", 4).replace(b"\n\n", b"\r\r"), "m-1", 7, 2),
    "a byte-order mark": (b"\xef\xbb\xbf" + CHAT_WHOLE, "m-1", 7, 2),
    "no empty line at the end": (CHAT_WHOLE.rstrip(b"\n"), "m-1", 7, 2),
    "data over two lines": (b'data: {"choices":\ndata: [{"finish_reason":"stop"}]}\n\n', None, None, None),
    "U+2028 in a line": (
        events(chunk("a\u2028b", "stop", usage=USED), "[DONE]").replace(b"\\u2028", b"\xe2\x80\xa8"), "m-1", 7, 2,
    ),
    "no space behind the colon": (CHAT_WHOLE.replace(b"data: ", b"data:"), "m-1", 7, 2),
}  # fmt: skip


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", WHOLE)
def test_a_stream_whose_own_end_is_there_is_an_answer(name: str, whole: bool) -> None:
    body, model, tokens_in, tokens_out = WHOLE[name]
    found = outcome(body, whole=whole)
    assert (found.state, found.why, found.cut_short) == (State.ANSWERED, Why.NONE, False)
    assert (found.answered_model, found.input_tokens, found.output_tokens) == (model, tokens_in, tokens_out)
    assert found.cost == (5000 if tokens_in == 7 else None)
    assert found.reply is not None and found.reply.body == body and found.reply.cuts == (len(body),)


@pytest.mark.parametrize("body", [CHAT_WHOLE, RESPONSES, MESSAGES])
def test_a_stream_cut_anywhere_before_its_end_is_unknown_whatever_the_transport_says(body: bytes) -> None:
    """B20. The last event that ends it counts as soon as its data is there whole."""
    last = body.rstrip(b"\n")
    if body is CHAT_WHOLE:
        last = last[: last.index(b'"finish_reason": "stop"') + 25]
    for at in range(len(last) - 1):
        found = outcome(body[:at], whole=True)
        # Nothing at all is no half of an answer.
        assert (found.state, found.why) == ((State.UNKNOWN, Why.BROKEN_OFF) if at else (State.FAILED, NOT_ONE)), at
        assert outcome(body[:at], whole=False).state is State.UNKNOWN


def test_a_stream_of_another_format_is_whole_when_its_transport_says_so() -> None:
    assert outcome(OTHER).state is State.ANSWERED
    cut = outcome(OTHER, whole=False)
    assert (cut.state, cut.why) == (State.UNKNOWN, Why.BROKEN_OFF)
    for body in (b"data: one\n\n", b"data: one\n\n: bye\n", b"data: one\r\r"):
        assert outcome(body).state is State.ANSWERED
    for body in (b"data: one\n", b"data: one", b"data: one\n\nid: 2\n", b"data: one\n\ndat"):
        assert outcome(body).state is State.UNKNOWN, "its last event is cut"


ERROR = {"message": "overloaded"}
REFUSED: dict[str, bytes] = {
    "chat completions": events(chunk("He"), {"error": ERROR}),
    "chat completions, and done": events(chunk("He"), {"error": ERROR}, "[DONE]"),
    "in a chunk": events(chunk("He"), chunk(stop="error")),
    "before anything": events({"error": ERROR}),
    "responses, failed": RESPONSES.replace(b"response.completed", b"response.failed"),
    "responses, an error": events({"type": "error", **ERROR}),
    "messages": MESSAGES.replace(b"message_stop", b"error"),
    "a name alone": b"event: error\ndata: overloaded\n\n",
    "after the end": CHAT_WHOLE + events({"error": ERROR}),
}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", REFUSED)
def test_an_error_inside_a_stream_is_a_refusal_that_was_paid_for(name: str, whole: bool) -> None:
    """B27: never an answer, however much of one stood before it."""
    found = outcome(REFUSED[name], whole=whole)
    assert (found.state, found.why, found.paid) == (State.FAILED, Why.PROVIDER_REFUSED, True)


@pytest.mark.parametrize("body", [b"", b"\n\n", b": nothing\n\n", b"event: message_stop\n\n", b"id: 1\nretry: 9\n\n"])
def test_a_stream_without_an_event_is_no_answer(body: bytes) -> None:
    found = outcome(body)
    assert (found.state, found.why, found.paid) == (State.FAILED, Why.NOT_AN_ANSWER, True)


def test_a_stream_nobody_asked_for_is_no_answer_and_a_plain_answer_to_who_wanted_one_is() -> None:
    for asked in (b'{"model":"m"}', b'{"stream":false}', b'{"stream":"true"}', b'{"stream":1}', b"[true]", b"stream"):
        assert outcome(CHAT_WHOLE, asked=asked).why is Why.NOT_AN_ANSWER
    plain = json.dumps(chunk("Hello", "stop")).encode()
    assert outcome(plain, media="application/json").state is State.ANSWERED
    assert outcome(CHAT_WHOLE, media="application/json").why is Why.NOT_AN_ANSWER


def test_a_stream_is_one_by_its_content_type() -> None:
    kinds = ["text/event-stream", "text/event-stream; charset=utf-8", " Text/Event-Stream ;x"]
    assert all(is_stream(kind) for kind in kinds)
    assert not any(is_stream(kind) for kind in ["", "text/event-stream2", "application/x-ndjson", "text/plain"])
    assert wants_stream({"stream": True}) and not wants_stream({"stream": None})


CUT_SHORT: dict[str, tuple[bytes, str]] = {
    "B17 chat completions": (json.dumps(chunk("He", "length")).encode(), "application/json"),
    "B17 chat completions, streamed": (events(chunk("He"), chunk(stop="length"), "[DONE]"), "text/event-stream"),
    "the second choice": (events(chunk("a", "stop"), chunk("b", "length", 1), "[DONE]"), "text/event-stream"),
    "messages": (b'{"type":"message","stop_reason":"max_tokens","choices":[1]}', "application/json"),
    "messages, streamed": (MESSAGES.replace(b"end_turn", b"max_tokens"), "text/event-stream"),
    "messages, no room": (MESSAGES.replace(b"end_turn", b"model_context_window_exceeded"), "text/event-stream"),
    "responses": (b'{"object":"response","status":"incomplete","choices":[null]}', "application/json"),
    "responses, streamed": (RESPONSES.replace(b'"completed"', b'"incomplete"')
                            .replace(b"response.completed", b"response.incomplete"), "text/event-stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT_SHORT)
def test_an_answer_that_stopped_at_a_limit_is_kept_and_marked(name: str) -> None:
    body, media = CUT_SHORT[name]
    found = outcome(body, media=media)
    assert (found.state, found.cut_short) == (State.ANSWERED, True)


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "content_filter", "Length", None, 7, ["length"]])
def test_an_answer_that_stopped_for_another_reason_is_not_marked(reason: Any) -> None:
    body = json.dumps({"choices": [{"finish_reason": reason}], "stop_reason": reason, "status": reason}).encode()
    found = outcome(body, media="application/json")
    assert (found.state, found.cut_short) == (State.ANSWERED, False)


@pytest.mark.parametrize(
    "data",
    ["[" * 100_000, "1e400", "9" * 5_000, '{"choices":7}', '{"choices":[1,null]}', '{"usage":[]}', "\ud800", "\0"],
)
def test_nothing_in_a_stream_can_break_its_reading(data: str) -> None:
    body = b"data: " + data.encode("utf-8", "surrogatepass") + b"\n\n" + CHAT_WHOLE
    assert outcome(body).state is State.ANSWERED
