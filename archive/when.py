"""A moment: a whole number of microseconds since 1970 in UTC. Parse, print, compare. Never reads a clock."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

SECOND = 1_000_000
"""Microseconds in a second."""

DAY = 86_400 * SECOND
"""Microseconds in a day."""

_UNITS = ((90, 1, "second"), (5_400, 60, "minute"), (129_600, 3_600, "hour"), (2_592_000, 86_400, "day"))
"""Up to how many seconds ago a moment is told in which unit, and that unit's seconds."""

_BRIEF = {"second": "s", "minute": "min", "hour": "h"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _datetime(moment: int) -> datetime:
    return _EPOCH + timedelta(microseconds=moment)


def iso(moment: int) -> str:
    """The moment as RFC 3339 in UTC with all six digits: `2026-11-30T14:12:31.000042Z`."""
    return _datetime(moment).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def shown(moment: int) -> str:
    """The moment as people read it: `30 November 2026, 14:12:31 UTC`."""
    when = _datetime(moment)
    return f"{when.day} {when:%B %Y, %H:%M:%S} UTC"


def day(moment: int) -> str:
    """The day of a moment, in UTC: `30 November 2026`."""
    when = _datetime(moment)
    return f"{when.day} {when:%B %Y}"


def ago(moment: int, now: int) -> str:
    """How long ago, in one unit: `just now`, `40 seconds ago`, `3 days ago`; the day itself after a month."""
    count, name = _unit(moment, now)
    if not name:
        return f"on {day(moment)}"
    return "just now" if not count else f"{count} {name}{'' if count == 1 else 's'} ago"


def brief(moment: int, now: int) -> str:
    """The same where there is little room: `now`, `40 s`, `2 min`, `5 h`, `3 days`, `30 Nov 2026`."""
    count, name = _unit(moment, now)
    if not name:
        when = _datetime(moment)
        return f"{when.day} {when:%b %Y}"
    if name == "day":
        return "1 day" if count == 1 else f"{count} days"
    return "now" if not count else f"{count} {_BRIEF[name]}"


def _unit(moment: int, now: int) -> tuple[int, str]:
    """How many of which unit ago; 0 for less than 5 seconds, and no unit after a month."""
    seconds = (now - moment) // SECOND
    for most, unit, name in _UNITS:
        if seconds < most:
            return (0 if seconds < 5 else seconds // unit), name
    return 0, ""


def parse(text: str) -> int:
    """A moment from RFC 3339. Raises ValueError for anything else, a missing zone included."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError(f"no time zone in {text!r}")
    return (when - _EPOCH) // timedelta(microseconds=1)


def from_http_date(text: str) -> int | None:
    """A moment from an HTTP date (RFC 9110 §5.6.7), or None when the text is not one."""
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _EPOCH) // timedelta(microseconds=1)
