"""Moments: parsed, printed and compared without a clock."""

import pytest

from archive.when import DAY, SECOND, from_http_date, iso, parse, shown

MOMENTS = {
    0: ("1970-01-01T00:00:00.000000Z", "1 January 1970, 00:00:00 UTC"),
    -1: ("1969-12-31T23:59:59.999999Z", "31 December 1969, 23:59:59 UTC"),
    1_780_000_000_000_042: ("2026-05-28T20:26:40.000042Z", "28 May 2026, 20:26:40 UTC"),
    951_782_400_000_000: ("2000-02-29T00:00:00.000000Z", "29 February 2000, 00:00:00 UTC"),
    253_402_300_799_999_999: ("9999-12-31T23:59:59.999999Z", "31 December 9999, 23:59:59 UTC"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_moment_is_printed_for_machines_and_for_people_and_read_back_exactly(moment: int) -> None:
    printed, people = MOMENTS[moment]
    assert (iso(moment), shown(moment)) == (printed, people)
    assert parse(printed) == moment


PARSED = {
    "2026-05-28T20:26:40Z": 1_780_000_000_000_000,
    "2026-05-28T22:26:40+02:00": 1_780_000_000_000_000,
    "2026-05-28T10:56:40.5-09:30": 1_780_000_000_500_000,
    "2026-05-28 20:26:40+00:00": 1_780_000_000_000_000,
}


@pytest.mark.parametrize("text", PARSED)
def test_every_zone_is_the_same_moment(text: str) -> None:
    assert parse(text) == PARSED[text]


@pytest.mark.parametrize("text", ["", "now", "2026-05-28T20:26:40", "2026-05-28", "2026-13-01T00:00:00Z", "1780000000"])
def test_a_moment_without_a_zone_or_a_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse(text)


HTTP_DATES = {
    "Thu, 28 May 2026 20:26:40 GMT": 1_780_000_000_000_000,
    "Thursday, 28-May-26 20:26:40 GMT": 1_780_000_000_000_000,
    "Thu May 28 20:26:40 2026": 1_780_000_000_000_000,
    "Thu, 28 May 2026 20:26:40 -0000": 1_780_000_000_000_000,
    "Thu, 28 May 2026 22:26:40 +0200": 1_780_000_000_000_000,
    "": None,
    "120": None,
    "NaN": None,
    "tomorrow": None,
    "Thu, 99 May 2026 20:26:40 GMT": None,
    "Thu, 28 May 99999 20:26:40 GMT": None,
    "Thu, 28 May 2026 20:26:40 +99999999999": None,
    "\0": None,
    "(" * 10_000: None,
    "," * 10_000: None,
}


@pytest.mark.parametrize("text", HTTP_DATES)
def test_an_http_date_in_any_of_its_three_forms_is_read_and_anything_else_is_none(text: str) -> None:
    """B35."""
    assert from_http_date(text) == HTTP_DATES[text]


def test_a_second_and_a_day_are_counted_in_microseconds() -> None:
    assert (SECOND, DAY) == (10**6, 86_400 * 10**6)
