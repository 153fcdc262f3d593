"""Settings: what cannot be is refused by name before anything starts, and what is not set costs nothing."""

from pathlib import Path

import msgspec
import pytest

from web.settings import SettingError, Settings, origin_of, read

FIELDS = msgspec.structs.fields(Settings)
COUNTS = [field.encode_name for field in FIELDS if field.type is int]
SECONDS = [field.encode_name for field in FIELDS if field.type is float]
FLAGS = [field.encode_name for field in FIELDS if field.type is bool]


def _named(field: str) -> str:
    return f"ASKONCE_{field.upper()}"


def test_nothing_set_is_the_defaults_and_they_open_no_door() -> None:
    settings = read({})
    assert settings == Settings()
    assert (settings.host, settings.model_url, settings.model_key, settings.no_cache_is_fresh) == (
        "127.0.0.1",
        "",
        "",
        False,
    )
    assert read({"HOME": "/root", "ASKANCE_PORT": "1", "askonce_port": "2"}) == Settings()


def test_an_empty_value_is_as_good_as_none() -> None:
    assert read({_named(field.encode_name): "" for field in FIELDS}) == Settings()


GOOD: list[tuple[str, str, object]] = [
    ("port", "0", 0), ("port", "65535", 65535), ("host", "::1", "::1"), ("model", "jev-1.13.0", "jev-1.13.0"),
    ("day_calls_max", "0", 0), ("day_calls_max", "50", 50), ("address_calls_max", "0", 0),
    ("trusted_proxies", "127.0.0.1, 10.0.0.0/8,::1", "127.0.0.1, 10.0.0.0/8,::1"), ("call_seconds_max", "0.5", 0.5),
    ("call_seconds_max", "7", 7.0),
    ("no_cache_is_fresh", "true", True), ("no_cache_is_fresh", "1", True), ("no_cache_is_fresh", "false", False),
    ("no_cache_is_fresh", "0", False), ("mailbox_max", "1", 1), ("store", "x/y.db", "x/y.db"), ("model_key", "k", "k"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "text", "value"), GOOD)
def test_each_setting_is_read_from_its_own_variable(field: str, text: str, value: object) -> None:
    assert getattr(read({_named(field): text}), field) == value


WRONG = (
    [(field, text) for field in COUNTS for text in ("a", "-1", "1.5", "nan", "9" * 5_000)]
    + [(field, text) for field in SECONDS for text in ("a", "-1", "0", "nan", "inf", "1e400", "30s")]
    + [(field, text) for field in FLAGS for text in ("yes please", "2", "on off")]
    + [(field, "0") for field in COUNTS if field not in {"port", "day_calls_max", "address_calls_max"}]
    + [("port", "65536")]
    + [("trusted_proxies", text) for text in ("*", "proxy", "10.0.0.1/8", "127.0.0.1:80", "127.0.0.1 10.0.0.1")]
)


@pytest.mark.parametrize(("field", "text"), WRONG)
def test_a_wrong_value_is_refused_by_name(field: str, text: str) -> None:
    with pytest.raises(SettingError, match=_named(field)):
        read({_named(field): text})


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ASKONCE_PROT", "ASKONCE_PORT"), ("ASKONCE_MODELURL", "ASKONCE_MODEL_URL"), ("ASKONCE_STORES", "ASKONCE_STORE")],
)
def test_a_name_that_is_nearly_a_setting_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(SettingError, match=rf"{name} is not a setting; did you mean {meant}\?"):
        read({name: "1"})


def test_a_name_that_is_nothing_like_a_setting_is_refused_too() -> None:
    with pytest.raises(SettingError, match=r"^ASKONCE_XYZZYX is not a setting$"):
        read({"ASKONCE_XYZZYX": "1"})


def test_a_hosts_port_counts_where_ours_is_not_set() -> None:
    assert read({"PORT": "5000"}).port == 5000
    assert read({"PORT": "5000", "ASKONCE_PORT": "6000"}).port == 6000
    with pytest.raises(SettingError, match="PORT"):
        read({"PORT": "http"})


@pytest.mark.parametrize(
    "url",
    [
        "https://api.typesafe.ai", "https://api.typesafe.ai/", "https://openrouter.ai/api", "http://127.0.0.1:8080",
        "http://[::1]:8080/typesafe", "HTTPS://API.EXAMPLE",
    ],
)  # fmt: skip
def test_a_base_url_is_taken_as_it_is(url: str) -> None:
    assert read({"ASKONCE_MODEL_URL": url, "ASKONCE_MODEL_KEY": "k"}).model_url == url


BAD_URLS: list[tuple[str, str]] = [
    ("https://user:secret@api.example", "must hold no user or password"),
    ("https://user@api.example", "must hold no user or password"),
    ("https://:secret@api.example:port", "must hold no user or password"),
    ("https://api.example/v1", "must end before /v1"),
    ("https://api.example/x/v1/", "must end before /v1"),
    ("https://api.example?key=secret", "must hold no query"),
    ("https://api.example/?", "must hold no query"),
    ("https://api.example#x", "must hold no query"),
    ("ftp://api.example", "must be a URL like"),
    ("file:///etc/passwd", "must be a URL like"),
    ("local:mini", "must be a URL like"),
    ("api.example", "must be a URL like"),
    ("https://", "must be a URL like"),
    ("https://api.example:99999", "must be a URL like"),
    ("https://api.example:port", "must be a URL like"),
    ("https://[::1", "must be a URL like"),
    ("http://api.example", "must begin with https"),
    ("http://192.168.0.7:80", "must begin with https"),
    ("http://localhost.example", "must begin with https"),
]


@pytest.mark.parametrize(("url", "words"), BAD_URLS)
def test_a_base_url_that_leaks_a_key_or_leads_nowhere_is_refused(url: str, words: str) -> None:
    with pytest.raises(SettingError, match=rf"^ASKONCE_MODEL_URL.* {words}") as refused:
        read({"ASKONCE_MODEL_URL": url, "ASKONCE_MODEL_KEY": "k"})
    assert "secret" not in str(refused.value), "what may be a key is not repeated in the refusal"


def test_a_plain_http_base_url_is_fine_inside_ones_own_network_while_no_key_goes_there() -> None:
    for url in ("http://192.168.0.7:8080", "http://[fd00::7]:8080", "http://100.64.0.7"):
        assert read({"ASKONCE_MODEL_URL": url}).model_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://model.lan:8080", "http://8.8.8.8", "http://169.254.169.254", "https://169.254.169.254",
        "http://2852039166/", "http://0x7f.1", "http://127.1", "https://0177.0.0.1", "http://100.100.100.200",
        "https://168.63.129.16", "http://[::ffff:169.254.169.254]", "http://[::ffff:7f00:1]", "https://[fe80::1%25eth0]",
        "http://metadata.google.internal./", "https://api.example.", "https://api..example", "https://0.0.0.0",
        "https://224.0.0.1", "http://[::]", "https://api.example/a/../b", "https://api.example/a//b",
        "https://api.example/%2e%2e", "https://api.example/a b", "https://api.example\\@evil", "https://\u00e4.example",
        "https://api.example/\n", "https://[fd00:ec2::254]", "https://127.0.0.1.", "https://1.2.3", "https://api.0x7f",
    ],
)  # fmt: skip
def test_a_base_url_that_leads_inside_or_is_spelled_oddly_is_refused_at_start(url: str) -> None:
    """B66: what some programs read as another address than others do is no address here."""
    for environment in ({"ASKONCE_MODEL_URL": url}, {"ASKONCE_LLM_URL": url, "ASKONCE_LLM_MODEL": "m"}):
        with pytest.raises(SettingError, match=r"^ASKONCE_(MODEL|LLM)_URL"):
            read(environment)


@pytest.mark.parametrize("url", ["https://ask.example.org", "https://ask.example.org/", "http://ask.example.org:8080"])
def test_a_public_url_is_an_origin(url: str) -> None:
    assert read({"ASKONCE_PUBLIC_URL": url}).public_url == url


@pytest.mark.parametrize(
    "url",
    ["ask.example.org", "https://ask.example.org/path", "https://a@b.example", "https://x.example?q", "https://[::1"],
)
def test_a_public_url_that_is_more_or_less_than_an_origin_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="ASKONCE_PUBLIC_URL"):
        read({"ASKONCE_PUBLIC_URL": url})


ORIGINS = {
    "https://A.Example": "https://a.example",
    "https://a.example:443/x?y#z": "https://a.example",
    "http://a.example:443": "http://a.example:443",
    "http://a.example:80": "http://a.example",
    "http://[::1]:8000": "http://[::1]:8000",
    "null": None,
    "": None,
    "data:text/html,x": None,
    "http://a.example:x": None,
}


@pytest.mark.parametrize("url", ORIGINS)
def test_an_origin_is_spelled_as_browsers_spell_it(url: str) -> None:
    assert origin_of(url) == ORIGINS[url]


def test_the_store_is_where_it_is_said_or_in_the_platforms_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read({"ASKONCE_STORE": "x/y.db"}).store_path == Path("x/y.db")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert read({}).store_path == Path("/data/askonce/askonce.db")


@pytest.mark.parametrize(
    ("settings", "public"),
    [
        (Settings(), False),
        (Settings(host="::1"), False),
        (Settings(host="localhost"), False),
        (Settings(host="0.0.0.0"), True),  # noqa: S104 - compared, not bound
        (Settings(host="::"), True),
        (Settings(host="192.0.2.7"), True),
        (Settings(public_url="https://ask.example.org"), True),
    ],
)
def test_others_can_come_where_it_listens_elsewhere_or_has_a_public_address(settings: Settings, public: bool) -> None:
    assert settings.is_public is public
