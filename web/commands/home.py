"""What every command has: a Door to the archive, wherever that is open, and one way to end.

To add a command: a coroutine under `@command(...)` in a file here, and a line in web/cli.py; one that needs no open
store is a function under `@alone`.
What must never be here: how a door is found (cli.py), what a command says (its own file, output.py).
"""

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec

import click
import msgspec

from archive.attempts import REFUSED_FOR_NOW
from archive.doors import Door
from archive.errors import ArchiveError, CallFailed, NotFound
from archive.messages import Judged, Named
from archive.wire import Here
from web.asking import Askings
from web.commands.output import Output
from web.fit import may_list
from web.recipe import Models
from web.settings import Settings

P = ParamSpec("P")

CODES = """\b
Exit codes:
  0  done
  1  not there: not found, not kept, withdrawn or erased
  2  asked wrongly, or so that no answer can be given
  3  not now: a limit, a cooldown, no room, or not allowed
  4  unknown: it was sent and no confirmed answer came
  5  the model failed: nothing was sent, or what came is no answer
  6  no store, no server, or trouble on this side, such as output that cannot be written"""

EXIT = {
    "not_found": 1,
    "not_kept": 1,
    "withdrawn": 1,
    "erased": 1,
    "invalid": 2,
    "too_large": 2,
    "over_limit": 3,
    "cooling": 3,
    "busy": 3,
    "forbidden": 3,
    "call_unknown": 4,
    "call_failed": 5,
    "record_closed": 6,
    "authentication_error": 3,
    "disconnected": 6,
    "internal": 6,
}
"""The exit code of each error."""


def exit_code(error: ArchiveError) -> int:
    """How a command ends that was told this. A model's "not now" is that also the first time, when it was sent."""
    reply = error.reply if isinstance(error, CallFailed) else None
    return EXIT["cooling" if reply is not None and reply.status in REFUSED_FOR_NOW else error.code]


class CannotOpen(Exception):
    """There is no way to the archive; the text says why."""


class Home(msgspec.Struct, frozen=True):
    """An open archive: the door, what is behind it, and whether a server has it (else it is this process)."""

    door: Door
    here: Here
    settings: Settings
    address: str = ""

    def askings(self) -> Askings:
        """Questions are asked as the pages ask them, by the same recipe."""
        models = Models(self.here.model, self.here.llm_model)
        return Askings(self.door, (self.here.ask, self.here.chat), models, may_list, 1)


class Ways(NamedTuple):
    """How a command gets at the store. Both raise CannotOpen.

    `opened`: the archive, open; True makes the store where there is none yet. `held`: only the names of the
    store and of its spool, and the lock that keeps everybody else from them.
    """

    opened: Callable[[bool], AbstractAsyncContextManager[Home]]
    held: Callable[[], AbstractContextManager[tuple[Path, Path]]]


Work = Callable[Concatenate[Home, Output, P], Awaitable[None]]

Alone = Callable[Concatenate[Ways, Output, P], None]


def command(*, makes: bool = False) -> Callable[[Work[P]], Callable[P, None]]:
    """Make a command of a coroutine that takes a Home and an Output before its own arguments.

    `makes`: it may make the store.
    """

    def made(work: Work[P]) -> Callable[P, None]:
        @wraps(work)
        def whole(ways: Ways, out: Output, *args: P.args, **given: P.kwargs) -> None:
            async def opened() -> None:
                async with ways.opened(makes) as home:
                    await work(home, out, *args, **given)

            asyncio.run(opened())

        return alone(whole)

    return made


def alone(work: Alone[P]) -> Callable[P, None]:
    """Make a command of a function that takes Ways and an Output: of one that may need no open store."""

    @click.option("--json", "as_json", is_flag=True, help="Say it in JSON: one document, or one a line.")
    @click.pass_context
    @wraps(work)
    def run(context: click.Context, /, *args: P.args, **given: P.kwargs) -> None:
        out = Output(bool(given.pop("as_json")))
        ways: Ways = context.obj
        try:
            work(ways, out, *args, **given)
        except ArchiveError as error:
            out.refused(error)
            context.exit(exit_code(error))
        except KeyboardInterrupt:
            context.exit(130)
        except CannotOpen as error:
            out.error("cannot_open", str(error))
            context.exit(6)

    return run


class Commands(click.Group):
    """All commands, and the one way they end when click refuses what was typed or nobody takes what they say."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **given: Any) -> Any:
        """Run what was typed and end with its exit code. See click.Command."""
        words = [*(sys.argv[1:] if args is None else args)]
        out = Output("--json" in words)
        color = False if os.environ.get("NO_COLOR") else None
        try:
            code = super().main(words, *more, **given | {"color": color, "standalone_mode": False})
        except click.ClickException as error:
            code = EXIT["invalid"]
            if out.as_json:
                out.error("invalid", error.format_message())
            else:
                error.show()
        except click.Abort:
            code = 130
        except SystemExit as end:  # with 1, click's word for it: whoever read has left, and nobody is there to be told
            code = end.code and EXIT["internal"]
        except OSError as error:
            code = EXIT["internal"]
            out.lost(error)
        sys.exit(code)


class Called(msgspec.Struct, frozen=True):
    """What somebody means by a call: a call_id, a request's or a judgment's number; and a version if one is named."""

    text: str
    name: str = ""
    request: int = 0
    judgment: int = 0
    n: int | None = None


_CALLED = re.compile(r"(?:([0-9a-f]{12})|@([1-9][0-9]*))(?::([1-9][0-9]*))?|#([1-9][0-9]*)", re.ASCII)

NUMBER_DIGITS_MAX = 18
"""Digits of a row's number, or a version's: the store counts no further."""


class CallType(click.ParamType[Called]):
    """Reads `3f2a9c01be44`, `3f2a9c01be44:2`, `@17:2` (by the request's number) and `#1234` (by the judgment's)."""

    name = "call"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Called:
        """See click.ParamType."""
        found = _CALLED.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} names no call; they look like 3f2a9c01be44, 3f2a9c01be44:2 or '#1234'.", param, ctx)
        name, request, n, judgment = found.groups()
        if any(len(number or "") > NUMBER_DIGITS_MAX for number in (request, n, judgment)):
            self.fail(
                f"{value!r} has a number with more than {NUMBER_DIGITS_MAX} digits; none is that large.", param, ctx
            )
        return Called(value, name or "", int(request or 0), int(judgment or 0), None if n is None else int(n))


async def find(door: Door, called: Called) -> tuple[int, int | None]:
    """The number of the one request that is meant, and the version if one is named or the judgment had one.

    Raises NotFound; of several its text lists all of them.
    """
    if called.judgment:
        asking = (await door.send(Judged(called.judgment))).asking
        return asking.request_id, asking.n
    if called.request:
        return called.request, called.n
    numbers = await door.send(Named(called.name))
    if not numbers:
        raise NotFound(f"No call on record is named {called.name}.")
    first, *others = numbers
    if others:
        listed = ", ".join(f"@{number}" for number in numbers)
        raise NotFound(
            f"{len(numbers)} requests are named {called.name}: {listed}. Name one by its number, like @{first}."
        )
    return first, called.n
