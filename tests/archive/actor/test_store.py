# ruff: noqa: S608 - SQL put together from the schema's own words
"""The store: what is written links up, is undone whole, is found by comparing everything, and can be checked."""

import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from archive.actor.store import Record, Store
from archive.actor.store.rows import COLUMNS
from archive.request import Parts, Request, call_id, call_id_of, digest, fingerprint, join
from tests.archive.actor.recorded import WHOLE, fill, kept, sent, stranger
from tests.chain import INSERT_ONLY, assert_texts_match_their_seals, broken, columns
from tests.fakes import ASK, body, request
from tests.stored import assert_closed_cleanly, rows


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Store, None]:
    store = await Store.open(path)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture(name="filled")
def _filled(tmp_path: Path) -> Path:
    fill(tmp_path / "a.db")
    return tmp_path / "a.db"


def test_the_chain_over_rows_of_every_kind_can_be_worked_out_from_the_rows(filled: Path) -> None:
    with stranger(filled) as db:
        assert broken(db) == []
        assert_texts_match_their_seals(db)
        assert [table for table in INSERT_ONLY if not db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]] == []
    assert COLUMNS.keys() == set(INSERT_ONLY)
    assert_closed_cleanly(filled)


@pytest.mark.parametrize("table", INSERT_ONLY)
def test_a_row_that_was_edited_deleted_or_put_in_by_hand_is_found(filled: Path, table: str) -> None:
    with stranger(filled) as db:
        for (guard,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {guard}")
        number = db.execute(f"SELECT min(id) FROM {table}").fetchone()[0]
        names = [name for name in columns(db, table) if name not in {"bytes", "salt", "emptied_at"}]
        for name in names:
            db.execute("BEGIN")
            other = "x'00'" if name in {"chain", "seal"} else "1000000" if name == "id" else f"1 - coalesce({name}, 0)"
            db.execute("PRAGMA ignore_check_constraints = 1")
            db.execute(f"UPDATE {table} SET {name} = {other} WHERE id = ?", (number,))
            assert broken(db), f"{table}.{name}"
            db.execute("ROLLBACK")
        db.execute(f"DELETE FROM {table} WHERE id = ?", (number,))
        assert broken(db) or db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0


def test_a_text_whose_words_were_changed_no_longer_matches_its_seal(filled: Path) -> None:
    with stranger(filled) as db:
        db.execute("DROP TRIGGER text_update")
        db.execute("UPDATE text SET bytes = zeroblob(length) WHERE id = 3")
        with pytest.raises(AssertionError):
            assert_texts_match_their_seals(db)


def test_emptying_every_text_breaks_no_link(filled: Path) -> None:
    with stranger(filled) as db:
        db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5")
        assert broken(db) == []


async def test_what_a_failing_message_wrote_is_gone_and_the_next_row_links_to_the_one_before(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as store:

        def work(record: Record) -> None:
            kept(record, request("before"))
            with pytest.raises(ZeroDivisionError), record.savepoint():
                # New words, a new destination and a new request, all remembered in memory and then undone.
                kept(record, WHOLE)
                raise ZeroDivisionError
            assert record.find(WHOLE) is None
            kept(record, WHOLE)
            kept(record, request("after"))

        await store.write(work)
    with stranger(tmp_path / "a.db") as db:
        assert broken(db) == []
        assert db.execute("SELECT count(*) FROM request").fetchone()[0] == 3
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_a_transaction_that_failed_leaves_heads_and_memory_as_they_are_on_disk(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as store:
        await store.write(lambda record: kept(record, request("before")))

        def failing(record: Record) -> None:
            kept(record, WHOLE)
            raise ZeroDivisionError

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await store.write(failing)
            assert not store.in_transaction
        await store.write(lambda record: kept(record, WHOLE))
    with stranger(tmp_path / "a.db") as db:
        assert broken(db) == []
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_what_is_only_looked_at_cannot_be_written_and_leaves_no_trace(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as store:
        await store.write(lambda record: kept(record, request("before")))
        with pytest.raises(sqlite3.OperationalError):
            await store.look(lambda record: kept(record, WHOLE))
        assert await store.look(lambda record: record.find(request("before"))) is not None
        await store.write(lambda record: kept(record, WHOLE))
    with stranger(tmp_path / "a.db") as db:
        assert broken(db) == []


async def test_a_store_that_is_opened_again_goes_on_where_it_stopped(filled: Path) -> None:
    async with opened(filled) as store:
        assert await store.write(lambda record: kept(record, request("one"))) == 4
    with stranger(filled) as db:
        assert broken(db) == []


ALIKE = [
    request("one"),
    request("two"),
    Request(ASK, body("one").replace(b"jev-latest", b"jev-latest ")),
    Request(ASK, b"1"),
    Request(ASK, b"1", "text/json"),
    Request(ASK, b"1", "text/json", (), "a"),
    Request(ASK, b"1", "text/json", (("a", "b"),)),
    Request(ASK, b"1", "text/json", (("a", "c"),)),
    Request(ASK, b""),
    Request(ASK, b"1", "\udcc3\udca9"),
    Request(ASK, b"1", "é"),
    WHOLE,
]


async def test_two_requests_with_one_fingerprint_are_two_requests_and_two_texts_two_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Record §1: a fingerprint is the index, never the judge."""

    def always(_: bytes) -> int:
        return 7

    monkeypatch.setattr("archive.actor.store.record.fingerprint", always)
    monkeypatch.setattr("archive.actor.store.rows.fingerprint", always)
    async with opened(tmp_path / "a.db") as store:
        for n, one in enumerate(ALIKE):
            assert await store.look(lambda record, one=one: record.find(one)) is None
            assert (await store.write(lambda record, one=one: record.add_request(one))).id == n + 1
    async with opened(tmp_path / "a.db") as store:
        found = [await store.look(lambda record, one=one: record.find(one)) for one in ALIKE]
    assert [one and one.id for one in found] == list(range(1, len(ALIKE) + 1))
    assert [one and one.call_id for one in found] == [call_id(one) for one in ALIKE]
    assert rows(
        tmp_path / "a.db", "SELECT DISTINCT hash FROM request_key UNION SELECT DISTINCT hash FROM text_key"
    ) == [(7,)]
    assert rows(tmp_path / "a.db", "SELECT bytes FROM text GROUP BY bytes HAVING count(*) > 1") == []


async def test_parts_that_are_shared_are_stored_once(tmp_path: Path) -> None:
    async with opened(tmp_path / "a.db") as store:
        for n in range(20):
            await store.write(lambda record, n=n: sent(record, request(f"state {n}")))
            await store.write(lambda record, n=n: sent(record, Request(ASK, body("state 0", pass_=n))))
    path = tmp_path / "a.db"
    assert rows(path, "SELECT count(*), count(DISTINCT state), count(DISTINCT instructions) FROM request") == [
        (40, 20, 21)
    ]
    assert rows(path, "SELECT count(DISTINCT model) FROM request") == [(1,)]
    assert rows(path, "SELECT bytes FROM text GROUP BY bytes HAVING count(*) > 1") == []


def test_a_body_that_was_stored_whole_says_so(filled: Path) -> None:
    whole = rows(filled, "SELECT whole, state IS NULL, model IS NULL FROM request ORDER BY id")
    assert whole == [(0, 0, 0), (0, 0, 0), (1, 1, 1), (0, 0, 0)]


def test_the_look_up_tables_can_be_made_again_from_the_record(filled: Path) -> None:
    texts = rows(filled, "SELECT id, bytes FROM text")
    assert sorted(rows(filled, "SELECT hash, text FROM text_key")) == sorted(
        (fingerprint(sha256(words).digest()), number) for number, words in texts
    )
    found = {request("one"), request("two"), WHOLE, request("never answered")}
    bodies = _bodies(filled)
    asked = {number: next(one for one in found if one.body == whole) for number, whole in bodies.items()}
    assert len(set(asked.values())) == len(found) == len(bodies)
    assert sorted(rows(filled, "SELECT hash, request FROM request_key")) == sorted(
        (fingerprint(digest(one)), number) for number, one in asked.items()
    )
    assert {number: call_id_of(hash) for hash, number in rows(filled, "SELECT hash, request FROM request_key")} == {
        number: call_id(one) for number, one in asked.items()
    }


def _bodies(path: Path) -> dict[int, bytes]:
    found = rows(
        path,
        "SELECT r.id, i.bytes, s.bytes, coalesce(r.state_at, 0), m.bytes, coalesce(r.model_at, 0) FROM request r"
        " JOIN text i ON i.id = r.instructions LEFT JOIN text s ON s.id = r.state LEFT JOIN text m ON m.id = r.model",
    )
    return {number: join(Parts(*parts)) for number, *parts in found}


async def test_a_request_whose_words_were_erased_matches_nothing(filled: Path) -> None:
    with stranger(filled) as db:
        for part in ("state", "instructions"):
            number = db.execute(f"SELECT {part} FROM request WHERE id = {1 if part == 'state' else 3}").fetchone()[0]
            db.execute("UPDATE text SET bytes = NULL, salt = NULL, emptied_at = 5 WHERE id = ?", (number,))
    async with opened(filled) as store:
        for asked in (request("one"), WHOLE):
            assert await store.look(lambda record, asked=asked: record.find(asked)) is None
            assert (await store.write(lambda record, asked=asked: record.add_request(asked))).id > 4


async def test_lone_surrogates_are_kept_as_they_came(tmp_path: Path) -> None:
    """B49: in a content type, a partition, a header, a model's name."""
    odd = Request(ASK, b'{"state":"\\ud800","model":"\\udfff"}', "\ud800", (("a", "\udcff"),), "\udfff")
    async with opened(tmp_path / "a.db") as store:
        number = await store.write(lambda record: record.add_request(odd).id)
        await store.write(lambda record: record.add_dispatch(number, "\udfff", 0))
        assert (await store.look(lambda record: record.show(number, None, 0))).request == odd


async def test_a_whole_transaction_is_one_trip_into_the_librarys_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[str] = []
    seam: Any = aiosqlite.Connection
    into: Callable[..., Any] = seam._execute

    async def counted(self: Any, work: Callable[[], Any]) -> Any:
        def inside() -> Any:
            trips.append(threading.current_thread().name)
            return work()

        return await into(self, inside)

    async with opened(tmp_path / "a.db") as store:
        monkeypatch.setattr(seam, "_execute", counted)
        await store.write(lambda record: [kept(record, request(str(n))) for n in range(50)])
        assert len(trips) == 1
        assert trips[0] != threading.current_thread().name


async def test_the_seam_into_aiosqlite_is_where_it_was(tmp_path: Path) -> None:
    """file.py reaches for `_execute`, `_conn` and `_thread`: this goes red when a new version moves or changes them."""
    async with aiosqlite.connect(tmp_path / "a.db") as db:
        seam: Any = db
        raw = await seam._execute(lambda: seam._conn)
        assert isinstance(raw, sqlite3.Connection)
        thread = await seam._execute(threading.current_thread)
        assert thread is seam._thread is not threading.current_thread()
        assert await seam._execute(threading.current_thread) is thread
        with pytest.raises(ZeroDivisionError):
            await seam._execute(lambda: 1 / 0)
        with pytest.raises(sqlite3.ProgrammingError, match="thread"):
            raw.execute("SELECT 1")
        assert await seam._execute(lambda: raw.execute("SELECT 1").fetchone()) == (1,)


async def test_the_writing_connection_is_set_as_promised(tmp_path: Path) -> None:
    promised = {
        "journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "recursive_triggers": 1, "foreign_keys": 1,
        "trusted_schema": 0, "busy_timeout": 250, "query_only": 0,
    }  # fmt: skip
    async with opened(tmp_path / "a.db") as store:
        await store.look(lambda record: record.find(request()))
        found = await store.write(lambda record: {name: record.one(f"PRAGMA {name}")[0] for name in promised})
    assert found == promised
