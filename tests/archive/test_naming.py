"""What an asking may be named with, and where its inputs stand in the body."""

import pytest

from archive.errors import ArchiveError, Invalid, TooLarge
from archive.naming import INPUTS_BYTES_MAX, INPUTS_MAX, NAME_CHARACTERS_MAX, Input, Naming, check, comes_to, found_at
from archive.request import asked
from tests.fakes import answer, request

WORDS = 'He said "no",\nand left § schön.'


@pytest.mark.parametrize(
    ("spelled", "at"),
    [
        (WORDS.encode(), 9),
        (rb"He said \"no\",\nand left \u00a7 sch\u00f6n.", 9),
        ('He said \\"no\\",\\nand left § schön.'.encode(), 9),
        (b"He said no", None),
    ],
)
def test_an_input_is_found_raw_and_escaped_as_json_either_way(spelled: bytes, at: int | None) -> None:
    assert found_at(WORDS, b'{"state":' + spelled + b"}") == at


WRONG = [
    (Naming(pass_="x" * (NAME_CHARACTERS_MAX + 1)), TooLarge, f"at most {NAME_CHARACTERS_MAX}"),
    (Naming(about="x" * (NAME_CHARACTERS_MAX + 1)), TooLarge, f"at most {NAME_CHARACTERS_MAX}"),
    (Naming(inputs=(Input("", ""),) * (INPUTS_MAX + 1)), TooLarge, f"at most {INPUTS_MAX}"),
    (Naming(inputs=(Input("a", "x" * INPUTS_BYTES_MAX),)), TooLarge, f"at most {INPUTS_BYTES_MAX}"),
    (Naming(inputs=(Input("", "ü" * (INPUTS_BYTES_MAX // 2 + 1)),)), TooLarge, f"at most {INPUTS_BYTES_MAX}"),
    (Naming(about="\ud800"), Invalid, "lone surrogate"),
    (Naming(inputs=(Input("\ud800", ""),)), Invalid, "lone surrogate"),
    (Naming(reading="\ud800"), Invalid, "lone surrogate"),
    (Naming(reading="x: noul > 0.5"), Invalid, "else"),
    (Naming(reading="x: other.noul > 0.5; else y"), Invalid, "is not asked"),
]


@pytest.mark.parametrize(("naming", "kind", "said"), WRONG)
def test_what_cannot_be_kept_or_read_is_refused_with_the_limit(
    naming: Naming, kind: type[ArchiveError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        check(naming, request())


def test_what_is_at_the_limits_is_taken() -> None:
    check(
        Naming(
            "x" * NAME_CHARACTERS_MAX,
            "ü" * NAME_CHARACTERS_MAX,
            "x: noul > 0.5; else y",
            (Input("", "x" * (INPUTS_BYTES_MAX)), *[Input("", "")] * (INPUTS_MAX - 1)),
        ),
        request(),
    )


def test_a_reading_comes_to_its_word_on_the_bytes_that_were_asked_and_answered() -> None:
    assert comes_to("yes: q.noul >= 0.83; else no", asked(request()), answer(0.83)) == "yes"
    assert comes_to("yes: q.noul > 0.83; else no", asked(request()), answer(0.83)) == "no"
    assert comes_to("yes: q.noul > 0.83; else no", asked(request()), b"{}") is None
