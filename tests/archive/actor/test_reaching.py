"""Where the network model connects: looked up once, for the very connection, and nowhere inside (B66)."""

import socket
from typing import Any

import aiohttp
import pytest

from archive.actor.model import NetworkModel, reach
from archive.attempts import Came, NotSent, Reply, Why
from archive.messages import Key
from archive.request import Destination, Request
from tests.fakes import body, upstream

WRONG = NotSent(Why.WRONG_ADDRESS)


def to(url: str) -> Request:
    return Request(Destination("systemone", "POST", url), body())


class Names:
    """Answers look-ups with what the test says, the nth with the nth; counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.asked: list[str] = []
        self.answers = list(answers)

        async def resolve(_: Any, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> Any:
            self.asked.append(host)
            found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            return [
                {"hostname": host, "host": address, "port": port, "proto": 0, "flags": socket.AI_NUMERICHOST,
                 "family": socket.AF_INET6 if ":" in address else socket.AF_INET}
                for address in found
            ]  # fmt: skip

        monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)


async def once(request: Request, key: Key = Key("secret"), *, private: bool = False) -> Came:  # noqa: B008 - a constant
    async with NetworkModel(private=private) as model:
        return await model.answer(request, key)


INSIDE = [["127.0.0.1"], ["::1"], ["10.0.0.7"], ["169.254.169.254"], ["100.100.100.200"], ["fd00:ec2::254"],
          ["::ffff:127.0.0.1"], ["0.0.0.0"], ["224.0.0.1"], ["168.63.129.16"],  # noqa: S104
          ["1.1.1.1", "127.0.0.1"], ["fe80::1"]]  # fmt: skip


@pytest.mark.parametrize("answer", INSIDE, ids=" ".join)
async def test_a_name_that_leads_inside_is_refused_before_anything_connects(
    monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    async with upstream() as far:
        Names(monkeypatch, answer)
        port = far.url.rpartition(":")[2]
        assert await once(to(f"http://metadata.example:{port}/v1/systemone")) == WRONG
    assert far.got == []


async def test_with_leave_a_name_may_lead_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as far:
        Names(monkeypatch, ["127.0.0.1"])
        came = await once(to(far.url.replace("127.0.0.1", "model.lan") + "/v1/systemone"), private=True)
    assert isinstance(came, Reply)
    assert far.got[0].headers["host"].startswith("model.lan:")


async def test_what_was_checked_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that leads elsewhere when it is looked up again: a connection is made with the very answer it checked."""
    names = Names(monkeypatch, ["1.1.1.1"], ["127.0.0.1"])
    connected: list[str] = []

    async def connect(addr_infos: Any, **_: Any) -> Any:
        connected.extend(info[4][0] for info in addr_infos)
        raise OSError("no network in tests")

    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", connect)
    async with NetworkModel() as model:
        assert await model.answer(to("https://rebind.example/x"), Key()) == NotSent(Why.NO_CONNECTION)
    async with NetworkModel() as model:
        assert await model.answer(to("https://rebind.example/x"), Key()) == WRONG
    assert (names.asked, connected) == (["rebind.example"] * 2, ["1.1.1.1"])


async def test_localhost_is_this_machine_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as far:
        Names(monkeypatch, ["127.0.0.1"], ["10.0.0.7"])
        url = far.url.replace("127.0.0.1", "localhost") + "/v1/systemone"
        assert isinstance(await once(to(url)), Reply)
        assert await once(to(url)) == WRONG


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "100.100.100.200", "0.0.0.0", "[::ffff:127.0.0.1]", "[fe80::1]", "224.0.0.1"],  # noqa: S104
)
async def test_an_address_is_checked_too(host: str) -> None:
    assert await once(to(f"http://{host}:9/v1/systemone")) == WRONG


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "0177.0.0.1"])
async def test_an_address_in_an_odd_spelling_reaches_nobody(host: str) -> None:
    async with upstream() as far:
        port = far.url.rpartition(":")[2]
        assert isinstance(await once(to(f"http://{host}:{port}/v1/systemone")), NotSent)
    assert far.got == []


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "api-key", "x-goog-api-key"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_key_goes_in_its_header_and_never_to_where_a_redirect_points(header: str, status: int) -> None:
    """B67."""
    async with upstream() as far, upstream() as elsewhere:
        far.status, far.headers = status, [("location", f"{elsewhere.url}/x"), ("refresh", f"0; {elsewhere.url}")]
        came = await once(to(f"{far.url}/v1/systemone"), Key("sentinel", header))
    assert isinstance(came, Reply) and came.status == status
    sent = {name: value for name, value in far.got[0].headers.items() if "sentinel" in value}
    assert sent == {header: "Bearer sentinel" if header == "authorization" else "sentinel"}
    assert elsewhere.got == []


async def test_an_address_goes_up_exactly_as_it_is_kept() -> None:
    path = "/a/%7Eb%20c/d;e=f:g@h?x=%41+%2F&y=(1)"
    async with upstream() as far:
        await once(to(far.url + path))
    assert [got.path for got in far.got] == [path]


async def test_a_look_whether_a_name_can_be_reached_says_when_no_call_may_go_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look_up(_: Any, port: int, *__: Any, **___: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    async with upstream() as far:
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        url = far.url.replace("127.0.0.1", "model.example")
        said = [await reach(where, 5, private=private) for where in (url, far.url) for private in (False, True)]
    assert said == ["its name leads inside a network, where calls go only with private = true", "", "", ""]
    assert far.got == []
