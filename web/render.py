"""Words and drawings of a page, from what the record says. One template a fragment; everything is escaped.

What must never be here: a decision about the record, a clock.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import jinja2
import msgspec

from archive.answer import Answer, Detail
from archive.messages import Question
from archive.when import ago, brief, iso, shown
from web.panel import panel
from web.text import cut

HERE = Path(__file__).parent

STROKES = 25
"""Strokes of a small scale; the large one has 100."""

KIND_WORDS = {"yes_no": "yes or no", "which": "one of several", "how_much": "how much", "open": "open"}
"""How the recipe's kinds are called on the page."""

environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def _build() -> str:
    """Eight hex digits that change with any file a page is made of."""
    running = sha256()
    for file in sorted(HERE.rglob("*")):
        if file.is_file() and file.suffix in {".html", ".css", ".js", ".py"}:
            running.update(file.read_bytes())
    return running.hexdigest()[:8]


BUILD = _build()


class Bar(msgspec.Struct, frozen=True):
    """One part of a bar cut into options: where it begins, how wide, in hundredths, and which shade."""

    x: float
    width: float
    shade: str
    label: str
    number: str


def page(name: str, **values: object) -> bytes:
    """A whole page from its template."""
    return environment.get_template(name).render(values).encode("utf-8", "replace")


def part(name: str, **values: object) -> str:
    """A part of a page from its template, as it is pushed to open pages."""
    return environment.get_template(name).render(values).encode("utf-8", "replace").decode()


def number(value: float) -> str:
    """A probability or score as it was supplied, with at least two places: `0.8` is `0.80`, `0.8312` stays."""
    text = f"{value:.4f}".rstrip("0")
    return text + "0" * max(0, 2 - len(text.partition(".")[2]))


def headline(answer: Answer) -> str:
    """The number beside the words: the probability of a yes, the likeliest option's, or the score."""
    detail = answer.detail
    if detail is None:
        return ""
    if detail.probability is not None:
        return number(detail.probability)
    if detail.score is not None:
        return number(detail.score)
    return next((number(o.probability) for o in detail.options if o.label == answer.words and o.probability), "")


def strokes(probability: float) -> int:
    """How many strokes of the small scale are inked. It is one dashed line over another, a dash a stroke."""
    return round(probability * STROKES)


def bars(detail: Detail) -> list[Bar]:
    """Options or levels as parts of one bar of 100, in the order they were asked; shades by rank."""
    known = [option.probability or 0.0 for option in detail.options]
    total = sum(known) or 1.0
    rank = {place: n for n, place in enumerate(sorted(range(len(known)), key=lambda place: -known[place]))}
    parts: list[Bar] = []
    x = 0.0
    for place, option in enumerate(detail.options):
        width = known[place] / total * 100
        shade = "abc"[min(2, rank[place])]
        shown_number = "" if option.probability is None else number(option.probability)
        parts.append(Bar(round(x, 2), round(max(width - 0.6, 0.3), 2), shade, option.label, shown_number))
        x += width
    return parts


def steps(answers: Sequence[Answer]) -> tuple[str, list[tuple[float, float]]]:
    """Answers over time as a step line: an SVG path in a box of 1000 by 160, and the points. Up is yes, or more; on
    the left there is room for a word.

    Only where each has a number to draw: a probability, or a score as its share of the highest level.
    """
    heights: list[float] = []
    for answer in answers:
        detail = answer.detail
        share = None if detail is None else detail.probability
        if share is None and detail is not None and detail.score is not None and len(detail.options) > 1:
            share = detail.score / (len(detail.options) - 1)
        if share is None:
            return "", []
        heights.append(150 - 140 * min(1.0, max(0.0, share)))
    gap = 840 / max(1, len(heights) - 1)
    points = [(round(120 + gap * place, 1), round(height, 1)) for place, height in enumerate(heights)]
    path = "".join(f"H{x}V{y}" for x, y in points[1:])
    return f"M{points[0][0]} {points[0][1]}{path}H1000" if points else "", points


def dollars(billionths: int | None) -> str:
    """A cost as people read it."""
    if billionths is None:
        return "price unknown"
    return "free" if billionths == 0 else f"${billionths / 1e9:.5f}"


def amount(billionths: int) -> str:
    """A sum of costs, cut off and never rounded up: cents from a dollar on, and below that as much as there is."""
    if billionths >= 10**9:
        dollars_, cents = divmod(billionths // 10**7, 100)
        return f"${dollars_:,}.{cents:02}"
    places = 5 if billionths >= 10**4 or not billionths else 9
    return f"$0.{billionths:09}"[: 3 + places]


def size(count: int) -> str:
    """A number of bytes with its thousands marked."""
    return f"{count:,}"


def query(question: Question, pins: str = "") -> str:
    """The page's address for a question and its pins."""
    pairs = [("q", question.words)]
    pairs += [("option", option) for option in question.options]
    pairs += [("level", level) for level in question.levels]
    if question.typed:
        pairs.append(("typed", question.typed))
    if pins:
        pairs.append(("pins", pins))
    return "/?" + urlencode(pairs)


# jinja2 types what it comes with, not what it is given.
cast("dict[str, Any]", environment.globals).update(build=BUILD, kind_words=KIND_WORDS)
cast("dict[str, Any]", environment.filters).update(
    ago=ago,
    amount=amount,
    bars=bars,
    brief=brief,
    cut=cut,
    dollars=dollars,
    headline=headline,
    iso=iso,
    number=number,
    panel=panel,
    query=query,
    shown=shown,
    size=size,
    steps=steps,
    strokes=strokes,
)
