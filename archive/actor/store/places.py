"""Where calls go: destinations, the day's budget of each upstream, and who asked to be left alone until when.

What must never be here: a key, a clock.
"""

import sqlite3
from collections.abc import Callable

from archive.actor.store.rows import Rows
from archive.request import Destination

DESTINATIONS_REMEMBERED_MAX = 1024
"""Destinations whose numbers are held in memory; a caller can make as many as it finds addresses for."""


class Places(Rows):
    """The part of the record that is about where calls go."""

    def __init__(self, db: sqlite3.Connection, salt: Callable[[], bytes]) -> None:
        self._destinations: dict[Destination, int] = {}
        super().__init__(db, salt)

    def forget(self) -> None:
        super().forget()
        self._destinations.clear()

    def destination(self, place: Destination, make: bool = False) -> int:
        """The number of a destination; 0 when it is not on record and not to be made."""
        number = self._destinations.get(place)
        if number is not None:
            return number
        pieces = [as_bytes(piece) for piece in (place.name, place.method, place.url)]
        if make:
            name, method, url = (self.text(piece) for piece in pieces)
        else:
            name, method, url = (self.known_text(piece) for piece in pieces)
        if name is None or method is None or url is None:
            return 0
        row = self.one(
            "SELECT id FROM destination WHERE url = ? AND name = ? AND method = ?", url.id, name.id, method.id
        )
        number = row[0] if row else self.add("destination", name, method, url) if make else 0
        if number:
            if len(self._destinations) >= DESTINATIONS_REMEMBERED_MAX:
                self._destinations.clear()
            self._destinations[place] = number
        return number

    def place(self, number: int) -> Destination:
        """Destination `number`."""
        row = self.one(
            "SELECT n.bytes, m.bytes, u.bytes FROM destination d JOIN text n ON n.id = d.name"
            " JOIN text m ON m.id = d.method JOIN text u ON u.id = d.url WHERE d.id = ?",
            number,
        )
        return Destination(*map(as_text, row))

    def spend(self, name: str, day: int) -> int:
        """Count one sending against the day's budget of the upstream `name`; how many that makes."""
        return self.one(
            "INSERT INTO budget (day, upstream, sent) VALUES (?, ?, 1)"
            " ON CONFLICT (day, upstream) DO UPDATE SET sent = sent + 1 RETURNING sent",
            day,
            name,
        )[0]

    def spent(self, name: str, day: int) -> int:
        """How many sendings the day's budget of the upstream `name` counts so far."""
        row = self.one("SELECT sent FROM budget WHERE day = ? AND upstream = ?", day, name)
        return row[0] if row else 0

    def cool(self, place: int, until: int, status: int) -> None:
        """Remember the end of a cooldown, the latest of a place, so that a restart keeps to it."""
        self.db.execute(
            "INSERT INTO cooldown (place, until, status) VALUES (?, ?, ?) ON CONFLICT (place) DO UPDATE"
            " SET until = excluded.until, status = excluded.status WHERE excluded.until > cooldown.until",
            (place, until, status),
        )

    def cooldowns(self, now: int) -> list[tuple[int, int, int]]:
        """(place, until, status) of every cooldown that has not ended."""
        return self.db.execute("SELECT place, until, status FROM cooldown WHERE until > ?", (now,)).fetchall()


def as_bytes(text: str) -> bytes:
    """A text as it is stored; surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def as_text(data: bytes | None) -> str:
    """A stored text; empty where there is none."""
    return "" if data is None else data.decode("utf-8", "surrogatepass")
