"""The file of destinations: all it can say is read exactly, and what it cannot say is refused by table and key."""

from pathlib import Path

import pytest

from archive.attempts import Price
from archive.messages import Key
from archive.reach import looks_like_a_key
from web.destinations import PAGES, Provider, Providers, load, parse
from web.pages import Pages
from web.settings import SettingError, Settings

ENV = {"K": "sentinel-1", "EMPTY": "", "ODD": "sentinel 2", "UMLAUT": "sentinelä"}


def one(text: str) -> Provider:
    """The one provider of a file with these lines in it."""
    (provider,) = parse(f'[a]\nurl = "https://a.example"\n{text}', "d.toml", ENV)
    return provider


def test_a_url_is_all_that_is_needed_and_it_opens_no_door() -> None:
    assert one("") == Provider("a", "https://a.example")
    assert parse("", "d.toml", {}) == ()


def test_everything_a_table_can_say_is_read() -> None:
    text = """
        [first-1]
        url = "HTTPS://A.example:443/api/"
        serves = "/api"
        key_env = "K"
        key_header = "X-Api-Key"
        forward = ["OpenAI-Beta", "anthropic-version", "openai-beta"]
        input_price = 0.042
        output_price = 3
        day_calls_max = 0
        calls_max = 4
        call_seconds_max = 2.5
        private = true
        [second]
        url = "https://b.example/v1"
        call_seconds_max = 7
    """
    assert parse(text, "d.toml", ENV) == (
        Provider("first-1", "https://a.example/api", "/api", Key("sentinel-1", "x-api-key"),
                 ("anthropic-version", "openai-beta"), Price(42_000_000, 3_000_000_000), 0, 4, 2.5, True),
        Provider("second", "https://b.example/v1", call_seconds_max=7.0),
    )  # fmt: skip


def test_a_price_is_exact_to_the_billionth() -> None:
    assert one("input_price = 0.000000001\noutput_price = 999999.999999999").price == Price(1, 999_999_999_999_999)
    assert one("input_price = 0.1\noutput_price = 1e-9").price == Price(100_000_000, 1)
    assert one("input_price = 0").price == Price(0, None)


WRONG: list[tuple[str, str]] = [
    ("urll = 'x'", "urll: there is no such key; did you mean url?"),
    ("key = 'sentinel'", "key: there is no such key; did you mean key_env?"),
    ("serve = '/'", "serve: there is no such key; did you mean serves?"),
    ("input_prize = 1", "input_prize: there is no such key; did you mean input_price?"),
    ("zzz = 1", "zzz: there is no such key"),
    ("serves = 1", "serves: must be a text"),
    ("forward = 'x'", "forward: must be a list of texts"),
    ("forward = [1]", "forward: must be a list of texts"),
    ("private = 1", "private: must be true or false"),
    ("private = 'yes'", "private: must be true or false"),
    ("calls_max = 1.5", "calls_max: must be a whole number of calls"),
    ("calls_max = 0", "calls_max: must be a whole number of calls"),
    ("calls_max = true", "calls_max: must be a whole number of calls"),
    ("calls_max = 99999999999999999999", "calls_max: must be a whole number of calls"),
    ("day_calls_max = -1", "day_calls_max: must be a whole number of calls"),
    ("call_seconds_max = 0", "call_seconds_max: must be a number of seconds"),
    ("call_seconds_max = nan", "call_seconds_max: must be a number of seconds"),
    ("call_seconds_max = inf", "call_seconds_max: must be a number of seconds"),
    ("call_seconds_max = '5'", "call_seconds_max: must be a number of seconds"),
    ("input_price = -1", "input_price: must be dollars"),
    ("input_price = nan", "input_price: must be dollars"),
    ("input_price = inf", "input_price: must be dollars"),
    ("input_price = 1000000", "input_price: must be dollars"),
    ("input_price = 0.0000000001", "input_price: must be dollars"),
    ("output_price = '1'", "output_price: must be dollars"),
    ("output_price = true", "output_price: must be dollars"),
    ("key_env = 'sk-sentinel-3'", "key_env: must be the name of an environment variable; the key itself stays out"),
    ("key_env = 'MISSING'", "key_env: the environment variable MISSING is not set"),
    ("key_env = 'EMPTY'", "key_env: the environment variable EMPTY is not set"),
    ("key_env = 'ODD'", "key_env: the environment variable ODD holds a character that no key has"),
    ("key_env = 'UMLAUT'", "key_env: the environment variable UMLAUT holds a character that no key has"),
    ("key_header = 'x key'", "key_header: must be a header"),
    ("key_header = 'Host'", "key_header: must be a header"),
    ("key_header = 'Content-Length'", "key_header: must be a header"),
    ("key_header = 'Archive-Answer'", "key_header: must be a header"),
    ("key_header = ''", "key_header: must be a header"),
    ("key_header = 'Cookie'", "key_header: must be a header"),
    ("key_header = 'TypeSafe-Danger-Zone-Images'", "key_header: must be a header"),
    *((f"serves = '{path}'", "serves: is a whole address of System One's") for path in (
        "/v1/systemone", "/api/v1/systemone", "/V1/SystemOne", "/systemone", "/v1/systemone/x", "/v1/models")),
    *((f"forward = ['{name}']", "forward: holds a header") for name in (
        "Authorization", "Cookie", "X-Api-Key", "api-key", "x-goog-api-key", "x-subscription-token", "X-Auth-Token",
        "Proxy-Authorization", "Content-Type", "host", "accept-encoding", "Archive-Answer", "a b", "", "x\\\\ny")),
    *((f"serves = '{path}'", "serves: is where Askonce's own pages are") for path in ("/to", "/to/x", "/static/x")),
    *((f"serves = '{path}'", "serves: must be a path") for path in (
        "api", "/api/", "//", "/a//b", "/../x", "/a b", "/%61", "https://x")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_cannot_be_is_refused_by_file_table_and_key(text: str, words: str) -> None:
    with pytest.raises(SettingError) as refused:
        one(text)
    assert str(refused.value).startswith(f"d.toml, [a], {words}")
    assert "sentinel" not in str(refused.value), "what may be a key is not repeated"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a", "d.toml is not TOML"), ("a = 1", "d.toml: a must stand below the name of a destination"),
        ("[A]\nurl = 'https://a.example'", "d.toml, [A]: a name is made of"), ("['']", "d.toml, []: a name is made of"),
        ("['a/b']", "d.toml, [a/b]: a name is made of"), ("[a]", "d.toml, [a], url: is missing"),
        ("[a.b]\nurl = 'https://a.example'", "d.toml, [a], b: there is no such key"),
        ("[a]\nurl = 'https://a.example'\n[b]\nurl = 'https://A.example:443/'", "d.toml, [b], url: is [a]'s too"),
        ("[a]\nurl = 'https://a.example'\nserves = '/x'\n[b]\nurl = 'https://b.example'\nserves = '/x'",
         "d.toml, [b], serves: is [a]'s too"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_understood_is_refused_as_a_whole(text: str, words: str) -> None:
    with pytest.raises(SettingError) as refused:
        parse(text, "d.toml", ENV)
    assert str(refused.value).startswith(words)


BAD_URLS = {
    "": "must begin with https", "http://a.example": "must begin with https", "http://10.0.0.7": "must begin with",
    "ftp://a.example": "must begin with https", "https://a:sentinel@a.example": "must hold no user",
    "https://a.example?key=sentinel": "must hold no query", "http://2852039166/": "must name its host plainly",
    "https://169.254.169.254": "is an address at which no model is", "https://0.0.0.0": "is an address at which",
    "https://[::ffff:127.0.0.1]": "must name its host plainly", "https://a.example/../x": "must have a plain path",
    "https://metadata.google.internal.": "must name its host plainly",
}  # fmt: skip


@pytest.mark.parametrize("url", BAD_URLS)
def test_a_url_that_leaks_a_key_or_leads_inside_is_refused(url: str) -> None:
    """B66."""
    with pytest.raises(SettingError) as refused:
        parse(f"[a]\nurl = '{url}'", "d.toml", {})
    assert str(refused.value).startswith(f"d.toml, [a], url: {BAD_URLS[url]}")
    assert "sentinel" not in str(refused.value)


def test_what_is_inside_ones_own_network_has_to_be_called_private() -> None:
    for url in ("http://10.0.0.7:8080", "http://model.lan", "http://169.254.169.254", "http://100.100.100.200/x"):
        (provider,) = parse(f"[a]\nurl = '{url}'\nprivate = true", "d.toml", {})
        assert (provider.url, provider.private) == (url, True)
    for url in ("http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]", "https://10.0.0.7"):
        assert parse(f"[a]\nurl = '{url}'", "d.toml", {})[0].url == url
    for url in ("http://0.0.0.0", "http://224.0.0.1", "http://[::ffff:10.0.0.7]"):
        with pytest.raises(SettingError):
            parse(f"[a]\nurl = '{url}'\nprivate = true", "d.toml", {})


@pytest.mark.parametrize("serves", ["/", "/api", "/typesafe"])
def test_where_system_one_is_served_the_base_url_ends_before_v1(serves: str) -> None:
    with pytest.raises(SettingError, match="must end before /v1"):
        parse(f"[a]\nurl = 'https://a.example/v1'\nserves = '{serves}'", "d.toml", {})


def test_the_settings_for_one_model_go_through_the_same_structs(tmp_path: Path) -> None:
    settings = Settings(model_url="https://a.example/", model_key="k", llm_url="https://b.example/v1", llm_key="l")
    assert load(settings, {}) == Providers(
        Provider("ASKONCE_MODEL_URL", "https://a.example", key=Key("k")),
        Provider("ASKONCE_LLM_URL", "https://b.example/v1", key=Key("l")),
    )
    assert load(Settings(), {}) == Providers()
    file = tmp_path / "d.toml"
    file.write_text("[x]\nurl = 'https://x.example'\nserves = '/'")
    listed = (Provider("x", "https://x.example", "/"),)
    assert load(Settings(destinations=str(file)), {}) == Providers(listed[0], None, listed)
    with pytest.raises(SettingError, match=r"\[x\], serves: .* ASKONCE_MODEL_URL"):
        load(Settings(destinations=str(file), model_url="https://a.example"), {})


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# \xe4")
    for path in (tmp_path / "none.toml", tmp_path, latin):
        with pytest.raises(SettingError, match=rf"^ASKONCE_DESTINATIONS, .*{path.name}"):
            load(Settings(destinations=str(path)), {})


def test_a_key_is_never_printed_with_its_provider() -> None:
    assert "sentinel" not in repr(one("key_env = 'K'"))


def test_a_name_that_speaks_of_a_key_is_known_as_one() -> None:
    keys = [
        "key", "api_key", "apikey", "apiKey", "APIKey", "x-goog-api-key", "access_token", "accessToken", "sig", "auth",
        "X-Amz-Signature", "X-Amz-Credential", "client.secret", "PASSWORD", "subscription-key", "session_id", "keys",
        "api_keys", "apikeys", "apiKeys", "xapikey", "XAPIKEY", "x_apikey2", "myaccesstoken", "access_tokens",
    ]  # fmt: skip
    others = [
        "api-version", "max_tokens", "keyword", "monkey", "monkeys", "maxTokens", "tokens", "model", "author", "design",
        "v", "",
        "openai-beta",
        "tokenizer",
    ]  # fmt: skip
    assert [name for name in keys if not looks_like_a_key(name)] == []
    assert [name for name in others if looks_like_a_key(name)] == []


def test_no_destination_can_serve_where_a_page_is() -> None:
    paths = {route.path.split("/")[1] for route in Pages.__new__(Pages).routes()}
    assert paths - {""} <= PAGES
