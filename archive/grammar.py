"""The text of conditions and readings: parsed to plain structs, and printed again. What they mean: archive/run.py.

    team.choice == "billing"
    s.score < 2 and (s.confidence >= 0.7 or not a.noul > 0.4)
    found: a.noul >= 0.6; nothing: a.noul <= 0.4; else undecided

A condition compares what was answered with what is written; a reading says which word an answer comes to, the first
clause that holds. Where a body asks one question only, its name may be left out: `noul >= 0.5`. A name that is no plain
word stands in double quotes, as in JSON. What must never be here: Python's own eval, and what was asked or answered.
"""

import difflib
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, NoReturn

import msgspec

from archive.errors import Invalid

CHARACTERS_MAX = 4096
"""A reading is a line that people read; it also travels in a header."""

DEPTH_MAX = 16
"""How deep `not` and parentheses may stand inside each other."""

FIELDS = ("noul", "choice", "score", "confidence")
_KEYWORDS = ("and", "or", "not", "else")


class Compare(msgspec.Struct, frozen=True, tag=True):
    """One comparison. `question` None: the only one that is asked. `value` is a number, or a choice's option."""

    question: str | None
    field: str
    sign: str
    value: float | str


class Not(msgspec.Struct, frozen=True, tag=True):
    inner: "Condition"


class All(msgspec.Struct, frozen=True, tag=True):
    """Joined by `and`; two or more."""

    parts: "tuple[Condition, ...]"


class Either(msgspec.Struct, frozen=True, tag=True):
    """Joined by `or`; two or more."""

    parts: "tuple[Condition, ...]"


Condition = Compare | Not | All | Either


class Clause(msgspec.Struct, frozen=True):
    """The word an answer comes to where the condition holds, and no clause before it did."""

    label: str
    condition: Condition


class Reading(msgspec.Struct, frozen=True):
    """Clauses in order, and the word where none of them holds."""

    clauses: tuple[Clause, ...]
    otherwise: str

    @property
    def labels(self) -> tuple[str, ...]:
        """All it can come to."""
        return (*(clause.label for clause in self.clauses), self.otherwise)


# -- parsing -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)  # one reading is named with thousands of askings
def reading(text: str) -> Reading:
    """Parse `found: a.noul >= 0.6; nothing: a.noul <= 0.4; else undecided`. Raises Invalid, which says where."""
    return _Parser(text).reading()


def condition(text: str) -> Condition:
    """Parse `team.choice == "billing" and s.score < 2`. Raises Invalid, which says where."""
    parser = _Parser(text)
    found = parser.either(0)
    parser.end("and, or, or the end")
    return found


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<word>[^\W\d][\w-]*)
    |(?P<sign>>=|<=|==|!=|>|<)
    |(?P<mark>[.:;()])
    |(?P<end>$))""",
    re.VERBOSE,
)


class _Parser:
    """A parser by descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        if len(text) > CHARACTERS_MAX:
            raise Invalid(f"A reading or condition has at most {CHARACTERS_MAX} characters; this one has {len(text)}.")
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def _took(self, text: str) -> bool:
        """Is this the next word or mark? Then it is taken."""
        if self._next.kind in {"word", "mark"} and self._next.text == text:
            self._at += 1
            return True
        return False

    def end(self, wanted: str) -> None:
        """Nothing may follow."""
        if self._next.kind != "end":
            _expected(wanted, self._next, ("and", "or"))

    def reading(self) -> Reading:
        clauses: list[Clause] = []
        while not self._took("else"):
            token = self._next
            if token.kind == "end":
                _wrong(token, "a reading ends with what it comes to where no clause holds, such as `; else undecided`")
            label = self._label([clause.label for clause in clauses])
            if not self._took(":"):
                wanted = "a colon after the word it comes to, as in `found: a.noul >= 0.6; else undecided`"
                _expected(wanted, self._next)
            clauses.append(Clause(label, self.either(0)))
            if self._next.kind != "end" and not self._took(";"):
                _expected("and, or, or a semicolon", self._next, ("and", "or"))
        otherwise = self._label([])
        self._took(";")
        self.end("nothing after what else it comes to")
        if not clauses:
            _wrong(self._tokens[0], "a reading needs a clause before its else, such as `found: a.noul >= 0.6`")
        return Reading(tuple(clauses), otherwise)

    def _label(self, before: list[str]) -> str:
        token = self._take()
        if token.kind != "word" or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", token.text) or token.text in _KEYWORDS:
            _expected("a word it comes to: a letter, then letters, digits, - or _", token, ("else",))
        if token.text in before:
            _wrong(token, f"`{token.text}` stands twice; join its conditions with or")
        return token.text

    def either(self, depth: int) -> Condition:
        parts = [self._all(depth)]
        while self._took("or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _all(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._took("and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _one(self, depth: int) -> Condition:
        token = self._next
        if depth > DEPTH_MAX:
            _wrong(token, f"`not` and parentheses may stand {DEPTH_MAX} deep at most")
        if self._took("not"):
            return Not(self._one(depth + 1))
        if self._took("("):
            inner = self.either(depth + 1)
            if not self._took(")"):
                _expected("and, or, or a closing parenthesis", self._next, ("and", "or"))
            return inner
        return self._compare()

    def _compare(self) -> Compare:
        first = self._take()
        if first.kind not in {"word", "string"} or (first.kind == "word" and first.text in _KEYWORDS):
            _expected("a question's name, or one of " + ", ".join(FIELDS), first, ("not",))
        if self._took("."):
            name, field = _string(first), self._take()
        else:
            name, field = None, first
        if field.kind != "word" or field.text not in FIELDS:
            what = "what is compared of it, after a dot: " if name is None else "what is compared of it: "
            _expected(what + ", ".join(FIELDS), field, FIELDS)
        sign = self._take()
        if sign.kind != "sign":
            _expected("one of >= > <= < == !=", sign)
        value = self._take()
        if field.text == "choice":
            if sign.text not in {"==", "!="}:
                _wrong(sign, "a choice is compared with == or !=")
            if value.kind != "string":
                _expected('an option in double quotes, such as "billing"', value)
            return Compare(name, field.text, sign.text, _string(value))
        if value.kind != "number":
            _expected("a number, such as 0.6", value)
        return Compare(name, field.text, sign.text, float(value.text))


def _tokens(text: str) -> Iterable[_Token]:
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            rest = text[at:].lstrip()
            word = re.match(r'"|=|[\w.%-]+|.', rest, re.DOTALL)
            token = _Token("mark", "" if word is None else word[0], len(text) - len(rest))
            hints = {'"': "this quote is not closed, or holds a bare control character", "=": "use == to compare"}
            _wrong(token, hints.get(token.text, "this is no part of a condition"))
        kind = found.lastgroup
        yield _Token(kind, found[kind], found.start(kind))
        if kind == "end":
            return
        at = found.end()


def _string(token: _Token) -> str:
    """A name, or what stands in quotes."""
    if token.kind != "string":
        return token.text
    try:
        return clean(str(json.loads(token.text)))
    except ValueError:
        _wrong(token, "what stands in quotes is written as in JSON")


def clean(label: str) -> str:
    """A label as archive/answer.py shows it: a lone surrogate, which JSON can spell, is a question mark."""
    return label.encode("utf-8", "replace").decode()


def _expected(wanted: str, token: _Token, words: Iterable[str] = ()) -> NoReturn:
    near = "" if token.kind != "word" else did_you_mean(token.text, words)
    _wrong(token, f"expected {wanted}{near}")


def _wrong(token: _Token, what: str) -> NoReturn:
    where = "at its end" if token.kind == "end" else f"at character {token.at + 1}, `{token.text}`"
    raise Invalid(f"The reading cannot be read {where}: {what}{'' if what.endswith('?') else '.'}")


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """`; did you mean ...?` where something is near, else nothing."""
    known = list(words)
    near = [found for found in known if found.lower() == word.lower()] or difflib.get_close_matches(word, known, 1)
    return f"; did you mean `{near[0]}`?" if near else ""


# -- printing ----------------------------------------------------------------------------------------------------------


def printed(what: Reading | Condition) -> str:
    """The text that parses to the same again."""
    if isinstance(what, Reading):
        clauses = "; ".join(f"{clause.label}: {printed(clause.condition)}" for clause in what.clauses)
        return f"{clauses}; else {what.otherwise}"
    match what:
        case Not(inner):
            return f"not {_inner(inner)}" if isinstance(inner, All | Either) else f"not {printed(inner)}"
        case All(parts):
            return " and ".join(_inner(part) if isinstance(part, All | Either) else printed(part) for part in parts)
        case Either(parts):
            return " or ".join(_inner(part) if isinstance(part, Either) else printed(part) for part in parts)
        case Compare(question, field, sign, value):
            shown = json.dumps(value) if isinstance(value, str) else repr(value).removesuffix(".0")
            return f"{'' if question is None else name_of(question) + '.'}{field} {sign} {shown}"


def _inner(condition: Condition) -> str:
    return f"({printed(condition)})"


def name_of(question: str) -> str:
    plain = re.fullmatch(r"[^\W\d][\w-]*", question) and question not in _KEYWORDS
    return question if plain else json.dumps(question)
