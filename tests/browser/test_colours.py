"""The colours of the style sheet, as the browser resolves them, in both lights."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from tests.browser.tabs import tab
from tests.pages import visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

USES = """
() => {
  const root = document.documentElement, style = getComputedStyle(root), used = [], tokens = {};
  const read = (rules) => {
    for (const rule of rules) {
      if (rule.cssRules) read(rule.cssRules);
      if (!rule.style || rule.selectorText === ":root") continue;
      for (const declaration of rule.style.cssText.split(";")) {
        const [name, value] = declaration.split(/:(.*)/s).map((one) => one.trim());
        for (const [, token] of (value ?? "").matchAll(/var\\(--([\\w-]+)\\)/g)) {
          used.push([rule.selectorText, name, token]);
        }
      }
    }
  };
  for (const sheet of document.styleSheets) read(sheet.cssRules);
  const probe = root.appendChild(document.createElement("i"));
  for (const token of new Set(used.map(([, , token]) => token))) {
    probe.style.color = "transparent";
    probe.style.color = `var(--${token})`;
    if (CSS.supports("color", style.getPropertyValue(`--${token}`))) tokens[token] = getComputedStyle(probe).color;
  }
  return {used, tokens};
}
"""
"""Every token that a rule uses, where and for what; and what colour each is now."""

SURFACES = {"paper", "sheet", "brass-wash"}
"""What lies behind text."""

DECORATION = {"rule", "faint"}
"""Lines between things that stand apart anyhow, and strokes that are not inked: nothing is told by them alone."""

INACTIVE = {"rule-2"}
"""As the colour of a text: only of what cannot be pressed."""


def luminance(colour: str) -> float:
    """Relative luminance, by https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1, the same, to 21, black on white."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("light", ["light", "dark"])
async def test_every_pair_of_colours_can_be_told_apart(chromium: Browser, tmp_path: Path, light: Any) -> None:
    """Check 23: 4.5 for text, whatever it lies on; 3 for what is drawn."""
    async with visitor(tmp_path / "a.db") as me, tab(chromium, me.here.url, color_scheme=light) as page:
        found: dict[str, Any] = await page.evaluate(USES)
    colours: dict[str, str] = found["tokens"]
    used = [(rule, name, token) for rule, name, token in found["used"] if token in colours]
    behind = {token for _, name, token in used if name.startswith("background")}
    texts = {token for _, name, token in used if name in {"color", "caret-color", "accent-color"}} - SURFACES - INACTIVE
    drawn = {token for *_, token in used} - SURFACES - DECORATION
    assert {"ink", "ink-2", "wet", "brass", "rust"} <= texts
    assert behind >= SURFACES
    assert set(colours) == texts | drawn | SURFACES | DECORATION
    pairs = dict.fromkeys(product(texts, SURFACES), 4.5) | {("paper", "ink"): 4.5}
    pairs = dict.fromkeys(product(drawn, SURFACES), 3.0) | {("ink", "faint"): 3.0, ("wet", "faint"): 3.0} | pairs
    turned = {rule: token for rule, name, token in used if name == "color" and token in SURFACES}
    assert {token for rule, name, token in used if rule in turned and name.startswith("background")} == {"ink"}
    there = {(one, other): contrast(colours[one], colours[other]) for one, other in pairs}
    assert not {pair: value for pair, value in there.items() if value < pairs[pair]}
