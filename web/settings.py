"""Every setting, in one struct read from the environment. The README's table is compared with it by a test.

A setting is a field: `port` is ASKONCE_PORT. What must never be here: a default that costs money or opens a door.
"""

import difflib
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import cast
from urllib.parse import SplitResult, urlsplit

import msgspec
import platformdirs

from archive.reach import base_problem, is_here, literal, may_reach

PREFIX = "ASKONCE_"


class SettingError(Exception):
    """A setting has a value that cannot be; the text names it and says what would be right."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner may set. `_max` values are limits; why each is as it is stands in the README's table."""

    store: str = ""
    spool: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    model_url: str = ""
    model_key: str = ""
    destinations: str = ""
    model: str = "jev-latest"
    site_name: str = "Ask once"
    site_tagline: str = ""
    site_footer: str = ""
    llm_url: str = ""
    llm_key: str = ""
    llm_model: str = ""
    forge_url: str = ""
    forge_key: str = ""
    public_url: str = ""
    trusted_proxies: str = ""
    no_cache_is_fresh: bool = False
    day_calls_max: int = 0
    address_calls_max: int = 60
    call_seconds_max: float = 30.0
    connect_seconds_max: float = 10.0
    write_seconds_max: float = 30.0
    read_seconds_max: float = 600.0
    stop_seconds_max: float = 5.0
    body_bytes_max: int = 32 * 1024 * 1024
    reply_bytes_max: int = 32 * 1024 * 1024
    spool_bytes_max: int = 16 * 1024 * 1024
    recent_bytes_max: int = 64 * 1024 * 1024
    mailbox_max: int = 10_000
    calls_max: int = 1_000
    outbox_max: int = 64
    askings_max: int = 1_000
    pages_max: int = 10_000
    pages_per_address_max: int = 200
    question_characters_max: int = 500

    @property
    def store_path(self) -> Path:
        """The store's file; the platform's data folder when none is named."""
        return Path(self.store) if self.store else platformdirs.user_data_path("askonce") / "askonce.db"

    @property
    def is_public(self) -> bool:
        """Can others than this machine come? Then those without a token are told apart, and each has a limit."""
        return bool(self.public_url) or not is_here(self.host)

    @property
    def spool_path(self) -> Path:
        """The spool's file; beside the store when none is named."""
        # A store has one spool, by whichever name it comes.
        store = self.store_path.resolve()
        return Path(self.spool) if self.spool else store.with_name(store.name + ".spool")


def read(environment: Mapping[str, str]) -> Settings:
    """Settings from the environment. Raises SettingError for a value or a name that cannot be.

    PORT, which hosts that read a Procfile set, counts where ASKONCE_PORT is not set.
    """
    known = {field.encode_name for field in msgspec.structs.fields(Settings)}
    given = {name[len(PREFIX) :].lower(): value for name, value in environment.items() if name.startswith(PREFIX)}
    for name in given.keys() - known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
        raise SettingError(f"{PREFIX}{name.upper()} is not a setting{hint}")
    if "PORT" in environment:
        given.setdefault("port", environment["PORT"])
    values = {name: _value(name, text) for name, text in given.items() if text != ""}
    settings = msgspec.convert(values, Settings)
    _check(settings)
    return settings


def _value(name: str, text: str) -> object:
    kind = next(field.type for field in msgspec.structs.fields(Settings) if field.encode_name == name)
    try:
        return cast("object", msgspec.convert(text, kind, strict=False))
    except msgspec.ValidationError:
        words = {int: "a whole number", float: "a number of seconds", bool: "true or false"}
        raise SettingError(f"{PREFIX}{name.upper()} must be {words[kind]}, not {text!r}") from None


def _check(settings: Settings) -> None:
    for field in msgspec.structs.fields(Settings):
        value = getattr(settings, field.encode_name)
        least = 0 if field.encode_name in {"port", "day_calls_max", "address_calls_max"} else 1e-3
        if field.type in {int, float} and not least <= value < float("inf"):
            raise SettingError(f"{PREFIX}{field.encode_name.upper()} must be larger than 0, not {value}")
    if settings.port > 65535:
        raise SettingError(f"{PREFIX}PORT must be a port from 0 to 65535, not {settings.port}")
    for proxy in filter(None, settings.trusted_proxies.split(",")):
        _check_proxy(proxy.strip())
    if settings.model_url:
        _check_model_url(settings)
    if settings.llm_url or settings.llm_model or settings.llm_key:
        _check_llm(settings)
    if settings.forge_url:
        _check_url(
            "FORGE_URL", "FORGE_KEY", settings.forge_url, settings.forge_key, "https://api.github.com/repos/OWNER/NAME"
        )
    if settings.public_url and origin_of(settings.public_url) != settings.public_url.rstrip("/").lower():
        raise SettingError(
            f"{PREFIX}PUBLIC_URL must be scheme, host and maybe port, like https://ask.example.org,"
            f" not {settings.public_url!r}"
        )


def _check_proxy(named: str) -> None:
    try:
        ipaddress.ip_network(named)
    except ValueError:
        raise SettingError(
            f"{PREFIX}TRUSTED_PROXIES must be addresses or networks like 10.0.0.2,10.1.0.0/16, not {named!r}"
        ) from None


def _check_model_url(settings: Settings) -> None:
    url = _check_url("MODEL_URL", "MODEL_KEY", settings.model_url, settings.model_key, "https://api.typesafe.ai")
    if url.path.rstrip("/").endswith("/v1"):
        named = f"{PREFIX}MODEL_URL, {settings.model_url!r},"
        raise SettingError(f"{named} must end before /v1: System One clients add /v1/systemone themselves")


def _check_llm(settings: Settings) -> None:
    if not settings.llm_url or not settings.llm_model:
        missing = "LLM_MODEL" if settings.llm_url else "LLM_URL"
        raise SettingError(f"{PREFIX}{missing} is missing: a language model in front needs its URL and its name")
    _check_url("LLM_URL", "LLM_KEY", settings.llm_url, settings.llm_key, "https://api.openai.com/v1")


def _check_url(name: str, key_name: str, given: str, key: str, like: str) -> SplitResult:
    """A base URL that requests go to. Raises SettingError."""
    problem = base_problem(given)
    if "user" in problem or "query" in problem:
        raise SettingError(f"{PREFIX}{name} {problem}; a key belongs in {PREFIX}{key_name}")
    if origin_of(given) is None:
        raise SettingError(f"{PREFIX}{name}, {given!r}, must be a URL like {like}")
    if problem:
        raise SettingError(f"{PREFIX}{name}, {given!r}, {problem}")
    url = urlsplit(given)
    host = url.hostname or ""
    address = literal(host)
    inside = address is not None and not key and not address.is_global
    if url.scheme == "http" and not is_here(host) and not inside:
        raise SettingError(
            f"{PREFIX}{name}, {given!r}, must begin with https, or what is asked, and a key, would travel in the open."
            " Inside your own network, write the address itself, and leave out the key"
            + (f", or use {PREFIX}DESTINATIONS with private = true" if name == "MODEL_URL" else "")
        )
    if address is not None and not may_reach(address, named=True):
        raise SettingError(f"{PREFIX}{name}, {given!r}, is an address at which no model is")
    return url


def origin_of(url: str) -> str | None:
    """Scheme, host and port of an http(s) URL in lower case, as browsers write an Origin; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if port in {None, usual} else f":{port}")
