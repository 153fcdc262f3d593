"""The store's file: whose it is, how its schema grows, and that one process at a time has it."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from archive.actor.store import Lock, Store, StoreTaken, StoreUnusable
from archive.actor.store.file import statements
from archive.actor.store.guards import APPLICATION_ID
from tests.archive.actor.recorded import fill, stranger
from tests.stored import assert_sound, rows
from web.app import lock
from web.settings import Settings

SCHEMA = Path(__file__).parents[3] / "archive/actor/store/schema"
MIGRATIONS = len(list(SCHEMA.glob("[0-9]*.sql")))


async def _open(path: Path) -> None:
    await (await Store.open(path)).close()


@pytest.fixture(name="schema")
def _schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds a next migration to a copy of the schema, and has the store use that copy."""

    def add(*scripts: str) -> None:
        folder = tmp_path / "schema"
        if not folder.exists():
            copytree(SCHEMA, folder)
        for script in scripts:
            number = len(list(folder.iterdir())) + 1
            (folder / f"{number:03}_added.sql").write_text(script)
        monkeypatch.setattr("archive.actor.store.file._SCHEMA", folder)

    return add


def test_every_table_is_strict() -> None:
    with stranger(Path(":memory:")) as db:
        for file in sorted(SCHEMA.glob("[0-9]*.sql")):
            db.executescript(file.read_text())
        tables = [row for row in db.execute("PRAGMA table_list") if not row[1].startswith("sqlite_")]
        assert len(tables) > 10
        assert [name for _, name, _, _, _, strict in tables if not strict] == []


def test_a_migration_is_cut_into_whole_statements_and_nothing_is_left_over() -> None:
    for file in SCHEMA.glob("[0-9]*.sql"):
        script = file.read_text()
        found = statements(script)
        assert all(sqlite3.complete_statement(statement) for statement in found)
        assert "".join("".join(found).split()) == "".join(script.split())


async def test_a_new_store_is_marked_as_ours_and_has_the_newest_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _open(path)
    assert rows(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert rows(path, "PRAGMA user_version") == [(MIGRATIONS,)]
    await _open(path)
    assert_sound(path)


async def test_a_store_grows_by_what_its_schema_lacks_and_keeps_what_it_has(
    tmp_path: Path, schema: Callable[..., None]
) -> None:
    path = tmp_path / "a.db"
    await _open(path)
    with stranger(path) as db:
        db.execute("INSERT INTO setting VALUES ('a', 'b')")
    schema("CREATE TABLE added (x INTEGER) STRICT;", "ALTER TABLE added ADD COLUMN y TEXT;")
    await _open(path)
    assert rows(path, "PRAGMA user_version") == [(MIGRATIONS + 2,)]
    assert rows(path, "SELECT name, value FROM setting") == [("a", "b")]
    assert rows(path, "SELECT x, y FROM added") == []


async def test_a_migration_that_breaks_off_leaves_the_version_before_it_whole(
    tmp_path: Path, schema: Callable[..., None]
) -> None:
    path = tmp_path / "a.db"
    await _open(path)
    schema(
        "CREATE TABLE added (x INTEGER) STRICT;", "CREATE TABLE more (x INTEGER) STRICT;\nINSERT INTO gone VALUES (1);"
    )
    with pytest.raises(StoreUnusable, match="no such table: gone"):
        await _open(path)
    assert rows(path, "PRAGMA user_version") == [(MIGRATIONS + 1,)]
    assert rows(path, "SELECT name FROM sqlite_schema WHERE name IN ('added', 'more')") == [("added",)]
    (tmp_path / "schema" / f"{MIGRATIONS + 2:03}_added.sql").write_text("CREATE TABLE more (x INTEGER) STRICT;")
    await _open(path)
    assert rows(path, "PRAGMA user_version") == [(MIGRATIONS + 2,)]


async def test_a_store_of_a_newer_program_is_refused_and_left_alone(
    tmp_path: Path, schema: Callable[..., None]
) -> None:
    path = tmp_path / "a.db"
    await _open(path)
    with stranger(path) as db:
        db.execute(f"PRAGMA user_version = {MIGRATIONS + 1}")
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=f"is of version {MIGRATIONS + 1}, this program knows {MIGRATIONS}"):
        await _open(path)
    assert path.read_bytes() == before


def _of_another_program(path: Path) -> None:
    with stranger(path) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")


def _marked(path: Path) -> None:
    with stranger(path) as db:
        db.execute("PRAGMA application_id = 7")


def _numbered(path: Path) -> None:
    with stranger(path) as db:
        db.execute("PRAGMA user_version = 1")


def _no_database(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)


@pytest.mark.parametrize("make", [_of_another_program, _marked, _numbered, _no_database])
async def test_a_file_of_another_program_is_refused_and_not_one_byte_of_it_changes(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "theirs.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable):
        await _open(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["theirs.db"]  # noqa: PTH208 - as short as it can be said


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(StoreUnusable, match="unable to open"):
        await _open(tmp_path)
    assert threading.active_count() == before, "a thread that outlives the loop ends with a traceback"


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    await _open(tmp_path / "a.db")


def test_a_store_is_one_process_own_and_the_second_is_told_whose(tmp_path: Path) -> None:
    """C-11."""
    held = Lock(tmp_path / "a.db")
    with pytest.raises(StoreTaken, match=rf"a\.db is in use by process {os.getpid()}\."):
        Lock(tmp_path / "a.db")
    held.say({"pid": 4321, "port": 8765})
    with pytest.raises(StoreTaken, match=r"in use by process 4321 at port 8765\. One process at a time"):
        Lock(tmp_path / "a.db")
    held.release()
    Lock(tmp_path / "a.db").release()


@pytest.mark.parametrize("left", ["", "{", "nonsense\0", '{"pid": 1', "[]", "5", "null", "x" * 5_000])
def test_whatever_a_lock_file_says_the_second_is_refused(tmp_path: Path, left: str) -> None:
    held = Lock(tmp_path / "a.db")
    (tmp_path / "a.db.lock").write_text(left)
    with pytest.raises(StoreTaken, match="in use by"):
        Lock(tmp_path / "a.db")
    held.release()


def test_the_lock_file_outlives_its_process_or_two_could_lock_two_files_of_one_name(tmp_path: Path) -> None:
    Lock(tmp_path / "a.db").release()
    assert (tmp_path / "a.db.lock").read_bytes() == b""


def test_a_lock_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"a\.db\.lock"):
        Lock(tmp_path / "not there" / "a.db")


def test_a_second_process_ends_at_once_and_names_the_first_by_whatever_name_it_came(tmp_path: Path) -> None:
    """C-11: through a symlink it is the same store."""
    fill(tmp_path / "a.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    (tmp_path / "folder").symlink_to(tmp_path)
    held = lock(Settings(store=str(tmp_path / "a.db")))
    held.say({"pid": 4321, "port": 8765})
    for name in ("link.db", "folder/a.db", "folder/link.db"):
        with pytest.raises(StoreTaken, match="process 4321"):
            lock(Settings(store=str(tmp_path / name)))
    second = subprocess.run(
        [sys.executable, "-m", "web"],
        env={"PATH": "", "ASKONCE_STORE": str(tmp_path / "link.db"), "ASKONCE_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    held.release()
    assert (second.returncode, second.stdout) == (1, "")
    assert "Askonce cannot start" in second.stderr
    assert "in use by process 4321 at port 8765" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_lock_ends_with_its_process_however_that_ended(tmp_path: Path) -> None:
    script = (
        "import os, sys, pathlib; from archive.actor.store import Lock;"
        " Lock(pathlib.Path(sys.argv[1])); print('held', flush=True); os.read(0, 1)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "a.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(StoreTaken, match=f"process {first.pid}"):
            Lock(tmp_path / "a.db")
        first.kill()
    Lock(tmp_path / "a.db").release()
