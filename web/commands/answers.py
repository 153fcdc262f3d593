"""Answers and the calls they came from, in words for a terminal and as values for JSON; every command uses these.

What must never be here: asking for anything.
"""

import json
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from archive.answer import Answer
from archive.messages import Kept, Sent
from archive.when import ago, iso
from web.commands.output import bold, dim, joined, visible
from web.render import amount, headline, number
from web.text import cut, plain
from web.view import Said, answers_in

WORDS_MAX = 60
"""Characters of somebody's words in a table."""

BAR_WIDTH = 24

HOW = {Sent.NOW: "sent now", Sent.SHARED: "shared with another asker's call", Sent.NOT_SENT: "from the record"}


def short(text: str, most: int = WORDS_MAX) -> str:
    """Somebody's words in one line, cut."""
    return cut(plain(text), most)


def cost(billionths: int | None) -> str:
    """A cost as people read it, all of its digits."""
    if billionths is None:
        return "price unknown"
    return "free" if billionths == 0 else "$" + f"{billionths // 10**9}.{billionths % 10**9:09}".rstrip("0").rstrip(".")


def total(billionths: Sequence[int | None]) -> str:
    """A sum of costs; what is not known is said beside it, never taken for 0."""
    known, unknown = sum(x for x in billionths if x is not None), sum(x is None for x in billionths)
    if not unknown:
        return cost(known)
    more = f"{unknown} of {len(billionths)} prices unknown" if len(billionths) > 1 else "price unknown"
    return more if not known else f"{amount(known)} and {more}"


def dollars(billionths: int | None) -> float | None:
    """A cost for JSON."""
    return None if billionths is None else billionths / 1e9


def large(answer: Answer) -> str:
    """The few words, and the number beside them."""
    words = click.style(visible(answer.words), bold=True, fg=_shade(answer))
    return f"{words}  {headline(answer)}".rstrip()


def _shade(answer: Answer) -> str | None:
    """Green for a yes, red for a no, else none: only a noul has sides."""
    probability = None if answer.detail is None else answer.detail.probability
    if probability is None or 0.42 <= probability < 0.58:
        return None
    return "green" if probability > 0.5 else "red"


def options(answer: Answer) -> list[list[str]]:
    """A row an option or level: label, probability, and how wide it is."""
    detail = answer.detail
    rows: list[list[str]] = []
    for option in () if detail is None else detail.options:
        share = option.probability
        label = short(option.label, 40)
        chosen = bold(label) if option.label == answer.words else label
        rows.append([chosen, "" if share is None else number(share), "" if share is None else bar(share)])
    return rows


def bar(share: float) -> str:
    """A share of 1 as a bar, in eighths of a character."""
    eighths = round(min(1.0, max(0.0, share)) * BAR_WIDTH * 8)
    whole, rest = divmod(eighths, 8)
    return click.style("█" * whole + " ▏▎▍▌▋▊▉"[rest].strip(), fg="blue")


def small(answer: Answer) -> str:
    """What stands behind the words, in a line."""
    detail = answer.detail
    if detail is None:
        return ""
    confidence = ""
    if detail.confidence is not None:
        confidence = f"confidence {number(detail.confidence)}" + (
            "" if detail.confidence_given else ", worked out here"
        )
    score = f"on levels from 0 to {len(detail.options) - 1}" if detail.score is not None and detail.options else ""
    sum_ = "" if detail.adds_up or detail.total is None else f"probabilities add up to {number(detail.total)}"
    return joined([score, confidence, sum_])


def rows_of(said: Sequence[Said]) -> list[list[str]]:
    """A row a question of one call: its name, the words with their number, what stands behind them."""
    return [[short(one.name, 40), large(one.answer), dim(small(one.answer))] for one in said]


def kept_line(kept: Kept, now: int) -> str:
    """What is known of one answer's call, in a line."""
    tokens = "" if kept.input_tokens is None else f"{kept.input_tokens} tokens in"
    tokens += "" if kept.output_tokens is None else f", {kept.output_tokens} out"
    moment = ago(kept.kept_at, now) if kept.recorded else "not in the record yet"
    cut_short = "cut short at a limit" if kept.cut_short else ""
    return joined([visible(kept.answered_model or ""), f"{kept.ms} ms", tokens, cost(kept.cost), moment, cut_short])


def answer_json(answer: Answer | None) -> Any:
    """An answer for JSON."""
    return None if answer is None else msgspec.to_builtins(answer)


def kept_json(kept: Kept, asked: bytes | None = None) -> dict[str, Any]:
    """One answer for JSON; with its request's bytes, what it says too."""
    found: dict[str, Any] = {
        "call": kept.call_id,
        "n": kept.n,
        "of": kept.total,
        "kept_at": iso(kept.kept_at) if kept.recorded else None,
        "status": kept.status,
        "model": kept.answered_model,
        "input_tokens": kept.input_tokens,
        "output_tokens": kept.output_tokens,
        "cost_made": dollars(kept.cost),
        "ms": kept.ms,
        "cut_short": kept.cut_short,
        "imported_from": kept.imported_from or None,
        "provider_id": kept.provider_id or None,
    }
    if asked is not None:
        found["answers"] = {one.name: answer_json(one.answer) for one in answers_in(asked, kept.body)}
        found["reply"] = loaded(kept.body)
    return found


def loaded(data: bytes) -> Any:
    """Bytes for JSON: the value they are, or where they are none, their text. `show --raw` has them exactly."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
        json.dumps(value, allow_nan=False)  # 1e400 becomes a number that JSON has no word for
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
    return value
