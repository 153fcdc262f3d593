"""The README is executed: its examples run against a real server, its table of settings is compared with the code."""

import asyncio
import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from archive.attempts import Price
from tests.process import process
from web.destinations import KEYS, parse
from web.settings import PREFIX, Settings

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
HERE = "http://127.0.0.1:8000"


async def run(*command: str, **env: str) -> str:
    """The output of a command that succeeds."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    child = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ | {"PATH": path} | env,
    )
    output, _ = await child.communicate()
    assert child.returncode == 0, output.decode()
    return output.decode()


async def test_every_example_runs_and_says_what_the_readme_says(tmp_path: Path) -> None:
    ran = 0
    async with process(tmp_path / "a.db", "") as here:
        output = ""
        for kind, text in BLOCKS:
            if kind == "sh":
                # As `make` installs it; here it is whatever stands in this tree.
                command = f'askonce() {{ {sys.executable} -m web.cli "$@"; }}\n{text}'
                output = await run("bash", "-c", command.replace(HERE, here.url), ASKONCE_STORE=str(tmp_path / "a.db"))
                ran += 1
            elif kind == "python":
                output = await run(sys.executable, "-W", "error", "-c", text.replace(HERE, here.url))
                assert 0 <= float(output) <= 1
                ran += 1
            elif kind == "text":
                for line in text.splitlines():
                    pattern = ".*".join(re.escape(piece) for piece in line.split("…"))
                    assert re.search(f"^{pattern}\r?$", output, re.MULTILINE), f"{line}\n\nnot in\n\n{output}"
    assert ran == 13


def test_the_file_of_destinations_can_be_used_as_it_is_shown() -> None:
    (text,) = (text for kind, text in BLOCKS if kind == "toml")
    keys = {"TYPESAFE_API_KEY": "a", "OPENROUTER_API_KEY": "b", "LAN_KEY": "c"}
    found = {one.name: one for one in parse(text, "destinations.toml", keys)}
    assert {one.serves for one in found.values()} == {"/", "/api", "/v1", ""}
    assert found["typesafe"].price == Price(42_000_000, 0)
    said = set(re.findall(r"^(\w+) =", text, re.MULTILINE))
    assert said == set(KEYS), "every key of a destination is shown"


def rows() -> dict[str, str]:
    return dict(re.findall(r"^\| `(ASKONCE_\w+)` \|(?: `([^`]*)`)? \| ", README, re.MULTILINE))


@pytest.mark.parametrize("field", msgspec.structs.fields(Settings), ids=lambda field: field.name)
def test_each_setting_stands_in_the_table_with_its_default(field: msgspec.structs.FieldInfo) -> None:
    shown = rows()[PREFIX + field.name.upper()]
    assert msgspec.convert(shown, field.type, strict=False) == field.default


def test_the_table_names_no_setting_that_is_none() -> None:
    assert set(rows()) == {PREFIX + field.name.upper() for field in msgspec.structs.fields(Settings)}
