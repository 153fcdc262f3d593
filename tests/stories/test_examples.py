"""What System One's clients and server say to each other passes through unchanged, and only answers are kept."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest

from archive.attempts import REFUSED_FOR_NOW
from tests.examples import ANSWERS, ERRORS, EXAMPLES, Example
from tests.fakes import Said, Site, Upstream, site, upstream
from tests.stored import outcomes, rows
from web.app import SystemClock

PASSED_ON = ("content-type", "x-typesafe-request-id", "retry-after")
REPEATABLE = [name for name in ERRORS if EXAMPLES[name].status not in REFUSED_FOR_NOW]
COOLING = [name for name in ERRORS if EXAMPLES[name].status in REFUSED_FOR_NOW]


class StillClock(SystemClock):
    """The real time of day, and a monotonic clock that only the test moves: no cooldown ends by itself."""

    at = 1000.0

    def monotonic(self) -> float:
        return self.at


def play(model: Upstream, example: Example) -> None:
    """Have the upstream say what the example's server says."""
    model.status, model.reply = example.status, example.said
    model.headers = list(example.response_headers.items())


async def say(here: Site, example: Example, **more: str) -> Said:
    """Ask what the example's client asks."""
    async with here.http.request(
        example.method, here.url + example.path, data=example.asked or None, headers=example.request_headers | more
    ) as response:
        return Said(response.status, await response.read(), response.headers.copy())


def digests(bodies: Iterable[bytes]) -> list[str]:
    return [sha256(body).hexdigest() for body in bodies]


def assert_passed_on(said: Said, example: Example) -> None:
    """Status, bytes and the headers that belong to the answer are the example's own."""
    assert (said.status, digests([said.body])) == (example.status, digests([example.said]))
    given = {name: said.headers[name] for name in PASSED_ON if name in said.headers}
    assert given == {name: value for name, value in example.response_headers.items() if name in PASSED_ON}


@pytest.mark.parametrize("name", [name for name in ANSWERS if not name.startswith("11")])
async def test_an_answer_passes_through_unchanged_and_is_had_again_for_nothing(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        play(model, example)
        first, second = await say(here, example), await say(here, example)
    assert digests(got.body for got in model.got) == digests([example.asked])
    assert (model.got[0].method, model.got[0].path) == (example.method, example.path)
    assert_passed_on(first, example)
    assert_passed_on(second, example)
    assert (first.headers["Archive-Sent"], second.headers["Archive-Sent"]) == ("now", "no")
    sent = {header.lower(): value for header, value in example.request_headers.items()}
    assert {header: model.got[0].headers[header] for header in sent} == sent


async def test_the_second_answer_to_the_same_bytes_is_version_2_and_the_first_stays_what_it_was(tmp_path: Path) -> None:
    first, second = EXAMPLES["02-choice"], EXAMPLES["11-same-request-second-answer"]
    assert first.asked == second.asked and first.said != second.said
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        play(model, first)
        await say(here, first)
        play(model, second)
        afresh = await say(here, second, **{"Archive-Answer": "fresh"})
        latest, earlier = await say(here, second), await say(here, first, **{"Archive-Answer": "1"})
    assert_passed_on(afresh, second)
    assert_passed_on(latest, second)
    assert_passed_on(earlier, first)
    assert [said.headers["Archive-Answer"] for said in (afresh, latest, earlier)] == ["2/2", "2/2", "1/2"]
    assert digests(got.body for got in model.got) == digests([first.asked, second.asked])


async def test_reordered_options_are_another_request_and_get_their_own_answer(tmp_path: Path) -> None:
    pair = [EXAMPLES["02-choice"], EXAMPLES["12-reordered-options"]]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for example in pair:
            play(model, example)
            assert_passed_on(await say(here, example), example)
        for example in pair:
            assert_passed_on(await say(here, example), example)
    assert digests(got.body for got in model.got) == digests(example.asked for example in pair)


@pytest.mark.parametrize("name", REPEATABLE)
async def test_an_error_passes_through_unchanged_and_is_never_served_again(tmp_path: Path, name: str) -> None:
    example, store = EXAMPLES[name], tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        play(model, example)
        first, second = await say(here, example), await say(here, example)
    assert_passed_on(first, example)
    assert_passed_on(second, example)
    assert digests(got.body for got in model.got) == digests([example.asked] * 2)
    assert rows(store, "SELECT count(*) FROM answer") == [(0,)]
    assert outcomes(store) == ["failed", "failed"]


@pytest.mark.parametrize("name", COOLING)
async def test_a_refusal_for_now_is_not_asked_again_before_its_time_and_is_not_kept(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StillClock, "at", 1000.0)
    monkeypatch.setattr("web.app.SystemClock", StillClock)
    example = EXAMPLES[name]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        play(model, example)
        first, early = await say(here, example), await say(here, example)
        asked_while_cooling = len(model.got)
        StillClock.at += 2.0
        again = await say(here, example)
    assert_passed_on(first, example)
    assert asked_while_cooling == 1
    assert (early.status, early.error) == (429 if example.status == 429 else 503, "cooling")
    assert int(early.headers["Retry-After"]) in {1, 2}
    assert_passed_on(again, example)
    assert digests(got.body for got in model.got) == digests([example.asked] * 2)


async def test_a_path_nobody_serves_is_told_in_the_words_of_system_one_without_asking_it(tmp_path: Path) -> None:
    """41 asks for `/`, where System One has nothing; what it says there is said of every path that is not ours."""
    example = EXAMPLES["41-404"]
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.send("GET", "/nowhere")
    assert (said.status, said.body, said.headers["Content-Type"]) == (404, example.said, "application/json")
    assert model.got == []
