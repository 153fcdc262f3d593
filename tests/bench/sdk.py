"""One client in one process, one question after another: `python sdk.py WAY WHERE KEYS COUNT`, run by a scratch venv.

WAY sdk: the official SDK, asking the server at WHERE. WAY gateway: the same through decision-gateway, whose record is
a file beside it. Every key is asked once before; then COUNT questions are timed. Prints the median in ms, and the µs of
CPU each took.
"""

import importlib
import os
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from typing import Any, cast

import typesafe_sdk as sdk


def client(way: str, where: str, folder: str) -> AbstractContextManager[sdk.TypeSafeClient]:
    """The client that is measured."""
    if way == "sdk":
        return sdk.TypeSafeClient(base_url=where, api_key=os.environ["KEY"], compression=False)
    package = cast("Any", importlib.import_module("decision_gateway"))
    os.environ["GATEWAY_KEY"] = "k"
    model = package.ModelConfig(name="jev-latest", base_url=where, key_env="GATEWAY_KEY", compression=False)
    return package.Gateway({"jev": model}, package.SQLiteStore(str(Path(folder) / "gateway.db"))).client("jev")


def main() -> None:
    """Ask, and print what one question took."""
    way, where, keys, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    question = sdk.Choice(instructions="Is it? " * 30, criteria={"yes": "it does", "no": "it does not"})
    with tempfile.TemporaryDirectory() as folder, client(way, where, folder) as asking:

        def ask(number: int) -> None:
            asking.system_one(f"{number} words " * 20, {"q": question})  # pyright: ignore[reportUnknownMemberType]

        for number in range(keys):
            ask(number)
        took: list[float] = []
        cpu = time.process_time()
        for at in range(count):
            began = time.perf_counter()
            ask(at % keys)
            took.append(time.perf_counter() - began)
        cpu = time.process_time() - cpu
    print(median(took) * 1e3, cpu / count * 1e6)


if __name__ == "__main__":
    main()
