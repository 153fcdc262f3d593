"""Writing what waited outside the store, exactly once.

The store notes the spool's epoch in the transaction that takes its frames in; frames of an epoch it has noted count no
more. What must never be here: the spool's file.
"""

from typing import NamedTuple

from archive.actor.store.record import Record
from archive.attempts import State, following
from archive.frames import Ending, Frame, Sending
from archive.request import named_between
from archive.when import DAY, SECOND


class Placed(NamedTuple):
    """Where a sending that waited stands in the store."""

    dispatch: int
    request: int


def spool_of(record: Record) -> tuple[bytes, int]:
    """The store's own id, 16 bytes, made at the first start; and the last epoch of its spool that it took in."""
    row = record.one("SELECT value FROM setting WHERE name = 'store'")
    if row is None:
        row = (record.salt().hex(),)
        record.db.execute("INSERT INTO setting (name, value) VALUES ('store', ?)", row)
    taken = record.one("SELECT value FROM setting WHERE name = 'spool'")
    return bytes.fromhex(row[0]), int(taken[0]) if taken else 0


def note_epoch(record: Record, epoch: int) -> None:
    """The frames of this epoch are taken in, with this very transaction."""
    record.db.execute("INSERT OR REPLACE INTO setting (name, value) VALUES ('spool', ?)", (str(epoch),))


def add_sending(record: Record, sending: Sending) -> Placed:
    """Write a sending that waited, and count it against its day."""
    found = record.find(sending.request) or record.add_request(sending.request)
    day = sending.at // DAY
    if not sending.request.destination.is_local:
        record.spend(sending.upstream, day)
    if sending.token:
        record.spend_token(sending.token, day)
    if sending.public:
        record.make_public(found.id)
    return Placed(record.add_dispatch(found.id, sending.asked_model, sending.at), found.id)


def take_in(record: Record, frames: list[Frame]) -> None:
    """Write the frames that a process left behind which ended before it could."""
    places: dict[tuple[int, int], Placed] = {}
    for frame in frames:
        if isinstance(frame, Sending):
            # Each process counts its own: the moment tells whose it is.
            places[frame.number, frame.at] = add_sending(record, frame)
            continue
        place = places.get((frame.number, frame.sent_at)) or _stored(record, frame)
        if place is not None:
            _add_ending(record, frame, place)


def _stored(record: Record, ending: Ending) -> Placed | None:
    """The sending in the store that an ending names. After an older backup was put back it may be another, or none."""
    if ending.number > 0:
        row = record.one("SELECT id, request FROM dispatch WHERE id = ? AND at = ?", ending.number, ending.sent_at)
    elif ending.call_id:
        # Its frame was taken in by a COMMIT of which its own process was told that it failed.
        row = record.one(
            "SELECT d.id, d.request FROM request_key k JOIN dispatch d ON d.request = k.request"
            " WHERE k.hash BETWEEN ? AND ? AND d.at = ? ORDER BY d.id DESC LIMIT 1",
            *named_between(ending.call_id),
            ending.sent_at,
        )
    else:
        row = None
    return None if row is None else Placed(*row)


def _add_ending(record: Record, ending: Ending, place: Placed) -> None:
    outcome = ending.outcome
    n = following(record.came_to(place.dispatch), outcome.state)
    if n is None:
        return
    number = record.add_outcome(place.dispatch, n, outcome, ending.ms, ending.at, erased=ending.erased)
    if outcome.state is State.ANSWERED:
        record.add_answer(place.request, number)
    if outcome.cool_seconds is not None and outcome.reply is not None:
        record.cool(ending.place, ending.at + round(outcome.cool_seconds * SECOND), outcome.reply.status)
