"""The SQL of the record: `file` runs transactions, `record` reads and writes by subject, `rows` links the
chain, `chain` reads it back, `guards` and `prove` hold what is kept, `rebuild` mends the look-ups, `askings` and
`facts` are about askings that were named, `exchange` takes answers out and in."""

from archive.actor.store.askings import abouts, add_asking, judged
from archive.actor.store.chain import check
from archive.actor.store.copies import Bar, all_faults, no_bar, put_in_place, rows_in
from archive.actor.store.exchange import imported
from archive.actor.store.file import Lock, Store, StoreGone, StoreTaken, StoreUnusable, opened
from archive.actor.store.prove import prove
from archive.actor.store.record import Found, Record
from archive.actor.store.tokens import issued

__all__ = [
    "Bar",
    "Found",
    "Lock",
    "Record",
    "Store",
    "StoreGone",
    "StoreTaken",
    "StoreUnusable",
    "abouts",
    "add_asking",
    "all_faults",
    "check",
    "imported",
    "issued",
    "judged",
    "no_bar",
    "opened",
    "prove",
    "put_in_place",
    "rows_in",
]
