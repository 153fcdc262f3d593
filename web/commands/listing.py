"""`askonce feed`, `watch` and `deliveries`: what was asked, what is happening, and who was given what."""

import asyncio
import time
from collections import Counter
from typing import Any

import click
import msgspec

from archive.admin import Deliveries, Delivery, Tokens
from archive.attempts import State
from archive.live import Asked, Changed, Forgotten, Imported, Notice, Place, Stale
from archive.messages import After, Feed, Order, Remembered, Sent
from archive.when import ago, iso, shown
from web.commands.answers import HOW, answer_json, large, short
from web.commands.home import CannotOpen, Home, command
from web.commands.output import Output, dim, many, visible

PAGE = 50

STATES: dict[State | None, tuple[str, str | None]] = {
    None: ("sent", None),
    State.ANSWERED: ("answered", "green"),
    State.FAILED: ("failed", "red"),
    State.UNKNOWN: ("unknown", "yellow"),
}


class AfterType(click.ParamType[After]):
    """Reads `1780000000000000:17`, where a page of the feed ended."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> After:
        """See click.ParamType."""
        place, _, number = value.partition(":")
        if not (place.isdecimal() and number.isdecimal() and len(place) < 19 and len(number) < 19):
            self.fail(f"{value!r} is no place in the feed; the last line of a page names the next one.", param, ctx)
        return After(int(place), int(number))


@click.command("feed")
@click.option("--most", is_flag=True, help="By how often they were asked; else by when.")
@click.option("--count", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="How many at most.")
@click.option("--after", type=AfterType(), help="Go on where a page ended.")
@command()
async def feed(home: Home, out: Output, most: bool, count: int, after: After | None) -> None:
    """List questions, as the front page does."""
    order = Order.MOST if most else Order.LATELY
    left = count
    while left:
        listed = await home.door.send(Feed(order, after, min(left, PAGE)))
        left -= len(listed.rows)
        after = listed.after
        if out.as_json:
            for row in listed.rows:
                out.document(_document(row, order))
        elif listed.rows:
            out.table([_row(row) for row in listed.rows], indent=0)
        if after is None:
            break
    if out.as_json:
        return
    if after is not None:
        out.line(dim(f"further: askonce feed{' --most' if most else ''} --after {after.place}:{after.number}"))
    elif left == count:
        out.line("Nothing is listed yet." if after is None else "")


def _row(row: Remembered) -> list[str]:
    answer = row.conclusion.answer
    times = f"{row.times} time{'' if row.times == 1 else 's'}"
    return [
        short(row.question.words),
        "" if answer is None else large(answer),
        dim(times),
        dim(ago(row.last_at, time.time_ns() // 1000)),
    ]


def _document(row: Remembered, order: Order) -> dict[str, Any]:
    return {
        "question": row.question.words,
        "answer": answer_json(row.conclusion.answer),
        "times": row.times,
        "first_at": iso(row.first_at),
        "last_at": iso(row.last_at),
        "calls": [{"title": made.title, "request_number": made.request_id, "n": made.n} for made in row.calls],
        "after": f"{row.times if order is Order.MOST else row.last_at}:{row.number}",
    }


@click.command("watch")
@command()
async def watch(home: Home, out: Output) -> None:
    """Print what happens, until Ctrl-C.

    A line for each call that is sent or ends, and for each question that is asked. Needs a running server.
    """
    if not home.address:
        raise CannotOpen("No server has this store open, so there is nothing to watch.")
    try:
        async with home.door.watch(Place("/wire")) as notices:
            out.aside(dim(f"Watching {home.address}. Ctrl-C ends it."))
            async for notice in notices:
                at = time.time_ns() // 1000
                if out.as_json:
                    out.document({"at": iso(at), **msgspec.to_builtins(notice)})
                else:
                    out.line(f"{dim(iso(at)[11:19])}  {_said(notice)}")
    except asyncio.CancelledError:
        return  # Ctrl-C is how this ends


@click.command("deliveries")
@command()
async def deliveries(home: Home, out: Output) -> None:
    """List the answers that were handed out last.

    The newest first: when, which answer, whether a call was sent for it, shared with another asker or not needed, and
    on which access token. A server holds the last 1,000 in memory, and none of before it was started or words were
    erased. Needs a running server.
    """
    if not home.address:
        raise CannotOpen("No server has this store open, and only a running one knows what it handed out.")
    found = await home.door.send(Deliveries())
    names = {one.token.number: one.token.name for one in await home.door.send(Tokens())}
    counts = Counter(one.sent for one in found)
    if out.as_json:
        said = [_delivery_json(one, names) for one in found]
        out.document({**{sent.value: counts[sent] for sent in Sent}, "deliveries": said})
        return
    rows = [[shown(one.at), f"{one.call_id}:{one.n}", HOW[one.sent], _token(one, names)] for one in found]
    out.table([[*row[:3], dim(row[3])] for row in rows], indent=0)
    how_many = ", ".join(f"{counts[sent]:,} {HOW[sent]}" for sent in Sent if counts[sent])
    out.line(f"{many(len(found), 'answer')} handed out: {how_many}" if found else "Nothing was handed out yet.")


def _token(one: Delivery, names: dict[int, str]) -> str:
    return visible(names.get(one.token, f"#{one.token}")) if one.token else ""


def _delivery_json(one: Delivery, names: dict[int, str]) -> dict[str, Any]:
    return {
        "at": iso(one.at),
        "call": one.call_id,
        "n": one.n,
        "sent": one.sent.value,
        "token": names.get(one.token),
        "token_number": one.token or None,
    }


def _said(notice: Notice) -> str:
    match notice:
        case Changed():
            word, colour = STATES[notice.state]
            name = notice.call_id if notice.n is None else f"{notice.call_id}:{notice.n}"
            return f"{click.style(f'{word:9}', fg=colour)} {name}"
        case Imported(calls):
            return f"imported  answers of {many(len(calls), 'call')}"
        case Asked(question):
            return f"asked     {short(question.words)}"
        case Forgotten():
            return dim("…         words were erased, or an answer withdrawn")
        case Stale():
            return dim("…         some of it was missed: this terminal was too slow")
