"""Callers say which answer they want in headers; only asking afresh, and a first ask, ever send anything."""

from pathlib import Path

import pytest

from tests.fakes import answer, body, site, upstream
from tests.stored import answers, counts


async def test_asking_afresh_adds_a_version_and_the_first_stays_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        model.number_answers()
        await here.ask()
        fresh = await here.ask(Archive_Answer="fresh")
        first = await here.ask(Archive_Answer="1")
        second = await here.ask(Archive_Answer="2")
        newest = await here.ask()
    assert (fresh.body, fresh.headers["Archive-Answer"], fresh.headers["Archive-Sent"]) == (answer(0.02), "2/2", "now")
    assert (first.body, first.headers["Archive-Answer"], first.headers["Archive-Sent"]) == (answer(0.01), "1/2", "no")
    assert (second.body, second.headers["Archive-Answer"], second.headers["Archive-Sent"]) == (
        answer(0.02),
        "2/2",
        "no",
    )
    assert (newest.body, newest.headers["Archive-Answer"], newest.headers["Archive-Sent"]) == (
        answer(0.02),
        "2/2",
        "no",
    )
    assert len(model.got) == 2
    assert answers(store) == {b'"Is it?"': [answer(0.01), answer(0.02)]}
    assert counts(store) == {"now": 2, "no": 3}


async def test_the_first_version_outlives_a_restart_under_its_own_number(tmp_path: Path) -> None:
    async with upstream() as model:
        model.number_answers()
        async with site(tmp_path / "a.db", model.url) as here:
            await here.ask()
            await here.ask(Archive_Answer="fresh")
        async with site(tmp_path / "a.db", model.url) as here:
            first = await here.ask(Archive_Answer="1")
            newest = await here.ask()
    assert (first.body, first.headers["Archive-Answer"]) == (answer(0.01), "1/2")
    assert (newest.body, newest.headers["Archive-Answer"]) == (answer(0.02), "2/2")


async def test_an_equal_answer_asked_for_afresh_is_a_version_of_its_own(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        fresh = await here.ask(Archive_Answer=" Fresh ")
    assert (fresh.body, fresh.headers["Archive-Answer"]) == (answer(), "2/2")


async def test_only_if_cached_never_sends(tmp_path: Path) -> None:
    """504 when nothing is kept, as RFC 9111 §5.2.1.7 has it."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        new = await here.ask(Cache_Control="only-if-cached")
        sent = len(model.got)
        await here.ask()
        kept = await here.ask(Cache_Control="max-age=0, Only-If-Cached")
    assert (new.status, new.error, sent) == (504, "not_kept", 0)
    assert (kept.status, kept.body) == (200, answer())
    assert len(model.got) == 1


async def test_a_version_that_is_not_there_is_not_found_and_nothing_is_sent(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        new = await here.ask(Archive_Answer="1")
        await here.ask()
        beyond = await here.ask(Archive_Answer="2")
    assert (new.status, new.error) == (404, "not_kept")
    assert (beyond.status, beyond.error) == (404, "not_kept")
    assert len(model.got) == 1


async def test_no_cache_alone_spends_nothing(tmp_path: Path) -> None:
    """Browsers and tools add it by themselves."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask(Cache_Control="no-cache", Pragma="no-cache")
        again = await here.ask(Cache_Control="no-cache, no-store, max-age=0", Pragma="no-cache")
    assert (again.status, again.headers["Archive-Sent"], len(model.got)) == (200, "no", 1)


async def test_no_cache_asks_afresh_where_the_owner_has_set_it_so(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url, no_cache_is_fresh=True) as here:
        model.number_answers()
        await here.ask()
        fresh = await here.ask(Cache_Control="no-cache")
        first = await here.ask(Cache_Control="no-cache", Archive_Answer="1")
        kept = await here.ask(Cache_Control="no-cache, only-if-cached")
    assert (fresh.body, fresh.headers["Archive-Answer"]) == (answer(0.02), "2/2")
    assert (first.body, first.headers["Archive-Answer"]) == (answer(0.01), "1/2")
    assert kept.headers["Archive-Sent"] == "no"
    assert len(model.got) == 2


@pytest.mark.parametrize(
    "word", ["0", "-1", "01", "1.0", "1/2", "latest", "", "\u0661".encode().decode("latin-1"), "9" * 10]
)
async def test_a_word_that_names_no_answer_is_refused_clearly(tmp_path: Path, word: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(Archive_Answer=word)
    assert (said.status, said.error) == (400, "invalid")
    assert said.text == "Archive-Answer takes the number of an answer (1, 2, ...) or the word fresh."
    assert model.got == []


async def test_fresh_and_only_if_cached_contradict_each_other(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = await here.ask(Archive_Answer="fresh", Cache_Control="only-if-cached")
    assert (said.status, said.error) == (400, "invalid")
    assert model.got == []


async def test_a_header_given_twice_never_costs_more_than_its_parts(tmp_path: Path) -> None:
    """A header's lines are one list (RFC 9110 §5.3): none may be lost, least of all the one that saves a call."""
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        for first, second in [("only-if-cached", "no-cache"), ("no-cache", "only-if-cached")]:
            lines = [("Content-Type", "application/json"), ("Cache-Control", first), ("Cache-Control", second)]
            async with here.http.post(f"{here.url}/v1/systemone", data=body(), headers=lines) as response:
                assert response.status == 504
        lines = [("Content-Type", "application/json"), ("Archive-Answer", "1"), ("Archive-Answer", "fresh")]
        async with here.http.post(f"{here.url}/v1/systemone", data=body(), headers=lines) as response:
            assert response.status == 400
    assert model.got == []
