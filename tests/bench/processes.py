"""Servers and the load generator as processes of their own, each on a port the system picks, and their CPU time."""

import http.client
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import msgspec
import psutil

from tests.bench.load import Result, Work

ROOT = Path(__file__).parents[2]


class Program:
    """A server that prints its address once it listens. Use as `with Program([...]) as server`."""

    def __init__(self, words: list[str], environment: dict[str, str] | None = None) -> None:
        # Without the caller's own ASKONCE_* settings and PORT: the product is measured as it is built.
        own = {name: value for name, value in os.environ.items() if name != "PORT" and name[:8] != "ASKONCE_"}
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=own | (environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        self.start_seconds = time.perf_counter() - began
        found = re.search(r"at http://127\.0\.0\.1:(\d+)", line)
        if found is None:
            self._process.kill()
            raise RuntimeError(f"{' '.join(words)} did not start; it said: {line!r}")
        self.port = int(found[1])
        self._watched = psutil.Process(self._process.pid)

    def cpu(self) -> float:
        """Seconds of CPU it has used, all its threads, user and system; in steps of 10 ms."""
        times = self._watched.cpu_times()
        return times.user + times.system

    def stop(self) -> None:
        """Ask it to stop, and wait."""
        self._process.terminate()
        self._process.wait(60)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self._process.kill()
        self._process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.stop()


class Upstream(Program):
    """The model's server (upstream.py), answering after `ms`."""

    def __init__(self, ms: int) -> None:
        super().__init__(["tests.bench.upstream", str(ms)])
        self.url = f"http://127.0.0.1:{self.port}"

    def calls(self) -> int:
        """How often it was asked so far."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/count")
        asked = int(connection.getresponse().read())
        connection.close()
        return asked


def floor(kind: str, keys: int = 0) -> Program:
    """A floor server (floor.py)."""
    return Program(["tests.bench.floor", kind, str(keys)])


def product(store: Path, model_url: str, **settings: str) -> Program:
    """The whole of Askonce over `store`, receipt headers and log lines on; the lines go to /dev/null."""
    named = {f"ASKONCE_{name.upper()}": value for name, value in settings.items()}
    return Program(["web"], {"ASKONCE_STORE": str(store), "ASKONCE_PORT": "0", "ASKONCE_MODEL_URL": model_url} | named)


class Load:
    """The load generator (load.py). Use as `with Load() as load`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.load"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def start(self, work: Work) -> None:
        """Have `work` begun."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(work) + b"\n")
        self._process.stdin.flush()

    def result(self) -> Result:
        """Wait until what was begun is done."""
        assert self._process.stdout is not None
        return msgspec.json.decode(self._process.stdout.readline(), type=Result)

    def run(self, work: Work) -> Result:
        """Have `work` done."""
        self.start(work)
        return self.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def many_sockets() -> int:
    """Let this process and its children open as many files as they may; how many that is."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most
