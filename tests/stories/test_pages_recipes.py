"""A question when its recipe, its model or its address has changed since it was asked."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import site, upstream
from tests.pages import Jev, visitor
from tests.stored import rows
from web import recipe


@pytest.fixture
def new_recipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on another recipe is in force, which puts its questions differently."""

    def change() -> None:
        for module in ("recipe", "asking", "view", "pages"):
            monkeypatch.setattr(f"web.{module}.VERSION", recipe.VERSION + 1 if module == "recipe" else recipe.VERSION)
        monkeypatch.setattr(recipe, "KIND_OF_QUESTION", "Of what kind is this?")
        monkeypatch.setattr(recipe, "ANSWER_IS_YES", "Is it so?")

    return change


async def test_what_an_older_recipe_came_to_stays_and_stays_free(
    tmp_path: Path, new_recipe: Callable[[], None]
) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(counting=True)) as me:
        before = await me.ask("Is it?")
        held = before.html.one("div", class_="acts").one("a", data_step="")["href"]
        new_recipe()
        looked = await me.look("Is it?")
        asked = await me.ask("Is it?")
        old_link = await me.get(held)
        await me.press(before.calls[1].one("form"))  # on a page from before
        assert me.sent == 2
        renewed = await me.press(asked.html.one("div", class_="tell").one("form"))
        assert me.sent == 4
    assert looked.names == asked.names == old_link.names == before.names
    assert looked.words == asked.words == old_link.words == before.words
    assert (looked.states, old_link.states) == (["record", "record"], ["pinned", "pinned"])
    assert "This was answered by recipe 1; questions are put differently now. It stays as it was, free." in looked.main
    assert "Ask by the new recipe, price unknown" in looked.main
    assert not any(call.all("form") for call in looked.calls)
    assert "asked 2 times" in asked.main
    assert not set(renewed.names) & set(before.names)
    assert "answered by recipe" not in renewed.main
    assert rows(tmp_path / "a.db", "SELECT times, recipe FROM question") == [(4, 2)]


async def test_a_pinned_answer_of_an_older_recipe_has_the_words_of_that_answer(
    tmp_path: Path, new_recipe: Callable[[], None]
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        before = await me.ask("Is it?")
        me.jev.noul = 0.2
        await me.press(before.calls[1].one("form"))
        new_recipe()
        newest = await me.look("Is it?")
        back = await me.get(newest.calls[1].one("a", rel="prev")["href"])
        assert me.sent == 3
    assert (newest.words, newest.states) == ("Probably no", ["record", "record"])
    assert (back.words, back.states, back.names[1]) == ("Probably yes", ["record", "pinned"], before.names[1])


async def test_another_model_is_asked_anew_and_the_page_names_who_answered(tmp_path: Path) -> None:
    """B08. What the first model said is still shown, as what it is, and never passed off as the second's."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with visitor(store, model, Jev(model="jev-1.12.0", noul=0.97), model="jev-1.12") as me:
            first = await me.ask("Is it?")
        async with visitor(store, model, Jev(model="jev-1.13.0", noul=0.12), model="jev-1.13") as me:
            looked = await me.look("Is it?")
            assert me.sent == 2
            second = await me.press(looked.html.one("div", class_="tell").one("form"))
            assert me.sent == 4
    assert ("answered by jev-1.12.0" in first.main, first.words) == (True, "Yes")
    assert (looked.names, looked.words) == (first.names, "Yes")
    assert "answered by jev-1.12.0" in looked.main
    assert "This was asked of another model, or at another address, than the ones set now." in looked.main
    assert ("answered by jev-1.13.0" in second.main, second.words) == (True, "Probably no")
    assert "jev-1.12" not in second.main
    assert not set(first.names) & set(second.names)


async def test_every_reply_over_the_api_says_whether_it_is_kept_which_version_and_when_made(tmp_path: Path) -> None:
    """B26. The pages' own calls are requests like all others."""
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask("Is it?")
        said = [await me.api(), await me.api(Archive_Answer="fresh"), await me.api(), await me.api(Archive_Answer="1")]
        stepped = await me.look("Is it?")
    receipts = [
        (one.headers["Archive-Sent"], one.headers["Archive-Answer"], "Archive-Kept-At" in one.headers) for one in said
    ]
    assert receipts == [("no", "1/1", True), ("now", "2/2", True), ("no", "2/2", True), ("no", "1/2", True)]
    assert page.names[1] == f"{said[0].headers['Archive-Call']}:1"
    assert stepped.names[1] == f"{said[0].headers['Archive-Call']}:2"


async def test_the_built_in_model_answers_without_a_key_and_every_page_says_what_it_is(tmp_path: Path) -> None:
    async with site(tmp_path / "a.db", "") as here:
        said = await here.send(
            "POST", "/ask", b"q=Is+the+sky+blue%3F", Content_Type="application/x-www-form-urlencoded", Origin=here.url
        )
        front = await here.send("GET", "/")
    assert said.status == 200
    assert all(b"<b>Built-in model:</b> a rough guess from wording" in page.body for page in (said, front))
