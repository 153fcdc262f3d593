"""`askonce token`: the owner lets somebody in, sees who is in, and puts somebody out, with a server and without."""

from pathlib import Path

from archive.tokens import PREFIX, hashed
from tests.commands import Owner
from tests.fakes import answer, upstream
from tests.process import process
from tests.stored import rows
from tests.stories.test_secrets import on_disk


async def test_a_token_made_at_the_terminal_lets_a_caller_in_until_it_is_revoked_there(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, process(store, model.url) as here:
        owner = Owner(store, model.url)
        assert (await here.ask()).status == 200
        made = await owner.run("token", "new", "ann")
        secret = made.text.strip()
        assert made.code == 0 and secret.startswith(PREFIX) and len(secret) == 47
        assert (await here.ask()).status == 403
        assert (await here.ask(X_API_Key=secret)).headers["Archive-Sent"] == "no"
        assert (await owner.run("token", "revoke", "ann")).text == "#1 ann is revoked.\n"
        assert (await here.ask(X_API_Key=secret)).status == 401
        await here.terminate()
    assert secret not in here.output()
    assert secret.encode() not in on_disk(store)
    assert rows(store, "SELECT hash FROM token") == [(hashed(secret.encode()),)]


async def test_tokens_are_made_listed_and_revoked_where_no_server_runs(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db", "http://127.0.0.1:9")
    more = ("--private", "--no-fresh", "--day-calls", "5", "--minute-asks", "60")
    first = (await owner.inside("token", "new", "ann\u202e", *more)).code
    made = (await owner.inside("token", "new", "ann", *more, "--json")).json
    same = await owner.inside("token", "new", "ann")
    other = (await owner.inside("token", "new", "bob", "--json")).json
    assert (first, same.code) == (2, 2), "a name that cannot be seen, and one that is taken"
    assert made["secret"] != other["secret"]
    limits = {name: made[name] for name in ("number", "name", "private", "fresh", "day_calls_max", "minute_asks_max")}
    assert limits == {
        "number": 1, "name": "ann", "private": True, "fresh": False, "day_calls_max": 5, "minute_asks_max": 60,
    }  # fmt: skip
    shown = (await owner.inside("token", "list")).text
    assert "#1  ann  0 of 5 sent today  private, not afresh, 60 a minute" in shown
    assert (await owner.inside("token", "revoke", "#2", "--json")).json["revoked_at"] is not None
    listed = (await owner.inside("token", "list", "--json")).lines
    assert [(one["name"], one["revoked_at"] is None, one["sent_today"]) for one in listed] == [
        ("ann", True, 0),
        ("bob", False, 0),
    ]
    assert (await owner.inside("token", "revoke", "bob")).code == 1
    assert (await owner.inside("token", "revoke", "#3")).code == 1
    assert (await owner.inside("token", "revoke", "3")).code == 1
    assert (await owner.inside("token", "revoke", "2")).text == "#2 bob is revoked.\n"
    await owner.inside("token", "new", "1")
    assert (await owner.inside("token", "revoke", "1")).text == "#3 1 is revoked.\n", "a name comes before a number"
    assert (await owner.inside("token", "revoke", "1")).code == 1, "and is not taken for one afterwards"
    assert not any(other["secret"] in str(one) for one in listed)


async def test_the_owner_finds_and_withdraws_a_private_tokens_answer_by_the_name_its_caller_got(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, process(store, model.url) as here:
        owner = Owner(store, model.url)
        secret = (await owner.inside("token", "new", "ann", "--private")).text.strip()
        name = (await here.ask(X_API_Key=secret)).headers["Archive-Call"]
        await here.ask(X_API_Key=secret, Archive_Answer="fresh")
        shown, told = await owner.inside("show", name, "--json"), await owner.inside("show", name)
        raw = await owner.inside("show", name, "--raw", "response")
        listed = await owner.inside("versions", name, "--json")
        compared = await owner.inside("diff", f"{name}:1", f"{name}:2", "--json")
        preview = await owner.inside("erase", "Is it?", "--json")
        gone = await owner.inside("withdraw", f"{name}:2")
        kept = await here.ask(X_API_Key=secret)
        page = await here.send("GET", f"/call/{name}/1")
        await here.terminate()
    assert (shown.json["call"], shown.json["private_to"], shown.json["answer"]["n"]) == (name, "token 1", 2)
    assert "to token 1" in told.text.splitlines()[1]
    assert raw.out == answer()
    assert [one["n"] for one in listed.lines] == [1, 2]
    assert compared.json["response"]["same_bytes"] is True
    assert {call for text in preview.json["texts"] for call in text["uses"]["calls"]} == {name}
    assert (gone.code, kept.headers["Archive-Answer"], page.status) == (0, "1/2", 404)


async def test_where_there_is_no_token_that_is_said(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "a.db", "http://127.0.0.1:9")
    assert (await owner.inside("token", "list")).code == 6
    await owner.inside("token", "new", "x", "--day-calls", "-1")
    assert not owner.store.exists()
