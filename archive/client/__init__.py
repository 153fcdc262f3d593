"""Askonce for programs outside the server: the same Door as inside, over /wire."""

from archive.client.door import WireDoor, connect

__all__ = ["WireDoor", "connect"]
