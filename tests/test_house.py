"""The house's own rules, held by reading its code: who imports whom, how long things are, who touches the store."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from archive.actor.store.rows import COLUMNS

ROOT = Path(__file__).parents[1]
FOLDERS = ("archive", "web", "tests")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

PURE = frozenset(
    [
        "base64",
        "collections",
        "collections.abc",
        "contextlib",
        "dataclasses",
        "datetime",
        "difflib",
        "email.utils",
        "enum",
        "functools",
        "hashlib",
        "html",
        "ipaddress",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "string",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
        "urllib.parse",
        "zlib",
        "msgspec",
        "zstandard",
    ]
)
"""All that archive/*.py may import beside each other: msgspec, modules for values of the standard library, codecs."""

WIRING = ("web/app.py", "web/cli.py", "web/commands/")
"""The only ones outside archive/actor that import it: they build the house, or look at a store without a server."""

ADMIN = ("web/admin.py", "web/wire.py", "web/cli.py", "web/commands/")
"""The only ones that import archive.admin, beside the actor that works its messages and archive/wire.py."""

NEIGHBOURS: dict[str, frozenset[str]] = {
    "local.py": frozenset({"mini"}),
    # The actor's other half: what each message does, in the connection's thread.
    "handlers.py": frozenset({"calls", "effects", "store", "unwritten"}),
    "effects.py": frozenset({"calls", "store", "unwritten"}),
    "unwritten.py": frozenset({"calls", "spool"}),
    "spool.py": frozenset({"disk"}),
    "writing.py": frozenset({"calls", "effects", "handlers", "mailbox", "store", "unwritten"}),
    "beside.py": frozenset({"mailbox", "store"}),
    "offline.py": frozenset({"store"}),
}
"""Which neighbours a module of archive/actor may import, beside actor.py, which imports all of them."""


class Source(NamedTuple):
    """A file of ours: its path from the root, and its syntax."""

    path: str
    tree: ast.Module
    lines: int


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of ours."""
    found: list[Source] = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            found.append(Source(file.relative_to(ROOT).as_posix(), ast.parse(text), len(text.splitlines())))
    return tuple(found)


def under(*folders: str) -> list[Source]:
    """The files in these folders."""
    return [source for source in sources() if source.path.startswith(folders)]


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported, wherever in the file; `from a import b` is a.b where that is a module of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            for name in node.names:
                inner = f"{module}.{name.name}"
                ours = ROOT / inner.replace(".", "/")
                yield inner if ours.with_suffix(".py").exists() or ours.is_dir() else module


def reaches(module: str, *places: str) -> bool:
    """Is `module` one of these, or inside one?"""
    return any(module == place or module.startswith(place + ".") for place in places)


def is_pure(source: Source) -> bool:
    """Is it one of archive/*.py?"""
    return Path(source.path).parent.as_posix() == "archive"


def wrong_imports(source: Source) -> list[str]:
    """What a file imports and may not (house.md: `web | archive/client > archive/actor > archive/*.py`)."""
    path, found = source.path, list(imports(source.tree))
    if path.startswith("tests/"):
        return []
    wrong = [name for name in found if reaches(name, "tests")]
    if not path.startswith("web/"):
        wrong += [name for name in found if reaches(name, "web")]
    if is_pure(source):
        ours = {f"archive.{Path(other.path).stem}" for other in sources() if is_pure(other)}
        return wrong + [name for name in found if name not in PURE and name not in ours]
    if not path.startswith("archive/actor/"):
        if not path.startswith(WIRING):
            wrong += [name for name in found if reaches(name, "archive.actor")]
        if not path.startswith(ADMIN):
            wrong += [name for name in found if reaches(name, "archive.admin")]
    if not path.startswith("archive/client/") and path != "web/cli.py":
        wrong += [name for name in found if reaches(name, "archive.client")]
    if path.startswith("archive/client/"):
        wrong += [name for name in found if reaches(name, "web", "archive.actor")]
    if path.startswith("archive/actor/"):
        wrong += _wrong_neighbours(path, found)
    return wrong


def _wrong_neighbours(path: str, found: list[str]) -> list[str]:
    inside = path.removeprefix("archive/actor/")
    if inside == "actor.py":
        return []
    allowed = {f"archive.actor.{name}" for name in NEIGHBOURS.get(inside, ())}
    if "/" in inside:
        # store/ and mini/ are packages: they may import within themselves, and of the actor's else only the disk.
        allowed |= {f"archive.actor.{inside.partition('/')[0]}", "archive.actor.disk"}
    return [name for name in found if reaches(name, "archive.actor") and not reaches(name, *allowed)]


@pytest.mark.parametrize("source", under("archive", "web"), ids=lambda source: source.path)
def test_every_file_imports_only_what_is_beneath_it(source: Source) -> None:
    assert wrong_imports(source) == []


WRONG = [
    ("archive/picks.py", "import asyncio"),
    ("archive/picks.py", "import time"),
    ("archive/picks.py", "import random"),
    ("archive/picks.py", "import logging"),
    ("archive/picks.py", "from pathlib import Path"),
    ("archive/picks.py", "import sqlite3"),
    ("archive/picks.py", "from email import message"),
    ("archive/picks.py", "def f():\n    from archive.actor.store import Store"),
    ("archive/picks.py", "from archive import actor"),
    ("archive/picks.py", "import numpy"),
    ("archive/picks.py", "from web.errors import STATUS"),
    ("archive/actor/hub.py", "from archive.actor.mailbox import Letter"),
    ("archive/actor/hub.py", "from archive.actor import mailbox"),
    ("archive/actor/hub.py", "import archive.actor.actor"),
    ("archive/actor/hub.py", "from web import app"),
    ("archive/actor/local.py", "from archive.actor.store import Store"),
    ("archive/actor/handlers.py", "from archive.actor.hub import Hub"),
    ("archive/actor/store/rows.py", "from archive.actor.recent import Recent"),
    ("archive/actor/store/rows.py", "from archive.actor.mini import Mini"),
    ("archive/actor/mini/asked.py", "from archive.actor.local import LocalModel"),
    ("archive/client/client.py", "from web.settings import read"),
    ("archive/client/client.py", "from archive.actor.actor import Actor"),
    ("web/errors.py", "from archive.actor.actor import Actor"),
    ("web/errors.py", "import archive.actor"),
    ("web/errors.py", "import archive.admin"),
    ("web/errors.py", "from archive.client import about"),
    ("web/commands/asking.py", "from archive.client import connect"),
    ("web/errors.py", "from tests import fakes"),
]
RIGHT = [
    ("archive/picks.py", "from archive.when import SECOND\nimport re\nimport msgspec"),
    ("archive/actor/actor.py", "from archive.actor.hub import Hub\nfrom archive.actor.store import Store"),
    ("archive/actor/local.py", "from archive.actor.mini import Mini"),
    ("archive/actor/store/record.py", "from archive.actor.store.rows import Rows"),
    ("archive/actor/hub.py", "import asyncio\nfrom archive.live import Notice"),
    ("web/app.py", "from archive.actor.actor import Actor"),
    ("web/commands/doctor.py", "from archive.actor.store.check import checking"),
    ("web/cli.py", "from archive.client import connect"),
    ("web/errors.py", "from archive.errors import ArchiveError"),
]


@pytest.mark.parametrize(("path", "code"), WRONG)
def test_an_import_that_goes_the_wrong_way_is_found(path: str, code: str) -> None:
    assert wrong_imports(Source(path, ast.parse(code), 1)) != []


def test_an_import_that_is_relative_is_found() -> None:
    with pytest.raises(AssertionError, match="absolute"):
        wrong_imports(Source("archive/picks.py", ast.parse("from . import when"), 1))


@pytest.mark.parametrize(("path", "code"), RIGHT)
def test_an_import_that_goes_the_right_way_is_not(path: str, code: str) -> None:
    assert wrong_imports(Source(path, ast.parse(code), 1)) == []


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.path)
def test_no_file_and_no_function_is_too_long(source: Source) -> None:
    assert source.lines <= FILE_LINES_MAX
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or node.lineno) - node.lineno + 1 <= FUNCTION_LINES_MAX, node.name


def awaits(tree: ast.Module) -> list[int]:
    """Lines that await anything, or define what can; a Protocol's methods only say what others do."""
    promised = {
        method
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
        for method in node.body
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith) and node not in promised
    ]


def test_nothing_pure_awaits_anything() -> None:
    for source in sources():
        if is_pure(source):
            assert awaits(source.tree) == [], source.path
    assert awaits(ast.parse("async def f(): ...")) == [1]
    assert awaits(ast.parse("class C(Protocol):\n    async def f(self): await g()")) == [2]


DOORS = frozenset(
    {"open", "fdopen", "read_bytes", "read_text", "write_bytes", "write_text", "touch", "copy", "copyfile"}
)
"""Calls that open a file, by whatever object."""

MAY_OPEN = {
    "archive/actor/store/file.py": "its own schema",
    "archive/actor/store/files.py": "what the system says of locks and of programs",
    "archive/actor/store/lock.py": "its own lock file",
    "archive/actor/store/copies.py": "copies of the store, never the store",
    "archive/actor/store/start.py": "the spool, to see whether it is one",
    "archive/actor/store/ledger.py": "the ledger of erasures",
    "archive/actor/store/search.py": "all live files, in a process of its own",
    "archive/actor/mini/": "the model's weights",
    "archive/actor/spool.py": "the spool",
    "archive/actor/disk.py": "folders, and copies that are whole, to have them on disk",
    "archive/actor/offline.py": "there is no server",
    "web/cli.py": "what the owner names",
    "web/destinations.py": "the owner's file of destinations",
    "web/commands/exchange.py": "the export it writes, and what it imports; never the store",
    "web/commands/output.py": "the null device, in place of an output that takes nothing",
    "web/render.py": "the templates and static files, to name their build",
    "web/card.py": "the typefaces a card is drawn with",
}
"""Who opens files, and which; none of them is the store."""


def opens(tree: ast.Module) -> list[str]:
    """Every call that opens a file, as it is written."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            if name in DOORS and ast.unparse(called) not in {"Store.open", "self._hub.open"}:
                found.append(ast.unparse(node))
    return found


def test_nobody_opens_the_stores_file_but_sqlite() -> None:
    """C-10: closing a second descriptor drops SQLite's locks, and commits are lost without a sign."""
    for source in under("archive", "web"):
        if not source.path.startswith(tuple(MAY_OPEN)):
            assert opens(source.tree) == [], source.path
    file = next(source for source in sources() if source.path == "archive/actor/store/file.py")
    assert opens(file.tree) == ["file.read_text(encoding='utf-8')"]
    files = next(source for source in sources() if source.path == "archive/actor/store/files.py")
    assert all("'/proc/" in opened for opened in opens(files.tree))
    assert opens(ast.parse("Path(store).read_bytes()")) == ["Path(store).read_bytes()"]


def test_one_sqlite_library_is_in_the_process_and_one_file_connects_with_it() -> None:
    """Two libraries on one file lose commits (aiosqlite uses the one under sqlite3)."""
    for source in under("archive", "web"):
        named = set(imports(source.tree))
        assert not named & {"apsw", "pysqlite3", "pysqlite3.dbapi2", "sqlean", "libsql", "peewee", "sqlalchemy"}, (
            source.path
        )
        if not source.path.startswith("archive/actor/store/"):
            assert "aiosqlite" not in named, source.path
        if source.path != "archive/actor/store/file.py":
            assert not re.search(r"\bconnect\(", _calls(source.tree)), source.path


def _calls(tree: ast.Module) -> str:
    return "\n".join(
        f"{ast.unparse(node.func)}("
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and "sql" in ast.unparse(node.func)
    )


def test_every_decision_is_a_numbered_page() -> None:
    pages = sorted((ROOT / "docs" / "decisions").iterdir())
    assert pages
    for number, page in enumerate(pages, start=1):
        assert re.fullmatch(rf"{number:04}-[a-z0-9-]+\.md", page.name), page.name
        title = page.read_text(encoding="utf-8").splitlines()[0]
        assert re.match(rf"# {number}\. \S", title), page.name


def test_a_decision_that_code_names_exists() -> None:
    pages = {page.name[:4] for page in (ROOT / "docs" / "decisions").iterdir()}
    for source in under("archive", "web", "tests"):
        text = (ROOT / source.path).read_text(encoding="utf-8")
        assert set(re.findall(r"docs/decisions/(\d{4})", text)) <= pages, source.path


def test_the_words_of_the_insert_only_tables_are_the_schemas() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for file in sorted((ROOT / "archive/actor/store/schema").glob("[0-9]*.sql")):
            db.executescript(file.read_text(encoding="utf-8"))
        chained = [
            table
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if "chain" in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        ]
        assert sorted(chained) == sorted(COLUMNS)
        for table, named in COLUMNS.items():
            emptied = ("emptied_at",) if table == "text" else ()
            assert tuple(row[1] for row in db.execute(f"PRAGMA table_info({table})")) == (
                "id",
                *named,
                *emptied,
                "chain",
            )


def test_every_module_says_what_lives_there() -> None:
    for source in under("archive", "web"):
        if source.tree.body:
            assert ast.get_docstring(source.tree), source.path
