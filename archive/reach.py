"""Which places on the network a call may go to: addresses, host names as they are spelled, base URLs, queries.

The owner names every destination; this is for names that lead somewhere else than they say, and for spellings that two
programs read as two addresses. What must never be here: a look-up.
"""

import ipaddress
import re
from urllib.parse import unquote, unquote_plus, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
"""Where machines of the large clouds are told their own keys: AWS and most, Alibaba, Azure, Oracle, AWS over IPv6."""

KEY_WORDS = frozenset(
    [
        "accesskey", "accesstoken", "apikey", "auth", "authkey", "authorization", "authtoken", "bearer", "clientsecret",
        "cookie", "credential", "jwt", "key", "passwd", "password", "pwd", "secret", "session", "sessionid", "sid",
        "sig", "signature", "subscriptionkey", "token",
    ]
)  # fmt: skip
"""Words in the name of a header or a query parameter that say that its value is a key."""

GLUED = ("accesskey", "accesstoken", "apikey", "authkey", "authtoken", "secretkey", "subscriptionkey")
"""They say so at the end of a longer word too."""

_NOBODY = ipaddress.ip_network("0.0.0.0/8")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$'()*+,;:@/?&=-]|%[0-9A-Fa-f]{2})*")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SEGMENT = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")


def literal(host: str) -> Address | None:
    """The address a host is, when it is one; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def may_reach(address: Address, *, named: bool = False, private: bool = False) -> bool:
    """May a call go to this address?

    `named`: the owner wrote this very address, so it may be in a private range or this machine. `private`: the owner
    said that this destination may be anywhere inside, even where machines are told their keys. Multicast and addresses
    that name nobody are never reached, nor any that hides another one.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        elif address.ipv4_mapped is not None or address.sixtofour is not None or address.teredo is not None:
            return False
    if address.is_loopback:
        return named or private
    if address.is_multicast or address.is_unspecified or address in _NOBODY or address.is_reserved:
        return False
    if private:
        return True
    if address.is_link_local or address in METADATA:
        return False
    return named or (address.is_global and not getattr(address, "is_site_local", False))


def is_here(host: str) -> bool:
    """Does this name or address mean this very machine, by its spelling alone?"""
    address = literal(host)
    return host == "localhost" if address is None else address.is_loopback


def base_problem(url: str) -> str:
    """What is wrong with a URL that calls are to go below, as the end of a sentence; empty when it is fine.

    It never repeats the URL, which may hold a key by mistake.
    """
    if "@" in url:
        return "must hold no user or password"
    if "?" in url or "#" in url:
        return "must hold no query and no fragment"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        return "must begin with https:// and name a host"
    if not parts.netloc.isascii():
        return "must name its host in ASCII: a name in other letters has a spelling that begins with xn--"
    if not path_is_plain(parts.path) or not url.isascii() or not url.isprintable() or " " in url:
        return "must have a plain path, without dots for a folder, slashes in a row or anything encoded that hides one"
    address = literal(host)
    if address is None and not _is_name(host):
        return "must name its host plainly: a name without a dot at its end, or an address in its usual spelling"
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None):
        return "must name its host plainly: not an address inside another, nor one with a zone"
    return ""


def _is_name(host: str) -> bool:
    """A name of plain labels. One that ends in a number is read as an address by some programs, so it is none here."""
    labels = host.split(".")
    return len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])


def path_is_plain(path: str) -> bool:
    """Is it empty, or a path that no program reads as another one? Dot segments, `//`, backslashes and encoded slashes,
    percents and control characters are read differently here and there, so none of them is taken.
    """
    if path == "":
        return True
    first, *segments = path.split("/")
    if first or not segments or "" in segments[:-1]:
        return False
    return all(map(_segment_is_plain, segments))


def _segment_is_plain(segment: str) -> bool:
    if not _SEGMENT.fullmatch(segment):
        return False
    plain = unquote(segment, "latin-1")
    # What follows a semicolon is a parameter to some servers, which then see the dots alone.
    if plain.partition(";")[0] in {".", ".."}:
        return False
    return not any(letter in "/\\%" or letter < " " or letter == "\x7f" for letter in plain)


def query_is_plain(query: str) -> bool:
    """Does it hold only what stands in a query as it is, everything else percent-encoded?"""
    return _QUERY.fullmatch(query) is not None


def query_problem(query: str) -> str:
    """What is wrong with a query that goes up and is kept, as the end of a sentence; empty when it is fine."""
    if not query_is_plain(query):
        return "holds a character that must be percent-encoded"
    names = (unquote_plus(pair.partition("=")[0]) for pair in re.split("[&;]", query))
    if any(map(looks_like_a_key, names)):
        return "holds what looks like a key by its name, and queries are kept: keys go in a header"
    return ""


def looks_like_a_key(name: str) -> bool:
    """Does the name of a header or of a query parameter say that its value is a key?

    `tokens` alone does not: that is how much a model may write.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if any(word in KEY_WORDS or (word != "tokens" and word.removesuffix("s") in KEY_WORDS) for word in words):
        return True
    return "".join(words).removesuffix("s").endswith(GLUED)
