"""`askonce token`: who may ask over the API.

The secret is made here and shown once; what leaves this process is its hash.
"""

import secrets
from typing import Any

import click
import msgspec

from archive.admin import LIMIT_MAX, AddToken, InUse, RevokeToken, Tokens
from archive.errors import NotFound
from archive.tokens import PREFIX, SECRET_BYTES, Token, hashed
from archive.when import iso, shown
from web.commands.home import Home, command
from web.commands.output import Output, dim, visible

LIMIT = click.IntRange(0, LIMIT_MAX)


@click.group("token")
def token() -> None:
    """Make, list and revoke access tokens. Each takes --json.

    Once there is a token, callers of the API must show one.
    """


@token.command("new")
@click.argument("name")
@click.option("--private", is_flag=True, help="What it asks is an archive of its own, shared with nobody.")
@click.option("--no-fresh", is_flag=True, help="It may not ask afresh.")
@click.option("--day-calls", type=LIMIT, default=0, metavar="N", help="Calls that may be sent for it a day (UTC).")
@click.option("--minute-asks", type=LIMIT, default=0, metavar="N", help="Asks a minute, kept answers too.")
@command(makes=True)
async def new(
    home: Home, out: Output, name: str, private: bool, no_fresh: bool, day_calls: int, minute_asks: int
) -> None:
    """Make a token called NAME and show its secret, this once."""
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    made = await home.door.send(AddToken(name, hashed(secret.encode()), private, not no_fresh, day_calls, minute_asks))
    if out.as_json:
        out.document({"secret": secret, **_document(made)})
        return
    out.line(secret)
    out.aside(dim("Keep it now: it is shown this once. Callers show it as Authorization: Bearer, or as X-API-Key."))


@token.command("list")
@command()
async def listed(home: Home, out: Output) -> None:
    """List all tokens, with the calls sent for each today."""
    tokens = await home.door.send(Tokens())
    if out.as_json:
        for one in tokens:
            out.document({**_document(one.token), "sent_today": one.sent_today})
    elif tokens:
        out.table([_row(one) for one in tokens], indent=0)
    else:
        out.line("There is no token: whoever can reach the server may use the API.")


@token.command("revoke")
@click.argument("name")
@command()
async def revoke(home: Home, out: Output, name: str) -> None:
    """Let nobody in by the token NAME any more. A number, like '#3' or 3, names one too."""
    tokens = [one.token for one in await home.door.send(Tokens())]
    meant = [one for one in tokens if f"#{one.number}" == name or (one.name == name and one.revoked_at is None)]
    if not any(one.name == name for one in tokens):
        meant = meant or [one for one in tokens if f"{one.number}" == name]
    if not meant:
        raise NotFound("There is no token of that name that counts. askonce token list shows all.")
    revoked = await home.door.send(RevokeToken(meant[0].number))
    if out.as_json:
        out.document(_document(revoked))
    else:
        out.line(f"#{revoked.number} {visible(revoked.name)} is revoked.")


def _row(one: InUse) -> list[str]:
    found = one.token
    may = [
        "private" if found.private else "",
        "" if found.fresh else "not afresh",
        f"{found.minute_asks_max} a minute" if found.minute_asks_max else "",
    ]
    sent = f"{one.sent_today} of {found.day_calls_max}" if found.day_calls_max else f"{one.sent_today}"
    ended = "" if found.revoked_at is None else f"revoked {shown(found.revoked_at)}"
    return [f"#{found.number}", visible(found.name), f"{sent} sent today", ", ".join(filter(None, may)), dim(ended)]


def _document(one: Token) -> dict[str, Any]:
    moments = {"made_at": iso(one.made_at), "revoked_at": None if one.revoked_at is None else iso(one.revoked_at)}
    return {**msgspec.to_builtins(one), **moments}
