"""The SQL of the record: `file` runs transactions, `record` reads and writes by subject, `rows` links the
chain, `chain` reads it back, `guards` and `prove` hold what is kept."""

from archive.actor.store.chain import check
from archive.actor.store.file import Lock, Store, StoreTaken, StoreUnusable
from archive.actor.store.prove import prove
from archive.actor.store.record import Found, Record

__all__ = ["Found", "Lock", "Record", "Store", "StoreTaken", "StoreUnusable", "check", "prove"]
