"""The owner takes a person's words out, or one answer back, at a terminal while visitors look at the pages."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from pytest import MonkeyPatch

from archive.admin import Withdraw
from archive.messages import Feed, Named, Question
from tests.commands import Owner
from tests.erasing import erase, in_files
from tests.fakes import Got, body, upstream
from tests.pages import Jev, visitor
from tests.process import process
from tests.stored import rows
from web.card import Cards

WORDS = "Did Zoë O'Hara of Ghent pay?"
PERSON = "Zoë O'Hara of Ghent"
SPELLED = (PERSON.encode(), json.dumps(PERSON)[1:-1].encode(), quote(PERSON).encode(), quote(PERSON, "").encode())


async def test_an_erased_question_is_gone_from_every_page_and_its_card_from_memory(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    cards: list[Cards] = []

    def kept() -> Cards:
        cards.append(Cards())
        return cards[-1]

    forgotten = asyncio.Event()
    monkeypatch.setattr("web.pages.Cards", kept)
    forget = Cards.forget

    def forgets(one: Cards) -> None:
        forget(one)
        forgotten.set()

    monkeypatch.setattr(Cards, "forget", forgets)
    async with visitor(tmp_path / "a.db") as me:
        page = await me.ask(WORDS)
        assert PERSON in page.main
        card = urlsplit(next(meta["content"] for meta in page.html.all("meta", property="og:image"))).path
        assert (await me.get(card)).headers["Cache-Control"].endswith("immutable")
        address = f"/call/{card.split('/')[2]}/1"
        assert (await me.get(address)).status == 200
        sent = me.sent
        async with me.here.http.ws_connect(f"{me.here.url}/live", headers={"Origin": me.here.url}) as live:
            await live.send_str('{"type":"At","url":"/"}')
            assert (await erase(me.here.door, PERSON)).done
            async with asyncio.timeout(20):
                while '"Stale"' not in await live.receive_str():
                    pass
                await forgotten.wait()
        assert (await me.here.door.send(Feed())).rows == ()
        assert me.askings[0].last(Question(WORDS)) is None
        assert PERSON not in (await me.get("/")).main
        for path in (address, card):
            assert (await me.get(path)).status == 404
        assert me.sent == sent
        # At the same address it can be asked again, and that is a new question.
        assert PERSON in (await me.ask(WORDS)).main
        assert me.sent > sent


async def test_a_withdrawn_answer_is_410_where_it_was_and_the_page_shows_the_one_before(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", jev=Jev(counting=True)) as me:
        page = await me.ask("Is a hot dog a sandwich?")
        name = page.names[-1].partition(":")[0]
        await me.ask("Is a hot dog a sandwich?", again=name)
        owner = me.here
        number = (await owner.send("GET", f"/call/{name}/2")).status
        assert number == 200
        (request,) = await owner.door.send(Named(name))
        await owner.door.send(Withdraw(request, 2, "It is the wrong sandwich."))
        gone = await me.get(f"/call/{name}/2")
        assert gone.status == 410
        assert "It is the wrong sandwich." in gone.main
        assert (await me.get(f"/call/{name}/1")).status == 200
        said = await me.api(Archive_Answer="2")
        assert (said.status, said.error) == (410, "withdrawn")
        assert (await me.api()).headers["Archive-Answer"] == "1/2"


async def test_the_owner_erases_at_a_terminal_while_the_server_runs_and_without_one(tmp_path: Path) -> None:
    """C-31, B87: the test looks through the files itself, once nobody has them open."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        owner = Owner(store, model.url)
        async with process(store, model.url) as here:
            for words in (PERSON, f"{PERSON} again", "Somebody else"):
                said = await here.ask(body(words))
                assert said.status == 200
            looked = await owner.run("erase", PERSON)
            assert looked.code == 0, looked.err
            assert "Nothing was changed" in looked.text
            assert "--also-shared" not in looked.text
            assert looked.text.count("goes ") == 2
            erased = await owner.run("erase", PERSON, "--yes")
            assert erased.code == 0, erased.err
            assert "Done: no live file holds the words." in erased.text
            assert PERSON not in erased.text.partition("Receipt")[2]
            again = await owner.run("erase", "-", "--yes", "--json", stdin=f"{PERSON}\n".encode())
            assert (again.code, again.json["done"], again.json["texts"]) == (0, True, [])
            await here.terminate()
    assert in_files(tmp_path, *SPELLED) == []
    assert rows(store, "SELECT count(*) FROM answer") == [(3,)]
    alone = await owner.run("erase", "Somebody else", "--yes", "--json")
    assert (alone.code, alone.json["done"], len(alone.json["texts"])) == (0, True, 1)
    assert in_files(tmp_path, b"Somebody else") == []


@asynccontextmanager
async def terminal(store: Path) -> AsyncGenerator[Owner, None]:
    """An owner with a model that answers whatever is asked."""
    async with upstream() as model:

        async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
            named = json.loads(got.body)["questions"]
            said = {name: {"type": "noul", "noul": 0.7} for name in named}
            model.reply = json.dumps({"model": "m", "answers": said, "usage": {}}).encode()
            writer.write(model.response())
            await writer.drain()

        model.behave = behave
        yield Owner(store, model.url)


async def test_what_stays_and_what_is_asked_wrongly_has_its_exit_code(tmp_path: Path) -> None:
    async with terminal(tmp_path / "a.db") as owner:
        for question in ("Is it theirs?", "Is it ours?"):
            asked = await owner.inside("ask", "--noul", question, "--state", f"A letter of {PERSON}")
            assert asked.code == 0, asked.err
        shared = await owner.inside("erase", PERSON, "--yes", "--json")
        assert (shared.code, shared.json["done"], len(shared.json["stayed"])) == (3, False, 1)
        assert (await owner.inside("erase", PERSON, "--yes", "--also-shared")).code == 0
        assert (await owner.inside("erase", " ")).code == 2


async def test_the_owner_withdraws_an_answer_at_a_terminal(tmp_path: Path) -> None:
    """B88."""
    async with terminal(tmp_path / "a.db") as owner:
        asked = await owner.inside("ask", "--noul", "Is it?", "--state", "a letter", "--json")
        name = asked.json["calls"][0]["call"] if "calls" in asked.json else asked.json["call"]
        gone = await owner.inside("withdraw", f"{name}:1", "--why", "Wrong letter.")
        assert (gone.code, gone.text) == (0, f"{name}:1 is withdrawn.\n"), gone.err
        shown = await owner.inside("show", f"{name}:1")
        assert shown.code == 1
        assert "Wrong letter." in shown.err
        back = await owner.inside("withdraw", f"{name}:1", "--back", "--json")
        assert (back.code, back.json["withdrawn"]) == (0, False)
        assert (await owner.inside("show", f"{name}:1")).code == 0
        assert (await owner.inside("withdraw", f"{name}:7")).code == 1
        assert (await owner.inside("withdraw", name)).code == 2


async def test_what_was_erased_is_left_out_of_an_import_and_is_no_fault(tmp_path: Path) -> None:
    one, other = Owner(tmp_path / "a.db"), Owner(tmp_path / "b.db")
    for state in (f"About {PERSON}.", "Second."):
        assert (await one.inside("ask", "--noul", "Is it so?", "--state", state)).code == 0
    assert (await one.inside("erase", PERSON, "--yes")).code == 0
    exported = (await one.inside("export")).out
    home = await one.inside("import", "-", "--yes", stdin=exported)
    there = await other.inside("import", "-", "--yes", "--json", stdin=exported)
    assert (home.code, home.text.splitlines()) == (
        0,
        [
            "     0  added",
            "     1  here already",
            "     1  left out: their words were erased where they come from",
        ],
    )
    assert (there.code, there.json["new"], there.json["erased"], there.json["refused"]) == (0, 1, 1, 0)
