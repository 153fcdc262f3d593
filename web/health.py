"""`GET /health`: is what is asked now going to be kept? For whoever watches the server; nobody's words.

What must never be here: an opinion on what is healthy (archive.health has it).
"""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from archive.doors import Door
from archive.errors import ArchiveError
from archive.messages import Health
from archive.when import iso


def health(door: Door) -> Route:
    """The route: 200 while answers are kept, else 503; in both cases how the record is, as JSON."""

    async def say(_http: HttpRequest) -> Response:
        try:
            condition = await door.send(Health())
        except ArchiveError as error:
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, {"ok": False, "why": error.text})
        # Which other programs run on this machine is for `askonce doctor`, not for everybody.
        condition = msgspec.structs.replace(condition, readers="")
        said = {"ok": condition.ok, "why": condition.why} | msgspec.structs.asdict(condition)
        del said["readers"]
        if condition.checked_at is not None:
            said["checked_at"] = iso(condition.checked_at)
        return _said(HTTPStatus.OK if condition.ok else HTTPStatus.SERVICE_UNAVAILABLE, said)

    return Route("/health", say, methods=["GET"])


def _said(status: int, said: Mapping[str, object]) -> Response:
    return Response(msgspec.json.encode(said), status, {"cache-control": "no-store"}, "application/json")
