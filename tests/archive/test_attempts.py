"""Which reply is answered, failed or unknown, and how long a destination is left alone. Tables, both."""

import json
from typing import Any

import pytest

from archive.attempts import (
    COOLDOWN_SECONDS_DEFAULT,
    COOLDOWN_SECONDS_MAX,
    READERS,
    REFUSED_FOR_NOW,
    WHY_TEXT,
    Lost,
    NotSent,
    Outcome,
    Reply,
    State,
    Why,
    cooldown,
    cooling_place,
    read,
)  # fmt: skip
from archive.request import Destination, Request
from archive.when import SECOND
from tests.examples import ANSWERS, ERRORS, EXAMPLES
from tests.fakes import ASK, START, answer, request

LOCAL = Destination("systemone", "POST", "local:mini@12345678")
MODELS = Destination("models", "GET", "https://api.example.test/v1/models")


def _read(status: int, said: bytes = b"", destination: Destination = ASK) -> Outcome:
    return read(request(destination=destination), Reply(status, said, "application/json"), START)


REFUSED, GAVE_UP = (State.FAILED, Why.PROVIDER_REFUSED), (State.UNKNOWN, Why.GATEWAY_GAVE_UP)

STATUS: dict[int, tuple[State, Why]] = (
    dict.fromkeys(range(100, 200), GAVE_UP)
    | dict.fromkeys(range(300, 400), (State.FAILED, Why.REDIRECTED))
    | dict.fromkeys(range(400, 500), REFUSED)
    | dict.fromkeys([408, 499], GAVE_UP)
    | dict.fromkeys(range(500, 600), GAVE_UP)
    | dict.fromkeys([500, 501, 503, 505, 506, 507, 508, 510, 511], REFUSED)
    | dict.fromkeys([521, 522, 523, 525, 526, 529], REFUSED)
    | dict.fromkeys([-1, 0, 99, 600, 999, 2**40], GAVE_UP)
)
"""What each status means whose reply is never an answer (docs/decisions/0008)."""


@pytest.mark.parametrize("status", STATUS)
def test_each_status_is_failed_or_unknown_as_the_decision_says(status: int) -> None:
    """B31: a 400 failed; what a gateway gave up on is unknown."""
    outcome = _read(status, answer())
    assert (outcome.state, outcome.why) == STATUS[status]
    assert (outcome.paid, outcome.answered_model, outcome.cost) == (False, None, None)
    assert outcome.reply is not None
    assert outcome.reply.body == answer(), "the raw reply is kept with the outcome"


@pytest.mark.parametrize("status", [502, 504, 408, 499, 520, 524])
def test_what_somebody_in_the_middle_gave_up_on_is_unknown(status: int) -> None:
    assert STATUS[status] == GAVE_UP


def test_only_429_503_and_529_ask_to_be_left_alone() -> None:
    assert {status for status in STATUS if _read(status).cool_seconds is not None} == REFUSED_FOR_NOW == {429, 503, 529}


@pytest.mark.parametrize("status", range(200, 300))
def test_every_2xx_is_read_for_an_answer(status: int) -> None:
    """B16."""
    assert _read(status, answer()).state is State.ANSWERED
    refused = _read(status, b'{"error":{"message":"rate limit exceeded"}}')
    assert (refused.state, refused.why, refused.paid) == (State.FAILED, Why.NOT_AN_ANSWER, True)


@pytest.mark.parametrize("why", Why)
def test_what_was_not_sent_failed_and_what_was_lost_is_unknown(why: Why) -> None:
    assert read(request(), NotSent(why), START) == Outcome(State.FAILED, why)
    assert read(request(), Lost(why), START) == Outcome(State.UNKNOWN, why)


def test_every_why_has_its_words_and_its_number() -> None:
    assert WHY_TEXT.keys() == set(Why)
    assert [(state.name, state.value) for state in State] == [("ANSWERED", 1), ("FAILED", 2), ("UNKNOWN", 3)]
    assert [why.name for why in Why] == [
        "NONE", "NO_CONNECTION", "PROVIDER_REFUSED", "NOT_AN_ANSWER", "SLOW", "BROKEN_OFF", "GATEWAY_GAVE_UP",
        "STOPPED", "REPLY_TOO_LARGE", "REDIRECTED", "OUR_ERROR", "UNREADABLE", "WRONG_ADDRESS", "NOT_BEGUN",
    ]  # fmt: skip
    assert [why.value for why in Why] == list(range(14))


DAY, DEFAULT = float(COOLDOWN_SECONDS_MAX), COOLDOWN_SECONDS_DEFAULT
AT_FIVE_TO = "Thu, 28 May 2026 20:31:40 GMT"
"""Five minutes after START, which is at 20:26:40."""

WAITS: list[tuple[tuple[str, ...], tuple[str, ...], float]] = [
    ((), (), DEFAULT),
    (("120",), (), 120),
    (("3600",), (), 3600),
    (("1.5",), (), 1.5),
    ((" 7 ",), (), 7),
    (("0",), (), DEFAULT),
    (("-5",), (), DEFAULT),
    (("1e9",), (), DAY),
    (("1e400",), (), DAY),
    (("inf",), (), DAY),
    (("-inf",), (), DEFAULT),
    (("NaN",), (), DEFAULT),
    (("",), (), DEFAULT),
    (("soon",), (), DEFAULT),
    (("²",), (), DEFAULT),
    (("1.2.3",), (), DEFAULT),
    (("9" * 5_000,), (), DAY),
    (("86400",), (), DAY),
    (("86401",), (), DAY),
    ((AT_FIVE_TO,), (), 300),
    (("Thursday, 28-May-26 20:31:40 GMT",), (), 300),
    (("Thu May 28 20:31:40 2026",), (), 300),
    (("Thu, 28 May 2026 22:31:40 +0200",), (), 300),
    (("Wed, 21 Oct 2026 07:28:00 GMT",), (), DAY),
    (("Wed, 21 Oct 2015 07:28:00 GMT",), (), DEFAULT),
    (("Mon, 01 Jan 0001 00:00:00 +2359",), (), DEFAULT),
    (("Fri, 31 Dec 9999 23:59:59 -2359",), (), DAY),
    (("Wed, 21 Oct 99999 07:28:00 GMT",), (), DEFAULT),
    (("Wed, 99 Oct 2026 99:99:99 GMT",), (), DEFAULT),
    (("Wed, 21 Oct 2026 07:28:00 +9999999999999999999",), (), DEFAULT),
    (("5", "120"), (), 120),
    (("120", "5"), (), 120),
    (("NaN", "5"), (), 5),
    (("5", AT_FIVE_TO), (), 300),
    ((), ("2500",), 2.5),
    ((), ("0",), DEFAULT),
    ((), ("-1",), DEFAULT),
    ((), ("NaN",), DEFAULT),
    ((), ("1e400",), DAY),
    ((), ("9" * 5_000,), DAY),
    ((), (AT_FIVE_TO,), DEFAULT),
    ((), ("100", "900"), 0.9),
    (("2",), ("2500",), 2.5),
    (("3",), ("2500",), 3),
    (("nonsense",), ("2500",), 2.5),
    (("3",), ("nonsense",), 3),
    (("0.25",), (), 0.25),
]


@pytest.mark.parametrize(("after", "after_ms", "seconds"), WAITS)
def test_every_spelling_of_retry_after_is_a_bounded_wait(
    after: tuple[str, ...], after_ms: tuple[str, ...], seconds: float
) -> None:
    """B35, B36: dates, several headers, nonsense, negative and huge never crash; the longest named counts."""
    said = Reply(429, b"", retry_after=after, retry_after_ms=after_ms)
    assert cooldown(said, START) == pytest.approx(seconds)
    assert 0 < cooldown(said, START) <= DAY
    assert read(request(), said, START).cool_seconds == cooldown(said, START)


def test_a_date_counts_from_the_moment_it_is_read() -> None:
    said = Reply(429, b"", retry_after=(AT_FIVE_TO,))
    assert cooldown(said, START + 299 * SECOND) == 1
    assert cooldown(said, START + 300 * SECOND) == DEFAULT, "it is over, and the destination still refused"


def test_a_cooldown_holds_for_one_origin_and_one_key() -> None:
    places = [
        ("https://a.test/v1/systemone", ""),
        ("https://a.test/v1/systemone", "k1"),
        ("https://a.test/v1/systemone", "k2"),
        ("http://a.test/v1/systemone", ""),
        ("https://a.test:444/v1/systemone", ""),
        ("https://b.test/v1/systemone", "\ud800"),
    ]
    found = {cooling_place(Destination("systemone", "POST", url), secret) for url, secret in places}
    assert len(found) == len(places)
    assert all(-(2**63) <= place < 2**63 for place in found), "it is stored as one of SQLite's integers"


def test_a_cooldown_holds_for_every_path_of_an_origin() -> None:
    """B37: other requests to the same destination are held back too."""
    ask = Destination("systemone", "POST", "https://a.test/v1/systemone")
    models = Destination("models", "GET", "https://a.test/v1/models?x=1")
    assert cooling_place(ask, "k") == cooling_place(models, "k")


@pytest.mark.parametrize("name", [name for name in ANSWERS if EXAMPLES[name].path == "/v1/systemone"])
def test_every_published_answer_reads_as_one(name: str) -> None:
    """Forced answers (13), options named with nothing, pictures, 255 options, vectors that add up to 0.99."""
    found = EXAMPLES[name]
    outcome = read(Request(ASK, found.asked), Reply(200, found.said), START)
    usage = json.loads(found.said)["usage"]
    assert outcome.state is State.ANSWERED
    assert outcome.answered_model == json.loads(found.said)["model"]
    assert (outcome.input_tokens, outcome.output_tokens) == (usage["input_tokens"], usage["output_tokens"])
    assert outcome.cost is None, "a price nobody named is unknown, never 0"


@pytest.mark.parametrize("name", ERRORS)
def test_every_published_error_failed_and_was_not_paid_for(name: str) -> None:
    found = EXAMPLES[name]
    outcome = read(Request(ASK, found.asked), Reply(found.status, found.said), START)
    assert (outcome.state, outcome.why, outcome.paid) == (State.FAILED, Why.PROVIDER_REFUSED, False)
    assert (outcome.cool_seconds is not None) == (found.status in REFUSED_FOR_NOW)


def _asked(**questions: Any) -> Request:
    return Request(ASK, json.dumps({"state": "s", "model": "m", "questions": questions}).encode())


def _said(more: dict[str, Any] | None = None, **answers: Any) -> Reply:
    return Reply(200, json.dumps({"model": "m-1", "answers": answers, **(more or {})}).encode())


NOUL = {"type": "noul", "instructions": "Ok?"}
CHOICE = {"type": "choice", "criteria": {"a": None, "b": "bee", "": None}}
SCORE = {"type": "score", "criteria": ["low", "middle", "high"]}
BOX = {"type": "box", "instructions": "Mark it"}

IS_ANSWER: dict[str, tuple[dict[str, Any], Any, bool]] = {
    "a noul": (NOUL, {"type": "noul", "noul": 0.5}, True),
    "a noul of 0": (NOUL, {"type": "noul", "noul": 0}, True),
    "a noul of 1": (NOUL, {"type": "noul", "noul": 1.0}, True),
    "a noul with more fields": (NOUL, {"type": "noul", "noul": 0.5, "x_why": "because"}, True),
    "a noul above 1": (NOUL, {"type": "noul", "noul": 1.01}, False),
    "a noul below 0": (NOUL, {"type": "noul", "noul": -0.01}, False),
    "a noul of NaN": (NOUL, {"type": "noul", "noul": float("nan")}, False),
    "a noul of infinity": (NOUL, {"type": "noul", "noul": float("inf")}, False),
    "a noul in quotes": (NOUL, {"type": "noul", "noul": "0.5"}, False),
    "a noul of true": (NOUL, {"type": "noul", "noul": True}, False),
    "a noul of null": (NOUL, {"type": "noul", "noul": None}, False),
    "a noul without its number": (NOUL, {"type": "noul"}, False),
    "a noul that says it is a score": (NOUL, {"type": "score", "score": 0.5}, False),
    "a noul without its type": (NOUL, {"noul": 0.5}, False),
    "null for an answer": (NOUL, None, False),
    "a number for an answer": (NOUL, 0.5, False),
    "a list for an answer": (NOUL, [0.5], False),
    "a choice": (CHOICE, {"type": "choice", "choice": "a", "confidence": 0.9, "probabilities": {"a": 0.99}}, True),
    "a choice without probabilities": (CHOICE, {"type": "choice", "choice": "b"}, True),
    "a choice of the option with no name": (CHOICE, {"type": "choice", "choice": ""}, True),
    "a choice that was not offered": (CHOICE, {"type": "choice", "choice": "c"}, False),
    "a choice in another case": (CHOICE, {"type": "choice", "choice": "A"}, False),
    "a choice of a number": (CHOICE, {"type": "choice", "choice": 0}, False),
    "a choice of a list": (CHOICE, {"type": "choice", "choice": ["a"]}, False),
    "a choice without its word": (CHOICE, {"type": "choice", "probabilities": {"a": 1}}, False),
    "a choice with a probability above 1": (
        CHOICE,
        {"type": "choice", "choice": "a", "probabilities": {"a": 2}},
        False,
    ),
    "a choice with a list of probabilities": (CHOICE, {"type": "choice", "choice": "a", "probabilities": [1]}, False),
    "a choice whose criteria are odd": ({"type": "choice", "criteria": ["a"]}, {"type": "choice", "choice": "z"}, True),
    "a score": (SCORE, {"type": "score", "score": 1.65, "probabilities": {"0": 0.02, "1": 0.31, "2": 0.67}}, True),
    "a score at the top": (SCORE, {"type": "score", "score": 2}, True),
    "a score above the top": (SCORE, {"type": "score", "score": 2.01}, False),
    "a score below 0": (SCORE, {"type": "score", "score": -0.5}, False),
    "a score of one level": ({"type": "score", "criteria": ["only"]}, {"type": "score", "score": 0.0}, True),
    "a score in quotes": (SCORE, {"type": "score", "score": "1"}, False),
    "a score with a probability in quotes": (SCORE, {"type": "score", "score": 1, "probabilities": {"0": "1"}}, False),
    "a score without its number": (SCORE, {"type": "score"}, False),
    "a box": (BOX, {"type": "box", "box": {"top": 0.0}, "confidence": None}, True),
    "a box that says it is a noul": (BOX, {"type": "noul", "noul": 0.1}, False),
    "a kind invented today": ({"type": "rank"}, {"type": "rank", "rank": [1]}, True),
    "a kind invented today, answered as another": ({"type": "rank"}, {"type": "noul", "noul": 1}, False),
    "a question that is no object": ("Ok?", {"type": "noul", "noul": 0.5}, False),  # type: ignore[dict-item]
    "a question without a type": ({}, {"anything": 1}, True),
}


@pytest.mark.parametrize("name", IS_ANSWER)
def test_an_answer_must_be_of_its_questions_kind_and_in_range(name: str) -> None:
    """B15."""
    question, said, good = IS_ANSWER[name]
    outcome = read(_asked(q=question), _said(q=said), START)
    assert outcome.state is (State.ANSWERED if good else State.FAILED)
    assert outcome.paid is not good


def test_one_missing_answer_of_three_is_no_answer_at_all() -> None:
    """B15."""
    noul = {"type": "noul", "noul": 0.5}
    three = _asked(a=NOUL, b=NOUL, c=NOUL)
    assert read(three, _said(a=noul, b=noul, c=noul, more=noul), START).state is State.ANSWERED
    refused = read(three, _said(a=noul, b=noul, d=noul), START)
    assert (refused.state, refused.why, refused.paid) == (State.FAILED, Why.NOT_AN_ANSWER, True)


NO_ANSWERS: dict[str, bytes] = {
    "nothing": b"",
    "an error": b'{"error":{"message":"rate limit exceeded"}}',
    "an error in words": b'{"error":"overloaded"}',
    "an error beside answers": answer()[:-1] + b',"error":{"code":402}}',
    "an HTML message in JSON": b'{"html-message":"Network connection lost."}',
    "a captive portal": b"<!doctype html><title>Log in</title>",
    "System One's own error": b'{"detail":{"error_type":"api_usage_error","message":"Unknown model: jev-9"}}',
    "plain text": b"Internal Server Error",
    "half an answer": answer()[:-5],
    "an answer and more": answer() + b"x",
    "two answers": answer() + answer(),
    "a list": b"[" + answer() + b"]",
    "null": b"null",
    "a word": b'"ok"',
    "no answers": b'{"model":"jev-1.13.0","answers":{}}',
    "answers of null": b'{"model":"jev-1.13.0","answers":null}',
    "answers in a list": b'{"model":"jev-1.13.0","answers":[{"type":"noul","noul":0.5}]}',
    "no bottom": b"[" * 100_000,
    "a deep bottom": b'{"answers":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "bytes": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_a_200_that_is_no_answer_failed_was_paid_for_and_is_never_kept_as_one(name: str) -> None:
    """B12, B13."""
    outcome = _read(200, NO_ANSWERS[name])
    assert (outcome.state, outcome.why, outcome.paid) == (State.FAILED, Why.NOT_AN_ANSWER, True)
    assert _read(200, NO_ANSWERS[name], LOCAL).paid is False, "what is answered in here costs nothing"


ODD_ANSWERS: dict[str, bytes] = {
    "byte-order mark": b"\xef\xbb\xbf" + answer(),
    "spaces around": b"\n " + answer() + b"\r\n",
    "duplicate keys": b'{"answers":{},' + answer()[1:],
    "a lone surrogate": answer()[:-1] + b',"x":"\\ud800"}',
    "NUL": answer()[:-1] + b',"x":"\\u0000"}',
    "invalid UTF-8": answer()[:-1] + b',"x":"\xff"}',
    "1e400": answer()[:-1] + b',"x":1e400}',
    "more digits than Python reads": answer()[:-1] + b',"x":-%s}' % (b"7" * 5_000),
    "an empty error": answer()[:-1] + b',"error":null}',
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_an_answer_is_read_as_leniently_as_the_wire_is(name: str) -> None:
    """B47, B49, B50, B52."""
    outcome = _read(200, ODD_ANSWERS[name])
    assert outcome.state is State.ANSWERED
    assert outcome.reply is not None
    assert outcome.reply.body == ODD_ANSWERS[name], "kept byte for byte"


@pytest.mark.parametrize("body", [b"not JSON", b"[]", b'{"state":1}', b'{"questions":[1]}', b"[" * 100_000, b""])
def test_what_was_asked_and_cannot_be_read_here_takes_what_the_model_calls_an_answer(body: bytes) -> None:
    asked = Request(ASK, body)
    assert read(asked, Reply(200, answer()), START).state is State.ANSWERED
    assert read(asked, Reply(200, b'{"answers":{}}'), START).state is State.FAILED


NUMBERS: list[tuple[object, int | None]] = [
    (0, 0), (131, 131), (2**53 - 1, 2**53 - 1), (2**53, None), (-1, None), (1.0, None), (True, None), ("1", None),
    (None, None), (10**400, None),
]  # fmt: skip


@pytest.mark.parametrize(("said", "count"), NUMBERS)
def test_tokens_are_whole_numbers_or_unknown(said: object, count: int | None) -> None:
    noul = {"type": "noul", "noul": 0.5}
    outcome = read(_asked(q=NOUL), _said({"usage": {"input_tokens": said, "output_tokens": said}}, q=noul), START)
    assert (outcome.input_tokens, outcome.output_tokens) == (count, count)


COSTS: list[tuple[object, int | None]] = [
    (3.696e-06, 3_696), (0, 0), (0.0, 0), (1, 10**9), (-0.1, None), (10**6, None), (float("nan"), None), ("1", None),
    (True, None), (None, None), (10**400, None),
]  # fmt: skip


@pytest.mark.parametrize(("said", "cost"), COSTS)
def test_a_cost_is_what_the_provider_says_or_unknown_and_nothing_in_here(said: object, cost: int | None) -> None:
    """B25."""
    came = _said({"usage": {"cost": said}}, q={"type": "noul", "noul": 0.5})
    assert read(_asked(q=NOUL), came, START).cost == cost
    assert read(request(destination=LOCAL), came, START).cost == 0


@pytest.mark.parametrize("usage", [None, [], "free", 7])
def test_odd_usage_and_an_odd_model_are_unknown_and_not_an_error(usage: object) -> None:
    outcome = read(_asked(q=NOUL), _said({"usage": usage, "model": 7}, q={"type": "noul", "noul": 0.5}), START)
    assert outcome.state is State.ANSWERED
    assert (outcome.answered_model, outcome.input_tokens, outcome.output_tokens, outcome.cost) == (None,) * 4


def test_a_list_of_models_is_read_by_its_own_rule() -> None:
    asked = Request(MODELS, b"", "")
    assert read(asked, Reply(200, EXAMPLES["18-models"].said), START).state is State.ANSWERED
    assert read(asked, Reply(200, answer()), START).state is State.FAILED
    assert read(asked, Reply(200, b'{"models":null}'), START).state is State.FAILED
    assert READERS.keys() == {"models", "systemone", "chat", "decisions"}


@pytest.mark.parametrize("name", ["json", "other"])
def test_a_destination_nobody_wrote_a_rule_for_answers_with_any_json_but_an_error(name: str) -> None:
    asked = Request(Destination(name, "POST", "https://a.test/other"), b"{}")
    for said in (b'{"x":1}', b"{}", b"[1]", b"[]", b"0", b'"x"', b'{"error":null,"x":1}', b'{"error":"","x":1}'):
        assert read(asked, Reply(200, said), START).state is State.ANSWERED, said
    for said in (b"", b"null", b"<html>", b"{", b'{"error":{"message":"no"}}', b'{"error":"no"}'):
        assert read(asked, Reply(200, said), START).state is State.FAILED, said
