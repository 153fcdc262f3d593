"""What a link to a page says elsewhere: title, description, picture and address; robots.txt and the map of the site.

Pure. A question's words are shown elsewhere only when it is listed: whoever makes up a link does not choose what stands
under this site's name in other people's messages.
What must never be here: how a picture is drawn (card.py), HTTP.
"""

import json
import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

import msgspec

from archive.answer import Answer
from archive.messages import Kept, Remembered
from archive.picks import print_pins
from archive.when import iso
from web.render import headline, query
from web.text import cut, plain
from web.view import View, answers_in

NAME = "Ask once"
"""What the site is called where its owner has not named it."""

DESCRIPTION = "Ask a question, see how likely the answer is, and every call behind it."

TITLE_MAX, DESCRIPTION_MAX = 110, 200
"""Characters of each that are shown anywhere."""

SITEMAP_MAX = 1_000
"""Questions in the map of the site; older ones are found through the lists."""

ADDRESS_MAX = 2_047
"""Characters of an address in a map of a site (sitemaps.org: less than 2,048); longer ones are left out."""

EACH_CALL = "See each call behind it."

SITE_CARD = "/card.png"
SITE_ALT = "{}, over a scale of a hundred strokes from no to yes."


class Share(msgspec.Struct, frozen=True):
    """What a link says elsewhere; addresses are absolute. `canonical` empty: the page has none. `hidden`: noindex."""

    title: str
    description: str
    image: str
    alt: str
    url: str = ""
    canonical: str = ""
    hidden: bool = False


def of_site(origin: str, path: str = "", *, hidden: bool = False, site: str = NAME) -> Share:
    """What a link to a page of no question says; `path` is its own. `hidden`: it is to be found nowhere."""
    url = origin + path if path else ""
    return Share(site, DESCRIPTION, origin + SITE_CARD, SITE_ALT.format(site), url, url, hidden)


def of_question(view: View, origin: str, site: str = NAME) -> Share:
    """What a link to a question's page says. One that is not listed says what the site's says."""
    share = msgspec.structs.replace(
        of_site(origin, hidden=True, site=site),
        url=origin + query(view.question, print_pins(view.pins) if view.pinned else ""),
        canonical=origin + query(view.question),
    )
    remembered = view.remembered
    if remembered is None or not remembered.listed:
        return share
    words = plain(view.question.words)
    answer = view.conclusion.answer if view.conclusion is not None and view.state == "answered" else None
    if answer is None:
        return msgspec.structs.replace(share, title=cut(words, TITLE_MAX), hidden=False)
    said, number, call = plain(answer.words), headline(answer), view.calls[-1]
    share = msgspec.structs.replace(
        share,
        title=cut(f"{said}{f' ({number})' if number else ''}: {words}", TITLE_MAX),
        description=cut(f"{said}{f', {number}' if number else ''}. {EACH_CALL}", DESCRIPTION_MAX),
        hidden=False,
    )
    if call.kept is None or not _made(remembered, call.kept):
        return share
    return msgspec.structs.replace(share, image=f"{origin}/card/{call.name}/{call.kept.n}.png", alt=_alt(answer))


def pictured(remembered: Remembered | None, asked: bytes, kept: Kept) -> tuple[str, Answer] | None:
    """The question and the answer that the card of a kept answer shows, or None when it may show only the site.

    Only what answered a listed question is shown: not every call over the API that holds the same words.
    """
    if remembered is None or not remembered.listed or not _made(remembered, kept):
        return None
    said = answers_in(asked, kept.body)
    if len(said) != 1:
        return None
    return remembered.question.words, said[0].answer


def words_in(asked: bytes) -> str | None:
    """The question that a call of ours is about, from its request: the state, or what stands in it beside a claim."""
    try:
        state: Any = json.loads(asked)["state"]
        words: Any = state if isinstance(state, str) else state["question"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return words if isinstance(words, str) and _is_text(words) else None


def _made(remembered: Remembered, kept: Kept) -> bool:
    """Is this an answer of the very call that the question's own answer is from?"""
    return bool(remembered.calls) and kept.request_id == remembered.calls[-1].request_id


def _alt(answer: Answer) -> str:
    """What is to be seen on a card, in a sentence."""
    words, number, detail = plain(answer.words), headline(answer), answer.detail
    if detail is None:
        return f"{words}."
    if detail.probability is not None:
        return f"{words}: {number} on a scale of a hundred strokes from no to yes."
    return (
        f"{words}{f', {number}' if number else ''}: one bar cut into {len(detail.options)} parts by their probability."
    )


def robots(origin: str) -> str:
    """robots.txt: pages may be read; what asks, the bytes of calls and the API are nobody's reading."""
    return (
        f"User-agent: *\nDisallow: /ask\nDisallow: /call/\nDisallow: /v1/\nAllow: /\n\nSitemap: {origin}/sitemap.xml\n"
    )


def sitemap(origin: str, listed: Iterable[Remembered]) -> str:
    """The map of the site (sitemaps.org): the front page and these questions, with when each was last asked."""
    addresses = [(f"{origin}/", "")]
    addresses += [(origin + query(one.question), iso(one.last_at)) for one in listed if one.listed]
    lines = [
        f"<url><loc>{escape(address)}</loc>{f'<lastmod>{moment}</lastmod>' if moment else ''}</url>\n"
        for address, moment in addresses
        if len(address) <= ADDRESS_MAX
    ]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return f"{head}{''.join(lines)}</urlset>\n"


def _is_text(words: str) -> bool:
    """Can it be written as UTF-8? JSON can spell what cannot."""
    return not any(unicodedata.category(c) == "Cs" for c in words)
