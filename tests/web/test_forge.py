"""The forge is asked for clones and pulls at most once an hour, nobody waits for it, and what it says is checked."""

import asyncio

import pytest

from archive.attempts import Came, Lost, NotSent, Reply, Why
from archive.messages import Key
from tests.fakes import FakeClock, QueueModel
from web.forge import EVERY_SECONDS, Forge, Traffic

URL = "https://forge.example.test/repos/askonce/askonce"
CLONES = Reply(
    200, b'{"count":173,"uniques":128,"clones":[{"timestamp":"2026-11-20T00:00:00Z","count":9,"uniques":8}]}'
)
IMAGE = Reply(200, b'{"name":"askonce","pull_count":1204}')
NONE = Reply(404, b'{"message":"Not Found"}')


async def tell(model: QueueModel, forge: Forge, *came: Came) -> Traffic:
    """Reply to what the forge is asked, one after the other; what is known then."""
    for one in came:
        (await model.next()).set_result(one)
    await forge.settled()
    return forge.traffic()


async def test_both_are_asked_for_with_the_key_and_nobody_waits() -> None:
    model, clock = QueueModel(), FakeClock()
    async with Forge(model, URL + "/", Key("k"), clock.monotonic) as forge:
        assert forge.traffic() == Traffic(), "at once, while it is being asked"
        assert await tell(model, forge, CLONES, IMAGE) == Traffic(173, 1204)
    assert [(r.destination.method, r.destination.url) for r in model.requests] == [
        ("GET", f"{URL}/traffic/clones"), ("GET", URL)
    ]  # fmt: skip
    assert {key.secret for key in model.keys} == {"k"}


async def test_it_is_asked_at_most_once_an_hour_whatever_it_said() -> None:
    model, clock = QueueModel(), FakeClock()
    async with Forge(model, URL, Key(""), clock.monotonic) as forge:
        forge.traffic()
        assert await tell(model, forge, NONE, NONE) == Traffic()
        for _ in range(3):
            clock.advance(EVERY_SECONDS / 3 - 0.1)
            forge.traffic()
            await asyncio.sleep(0)
        assert len(model.requests) == 2
        clock.advance(1)
        forge.traffic()
        assert await tell(model, forge, CLONES, NONE) == Traffic(173)
    assert len(model.requests) == 4


NOTHING: list[Came] = [
    NotSent(Why.NO_CONNECTION), Lost(Why.SLOW), NONE, Reply(500, b'{"count":5,"pull_count":5}'), Reply(200, b""),
    Reply(200, b"[]"), Reply(200, b'{"count":"5","pull_count":"5"}'), Reply(200, b'{"count":-1,"pull_count":-1}'),
    Reply(200, b'{"count":1.5,"pull_count":1e400}'), Reply(200, b"\xff"), Reply(301, b""),
]  # fmt: skip


@pytest.mark.parametrize("came", NOTHING, ids=str)
async def test_what_is_no_number_is_not_known_and_what_was_known_stays(came: Came) -> None:
    model, clock = QueueModel(), FakeClock()
    async with Forge(model, URL, Key(""), clock.monotonic) as forge:
        forge.traffic()
        assert await tell(model, forge, came, IMAGE) == Traffic(None, 1204)
        clock.advance(EVERY_SECONDS)
        forge.traffic()
        assert await tell(model, forge, came, came) == Traffic(None, 1204)


async def test_a_forge_that_is_left_while_it_is_asked_is_asked_no_more() -> None:
    model = QueueModel()
    async with Forge(model, URL, Key(""), FakeClock().monotonic) as forge:
        forge.traffic()
        await model.next()
    assert len(model.requests) == 1
