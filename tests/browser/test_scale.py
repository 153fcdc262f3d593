"""The drawing of an answer in a real browser: every probability is drawn, named and said as the one table has it."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.async_api import Browser, Page

from archive.answer import Answer, word
from tests.browser.tabs import browsing, live
from tests.pages import address, visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ = "(path) => import('/static/page.js').then((page) => page.read(path))"

SEEN = """
() => {
  const scale = document.querySelector("#answer .scale[role=img]");
  const [inked, pale] = scale.querySelectorAll(":scope > svg > rect");
  const word = document.querySelector(".word"), number = scale.querySelector("output");
  const middle = (box) => box.x + box.width / 2, drawing = scale.querySelector(":scope > svg").getBoundingClientRect();
  return {
    word: word.textContent,
    weight: Number(getComputedStyle(word).fontWeight),
    band: [...scale.querySelectorAll(".bands .on")].map((one) => one.textContent),
    label: scale.ariaLabel,
    number: number.textContent,
    inked: inked.width.baseVal.value / 10,
    pale: pale.width.baseVal.value / 10,
    place: Math.round((middle(number.getBoundingClientRect()) - drawing.x) / drawing.width * 100),
    title: document.title,
  };
}
"""


def expected(hundredths: int) -> dict[str, Any]:
    """What the table says of a probability."""
    probability = hundredths / 100
    name = word(probability)
    return {
        "word": name,
        "weight": Answer(name, abs(probability - 0.5) * 2).weight,
        "band": [name],
        "label": f"Probability of yes: {probability:.2f}, on a scale from no to yes. "
        f"{hundredths} of 100 strokes are inked.",
        "number": f"{probability:.2f}",
        "inked": hundredths,
        "pale": 100 - hundredths,
        "place": hundredths,
        "title": f"{name} ({probability:.2f}): Is it {hundredths}?",
    }


async def strokes(page: Page) -> list[bool]:
    """The strokes as they are drawn, from left to right: is it inked? The mark of the number itself is among them."""
    with Image.open(BytesIO(await page.locator("#answer .scale > svg").screenshot(animations="disabled"))) as image:
        height = image.height * 3 // 4
        paper, *row = image.convert("L").crop((0, height, image.width, height + 1)).tobytes()
    found: list[bool] = []
    darkest = paper
    for light in [*row, paper]:
        if paper - light > 20:
            darkest = min(darkest, light)
        elif darkest < paper:
            found.append(darkest < paper / 2)
            darkest = paper
    return found


async def test_word_band_label_number_and_strokes_of_every_hundredth_agree_with_the_table(
    chromium: Browser, tmp_path: Path
) -> None:
    """Check 19."""
    async with visitor(tmp_path / "a.db") as me, browsing(chromium, me.here.url, device_scale_factor=3) as context:
        page = await context.new_page()
        await live(page, "/build")
        for hundredths in range(101):
            me.jev.noul = hundredths / 100
            await me.post(f"Is it {hundredths}?")
            await me.settled()
            assert await page.evaluate(READ, address(f"Is it {hundredths}?"))
            assert await page.evaluate(SEEN) == expected(hundredths)
            if hundredths % 10 == 3:
                assert await strokes(page) == [True] * (hundredths + 1) + [False] * (100 - hundredths)
