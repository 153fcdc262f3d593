"""Drawings and numbers of a page: they agree with each other and with what was supplied."""

from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from archive.answer import BANDS, Answer, Detail, Option, read, stored, word
from archive.messages import Question
from tests.html import Element, fragment
from web.render import HERE, STROKES, bars, dollars, environment, headline, number, query, size

HUNDREDTHS = [hundredth / 100 for hundredth in range(101)]
SCALE = environment.get_template("scale.html")
SMALL = environment.from_string('{% from "macros.html" import small_scale %}{{ small_scale(answer) }}')


def drawn(answer: Answer, fresh: bool = False) -> Element:
    """The large scale, parsed."""
    return fragment(SCALE.render(answer=answer, fresh=fresh))


def noul(probability: float) -> Answer:
    answer = read({"type": "noul", "noul": probability}, None)
    assert answer is not None
    return answer


@pytest.mark.parametrize("probability", HUNDREDTHS)
def test_word_band_label_number_and_strokes_agree(probability: float) -> None:
    hundredths = round(probability * 100)
    answer = noul(probability)
    scale = drawn(answer)
    label = scale.one("div", role="img")["aria-label"]
    inked, pale = scale.all("rect")
    assert f"Probability of yes: {probability:.2f}," in label
    assert f"{hundredths} of 100 strokes" in label
    assert (inked["width"], pale["x"], pale["width"]) == (
        str(hundredths * 10), str(hundredths * 10), str(1000 - hundredths * 10)
    )  # fmt: skip
    assert scale.one("output").text == f"{probability:.2f}" == headline(answer)
    assert scale.one("div", class_="at").one("svg")["width"] == f"{hundredths}%", "which pushes the number there"
    assert [band.text for band in scale.all("li") if "on" in band["class"].split()] == [word(probability)]


def test_the_scale_names_every_band_from_no_to_yes() -> None:
    assert [band.text for band in drawn(noul(0.5)).all("li")] == [name for _, name in reversed(BANDS)]


def test_the_style_sheet_has_every_weight_and_cuts_a_line_into_strokes() -> None:
    sheet = (HERE / "static" / "site.css").read_text("utf-8")
    assert all(f'[data-w="{weight}"]{{' in sheet for weight in range(250, 851, 50))
    assert f"stroke-dasharray:1.7 {100 / STROKES - 1.7:.1f}}}" in sheet


@pytest.mark.parametrize("probability", [*HUNDREDTHS, 0.004, 0.8312, 0.99999])
def test_the_small_scale_has_all_its_strokes_some_of_them_inked(probability: float) -> None:
    small = fragment(SMALL.render(answer=noul(probability)))
    pale, *inked = (path["d"] for path in small.all("path"))
    assert pale == "M1.15 7H100", "one dash a stroke, as the style sheet cuts it"
    assert inked == [f"M1.15 7H{4 * round(probability * STROKES)}"][: round(probability * STROKES)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.8, "0.80"), (0.83, "0.83"), (0.8312, "0.8312"), (0.83125, "0.8313"), (0, "0.00"), (1, "1.00"), (2.4, "2.40"),
     (0.00001, "0.00"), (-0.5, "-0.50"), (0.1, "0.10"), (12.345, "12.345")],
)  # fmt: skip
def test_a_number_is_shown_with_two_places_at_least_and_four_at_most(value: float, text: str) -> None:
    assert number(value) == text


def choice(*shares: float | None, chosen: int = 0) -> Answer:
    options = tuple(Option(f"o{place}", share) for place, share in enumerate(shares))
    return Answer(f"o{chosen}", 0.5, Detail("choice", None, None, 0.5, True, options, None))


@pytest.mark.parametrize(
    "shares",
    [(0.7, 0.2, 0.1), (0.33, 0.33, 0.33), (0.34, 0.34, 0.33), (1.0,), (1.0, 0.0), (0.0, 0.0), (None, None), (0.5, None),
     (0.001,) * 255],
)  # fmt: skip
def test_a_bar_is_cut_in_as_many_parts_as_there_are_options_and_fits(shares: tuple[float | None, ...]) -> None:
    detail = choice(*shares).detail
    assert detail is not None
    parts = bars(detail)
    assert [part.label for part in parts] == [option.label for option in detail.options]
    assert all(part.width > 0 and 0 <= part.x <= 100 for part in parts)
    assert all(before.x <= after.x for before, after in pairwise(parts))
    assert parts[-1].x + parts[-1].width <= 100.31


def test_the_likeliest_part_is_the_darkest_and_has_its_number() -> None:
    detail = choice(0.2, 0.7, 0.1).detail
    assert detail is not None
    assert [(part.shade, part.number) for part in bars(detail)] == [("b", "0.20"), ("a", "0.70"), ("c", "0.10")]


def test_every_option_is_named_beside_its_part_and_the_chosen_one_stands_out() -> None:
    scale = drawn(choice(0.2, 0.7, 0.1, chosen=1))
    assert [item.text.split() for item in scale.all("li")] == [["o0", "0.20"], ["o1", "0.70"], ["o2", "0.10"]]
    assert [item.text.split()[0] for item in scale.all("li", class_="first")] == ["o1"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (noul(0.83), "0.83"),
        (choice(0.2, 0.7, chosen=1), "0.70"),
        (choice(None, 0.7, chosen=0), ""),
        (Answer("x", 0.5, Detail("score", None, 2.4, 0.5)), "2.40"),
        (stored("Yes"), ""),
    ],
)
def test_the_number_beside_the_words_is_the_one_they_come_from(answer: Answer, text: str) -> None:
    assert headline(answer) == text


@pytest.mark.parametrize("answer", [stored("Yes"), Answer("x", 0.5, Detail("score", None, 2.4, 0.5)), choice()])
def test_nothing_is_drawn_of_numbers_that_are_not_there(answer: Answer) -> None:
    assert drawn(answer).children == []


@pytest.mark.parametrize(
    ("billionths", "text"),
    [(None, "price unknown"), (0, "free"), (60_000, "$0.00006"), (1_000_000_000, "$1.00000"), (1, "$0.00000")],
)
def test_a_price_that_is_unknown_is_never_shown_as_none(billionths: int | None, text: str) -> None:
    assert dollars(billionths) == text


def test_a_size_has_its_thousands_marked() -> None:
    assert [size(count) for count in (0, 999, 1000, 1234567)] == ["0", "999", "1,000", "1,234,567"]


@pytest.mark.parametrize(
    "question",
    [
        Question("C++ & C#? 100% = <x>"),
        Question("a\nb"),
        Question("ü😀\u202e"),
        Question("q", options=("a&b", "c=d", "+")),
        Question("q", levels=("1 ", " 2")),
    ],
)
def test_an_address_reads_back_as_the_question_it_is_of(question: Question) -> None:
    found: Any = parse_qs(urlsplit(query(question, "3f2a9c01be44:2")).query, strict_parsing=True)
    assert query(question).isascii()
    assert found.pop("pins") == ["3f2a9c01be44:2"]
    assert found.pop("q") == [question.words]
    assert tuple(found.pop("option", ())) == question.options
    assert tuple(found.pop("level", ())) == question.levels
    assert not found
