"""With a language model in front an open question is answered; its call is archived like any other."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import Upstream, upstream
from tests.pages import Jev, Visitor, visitor

WHY = "Why is the sky blue?"


@dataclass
class Front:
    """What the language model writes next."""

    model: Upstream

    def writes(self, text: str) -> None:
        message = {"role": "assistant", "content": text}
        said: dict[str, Any] = {"id": "chatcmpl-1", "model": "llm-1", "choices": [{"index": 0, "message": message}]}
        self.model.reply = json.dumps(said).encode()


@asynccontextmanager
async def fronted(store: Path, text: str) -> AsyncGenerator[tuple[Visitor, Front], None]:
    async with upstream() as llm:
        front = Front(llm)
        front.writes(text)
        more: dict[str, Any] = {"llm_url": llm.url + "/v1", "llm_key": "llm-key", "llm_model": "llm-1"}
        async with visitor(store, jev=Jev(kind="open"), model_key="jev-key", **more) as me:
            yield me, front


async def test_an_open_question_is_put_into_a_form_and_answered(tmp_path: Path) -> None:
    async with fronted(tmp_path / "a.db", '{"options":["scattering","the sea"]}') as (me, front):
        page = await me.ask(WHY)
        again = await me.ask(WHY)
        me.jev.kind = "yes_no"
        await me.ask("Is it?")
        front_page = await me.get()
    (got,) = front.model.got
    assert (got.path, got.headers["authorization"]) == ("/v1/chat/completions", "Bearer llm-key")
    assert {one.headers["authorization"] for one in me.model.got} == {"Bearer jev-key"}
    assert json.loads(got.body)["messages"][1] == {"role": "user", "content": WHY}
    asked = json.loads(me.model.got[1].body)
    assert (asked["state"], list(asked["questions"]["answer"]["criteria"])) == (WHY, ["scattering", "the sea"])
    assert (page.words, page.states) == ("scattering", ["now", "now", "now"])
    assert '{"options":["scattering","the sea"]}' in page.calls[1].text
    assert (again.words, again.states) == ("scattering", ["record", "record", "record"])
    assert "The decision model answered 50% of them alone, without a language model." in front_page.main


async def test_a_claim_goes_into_state_and_never_into_instructions(tmp_path: Path) -> None:
    async with fronted(tmp_path / "a.db", '{"claim":"Air scatters blue light most."}') as (me, _):
        page = await me.ask(WHY)
        home = await me.get("/")
    asked = json.loads(me.model.got[1].body)
    assert asked["state"] == {"question": WHY, "claim": "Air scatters blue light most."}
    assert "Air" not in json.dumps(asked["questions"])
    assert page.words == "Probably yes"
    assert "judged was whether it is true: Air scatters blue light most." in page.main
    assert WHY not in home.main


async def test_a_reply_cut_short_by_a_limit_is_kept_and_the_page_says_so(tmp_path: Path) -> None:
    """B17: what had come of it is no form, however much it looks like one."""
    async with fronted(tmp_path / "a.db", '{"options":["scattering","the sea"]}') as (me, front):
        front.model.reply = front.model.reply.replace(b'"index": 0', b'"index": 0, "finish_reason": "length"')
        page = await me.ask(WHY)
        again = await me.ask(WHY)
    for one in (page, again):
        assert "The model stopped at a limit before it had finished" in one.calls[1].text
        assert "stopped at a limit" not in one.calls[0].text
        assert len(one.calls) == 2, "nothing was asked on the strength of it"
    assert len(front.model.got) == 1


async def test_what_is_no_form_is_said_to_be_none_and_nothing_is_guessed(tmp_path: Path) -> None:
    async with fronted(tmp_path / "a.db", "Because of Rayleigh scattering.") as (me, front):
        page = await me.ask(WHY)
        sent = me.sent
        front.writes('{"levels":["not at all","partly","mostly","entirely"]}')
        better = await me.ask(WHY, again=page.names[1].partition(":")[0])
    assert sent == 1
    assert "What it wrote is none, and nothing was guessed from it." in page.main
    assert page.html.all("fieldset")
    assert (better.states, better.names[1][-1]) == (["record", "now", "now"], "2")


async def test_asking_it_afresh_works_the_later_call_out_again_and_sends_only_what_changed(tmp_path: Path) -> None:
    async with fronted(tmp_path / "a.db", '{"options":["scattering","the sea"]}') as (me, front):
        page = await me.ask(WHY)
        name = page.names[1].partition(":")[0]
        same = await me.ask(WHY, again=name)
        front.writes('{"options":["scattering","magic"]}')
        other = await me.ask(WHY, again=name)
    assert (same.states, other.states) == (["record", "now", "record"], ["record", "now", "now"])
    assert (len(front.model.got), me.sent) == (3, 3)


async def test_a_question_that_needs_no_form_never_reaches_it(tmp_path: Path) -> None:
    async with fronted(tmp_path / "a.db", '{"claim":"x"}') as (me, front):
        me.jev.kind = "yes_no"
        page = await me.ask("Is it?")
    assert (front.model.got, page.states) == ([], ["now", "now"])


async def test_when_it_cannot_be_reached_the_page_says_so_and_asking_again_sends(tmp_path: Path) -> None:
    async with fronted(tmp_path / "a.db", '{"claim":"x"}') as (me, front):
        front.model.status = 500
        page = await me.ask(WHY)
        front.model.status = 200
        again = await me.ask(WHY)
    assert (page.states, again.words) == (["now", "failed"], "Probably yes")
