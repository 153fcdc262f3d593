"""Access tokens as plain rules: who may ask, how often, out of whose archive, and how a token may be named."""

import pytest

from archive.admin import LIMIT_MAX, NAME_CHARACTERS_MAX, AddToken, check_token
from archive.errors import BadToken, Invalid, OverLimit
from archive.picks import Fresh, KeptOnly, Latest, Pick, Version
from archive.tokens import Minute, Token, admit, hashed, may_ask, one_more

NOW = 1_780_000_000_000_000

ALL = (Latest(), KeptOnly(), Version(2), Fresh(), Fresh(sure=False))


@pytest.mark.parametrize("token", [None, Token(7, "t", revoked_at=0), Token(7, "t", fresh=False, revoked_at=0)])
def test_a_token_that_does_not_count_opens_nothing(token: Token | None) -> None:
    with pytest.raises(BadToken):
        admit(token)


@pytest.mark.parametrize("token", [Token(7, "t"), Token(7, "t", private=True), Token(7, "t", fresh=False)])
def test_any_other_does(token: Token) -> None:
    assert admit(token) is token


@pytest.mark.parametrize("pick", ALL)
@pytest.mark.parametrize("unknown", [True, False])
@pytest.mark.parametrize("fresh", [True, False])
def test_leave_to_ask_afresh_is_asked_of_who_asks_afresh_what_is_not_unknown(
    pick: Pick, unknown: bool, fresh: bool
) -> None:
    assert may_ask(Token(7, "t", fresh=fresh), pick, unknown=unknown) == (
        not isinstance(pick, Fresh) or fresh or unknown
    )


def test_only_private_tokens_have_an_archive_of_their_own_and_no_two_the_same() -> None:
    assert [Token(n, "same").partition for n in (1, 11)] == ["", ""]
    own = {Token(n, "same", private=True).partition for n in range(1, 200)}
    assert len(own) == 199 and "" not in own


def test_what_is_kept_of_a_secret_is_its_plain_sha256() -> None:
    assert hashed(b"abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


MINUTES: list[tuple[Minute | None, float, Minute | None]] = [
    (None, 100.0, Minute(160.0, 1)),
    (Minute(160.0, 1), 100.0, Minute(160.0, 2)),
    (Minute(160.0, 2), 159.9, Minute(160.0, 3)),
    (Minute(160.0, 3), 159.9, None),
    (Minute(160.0, 3), 160.0, Minute(220.0, 1)),
    (Minute(160.0, 9), 500.0, Minute(560.0, 1)),
]
"""A minute, when one more comes, and the minute after that; None: it is refused. Three are allowed."""


@pytest.mark.parametrize(("before", "at", "after"), MINUTES)
def test_a_minute_takes_as_many_as_are_allowed(before: Minute | None, at: float, after: Minute | None) -> None:
    if after is not None:
        assert one_more(before, at, NOW, 3, "no more") == after
        return
    with pytest.raises(OverLimit, match="no more") as caught:
        one_more(before, at, NOW, 3, "no more")
    assert before is not None
    assert caught.value.until == NOW + round((before.ends - at) * 1_000_000)


HASH = bytes(32)

GOOD = [
    AddToken("n", HASH), AddToken("for the tests, 2027", HASH, True, False, 50, 60), AddToken("für Ann", HASH),
    AddToken("n" * NAME_CHARACTERS_MAX, HASH, day_calls_max=LIMIT_MAX, minute_asks_max=LIMIT_MAX),
]  # fmt: skip

BAD = [
    AddToken("", HASH), AddToken("  ", HASH), AddToken("a\nb", HASH), AddToken("a\x00", HASH), AddToken("\ud800", HASH),
    AddToken("n" * (NAME_CHARACTERS_MAX + 1), HASH), AddToken("n", b""), AddToken("n", bytes(31)),
    AddToken("n", bytes(33)), AddToken("n", HASH, day_calls_max=-1), AddToken("n", HASH, minute_asks_max=-1),
    AddToken("n", HASH, day_calls_max=LIMIT_MAX + 1), AddToken("n", HASH, minute_asks_max=LIMIT_MAX + 1),
]  # fmt: skip


@pytest.mark.parametrize("added", GOOD)
def test_a_token_that_can_be(added: AddToken) -> None:
    check_token(added)


@pytest.mark.parametrize("added", BAD)
def test_a_token_that_cannot_be(added: AddToken) -> None:
    with pytest.raises(Invalid):
        check_token(added)
