"""Telling HTTP callers apart: what they show, and where they come from without anybody's address being held."""

from collections.abc import Mapping

import pytest

from archive.errors import BadToken
from archive.messages import Caller
from archive.tokens import Token, hashed
from archive.when import DAY
from web.callers import Callers, network, secret_in

NETWORKS = [
    ("192.0.2.7", "192.0.2.0/24"), ("192.0.2.250", "192.0.2.0/24"), ("192.0.3.7", "192.0.3.0/24"),
    ("127.0.0.1", "127.0.0.0/24"), ("::ffff:192.0.2.7", "192.0.2.0/24"), ("2001:db8:0:1::7", "2001:db8:0:1::/64"),
    ("2001:db8:0:1:ffff::1", "2001:db8:0:1::/64"), ("2001:db8:0:2::7", "2001:db8:0:2::/64"),
    ("fe80::1%eth0", "fe80::/64"), ("unix socket", "unix socket"), ("", ""), ("1.2.3.4.5", "1.2.3.4.5"),
]  # fmt: skip


@pytest.mark.parametrize(("address", "found"), NETWORKS)
def test_an_address_counts_as_its_network(address: str, found: str) -> None:
    assert network(address) == found


SHOWN: list[tuple[dict[bytes, bytes], bytes]] = [
    ({}, b""),
    ({b"authorization": b"Bearer ask_1"}, b"ask_1"),
    ({b"authorization": b"bearer  ask_1 "}, b"ask_1"),
    ({b"x-api-key": b"ask_1"}, b"ask_1"),
    ({b"authorization": b"Basic YTpi", b"x-api-key": b"ask_1"}, b"ask_1"),
    ({b"authorization": b"Bearer ", b"x-api-key": b"ask_1"}, b"ask_1"),
    ({b"authorization": b"Bearer ask_1", b"x-api-key": b"ask_2"}, b"ask_1"),
    ({b"authorization": b"ask_1"}, b""),
    ({b"authorization": b"Basic YTpi"}, b""),
    ({b"cookie": b"ask_1"}, b""),
]


@pytest.mark.parametrize(("headers", "secret"), SHOWN)
def test_a_secret_is_shown_in_one_of_two_headers(headers: dict[bytes, bytes], secret: bytes) -> None:
    assert secret_in(headers) == secret


HERE = {"client": ("192.0.2.7", 5)}


def callers(tokens: Mapping[bytes, Token], day: int = 0, *, addresses: bool = True) -> Callers:
    return Callers(tokens, lambda: day * DAY, addresses=addresses)


def test_while_there_is_no_token_everybody_may_ask_and_is_told_apart_by_network() -> None:
    found = callers({})
    one, near, far = (
        found.of_api({"client": (address, 5)}, {}) for address in ("192.0.2.7", "192.0.2.8", "198.51.100.7")
    )
    assert one == near != far
    assert one == found.of_api(HERE, {b"authorization": b"Bearer sk-somebody"})
    assert found.of_page(HERE) == Caller(address=one.address, visitor=True)


def test_what_is_held_of_an_address_is_no_address_and_another_one_each_day() -> None:
    days: list[int] = [0]
    found = Callers({}, lambda: days[0] * DAY, addresses=True)
    first = found.of_page(HERE).address
    assert first == found.of_page(HERE).address
    assert len(first) == 16 and b"192.0.2" not in first
    days[0] = 1
    second = found.of_page(HERE).address
    days[0] = 0
    assert len({first, second, found.of_page(HERE).address}) == 3, "a key that was thrown away does not come back"
    assert callers({}).of_page(HERE).address != callers({}).of_page(HERE).address


def test_where_only_this_machine_can_come_no_address_is_worked_out() -> None:
    assert callers({}, addresses=False).of_api(HERE, {}) == Caller()
    assert callers({}).of_api({"client": None}, {}) == Caller()


def test_once_there_is_a_token_one_must_be_shown_that_counts() -> None:
    tokens = {hashed(b"ask_good"): Token(3, "good"), hashed(b"ask_old"): Token(2, "old", revoked_at=0)}
    found = callers(tokens)
    assert found.of_api(HERE, {b"authorization": b"Bearer ask_good"}) == Caller(3)
    for headers, missing in [
        ({}, True),
        ({b"authorization": b"Basic YTpi"}, True),
        ({b"x-api-key": b"ask_old"}, False),
        ({b"x-api-key": b"ask_goo"}, False),
        ({b"authorization": b"Bearer ask_good, Bearer ask_good"}, False),
        ({b"authorization": b"Bearer \xff\xfe"}, False),
        ({b"x-api-key": hashed(b"ask_good")}, False),
        ({b"x-api-key": hashed(b"ask_good").hex().encode()}, False),
    ]:
        with pytest.raises(BadToken) as caught:
            found.of_api(HERE, headers)
        assert caught.value.missing is missing, headers


def test_when_every_token_is_revoked_the_api_does_not_open_again() -> None:
    with pytest.raises(BadToken):
        callers({hashed(b"ask_old"): Token(2, "old", revoked_at=0)}).of_api(HERE, {})


def test_a_secret_of_ours_that_is_not_known_here_is_refused_though_all_may_ask() -> None:
    """It would go up to the model as the caller's own key."""
    with pytest.raises(BadToken):
        callers({}).of_api(HERE, {b"authorization": b"Bearer ask_of_another_store"})
