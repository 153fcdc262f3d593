"""Conditions and readings as text: what they are parsed to, what they print as, and what is said of others."""

import pytest

from archive.errors import Invalid
from archive.grammar import (
    CHARACTERS_MAX,
    DEPTH_MAX,
    All,
    Clause,
    Compare,
    Either,
    Not,
    Reading,
    condition,
    printed,
    reading,
)

A, B, C = Compare("a", "noul", ">=", 0.6), Compare("b", "score", "<", 2.0), Compare("c", "choice", "==", "x")

CONDITIONS = [
    ("noul >= 0.5", Compare(None, "noul", ">=", 0.5)),
    ("a.noul >= 0.6", A),
    ("  a . noul>=0.6  ", A),
    ("b.score < 2", B),
    ("b.score < 2.0", B),
    ('c.choice == "x"', C),
    ('choice != "a \\"quoted\\" option"', Compare(None, "choice", "!=", 'a "quoted" option')),
    ('"my question".confidence > 1e-2', Compare("my question", "confidence", ">", 0.01)),
    ('"and".noul == 1', Compare("and", "noul", "==", 1.0)),
    ("noul.noul <= 1", Compare("noul", "noul", "<=", 1.0)),
    ("is-it_so.noul < 1", Compare("is-it_so", "noul", "<", 1.0)),
    ("größe.score > -1", Compare("größe", "score", ">", -1.0)),
    ("a.noul >= 0.6 and b.score < 2", All((A, B))),
    ('a.noul >= 0.6 and b.score < 2 or c.choice == "x"', Either((All((A, B)), C))),
    ('a.noul >= 0.6 and (b.score < 2 or c.choice == "x")', All((A, Either((B, C))))),
    ("not a.noul >= 0.6 and b.score < 2", All((Not(A), B))),
    ("not (a.noul >= 0.6 and b.score < 2)", Not(All((A, B)))),
    ("not not a.noul >= 0.6", Not(Not(A))),
    ("((a.noul >= 0.6))", A),
    ("a.noul >= 0.6\nand\tb.score < 2", All((A, B))),
]


@pytest.mark.parametrize(("text", "parsed"), CONDITIONS)
def test_a_condition_is_parsed_and_prints_as_what_parses_to_the_same(text: str, parsed: object) -> None:
    found = condition(text)
    assert found == parsed
    assert condition(printed(found)) == found


READINGS = [
    (
        "found: a.noul >= 0.6; nothing: b.score < 2; else undecided",
        Reading((Clause("found", A), Clause("nothing", B)), "undecided"),
    ),
    ("found:a.noul>=0.6;else other;", Reading((Clause("found", A),), "other")),
    ("a: a.noul >= 0.6 or b.score < 2; else a2", Reading((Clause("a", Either((A, B))),), "a2")),
]


@pytest.mark.parametrize(("text", "parsed"), READINGS)
def test_a_reading_is_parsed_and_prints_as_what_parses_to_the_same(text: str, parsed: Reading) -> None:
    assert reading(text) == parsed
    assert reading(printed(parsed)) == parsed


def test_a_reading_may_come_to_one_word_by_its_else_too() -> None:
    assert reading("same: noul > 0.9; other: noul < 0.1; else other").labels == ("same", "other", "other")


WRONG_CONDITIONS = [
    ("", "at its end: expected a question's name, or one of noul, choice, score, confidence"),
    ("a.nuol >= 0.6", "character 3, `nuol`: expected what is compared of it: noul, choice, score"),
    ("a.nuol >= 0.6", "did you mean `noul`?"),
    ("Noul >= 0.6", "did you mean `noul`?"),
    ("a >= 0.6", "character 1, `a`: expected what is compared of it, after a dot: noul, choice"),
    ("noul > 0.5 AND score < 1", "character 12, `AND`: expected and, or, or the end; did you mean `and`?"),
    ("noul = 0.5", "character 6, `=`: use == to compare"),
    ("noul 0.5", "character 6, `0.5`: expected one of >= > <= < == !="),
    ('noul > "0.5"', "expected a number, such as 0.6"),
    ("noul > 0.5.1", "character 8, `0.5.1`: this is no part of a condition"),
    ("noul > .5", "expected a number"),
    ("noul > 50%", "character 10, `%`: this is no part of a condition"),
    ("noul > inf", "expected a number"),
    ("choice == billing", 'character 11, `billing`: expected an option in double quotes, such as "billing"'),
    ('choice > "billing"', "character 8, `>`: a choice is compared with == or !="),
    ('choice == "billing', 'character 11, `"`: this quote is not closed'),
    ('choice == "\\x"', "what stands in quotes is written as in JSON"),
    ("(noul > 0.5", "at its end: expected and, or, or a closing parenthesis"),
    ("noul > 0.5)", "character 11, `)`: expected and, or, or the end"),
    ("not", "at its end"),
    ("noul > 0.5 and", "at its end"),
    ("else > 1", "expected a question's name"),
    ("noul > 0.5 & score < 1", "character 12, `&`: this is no part"),
    ("__import__('os')", "this is no part of a condition"),
]


@pytest.mark.parametrize(("text", "said"), WRONG_CONDITIONS)
def test_what_is_no_condition_is_refused_with_where_and_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        condition(text)
    assert said in caught.value.text


WRONG_READINGS = [
    ("noul >= 0.5", "character 6, `>=`: expected a colon after the word it comes to"),
    ("found: noul >= 0.5", "at its end: a reading ends with what it comes to where no clause holds"),
    ("found: noul >= 0.5;", "at its end: a reading ends with"),
    ("else undecided", "a reading needs a clause before its else"),
    ("", "at its end: a reading ends with"),
    ("found: noul >= 0.5; else", "at its end: expected a word it comes to"),
    ("found: noul >= 0.5; else a; b: noul < 1", "expected nothing after what else it comes to"),
    ("found: noul >= 0.5, else a", "`,`: this is no part of a condition"),
    ("found: noul >= 0.5 else a", "expected and, or, or a semicolon"),
    ("a: noul > 0.5; a: noul < 0.1; else b", "character 16, `a`: `a` stands twice; join its conditions with or"),
    ("größe: noul > 0.5; else b", "expected a word it comes to: a letter, then letters, digits, - or _"),
    ("not: noul > 0.5; else b", "expected a word it comes to"),
    ("found: noul > 0.5; ELSE b", "expected a colon"),
]


@pytest.mark.parametrize(("text", "said"), WRONG_READINGS)
def test_what_is_no_reading_is_refused_with_where_and_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        reading(text)
    assert said in caught.value.text


def test_its_size_and_its_depth_are_bounded() -> None:
    deep = "(" * DEPTH_MAX + "noul > 0.5" + ")" * DEPTH_MAX
    assert condition(deep) == Compare(None, "noul", ">", 0.5)
    for text in (f"({deep})", "not " * 1000 + "noul > 0.5", "(" * 4000):
        with pytest.raises(Invalid, match=f"{DEPTH_MAX} deep"):
            condition(text)
    wide = " and ".join(["noul > 0.5"] * 270)
    assert len(wide) <= CHARACTERS_MAX
    condition(wide)
    with pytest.raises(Invalid, match=f"at most {CHARACTERS_MAX} characters"):
        condition(wide + " " * CHARACTERS_MAX)
