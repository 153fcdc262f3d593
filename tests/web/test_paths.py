"""Which destination an address leads to: below its own base URL and never out of it; and hints for near misses."""

import pytest

from archive.errors import Forbidden, Invalid, NotFound
from archive.messages import Key
from archive.request import Destination
from web.destinations import Provider, Providers
from web.paths import Way, below, hint, owners, way_of, ways

FAR = Provider("far", "https://far.example/api", "/api", Key("k"))
INNER = Provider("inner", "https://far.example/api/beta")
WAY = Way("/to/far", FAR)


def at(path: str, query: str = "", method: str = "POST", way: Way = WAY) -> Destination:
    return below(way, method, path, query)


LED = {
    "/to/far": ("json", "https://far.example/api"),
    "/to/far/": ("json", "https://far.example/api/"),
    "/to/far/v1/systemone": ("systemone", "https://far.example/api/v1/systemone"),
    "/to/far/alpha/decisions": ("decisions", "https://far.example/api/alpha/decisions"),
    "/to/far/v1/chat/completions": ("chat", "https://far.example/api/v1/chat/completions"),
    "/to/far/v1/models/a:b@c/%7Ex": ("json", "https://far.example/api/v1/models/a:b@c/%7Ex"),
}


@pytest.mark.parametrize("path", LED)
def test_an_address_leads_below_the_base_url_byte_for_byte(path: str) -> None:
    assert at(path) == Destination(LED[path][0], "POST", LED[path][1])


def test_a_list_of_models_is_got_and_everything_else_is_a_post() -> None:
    assert at("/to/far/v1/models", "limit=2", "GET") == Destination(
        "models", "GET", "https://far.example/api/v1/models?limit=2"
    )
    assert at("/to/far/v1/models").method == "POST"
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert at("/to/far/v1/x", method=method).method == "POST"
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert at("/to/far/v1/models", method=method).method == "GET"


OUT = ["/..", "/../x", "/v1/../../x", "/./x", "//x", "/x//y", "//evil.example", "/%2e%2e/x", "/.%2E/x", "/%2f..%2fx",
       "/..%2fx", "/..%5cx", "/\\..\\x", "/%252e%252e/x", "/..;/x", "/x;/..;/y", "/%00", "/x%0d%0aHost:%20evil",
       "/\xe9", "/x y", "/@evil.example/..", "/%", "/%2"]  # fmt: skip


@pytest.mark.parametrize("rest", OUT)
def test_no_address_leads_out_of_the_base_url_or_can_be_read_as_one_that_does(rest: str) -> None:
    with pytest.raises(Invalid):
        at("/to/far" + rest)


def test_a_query_is_part_of_where_it_goes() -> None:
    """B07."""
    urls = {at("/to/far/chat", query).url for query in ("api-version=A", "api-version=B", "api-version=%41", "")}
    assert len(urls) == 4


@pytest.mark.parametrize(
    "query",
    ["key=x", "api_key=x", "a=1&apiKey=x", "a=1;token=x", "%6bey=x", "access%5Ftoken=x", "X-Amz-Signature=x", "sig",
     "a b", "a\xe9", "a#b", "a=%", "a=%0", "a=<x>", 'a="', "a=\\"],
)  # fmt: skip
def test_a_query_with_what_looks_like_a_key_or_with_odd_characters_is_refused(query: str) -> None:
    with pytest.raises(Invalid):
        at("/to/far/x", query)


def test_the_longest_prefix_is_the_way() -> None:
    found = ways(Providers(None, None, (FAR, INNER, Provider("root", "https://r.example", "/"))))
    assert {way.prefix for way in found} == {"/to/far", "/to/inner", "/to/root", "/api"}
    named = {path: way.prefix if (way := way_of(found, path)) else None for path in (
        "/to/far", "/to/far/x", "/to/fara", "/to/far%2fx", "/api", "/api/x", "/apix", "/to", "/to/", "/TO/far", "/",
        "//to/far", "/v1/systemone")}  # fmt: skip
    assert {path: way for path, way in named.items() if way} == {
        "/to/far": "/to/far", "/to/far/x": "/to/far", "/api": "/api", "/api/x": "/api",
    }  # fmt: skip


def test_a_destination_is_one_providers_alone() -> None:
    """Who has no key of its own must not be a way to spend another's."""
    ask = Destination("systemone", "POST", "https://far.example/api/v1/systemone")
    owned = owners({ask: "root"}, (FAR, INNER))
    assert owned.name(ask) == "root"
    assert owned.name(at("/to/far/v1/other")) == "far"
    assert owned.name(at("/to/far/beta/x")) == "inner", "the longest base URL"
    assert owned.name(at("/to/far/betax")) == "far"
    assert owned.check(at("/to/far/v1/other"), FAR) == at("/to/far/v1/other")
    for place in (ask, at("/to/far/beta/x")):
        with pytest.raises(Forbidden):
            owned.check(place, FAR)


@pytest.mark.parametrize(
    "url",
    ["https://far.example", "https://far.example/apix", "https://far.example/api/../x", "https://far.example/api//x",
     "https://far.example/api@evil.example/", "https://far.example:80/api/x", "https://far.example/api/%2e%2e/x",
     "http://far.example/api/x", "https://evil.example/https://far.example/api", "https://far.example/api/x#y", ""],
)  # fmt: skip
def test_nothing_is_sent_to_what_only_looks_like_a_destination(url: str) -> None:
    assert owners({}, (FAR, INNER)).name(Destination("json", "POST", url)) == ""
    assert owners({}, (FAR, INNER)).name(Destination("json", "DELETE", "https://far.example/api/x")) == ""


HINTS = {
    "/v1/v1/systemone": "/v1 is there twice: take /v1 off the end of the base URL. The address is /v1/systemone.",
    "/v1/systemone/v1/systemone": "The base URL holds the whole address already: take /v1/systemone off its end. The"
    " address is /v1/systemone.",
    "/v1/systemone/v1/models": "/v1 is there twice: take /v1 off the end of the base URL. The address is /v1/models.",
    "/systemone": "/v1 is missing before the last part. The address is /v1/systemone.",
    "/models": "/v1 is missing before the last part. The address is /v1/models.",
    "/v1/systemone/": "Take the slash off its end. The address is /v1/systemone.",
    "//v1/systemone": "Take the slash off the end of the base URL. The address is /v1/systemone.",
    "/v1": "This is a base URL and no address. The address is /v1/systemone.",
    "/v1/": "This is a base URL and no address. The address is /v1/systemone.",
    "/api": "This is a base URL and no address. The address is /api/v1/systemone.",
    "/V1/SystemOne": "/v1/systemone.",
    "/v1/systemone/x": "The address is /v1/systemone.",
    "/v2/systemone": "The address is /v1/systemone.",
    "/api/v1/v1/systemone": "/v1 is there twice: take /v1 off the end of the base URL. The address is"
    " /api/v1/systemone.",
    "/typesafe/systemone": "/v1 is missing before the last part. The address is /typesafe/v1/systemone.",
    "/api/alpha/decisions": 'The address is /api/alpha/decisions. It needs a destination in the file'
    ' ASKONCE_DESTINATIONS, such as url = "https://openrouter.ai/api", serves = "/api".',
    "/v1/decisions": 'The address is /v1/decisions. It needs a destination in the file ASKONCE_DESTINATIONS, such as'
    ' url = "https://api.openai.com/v1", serves = "/v1".',
    "/v1/chat/completions": 'serves = "/v1"',
    "/to/nobody/x": "There is no destination of that name here.",
    "/to": "There is no destination of that name here.",
}  # fmt: skip


@pytest.mark.parametrize("path", HINTS)
def test_a_wrong_base_url_is_told_what_to_change(path: str) -> None:
    assert HINTS[path] in hint(path)


@pytest.mark.parametrize("path", ["/", "/x", "/favicon.ico", "/wp-login.php", "/%00", "/../etc/passwd", "/call/x"])
def test_what_is_like_none_of_our_addresses_gets_no_hint(path: str) -> None:
    assert hint(path) == ""


@pytest.mark.parametrize("path", ["/to/far/v1/v1/systemone", "/to/far/v1/systemone/v1/systemone"])
def test_a_doubled_base_url_is_not_sent_on(path: str) -> None:
    with pytest.raises(NotFound):
        at(path)


SERVED = Way("/api", FAR)
LLM = Way("/v1", Provider("llm", "https://llm.example/v1", "/v1"))
MINE = Way("/mine", Provider("mine", "https://mine.example", "/mine"))

NEARLY = ["systemone/", "Systemone", "SYSTEMONE", "SystemOne", "system_one", "system-one", "system.one", "system%5Fone",
          "%53ystemone", "systemone.json", "systemone%20", "systemone/x", "system/one", "systmone",
          "systemon", "systemeone", "system1", "system-1", "systemone2", "x/systemone", "_systemone"]  # fmt: skip


@pytest.mark.parametrize("rest", [*NEARLY, "v1/systemone", "systemone/v1/systemone", "", "/"])
def test_what_is_nearly_system_ones_address_never_reaches_who_serves_v1(rest: str) -> None:
    path = "/v1" + ("" if rest in {"", "/"} else "/") + rest
    with pytest.raises(NotFound, match=r"ddress is /v1/systemone\.$"):
        at(path, way=LLM)


@pytest.mark.parametrize("way", [SERVED, MINE], ids=["api", "mine"])
@pytest.mark.parametrize("rest", [*(f"v1/{near}" for near in NEARLY), *NEARLY, "v1/v1/systemone", "v2/systemone",
                                  "systemone", "V1/systemone", "", "/"])  # fmt: skip
def test_what_is_nearly_system_ones_address_is_told_the_right_one_below_any_prefix(way: Way, rest: str) -> None:
    path = way.prefix + ("" if rest in {"", "/"} else "/") + rest
    with pytest.raises(NotFound, match=rf"ddress is {way.prefix}/v1/systemone\.$"):
        at(path, way=way)


def test_what_only_shares_letters_with_it_goes_on() -> None:
    for rest in ("chat/completions", "responses", "systems", "system", "ecosystems", "models", "models/systema",
                 "files/v1", "decisions", "alpha/decisions", "one", "messages", "a/"):  # fmt: skip
        assert at(f"/v1/{rest}", way=LLM).url == f"https://llm.example/v1/{rest}"
        assert at(f"/api/{rest}", way=SERVED).url == f"https://far.example/api/{rest}"
    assert at("/api/v1/systemone", way=SERVED).name == at("/mine/v1/systemone", way=MINE).name == "systemone"


@pytest.mark.parametrize("rest", ["", "/", "/systemone/", "/System_One", "/systemone.json"])
def test_below_its_own_name_a_destination_is_asked_whatever_it_is(rest: str) -> None:
    """There the destination is named; nobody comes to it by mistake."""
    assert at("/to/far" + rest).url == "https://far.example/api" + rest


@pytest.mark.parametrize("name", ["systemone", "decisions", "v1"])
def test_a_destination_may_be_named_like_a_part_of_an_address(name: str) -> None:
    way = Way(f"/to/{name}", Provider(name, "https://n.example"))
    for rest in ("/v1/systemone", "/v1/decisions", "/v1/x"):
        assert at(f"/to/{name}{rest}", way=way).url == f"https://n.example{rest}"


def test_a_part_that_is_there_twice_is_told_with_the_right_address() -> None:
    with pytest.raises(NotFound, match=r"/v1 is there twice: .* The address is /to/far/v1/systemone\."):
        at("/to/far/v1/v1/systemone")
