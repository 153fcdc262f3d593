"""How long ago, in words."""

import pytest

from archive.when import SECOND, ago, brief

NOW = 1_780_000_000 * SECOND

TABLE = {
    -100: "just now",  # a clock that was set back
    0: "just now",
    4: "just now",
    5: "5 seconds ago",
    89: "89 seconds ago",
    90: "1 minute ago",
    119: "1 minute ago",
    120: "2 minutes ago",
    5_399: "89 minutes ago",
    5_400: "1 hour ago",
    7_200: "2 hours ago",
    129_599: "35 hours ago",
    129_600: "1 day ago",
    172_800: "2 days ago",
    2_591_999: "29 days ago",
    2_592_000: "on 28 April 2026",
    400 * 86_400: "on 23 April 2025",
}


@pytest.mark.parametrize("seconds", TABLE)
def test_a_moment_is_told_in_the_one_unit_that_fits(seconds: int) -> None:
    assert ago(NOW - seconds * SECOND, NOW) == TABLE[seconds]


BRIEF = {
    -100: "now",
    4: "now",
    5: "5 s",
    90: "1 min",
    5_399: "89 min",
    5_400: "1 h",
    129_600: "1 day",
    172_800: "2 days",
    2_592_000: "28 Apr 2026",
}


@pytest.mark.parametrize("seconds", BRIEF)
def test_where_there_is_little_room_the_same_is_told_in_few_letters(seconds: int) -> None:
    assert brief(NOW - seconds * SECOND, NOW) == BRIEF[seconds]


def test_a_part_of_a_second_never_makes_it_older() -> None:
    assert ago(NOW - 6 * SECOND + 1, NOW) == "5 seconds ago"


def test_a_unit_is_never_told_as_none_of_it() -> None:
    told = [ago(NOW - seconds * SECOND, NOW) for seconds in range(0, 40 * 86_400, 601)]
    assert not any(text.startswith("0 ") for text in told)
