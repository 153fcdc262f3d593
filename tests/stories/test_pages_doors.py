"""Who may ask through the pages, what goes out with every response, and what is written about it."""

import gzip
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.pages import FORM, Page, address, visitor
from web.app import Lines

ASK = urlencode({"q": "Is it?"}).encode()
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def assert_guarded(page: Page) -> None:
    """The policy and its companions; no inline script or style could run or is there."""
    directives = (part.strip().partition(" ") for part in page.headers["Content-Security-Policy"].split(";"))
    assert {name: value for name, _, value in directives} == POLICY
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in page.headers
    if page.headers.get("Content-Type", "").startswith("text/html"):
        assert page.html, "read strictly: no script, no style, no on... attribute"


async def test_every_response_of_the_pages_carries_the_policy(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        asked = await me.ask("Is it?")
        name, _, _ = asked.names[0].partition(":")
        pages = [
            asked,
            await me.get(),
            await me.look("Is it not?"),
            await me.post("Is it?"),
            await me.post("x" * 501),
            await me.get(f"/call/{name}/request"),
            await me.get(f"/call/{name}/1"),
            await me.get(f"/call/{name}/2"),
            await me.request("POST", "/ask", ASK),
            await me.get("/?q=%FF"),
        ]
    assert [page.status for page in pages] == [200, 200, 200, 303, 413, 200, 200, 404, 403, 400]
    for page in pages:
        assert_guarded(page)


SAME = {"Content_Type": FORM, "Sec_Fetch_Site": "same-origin"}
REFUSED: dict[str, tuple[int, dict[str, str]]] = {
    "neither Origin nor Sec-Fetch-Site": (403, {"Content_Type": FORM}),
    "another site's Origin": (403, SAME | {"Origin": "https://evil.example"}),
    "no Origin to name": (403, SAME | {"Origin": "null"}),
    "another port's Origin": (403, SAME | {"Origin": "http://127.0.0.1:1"}),
    "the other scheme's Origin": (403, SAME | {"Origin": "https://{place}"}),
    "ours and more": (403, SAME | {"Origin": "{url}.evil.example"}),
    "from another site": (403, {"Content_Type": FORM, "Sec_Fetch_Site": "cross-site"}),
    "from a sister site": (403, {"Content_Type": FORM, "Sec_Fetch_Site": "same-site"}),
    "typed by hand": (403, {"Content_Type": FORM, "Sec_Fetch_Site": "none"}),
    "another Host, as after DNS rebinding": (403, SAME | {"Host": "evil.example"}),
    "another Host and its Origin": (
        403,
        {"Content_Type": FORM, "Host": "evil.example", "Origin": "http://evil.example"},
    ),
    "plain text, as a foreign form can send": (400, SAME | {"Content_Type": "text/plain"}),
    "JSON": (400, SAME | {"Content_Type": "application/json"}),
    "a form in parts": (400, SAME | {"Content_Type": "multipart/form-data; boundary=x"}),
    "no type": (400, SAME | {"Content_Type": ""}),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_only_a_form_of_our_own_pages_may_ask(tmp_path: Path, name: str) -> None:
    status, headers = REFUSED[name]
    async with visitor(tmp_path / "a.db") as me:
        place = me.here.url.removeprefix("http://")
        sent = {key: value.format(url=me.here.url, place=place) for key, value in headers.items()}
        said = await me.request("POST", "/ask", ASK, **sent)
        await me.settled()
        assert me.sent == 0
    assert said.status == status
    assert_guarded(said)


@pytest.mark.parametrize("type_", [FORM, FORM.upper(), f"{FORM}; charset=utf-8"])
async def test_a_form_of_our_own_pages_is_taken_by_its_origin_or_by_the_browsers_word(
    tmp_path: Path, type_: str
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        local = me.here.url.replace("127.0.0.1", "localhost")
        said = [
            await me.request("POST", "/ask", ASK, Content_Type=type_, Origin=me.here.url),
            await me.request("POST", "/ask", ASK, Content_Type=type_, Origin=local),
            await me.request("POST", "/ask", ASK, Content_Type=type_, Sec_Fetch_Site="same-origin"),
        ]
        await me.settled()
        assert me.sent == 2
    assert [one.status for one in said] == [303] * 3


async def test_a_foreign_host_sees_no_page_either(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        asked = await me.ask("Is it?")
        paths = ["/", address("Is it?"), f"/call/{asked.names[0].replace(':', '/')}"]
        pages = [await me.get(path, Host="evil.example") for path in paths]
    assert [page.status for page in pages] == [403] * 3
    assert all("Is it?" not in page.main for page in pages)


async def test_a_press_needs_a_post_and_never_comes_by_an_address(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        asked = await me.ask("Is it?")
        name, _, _ = asked.names[0].partition(":")
        await me.get(address("Is it?") + f"&again={name}&sure=yes&renew=yes")
        got = await me.get(f"/ask?q=Is+it%3F&again={name}")
        other = [await me.request(method, "/", b"") for method in ("PUT", "DELETE", "PATCH", "POST")]
        await me.settled()
        assert me.sent == 2
    assert [page.status for page in [got, *other]] == [405] * 5


async def test_a_form_larger_than_64_kib_is_refused_by_its_word_or_by_count(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        data = ASK + b"&pins=" + b"x" * (64 * 1024 - len(ASK) - 6)
        fits, over = await me.submit(data), await me.submit(data + b"x")
        async with me.here.http.post(me.here.url + "/ask", data=_pieces(), headers=_dashed(SAME)) as response:
            counted = Page(response.status, response.headers.copy(), await response.read())
        await me.settled()
        assert me.sent == 2
    assert [page.status for page in (fits, over, counted)] == [303, 413, 413]
    for page in (over, counted):
        assert "larger than 65536 bytes" in page.main
        assert_guarded(page)


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def _pieces() -> AsyncGenerator[bytes, None]:
    for _ in range(70):
        yield b"q=" + b"x" * 1022


async def test_raw_links_serve_the_exact_bytes_and_no_browser_runs_them(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        me.jev.more = {"x": "</script><script>alert(1)</script>"}
        page = await me.ask("<b>Is it?")
        links = [link["href"] for link in page.html.all("a") if link.text == "raw"]
        raw = [await me.get(link) for link in links]
        replies = [me.jev.reply(got.body) for got in me.model.got]
    assert [one.body for one in raw] == [me.model.got[0].body, replies[0], me.model.got[1].body, replies[1]]
    for one in raw:
        assert one.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert_guarded(one)


async def test_raw_links_of_what_was_asked_over_the_api_serve_its_bytes_too(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        body = (
            b'{"model":"m","state":1.0,  "questions":{"q":{"type":"noul","instructions":"?","criteria":{"true":"x"}}}}'
        )
        said = await me.here.ask(body)
        name = said.headers["Archive-Call"]
        raw = [await me.get(f"/call/{name}/request"), await me.get(f"/call/{name}/1")]
    assert [one.body for one in raw] == [body, said.body]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/call/{name}/0", 404), ("/call/{name}/2", 404), ("/call/{name}/-1", 404), ("/call/{name}/01", 404),
        ("/call/{name}/x", 404), ("/call/{name}/1.0", 404), ("/call/{name}/%D9%A1", 404),
        ("/call/{name}/999999999999999999999999", 404), ("/call/{name}/" + "9" * 5000, 404),
        ("/call/0123456789ab/request", 404), ("/call/0123456789ab/1", 404), ("/call/0123456789AB/1", 404),
        ("/call/x/request", 404), ("/call/%00/request", 404), ("/call/{name}/", 404), ("/call/{name}", 404),
        ("/call/{name}1/request", 404), ("/nothing", 404), ("/static/../pages.py", 404),
        ("/static/%2e%2e/pages.py", 404), ("/static/site.css", 200),
    ],
)  # fmt: skip
async def test_an_address_that_leads_nowhere_is_told_so(tmp_path: Path, path: str, status: int) -> None:
    async with visitor(tmp_path / "a.db") as me:
        name = (await me.ask("Is it?")).names[0].partition(":")[0]
        page = await me.get(path.replace("{name}", name))
        assert me.sent == 2
    assert page.status == status
    assert b"Traceback" not in page.body
    if page.headers["Content-Type"].startswith("text/html"):
        assert len(page.html.one("p", class_="stop").text) > 10


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nothing", ""), ("/static/nothing.css", ""), ("/call/x", ""), ("/%3Cb%3E", ""), ("//[", ""),
        ("/v1/v1/systemone", "take /v1 off"), ("/v1", "is /v1/systemone"), ("/to/nobody", "ASKONCE_DESTINATIONS"),
    ],
)  # fmt: skip
async def test_a_browser_gets_a_page_where_nothing_is_and_a_program_json(tmp_path: Path, path: str, words: str) -> None:
    async with visitor(tmp_path / "a.db") as me:
        page = await me.get(path, Accept=BROWSER)
        others = [await me.get(path, Accept=accept) for accept in ("*/*", "application/json", "")]
        head = await me.request("HEAD", path, Accept=BROWSER)
        log = me.here.log[-5:]
    assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert page.html.one("h1").text == "There is nothing here"
    assert words in page.main
    assert [one.text for one in page.html.one("main").all("a")] == ["To the front page"]
    assert "robots" in {meta.get("name") for meta in (found.attributes for found in page.html.all("meta"))}
    assert b"<b>" not in page.body.partition(b"<main")[2].partition(b"</main>")[0]
    assert_guarded(page)
    assert (head.status, head.body) == (404, b"")
    assert {(one.status, one.headers["Content-Type"]) for one in others} == {(404, "application/json")}
    assert log == [("nowhere", 404)] * 5


async def test_every_page_has_a_line_in_the_log_without_a_word_of_anybodys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with visitor(tmp_path / "a.db") as me:
        del me.here.log[:]
        name, _, _ = (await me.ask("Is it?")).names[0].partition(":")
        await me.get()
        await me.get(f"/call/{name}/request")
        await me.get(f"/call/{name}/1")
        await me.get(f"/call/{name}/2")
        await me.request("POST", "/ask", ASK)
        await me.get("/", Host="evil.example")
        log = list(me.here.log)
    assert log == [
        ("POST /ask", 303),
        ("GET /", 200),
        ("GET /", 200),
        ("GET /call/{name}/request", 200),
        ("GET /call/{name}/{n}", 200),
        ("GET /call/{name}/{n}", 404),
        ("POST /ask", 403),
        ("GET /", 403),
    ]
    await _as_json(log, capsys)


async def _as_json(log: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for route, status in log:
        lines(route, status, 0.0123)
    lines.flush()
    written = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["route"], line["status"], line["ms"]) for line in written] == [(*entry, 12.3) for entry in log]


async def test_a_page_is_compressed_for_who_takes_it_and_the_same(tmp_path: Path) -> None:
    async with visitor(tmp_path / "a.db") as me:
        plain = await me.get("/build")
        packed = await me.get("/build", Accept_Encoding="gzip")
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


async def test_the_owner_names_the_site_and_says_a_word_at_its_foot(tmp_path: Path) -> None:
    named: dict[str, Any] = {
        "site_name": "Tea & <Co>",
        "site_tagline": "asked once",
        "site_footer": "Ask the <owner>.",
    }
    async with visitor(tmp_path / "a.db", **named) as me:
        home = (await me.get("/")).html
        asked = (await me.ask("Is it?")).html
        card = await me.get("/card.png")
    assert home.one("title").text == "Tea & <Co>"
    assert home.one("header").one("a", class_="note").text == "Tea & <Co>asked once"
    assert "Ask the <owner>. Answers come from" in asked.one("footer").text
    assert home.one("meta", property="og:site_name")["content"] == "Tea & <Co>"
    assert card.body.startswith(b"\x89PNG")
