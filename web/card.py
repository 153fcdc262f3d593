"""The picture a shared link is shown with: 1200 by 630, drawn in a thread with the page's own type.

Cards are held in memory only and can be forgotten at once: drawing one costs about as much as reading it from a disk,
and there is no file that an erasure would have to reach.
What must never be here: the record, HTTP, whether a question may be shown (share.py).
"""

import asyncio
import unicodedata
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from typing import NamedTuple

import msgspec
from PIL import Image, ImageColor, ImageDraw, ImageFont

from archive.answer import Answer, Detail
from archive.errors import Busy
from web.render import HERE, bars, headline
from web.share import NAME
from web.text import cut, plain, whole

WIDTH, HEIGHT = 1200, 630

CARDS_BYTES_MAX = 16 * 1024 * 1024
"""Several hundred cards: what is shared at a time is looked at by many within minutes."""

WAITING_MAX = 64
"""Different cards that may wait for the pen, about two seconds of drawing; whoever comes later is told to try again."""

PAPER, INK, SOFT, RULE, FAINT, WET = "#f2f5f9", "#182130", "#4a586d", "#cdd8e6", "#c2cddb", "#2b3fb6"
SHADES = {"a": INK, "b": "#7488a4", "c": FAINT}
"""The colours of the page by day (site.css)."""

STEPS = 16
"""Shades between a colour of type and the paper."""

WORD = ("piazzolla-latin", "piazzolla-latin-ext")
BYTE = ("atkinson-hyperlegible-mono-latin",)

EDGE, LEFT, RIGHT = 64, 106, 1106
"""The margin's line, and where matter begins and ends; 1000 pixels, ten for each stroke."""

QUESTION_CHARACTERS_MAX = 240
"""More never fit in the smallest type."""

SITE_CHARACTERS_MAX = 14
"""Of the site's name in the margin, which is narrow."""

LABEL_CHARACTERS_MAX = 40

QUESTION_SIZES = ((48, 1), (44, 2), (38, 3))
WORDS_SIZES = ((188, 1), (160, 1), (132, 1), (104, 1), (84, 2), (52, 3))
"""Sizes of type from the largest, each with how many lines of it there is room for."""


class Card(msgspec.Struct, frozen=True):
    """What is drawn: a question (empty: left out) and its answer. Without an answer it is the card of the site."""

    question: str = ""
    answer: Answer | None = None
    site: str = NAME


class Cards:
    """Cards as PNG: each drawn once however many ask for it, one at a time, and held while there is room."""

    def __init__(self, bytes_max: int = CARDS_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._held: OrderedDict[Card, bytes] = OrderedDict()
        self._drawing: dict[Card, asyncio.Task[bytes]] = {}
        self._pen = asyncio.Lock()
        self._bytes = 0
        self._age = 0

    async def png(self, card: Card) -> bytes:
        """The card's picture. Raises Busy when too many others wait to be drawn."""
        held = self._held.get(card)
        if held is not None:
            self._held.move_to_end(card)
            return held
        drawing = self._drawing.get(card)
        if drawing is None:
            if len(self._drawing) >= WAITING_MAX:
                raise Busy("Too many pictures are being drawn at this moment. Try again in a second.")
            drawing = self._drawing[card] = asyncio.create_task(self._draw(card, self._age), name="card")
        # Whoever leaves does not stop it: the others wait for the same one.
        return await asyncio.shield(drawing)

    def forget(self) -> None:
        """Let go of every card, those that are being drawn as well: words in them may have been erased."""
        self._age += 1
        self._held.clear()
        self._drawing.clear()
        self._bytes = 0

    async def _draw(self, card: Card, age: int) -> bytes:
        try:
            async with self._pen:
                png = await asyncio.to_thread(draw, card)
        finally:
            if age == self._age:
                self._drawing.pop(card, None)
        if age == self._age:
            self._held[card] = png
            self._bytes += len(png)
            while self._bytes > self._bytes_max:
                _, oldest = self._held.popitem(last=False)
                self._bytes -= len(oldest)
        return png


def draw(card: Card) -> bytes:
    """The PNG of a card. A question or words the type has no glyphs for are left out. One thread at a time."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen = ImageDraw.Draw(image)
    _margin(image, card.site)
    answer, question = card.answer, _seen(card.question)
    if answer is None or lacks(_seen(answer.words)):
        _site(pen, card.site)
    else:
        if lacks(question):
            _question(pen, "The question is on the page.", SOFT)
        else:
            _question(pen, question, INK)
        _words(pen, _seen(answer.words), answer.weight)
        _drawing(pen, answer)
    file = BytesIO()
    image.quantize(palette=_palette(), dither=Image.Dither.NONE).save(file, "PNG")
    return file.getvalue()


@lru_cache(maxsize=1)
def _palette() -> Image.Image:
    """The colours, and how those of type run into the paper at its edges: a third of the bytes of a picture without.

    No two stand so close together that Pillow's search, which is rough, could take one for the other.
    """
    paper = ImageColor.getrgb(PAPER)
    values = [value for colour in (PAPER, RULE, *SHADES.values()) for value in ImageColor.getrgb(colour)]
    values += [
        round(of_paper + (of_ink - of_paper) * step / STEPS)
        for colour in (INK, SOFT, WET)
        for step in range(1, STEPS + 1)
        for of_paper, of_ink in zip(paper, ImageColor.getrgb(colour), strict=True)
    ]
    palette = Image.new("P", (1, 1))
    palette.putpalette(values)
    return palette


# -- the parts of a card ------------------------------------------------------------------------------------------


def _margin(image: Image.Image, site: str) -> None:
    """The margin and its line; in it the site's mark, the scale in small, and its name, read upwards."""
    pen = ImageDraw.Draw(image)
    pen.rectangle((EDGE - 1, 0, EDGE, HEIGHT), fill=RULE)
    for place, (top, colour) in enumerate(((66, INK), (72, INK), (72, INK), (56, WET), (72, FAINT))):
        pen.rectangle((15 + 8 * place, top, 17 + 8 * place, 104), fill=colour)
    name = Image.new("RGB", (200, EDGE - 1), PAPER)
    _write(ImageDraw.Draw(name), (0, 41), cut(site, SITE_CHARACTERS_MAX), Type(WORD, 28, 650), INK)
    image.paste(name.rotate(90, expand=True), (0, 582 - 200))


def _site(pen: ImageDraw.ImageDraw, site: str) -> None:
    _question(pen, "Ask a question, see how likely the answer is.", INK)
    _words(pen, site, 650)
    _strokes(pen, 0.62, "")


def _question(pen: ImageDraw.ImageDraw, question: str, colour: str) -> None:
    type_, lines = _fitted(cut(question, QUESTION_CHARACTERS_MAX), QUESTION_SIZES, 350)
    for place, line in enumerate(lines):
        _write(pen, (LEFT, 104 + round(place * type_.size * 1.2)), line, type_, colour)


def _words(pen: ImageDraw.ImageDraw, words: str, weight: int) -> None:
    type_, lines = _fitted(words, WORDS_SIZES, weight)
    leading = round(type_.size * 1.02)
    first = 362 - leading * (len(lines) - 1)
    for place, line in enumerate(lines):
        # A letter begins a little right of where it is put: large ones are set back to the edge of the small ones.
        _write(pen, (LEFT - type_.size // 40, first + place * leading), line, type_, INK)


def _drawing(pen: ImageDraw.ImageDraw, answer: Answer) -> None:
    detail, number = answer.detail, headline(answer)
    if detail is not None and detail.probability is not None:
        _strokes(pen, detail.probability, number)
    elif detail is not None and detail.options:
        _bar(
            pen, detail, f"{number} of {len(detail.options) - 1}" if detail.score is not None else number, answer.words
        )
    else:
        _write(pen, (LEFT, 582), number or "Only the words are on record.", SMALL, SOFT)


def _strokes(pen: ImageDraw.ImageDraw, probability: float, number: str) -> None:
    """The scale of 100 strokes, as many inked as the percentage, and the one that stands for the answer."""
    inked = round(min(1.0, max(0.0, probability)) * 100)
    for place in range(100):
        x = LEFT + 10 * place + 3
        pen.rectangle((x, 462 if place % 10 == 0 else 476, x + 2, 538), fill=INK if place < inked else FAINT)
    x = LEFT + 10 * inked
    pen.rectangle((x - 3, 448, x + 3, 538), fill=WET)
    _number(pen, x, number)
    _write(pen, (LEFT, 582), "No", SMALL, SOFT)
    _write(pen, ((LEFT + RIGHT) // 2, 582), "Torn", SMALL, SOFT, "middle")
    _write(pen, (RIGHT, 582), "Yes", SMALL, SOFT, "right")


def _bar(pen: ImageDraw.ImageDraw, detail: Detail, number: str, words: str) -> None:
    """One bar cut in parts, and the names of as many of them as there is room for, the likeliest first."""
    parts = bars(detail)
    for part in parts:
        x = LEFT + part.x * 10
        pen.rectangle((round(x), 470, round(x + part.width * 10) - 1, 526), fill=SHADES[part.shade])
        if part.label == words:
            _number(pen, x + part.width * 5, number)
    x, left = float(LEFT), len(parts)
    for part in sorted(parts, key=lambda part: -part.width):
        type_ = Type(WORD, 30, 650 if part.label == words else 400)
        label = f"{cut(_seen(part.label), LABEL_CHARACTERS_MAX)} "
        names = x + 30 + _length(label, type_)
        end = names + _length(part.number, SMALL_NUMBER)
        # The last may go up to the edge; the others leave room for what is said of those that are not named.
        if lacks(label) or end > RIGHT - (0 if left == 1 else 140):
            break
        pen.rectangle((round(x), 564, round(x) + 17, 581), fill=SHADES[part.shade])
        _write(pen, (x + 30, 582), label, type_, INK)
        _write(pen, (names, 582), part.number, SMALL_NUMBER, SOFT)
        x, left = end + 44, left - 1
    if left:
        _write(pen, (x, 582), f"and {left} more" if left < len(parts) else f"{left} parts", SMALL, SOFT)


def _number(pen: ImageDraw.ImageDraw, x: float, number: str) -> None:
    type_ = Type(BYTE, 34, 700)
    half = _length(number, type_) / 2
    _write(pen, (min(max(x, LEFT + half), RIGHT - half), 440), number, type_, WET, "middle")


# -- type ---------------------------------------------------------------------------------------------------------


class Type(NamedTuple):
    """A face (its files, the first that has a glyph is used), a size in pixels and a weight."""

    files: tuple[str, ...]
    size: int
    weight: int


SMALL, SMALL_NUMBER = Type(WORD, 30, 400), Type(BYTE, 26, 400)


def _seen(text: str) -> str:
    """A text as it is set: in one line, its letters and their marks in one where there is such a letter."""
    return unicodedata.normalize("NFC", plain(text))


def lacks(text: str) -> bool:
    """Is there a character in it that the page's type has no glyph for?"""
    return any(_file(character, WORD) is None for character in text)


@lru_cache(maxsize=64)
def _font(file: str, size: int, weight: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.truetype(HERE / "static" / "fonts" / f"{file}-wght-normal.woff2", size)
    font.set_variation_by_axes([weight])
    return font


@lru_cache(maxsize=4096)
def _file(character: str, files: tuple[str, ...]) -> str | None:
    """The file that has a glyph for a character, if any has."""
    return next((file for file in files if _look(character, file) != _look("\uffff", file)), None)


def _look(character: str, file: str) -> bytes:
    """What a character looks like; one without a glyph looks as U+FFFF does, which never has one."""
    image = Image.new("L", (64, 64))
    ImageDraw.Draw(image).text((16, 40), character, fill=255, font=_font(file, 24, 400), anchor="ls")
    return image.tobytes()


def _runs(text: str, type_: Type) -> Iterator[tuple[str, ImageFont.FreeTypeFont, float]]:
    """The text in pieces that are each set from one file, and the width of each; spaces are as wide as on the page."""
    files = ((_file(character, type_.files) or type_.files[0], character) for character in text)
    for (file, space), pieces in groupby(files, key=lambda pair: (pair[0], pair[1] == " ")):
        piece = "".join(character for _, character in pieces)
        font = _font(file, type_.size, type_.weight)
        yield piece, font, font.getlength(piece) + (0.06 * type_.size * len(piece) if space else 0)


def _length(text: str, type_: Type) -> float:
    return sum(width for _, _, width in _runs(text, type_))


def _write(
    pen: ImageDraw.ImageDraw, at: tuple[float, float], text: str, type_: Type, colour: str, side: str = "left"
) -> None:
    """Set a line; `at` is its base line at its left, its middle or its right."""
    x = at[0] - {"left": 0, "middle": 0.5, "right": 1}[side] * _length(text, type_)
    for piece, font, width in _runs(text, type_):
        pen.text((x, at[1]), piece, fill=colour, font=font, anchor="ls")
        x += width


def _fitted(text: str, sizes: tuple[tuple[int, int], ...], weight: int) -> tuple[Type, list[str]]:
    """The largest type in which the text fits, and its lines; in the smallest it is cut."""
    type_, lines, lines_max = Type(WORD, 0, weight), list[str](), 0
    for size, lines_max in sizes:
        type_ = Type(WORD, size, weight)
        lines = _lines(text, type_)
        if len(lines) <= lines_max:
            return type_, lines
    last = " ".join(lines[lines_max - 1 :])
    return type_, [*lines[: lines_max - 1], cut(last, 1 + _fits(last, type_, _length("…", type_)))]


def _lines(text: str, type_: Type) -> list[str]:
    """The text in lines as wide as there is room; a word that is wider is broken."""
    lines: list[str] = []
    room = 0.0
    for word in text.split():
        if (wide := _length(f" {word}", type_)) <= room:
            lines[-1] += f" {word}"
            room -= wide
            continue
        rest = word
        while rest:
            most = max(1, whole(rest, _fits(rest, type_)))
            lines.append(rest[:most])
            rest = rest[most:]
        room = RIGHT - LEFT - _length(lines[-1], type_)
    return lines


def _fits(text: str, type_: Type, taken: float = 0) -> int:
    """How many of its characters fit into a line of which so much is taken."""
    return bisect_right(range(1, len(text) + 1), RIGHT - LEFT - taken, key=lambda most: _length(text[:most], type_))
