"""Access tokens over real HTTP: who is let in, what never goes up, and that no public page shows what the API kept."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Scope

from archive.actor.actor import Actor
from archive.actor.store import Record
from archive.admin import AddToken, RevokeToken
from archive.messages import Caller, Look, Named, Question
from archive.tokens import PREFIX, Token, hashed
from tests.commands import Owner
from tests.fakes import Said, Site, Upstream, answer, body, site, upstream
from tests.pages import Visitor, address, visitor
from tests.process import process
from tests.stored import rows
from web import system_one
from web.callers import Callers
from web.recipe import recipe

SECRET = PREFIX + "A" * 43
OTHER = PREFIX + "B" * 43


async def make(door: Actor, secret: str = SECRET, name: str = "t", **more: Any) -> Token:
    """A token with this secret."""
    return await door.send(AddToken(name, hashed(secret.encode()), **more))


@asynccontextmanager
async def guarded(store: Path, **more: Any) -> AsyncGenerator[tuple[Site, Upstream], None]:
    """A server with one token, SECRET, whose answer to `body()` is on record."""
    async with upstream() as model, site(store, model.url, model_key="sk-owner", **more) as here:
        await make(here.door)
        assert (await here.ask(Authorization=f"Bearer {SECRET}")).status == 200
        yield here, model


WRONG: list[dict[str, str]] = [
    {"Authorization": f"Bearer {OTHER}"}, {"X_API_Key": OTHER}, {"Authorization": f"Bearer {SECRET[:-1]}"},
    {"Authorization": f"Bearer {SECRET}A"},
    {"Authorization": "Bearer sk-owner"}, {"X_API_Key": hashed(SECRET.encode()).hex()},
    {"Authorization": f"Bearer {OTHER}", "X_API_Key": SECRET}, {"Authorization": "Bearer clé"},
]  # fmt: skip

MISSING: list[dict[str, str]] = [
    {}, {"Authorization": f"Basic {SECRET}"}, {"Authorization": SECRET}, {"Cookie": f"token={SECRET}"},
    {"Authorization": "Bearer"}, {"X_API_Key": ""},
]  # fmt: skip

PICKS: list[dict[str, str]] = [
    {}, {"Archive_Answer": "1"}, {"Archive_Answer": "nonsense"}, {"Cache_Control": "only-if-cached"},
]  # fmt: skip


def about(said: Said) -> tuple[int, str, bytes, list[str]]:
    """All that a stranger learns."""
    return said.status, said.error, said.body, sorted(name.lower() for name in said.headers)


async def test_without_a_token_that_counts_nothing_is_looked_up_and_nothing_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By construction, not by the clock: neither is the body read nor the door asked, whatever is kept and asked."""
    async with guarded(tmp_path / "a.db") as (here, model):

        async def never(*_: object) -> None:
            raise AssertionError("somebody without a token was looked after")

        with monkeypatch.context() as patch:
            patch.setattr(Actor, "send", never)
            patch.setattr(system_one, "read_body", never)
            for shown, status in [(MISSING, 403), (WRONG, 401)]:
                said = [
                    await here.ask(data, **headers, **pick)
                    for headers in shown
                    for pick in PICKS
                    for data in (body(), body("nobody asked"))
                ]
                said += [await here.send("GET", "/v1/models", **headers) for headers in shown]
                first, *others = {repr(about(one)) for one in said}
                assert others == []
                assert (said[0].status, said[0].error) == (status, "authentication_error"), first
        assert (await here.ask(X_API_Key=SECRET)).headers["Archive-Sent"] == "no"
        assert len(model.got) == 1


async def test_with_the_guard_off_a_stranger_reads_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path / "a.db") as (here, _):

        def anybody(self: Callers, scope: Scope, headers: object, key_header: bytes) -> Caller:
            return Caller()

        monkeypatch.setattr(Callers, "of_api", anybody)
        assert (await here.ask()).body == answer()


async def test_errors_have_system_ones_words_and_say_how_to_get_in(tmp_path: Path) -> None:
    async with guarded(tmp_path / "a.db") as (here, _):
        missing, wrong = await here.ask(), await here.ask(X_API_Key=OTHER)
        for said, words in [(missing, "Must supply an API key!"), (wrong, "Cannot authenticate with the server.")]:
            assert set(json.loads(said.body)) == {"detail"}
            assert said.text.startswith(words)
            assert said.headers["WWW-Authenticate"] == "Bearer"


async def test_while_there_is_no_token_the_api_is_open_and_the_start_says_so(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model:
        async with process(store, model.url) as here:
            assert (await here.ask(Authorization="Bearer sk-own")).status == 200
            unknown = await here.ask(Authorization=f"Bearer {SECRET}")
            await here.terminate()
        assert "there is no token" in here.output()
        assert (unknown.status, len(model.got)) == (401, 1), "a secret of ours is never sent to the model"
        async with site(store, model.url) as inside:
            await make(inside.door)
            assert (await inside.ask(Authorization="Bearer sk-own")).status == 401
        async with process(store, model.url) as here:
            assert (await here.ask()).status == 403
            assert (await here.ask(X_API_Key=SECRET)).headers["Archive-Sent"] == "no"
            await here.terminate()
        assert "the API takes a token" in here.output()


@pytest.mark.parametrize("owner", ["", "sk-owner"])
async def test_a_token_never_goes_up_and_never_lies_on_disk(tmp_path: Path, owner: str) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url, model_key=owner) as here:
        await make(here.door)
        await here.ask(Authorization=f"Bearer {SECRET}")
        await here.ask(body("b"), X_API_Key=SECRET)
        await here.ask(body("c"), X_API_Key=SECRET, Authorization="Basic YTpi")
        await here.send("GET", "/v1/models", Authorization=f"Bearer {SECRET}")
    assert len(model.got) == 4
    assert {got.headers.get("authorization", "") for got in model.got} == {f"Bearer {owner}" if owner else ""}
    assert SECRET not in str([got.headers for got in model.got])
    everything = b"".join(file.read_bytes() for file in store.parent.iterdir())
    assert SECRET.encode() not in everything and hashed(SECRET.encode()) in everything


KEYS = """
[bearer]
url = "{0}/b"

[azure]
url = "{0}/a"
key_header = "api-key"

[x]
url = "{0}/x"
key_header = "x-api-key"

[owned]
url = "{0}/o"
key_header = "api-key"
key_env = "OWNED"
"""

BESIDE: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("bearer", {"Authorization": "Bearer sk-mine", "X_API_Key": SECRET}, {"authorization": "Bearer sk-mine"}),
    ("bearer", {"Authorization": f"Bearer {SECRET}", "X_API_Key": "sk-mine", "Api_Key": "sk-mine"}, {}),
    ("x", {"Authorization": f"Bearer {SECRET}", "X_API_Key": "sk-mine"}, {"x-api-key": "sk-mine"}),
    ("x", {"X_API_Key": SECRET, "Authorization": "Bearer sk-mine"}, {}),
    ("azure", {"Authorization": f"Bearer {SECRET}", "Api_Key": "sk-mine"}, {"api-key": "sk-mine"}),
    ("azure", {"X_API_Key": SECRET, "Api_Key": "sk-mine", "Authorization": "Bearer sk-2"}, {"api-key": "sk-mine"}),
    ("azure", {"Api_Key": SECRET}, {}),
    ("azure", {"Api_Key": f"sk-mine, {SECRET}", "X_API_Key": SECRET}, {}),
    ("azure", {"Api_Key": f'"{SECRET}"', "X_API_Key": SECRET}, {}),
    ("owned", {"Api_Key": SECRET}, {"api-key": "sk-owner"}),
    ("owned", {"Api_Key": "sk-mine", "X_API_Key": SECRET}, {"api-key": "sk-owner"}),
]  # fmt: skip


async def test_a_callers_own_key_goes_up_beside_the_token_where_the_destination_has_none(tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    async with upstream() as model:
        file.write_text(KEYS.format(model.url))
        model.reply = b"{}"
        environment = {"OWNED": "sk-owner"}
        async with site(tmp_path / "a.db", "", destinations=str(file), environment=environment) as here:
            await make(here.door)
            for name, shown, _ in BESIDE:
                headers = {"Content_Type": "application/json", **shown}
                said = await here.send("POST", f"/to/{name}/{len(model.got)}", b"{}", **headers)
                assert said.status == 200, (name, shown, said.body)
            for name in ("azure", "x", "bearer", "owned"):
                said = await here.send("POST", f"/to/{name}/y", b"{}", Content_Type="application/json", Api_Key=OTHER)
                assert said.status == (401 if name in {"azure", "owned"} else 403), name
    keys = ("authorization", "x-api-key", "api-key")
    went = [{key: got.headers[key] for key in keys if key in got.headers} for got in model.got]
    assert went == [up for *_, up in BESIDE]
    assert SECRET not in str([got.headers for got in model.got])


async def test_a_token_in_the_destinations_key_header_counts_each_time_and_not_once_it_is_revoked(
    tmp_path: Path,
) -> None:
    """The same head again and again is known after two of them (web/fast.py); who asks is looked at each time."""
    file = tmp_path / "d.toml"
    async with upstream() as model:
        file.write_text(KEYS.format(model.url))
        async with process(tmp_path / "a.db", "", ASKONCE_DESTINATIONS=str(file), OWNED="sk-owner") as here:
            owner = Owner(tmp_path / "a.db")
            secret = (await owner.inside("token", "new", "t")).text.strip()
            headers = {"Content_Type": "application/json", "Api_Key": secret}
            path = "/to/owned/v1/systemone"
            said = [await here.send("POST", path, body(), **headers) for _ in range(4)]
            stranger = await here.send("POST", path, body(), **headers | {"Api_Key": OTHER})
            await owner.inside("token", "revoke", "t")
            after = await here.send("POST", path, body(), **headers)
            await here.terminate()
    assert [one.headers["Archive-Sent"] for one in said] == ["now", "no", "no", "no"]
    assert (stranger.status, after.status, len(model.got)) == (401, 401, 1)


async def test_a_revoked_token_is_out_with_its_next_request(tmp_path: Path) -> None:
    async with guarded(tmp_path / "a.db") as (here, model):
        assert (await here.ask(X_API_Key=SECRET)).status == 200
        await here.door.send(RevokeToken(1))
        assert (await here.ask(X_API_Key=SECRET)).status == 401
        assert (await here.ask()).status == 403, "the last token revoked does not open the API again"
        assert len(model.got) == 1


async def test_a_token_revoked_while_its_call_is_on_the_wire_gets_no_answer(tmp_path: Path) -> None:
    async with guarded(tmp_path / "a.db") as (here, model):
        await make(here.door, OTHER, "other")
        model.gate = asyncio.Event()
        leaked = asyncio.create_task(here.ask(body("b"), X_API_Key=SECRET))
        await model.arrived.acquire()
        await model.arrived.acquire()
        good = asyncio.create_task(here.ask(body("b"), X_API_Key=OTHER))
        await here.door.send(RevokeToken(1))
        model.gate.set()
        assert (await leaked).status == 401
        assert ((await good).status, len(model.got)) == (200, 2)


async def test_what_a_token_may_not_is_said_in_status_and_words(tmp_path: Path) -> None:
    async with guarded(tmp_path / "a.db") as (here, model):
        await make(here.door, OTHER, "small", fresh=False, day_calls_max=1, minute_asks_max=5)
        afresh = await here.ask(X_API_Key=OTHER, Archive_Answer="fresh")
        assert (afresh.status, afresh.error) == (403, "forbidden") and "may not ask afresh" in afresh.text
        assert (await here.ask(X_API_Key=OTHER)).headers["Archive-Sent"] == "no"
        assert (await here.ask(body("b"), X_API_Key=OTHER)).headers["Archive-Sent"] == "now"
        over = await here.ask(body("c"), X_API_Key=OTHER)
        assert (over.status, over.error) == (429, "over_limit") and "calls of today" in over.text
        assert 1 <= int(over.headers["Retry-After"]) <= 24 * 3600
        said = [await here.ask(X_API_Key=OTHER) for _ in range(4)]
        fast = said[-1]
        assert (fast.status, fast.error) == (429, "over_limit") and "times a minute" in fast.text
        assert 1 <= int(fast.headers["Retry-After"]) <= 60
        assert len(model.got) == 2


async def test_a_private_token_has_an_archive_of_its_own(tmp_path: Path) -> None:
    """B10: the same bytes on another token are another call, and neither gets the other's text."""
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url, model_key="sk-owner") as here:
        model.number_answers()
        await make(here.door, SECRET, "ann", private=True)
        await make(here.door, OTHER, "all")
        hers, ours = await here.ask(X_API_Key=SECRET), await here.ask(X_API_Key=OTHER)
        for pick in ({}, {"Archive_Answer": "1"}, {"Cache_Control": "only-if-cached"}):
            assert (await here.ask(X_API_Key=SECRET, **pick)).body == hers.body != ours.body
            assert (await here.ask(X_API_Key=OTHER, **pick)).body == ours.body
        assert hers.headers["Archive-Call"] != ours.headers["Archive-Call"]
        assert (await here.send("GET", f"/call/{hers.headers['Archive-Call']}/1")).status == 404
        assert len(model.got) == 2
    found = rows(store, "SELECT t.bytes FROM request r LEFT JOIN text t ON t.id = r.partition ORDER BY r.id")
    assert found == [(b"token 1",), (None,)]


# -- public pages ------------------------------------------------------------------------------------------------------


async def by_api(me: Visitor, secret: str, words: str) -> list[str]:
    """Ask over the API just what a page would ask about `words`; the names of the calls."""
    names = list[str]()
    walk = recipe(Question(words), me.askings[0].models)
    step = next(walk)
    while True:
        said = await me.here.ask(step.body, X_API_Key=secret)
        names.append(said.headers["Archive-Call"])
        try:
            step = walk.send(said.body)
        except StopIteration:
            return names


WORDS = "Is the API's own answer to be seen?"


async def public(me: Visitor, words: str, names: list[str], numbers: range) -> str:
    """All that every public address says."""
    pins = ",".join(f"{name}:1" for name in names)
    paths = ["/", address(words), address(words, pins), "/?lately=9999999999999999-9", "/?most=9-9", "/build"]
    paths += ["/sitemap.xml", "/robots.txt", "/card.png"]
    for name in [*names, *(f"{n:012x}" for n in numbers)]:
        paths += [f"/call/{name}/request", f"/call/{name}/1", f"/card/{name}/1.png"]
    said = [await me.get(path) for path in paths]
    return "\n".join(f"{one.status} {one.body.decode('latin-1')}" for one in said)


@pytest.mark.parametrize("private", [False, True])
async def test_what_was_asked_on_a_token_is_on_no_public_page(tmp_path: Path, private: bool) -> None:
    """Not by its words, nor its name, nor a number; but what the page was asked itself is, as ever."""
    async with visitor(tmp_path / "a.db", model_key="sk-owner") as me:
        me.jev.more = {"x_canary": "canary-7741"}
        token = await make(me.here.door, private=private)
        names = await by_api(me, SECRET, WORDS)
        assert len(names) == 2 and me.sent == 2
        before = await public(me, WORDS, names, range(20))
        assert "canary-7741" not in before and "\n200 {" not in before
        assert (await me.look(WORDS)).states == [], "as if nobody had asked it"
        numbers = [await me.here.door.send(Named(name)) for name in names]
        assert [len(found) for found in numbers] == [1, 1], "the owner finds them"
        asked = await me.ask(WORDS)
        assert asked.status == 200 and "83" in asked.main
        assert me.sent == (4 if private else 2), "the same bytes of one archive are never sent twice"
        shown = [name.partition(":")[0] for name in asked.names]
        assert (shown == names) is not private
        raw = [await me.get(f"/call/{name}/1") for name in shown]
        assert [one.status for one in raw] == [200, 200] and b"canary-7741" in raw[0].body
        if private:
            assert "\n200 {" not in await public(me, "another question", names, range(20))
        assert token.private is private


async def test_while_there_is_no_token_a_receipts_name_leads_to_its_bytes(tmp_path: Path) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        name = (await here.ask()).headers["Archive-Call"]
        assert (await here.send("GET", f"/call/{name}/1")).body == answer()
        await make(here.door)
        assert (await here.send("GET", f"/call/{name}/1")).status == 404
        assert (await here.send("GET", f"/call/{name}/request")).status == 404


async def test_with_the_guard_off_the_pages_show_what_the_api_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(record: Record, request: int) -> bool:
        return False

    monkeypatch.setattr(Record, "is_hidden", nothing)
    async with visitor(tmp_path / "a.db", model_key="sk-owner") as me:
        await make(me.here.door)
        names = await by_api(me, SECRET, WORDS)
        assert "\n200 {" in await public(me, WORDS, names, range(2))
        assert (await me.look(WORDS)).states == ["record", "record"]


async def test_a_link_that_looks_never_makes_anything_public(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db", model_key="sk-owner") as me:
        await make(me.here.door)
        await by_api(me, SECRET, WORDS)
        for _ in range(3):
            assert (await me.look(WORDS)).states == []
        request = me.askings[0].request(next(recipe(Question(WORDS), me.askings[0].models)))
        assert (await me.here.door.send(Look(request, visitor=True))).kept is None
