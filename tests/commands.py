"""The command `askonce` as its owner runs it: a process of its own, with these variables and none of ours."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.fakes import SPOOL_BYTES
from tests.process import ROOT
from web.cli import main

SPOOLED = {"ASKONCE_SPOOL_BYTES_MAX": str(SPOOL_BYTES)}

SECONDS_MAX = 60
"""A net against hanging, far beyond what a command takes."""


@dataclass
class Ran:
    """How a command ended, and all it printed."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        """The one JSON document it printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON documents it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Owner:
    """Somebody at a terminal whose settings name a store."""

    store: Path
    model_url: str = ""

    async def start(self, *words: str, **env: str) -> Process:
        """Start `askonce` with these words."""
        given = {"PATH": os.environ.get("PATH", ""), "ASKONCE_STORE": str(self.store)} | SPOOLED
        if self.model_url:
            given["ASKONCE_MODEL_URL"] = self.model_url
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "web.cli", *words, cwd=ROOT, env=given | env, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )

    async def inside(self, *words: str, stdin: bytes = b"", **env: str) -> Ran:
        """The same inside this process, in a thread with a loop of its own: what needs no process is quicker so."""
        given = {"ASKONCE_STORE": str(self.store), "ASKONCE_MODEL_URL": self.model_url, **SPOOLED, **env}
        found = await asyncio.to_thread(CliRunner().invoke, main, words, stdin, given)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return Ran(found.exit_code, found.stdout_bytes, found.stderr)

    async def run(self, *words: str, stdin: bytes = b"", **env: str) -> Ran:
        """Run `askonce` to its end."""
        running = await self.start(*words, **env)
        try:
            async with asyncio.timeout(SECONDS_MAX):
                out, err = await running.communicate(stdin)
        except BaseException:
            running.kill()
            await running.wait()
            raise
        assert b"Traceback" not in err, err.decode()
        return Ran(await running.wait(), out, err.decode())
