"""The SQL of the record: `file` runs transactions, `record` reads and writes by subject, `rows` links the
chain, `chain` reads it back, `guards` and `prove` hold what is kept, `rebuild` mends the look-ups, `askings` and
`facts` are about askings that were named, `exchange` takes answers out and in, `waiting` what waited in the spool,
`erasing`, `ledger` and `searching` take words out, `files` looks after the files by their names, `start`
at what lies there before, and `gone` saves what it can when they were taken away."""

from archive.actor.store.askings import abouts, add_asking, judged
from archive.actor.store.chain import check
from archive.actor.store.copies import Bar, all_faults, no_bar, put_in_place, rows_in
from archive.actor.store.erasing import Emptied
from archive.actor.store.exchange import imported
from archive.actor.store.file import Store, opened
from archive.actor.store.files import LogFull, StoreGone
from archive.actor.store.lock import Lock, StoreTaken, StoreUnusable
from archive.actor.store.prove import prove
from archive.actor.store.record import Found, Record
from archive.actor.store.start import belongs, in_words, look
from archive.actor.store.tokens import issued
from archive.actor.store.waiting import Placed, add_sending, note_epoch, spool_of, take_in

__all__ = [
    "Bar",
    "Emptied",
    "Found",
    "Lock",
    "LogFull",
    "Placed",
    "Record",
    "Store",
    "StoreGone",
    "StoreTaken",
    "StoreUnusable",
    "abouts",
    "add_asking",
    "add_sending",
    "all_faults",
    "belongs",
    "check",
    "imported",
    "in_words",
    "issued",
    "judged",
    "look",
    "no_bar",
    "note_epoch",
    "opened",
    "prove",
    "put_in_place",
    "rows_in",
    "spool_of",
    "take_in",
]
