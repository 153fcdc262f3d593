"""Access tokens and what was sent for them; and which requests visitors of the public pages may see.

What must never be here: what a token may do (archive/tokens.py), a secret.
"""

from typing import Any

from archive.actor.store.rows import Rows
from archive.admin import AddToken, InUse, RevokeToken, check_token
from archive.errors import Invalid, NotFound
from archive.tokens import Token

_SELECT = """
SELECT k.hash, k.id, n.bytes, k.private, k.fresh, k.day_calls_max, k.minute_asks_max, k.made_at, k.revoked_at
FROM token k JOIN text n ON n.id = k.name"""


class Tokens(Rows):
    """The part of the record that is about who may ask, and who may see."""

    def add_token(self, added: AddToken, at: int) -> int:
        """Write a token; its number. Numbers only grow, and no token is ever deleted."""
        made = self.db.execute(
            "INSERT INTO token (hash, name, private, fresh, day_calls_max, minute_asks_max, made_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                added.hash,
                self.text(added.name.encode()).id,
                added.private,
                added.fresh,
                added.day_calls_max,
                added.minute_asks_max,
                at,
            ),
        )
        return made.lastrowid or 0

    def revoke_token(self, number: int, at: int) -> None:
        """Write when a token was revoked, once."""
        self.db.execute("UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (at, number))

    def token(self, number: int) -> Token | None:
        """Token `number`."""
        row = self.db.execute(_SELECT + " WHERE k.id = ?", (number,)).fetchone()
        return None if row is None else _token(row)

    def tokens(self) -> dict[bytes, Token]:
        """Every token there ever was, by the hash of its secret, in the order they were made."""
        return {row[0]: _token(row) for row in self.db.execute(_SELECT + " ORDER BY k.id")}

    def tokens_in_use(self, day: int) -> tuple[InUse, ...]:
        """Every token with what was sent for it on `day`."""
        sent = dict(self.db.execute("SELECT token, sent FROM token_budget WHERE day = ?", (day,)).fetchall())
        return tuple(InUse(token, sent.get(token.number, 0)) for token in self.tokens().values())

    def spend_token(self, number: int, day: int) -> int:
        """Count one sending for a token; how many that makes on this day."""
        spent = self.db.execute(
            "INSERT INTO token_budget (day, token, sent) VALUES (?, ?, 1)"
            " ON CONFLICT (day, token) DO UPDATE SET sent = sent + 1 RETURNING sent",
            (day, number),
        )
        return spent.fetchone()[0]

    def spent_token(self, number: int, day: int) -> int:
        """How many sendings the day's budget of a token counts so far."""
        row = self.db.execute("SELECT sent FROM token_budget WHERE token = ? AND day = ?", (number, day)).fetchone()
        return row[0] if row else 0

    def is_hidden(self, request: int) -> bool:
        """Is a request not for visitors? While no token was ever made, everything is for everybody."""
        return bool(
            self.db.execute(
                "SELECT EXISTS (SELECT 1 FROM token) AND NOT EXISTS (SELECT 1 FROM public_request WHERE request = ?)",
                (request,),
            ).fetchone()[0]
        )

    def make_public(self, request: int) -> None:
        """A visitor asked it through a public page, so visitors may see it."""
        # Looked for first: where nothing can be written, what is public already is still served.
        if self.db.execute("SELECT 1 FROM public_request WHERE request = ?", (request,)).fetchone() is None:
            self.db.execute("INSERT INTO public_request (request) VALUES (?)", (request,))


def _token(row: Any) -> Token:
    _, number, name, private, fresh, *rest = row
    return Token(number, "" if name is None else name.decode(), bool(private), bool(fresh), *rest)


def issued(record: Tokens, message: AddToken | RevokeToken, now: int) -> tuple[bytes, Token]:
    """Write a token, or that it was revoked; the hash of its secret, and the token. Raises Invalid, NotFound."""
    tokens = record.tokens()
    if isinstance(message, AddToken):
        check_token(message)
        if message.hash in tokens:
            raise Invalid("There is a token with this very secret.")
        if any(token.name == message.name and token.revoked_at is None for token in tokens.values()):
            raise Invalid(f"There is a token named {message.name}. Revoke that one first, or choose another name.")
        number = record.add_token(message, now)
    else:
        number = message.number
        record.revoke_token(number, now)
    found = next(((hash, token) for hash, token in record.tokens().items() if token.number == number), None)
    if found is None:
        raise NotFound(f"There is no token number {number}.")
    return found
