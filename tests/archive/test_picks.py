"""What each pick leads to, for everything the record may know. Only `Send` ever costs anything."""

from itertools import product

import pytest

from archive.attempts import PAID_REFUSAL_SECONDS, WHY_TEXT, State, Why
from archive.errors import CallFailed, CallUnknown, Erased, Invalid, NotKept, Withdrawn
from archive.picks import (
    EVERY,
    Fresh,
    Join,
    KeptOnly,
    Known,
    Last,
    Latest,
    Pick,
    Pins,
    Send,
    Serve,
    Standing,
    Version,
    decide,
    parse_pick,
    parse_pins,
    pick_next,
    print_pins,
    unknown,
)  # fmt: skip
from archive.when import SECOND
from tests.fakes import START

Led = Serve | Join | Send | type[Exception]

REFUSED = CallFailed(WHY_TEXT[Why.PROVIDER_REFUSED])
PAID = CallFailed(WHY_TEXT[Why.NOT_AN_ANSWER])

ON_WIRE = Last(9, START)
FAILED = Last(9, START, State.FAILED, START, failure=REFUSED)
PAID_JUST_NOW = Last(9, START, State.FAILED, START, paid=True, failure=PAID)
PAID_LONG_AGO = Last(9, START, State.FAILED, START - PAID_REFUSAL_SECONDS * SECOND, paid=True, failure=PAID)
UNKNOWN = Last(9, START, State.UNKNOWN, START)
ANSWERED = Last(9, START, State.ANSWERED, START)

KNOWN: dict[str, Known] = {
    "never asked": Known(),
    "on the wire, never answered": Known(last=ON_WIRE),
    "failed": Known(last=FAILED),
    "refused and paid for just now": Known(last=PAID_JUST_NOW),
    "refused and paid for a minute ago": Known(last=PAID_LONG_AGO),
    "unknown": Known(last=UNKNOWN, unknown_at=START),
    "unknown, then failed": Known(last=FAILED, unknown_at=START),
    "unknown, then refused and paid for": Known(last=PAID_JUST_NOW, unknown_at=START),
    "unknown, then on the wire": Known(last=ON_WIRE, unknown_at=START),
    "one answer": Known(1, 1, last=ANSWERED),
    "three answers": Known(3, 3, last=ANSWERED),
    "three answers, the newest withdrawn": Known(3, 2, last=ANSWERED),
    "three answers and one on the wire": Known(3, 3, last=ON_WIRE),
    "three answers, then failed": Known(3, 3, last=FAILED),
    "three answers, then unknown": Known(3, 3, last=UNKNOWN, unknown_at=START),
    "all withdrawn": Known(2, None, last=ANSWERED),
    "all withdrawn, one on the wire": Known(2, None, last=ON_WIRE),
    "all withdrawn, then unknown": Known(2, None, last=UNKNOWN, unknown_at=START),
    "all withdrawn, then failed": Known(2, None, last=FAILED),
}

#                                       Latest           KeptOnly   Fresh
LEADS: dict[str, tuple[Led, Led, Led]] = {
    "never asked":                          (Send(),         NotKept,   Send()),
    "on the wire, never answered":          (Join(9),        NotKept,   Join(9)),
    "failed":                               (Send(),         NotKept,   Send()),
    "refused and paid for just now":        (CallFailed,     NotKept,   Send()),
    "refused and paid for a minute ago":    (Send(),         NotKept,   Send()),
    "unknown":                              (CallUnknown,    NotKept,   Send()),
    "unknown, then failed":                 (CallUnknown,    NotKept,   Send()),
    "unknown, then refused and paid for":   (CallUnknown,    NotKept,   Send()),
    "unknown, then on the wire":            (Join(9),        NotKept,   Join(9)),
    "one answer":                           (Serve(1),       Serve(1),  Send()),
    "three answers":                        (Serve(3),       Serve(3),  Send()),
    "three answers, the newest withdrawn":  (Serve(2),       Serve(2),  Send()),
    "three answers and one on the wire":    (Serve(3),       Serve(3),  Join(9)),
    "three answers, then failed":           (Serve(3),       Serve(3),  Send()),
    "three answers, then unknown":          (Serve(3),       Serve(3),  Send()),
    "all withdrawn":                        (Withdrawn,      NotKept,   Send()),
    "all withdrawn, one on the wire":       (Join(9),        NotKept,   Join(9)),
    "all withdrawn, then unknown":          (Withdrawn,      NotKept,   Send()),
    "all withdrawn, then failed":           (Withdrawn,      NotKept,   Send()),
}  # fmt: skip


def _led(pick: Pick, known: Known, now: int = START) -> Led:
    try:
        return decide(pick, known, now)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", KNOWN)
def test_afresh_without_a_persons_word_never_sends_what_may_be_paid_for_twice(name: str) -> None:
    """Record §3.3: sending an unknown one afresh takes one confirmation."""
    known = KNOWN[name]
    led = _led(Fresh(sure=True), known)
    assert _led(Fresh(sure=False), known) == (CallUnknown if led == Send() and known.unknown_at is not None else led)


@pytest.mark.parametrize("name", KNOWN)
def test_latest_kept_only_and_fresh_lead_where_the_table_says(name: str) -> None:
    assert tuple(_led(pick, KNOWN[name]) for pick in (Latest(), KeptOnly(), Fresh())) == LEADS[name]


STANDINGS: dict[str, tuple[Standing | None, Led]] = {
    "there": (Standing(2), Serve(2)),
    "not there": (None, NotKept),
    "withdrawn": (Standing(2, withdrawn=True, gone_at=START, why="wrong"), Withdrawn),
    "erased": (Standing(2, erased=True, gone_at=START), Erased),
    "withdrawn and erased": (Standing(2, withdrawn=True, erased=True, gone_at=START), Erased),
}


@pytest.mark.parametrize(("name", "standing"), list(product(KNOWN, STANDINGS)))
def test_a_version_is_served_or_refused_whatever_else_is_known_and_never_sends(name: str, standing: str) -> None:
    known, (named, led) = KNOWN[name], STANDINGS[standing]
    asked = Known(known.total, known.newest, named, known.last, known.unknown_at)
    assert _led(Version(2), asked) == led


def test_the_tables_speak_of_every_known_there_is() -> None:
    assert KNOWN.keys() == LEADS.keys()
    assert {name for name in LEADS if Send() in LEADS[name][1:2]} == set(), "KeptOnly never sends"


def test_a_paid_refusal_is_shown_for_sixty_seconds_and_then_sent_again() -> None:
    known = Known(last=PAID_JUST_NOW)
    assert PAID_REFUSAL_SECONDS == 60
    assert _led(Latest(), known, START + 60 * SECOND - 1) is CallFailed
    assert _led(Latest(), known, START + 60 * SECOND) == Send()


def test_a_paid_refusal_shows_what_the_provider_said() -> None:
    with pytest.raises(CallFailed) as told:
        decide(Latest(), Known(last=PAID_JUST_NOW), START)
    assert told.value is PAID


def test_who_asks_for_a_withdrawn_or_erased_version_is_told_when_and_why() -> None:
    """B88."""
    with pytest.raises(Withdrawn) as withdrawn:
        decide(Version(2), Known(3, 3, STANDINGS["withdrawn"][0]), START)
    assert "withdrawn on 28 May 2026, 20:26:40 UTC: wrong" in withdrawn.value.text
    assert withdrawn.value.at == START
    with pytest.raises(Erased) as erased:
        decide(Version(2), Known(3, 3, STANDINGS["erased"][0]), START)
    assert "28 May 2026" in erased.value.text
    assert erased.value.at == START


@pytest.mark.parametrize(("total", "words"), [(0, "there are none yet"), (3, "there are 3, numbered from 1")])
def test_who_asks_for_a_version_that_is_not_there_is_told_how_many_are(total: int, words: str) -> None:
    with pytest.raises(NotKept, match=words):
        decide(Version(7), Known(total, total or None), START)


def test_who_asks_for_an_unknown_call_is_told_when_it_was_sent() -> None:
    error = unknown(START, waited=False)
    assert (error.at, error.waited) == (START, False)
    assert "28 May 2026, 20:26:40 UTC" in error.text
    assert "may have been paid for" in error.text
    assert unknown(START, waited=True).waited


A, B, C = "0123456789ab", "3f2a9c01be44", "ffffffffffff"

PINS: dict[str, Pins] = {
    "": Pins(),
    f"{A}:1": Pins(((A, 1),)),
    f"{A}:1,{B}:22": Pins(((A, 1), (B, 22))),
    f"{B}:2,{A}:1": Pins(((B, 2), (A, 1))),
    f",{A}:1,,": Pins(((A, 1),)),
    f"{A}:999999999": Pins(((A, 999_999_999),)),
    f"{A}:1,{A}:2": Pins(((A, 1),), (f"{A}:2",)),
    f"{A}:1,{A}:1": Pins(((A, 1),), (f"{A}:1",)),
    f"nonsense,{A}:1": Pins(((A, 1),), ("nonsense",)),
} | {
    wrong: Pins((), (wrong,))
    for wrong in (
        f"{A}:0", f"{A}:01", f"{A}:-1", f"{A}:+1", f"{A}:1.0", f"{A}:", f"{A}", f":{A}:1", f"{A}:1:1", f"{A} :1",
        f" {A}:1", f"{A}:1\n", f"{A.upper()}:1", f"{A[:11]}:1", f"{A}0:1", f"{A}:٣", f"{A}:²", f"{A}:9999999999",
        "g123456789ab:1", f"{A}:latest", f"{A};1", "\0", "💥",
    )
}  # fmt: skip


@pytest.mark.parametrize("text", PINS)
def test_pins_are_read_or_shown_as_malformed_and_never_guessed(text: str) -> None:
    assert parse_pins(text) == PINS[text]


@pytest.mark.parametrize("text", PINS)
def test_printed_pins_are_read_back_as_the_same(text: str) -> None:
    pins = parse_pins(text)
    assert parse_pins(print_pins(pins)) == Pins(pins.held)


def _walk(names: list[str], pins: Pins, pressed: str | None = None) -> list[Pick]:
    """The picks of a page's calls, going down."""
    return [pick_next(name, pins, pressed, tuple(names[:at])) for at, name in enumerate(names)]


V1, LATEST, KEPT, FRESH = Version(1), Latest(), KeptOnly(), Fresh(sure=False)
ABC = [A, B, C]

WALKS: dict[str, tuple[list[str], str | None, list[Pick]]] = {
    "no pins": ([], None, [LATEST, LATEST, LATEST]),
    "all pressed at once": ([], EVERY, [FRESH, FRESH, FRESH]),
    "the first pinned": ([A], None, [V1, KEPT, KEPT]),
    "the second pinned": ([B], None, [LATEST, V1, KEPT]),
    "the last pinned": ([C], None, [LATEST, LATEST, V1]),
    "first and last pinned": ([A, C], None, [V1, KEPT, V1]),
    "all pinned": ([A, B, C], None, [V1, V1, V1]),
    "afresh at the first": ([], A, [FRESH, LATEST, LATEST]),
    "afresh at the second": ([], B, [LATEST, FRESH, LATEST]),
    "afresh at the last": ([], C, [LATEST, LATEST, FRESH]),
    "afresh at a pinned one": ([A], A, [FRESH, LATEST, LATEST]),
    "afresh below a pinned one": ([A], B, [V1, FRESH, LATEST]),
    "afresh above a pinned one": ([B], A, [FRESH, V1, KEPT]),
    "afresh far below a pinned one": ([A], C, [V1, KEPT, FRESH]),
    "afresh at one that is not there": ([], "000000000000", [LATEST, LATEST, LATEST]),
    "a pin that is not there": (["000000000000"], None, [LATEST, LATEST, LATEST]),
}


@pytest.mark.parametrize("name", WALKS)
def test_going_down_a_page_each_call_gets_its_pick(name: str) -> None:
    pinned, pressed, picks = WALKS[name]
    assert _walk(ABC, Pins(tuple((one, 1) for one in pinned)), pressed) == picks


@pytest.mark.parametrize("sure", [True, False])
def test_a_press_says_whether_it_may_be_paid_for_twice(sure: bool) -> None:
    assert pick_next(B, Pins(((B, 1),)), B, (A,), sure=sure) == Fresh(sure)


def test_a_page_held_still_sends_nothing_below_its_pin() -> None:
    for pinned in ABC:
        picks = _walk(ABC, Pins(((pinned, 1),)))
        below = picks[ABC.index(pinned) :]
        assert not [pick for pick in below if isinstance(pick, Latest | Fresh)]


def test_the_walk_goes_by_the_nearest_call_above() -> None:
    assert pick_next(C, Pins(((A, 1),)), B, (A, B)) == LATEST
    assert pick_next(C, Pins(((B, 1),)), A, (A, B)) == KEPT


READ: dict[tuple[str | None, bool], Pick] = {
    (None, False): Latest(),
    (None, True): KeptOnly(),
    ("1", False): Version(1),
    ("2", True): Version(2),
    (" 12 ", False): Version(12),
    ("999999999", False): Version(999_999_999),
    ("fresh", False): Fresh(),
    (" Fresh", False): Fresh(),
}

NO_PICKS = ("", "0", "01", "-1", "+1", "1.0", "1e3", "٣", "²", "1,2", "1 2", "latest", "9999999999", "new", "\0")


@pytest.mark.parametrize("said", READ)
def test_an_http_callers_pick_is_read(said: tuple[str | None, bool]) -> None:
    assert parse_pick(*said) == READ[said]


@pytest.mark.parametrize(
    ("said", "only_if_cached"), [("fresh", True), *((one, cached) for one in NO_PICKS for cached in (False, True))]
)
def test_an_http_callers_pick_that_is_none_is_refused(said: str, only_if_cached: bool) -> None:
    with pytest.raises(Invalid, match="Archive-Answer"):
        parse_pick(said, only_if_cached)
