"""Where a call may go: what is inside a network is reached only when named, and odd spellings name nothing (B66)."""

import ipaddress

import pytest

from archive.reach import base_problem, is_here, literal, may_reach, path_is_plain

PUBLIC = ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"]
LOOPBACK = ["127.0.0.1", "127.9.9.9", "::1", "64:ff9b::7f00:1"]
INSIDE = ["10.0.0.7", "172.16.0.1", "172.31.255.255", "192.168.0.7", "100.64.0.1", "fd00::7", "fec0::1", "198.18.0.1",
          "64:ff9b::a00:7"]  # fmt: skip
NEVER_BY_NAME = ["169.254.169.254", "169.254.0.1", "fe80::1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
                 "fd00:ec2::254", "64:ff9b::a9fe:a9fe"]  # fmt: skip
NEVER = ["0.1.2.3", "0.0.0.0", "::", "224.0.0.1", "239.255.255.250",  # noqa: S104
         "ff02::1", "255.255.255.255", "240.0.0.1",
         "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "2002:7f00:1::", "2001:0:1:2:3:4:5:6",
         "64:ff9b::e000:1"]  # fmt: skip

MAY = {
    **dict.fromkeys(PUBLIC, (True, True, True)),
    **dict.fromkeys(LOOPBACK, (False, True, True)),
    **dict.fromkeys(INSIDE, (False, True, True)),
    **dict.fromkeys(NEVER_BY_NAME, (False, False, True)),
    **dict.fromkeys(NEVER, (False, False, False)),
}


@pytest.mark.parametrize("text", MAY)
def test_an_address_is_reached_by_a_name_by_its_own_spelling_or_with_leave(text: str) -> None:
    address = ipaddress.ip_address(text)
    assert (may_reach(address), may_reach(address, named=True), may_reach(address, private=True)) == MAY[text]


def test_only_this_very_machine_is_here() -> None:
    here = ["127.0.0.1", "127.9.9.9", "::1", "localhost"]
    there = ["127.0.0.1.example", "0.0.0.0", "192.168.0.1", "localhost.example", "", "2130706433"]  # noqa: S104
    assert [is_here(host) for host in here + there] == [True] * len(here) + [False] * len(there)
    assert [literal(host) for host in ("localhost", "2130706433", "0x7f.1", "127.1", "")] == [None] * 5


FINE = ["https://api.typesafe.ai", "https://openrouter.ai/api", "https://openrouter.ai/api/", "http://127.0.0.1:8080",
        "http://[::1]:8080/typesafe", "HTTPS://API.EXAMPLE", "https://my_model.lan", "https://xn--bcher-kva.example/v1",
        "https://a.example/v1:x/%7Emodel", "https://10.0.0.7/x", "https://localhost", "https://4.example"]  # fmt: skip


@pytest.mark.parametrize("url", FINE)
def test_a_plain_base_url_is_fine(url: str) -> None:
    assert base_problem(url) == ""


ODD = {
    "user": ["https://u:sentinel@a.example", "https://sentinel@a.example", "https://a.example/x@sentinel"],
    "query": ["https://a.example?sentinel", "https://a.example/?", "https://a.example#sentinel"],
    "https://": ["ftp://a.example", "file:///etc/passwd", "gopher://a.example", "a.example", "https://", "https:///x",
                 "//a.example", "", "https://a.example:0", "javascript:alert(1)"],
    "URL": ["https://a.example:99999", "https://a.example:x", "https://[::1", "https://[x]"],
    "path": ["https://a.example//x", "https://a.example/x//y", "https://a.example/../x", "https://a.example/./x",
             "https://a.example/x/..", "https://a.example/%2e%2E/x", "https://a.example/.%2e", "https://a.example/%2f",
             "https://a.example/%5c", "https://a.example/%252e", "https://a.example/..;/x", "https://a.example/\\x",
             "https://a.example/ x", "https://a.example/x\n", "https://a.ex\tample", "https://a.example/%0a",
             "https://a.example/ä", "https://a.example/%zz", "https://a.example/{x}"],
    "xn--": ["https://ä.example", "https://é.b", "https://a.é/v1", "https://\uff41.example"],
    "plainly": ["http://2852039166/", "http://0x7f.1", "http://0x7f000001", "http://127.1", "http://0177.0.0.1",
                "http://127.0.0.1.", "http://a.example.", "http://metadata.google.internal./", "https://a..example",
                "https://.example", "https://-a.example", "https://a.example-", "https://1.2.3.4.5", "https://a.0x1",
                "https://a.1", "http://[::ffff:169.254.169.254]/", "http://[::ffff:127.0.0.1]", "http://[fe80::1%25e]",
                "https://" + "a." * 130 + "example"],
}  # fmt: skip


@pytest.mark.parametrize(("words", "url"), [(words, url) for words, urls in ODD.items() for url in urls])
def test_an_odd_base_url_is_refused_and_not_repeated(words: str, url: str) -> None:
    problem = base_problem(url)
    assert words in problem
    assert "sentinel" not in problem


def test_a_path_is_plain_when_nobody_can_read_it_as_another() -> None:
    plain = ["", "/", "/x", "/x/", "/v1/systemone", "/models/a.b:c@d", "/%7Ex", "/x%20y", "/...", "/..x", "/x;y=1"]
    odd = ["x", "//", "//x", "/x//", "/x//y", "/.", "/..", "/../x", "/x/.", "/x/../y", "/%2e", "/%2E%2e/x", "/.%2e/x",
           "/%2f", "/x%2Fy", "/%5C", "/\\x", "/%25", "/%252e%252e/x", "/..;/x", "/.;x", "/%2e%2e;/x", "/%00", "/%0d%0a",
           "/%7f", "/x y", "/x\n", "/é", "/%", "/%2", "/%gg", "/x?y", "/x#y", "/[x]", "/x|y", '/"x"',
           "/<x>"]  # fmt: skip
    assert [path for path in plain if not path_is_plain(path)] == []
    assert [path for path in odd if path_is_plain(path)] == []
