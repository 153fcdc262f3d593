"""The strict reading of our HTML: each thing it is there to find, it finds."""

import pytest

from tests.html import fragment, read

HEAD = b'<!doctype html>\n<html lang="en"><head><title>t</title></head>'
WHOLE = HEAD + b'<body><main id="main"><h1>x</h1>{}</main></body></html>'

WRONG = {
    "an element never closed": "<p>x",
    "an element closed by another's end": "<p><b>x</p></b>",
    "an end without a beginning": "</p>",
    "a void element closed": "<br></br>",
    "a block in a paragraph": "<p><div>x</div></p>",
    "an element that closes itself and cannot": "<p/>",
    "an attribute twice": '<p class="a" class="b">x</p>',
    "a form in a form": '<form method="post" action="/ask"><form method="post" action="/ask"></form></form>',
    "a link in a link": '<a href="/"><a href="/">x</a></a>',
    "a script": "<script>x</script>",
    "a style": "<style>x</style>",
    "an inline style": '<p style="x">x</p>',
    "an inline handler": '<p onclick="x">x</p>',
    "a comment": "<!-- x -->",
    "a processing instruction": "<?php x ?>",
    "an id twice": '<p id="a">x</p><p id="a">x</p>',
    "a second h1": "<h1>y</h1>",
    "a heading left out": "<h2>y</h2><h4>z</h4>",
    "a field without a label": '<form method="post" action="/ask"><input id="q" name="q"></form>',
    "a label for nothing": '<label for="nothing">x</label>',
    "a name that is nowhere": '<p aria-labelledby="nothing">x</p>',
    "a button without a name": '<button class="btn"> </button>',
    "a link elsewhere": '<a href="https://evil.example">x</a>',
    "a link that runs": '<a href="javascript:alert(1)">x</a>',
    "a form that goes elsewhere": '<form method="post" action="/other"></form>',
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_browser_would_quietly_repair_is_found(name: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        read(WHOLE.replace(b"{}", WRONG[name].encode()))


def test_a_page_that_is_right_is_read_as_it_stands() -> None:
    page = read(
        WHOLE.replace(b"{}", b'<p class="a">1 &lt; 2 <b>&amp;</b> so</p><input type="hidden" name="q" value="&quot;">')
    )
    assert page.one("p", class_="a").text == "1 < 2 & so"
    assert page.one("input")["value"] == '"'
    assert [tag for tag, _ in page.shape()] == ["html", "head", "title", "body", "main", "h1", "p", "b", "input"]


def test_text_keeps_its_spaces_and_can_be_read_with_one_at_every_tag() -> None:
    found = fragment("<p>a<b>b</b>  c\n</p>").one("p")
    assert (found.text, found.spaced) == ("ab  c\n", "a b c")
