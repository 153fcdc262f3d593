"""How tests ask the built-in model: one question of each type, and the request around it."""

import json
from typing import Any

from archive.actor.mini import Mini

Json = dict[str, Any]

STATE = "I was billed twice for March and want my money back."
NOUL: Json = {"type": "noul", "instructions": "Does the customer want a refund?"}
CHOICE: Json = {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "Payments.", "it": None}}
SCORE: Json = {"type": "score", "instructions": "How angry?", "criteria": ["Calm.", "Annoyed.", "Furious."]}


def request(questions: Json, state: object = STATE, **more: object) -> bytes:
    """The body of a request, as an SDK would send it."""
    return json.dumps({"model": "jev-latest", "state": state, "questions": questions, **more}).encode()


def ask(mini: Mini, question: Json, state: object = STATE) -> Json:
    """The answer to one question."""
    status, reply = mini.reply("POST", request({"q": question}, state))
    assert status == 200, reply
    return json.loads(reply)["answers"]["q"]
