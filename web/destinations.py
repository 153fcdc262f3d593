"""The owner's file of destinations, in TOML: who may be asked, with which key, at which price, and how much.

A table is one provider, and its name is the table's. Keys stand in the environment, never in the file.
What must never be here: a default that costs money or opens a door, and a value of the file in an error's text.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec

from archive.attempts import NO_PRICE, Price
from archive.messages import NO_KEY, Key
from archive.reach import base_problem, is_here, literal, looks_like_a_key, may_reach, path_is_plain
from web.settings import SettingError, Settings, origin_of

TRANSPORT = frozenset(
    [
        "accept", "accept-encoding", "cache-control", "connection", "content-encoding", "content-length",
        "content-type", "expect", "forwarded", "host", "keep-alive", "origin", "proxy-connection", "range", "referer",
        "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "via",
    ]
)  # fmt: skip
"""Headers that say how a message travels, not what is asked; they are not passed on."""

NO_KEYS = ("archive-", "cookie", "set-cookie", "typesafe-danger-zone-")
"""Headers that begin so are Askonce's own, or kept as part of what is asked, or hold more than one key."""

PAGES = frozenset(
    [
        "admin",
        "ask",
        "build",
        "call",
        "card",
        "card.png",
        "health",
        "live",
        "robots.txt",
        "sitemap.xml",
        "static",
        "to",
        "wire",
    ]
)
"""First parts of addresses that are Askonce's own; a test compares them with the pages."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[a-z0-9][a-z0-9-]*")
_SYSTEM_ONE = ("/", "/api", "/typesafe")


class Provider(msgspec.Struct, frozen=True):
    """Who is behind a base URL. `serves`: the prefix of its addresses here, beside /to/NAME; empty: none.

    `forward`: the names of headers that are part of the question. Limits that are None are the house's own.
    """

    name: str
    url: str
    serves: str = ""
    key: Key = NO_KEY
    forward: tuple[str, ...] = ()
    price: Price = NO_PRICE
    day_calls_max: int | None = None
    calls_max: int | None = None
    call_seconds_max: float | None = None
    private: bool = False


class Providers(msgspec.Struct, frozen=True):
    """`root` answers /v1/systemone and the pages (None: the built-in model), `front` stands before them, if any.

    `listed`: those of the file.
    """

    root: Provider | None = None
    front: Provider | None = None
    listed: tuple[Provider, ...] = ()

    @property
    def all(self) -> tuple[Provider, ...]:
        """Each of them once; the one that is root may stand in the file too."""
        own = (one for one in (self.root, self.front) if one is not None and one not in self.listed)
        return (*own, *self.listed)


class _Entry(msgspec.Struct, kw_only=True):
    url: str
    serves: str = ""
    key_env: str = ""
    key_header: str = "authorization"
    forward: list[str] = []
    input_price: Decimal | None = None
    output_price: Decimal | None = None
    day_calls_max: int | None = None
    calls_max: int | None = None
    call_seconds_max: float | None = None
    private: bool = False


def load(settings: Settings, environment: Mapping[str, str]) -> Providers:
    """Everybody who may be asked, from the settings and the file they name. Raises SettingError."""
    listed: tuple[Provider, ...] = ()
    if settings.destinations:
        try:
            text = Path(settings.destinations).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"ASKONCE_DESTINATIONS, {settings.destinations!r}, cannot be read: {error}") from None
        listed = parse(text, settings.destinations, environment)
    root = next((provider for provider in listed if provider.serves == "/"), None)
    if settings.model_url:
        if root is not None:
            raise SettingError(
                f'{settings.destinations}, [{root.name}], serves: "/" is what ASKONCE_MODEL_URL serves; leave out one'
            )
        root = Provider("ASKONCE_MODEL_URL", settings.model_url.rstrip("/"), key=Key(settings.model_key))
    front = None
    if settings.llm_url:
        front = Provider("ASKONCE_LLM_URL", settings.llm_url.rstrip("/"), key=Key(settings.llm_key))
    return Providers(root, front, listed)


def parse(text: str, file: str, environment: Mapping[str, str]) -> tuple[Provider, ...]:
    """The providers a file names, in its order. Raises SettingError that names `file`, the table and its key."""
    try:
        tables = cast("dict[str, object]", tomllib.loads(text, parse_float=Decimal))
    except ValueError as error:
        raise SettingError(f"{file} is not TOML: {error}") from None
    providers: list[Provider] = []
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise SettingError(f"{file}: {name} must stand below the name of a destination, such as [openrouter]")
        if not _NAME.fullmatch(name):
            raise SettingError(f"{file}, [{name}]: a name is made of small letters, digits and hyphens")
        provider = _provider(_Said(f"{file}, [{name}]"), name, cast("dict[str, object]", table), environment)
        for other in providers:
            if other.url == provider.url:
                raise SettingError(f"{file}, [{name}], url: is [{other.name}]'s too, and one place has one key")
            if other.serves and other.serves == provider.serves:
                raise SettingError(f"{file}, [{name}], serves: is [{other.name}]'s too")
        providers.append(provider)
    return tuple(providers)


class _Said(msgspec.Struct, frozen=True):
    """Says what is wrong with which key of which table of which file."""

    where: str

    def wrong(self, key: str, text: str) -> SettingError:
        return SettingError(f"{self.where}, {key}: {text}")


def _provider(said: _Said, name: str, table: dict[str, object], environment: Mapping[str, str]) -> Provider:
    for key in table:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1, 0.5)
            raise said.wrong(key, "there is no such key" + (f"; did you mean {near[0]}?" if near else ""))
    if "url" not in table:
        raise said.wrong("url", "is missing")
    entry = _Entry(url="")
    for key, value in table.items():
        kind = next(field.type for field in msgspec.structs.fields(_Entry) if field.name == key)
        try:
            if isinstance(value, str) and kind is not str:
                raise msgspec.ValidationError  # a price in quotes would be read as a number
            setattr(entry, key, msgspec.convert(_number(key, value), kind))
        except msgspec.ValidationError:
            raise said.wrong(key, f"must be {KEYS[key]}") from None
    for key in ("day_calls_max", "calls_max", "call_seconds_max"):
        value = getattr(entry, key)
        least = 0 if key == "day_calls_max" else 1e-3
        if value is not None and not least <= value < 2**53:
            raise said.wrong(key, f"must be {KEYS[key]}")
    return Provider(
        name,
        _url(said, entry),
        _serves(said, entry),
        _key(said, entry, environment),
        _forward(said, entry),
        Price(_price(said, "input_price", entry.input_price), _price(said, "output_price", entry.output_price)),
        entry.day_calls_max,
        entry.calls_max,
        entry.call_seconds_max,
        entry.private,
    )


KEYS = {
    "url": "a text",
    "serves": "a text",
    "key_env": "a text",
    "key_header": "a text",
    "forward": "a list of texts",
    "input_price": "dollars for a million tokens, with at most nine places",
    "output_price": "dollars for a million tokens, with at most nine places",
    "day_calls_max": "a whole number of calls; 0: no limit",
    "calls_max": "a whole number of calls, larger than 0",
    "call_seconds_max": "a number of seconds, larger than 0",
    "private": "true or false",
}
"""What a destination can say, and what each must be."""


def _number(key: str, value: object) -> object:
    """A fraction is read as it is written, for the prices; seconds need not be so exact."""
    return float(value) if key == "call_seconds_max" and isinstance(value, Decimal) else value


def _url(said: _Said, entry: _Entry) -> str:
    problem = base_problem(entry.url)
    if problem:
        raise said.wrong("url", problem)
    parts = urlsplit(entry.url)
    if parts.scheme == "http" and not entry.private and not is_here(parts.hostname or ""):
        raise said.wrong("url", "must begin with https, or with private = true may be http inside your own network")
    address = literal(parts.hostname or "")
    if address is not None and not may_reach(address, named=True, private=entry.private):
        raise said.wrong("url", "is an address at which no model is, unless it has private = true")
    path = parts.path.rstrip("/")
    if entry.serves in _SYSTEM_ONE and path.endswith("/v1"):
        raise said.wrong("url", "must end before /v1: System One clients add /v1/systemone themselves")
    return f"{origin_of(entry.url)}{path}"


def _serves(said: _Said, entry: _Entry) -> str:
    serves = entry.serves
    if serves in {"", "/"}:
        return serves
    if not path_is_plain(serves) or serves.endswith("/") or "%" in serves:
        raise said.wrong("serves", 'must be a path such as "/api", without a slash at its end')
    if serves.split("/")[1] in PAGES:
        raise said.wrong("serves", "is where Askonce's own pages are; take another one")
    if "systemone" in serves.lower().split("/") or serves.lower().endswith("/v1/models"):
        raise said.wrong("serves", 'is a whole address of System One\'s; name the part before /v1, such as "/api"')
    return serves


def _key(said: _Said, entry: _Entry, environment: Mapping[str, str]) -> Key:
    header = entry.key_header.lower()
    if not _HEADER.fullmatch(header) or (header in TRANSPORT) or header.startswith(NO_KEYS):
        raise said.wrong("key_header", "must be a header in which a key is sent, such as x-api-key")
    if not entry.key_env:
        return Key("", header)
    if not _VARIABLE.fullmatch(entry.key_env):
        raise said.wrong("key_env", "must be the name of an environment variable; the key itself stays out of the file")
    secret = environment.get(entry.key_env, "")
    if not secret:
        raise said.wrong("key_env", f"the environment variable {entry.key_env} is not set")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise said.wrong("key_env", f"the environment variable {entry.key_env} holds a character that no key has")
    return Key(secret, header)


def _forward(said: _Said, entry: _Entry) -> tuple[str, ...]:
    names = tuple(sorted({name.lower() for name in entry.forward}))
    for name in names:
        if not _HEADER.fullmatch(name) or name in TRANSPORT or name == entry.key_header.lower():
            raise said.wrong("forward", "holds a header that cannot be passed on")
        if name.startswith("archive-") or looks_like_a_key(name):
            raise said.wrong("forward", "holds a header for keys or for Askonce itself; what is passed on is kept")
    return names


def _price(said: _Said, key: str, dollars: Decimal | None) -> int | None:
    """Billionths of a dollar for a million tokens, exactly."""
    if dollars is None:
        return None
    if not dollars.is_finite() or not 0 <= dollars < 1_000_000 or dollars * 10**9 % 1:
        raise said.wrong(key, f"must be {KEYS[key]}")
    return int(dollars * 10**9)
