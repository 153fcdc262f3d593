"""Which destination an address of ours leads to, and what to say where a base URL is a little wrong.

`/to/NAME/…` and the prefix a provider serves lead below its base URL, and never out of it.
What must never be here: HTTP, a key.
"""

import difflib
import re
from urllib.parse import unquote

import msgspec

from archive.errors import Forbidden, Invalid, NotFound
from archive.reach import path_is_plain, query_problem
from archive.request import Destination
from web.destinations import Provider, Providers

SYSTEM_ONE_PREFIXES = ("", "/api", "/typesafe")
"""System One stands at each of these: by itself, where OpenRouter's SDK looks for it, and where gateways have it."""

_DOUBLED = re.compile(r"/v1/v1(?:/|$)|/(systemone|decisions)/(?:.*/)?\1(?:/|$)")
_ENDPOINTS = ("systemone", "decisions", "models", "completions", "responses", "messages", "embeddings")
_SYSTEM_ONES = ("systemone", "models")


class Way(msgspec.Struct, frozen=True):
    """An address of ours below which everything is a provider's."""

    prefix: str
    provider: Provider


def ways(providers: Providers) -> tuple[Way, ...]:
    """Every way in, those with the longest prefix first."""
    found = [Way(f"/to/{provider.name}", provider) for provider in providers.listed]
    found += [Way(one.serves, one) for one in providers.listed if one.serves not in {"", "/"}]
    return tuple(sorted(found, key=lambda way: -len(way.prefix)))


def way_of(found: tuple[Way, ...], path: str) -> Way | None:
    """The way an address takes; `path` as it came, nothing unescaped."""
    return next((way for way in found if path == way.prefix or path.startswith(way.prefix + "/")), None)


def below(way: Way, method: str, path: str, query: str) -> Destination:
    """Where `path` and `query`, as they came, lead. Lists of models are got, or posted to; all else is a POST.

    Raises Invalid or NotFound. A query is part of the address and of the identity, so it must hold no key.
    """
    rest = path[len(way.prefix) :]
    if not path_is_plain(rest):
        raise Invalid(
            "This address is not plain: it may hold no . or .. as a folder, no slashes in a row, and nothing encoded"
            " that hides a slash or a percent sign."
        )
    wrong = _near_miss(way, path)
    if wrong:
        raise NotFound(wrong)
    problem = query_problem(query)
    if problem:
        raise Invalid(f"The query, all from the ?, {problem}.")
    gets = method != "POST" and rest.rpartition("/")[2] == "models"
    url = way.provider.url + rest
    return Destination(
        wire_format("GET" if gets else "POST", url), "GET" if gets else "POST", url + (f"?{query}" if query else "")
    )


def _near_miss(way: Way, path: str) -> str:
    """What to change about an address that must not be sent on; empty for any other.

    Whoever means System One and misses it a little below somebody else's prefix would show him the state and the key.
    """
    own = way.prefix == f"/to/{way.provider.name}"
    root = way.prefix if own else way.prefix.removesuffix("/v1")
    rest, right = path[len(root) :], f"{root}/v1/systemone"
    doubled = _DOUBLED.search(rest) is not None
    if (doubled or not (own or path == right)) and _like_system_one(rest):
        return _hint(path, root) or f"The address is {right}."
    if doubled:
        return "This address holds a part twice: take it off the end of the base URL."
    if not own and path.rstrip("/") == way.prefix:
        return f"This is a base URL and no address. System One's address is {right}."
    return ""


def _like_system_one(path: str) -> bool:
    """Is a part of this path System One's, or spelled nearly so?"""
    words = _words(path)
    return "systemone" in "".join(words) or any(_spelled(word) == "systemone" for word in words)


def _words(path: str) -> list[str]:
    """The parts of a path, in small letters and without what stands between the letters."""
    return [re.sub(r"[^a-z0-9]", "", unquote(part).lower()) for part in path.split("/") if part]


def _spelled(word: str) -> str:
    """The word, or `systemone` where nothing else can be meant."""
    near = "systemone" in word or word == "system1" or difflib.get_close_matches(word, ["systemone"], 1, 0.85)
    return "systemone" if near else word


def wire_format(method: str, url: str) -> str:
    """What is spoken at an address, by its end (see archive.attempts.READERS)."""
    if method == "GET":
        return "models"
    if url.endswith("/systemone"):
        return "systemone"
    if url.endswith("/decisions"):
        return "decisions"
    return "chat" if url.endswith("/chat/completions") else "json"


class Owners(msgspec.Struct, frozen=True):
    """Whose a destination is: one of a few fixed ones, or below a provider's base URL, the longest one first."""

    fixed: dict[Destination, str]
    bases: tuple[tuple[str, str], ...]

    def name(self, place: Destination) -> str:
        """The name of the provider; empty where nothing is sent to."""
        named = self.fixed.get(place)
        if named is not None:
            return named
        for base, name in self.bases:
            if place.url.startswith(base):
                path, _, query = place.url[len(base) :].partition("?")
                if path_is_plain(path):
                    return name if place.method in {"GET", "POST"} and not query_problem(query) else ""
        return ""

    def check(self, place: Destination, provider: Provider) -> Destination:
        """The same destination, if it is this provider's; its key and its budget are nobody else's.

        Raises Forbidden.
        """
        if self.name(place) != provider.name:
            raise Forbidden("This address belongs to another destination that is set up here. Ask it by its own.")
        return place


def owners(fixed: dict[Destination, str], listed: tuple[Provider, ...]) -> Owners:
    """`fixed`: destinations and the names of their providers."""
    bases = sorted(((one.url, one.name) for one in listed), key=lambda base: -len(base[0]))
    return Owners(fixed, tuple(bases))


def hint(path: str) -> str:
    """What to change about an address at which nothing is, in whole sentences; empty where it is like none of ours."""
    first = (_words(path) or [""])[0]
    if first == "to":
        return "There is no destination of that name here. Destinations are named in the file ASKONCE_DESTINATIONS."
    return _hint(path, f"/{first}" if first in {"api", "typesafe"} else "")


def _hint(path: str, prefix: str) -> str:
    """The same where it is known below which prefix the right address is; `path` may begin with it in other letters."""
    words = [_spelled(word) for word in _words(path.lstrip("/")[len(prefix.lstrip("/")) :])]
    endpoint = next((word for word in reversed(words) if word in _ENDPOINTS), "")
    if endpoint == "decisions":
        serves, like = ("/api", "https://openrouter.ai/api") if prefix else ("/v1", "https://api.openai.com/v1")
        right = f"{prefix}/alpha/decisions" if prefix == "/api" else f"{prefix}/v1/decisions"
        needs = f'It needs a destination in the file ASKONCE_DESTINATIONS, such as url = "{like}", serves = "{serves}".'
    elif endpoint and endpoint not in _SYSTEM_ONES:
        return (
            'Nothing here serves this address. A destination in the file ASKONCE_DESTINATIONS can, with serves = "/v1".'
        )
    elif endpoint or re.fullmatch(r"v\d+", "".join(words[:1])) or (prefix and not words):
        right, needs = f"{prefix}/v1/{endpoint or 'systemone'}", ""
    else:
        return ""
    return " ".join(filter(None, (_change(path, words, endpoint, right), f"The address is {right}.", needs)))


def _change(path: str, words: list[str], endpoint: str, right: str) -> str:
    """What is wrong with the base URL that led to `path`; empty where it was right."""
    if path == right:
        return ""
    if endpoint and words.count(endpoint) > 1:
        return f"The base URL holds the whole address already: take /v1/{endpoint} off its end."
    if words.count("v1") > 1:
        return "/v1 is there twice: take /v1 off the end of the base URL."
    if "//" in path:
        return "Take the slash off the end of the base URL."
    if not endpoint:
        return "This is a base URL and no address."
    if path.endswith("/"):
        return "Take the slash off its end."
    if "alpha" not in words and not re.search(r"\bv\d", path.lower()):
        return "/v1 is missing before the last part."
    return ""
