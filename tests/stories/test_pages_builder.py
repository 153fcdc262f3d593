"""A question built by hand: one call, its link holds all of it, and the front page never lists it."""

import json
from pathlib import Path
from urllib.parse import urlencode

from tests.pages import Page, Visitor, visitor

FIELDS = {
    "type": "choice",
    "instructions": "Which team should handle this?",
    "state": '{"ticket":12,"text":"I was charged twice"}',
    "options": "billing: payments\ntechnical",
}


async def built(me: Visitor, **more: str) -> Page:
    return await me.follow(await me.submit(urlencode(FIELDS | more).encode()))


async def test_a_built_question_is_one_call_with_just_what_was_typed(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await built(me)
        again = await built(me)
    (got,) = me.model.got
    assert got.body == (
        b'{"model":"jev-latest","state":{"ticket":12,"text":"I was charged twice"},"questions":{"answer":'
        b'{"type":"choice","instructions":"Which team should handle this?",'
        b'"criteria":{"billing":"payments","technical":null}}}}'
    )
    assert (page.words, page.states, again.states) == ("billing", ["now"], ["record"])
    assert page.html.one("h1").text == FIELDS["instructions"]


async def test_its_link_reproduces_it_and_leads_back_to_the_form(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await built(me)
        change = next(a["href"] for a in page.html.one("main").all("a") if a["href"].startswith("/build?"))
        form = (await me.get(change)).html.one("form")
        same = await built(me, **{area["name"]: area.text for area in form.all("textarea")})
        plain = (await me.get("/build")).html
    assert {area["name"]: area.text for area in form.all("textarea")} == {
        "instructions": FIELDS["instructions"], "state": FIELDS["state"], "options": FIELDS["options"], "levels": ""
    }  # fmt: skip
    assert [one["value"] for one in form.all("input") if "checked" in one.attributes] == ["choice"]
    assert (len(me.model.got), same.words) == (1, "billing")
    assert [one["value"] for one in plain.all("input") if "checked" in one.attributes] == ["noul"]


async def test_it_is_never_listed(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await built(me)
        home = await me.get("/")
    assert FIELDS["instructions"] not in home.main


async def test_what_is_wrong_is_said_with_the_form_as_it_was_typed_and_nothing_is_sent(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        said = await me.submit(urlencode(FIELDS | {"state": '{"a":', "options": "x: <b>\ny"}).encode())
        link = await me.get("/?typed=%7B%7D")
        long = await me.submit(urlencode(FIELDS | {"state": "x" * 20_001}).encode())
    assert (said.status, link.status, long.status, me.model.got) == (400, 400, 413, [])
    assert "begins like JSON and is none" in said.main
    assert said.html.one("textarea", name="options").text == "x: <b>\ny"


async def test_typed_values_reach_the_model_as_they_are(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        await built(me, state='{"n":174322306148984899,"x":1.0}')
    assert b'"state":{"n":174322306148984899,"x":1.0}' in me.model.got[0].body
    assert json.loads(me.model.got[0].body)["state"]["n"] == 174322306148984899
