"""The floors: `python -m tests.bench.floor constant|dict`, Starlette on uvicorn at its fastest, keeping nothing.

constant: the same 400 bytes whatever is asked; the body is not even read. dict: the body looked up in a dict.
"""

import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.bench import words

CONSTANT = words.answer(0)


async def constant(http: Request) -> Response:
    return Response(CONSTANT, media_type="application/json")


def looking_up(keys: int) -> Route:
    """A route that answers `keys` known bodies."""
    known = {words.ask(number): words.answer(number) for number in range(keys)}

    async def look_up(http: Request) -> Response:
        return Response(known[await http.body()], media_type="application/json")

    return Route("/v1/systemone", look_up, methods=["POST"])


def main() -> None:
    """Serve until killed."""
    constant_route = Route("/v1/systemone", constant, methods=["POST"])
    app = Starlette(routes=[constant_route if sys.argv[1] == "constant" else looking_up(int(sys.argv[2]))])
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(f"at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", lifespan="off", log_config=None, access_log=False, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
