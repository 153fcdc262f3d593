"""Pairs of what System One clients send and what its server says, as files: exact bytes, headers, statuses."""

from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent / "data" / "system-one-examples"


class Example(msgspec.Struct, frozen=True):
    """One pair; a GET has no request file."""

    name: str
    method: str
    path: str
    request_headers: dict[str, str]
    request_file: str | None
    status: int
    response_headers: dict[str, str]
    response_file: str

    @property
    def asked(self) -> bytes:
        """The request's body, byte for byte."""
        return b"" if self.request_file is None else (FOLDER / self.request_file).read_bytes()

    @property
    def said(self) -> bytes:
        """The response's body, byte for byte."""
        return (FOLDER / self.response_file).read_bytes()


EXAMPLES = {
    found.name: found for found in msgspec.json.decode((FOLDER / "index.json").read_bytes(), type=list[Example])
}
"""By name."""

HERE = ("/v1/systemone", "/v1/models")
"""Where System One's own server is spoken to; the other examples are of other providers."""

ANSWERS = [name for name, found in EXAMPLES.items() if found.status == 200 and found.path in HERE]
ERRORS = [name for name, found in EXAMPLES.items() if found.status != 200 and found.path == HERE[0]]
ELSEWHERE = [
    name for name, found in EXAMPLES.items() if found.path.startswith(("/api/", "/typesafe/", "/v1/decisions"))
]
