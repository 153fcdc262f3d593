"""The picture a shared link is shown with: what is on it, that it is small, and that it is drawn once."""

# ruff: noqa: RUF001 - letters of other scripts are what some of this is about

import asyncio
import threading
from io import BytesIO

import pytest
from PIL import Image

from archive.answer import Answer, Detail, Option, stored, word
from archive.errors import Busy
from web import card
from web.card import FAINT, HEIGHT, INK, LEFT, PAPER, RIGHT, WIDTH, Card, Cards, draw, lacks


def noul(probability: float) -> Answer:
    return Answer(word(probability), abs(probability - 0.5) * 2, Detail("noul", probability))


def choice(**shares: float) -> Answer:
    options = tuple(Option(label, share) for label, share in shares.items())
    return Answer(
        max(shares, key=lambda label: shares[label]), 0.6, Detail("choice", None, None, 0.6, True, options, 1)
    )


def score(value: float, *shares: float) -> Answer:
    options = tuple(Option(f"level {n}", share) for n, share in enumerate(shares))
    return Answer(f"level {round(value)}", 0.4, Detail("score", None, value, 0.4, True, options, 1))


def opened(card: Card) -> Image.Image:
    """The picture of a card, as anybody reads it."""
    with Image.open(BytesIO(draw(card))) as image:
        assert image.format == "PNG"
        return image.convert("RGB")


def colour(text: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(text.removeprefix("#")))


def ink(image: Image.Image, box: tuple[int, int, int, int]) -> int:
    """How many pixels in a box are not paper."""
    paper = colour(PAPER)
    part = image.crop(box)
    return sum(count for count, found in part.getcolors(part.width * part.height) or [] if found != paper)


QUESTION = (LEFT - 10, 0, WIDTH, 215)
WORDS = (LEFT - 10, 215, WIDTH, 412)
EDGE = (RIGHT + 12, 0, WIDTH, HEIGHT)

CARDS = {
    "yes or no": Card("Will tea stay hot longer if the milk goes in first?", noul(0.83)),
    "one of several": Card("Tea, coffee or water?", choice(tea=0.7, coffee=0.2, water=0.1)),
    "how much": Card("How warm is it?", score(2.4, 0.1, 0.1, 0.4, 0.3, 0.1)),
    "twenty options": Card("Which?", choice(**{f"option number {n}": 0.05 for n in range(20)})),
    "the longest options": Card("W" * 500, choice(**{"W" * 100: 0.5, "x " * 50: 0.5})),
    "500 characters without a space": Card("m" * 500, noul(0.5)),
    "500 short words": Card("i " * 250, noul(0.07)),
    "many lines and marks": Card("a\u0301\u0302\n" * 125, noul(0.93)),
    "another script": Card("هل الشاي ساخن؟", noul(0.83)),
    "a right-to-left override": Card("Is \u202eti\u202c?", noul(0.83)),
    "markup": Card("Is \"a\" > 'b' & </title><script>x</script>?", noul(0.83)),
    "words alone": Card("Is it?", stored("Probably not")),
    "no options": Card("Is it?", Answer("7", None, Detail("score", None, 7.0))),
    "an option without a number": Card("Is it?", Answer("a", 0.1, Detail("choice", options=(Option("a", None),)))),
    "odd numbers": Card("Is it?", Answer("Yes", 9.0, Detail("noul", 1.7))),
    "nothing at all": Card("", Answer("")),
    "the site": Card(),
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_a_png_of_1200_by_630_under_60_kb_with_nothing_beyond_its_edge(name: str) -> None:
    image = opened(CARDS[name])
    assert image.size == (1200, 630)
    assert len(draw(CARDS[name])) < 60_000
    assert ink(image, EDGE) == 0
    assert ink(image, (0, HEIGHT - 20, 63, HEIGHT)) == ink(image, (LEFT, HEIGHT - 20, WIDTH, HEIGHT)) == 0


@pytest.mark.parametrize("hundredths", range(0, 101, 5))
def test_as_many_strokes_are_inked_as_the_percentage(hundredths: int) -> None:
    image = opened(Card("Is it?", noul(hundredths / 100)))
    strokes = [image.getpixel((LEFT + 10 * place + 5, 520)) for place in range(100)]
    assert strokes == [colour(INK)] * hundredths + [colour(FAINT)] * (100 - hundredths)


def test_a_bar_is_cut_by_the_probabilities_in_the_order_they_were_asked() -> None:
    image = opened(Card("Which?", choice(a=0.2, b=0.7, c=0.1)))
    found = [image.getpixel((LEFT + 10 * place + 1, 500)) for place in range(100)]
    middle, most, least = (colour(card.SHADES[shade]) for shade in "bac")
    assert [found.count(one) for one in (middle, most, least)] == [20, 70, 10]
    assert [found[0], found[50], found[99]] == [middle, most, least]


def test_the_surer_the_heavier() -> None:
    weights = [ink(opened(Card("Is it?", Answer("No", certainty))), WORDS) for certainty in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert weights == sorted(set(weights))
    assert weights[-1] > 1.5 * weights[0]


@pytest.mark.parametrize("text", ["Is it?", "Łódź, Đà Nẵng, Ağrı", "“€” – 5 − 3 ′", "e\u0301te\u0301", ""])
def test_the_type_has_what_european_languages_are_written_with(text: str) -> None:
    assert not lacks(text)


@pytest.mark.parametrize("text", ["😀", "هل", "日本", "что", "αβγ", "Is it 👨‍👩‍👧?", "\ufdfd", "\uffff", "\U0001f3f4"])
def test_a_question_the_type_has_no_glyphs_for_stays_out_of_the_picture(text: str) -> None:
    assert lacks(text)
    with_it, another = draw(Card(text, noul(0.83))), draw(Card("ไทย", noul(0.83)))
    assert with_it == another
    assert with_it != draw(Card("Is it?", noul(0.83)))


def test_words_the_type_has_no_glyphs_for_leave_only_the_sites_card() -> None:
    assert draw(Card("Is it?", stored("😀"))) == draw(Card("Is it not?", choice(日本=0.9, b=0.1))) == draw(Card())


def test_an_option_the_type_has_no_glyphs_for_is_not_named_and_the_bar_is_whole() -> None:
    image = opened(Card("Which?", choice(a=0.6, 日本=0.4)))
    assert image.getpixel((LEFT + 900, 500)) == colour(card.SHADES["b"])


@pytest.mark.parametrize(
    "mark", ["\u202e", "\u2066", "\u200f", "\x07", "\x9b", "\u200b", "\ufeff", "\U000e0041"], ids=ascii
)
def test_marks_that_are_not_seen_change_no_pixel(mark: str) -> None:
    plain = draw(Card("Is it so?", choice(ab=0.9, cd=0.1)))
    marked = choice(**{f"a{mark}b": 0.9, f"c{mark}d": 0.1})
    assert draw(Card(f"Is{mark} it {mark}so?", marked)) == plain


def test_a_long_question_is_cut_and_its_beginning_is_there() -> None:
    long = opened(Card("Suppose that a ship leaves the harbour at dawn. " * 10, noul(0.66)))
    longer = opened(Card("Suppose that a ship leaves the harbour at dawn. " * 10 + "And then?", noul(0.66)))
    other = opened(Card("Suppose that a boat leaves the harbour at dawn. " * 10, noul(0.66)))
    assert long.tobytes() == longer.tobytes()
    assert long.tobytes() != other.tobytes()
    assert ink(long, QUESTION) > 10_000


# -- how they are drawn and held ----------------------------------------------------------------------------------


class Pen:
    """Stands in for `draw`: counts, and waits until it may go on."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        self.begun = asyncio.Semaphore(0)
        self.may = threading.Event()
        self.at_work = 0
        self.fails = False
        self._loop = asyncio.get_running_loop()

    def __call__(self, card: Card) -> bytes:
        self.at_work += 1
        assert self.at_work == 1, "two are drawn at a time"
        self.drawn.append(card.question)
        self._loop.call_soon_threadsafe(self.begun.release)
        assert self.may.wait(30)
        self.at_work -= 1
        if self.fails:
            raise ValueError("a broken pen")
        return card.question.encode() * 10


async def begun(pen: Pen) -> None:
    """Wait until a card is being drawn."""
    async with asyncio.timeout(30):
        await pen.begun.acquire()


@pytest.fixture
async def pen(monkeypatch: pytest.MonkeyPatch) -> Pen:
    found = Pen()
    monkeypatch.setattr(card, "draw", found)
    return found


async def test_twenty_who_ask_at_once_have_it_drawn_once_and_later_ones_not_again(pen: Pen) -> None:
    cards = Cards()
    asked = [asyncio.create_task(cards.png(Card("a"))) for _ in range(20)]
    await begun(pen)
    pen.may.set()
    assert await asyncio.gather(*asked) == [b"a" * 10] * 20
    assert await cards.png(Card("a")) == b"a" * 10
    assert pen.drawn == ["a"]


async def test_different_cards_are_drawn_one_at_a_time_while_the_loop_goes_on(pen: Pen) -> None:
    cards = Cards()
    asked = [asyncio.create_task(cards.png(Card(name))) for name in "abc"]
    await begun(pen)
    await asyncio.gather(*(asyncio.create_task(asyncio.sleep(0)) for _ in range(100)))
    assert pen.drawn == ["a"]
    pen.may.set()
    assert await asyncio.gather(*asked) == [name.encode() * 10 for name in "abc"]
    assert pen.drawn == ["a", "b", "c"]


async def test_one_who_leaves_takes_the_card_from_nobody(pen: Pen) -> None:
    cards = Cards()
    first, second = (asyncio.create_task(cards.png(Card("a"))) for _ in range(2))
    await begun(pen)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    pen.may.set()
    assert await second == b"a" * 10
    assert pen.drawn == ["a"]


async def test_a_card_that_could_not_be_drawn_is_tried_again_by_the_next(pen: Pen) -> None:
    cards = Cards()
    pen.may.set()
    pen.fails = True
    with pytest.raises(ValueError, match="a broken pen"):
        await cards.png(Card("a"))
    pen.fails = False
    assert await cards.png(Card("a")) == b"a" * 10


async def test_only_so_many_cards_wait_and_who_waits_for_one_of_them_may_always_join(pen: Pen) -> None:
    cards = Cards()
    asked = [asyncio.create_task(cards.png(Card(str(n)))) for n in range(card.WAITING_MAX)]
    await begun(pen)
    with pytest.raises(Busy):
        await cards.png(Card("one more"))
    joined = asyncio.create_task(cards.png(Card("0")))
    pen.may.set()
    await asyncio.gather(*asked, joined)
    assert await cards.png(Card("one more")) == b"one more" * 10
    assert len(pen.drawn) == card.WAITING_MAX + 1


async def test_cards_are_held_while_there_is_room_and_the_one_longest_unused_goes_first(pen: Pen) -> None:
    cards = Cards(bytes_max=20)
    pen.may.set()
    for name in "abacab":
        await cards.png(Card(name))
    assert pen.drawn == ["a", "b", "c", "b"]


async def test_forgotten_cards_are_drawn_again_those_that_were_being_drawn_too(pen: Pen) -> None:
    cards = Cards()
    pen.may.set()
    await cards.png(Card("a"))
    pen.may.clear()
    asked = asyncio.create_task(cards.png(Card("b")))
    await begun(pen)
    await begun(pen)
    cards.forget()
    pen.may.set()
    assert await asked == b"b" * 10
    for name in "ab":
        await cards.png(Card(name))
    assert pen.drawn == ["a", "b", "a", "b"]
