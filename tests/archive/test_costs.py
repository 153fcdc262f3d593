"""What a call cost: what the reply says, else tokens times the price that is set, else unknown."""

import json

import pytest

from archive.attempts import Price, Reply, cost, read
from archive.request import Destination, Request
from tests.fakes import START, request

COSTS: list[tuple[Price, int | None, int | None, int | None]] = [
    (Price(), 100, 20, None),
    (Price(), 0, 0, None),
    (Price(42_000_000, 0), 131, 20, 5502),
    (Price(42_000_000, 0), 131, None, 5502),
    (Price(42_000_000), 131, 0, 5502),
    (Price(42_000_000), 131, 20, None),
    (Price(42_000_000), 131, None, None),
    (Price(42_000_000, 0), None, 20, None),
    (Price(42_000_000, 10**9), 1_000_000, 1_000_000, 1_042_000_000),
    (Price(None, 10**9), 0, 3, 3000),
    (Price(None, 10**9), 5, 3, None),
    (Price(0, 0), None, None, 0),
    (Price(1, 0), 499_999, 0, 0),
    (Price(1, 0), 500_000, 0, 1),
    (Price(1, 1), 250_000, 250_000, 1),
    (Price(10**15 - 1, 0), 1_000_000, 0, 10**15 - 1),
    (Price(10**15 - 1, 0), 2**53 - 1, 0, None),
]
"""Price, tokens in and out, and what they cost in billionths of a dollar."""


@pytest.mark.parametrize(("price", "tokens_in", "tokens_out", "billionths"), COSTS)
def test_tokens_cost_what_the_price_says_and_what_is_not_known_is_never_0(
    price: Price, tokens_in: int | None, tokens_out: int | None, billionths: int | None
) -> None:
    assert cost(price, tokens_in, tokens_out) == billionths


def said(**usage: object) -> Reply:
    body = {
        "answers": {"q": {"type": "noul", "noul": 0.5}},
        "usage": {"input_tokens": 131, "output_tokens": 20} | usage,
    }
    return Reply(200, json.dumps(body).encode())


def test_a_cost_the_reply_names_counts_before_any_price() -> None:
    price = Price(42_000_000, 0)
    assert read(request(), said(), START).cost is None
    assert read(request(), said(), START, price).cost == 5502
    assert read(request(), said(cost=0.5), START, price).cost == 500_000_000
    assert read(request(), said(cost=0), START, price).cost == 0
    assert read(request(), said(cost="much"), START, price).cost == 5502


def test_the_tokens_of_a_chat_are_counted_by_its_own_names() -> None:
    chat = Reply(200, b'{"choices":[{}],"usage":{"prompt_tokens":7,"completion_tokens":3}}')
    outcome = read(Request(Destination("chat", "POST", "https://a.test/x"), b"{}"), chat, START, Price(10**9, 10**9))
    assert (outcome.input_tokens, outcome.output_tokens, outcome.cost) == (7, 3, 10_000)


def test_a_model_in_this_process_is_free_whatever_it_says() -> None:
    here = Destination("systemone", "POST", "local:mini@0")
    assert read(request(destination=here), said(cost=1), START, Price(10**9, 10**9)).cost == 0
