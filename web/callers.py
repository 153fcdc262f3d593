"""Who an HTTP request comes from: the access token it shows, or else its address in a form nobody can read.

What must never be here: what a caller may do (archive/tokens.py), an address that is held, a secret that is held.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

from starlette.types import Scope

from archive.errors import BadToken
from archive.messages import Caller
from archive.tokens import MISSING, PREFIX, WRONG, Token, hashed
from archive.when import DAY

KEY_BYTES = 32


class Shown(NamedTuple):
    """What is kept in mind of the key that a request shows: its hash (empty: none), and whether it looks like ours."""

    hash: bytes
    ours: bool


class Callers:
    """Tells callers apart."""

    def __init__(self, tokens: Mapping[bytes, Token], now: Callable[[], int], *, addresses: bool) -> None:
        """`tokens`: all there ever were, as they are at each moment; the actor keeps it. `now` gives the moment.

        `addresses`: are callers without a token told apart?
        """
        self._tokens = tokens
        self._now = now
        self._addresses = addresses
        self._day = -1
        self._key = b""

    def of_api(self, scope: Scope, headers: Mapping[bytes, bytes], key_header: bytes = b"") -> Caller:
        """Who asks over the API. While no token was ever made, anybody may. Raises BadToken.

        `key_header`: of the destination's key; a client that can fill no other one shows its token there.
        It is looked for among the hashes and nowhere else, so how long this takes says nothing of what is kept.
        """
        number = self.number(shown_in(headers, key_header))
        return Caller(number) if number else Caller(address=self._address(scope))

    def number(self, shown: Shown) -> int:
        """The number of the token that is shown; 0: none is, and none is needed. Raises BadToken."""
        if not self._tokens and not shown.ours:
            return 0
        if not shown.hash:
            raise BadToken(MISSING, missing=True)
        token = self._tokens.get(shown.hash)
        # A secret of ours that is not known here is refused while the API is open, too: it would go to the model.
        if token is None or token.revoked_at is not None:
            raise BadToken(WRONG)
        return token.number

    def of_page(self, scope: Scope) -> Caller:
        """Who asks through a public page."""
        return Caller(address=self._address(scope), visitor=True)

    def _address(self, scope: Scope) -> bytes:
        """What the caller's calls are counted by: an HMAC of the network, under a key that is thrown away each day."""
        client = scope.get("client")
        if not self._addresses or client is None:
            return b""
        day = self._now() // DAY
        if day != self._day:
            self._day, self._key = day, secrets.token_bytes(KEY_BYTES)
        return hmac.digest(self._key, network(client[0]).encode(), "sha256")[:16]


def shown_in(headers: Mapping[bytes, bytes], key_header: bytes = b"") -> Shown:
    """What a request shows to be let in, as far as it is kept in mind."""
    secret = secret_in(headers, key_header)
    return Shown(hashed(secret), secret.startswith(PREFIX.encode())) if secret else Shown(b"", ours=False)


def secret_in(headers: Mapping[bytes, bytes], key_header: bytes = b"") -> bytes:
    """What a request shows to be let in; empty: nothing. It looks in Authorization: Bearer, X-API-Key and `key_header`.

    A secret of ours before any other: a key for the provider may stand in another one of them.
    """
    shown = [key_in(headers, name) for name in (b"authorization", b"x-api-key", key_header)]
    ours = (secret for secret in shown if secret.startswith(PREFIX.encode()))
    return next(ours, next(filter(None, shown), b""))


def key_in(headers: Mapping[bytes, bytes], name: bytes) -> bytes:
    """The key that stands in a header, in Authorization: Bearer; empty: none."""
    value = headers.get(name, b"")
    if name == b"authorization":
        scheme, _, value = value.partition(b" ")
        return value.strip() if scheme.lower() == b"bearer" else b""
    return value.strip()


def network(address: str) -> str:
    """The network one household or machine has: the /24 of an IPv4 address, the /64 of an IPv6 address.

    What is no address is its own.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 64), strict=False))
