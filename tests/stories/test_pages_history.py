"""How a question was answered, and how its answer went over time."""

from pathlib import Path

from archive.answer import Answer, Detail, Option
from tests.pages import visitor
from web.render import steps


def noul(probability: float) -> Answer:
    return Answer("Yes", 0.5, Detail("noul", probability))


def test_a_step_line_goes_up_with_a_yes_and_runs_on_to_the_edge() -> None:
    path, points = steps([noul(0.0), noul(1.0), noul(0.5)])
    assert points == [(120.0, 150.0), (540.0, 10.0), (960.0, 80.0)]
    assert path == "M120.0 150.0H540.0V10.0H960.0V80.0H1000"


def test_a_score_is_drawn_by_its_share_of_the_highest_level_and_a_choice_is_not() -> None:
    levels = tuple(Option(str(n), None) for n in range(3))
    score = Answer("1", None, Detail("score", score=1.0, options=levels))
    assert steps([score])[1] == [(120.0, 80.0)]
    assert steps([score, Answer("tea", None, Detail("choice", options=levels))]) == ("", [])
    assert steps([Answer("old")]) == steps([]) == ("", [])


async def test_every_answer_a_question_got_stands_in_a_table_and_is_a_link_to_it(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.jev.counting = True
        page = await me.ask("Is it?")
        assert not page.html.all("table")
        name = page.names[1].partition(":")[0]
        for _ in range(2):
            page = await me.ask("Is it?", again=name)
        rows = page.html.one("tbody").all("tr")
        second = await me.get(rows[1].one("a")["href"])
    assert [row.one("a").text for row in rows] == ["3", "2", "1"]
    assert [row.all("span")[1].text for row in rows] == ["0.86", "0.85", "0.84"]
    assert page.html.one("figure").one("svg", role="img")["aria-label"].startswith("3 answers, from 0.84 to 0.86")
    assert (second.states, second.names[1]) == (["record", "pinned"], f"{name}:2")
    assert me.sent == 4


async def test_the_trace_says_of_each_call_whether_it_was_sent(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        first = (await me.ask("Is it?")).html.one("ol", class_="trace")
        again = (await me.ask("Is it?")).html.one("ol", class_="trace")
    assert [line.attributes.get("class") for line in first.all("li")] == ["now", "now"]
    assert len(first.all("rect")) == 2
    assert [line.attributes.get("class") for line in again.all("li")] == ["", ""]
    assert "not sent, " in again.text
