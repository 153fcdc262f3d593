"""Who may ask, in front of the mailbox: the access tokens, how fast each asks, and who was given what lately.

All of it is in memory and changed by the actor alone; tokens only after the commit that made or revoked them.
What must never be here: the record, a secret, an address that could be read.
"""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from archive.admin import Delivery
from archive.doors import Clock
from archive.errors import ArchiveError
from archive.messages import Answered, Ask
from archive.tokens import Minute, Token, admit, may_ask, one_more

DELIVERIES_MAX = 1_000
"""Deliveries that are remembered: enough for the owner to see what goes on now."""

ADDRESSES_MAX = 10_000
"""Addresses whose calls are counted at a time, some 200 bytes each; with more the longest unused is forgotten."""


class Callers:
    """Everyone who asks on a token, or from an address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: dict[bytes, Token] = {}
        self.tokens: Mapping[bytes, Token] = MappingProxyType(self._tokens)
        """By the hash of the secret; revoked ones too. For others to read."""
        self._by_number: dict[int, Token] = {}
        self._asked: dict[int, Minute] = {}
        self.sent: dict[bytes, Minute] = {}
        """What was sent for whom without a token, by address."""
        self._deliveries: deque[Delivery] = deque(maxlen=DELIVERIES_MAX)

    def load(self, tokens: Mapping[bytes, Token]) -> None:
        """All that are on record."""
        for hash, token in tokens.items():
            self.put(hash, token)

    def put(self, hash: bytes, token: Token) -> None:
        """From now on a token is so."""
        self._tokens[hash] = token
        self._by_number[token.number] = token

    def placed(self, ask: Ask) -> Ask:
        """The ask in the archive it belongs to: that of the token it comes on, where it has one of its own."""
        token = self._by_number.get(ask.caller.token)
        if token is None or not token.private:
            return ask
        return msgspec.structs.replace(ask, request=msgspec.structs.replace(ask.request, partition=token.partition))

    def admit(self, ask: Ask) -> None:
        """Count an ask on its token. Raises BadToken, OverLimit; what is refused is not counted."""
        number = ask.caller.token
        if not number:
            return
        token = admit(self._by_number.get(number))
        most = token.minute_asks_max
        if most:
            monotonic, now = self._clock.monotonic(), self._clock.now()
            text = f"This token may ask {most} times a minute. Nothing was sent for this one."
            self._asked[number] = one_more(self._asked.get(number), monotonic, now, most, text)

    def may_join(self, ask: Ask) -> bool:
        """May it join a call on the wire, whatever is on record of the request? The handlers know how that stands."""
        token = self._by_number.get(ask.caller.token)
        return token is None or may_ask(token, ask.pick, unknown=False)

    def take(self, sent: Mapping[bytes, Minute]) -> None:
        """Calls were sent, which is on record: count them by address."""
        for address, minute in sent.items():
            self.sent.pop(address, None)
            self.sent[address] = minute
        while len(self.sent) > ADDRESSES_MAX:
            del self.sent[next(iter(self.sent))]

    def delivered(self, ask: Ask, reply: Answered | ArchiveError) -> Answered:
        """The answer that is handed out now, remembered as that. Raises what the asker is told instead.

        A token that was revoked while its asker waited gets nothing any more; the answer is kept all the same.
        """
        if ask.caller.token:
            admit(self._by_number.get(ask.caller.token))
        if isinstance(reply, ArchiveError):
            raise reply.again()
        kept = reply.kept
        self._deliveries.appendleft(Delivery(kept.call_id, kept.n, self._clock.now(), reply.sent, ask.caller.token))
        return reply

    def forget(self) -> None:
        """Forget who was given what: the calls that are named may have been erased."""
        self._deliveries.clear()

    def deliveries(self) -> tuple[Delivery, ...]:
        """The last deliveries, newest first."""
        return tuple(self._deliveries)
