"""Access tokens behind the door: budgets that hold exactly, archives that stay apart, revoking that works at once."""

import asyncio
import sqlite3
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from archive.actor.actor import Actor, Limits
from archive.actor.store import Record, Store
from archive.admin import AddToken, RevokeToken, Tokens
from archive.attempts import Lost
from archive.errors import ArchiveError, BadToken, CallUnknown, Forbidden, Invalid, NotFound, NotKept, OverLimit
from archive.messages import Answered, Ask, Caller, Named, Sent, Show
from archive.picks import Fresh, KeptOnly, Latest, Version
from archive.tokens import Token
from archive.when import DAY
from tests.actors import Writes, add_token, all_at_once, assert_whole, echoing, on, queued, refused, told, turns, visit
from tests.fakes import START, reply, request
from tests.stored import rows

# -- made, listed, revoked, kept ---------------------------------------------------------------------------------------


async def test_tokens_are_listed_as_they_were_made_with_what_was_sent_for_them_today(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, clock):
        first = await door.send(add_token("first", private=True, day_calls_max=7, minute_asks_max=60))
        clock.advance(5)
        second = await door.send(add_token("second", fresh=False))
        for words in ("a", "b", "a"):
            await door.send(on(second, words))
        listed = await door.send(Tokens())
        assert first == Token(1, "first", True, True, 7, 60, START)
        assert second == Token(2, "second", False, False, 0, 0, START + 5_000_000)
        assert [(one.token, one.sent_today) for one in listed] == [(first, 0), (second, 2)]
        clock.advance(DAY // 1_000_000)
        assert [one.sent_today for one in await door.send(Tokens())] == [0, 0]


async def test_what_cannot_be_a_token_is_none(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, _, _):
        made = await door.send(add_token("here"))
        same = sha256(b"here").digest()
        for wrong in (add_token("here"), AddToken("other", same), AddToken("", bytes(32)), AddToken("n", b"")):
            with pytest.raises(Invalid):
                await door.send(wrong)
        with pytest.raises(NotFound):
            await door.send(RevokeToken(2))
        await door.send(RevokeToken(1))
        with pytest.raises(Invalid, match="very secret"):
            await door.send(AddToken("other", same))
        assert [one.token.number for one in await door.send(Tokens())] == [made.number]


async def test_a_restart_keeps_tokens_budgets_revocations_and_their_archives(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with echoing(store) as (door, _, clock):
        own = await door.send(add_token("own", private=True, day_calls_max=2))
        old = await door.send(add_token("old"))
        await door.send(on(own, "a"))
        gone = await door.send(RevokeToken(old.number))
        before, known = dict(door.tokens), await door.send(Tokens())
    async with echoing(store, clock) as (door, model, _):
        assert dict(door.tokens) == before and await door.send(Tokens()) == known
        assert gone.revoked_at == START
        assert (await door.send(on(own, "a"))).sent is Sent.NOT_SENT
        await door.send(on(own, "b"))
        assert isinstance(await refused(door, on(own, "c")), OverLimit)
        assert isinstance(await refused(door, on(old)), BadToken)
        assert len(model.requests) == 1
    assert_whole(store)


async def test_a_name_may_be_given_again_and_its_archive_may_not(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _):
        first = await door.send(add_token("ann", private=True))
        await door.send(on(first))
        await door.send(RevokeToken(first.number))
        second = await door.send(AddToken("ann", bytes(32), private=True))
        assert second.number != first.number
        assert isinstance(await refused(door, on(second, pick=KeptOnly())), NotKept)
        await door.send(on(second))
        assert len(model.requests) == 2


async def test_no_token_is_ever_deleted_so_no_number_names_two_archives(tmp_path: Path) -> None:
    """Held by the writing connection itself; without its guard the number would come again."""
    async with echoing(tmp_path / "a.db") as (door, _, _):
        await door.send(add_token())
    for guarded in (True, False):
        store = await Store.open(tmp_path / "a.db")
        try:
            if guarded:
                with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                    await store.write(lambda record: record.db.execute("DELETE FROM token"))
            else:
                await store.write(_unguarded)
        finally:
            await store.close()


def _unguarded(record: Record) -> None:
    record.db.set_authorizer(None)
    record.db.execute("DELETE FROM token")
    assert record.add_token(add_token("another"), START) == 1


# -- archives of their own ---------------------------------------------------------------------------------------------


async def test_what_a_private_token_asks_is_its_own_and_nobody_elses(tmp_path: Path) -> None:
    """B10: the same bytes, one archive each; not for another token, a visitor, by a name or a claimed partition."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        ann, bob, both = [await door.send(add_token(name, private=name != "both")) for name in ("ann", "bob", "both")]
        asking = all_at_once(door, [on(one) for one in (ann, bob, both, ann, bob, both)] + [visit()])
        for n in range(3):
            (await model.next()).set_result(reply(n / 10))
        said = [await told(one) for one in asking]
        kept = [one.kept for one in said if isinstance(one, Answered)]
        assert [one.sent.value for one in said if isinstance(one, Answered)] == ["now"] * 3 + ["shared"] * 4
        assert len({one.body for one in kept}) == len({one.call_id for one in kept}) == 3
        assert kept[2] == kept[5] == kept[6]
        mine, his, ours = kept[:3]
        assert len(model.requests) == 3
        for one, token in ((mine, ann), (his, bob)):
            assert await door.send(Named(one.call_id, visitor=True)) == ()
            assert await door.send(Named(one.call_id)) == (one.request_id,), "the owner finds all"
            assert (await door.send(Show(one.request_id))).request.partition == token.partition
        assert await door.send(Named(ours.call_id)) == (ours.request_id,)
        claimed = msgspec.structs.replace(request(), partition=ann.partition)
        sly = [
            msgspec.structs.replace(on(bob, pick=pick), request=claimed) for pick in (Latest(), KeptOnly(), Version(1))
        ]
        assert [(await door.send(one)).kept.body for one in sly] == [his.body] * 3


async def test_without_the_rule_that_gives_each_its_archive_all_would_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Token, "partition", "")
    async with echoing(tmp_path / "a.db") as (door, model, _):
        ann, bob = [await door.send(add_token(name, private=True)) for name in ("ann", "bob")]
        await door.send(on(ann))
        assert (await door.send(on(bob))).sent is Sent.NOT_SENT
        assert len(model.requests) == 1


# -- revoking ----------------------------------------------------------------------------------------------------------


async def test_a_revoked_token_gets_nothing_from_that_moment_on_not_even_what_lies_ready(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db") as (door, model, _):
        token = await door.send(add_token())
        await door.send(on(token))
        assert (await door.send(on(token))).sent is Sent.NOT_SENT
        await door.send(RevokeToken(token.number))
        for pick in (Latest(), KeptOnly(), Version(1), Fresh()):
            assert isinstance(await refused(door, on(token, pick=pick)), BadToken)
        assert isinstance(await refused(door, on(7)), BadToken)
        again = await door.send(RevokeToken(token.number))
        assert (again.revoked_at, len(model.requests)) == (START, 1)


async def test_a_token_revoked_while_its_call_is_on_the_wire_gets_no_answer_and_the_answer_is_kept(
    tmp_path: Path,
) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        leaked, good = [await door.send(add_token(name)) for name in ("leaked", "good")]
        asking = all_at_once(door, [on(leaked), on(leaked), on(good)])
        came = await model.next()
        await door.send(RevokeToken(leaked.number))
        came.set_result(reply())
        first, second, third = [await told(one) for one in asking]
        assert isinstance(first, BadToken) and isinstance(second, BadToken)
        assert isinstance(third, Answered) and third.sent is Sent.SHARED
        assert (await door.send(on(good))).sent is Sent.NOT_SENT
        assert len(model.requests) == 1


async def test_an_ask_that_waits_behind_its_tokens_revocation_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are worked in one group: at the door the token still counted."""
    writes = Writes(monkeypatch)
    async with queued(tmp_path / "a.db") as (door, model, _):
        token = await door.send(add_token())
        holding = await writes.hold(door)
        revoking = asyncio.create_task(door.send(RevokeToken(token.number)))
        await turns(2)
        asking = asyncio.create_task(door.send(on(token)))
        await turns(2)
        writes.gate.set()
        await holding
        await revoking
        assert isinstance(await told(asking), BadToken)
        assert model.requests == []


# -- limits ------------------------------------------------------------------------------------------------------------


async def _crowd(door: Actor, token: Token, count: int) -> list[Answered | ArchiveError]:
    asking = all_at_once(door, [on(token, f"ask {n}") for n in range(count)])
    return [await told(one) for one in asking]


async def test_a_days_budget_is_exact_however_many_ask_at_once(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with echoing(store) as (door, model, clock):
        token, other = await door.send(add_token(day_calls_max=50)), await door.send(add_token("other"))
        said = await _crowd(door, token, 320)
        over = [one for one in said if isinstance(one, OverLimit)]
        assert (len(model.requests), len(over)) == (50, 270)
        assert {one.until for one in over} == {(START // DAY + 1) * DAY}
        for asked in list(model.requests):
            kept = await door.send(Ask(asked, caller=Caller(token.number)))
            assert kept.sent is Sent.NOT_SENT
        assert [one.sent_today for one in await door.send(Tokens())] == [50, 0]
        await door.send(on(other, "ask 319"))
        clock.advance(DAY / 1_000_000)
        assert len([one for one in await _crowd(door, token, 400) if isinstance(one, Answered)]) == 51 + 50
    assert rows(store, "SELECT count(*) FROM dispatch") == [(101,)]
    assert rows(store, "SELECT sent FROM token_budget ORDER BY day, token") == [(50,), (1,), (50,)]


async def test_without_the_count_in_the_transaction_the_budget_does_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uncounted(record: Record, number: int, day: int) -> int:
        return 1

    monkeypatch.setattr(Record, "spend_token", uncounted)
    async with echoing(tmp_path / "a.db") as (door, model, _):
        await _crowd(door, await door.send(add_token(day_calls_max=50)), 320)
        assert len(model.requests) == 320


async def test_what_is_refused_for_the_whole_house_costs_a_token_nothing(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db", limits=Limits(day_calls_max=2)) as (door, _, _):
        token = await door.send(add_token(day_calls_max=3))
        assert len([one for one in await _crowd(door, token, 9) if isinstance(one, OverLimit)]) == 7
        assert [one.sent_today for one in await door.send(Tokens())] == [2]


async def test_a_token_over_its_budget_does_not_use_up_the_houses(tmp_path: Path) -> None:
    async with echoing(tmp_path / "a.db", limits=Limits(day_calls_max=5)) as (door, model, _):
        small, large = await door.send(add_token("small", day_calls_max=1)), await door.send(add_token("large"))
        await _crowd(door, small, 9)
        for n in range(10, 14):
            await door.send(on(large, str(n)))
        assert len(model.requests) == 5


async def test_a_token_that_may_not_ask_afresh_is_told_so_and_joins_nobody_who_does(tmp_path: Path) -> None:
    async with queued(tmp_path / "a.db") as (door, model, _):
        token, free = await door.send(add_token(fresh=False)), await door.send(add_token("free"))
        first = asyncio.create_task(door.send(on(token)))
        (await model.next()).set_result(reply())
        assert isinstance(await told(first), Answered)
        afresh = asyncio.create_task(door.send(on(free, pick=Fresh())))
        came = await model.next()
        error = await refused(door, on(token, pick=Fresh()))
        assert isinstance(error, Forbidden) and "afresh" in error.text
        came.set_result(reply(0.1))
        assert isinstance(await told(afresh), Answered)
        assert (await door.send(on(token))).kept.n == 2
        assert len(model.requests) == 2


async def test_what_is_unknown_is_sent_again_without_leave_to_ask_afresh_within_every_limit(tmp_path: Path) -> None:
    """It is no second answer beside a first, so it takes what a first ask takes."""
    async with queued(tmp_path / "a.db") as (door, model, _):
        token = await door.send(add_token(fresh=False, day_calls_max=3, minute_asks_max=9))
        free = await door.send(add_token("free"))
        assert isinstance(await refused(door, on(token, pick=Fresh())), Forbidden), "nobody asked it yet"
        for _ in range(2):
            asking = asyncio.create_task(door.send(on(token, pick=Fresh() if model.requests else Latest())))
            (await model.next()).set_result(Lost())
            assert isinstance(await told(asking), CallUnknown)
        assert isinstance(await refused(door, on(token)), CallUnknown)
        again = asyncio.create_task(door.send(on(token, pick=Fresh())))
        came = await model.next()
        joined = asyncio.create_task(door.send(on(token, pick=Fresh())))
        await turns(5)
        came.set_result(reply())
        assert [isinstance(await told(one), Answered) for one in (again, joined)] == [True, True]
        assert isinstance(await refused(door, on(token, pick=Fresh())), Forbidden), "it is answered now"
        afresh = asyncio.create_task(door.send(on(free, pick=Fresh())))
        (await model.next()).set_result(Lost())
        assert isinstance(await told(afresh), CallUnknown)
        assert isinstance(await refused(door, on(token, pick=Fresh())), Forbidden), "there is an answer to be had"
        assert len(model.requests) == 4
        lost = asyncio.create_task(door.send(on(free, "b")))
        (await model.next()).set_result(Lost())
        await told(lost)
        over = [await refused(door, on(token, "b", Fresh())) for _ in range(2)]
        assert "calls of today" in over[0].text and "times a minute" in over[1].text
        assert len(model.requests) == 5


async def test_a_token_asks_as_often_a_minute_as_it_may_kept_answers_too(tmp_path: Path) -> None:
    """Whether an answer is kept or new, an ask counts once."""
    async with echoing(tmp_path / "a.db") as (door, model, clock):
        token, other = await door.send(add_token(minute_asks_max=10)), await door.send(add_token("other"))
        for at in range(10):
            await door.send(on(token, "Is it?" if at % 2 else f"{at}?"))
        clock.advance(45)
        clock.step(-3600)
        error = await refused(door, on(token, pick=KeptOnly()))
        assert isinstance(error, OverLimit) and error.until == clock.now() + 15_000_000
        await door.send(on(other))
        clock.advance(15)
        await door.send(on(token))
        assert len(model.requests) == 6
