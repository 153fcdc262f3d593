"""The SQL of the record: `file` runs transactions, `record` reads and writes by subject, `rows` links the chain."""

from archive.actor.store.file import Lock, Store, StoreTaken, StoreUnusable
from archive.actor.store.record import Found, Record

__all__ = ["Found", "Lock", "Record", "Store", "StoreTaken", "StoreUnusable"]
