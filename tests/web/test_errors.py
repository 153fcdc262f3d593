"""Whose API was called, and what an error looks like there."""

import json

import pytest

from archive.attempts import Reply
from archive.errors import BadToken, Busy, CallFailed, CallUnknown, Cooling, Forbidden, Invalid, NotKept, TooLarge
from web.errors import Shape, refusal, shape_of, told

SYSTEM_ONE, OPENAI, OPENROUTER, ANTHROPIC = Shape

NOWHERE = [
    ("/v1/systemone", SYSTEM_ONE), ("/v1/v1/systemone", SYSTEM_ONE), ("/systemone/", SYSTEM_ONE), ("/", SYSTEM_ONE),
    ("/v1/models", SYSTEM_ONE), ("/typesafe/v1/models", SYSTEM_ONE), ("/v1", SYSTEM_ONE), ("/nowhere", SYSTEM_ONE),
    ("/api/v1/systemone", SYSTEM_ONE), ("/to/x/v1/systemone?a=b/c", SYSTEM_ONE), ("//[", SYSTEM_ONE),
    ("/v1/decisions", OPENAI), ("/decisions", OPENAI), ("/v1/v1/decisions/", OPENAI), ("/v1/Embeddings", OPENAI),
    ("/v1/chat/completions", OPENAI), ("/v1/responses", OPENAI), ("/to/nobody/x", OPENAI), ("/to", OPENAI),
    ("/api/alpha/decisions", OPENROUTER), ("/alpha/decisions", OPENROUTER), ("/api/v1/chat/completions", OPENROUTER),
    ("/v1/messages", ANTHROPIC), ("/api/v1/messages", ANTHROPIC),
]  # fmt: skip


@pytest.mark.parametrize(("path", "shape"), NOWHERE)
def test_an_address_at_which_nothing_is_tells_whose_api_was_meant(path: str, shape: Shape) -> None:
    assert shape_of(path) is shape


LED = [
    ("/to/x/systemone", "https://api.openai.com", SYSTEM_ONE),
    ("/to/x/v1/models", "https://api.typesafe.ai", SYSTEM_ONE),
    ("/to/x/v1/models", "https://gateway.test/typesafe", SYSTEM_ONE),
    ("/typesafe/v1/other", "https://gateway.test", SYSTEM_ONE),
    ("/to/x/models", "https://api.openai.com/v1", OPENAI),
    ("/to/x/chat/completions", "https://api.openai.com/v1", OPENAI),
    ("/to/api/x", "https://llm.test", OPENAI),
    ("/to/x/any/thing", "https://llm.test/api", OPENAI),
    ("/v1/any/thing", "https://llm.test", OPENAI),
    ("/to/x/v1/chat/completions", "https://openrouter.ai/api", OPENROUTER),
    ("/to/x/alpha/decisions", "https://gateway.test", OPENROUTER),
    ("/api/v1/models", "https://gateway.test", OPENROUTER),
    ("/to/x/v1/messages", "https://api.anthropic.com", ANTHROPIC),
    ("/v1/messages", "https://api.anthropic.com/v1", ANTHROPIC),
]  # fmt: skip


@pytest.mark.parametrize(("path", "base", "shape"), LED)
def test_what_leads_to_a_destination_has_the_shape_of_the_api_there(path: str, base: str, shape: Shape) -> None:
    assert shape_of(path, base) is shape


BODIES = {
    SYSTEM_ONE: {"detail": {"error_type": "over_limit", "message": "No."}},
    OPENAI: {"error": {"message": "No.", "type": "rate_limit_error", "param": None, "code": "over_limit"}},
    OPENROUTER: {"error": {"code": 429, "message": "No."}},
    ANTHROPIC: {"type": "error", "error": {"type": "rate_limit_error", "message": "No."}},
}


@pytest.mark.parametrize("shape", Shape)
def test_each_api_has_its_own_body_of_an_error(shape: Shape) -> None:
    said = refusal(shape, 429, "over_limit", "No.")
    assert (said.status, json.loads(said.body)) == (429, BODIES[shape])
    assert said.headers == [(b"content-type", b"application/json")]


TYPES = [
    (Invalid(""), "invalid_request_error"), (TooLarge(""), "request_too_large"), (NotKept(""), "not_found_error"),
    (BadToken(""), "authentication_error"), (Forbidden(""), "permission_error"), (Busy(""), "api_error"),
    (Cooling("", until=1, status=429), "rate_limit_error"), (Cooling("", until=1, status=503), "api_error"),
    (CallFailed(""), "api_error"), (CallUnknown("", at=0, waited=False), "invalid_request_error"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind"), TYPES, ids=lambda of: getattr(of, "code", of))
def test_the_type_of_an_error_follows_its_status_and_its_code_is_ours(error: Invalid, kind: str) -> None:
    said = json.loads(told(error, 0, OPENAI).body)["error"]
    assert (said["type"], said["code"]) == (kind, error.code)
    assert json.loads(told(error, 0, ANTHROPIC).body)["error"]["type"] == kind


@pytest.mark.parametrize(
    ("shape", "header"),
    [(SYSTEM_ONE, b"x-typesafe-request-id"), (OPENAI, b"x-request-id"), (OPENROUTER, b"x-request-id"),
     (ANTHROPIC, b"request-id")],
)  # fmt: skip
def test_a_refusal_of_the_providers_own_is_passed_on_with_its_id_where_clients_look(
    shape: Shape, header: bytes
) -> None:
    reply = Reply(429, b'{"own":1}', "application/problem+json", "req_1", ("7",), ("70",))
    said = told(CallFailed("It refused.", reply=reply), 0, shape)
    assert (said.status, said.body) == (429, b'{"own":1}')
    assert said.headers == [
        (b"content-type", b"application/problem+json"), (header, b"req_1"), (b"retry-after", b"7"),
        (b"retry-after-ms", b"70"),
    ]  # fmt: skip
