"""The lists' addresses and the sentences about all there was: every form of them, and nothing that is not true."""

import pytest

from archive.errors import Invalid
from archive.messages import After, Feed, Listed, Order, SoFar
from tests.html import fragment
from web.feed import further, section
from web.forge import Traffic
from web.render import amount, part


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("after", [After(0, 0), After(1_780_000_000_000_000, 42), After(10**18 - 1, 10**18 - 1)])
def test_a_cursor_leads_back_to_where_it_came_from(order: Order, after: After) -> None:
    address = section(Feed(order), Listed((), after)).next
    assert address is not None
    assert address == f"/?{order}={after.place}-{after.number}"
    assert further({str(order): [address.partition("=")[2]]}) == Feed(order, after)


STRANGE = [
    "", "1", "-", "1-", "-1", "1-2-3", "1--2", " 1-2", "1-2\n", "\u0661-\u0662", "1e3-2", "0x1-2", "1.5-2",
    "9" * 19 + "-1", "1-" + "9" * 400, "1 OR 1=1", "1-2; DROP TABLE question", "]", '"', "`", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("text", STRANGE)
def test_a_cursor_that_cannot_be_read_is_refused(order: Order, text: str) -> None:
    with pytest.raises(Invalid):
        further({str(order): [text]})


@pytest.mark.parametrize("name", ["]", '"', "`", "", "text] UNION SELECT bytes FROM text", "lately ", "x" * 65, "sort"])
def test_a_name_that_could_not_be_anybodys_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        further({name: ["1-1"]})


def test_two_cursors_are_one_too_many() -> None:
    for fields in ({"lately": ["1-1"], "most": ["1-1"]}, {"most": ["1-1", "2-2"]}):
        with pytest.raises(Invalid):
            further(fields)


def test_what_others_add_to_links_is_left_alone() -> None:
    assert further({"utm_source": ["x"], "fbclid": [""], "pins": ["x"], "q": [""]}) is None
    assert further({"utm_source": ["x"], "most": ["5-1"]}) == Feed(Order.MOST, After(5, 1))


AMOUNTS = {
    0: "$0.00000",
    1: "$0.000000001",
    9_999: "$0.000009999",
    10_000: "$0.00001",
    60_000: "$0.00006",
    179_999_999: "$0.17999",
    999_999_999: "$0.99999",
    1_000_000_000: "$1.00",
    1_749_999_999: "$1.74",
    12_345_678_900_000_000: "$12,345,678.90",
}


@pytest.mark.parametrize("billionths", AMOUNTS)
def test_a_sum_is_never_more_than_it_is_and_never_nothing_when_it_is_something(billionths: int) -> None:
    assert amount(billionths) == AMOUNTS[billionths]


SENTENCES = {
    SoFar(1, 1, 2, 0, alone=1): "1 question has been asked 1 time. The decision model answered it alone, without a"
    " language model. 2 calls were sent, free of charge.",
    SoFar(
        2, 3, 1, 60_000, alone=2
    ): "2 questions have been asked 3 times. The decision model answered all of them alone,"
    " without a language model. 1 call was sent, for $0.00006.",
    SoFar(12_408, 31_977, 19_120, 1_741_000_000, 0, 108_788, 9_900_000_000, alone=12_407): (
        "12,408 questions have been asked 31,977 times. The decision model answered 99% of them alone, without a"
        " language model. 19,120 calls were sent, for $1.74."
        " Another 108,788 were answered without being sent, which saved $9.90."
    ),
    SoFar(0, 0, 5, 60_000, 1): "5 calls were sent, for at least $0.00006; the price of 1 is unknown.",
    SoFar(0, 0, 5, 60_000, 3, 4, 10_000, 2): (
        "5 calls were sent, for at least $0.00006; the prices of 3 are unknown."
        " Another 4 were answered without being sent, which saved at least $0.00001; the prices of 2 are unknown."
    ),
    SoFar(0, 0, 5, 0, 5, 1, 0, 1): (
        "5 calls were sent; their prices are unknown. Another 1 was answered without being sent; its price is unknown."
    ),
    SoFar(0, 0, 5, 0, 2): "5 calls were sent; the prices of 2 are unknown.",
    SoFar(0, 0, 0, 0, 0, 3, 0, 0): "3 requests were answered without being sent.",
    SoFar(3, 4): "3 questions have been asked 4 times. None was answered by the decision model alone.",
    SoFar(1, 1): "1 question has been asked 1 time. It was not answered by the decision model alone.",
    SoFar(
        200, 200, alone=1
    ): "200 questions have been asked 200 times. The decision model answered under 1% of them alone,"
    " without a language model.",
}


@pytest.mark.parametrize("so_far", SENTENCES, ids=str)
def test_all_there_was_is_told_in_sentences_and_unknown_is_never_0(so_far: SoFar) -> None:
    said = fragment(part("sofar.html", so_far=so_far, traffic=None)).one("p", class_="t").text.strip()
    assert said == SENTENCES[so_far]
    assert "$0.00000" not in said


TOLD = {
    None: "Clones and pulls of the code are not counted here.",
    Traffic(): "How often the code was cloned or pulled is not known at this moment.",
    Traffic(173): "The code was cloned 173 times in the last 14 days.",
    Traffic(1, 1204): "The code was cloned 1 time in the last 14 days and pulled 1,204 times in all.",
    Traffic(None, 0): "The code was pulled 0 times in all.",
}


@pytest.mark.parametrize("traffic", TOLD, ids=str)
def test_clones_and_pulls_are_told_as_far_as_they_are_known(traffic: Traffic | None) -> None:
    said = fragment(part("sofar.html", so_far=SoFar(), traffic=traffic)).one("p", class_="code").text.strip()
    assert said == TOLD[traffic]
