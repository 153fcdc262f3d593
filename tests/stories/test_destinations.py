"""The file of destinations in use: any JSON API behind its own prefix, each with its key, headers, price and limits."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.examples import ELSEWHERE, EXAMPLES
from tests.fakes import Said, Site, Upstream, answer, body, site, upstream
from tests.stored import rows
from tests.wires import in_chunks, says
from web.app import house
from web.settings import SettingError, Settings

KEYS = {"ROOT": "sentinel-root", "OTHER": "sentinel-other"}
FILE = """
[root]
url = "{0}"
serves = "/"
key_env = "ROOT"

[other]
url = "{1}/api"
serves = "/api"
key_env = "OTHER"
key_header = "x-api-key"
forward = ["openai-beta"]
input_price = 0.042
output_price = 0

[open]
url = "{2}/v1"
serves = "/v1"
"""


@asynccontextmanager
async def opened(folder: Path, text: str = FILE, **more: Any) -> AsyncGenerator[tuple[Site, list[Upstream]], None]:
    """A site with these destinations, each `{n}` an upstream of its own."""
    async with upstream() as first, upstream() as second, upstream() as third:
        all_three = [first, second, third]
        file = folder / "destinations.toml"
        file.write_text(text.format(*(far.url for far in all_three)))
        async with site(folder / "a.db", "", destinations=str(file), environment=KEYS, **more) as here:
            yield here, all_three


async def post(here: Site, path: str, data: bytes | None = None, /, **headers: str) -> Said:
    return await here.send("POST", path, body() if data is None else data, Content_Type="application/json", **headers)


async def test_each_address_leads_to_its_own_provider_with_its_own_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as (here, (root, other, third)):
        third.reply = b'{"choices":[{}]}'
        paths = ["/v1/systemone", "/typesafe/v1/systemone", "/to/root/v1/systemone", "/api/v1/systemone",
                 "/to/other/v1/systemone", "/v1/chat/completions", "/to/open/chat/completions"]  # fmt: skip
        said = [await post(here, path, Authorization="Bearer mine") for path in paths]
    assert [one.status for one in said] == [200] * 7
    assert [one.headers["Archive-Sent"] for one in said] == ["now", "no", "no", "now", "no", "now", "no"]
    assert [(got.path, got.headers.get("authorization"), got.headers.get("x-api-key")) for got in root.got] == [
        ("/v1/systemone", "Bearer sentinel-root", None)
    ]
    assert [(got.path, got.headers.get("authorization"), got.headers.get("x-api-key")) for got in other.got] == [
        ("/api/v1/systemone", None, "sentinel-other")
    ]
    assert [(got.path, got.headers.get("authorization"), got.headers.get("x-api-key")) for got in third.got] == [
        ("/v1/chat/completions", "Bearer mine", None)
    ]


async def test_a_callers_own_key_goes_in_the_header_its_destination_wants(tmp_path: Path) -> None:
    text = '[a]\nurl = "{0}"\nkey_header = "X-Api-Key"'
    async with opened(tmp_path, text) as (here, (far, _, _)):
        await post(here, "/to/a/x", Authorization="Bearer no", X_Api_Key="sentinel-mine")
        odd = await post(here, "/to/a/y", X_Api_Key="clé")
    assert [(got.headers.get("x-api-key"), got.headers.get("authorization")) for got in far.got] == [
        ("sentinel-mine", None)
    ]
    assert (odd.status, odd.error) == (400, "invalid")


async def test_queries_and_forwarded_headers_keep_requests_apart(tmp_path: Path) -> None:
    """B07: what can change an answer is in the identity; what is not passed on is in neither."""
    async with opened(tmp_path) as (here, (_, far, _)):
        far.reply = b'{"x":1}'
        asked: list[tuple[str, dict[str, str]]] = [
            ("/to/other/chat", {}), ("/to/other/chat?api-version=A", {}), ("/to/other/chat?api-version=B", {}),
            ("/to/other/chat", {"OpenAI_Beta": "x"}), ("/to/other/chat", {"OpenAI_Beta": "y"}),
            ("/to/other/chat", {"TypeSafe_Danger_Zone_Images": "true"}),
        ]  # fmt: skip
        first = [await post(here, path, **headers) for path, headers in asked]
        again = [await post(here, path, **headers) for path, headers in asked]
        await post(here, "/to/other/chat", X_Other="z")
    assert [one.headers["Archive-Sent"] for one in first] == ["now"] * 6
    assert [one.headers["Archive-Sent"] for one in again] == ["no"] * 6
    assert len({one.headers["Archive-Call"] for one in first}) == 6
    assert [got.path for got in far.got][1:3] == ["/api/chat?api-version=A", "/api/chat?api-version=B"]
    assert [got.headers.get("openai-beta") for got in far.got] == [None, None, None, "x", "y", None]
    assert len(far.got) == 6


async def test_an_address_goes_up_byte_for_byte_and_its_query_is_refused_when_it_holds_a_key(tmp_path: Path) -> None:
    async with opened(tmp_path) as (here, (_, far, _)):
        far.reply = b"[1, 2]"
        path = "/to/other/%7Em:x/a%20b?q=%41+b&r=%2F"
        status = await raw(here, f"POST {path} HTTP/1.1")
        refused = await post(here, "/to/other/x?api_key=sentinel")
    assert (status, [got.path for got in far.got]) == (200, ["/api/%7Em:x/a%20b?q=%41+b&r=%2F"])
    assert (refused.status, refused.error) == (400, "invalid")
    assert "key" in refused.text and "sentinel" not in refused.text


async def raw(here: Site, line: str, data: bytes = b"{}") -> int:
    """The status of a request whose first line is sent as it stands; 0 when the connection is just closed."""
    host, _, port = here.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"{line}\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode("latin-1") + data)
    said = await reader.read()
    writer.close()
    return int(said.split(b" ")[1]) if said else 0


ODD = ["/to/other/../x", "/to/other/..", "/to/other//x", "/to/other//evil.example/x", "/to/other/%2e%2e/x",
       "/to/other/%2f%2fevil.example", "/to/other/..%2f", "/to/other/..;/x", "/to/other/%00", "/to/other/%0d%0aX:y",
       "/to/other/\\..\\x", "/to/other/\xff", "/to/other/%ff%fe", "/to/other/x?a=\xff", "/to/other/x?%",
       "/to/other/%zz",
       "/to/other/" + "x" * 30_000, "/to/", "/to/nobody/x", "//to/other/x", "/to/other@evil.example/x",
       "/api/%2e%2e/x", "/api/v1/v1/systemone", "/v1/..", "/v1/%2e%2e/x", "http://evil.example/to/other/x", "*",
       "/v1/systemone?x", "/v1/models/%00", "/typesafe//v1/systemone"]  # fmt: skip


async def test_no_address_brings_an_error_of_ours_or_leads_out(tmp_path: Path) -> None:
    """B76, and traversal: whatever the path is, it is refused or stays below the base URL."""
    async with opened(tmp_path) as (here, models):
        statuses = {
            (method, path): await raw(here, f"{method} {path} HTTP/1.1")
            for path in ODD
            for method in ("POST", "GET", "HEAD", "BREW")
        }
        assert (await post(here, "/api/fine")).status == 200
    assert {key: status for key, status in statuses.items() if status >= 500} == {}
    assert [got.path for got in models[0].got + models[2].got] == []
    assert all(got.path.startswith("/api/") for got in models[1].got)
    assert [got.path for got in models[1].got if ".." in got.path or "evil" in got.path] == []


@pytest.mark.parametrize("path", ["/v1/systemone", "/to/other/x", "/v1/decisions", "/api/alpha/decisions"])
async def test_deep_and_odd_bodies_bring_no_error_of_ours(tmp_path: Path, path: str) -> None:
    """B76: 100,000 nested brackets go up as they are; what the model says of them comes back."""
    bodies = [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"questions":' + b"[" * 100_000, b"", b"\0", b"\xff",
              b'{"questions":[1,{}]}', b'{"questions":{"q":1}}', b"null", b"9" * 10_000]  # fmt: skip
    async with opened(tmp_path) as (here, models):
        for far in models:
            far.reply = b"[" * 100_000
        deep = [await post(here, path, data, Archive_Answer="fresh") for data in bodies]
        for far in models:
            far.status, far.reply = 400, b'{"detail":"Invalid request."}'
        refused = [await post(here, path, data, Archive_Answer="fresh") for data in bodies]
        for far in models:
            far.status, far.reply = 200, answer()
        working = await post(here, "/v1/systemone")
    assert {one.status for one in deep} == {502}, "it was paid for and is no answer"
    assert {(one.status, one.body) for one in refused} == {(400, b'{"detail":"Invalid request."}')}
    assert working.status == 200


@pytest.mark.parametrize("name", ELSEWHERE)
async def test_what_other_providers_say_passes_through_as_it_is(tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    text = FILE + '\n[gateway]\nurl = "{1}/typesafe"\nserves = "/typesafe"\n'
    async with opened(tmp_path, text) as (here, models):
        for far in models:
            far.status, far.reply, far.headers = example.status, example.said, list(example.response_headers.items())
        sent = {name.replace("-", "_"): value for name, value in example.request_headers.items()}
        said = [await here.send("POST", example.path, example.asked, **sent) for _ in range(2)]
    (got,) = [got for far in models for got in far.got][: 1 if example.status == 200 else None][:1]
    assert (got.path, got.body) == (example.path, example.asked)
    assert [(one.status, one.body) for one in said] == [(example.status, example.said)] * 2
    if example.status == 200:
        assert [one.headers["Archive-Sent"] for one in said] == ["now", "no"]
        costs = {"15": "0.000003696", "16": "0.00000399", "17": "unknown"}
        assert said[0].headers["Archive-Cost-Made"] == costs.get(name[:2], said[0].headers["Archive-Cost-Made"])
        assert sum(len(far.got) for far in models) == 1


async def test_a_price_that_is_set_is_what_a_call_cost(tmp_path: Path) -> None:
    """131 tokens at 0.042 dollars a million; without a price it stays unknown, and is never 0."""
    async with opened(tmp_path) as (here, _):
        priced, unknown = await post(here, "/api/v1/systemone"), await post(here, "/v1/systemone")
    assert priced.headers["Archive-Cost-Now"] == "0.000005502"
    assert unknown.headers["Archive-Cost-Now"] == "unknown"
    assert rows(tmp_path / "a.db", "SELECT cost FROM outcome ORDER BY id") == [(5502,), (None,)]


async def test_a_days_calls_are_each_destinations_own(tmp_path: Path) -> None:
    text = '[a]\nurl = "{0}"\nserves = "/"\nday_calls_max = 2\n[b]\nurl = "{1}"\nday_calls_max = 0\n[c]\nurl = "{2}"'
    async with opened(tmp_path, text, day_calls_max=1) as (here, models):
        for far in models:
            far.reply = answer()
        said = {
            name: [(await post(here, f"/to/{name}/{n}/v1/systemone")).status for n in range(4)]
            for name in ("a", "b", "c")
        }
        pages = await post(here, "/v1/systemone")
        kept = await post(here, "/to/a/0/v1/systemone")
    assert said == {"a": [200, 200, 429, 429], "b": [200] * 4, "c": [200, 429, 429, 429]}
    assert (pages.status, pages.error, kept.status) == (429, "over_limit", 200)
    assert [len(far.got) for far in models] == [2, 4, 1]


async def test_calls_at_once_are_each_destinations_own(tmp_path: Path) -> None:
    text = '[a]\nurl = "{0}"\ncalls_max = 1\n[b]\nurl = "{1}"'
    async with opened(tmp_path, text) as (here, (first, _, _)):
        first.gate = asyncio.Event()
        waiting = asyncio.create_task(post(here, "/to/a/x"))
        await first.arrived.acquire()
        busy, other = await post(here, "/to/a/y"), await post(here, "/to/b/y")
        first.gate.set()
        done = await waiting
        after = await post(here, "/to/a/y")
    assert (busy.status, busy.error) == (503, "busy")
    assert [one.status for one in (other, done, after)] == [200] * 3


async def test_a_destinations_own_patience_ends_before_the_houses(tmp_path: Path) -> None:
    text = '[a]\nurl = "{0}"\ncall_seconds_max = 0.05'
    async with opened(tmp_path, text, call_seconds_max=600.0, stop_seconds_max=0.1) as (here, (far, _, _)):
        far.gate = asyncio.Event()
        said = await post(here, "/to/a/x")
        far.gate.set()
    assert (said.status, said.error) == (504, "call_unknown")


async def test_lists_of_models_are_got_and_nothing_else_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as (here, (root, other, third)):
        root.reply, other.reply, third.reply = b'{"models":[]}', b'{"data":[]}', b'{"data":[]}'
        lists = [await here.send("GET", path) for path in ("/v1/models", "/api/v1/models", "/to/open/models")]
        refused = [await here.send(method, "/to/other/v1/x") for method in ("GET", "PUT", "DELETE", "HEAD")]
        form = await here.send("POST", "/to/other/x", b"a=b", Content_Type="application/x-www-form-urlencoded")
    assert [one.status for one in lists] == [200] * 3
    assert [got.path for far in (root, other, third) for got in far.got] == [
        "/v1/models",
        "/api/v1/models",
        "/v1/models",
    ]
    assert {(one.status, one.headers["Allow"]) for one in refused} == {(405, "POST")}
    assert (form.status, form.error) == (400, "invalid")


async def test_who_has_no_key_of_its_own_is_no_way_to_spend_anothers(tmp_path: Path) -> None:
    text = '[a]\nurl = "{0}"\n[b]\nurl = "{0}/b"\nkey_env = "OTHER"'
    async with opened(tmp_path, text) as (here, (far, _, _)):
        said = await post(here, "/to/a/b/x", Authorization="Bearer mine")
        right = await post(here, "/to/b/x")
    assert (said.status, said.error, right.status) == (403, "forbidden", 200)
    assert [got.headers.get("authorization") for got in far.got] == ["Bearer sentinel-other"]


async def test_another_base_url_is_another_destination_and_the_old_one_keeps_its_answers(tmp_path: Path) -> None:
    """B09."""
    text = '[old]\nurl = "{0}"\n%s\n[new]\nurl = "{1}"\n%s'
    serves = 'serves = "/"'
    async with upstream() as first, upstream() as second:
        for order in ((serves, ""), ("", serves)):
            file = tmp_path / "d.toml"
            file.write_text((text % order).format(first.url, second.url))
            async with site(tmp_path / "a.db", "", destinations=str(file)) as here:
                assert (await here.ask()).headers["Archive-Sent"] == "now"
                old = await post(here, "/to/old/v1/systemone", Cache_Control="only-if-cached")
                assert (old.status, old.headers["Archive-Answer"]) == (200, "1/1")
    assert (len(first.got), len(second.got)) == (1, 1)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/v1/systemone", "take /v1 off"), ("/v1/systemone/v1/systemone", "take /v1/systemone off"),
        ("/systemone", "/v1 is missing"), ("/v1/systemone/", "slash"), ("//v1/systemone", "slash"),
        ("/api/v1/v1/systemone", "take /v1 off"), ("/v1/decisions", 'serves = "/v1"'),
        ("/api/alpha/decisions", 'serves = "/api"'), ("/to/nobody/x", "ASKONCE_DESTINATIONS"),
        ("/v1/chat/completions", "ASKONCE_DESTINATIONS"),
    ],
)  # fmt: skip
async def test_a_wrong_base_url_is_told_what_to_change(tmp_path: Path, path: str, words: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        said = [await post(here, path), await here.send("GET", path)]
    for one in said:
        assert (one.status, one.headers["Content-Type"]) == (404, "application/json")
        assert one.error == ("404" if path.startswith("/api/alpha") else "not_found")
        assert words in one.text
    assert model.got == []


async def test_a_slightly_wrong_system_one_address_reaches_no_other_provider(tmp_path: Path) -> None:
    """It would show somebody else the state, and the caller's key for System One."""
    async with opened(tmp_path) as (here, models):
        for base in ("/v1", "/api/v1"):
            for rest in ("/systemone/", "/Systemone", "/system_one", "/system-one", "/systemone.json", "/v1/systemone"):
                said = await post(here, base + rest, Authorization="Bearer sentinel-mine")
                assert (said.status, said.headers["Content-Type"]) == (404, "application/json"), rest
                assert f"The address is {base}/systemone." in said.text, rest
        for bare in ("/v1", "/v1/", "/api", "/api/"):
            said = await post(here, bare, Authorization="Bearer sentinel-mine")
            assert said.status == 404
            assert "/v1/systemone." in said.text
        assert [far.got for far in models] == [[], [], []]
        for path in ("/v1/systemone", "/api/v1/systemone"):
            assert (await post(here, path)).status == 200
    assert [len(far.got) for far in models] == [1, 1, 0]


@pytest.mark.parametrize("path", ["/api/v1/systemone", "/typesafe/v1/systemone"])
async def test_without_a_file_other_clients_prefixes_are_the_same_archive(tmp_path: Path, path: str) -> None:
    async with upstream() as model, site(tmp_path / "a.db", model.url) as here:
        await here.ask()
        said = await post(here, path)
        models = await here.send("GET", path.replace("systemone", "models"))
    assert (said.status, said.headers["Archive-Sent"], models.status) == (200, "no", 502)
    assert [got.path for got in model.got] == ["/v1/systemone", "/v1/models"]


async def test_a_file_with_a_mistake_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text("[a]\nurl = 'http://169.254.169.254/'")
    settings = Settings(store=str(tmp_path / "a.db"), destinations=str(file))
    with pytest.raises(SettingError, match=r"d\.toml, \[a\], url:"):
        async with house(settings, {}):
            pass
    assert not (tmp_path / "a.db").exists()


async def test_a_model_that_is_no_system_one_is_kept_with_its_parts_and_model(tmp_path: Path) -> None:
    asked = json.dumps({"model": "m-1", "input": "words", "dimensions": 3}).encode()
    async with opened(tmp_path) as (here, (_, _, far)):
        far.reply = b'{"data":[[1]],"model":"m-1-b","usage":{"prompt_tokens":3,"total_tokens":3}}'
        said = [await post(here, "/v1/embeddings", asked) for _ in range(2)]
    assert [(one.status, one.body, one.headers["Archive-Sent"]) for one in said] == [
        (200, far.reply, "now"), (200, far.reply, "no"),
    ]  # fmt: skip
    assert rows(tmp_path / "a.db", "SELECT input_tokens, output_tokens, cost FROM outcome") == [(3, None, None)]


async def test_a_stream_of_any_destination_is_replayed_and_priced(tmp_path: Path) -> None:
    chunks = [
        b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n',
        b'data: {"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":2}}\n\ndata: [DONE]\n\n',
    ]
    async with opened(tmp_path) as (here, (_, far, _)):
        far.behave = says(in_chunks(*chunks))
        said = [await post(here, "/to/other/v1/chat/completions", body(stream=True)) for _ in range(2)]
    assert [(one.status, one.body, one.headers["Archive-Sent"]) for one in said] == [
        (200, b"".join(chunks), "now"), (200, b"".join(chunks), "no"),
    ]  # fmt: skip
    assert said[0].headers["Archive-Cost-Now"] == "0.042"
    assert len(far.got) == 1
