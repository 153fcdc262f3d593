"""What the built-in model is asked, and what it says to requests that are odd, wrong or hostile."""

import hashlib
import json
import random
from typing import Any

import pytest

from archive.actor.mini import Mini, asked, readouts
from archive.actor.mini.embedder import Embedder
from archive.actor.mini.wordpiece import WordPiece
from tests.archive.actor.asking_mini import CHOICE, NOUL, SCORE, STATE, Json, ask, request


@pytest.fixture(scope="module")
def mini() -> Mini:
    return Mini.load()


def refused(mini: Mini, body: bytes) -> tuple[int, Any]:
    status, reply = mini.reply("POST", body)
    return status, json.loads(reply)["detail"]


# Shapes


def test_a_reply_has_the_shape_of_system_one_and_keeps_the_order_of_questions(mini: Mini) -> None:
    status, reply = mini.reply("POST", request({"z": SCORE, "a": NOUL, "m": CHOICE}))
    parsed = json.loads(reply)
    assert status == 200
    assert list(parsed) == ["model", "answers", "usage"]
    assert list(parsed["answers"]) == ["z", "a", "m"]
    assert list(parsed["answers"]["a"]) == ["type", "noul"]
    assert list(parsed["answers"]["m"]) == ["type", "choice", "confidence", "probabilities"]
    assert list(parsed["answers"]["z"]) == ["type", "score", "confidence", "legend", "probabilities"]
    assert parsed["answers"]["z"]["legend"] == {"0": "Calm.", "1": "Annoyed.", "2": "Furious."}
    assert reply == json.dumps(parsed, ensure_ascii=False, separators=(",", ":")).encode()


def test_usage_counts_what_was_read_and_follows_the_published_rule_for_output(mini: Mini) -> None:
    usage = json.loads(mini.reply("POST", request({"n": NOUL, "c": CHOICE, "s": SCORE}, "Pay me."))[1])["usage"]
    texts = ["Pay me.", NOUL["instructions"], "Which team?", "billing: Payments.", "it", "How angry?"]
    pieces = sum(WordPiece.load().tokens(text, 256).pieces for text in [*texts, *SCORE["criteria"]])
    assert usage == {"input_tokens": pieces, "output_tokens": 20 + (17 + 2 * 7) + 17}


def test_the_model_list_names_the_alias_and_what_really_answers(mini: Mini) -> None:
    status, reply = mini.reply("GET", b"")
    models = json.loads(reply)["models"]
    assert status == 200
    assert [model["name"] for model in models] == ["mini", mini.model]
    assert all(isinstance(model[key], str) for model in models for key in ("description", "release_date"))
    assert json.loads(mini.reply("POST", request({"q": NOUL}))[1])["model"] == mini.model
    assert mini.reply("PUT", b"")[0] == 405


def test_the_name_changes_with_the_read_outs_and_is_eight_hex_digits(mini: Mini) -> None:
    heads = readouts.HEADS.read_bytes()
    assert mini.model == f"askonce-mini-8199be6f-{hashlib.sha256(heads).hexdigest()[:8]}"
    other = Mini(Embedder.load(), readouts.Readouts(heads + b" "))
    assert len(mini.name) == 8 and int(mini.name, 16) >= 0
    assert other.name != mini.name


@pytest.mark.parametrize(
    "question",
    [
        {"type": "choice", "criteria": {"only": None}},
        {"type": "choice", "instructions": None, "criteria": {"": None, "a": ""}},
        {"type": "choice", "instructions": ["Route it.", {"to": "one"}], "criteria": {"a": {"is": [1]}, "b": ["x"]}},
        {"type": "score", "criteria": ["only"]},
        {"type": "score", "instructions": {"scale": "anger"}, "criteria": [{"label": "Calm"}, ["Angry", 1.0], ""]},
        {"type": "noul", "criteria": {"true": "They threaten.", "yes": 5}},
        {"type": "noul", "instructions": None, "criteria": {"false": ["No threat."]}},
        {"type": "noul", "instructions": {"task": "Refund?"}, "criteria": None, "extra": 1},
    ],
)
@pytest.mark.parametrize("state", [STATE, "", [], {"subject": "Twice", "plan": None, "n": [1, 2.5, True]}])
def test_what_the_hosted_api_accepts_is_accepted(mini: Mini, question: Json, state: object) -> None:
    assert ask(mini, question, state)["type"] == question["type"]


def test_a_legend_repeats_the_levels_as_they_were_sent_even_numbers_python_cannot_hold(mini: Mini) -> None:
    body = '{"state":"x","questions":{"q":{"type":"score","criteria":[{"n":18446744073709551617,"f":1.0},[1e400,%s]]}}}'
    status, reply = mini.reply("POST", (body % ("9" * 5_000)).encode())
    legend = json.loads(reply)["answers"]["q"]["legend"]
    assert status == 200
    assert legend == {"0": {"n": 18446744073709551617, "f": 1.0}, "1": ["1e400", "9" * 5_000]}


def test_text_goes_out_raw_and_half_a_surrogate_pair_as_the_escape_it_was(mini: Mini) -> None:
    body = '{"state":"x","questions":{"q\\ud800":{"type":"choice","criteria":{"환불 \\ud83d":null,"🙂":null}}}}'
    status, reply = mini.reply("POST", body.encode())
    assert status == 200
    assert b'"q\\ud800":' in reply and '"환불 \\ud83d":'.encode() in reply and '"🙂":'.encode() in reply


# Refusals


def union(loc: list[object], value: object) -> list[Json]:
    kinds = (("string", "str"), ("dictionary", "dict[str,any]"), ("list", "list[any]"))
    return [
        {
            "type": {"string": "string_type", "dictionary": "dict_type", "list": "list_type"}[kind],
            "loc": [*loc, member],
            "msg": f"Input should be a valid {kind}",
            "input": value,
        }
        for kind, member in kinds
    ]


def one(kind: str, loc: list[object], message: str, value: object, **ctx: object) -> list[Json]:
    return [{"type": kind, "loc": ["body", *loc], "msg": message, "input": value, **({"ctx": ctx} if ctx else {})}]


def bad_json(at: int, error: str) -> list[Json]:
    return one("json_invalid", [at], "JSON decode error", {}, error=error)


TAGS = "'noul', 'choice', 'score'"
NO_TAG = f"Input tag 'boolean' found using 'type' does not match any of the expected tags: {TAGS}"
NO_ITEMS = "Dictionary should have at least 1 item after validation, not 0"
NO_MAP = "Input should be a valid dictionary or object to extract fields from"
NO_NOUL = "Noul question must have criteria or instructions: q"
TEN = "Too many score levels. Must have at most 10 levels."
UNTAGGED = "Unable to extract tag using discriminator 'type'"
TAG = {"discriminator": "'type'"}
BOOLEAN = {**TAG, "tag": "boolean", "expected_tags": TAGS}
IMAGES = {"error_type": "api_usage_error", "message": asked.NO_IMAGES}
MANY = {str(at): None for at in range(256)}


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b'{"state":x', 422, bad_json(9, "Expecting value")),
        (b"", 422, bad_json(0, "Expecting value")),
        (b'{"state":NaN}', 422, bad_json(9, "Expecting value")),
        (b'{"state":"\xff"}', 422, bad_json(10, "invalid start byte")),
        (
            b"[1]",
            422,
            one("model_attributes_type", [], NO_MAP, [1]),
        ),
        (b'{"questions":{}}', 422, one("missing", ["state"], "Field required", {"questions": {}})),
        (request({"q": NOUL}, None), 422, union(["body", "state"], None)),
        (b'{"state":"x"}', 422, one("missing", ["questions"], "Field required", {"state": "x"})),
        (
            request({}),
            422,
            one("too_short", ["questions"], NO_ITEMS, {}, field_type="Dictionary", min_length=1, actual_length=0),
        ),
        (
            request({"q": {"type": "boolean"}}),
            422,
            one("union_tag_invalid", ["questions", "q"], NO_TAG, {"type": "boolean"}, **BOOLEAN),
        ),
        (
            request({"q": {}}),
            422,
            one("union_tag_not_found", ["questions", "q"], UNTAGGED, {}, **TAG),
        ),
        (
            request({"q": {"type": "score", "criteria": ["a", None]}}),
            422,
            union(["body", "questions", "q", "score", "criteria", 1], None),
        ),
        (
            request({"q": {"type": "choice", "criteria": ["a"]}}),
            422,
            one("dict_type", ["questions", "q", "choice", "criteria"], "Input should be a valid dictionary", ["a"]),
        ),
        (
            request({"q": {"type": "score", "criteria": {"0": "a"}}}),
            422,
            one("list_type", ["questions", "q", "score", "criteria"], "Input should be a valid list", {"0": "a"}),
        ),
        (
            request({"q": {"type": "score"}}),
            422,
            one("missing", ["questions", "q", "score", "criteria"], "Field required", {"type": "score"}),
        ),
        (request({"": NOUL}), 400, "Question key cannot be empty."),
        (request({"q": {"type": "noul"}}), 400, NO_NOUL),
        (request({"q": {"type": "noul", "criteria": {"yes": "x"}}}), 400, NO_NOUL),
        (request({"q": {"type": "choice", "criteria": {}}}), 400, "Choice question must have at least one choice: q"),
        (request({"q": {"type": "choice", "criteria": MANY}}), 400, "Too many choices. Must have at most 255 choices."),
        (request({"q": {"type": "score", "criteria": ["x"] * 11}}), 400, TEN),
        (request({"q": {"type": "score", "criteria": []}}), 400, "Score question must have at least one level: q"),
        (request({"q": {"type": "box", "instructions": "Where?"}}), 400, IMAGES),
        (request({"q": NOUL}, assets={"a": {"type": "image"}}), 400, IMAGES),
        (b"[" * 100_000, 400, asked.NESTED),
        (b'{"state":' + b"[" * 150 + b"]" * 150 + b"}", 400, asked.NESTED),
        (b'{"x":' + b"[" * 600 + b"]" * 600 + b"}", 400, asked.NESTED),
        (b" " * (asked.BODY_BYTES_MAX + 1), 400, "Request too large. The built-in model reads at most 4194304 bytes."),
        (
            request({str(at): NOUL for at in range(1_025)}),
            400,
            "Too many questions. The built-in model takes at most 1024 at a time.",
        ),
        (
            request({str(at): {**NOUL, "instructions": f"{at} word" * 250} for at in range(200)}),
            400,
            "Too much to read at once. The built-in model takes at most 32768 tokens of different texts; "
            "ask fewer questions at a time.",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_the_way_system_one_says_it(mini: Mini, body: bytes, status: int, detail: object) -> None:
    assert refused(mini, body) == (status, detail)


def test_hostile_bytes_are_answered_or_refused_and_never_raise(mini: Mini) -> None:
    chance = random.Random(20)
    seeds = [request({"n": NOUL, "c": CHOICE, "s": SCORE}), request({"q": SCORE}, {"a": [1, {"b": None}]})]
    pieces = [
        b'"',
        b"{",
        b"]",
        b"null",
        b"\\ud800",
        b"\xf0\x28",
        b"1e999",
        b"-",
        b"0" * 30,
        b"\x00",
        b'{"type":"score"}',
    ]
    statuses: set[int] = set()
    for _ in range(600):
        body = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(body))
            body[at : at + chance.randint(0, 8)] = chance.choice(pieces)
        status, reply = mini.reply("POST", bytes(body))
        json.loads(reply)
        statuses.add(status)
    values: list[object] = [None, True, 5, 1.5, "", "x", [], {}, [None], {"type": []}, {"type": {"a": 1}}]
    for value in values:
        for question in (
            {**kind, key: value} for kind in (NOUL, CHOICE, SCORE) for key in ("type", "instructions", "criteria")
        ):
            statuses.add(mini.reply("POST", request({"q": question}))[0])
        for body in (
            request({"q": NOUL}, value),
            request({"q": value}),
            json.dumps({"state": "x", "questions": value}).encode(),
        ):
            statuses.add(mini.reply("POST", body)[0])
    assert statuses == {200, 400, 422}
