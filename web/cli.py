"""The command `askonce`: finds the archive and puts the commands together.

A running server that has the store is spoken to over /wire, with the secret from the store's lock file. Where there is
none, the same actor is opened in this process, under the same lock, and no port is.
What must never be here: what a command does (web/commands/).
"""

import logging
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from archive.actor.store import look
from archive.client import connect
from web.app import ModelUnusable, StoreTaken, StoreUnusable, here, house, lock
from web.commands.asking import ask
from web.commands.doctor import doctor
from web.commands.erasing import erase, withdraw
from web.commands.exchange import export, import_
from web.commands.facts import facts
from web.commands.home import CODES, CannotOpen, Commands, Home, Ways
from web.commands.keeping import backup, prove, restore
from web.commands.listing import deliveries, feed, watch
from web.commands.reading import diff, show, versions
from web.commands.token import token
from web.settings import SettingError, read

COMMANDS = (
    ask,
    show,
    versions,
    diff,
    feed,
    watch,
    deliveries,
    facts,
    withdraw,
    erase,
    export,
    import_,
    prove,
    backup,
    restore,
    doctor,
    token,
)


@asynccontextmanager
async def opened(makes: bool) -> AsyncGenerator[Home, None]:
    """The archive the settings name, by whichever way it can be had. See web.commands.home.Ways."""
    try:
        settings = read(os.environ)
        path = settings.store_path.resolve()
        if not makes and not path.exists():
            look(path, settings.spool_path.resolve())
            raise CannotOpen(f"There is no store at {path}. The first `askonce ask`, or the server, makes it.")
        try:
            held = lock(settings)
        except StoreTaken as taken:
            address, secret = _server(taken)
            async with connect(address, secret) as door:
                yield Home(door, door.here, settings, address)
            return
        try:
            async with house(settings) as own:
                yield Home(own.door, here(settings, own), settings, "")
        finally:
            held.release()
    except (SettingError, StoreTaken, StoreUnusable, ModelUnusable) as error:
        raise CannotOpen(str(error)) from None


@contextmanager
def held() -> Generator[tuple[Path, Path], None, None]:
    """The names of the store and of its spool, and nobody has them open. See web.commands.home.Ways."""
    try:
        settings = read(os.environ)
        lock_ = lock(settings)
    except (SettingError, StoreTaken, StoreUnusable) as error:
        raise CannotOpen(str(error)) from None
    try:
        yield settings.store_path.resolve(), settings.spool_path.resolve()
    finally:
        lock_.release()


def _server(taken: StoreTaken) -> tuple[str, str]:
    """Where the server is that has the store, and the secret to show it. Raises CannotOpen when it is none."""
    holder: dict[str, Any] = taken.holder
    try:
        host, port, secret = str(holder["host"]), int(holder["port"]), str(holder["secret"])
    except (KeyError, ValueError, TypeError):
        # A server that is just starting, or another command: neither can be spoken to.
        raise CannotOpen(f"{taken} Several commands at once need a running server.") from None
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", secret


@click.group(cls=Commands, epilog=CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def main(context: click.Context) -> None:
    """Ask decision models once, and look at every answer that was kept.

    Speaks to the server that has the store (ASKONCE_STORE); where none is running it opens the store itself.
    """
    os.umask(0o077)  # whoever may read the files may read every kept answer
    context.obj = Ways(opened, held)
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


for one in COMMANDS:
    main.add_command(one)

if __name__ == "__main__":
    main(prog_name="askonce")
