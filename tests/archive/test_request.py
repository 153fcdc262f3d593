"""A request is its whole bytes: what is cut in parts joins again, and what differs in one byte is another request."""

import random
from dataclasses import dataclass
from itertools import combinations
from secrets import randbits

import msgspec
import pytest

from archive.request import (
    Destination,
    Parts,
    Request,
    asked_model,
    call_id,
    call_id_of,
    digest,
    fingerprint,
    join,
    named_between,
    split,
)
from tests.examples import EXAMPLES
from tests.fakes import ASK, request

INTEGER = b"7" * 5_000
"""More digits than Python turns into a number."""

CUT: dict[str, tuple[bytes, bytes, bytes]] = {
    "usual": (b'{"state":"s","model":"m","questions":{}}', b'"s"', b'"m"'),
    "model before state": (b'{"model":"m","questions":{},"state":"s"}', b'"s"', b'"m"'),
    "nothing but the two": (b'{"state":1,"model":2}', b"1", b"2"),
    "spaces everywhere": (b' \t\r\n{ "state" : "s" ,\n"model"\t: "m" , "x" : [ ] } \n', b'"s"', b'"m"'),
    "empty values": (b'{"state":"","model":""}', b'""', b'""'),
    "state of null": (b'{"state":null,"model":null}', b"null", b"null"),
    "nested state and model": (b'{"state":{"state":1,"model":2},"model":"m"}', b'{"state":1,"model":2}', b'"m"'),
    "state below the top": (b'{"q":{"state":9,"model":8},"state":1,"model":2}', b"1", b"2"),
    "escaped key names": (b'{"st\\u0061te":"s","mod\\u0065l":"m"}', b'"s"', b'"m"'),
    "brackets in strings": (b'{"state":"}]{[\\"","model":"m"}', b'"}]{[\\""', b'"m"'),
    "backslashes at the end": (b'{"state":"\\\\","model":"\\\\\\\\"}', b'"\\\\"', b'"\\\\\\\\"'),
    "NUL escaped": (b'{"state":"a\\u0000b","model":"m"}', b'"a\\u0000b"', b'"m"'),
    "NUL raw": (b'{"state":"a\0b","model":"m"}', b'"a\0b"', b'"m"'),
    "newline raw": (b'{"state":"a\nb","model":"m"}', b'"a\nb"', b'"m"'),
    "lone surrogate": (b'{"state":"\\ud800","model":"\\udfff"}', b'"\\ud800"', b'"\\udfff"'),
    "surrogate as bytes": (b'{"state":"\xed\xa0\x80","model":"m"}', b'"\xed\xa0\x80"', b'"m"'),
    "invalid UTF-8": (b'{"state":"\xff\xc3","model":"\xfe"}', b'"\xff\xc3"', b'"\xfe"'),
    "bytes of a no-break space": (b'{"state":"\xc2\xa0\xe2\x80\xa8","model":"m"}', b'"\xc2\xa0\xe2\x80\xa8"', b'"m"'),
    "1e400": (b'{"state":1e400,"model":-1E400}', b"1e400", b"-1E400"),
    "NaN": (b'{"state":NaN,"model":-Infinity}', b"NaN", b"-Infinity"),
    "numbers as spelled": (b'{"state":-0.0,"model":1.0}', b"-0.0", b"1.0"),
    "large integer": (b'{"state":90071992547409931,"model":"m"}', b"90071992547409931", b'"m"'),
    "more digits than Python reads": (b'{"state":%s,"n":%s,"model":"m"}' % (INTEGER, INTEGER), INTEGER, b'"m"'),
    "duplicate of another key": (b'{"x":1,"state":"s","x":2,"model":"m"}', b'"s"', b'"m"'),
    "the two are equal": (b'{"state":"x","model":"x"}', b'"x"', b'"x"'),
    "long": (b'{"state":"%s","model":"m"}' % (b"x" * 200_000), b'"%s"' % (b"x" * 200_000), b'"m"'),
    "unknown keys": (b'{"temperature":0,"state":[],"model":{},"seed":7}', b"[]", b"{}"),
    "an empty key": (b'{"":0,"state":1,"model":2}', b"1", b"2"),
}

WHOLE: dict[str, bytes] = {
    "nothing": b"",
    "only spaces": b" \n",
    "not JSON": b"state=1&model=2",
    "a list": b'[{"state":1,"model":2}]',
    "a string": b'"state"',
    "an empty object": b"{}",
    "no state": b'{"model":"m"}',
    "no model": b'{"state":"s"}',
    "two states": b'{"state":1,"state":1,"model":2}',
    "two states, one escaped": b'{"state":1,"st\\u0061te":1,"model":2}',
    "two models": b'{"model":1,"state":1,"model":2}',
    "another case": b'{"State":1,"MODEL":2}',
    "byte-order mark": b'\xef\xbb\xbf{"state":1,"model":2}',
    "UTF-16": '{"state":1,"model":2}'.encode("utf-16-le"),
    "trailing garbage": b'{"state":1,"model":2}x',
    "two objects": b'{"state":1,"model":2}{"state":1,"model":2}',
    "trailing NUL": b'{"state":1,"model":2}\0',
    "trailing no-break space": b'{"state":1,"model":2}\xa0',
    "trailing comma": b'{"state":1,"model":2,}',
    "no closing bracket": b'{"state":1,"model":2',
    "no colon": b'{"state" 1,"model":2}',
    "no comma": b'{"state":1 "model":2}',
    "comment": b'{"state":1,/**/"model":2}',
    "key that is a number": b'{1:1,"state":1,"model":2}',
    "key in single quotes": b"{'state':1,'model':2}",
    "an open string": b'{"state":"s',
    "a bad escape": b'{"state":"\\x","model":"m"}',
    "a cut escape": b'{"state":"\\u00","model":"m"}',
    "100,000 brackets": b'{"state":' + b"[" * 100_000 + b',"model":2}',
    "100,000 brackets, closed": b'{"state":' + b"[" * 100_000 + b"]" * 100_000 + b',"model":2}',
    "100,000 brackets at the top": b"[" * 100_000,
    "a leading zero": b'{"state":01,"model":2}',
}


@pytest.mark.parametrize("name", CUT)
def test_state_and_model_are_cut_out_and_join_again_byte_for_byte(name: str) -> None:
    body, state, model = CUT[name]
    parts = split(body)
    assert (parts.state, parts.model, parts.whole) == (state, model, False)
    assert join(parts) == body
    assert len(parts.instructions) + len(state) + len(model) == len(body)


@pytest.mark.parametrize("name", WHOLE)
def test_what_cannot_be_cut_stays_whole_and_nothing_is_lost(name: str) -> None:
    body = WHOLE[name]
    parts = split(body)
    assert parts == Parts(body)
    assert parts.whole
    assert join(parts) == body


@pytest.mark.parametrize("name", [name for name, found in EXAMPLES.items() if found.request_file])
def test_every_published_example_joins_again(name: str) -> None:
    body = EXAMPLES[name].asked
    assert join(split(body)) == body


def test_one_instruction_text_serves_every_state_and_every_model() -> None:
    bodies = [b'{"state":"%d","model":"m%d","questions":{}}' % (n, n % 3) for n in range(50)]
    assert {split(body).instructions for body in bodies} == {b'{"state":,"model":,"questions":{}}'}


def test_random_bodies_always_join_back() -> None:
    seed = randbits(32)
    print("seed", seed)
    dice = random.Random(seed)
    pieces = [
        b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b'"', b"\\", b'"state"', b'"model"', b'"st\\u0061te"', b"1",
        b"-", b"1e400", b"null", b"true", b'"x"', b"\\u0000", b"\\ud800", b"\xff", b"\xef\xbb\xbf", b"\0",
        b'"state":', b'"model":',
    ]  # fmt: skip
    for _ in range(3_000):
        middle = b"".join(dice.choices(pieces, k=dice.randrange(12)))
        for body in (middle, b'{"state":1,"model":"m"' + middle + b"}", b'{"model":"m",' + middle + b',"state":[1]}'):
            assert join(split(body)) == body, (seed, body)


def test_random_objects_are_cut_wherever_the_two_stand() -> None:
    seed = randbits(32)
    print("seed", seed)
    dice = random.Random(seed)
    for _ in range(500):
        entries = [(b"state", _value(dice, 0)), (b"model", _value(dice, 0))]
        entries += [(b"k%d" % n, _value(dice, 0)) for n in range(dice.randrange(4))]
        dice.shuffle(entries)
        gap = dice.choice([b"", b" ", b"\n\t"])
        body = b"{" + b",".join(gap + b'"' + key + b'"' + gap + b":" + gap + value for key, value in entries) + b"}"
        parts, named = split(body), dict(entries)
        assert (parts.state, parts.model) == (named[b"state"], named[b"model"]), (seed, body)
        assert join(parts) == body, (seed, body)


def _value(dice: random.Random, depth: int) -> bytes:
    kind = dice.randrange(6 if depth < 3 else 4)
    if kind == 4:
        return b"[" + b", ".join(_value(dice, depth + 1) for _ in range(dice.randrange(3))) + b"]"
    if kind == 5:
        return b'{"state":' + _value(dice, depth + 1) + b',"model" :' + _value(dice, depth + 1) + b"}"
    return [b'"\xc3\xa9\\"}"', b"-1.50E3", b"null", b'"\\ud83d"'][kind]


@dataclass
class Other:
    """A request that differs from `request()` in one thing."""

    what: str
    request: Request


def _others() -> list[Other]:
    base = request()
    place = base.destination
    replace = msgspec.structs.replace
    found = [
        Other("nothing", base),
        Other("destination's name", replace(base, destination=replace(place, name="systemtwo"))),
        Other("method", replace(base, destination=replace(place, method="PUT"))),
        Other("host", replace(base, destination=replace(place, url=place.url.replace("api", "apj")))),
        Other("scheme", replace(base, destination=replace(place, url=place.url.replace("https", "http")))),
        Other("path", replace(base, destination=replace(place, url=place.url + "/"))),
        Other("query", replace(base, destination=replace(place, url=place.url + "?api-version=A"))),
        Other("another query", replace(base, destination=replace(place, url=place.url + "?api-version=B"))),
        Other("content type", replace(base, content_type="application/json; charset=utf-8")),
        Other("content type's case", replace(base, content_type="Application/JSON")),
        Other("no content type", replace(base, content_type="")),
        Other("partition", replace(base, partition="alice")),
        Other("another partition", replace(base, partition="bob")),
        Other("header", replace(base, headers=(("typesafe-danger-zone-images", "true"),))),
        Other("header's value", replace(base, headers=(("typesafe-danger-zone-images", "TRUE"),))),
        Other("header's name", replace(base, headers=(("typesafe-danger-zone-image", "true"),))),
        Other("a header twice", replace(base, headers=(("typesafe-danger-zone-images", "true"),) * 2)),
        Other("surrogates for UTF-8 bytes", replace(base, partition="\udcc3\udca9")),
        Other("the character of those bytes", replace(base, partition="é")),
        Other("a lone surrogate", replace(base, partition="\ud800")),
    ]
    changed = bytearray(base.body)
    for at in range(len(base.body)):
        changed[at] ^= 1
        found.append(Other(f"byte {at}", replace(base, body=bytes(changed))))
        changed[at] ^= 1
    found += [Other(f"byte {end} more", replace(base, body=base.body + end)) for end in (b" ", b"\n", b"\0")]
    return found


def test_no_two_different_requests_share_an_identity() -> None:
    for one, two in combinations(_others(), 2):
        told = f"{one.what} against {two.what}"
        assert one.request != two.request, told
        assert digest(one.request) != digest(two.request), told
        assert call_id(one.request) != call_id(two.request), told


def test_settings_that_no_list_of_fields_knows_are_part_of_the_identity() -> None:
    """B01, B02, B03: num_ctx, seed, max_tokens, a field invented today."""
    asked = b'{"state":"s","model":"m"%s}'
    extras = [b"", b',"num_ctx":2048', b',"num_ctx":8192', b',"seed":1', b',"seed":2', b',"max_tokens":16', b',"zq":1']
    assert len({call_id(Request(ASK, asked % extra)) for extra in extras}) == len(extras)


def test_the_same_fields_in_another_order_are_another_request() -> None:
    """B04."""
    one, two = Request(ASK, b'{"state":1,"model":2}'), Request(ASK, b'{"model":2,"state":1}')
    assert call_id(one) != call_id(two)


def test_no_piece_of_an_identity_runs_into_the_next() -> None:
    pieces = ["", "1", "12", "1:1", "0:", "2:12", "POST"]
    seen: dict[bytes, Request] = {}
    for name in pieces:
        for url in pieces:
            for content_type in pieces:
                for partition in pieces:
                    for body in (b"", b"1", b"0:"):
                        one = Request(Destination(name, "POST", url), body, content_type, (), partition)
                        assert seen.setdefault(digest(one), one) == one
    for headers in [(("a", "b"), ("c", "d")), (("ab", ""), ("c", "d")), (("a", "bc"), ("", "d")), (("a", "b"),)]:
        one = Request(ASK, b"", "", headers)
        assert seen.setdefault(digest(one), one) == one


def test_headers_do_not_run_into_the_body() -> None:
    plain = Request(ASK, b"3:abc", "t")
    headed = Request(ASK, b"", "t", (("3:abc", ""),))
    assert digest(plain) != digest(headed)


def test_a_call_id_is_the_beginning_of_the_digest_and_stays_what_it_is() -> None:
    """B05, B06: it is the same in every process and on every machine."""
    assert call_id(request()) == digest(request()).hex()[:12]
    assert call_id(Request(Destination("systemone", "POST", "https://h/p"), b"{}")) == "9fbd9b759abc"


def test_a_fingerprint_is_the_first_64_bits_signed() -> None:
    assert fingerprint(b"\0" * 32) == 0
    assert fingerprint(b"\xff" * 32) == -1
    assert fingerprint(b"\x80" + b"\0" * 31) == -(2**63)
    assert fingerprint(b"\x7f" + b"\xff" * 31) == 2**63 - 1


@pytest.mark.parametrize("name", ["000000000000", "7fffffffffff", "800000000000", "ffffffffffff", "9fbd9b759abc"])
def test_a_call_id_is_the_first_48_bits_of_a_fingerprint(name: str) -> None:
    least, greatest = named_between(name)
    assert greatest - least == 2**16 - 1
    assert -(2**63) <= least <= greatest < 2**63
    assert {call_id_of(hash) for hash in (least, least + 77, greatest)} == {name}
    others = {call_id_of(hash) for hash in (least - 1, greatest + 1) if -(2**63) <= hash < 2**63}
    assert name not in others
    one = request()
    assert call_id_of(fingerprint(digest(one))) == call_id(one)


ASKED_MODELS: list[tuple[bytes, str | None]] = [
    (b'{"state":1,"model":"jev-latest"}', "jev-latest"),
    (b'{"state":1,"model":"\\u006aev"}', "jev"),
    (b'{"state":1,"model":7}', None),
    (b'{"state":1,"model":null}', None),
    (b'{"state":1}', None),
    (b'{"state":1,"model":"a","model":"b"}', None),
    (b'{"state":1,"model":"\\ud800"}', "\ud800"),
    (b'{"state":1,"model":"\xff"}', None),
    (b'{"state":1,"model":%s}' % INTEGER, None),
    (b"not JSON", None),
]


@pytest.mark.parametrize(("body", "name"), ASKED_MODELS)
def test_the_asked_model_is_read_where_there_is_one_and_never_guessed(body: bytes, name: str | None) -> None:
    assert asked_model(Request(ASK, body)) == name


def test_a_deeply_nested_model_is_no_name() -> None:
    for depth in range(900, 1_000):
        assert asked_model(Request(ASK, b'{"state":1,"model":' + b"[" * depth + b"]" * depth + b"}")) is None


def test_only_a_local_url_is_local() -> None:
    assert Destination("systemone", "POST", "local:mini@12345678").is_local
    assert not ASK.is_local
