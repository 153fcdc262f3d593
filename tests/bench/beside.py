"""Section 8: beside what people use today: nginx's proxy_cache keyed on the body, and decision-gateway.

They promise less: nginx forgets, serves whoever asks and may ask twice, decision-gateway lives in one process. What is
not on the machine, or cannot be installed for the run, is said and left out.
"""

import asyncio
import getpass
import os
import secrets
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

import psutil

from archive.admin import AddToken
from archive.tokens import PREFIX, hashed
from tests.bench.filling import Stores
from tests.bench.hits import KEYS, Contender
from tests.bench.load import Work
from tests.bench.processes import Load, Program, Upstream, floor, product
from tests.bench.report import Row, middle, number, progress, table
from tests.fakes import EchoModel, actor

CONF = """
user {user}; daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; client_body_buffer_size 1m;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  proxy_cache_path {folder}/cache levels=1:2 keys_zone=answers:64m inactive=30d use_temp_path=off;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_cache answers; proxy_cache_methods POST; proxy_cache_key "$request_uri|$request_body";
      proxy_cache_valid 200 30d; proxy_cache_lock on;
    }}
  }}
}}
"""


class Nginx(Program):
    """nginx with one worker, in front of the port `upstream`; its answers in files in `folder`."""

    def __init__(self, binary: str, folder: Path, upstream: int) -> None:
        folder.mkdir()
        with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
            self.port = listening.getsockname()[1]
            conf = folder / "nginx.conf"
            conf.write_text(CONF.format(folder=folder, upstream=upstream, port=self.port, user=getpass.getuser()))
            # It takes over a socket that listens already, as in an upgrade of itself: no port is guessed.
            self._process = subprocess.Popen(
                [binary, "-c", str(conf), "-p", str(folder), "-e", str(folder / "errors")],
                env={"NGINX": f"{listening.fileno()};"},
                pass_fds=[listening.fileno()],
            )
        self._watched = psutil.Process(self._process.pid)

    def cpu(self) -> float:
        """Seconds of CPU its worker has used."""
        return sum(sum(one.cpu_times()[:2]) for one in self._watched.children())


class Client(NamedTuple):
    """What one question costs one client: ms, µs of the client's CPU, µs of the server's."""

    ms: float
    client: float
    server: float


def run(stores: Stores, upstream: Upstream, load: Load, rounds: int, count: int) -> None:
    """Measure and print."""
    guarded = stores.folder / "guarded.db"
    copyfile(stores.of(KEYS), guarded)
    secret = PREFIX + secrets.token_urlsafe(32)
    asyncio.run(_add_token(guarded, secret))
    shown = f"authorization: Bearer {secret}\r\n"
    nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    with ExitStack() as stack:
        enter = stack.enter_context
        servers = {"Starlette + uvicorn, a constant": enter(floor("constant"))}
        if nginx:
            servers["nginx, proxy_cache keyed on the body"] = enter(
                Nginx(nginx, stores.folder / "nginx", upstream.port)
            )
        servers["Askonce, with a token"] = enter(product(guarded, stores.model_url))
        hits = {name: Contender(one, Work(one.port, count, KEYS, headers=shown)) for name, one in servers.items()}
        misses: dict[str, list[float]] = {name: [] for name in list(servers)[1:]}
        for one in hits.values():
            one.round(load, warm=True)
        for at in range(rounds):
            progress(f"beside others: round {at + 1} of {rounds}")
            for one in hits.values():
                one.round(load)
            for name, seen in misses.items():
                new = Contender(servers[name], Work(servers[name].port, count // 10, count // 10, headers=shown,
                                                    first=stores.numbers(count // 10)))  # fmt: skip
                new.round(load)
                seen.append(new.figures.cpu)
        alone = _alone(stores.folder, upstream, servers, secret, rounds, count // 20)
    _print({name: one.figures.cpu for name, one in hits.items()}, {name: middle(seen) for name, seen in misses.items()})
    _print_alone(alone)
    if not nginx:
        print("  nginx is not on this machine (apt-get install nginx), and left out.")


async def _add_token(store: Path, secret: str) -> None:
    async with actor(store, EchoModel()) as door:
        await door.send(AddToken("bench", hashed(secret.encode())))


def _alone(
    folder: Path, upstream: Upstream, servers: dict[str, Program], secret: str, rounds: int, count: int
) -> dict[str, Client]:
    """One client that asks kept questions one after another, by each way; empty where it cannot be installed."""
    python = folder / "venv" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    for command in (
        ["venv", "-q", "--python", sys.executable, str(folder / "venv")],
        ["pip", "install", "-q", "--python", str(python), "decision-gateway==0.0.1"],
    ):
        if subprocess.run([*uv, *command], check=False, stdout=subprocess.DEVNULL).returncode:
            return {}
    ways = {"the SDK, no archive: the model itself": ("sdk", upstream), "decision-gateway": ("gateway", upstream)}
    ways |= {f"the SDK to {name}": ("sdk", server) for name, server in list(servers.items())[1:]}
    seen: dict[str, list[Client]] = {name: [] for name in ways}
    keys = min(KEYS, count)
    for at in range(rounds):
        progress(f"one client alone: round {at + 1} of {rounds}")
        for name, (way, server) in ways.items():
            command = [str(python), str(Path(__file__).with_name("sdk.py")), way, f"http://127.0.0.1:{server.port}"]
            before = server.cpu()
            ran = subprocess.run(
                [*command, str(keys), str(count)],
                env={"KEY": secret, "PATH": os.environ["PATH"]},
                stdout=subprocess.PIPE,
                check=True,
            )
            ms, cpu = ran.stdout.split()
            seen[name].append(Client(float(ms), float(cpu), (server.cpu() - before) / (keys + count) * 1e6))
    return {name: Client(*(middle(column) for column in zip(*of, strict=True))) for name, of in seen.items()}


def _print(hits: dict[str, float], misses: dict[str, float]) -> None:
    ours = list(hits)[-1]
    rows = [
        Row(f"kept: {name}", f"{cpu:.0f} µs", f"{hits[ours]:.0f} µs: {ours}", f"{cpu / hits[ours]:.2f}")
        for name, cpu in hits.items()
    ]
    rows += [
        Row(f"new: {name}", f"{cpu:.0f} µs", f"{misses[ours]:.0f} µs: {ours}", f"{cpu / misses[ours]:.2f}")
        for name, cpu in misses.items()
    ]
    note = "The server's CPU a request, 600-byte body, 400-byte reply, 32 connections; theirs / ours."
    table(
        "8. Beside others",
        [note, "nginx is C and syncs nothing; what is new at ours is on disk before it is sent."],
        rows,
    )


def _print_alone(alone: dict[str, Client]) -> None:
    if not alone:
        print("  decision-gateway could not be installed, and is left out.")
        return
    ours = alone[list(alone)[-1]]
    rows = [
        Row(
            name,
            f"{one.ms:.2f} ms, CPU {number(one.client)} + {number(one.server)} µs",
            f"{ours.ms:.2f} ms",
            f"{one.ms / ours.ms:.2f}",
        )
        for name, one in alone.items()
    ]
    note = "Median ms, CPU of the client + of the server; theirs / ours in ms."
    table("   A kept answer for one client, the official SDK, one question after another", [note], rows)
