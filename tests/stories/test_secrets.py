"""What a real process prints and leaves on disk: neither anybody's words nor anybody's key where they do not belong."""

import asyncio
import base64
import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from tests.commands import Owner
from tests.fakes import answer, body, site, upstream
from tests.process import Process, process
from tests.stored import rows
from tests.stories.test_own_words import REFUSE, change

FIRST = "mallow"
WORDS = f"{FIRST} heron 7741"
"""Stands for what somebody asked. It must be on disk, and never in a line of the log."""

KEYS = {"owner": "sk-owner-Zq81", "caller": "sk-caller-Xw27"}


def spellings(text: str) -> list[bytes]:
    """A text as it might be written somewhere."""
    raw = text.encode()
    return [raw, quote(text).encode(), raw.hex().encode(), base64.b64encode(raw).rstrip(b"=")[:-1], raw[::-1]]


def assert_absent(text: str, output: str) -> None:
    assert [spelling for spelling in spellings(text) if spelling in output.encode()] == []


def on_disk(store: Path) -> bytes:
    """Every byte beside and of a store, its -wal and lock file included."""
    return b"".join(file.read_bytes() for file in sorted(store.parent.iterdir()))


def lines(output: str) -> list[dict[str, object]]:
    """The lines of the log about requests."""
    return [json.loads(line) for line in output.splitlines() if '"route"' in line]


@pytest.mark.parametrize("owner", ["", KEYS["owner"]])
async def test_no_key_is_ever_on_disk_or_printed(tmp_path: Path, owner: str) -> None:
    """C-30: in the store, in its -wal after a kill, or in the output; not even when the upstream refuses it."""
    store = tmp_path / "store" / "a.db"
    async with upstream() as model:
        async with process(store, model.url, ASKONCE_MODEL_KEY=owner) as here:
            assert (await here.ask(Authorization=f"Bearer {KEYS['caller']}")).status == 200
            await here.ask(
                body("b"), Authorization=f"Bearer {KEYS['caller']}", X_Api_Key=KEYS["caller"], Cookie=KEYS["caller"]
            )
            await here.send("GET", "/v1/models", Authorization=f"Bearer {KEYS['caller']}")
            model.status = 429
            await here.ask(body("c"), Authorization=f"Bearer {KEYS['caller']}")
            await here.ask(body("d"), Authorization=f"Bearer {KEYS['caller']}")
            await here.kill()
        killed = tmp_path / "killed"
        shutil.copytree(store.parent, killed)
        assert (killed / "a.db-wal").stat().st_size > 0
        async with process(store, model.url, ASKONCE_MODEL_KEY=owner) as again:
            await again.terminate()
    went_up = owner or KEYS["caller"]
    assert {got.headers["authorization"] for got in model.got} == {f"Bearer {went_up}"}
    everything = on_disk(killed / "a.db") + on_disk(store)
    assert answer() in everything
    for key in KEYS.values():
        assert [spelling for spelling in spellings(key) if spelling in everything] == []
        assert_absent(key, here.output() + again.output())


HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "x-subscription-token"]


async def test_no_key_of_any_destination_is_ever_on_disk_or_printed(tmp_path: Path) -> None:
    """B67 to B69: the owner's, from the environment, and callers', in every header; after a kill, refusals and all."""
    store, file = tmp_path / "store" / "a.db", tmp_path / "d.toml"
    secret = {f"KEY_{n}": f"sk-environment-{n}-Vb93" for n in range(5)}
    async with upstream() as model, upstream() as elsewhere:
        file.write_text(
            f'[root]\nurl = "{model.url}"\nserves = "/"\nkey_env = "KEY_0"\n'
            f'[named]\nurl = "{model.url}/n"\nkey_env = "KEY_1"\nkey_header = "x-api-key"\nforward = ["openai-beta"]\n'
            + "".join(f'[own{n}]\nurl = "{model.url}/{n}"\nkey_header = "{name}"\n' for n, name in enumerate(HEADERS))
        )
        async with process(store, "", ("-m", "web"), ASKONCE_DESTINATIONS=str(file), **secret) as here:
            mine = {name.replace("-", "_"): f"Bearer {KEYS['caller']}" for name in [*HEADERS, "cookie"]}
            sent = mine | {"Content_Type": "application/json"}
            for path in ("/v1/systemone", "/to/named/x", *(f"/to/own{n}/x" for n in range(len(HEADERS)))):
                assert (await here.send("POST", path, body(), **sent)).status == 200
            await here.send("POST", f"/to/named/x?api_key={KEYS['caller']}", body(), **sent)
            model.status, model.headers = 307, [("location", f"{elsewhere.url}/v1/systemone")]
            for path in ("/v1/systemone", "/to/named/x", *(f"/to/own{n}/x" for n in range(len(HEADERS)))):
                await here.send("POST", path, body("b"), **sent)
            model.status = 429
            await here.send("POST", "/to/named/x", body("c"), **sent)
            await here.kill()
    went_up = "".join(value for got in model.got for value in got.headers.values())
    assert secret["KEY_0"] in went_up and secret["KEY_1"] in went_up and KEYS["caller"] in went_up
    assert elsewhere.got == []
    everything = on_disk(store)
    assert answer() in everything
    for key in [*secret.values(), KEYS["caller"]]:
        assert [spelling for spelling in spellings(key) if spelling in everything] == []
        assert_absent(key, here.output())


async def test_a_name_and_a_password_and_a_key_in_a_socket_s_offer_are_nowhere_either(tmp_path: Path) -> None:
    """B68: in front of the host, in Authorization as Basic, and as the subprotocol that browsers have to use for it."""
    store, words = tmp_path / "store" / "a.db", KEYS["caller"]
    basic = base64.b64encode(f"user:{words}".encode()).decode()
    async with upstream() as model, process(store, model.url) as here:
        named = here.url.replace("//", f"//user:{words}@")
        headers = {"Content-Type": "application/json"}
        async with here.http.post(named + "/v1/systemone", data=body(), headers=headers) as said:
            assert said.status == 200
        assert (await here.ask(body("b"), Authorization=f"Basic {basic}")).status == 200
        for path in ("/live", "/wire"):
            offered = {"Sec-WebSocket-Protocol": f"bearer, {words}", "Origin": here.url}
            with suppress(aiohttp.WSServerHandshakeError):
                async with here.http.ws_connect(here.url + path, headers=offered) as ws:
                    await ws.close()
        await here.kill()
    assert [got.headers.get("authorization") for got in model.got] == [None, None]
    everything = on_disk(store)
    assert answer() in everything
    for secret in (words, basic):
        assert [spelling for spelling in spellings(secret) if spelling in everything] == []
        assert_absent(secret, here.output())


async def raw(here: Process, data: bytes) -> None:
    """Send bytes that no HTTP client would, and wait for what comes of them."""
    host, _, port = here.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    writer.write_eof()
    await reader.read()
    writer.close()


DATA = Path(__file__).parents[1] / "data" / "exchange"
URL = "https://api.typesafe.ai/v1/systemone"


async def test_a_url_with_a_key_in_it_is_refused_by_line_for_every_format(tmp_path: Path) -> None:
    """As the API refuses it: what is in an address is kept, and stands in every export."""
    owner, store = Owner(tmp_path / "a.db"), tmp_path / "gateway.sqlite"
    await owner.inside("ask", "--noul", "Is it so?", "--state", "First.")
    first, line = (await owner.inside("export")).out.splitlines()
    shutil.copy(DATA / "gateway.sqlite", store)
    for number, url in enumerate(
        (f"{URL}?api_key=sentinel", f"{URL}?a=1&XApiKey=sentinel", "https://u:sentinel@a.example/v1")
    ):
        said = json.loads(line)
        said["request"]["destination"]["url"] = url
        export = tmp_path / f"{number}.jsonl"
        export.write_bytes(first + b"\n" + json.dumps(said).encode())
        with closing(sqlite3.connect(store)) as db, db:
            db.execute("UPDATE observations SET endpoint = ?", (url,))
        commands = [
            ("import", str(export), "--yes"),
            ("import", str(DATA / "golden.jevl"), "--from", "jevkit", "--url", url, "--yes"),
            ("import", str(store), "--from", "decision-gateway", "--yes"),
        ]
        for words in commands:
            ran = await owner.inside(*words)
            assert ran.code == 2 and " is refused: its destination's" in ran.err, (words, ran.err)
            assert "sentinel" not in ran.err + ran.text and ran.text.startswith("     0  added")
    assert rows(owner.store, "SELECT count(*) FROM answer") == [(1,)]
    assert rows(owner.store, "SELECT count(*) FROM text WHERE instr(bytes, CAST('sentinel' AS BLOB))") == [(0,)]


async def test_every_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    """Whoever cannot show a token must not read the answers past the server."""
    store = tmp_path / "made" / "a.db"
    owner = Owner(store)
    before = os.umask(0)
    try:
        async with process(store) as here:
            assert (await here.ask()).status == 200
            running = _modes(store.parent)
            out = [await owner.run(word, str(store.parent / name)) for word, name in FILES]
            await here.terminate()
        erased = await owner.run("erase", "nobody ever wrote these words", "--yes")
        restored = await owner.run("restore", str(store.parent / "backup.db"))
        alone = Owner(tmp_path / "alone" / "b.db")
        asked = await alone.run("ask", "--noul", "Is it so?", "--state", "So.")
    finally:
        os.umask(before)
    assert [ran.code for ran in (*out, erased, restored, asked)] == [0] * 5, [ran.err for ran in (*out, restored)]
    assert {"a.db", "a.db-wal", "a.db-shm"} <= running.keys() and set(running.values()) == {"600"}
    found = _modes(store.parent) | _modes(alone.store.parent)
    assert {"a.db", "backup.db", "answers.jsonl", "b.db"} <= found.keys()
    assert any(".before-" in name for name in found)
    assert found == dict.fromkeys(found, "600")
    assert {f"{path.stat().st_mode & 0o777:o}" for path in (store.parent, alone.store.parent)} == {"700"}


FILES = (("backup", "backup.db"), ("export", "answers.jsonl"))


def _modes(folder: Path) -> dict[str, str]:
    return {file.name: f"{file.stat().st_mode & 0o777:o}" for file in folder.iterdir()}


async def test_the_log_names_route_status_and_milliseconds_and_never_a_word(tmp_path: Path) -> None:
    """Whatever carries the words: path, query, body, headers, a broken request, a reply, a refusal that echoes them."""
    url = quote(WORDS)
    async with upstream() as model, process(tmp_path / "a.db", model.url) as here:
        await here.ask(body(WORDS), User_Agent=WORDS, Referer=WORDS, Authorization=f"Bearer {WORDS}", Cookie=WORDS)
        await here.ask(body(WORDS), TypeSafe_Danger_Zone_Images=WORDS)
        await here.send("POST", f"/v1/systemone?q={url}", body(WORDS), Content_Type="application/json")
        await here.send("GET", f"/v1/models?q={url}")
        await here.send("GET", f"/{url}?q={url}")
        await here.send(FIRST, f"/v1/systemone/{url}")
        await here.ask(body(WORDS), Content_Type=WORDS)
        await here.ask(body(WORDS), Content_Encoding="gzip")
        await here.ask(body(WORDS), Archive_Answer=WORDS)
        await here.ask(body(WORDS), Origin=f"https://{url}.example")
        await here.ask(body(WORDS), Host=f"{url}.example")
        await raw(here, f"{WORDS} / HTTP/9\r\n\r\n".encode())
        await raw(here, f"POST /v1/systemone HTTP/1.1\r\n{WORDS}\r\n\r\n".encode())
        model.reply = json.dumps({"error": WORDS}).encode()
        await here.ask(body(WORDS + "?"))
        model.status, model.reply = 422, json.dumps({"detail": [{"input": WORDS}]}).encode()
        await here.ask(body(WORDS + "!"))
        model.status, model.reply = 200, WORDS.encode()
        model.headers = [("content-type", WORDS), ("x-typesafe-request-id", WORDS)]
        await here.ask(body(WORDS + "."))
        assert await here.terminate() == 0
    said = lines(here.output())
    assert {tuple(line) for line in said} == {("at", "route", "status", "ms")}
    assert {line["route"] for line in said} == {"POST /v1/systemone", "GET /v1/models", "nowhere"}
    assert [line["status"] for line in said][:3] == [200, 200, 400]
    assert_absent(WORDS, here.output())
    assert_absent(FIRST, here.output())


@pytest.mark.parametrize("table", ["text", "dispatch", "answer"])
async def test_a_row_that_cannot_be_written_is_never_written_into_the_log(tmp_path: Path, table: str) -> None:
    """B48: an answer that cannot be kept is handed out marked, and the failure is told by its kind alone."""
    store = tmp_path / "a.db"
    async with upstream() as model:
        model.reply = answer()[:-1] + b',"x_words":"%s"}' % WORDS.encode()
        async with process(store, model.url) as here:
            # Another program's doing, while the server runs: a store that is so at the start is not opened.
            change(store, REFUSE.format(table))
            first = await here.ask(body(WORDS))
            await here.ask(body(WORDS + "?"))
            assert await here.terminate() == 0
        change(store, "DROP TRIGGER refuse")
    if table == "answer":
        assert (first.status, first.body, first.headers["Archive-Answer"]) == (
            200,
            model.reply,
            "not in the record yet",
        )
        assert "an outcome could not be written" in here.output()
    else:
        assert (first.status, first.error, model.got) == (500, "internal", [])
    assert "SQLITE_CONSTRAINT_TRIGGER" in here.output()
    assert_absent(WORDS, here.output())
    assert rows(store, "SELECT count(*) FROM answer") == [(0,)]


async def test_an_answer_that_could_not_be_kept_does_not_call_itself_stored(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with upstream() as model, site(store, model.url) as here:
        change(store, REFUSE.format("answer"))
        said = [await here.ask(), await here.ask()]
    for one in said:
        assert (one.status, one.body, one.headers["Archive-Answer"]) == (200, answer(), "not in the record yet")
        assert "stored" not in one.headers["Cache-Status"]
        assert "Archive-Kept-At" not in one.headers and "Age" not in one.headers
    assert len(model.got) == 1


async def test_proxies_named_in_the_environment_are_not_used(tmp_path: Path) -> None:
    async with upstream() as proxy, upstream() as model:
        at, store = proxy.url, tmp_path / "a.db"
        async with process(store, model.url, HTTP_PROXY=at, http_proxy=at, ALL_PROXY=at, all_proxy=at) as here:
            assert (await here.ask()).status == 200
    assert (len(model.got), proxy.got) == (1, [])
