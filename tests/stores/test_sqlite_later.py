"""On SQLite most tables are made when something is first written to them; until then they read as empty ones."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.sqlite import files, later
from everthread.adapters.stores.sqlite.later import Connection
from everthread.adapters.stores.sqlite.statements import PAGE

LATER = sorted(later._made_by())
CORE = {"alembic_version", "branches", "conversations", "entries", "jobs", "unindexed", "words"}
KEEP = "INSERT INTO blobs VALUES (?, x'00', x'01')"
KEPT = "SELECT count(*) FROM blobs"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "et.db"
    files.prepare(path)
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[Connection]:
    with closing(files.connect(path)) as connection:
        yield connection


def tables_of(path: Path) -> set[str]:
    """But for those that SQLite makes for itself."""
    with closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {name for name in names if not re.fullmatch(r"sqlite_\w+|(note_)?words_\w+", name)}


def schema_of(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'")
    return {name: re.sub(r'\s+|"', "", sql) for name, sql in rows}


def test_what_is_made_at_once_and_later_is_what_the_steps_make(tmp_path: Path, connection: Connection) -> None:
    by_steps = tmp_path / "steps.db"
    with closing(sqlite3.connect(by_steps)) as file, file:
        file.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    assert len(files.migrate(by_steps)) > 1, "step by step"
    for table in LATER:
        with suppress(sqlite3.IntegrityError):  # the table is there, and wants values
            connection.execute(f"INSERT INTO {table} DEFAULT VALUES")
    with closing(sqlite3.connect(by_steps)) as file:
        expected = schema_of(file)
    found = schema_of(connection)
    assert found.pop("alembic_version")
    assert expected.pop("alembic_version")
    assert found == expected


def test_a_new_file_has_few_tables(path: Path) -> None:
    assert tables_of(path) == CORE
    assert path.stat().st_size < 82_000


async def test_reading_makes_no_table(path: Path) -> None:
    async with everthread.open(f"sqlite:///{path}", worker=False) as et:
        assert len(await et.search("nothing")) == 0
        assert (await et.verify()).ok
        assert (await et.stats())["jobs_waiting"] == 0
        assert len((await et.memories.list("local")).items) == 0
        assert await et.memories.habits("local") == []
    assert tables_of(path) == CORE


async def test_erasing_makes_only_the_table_of_erasures(path: Path) -> None:
    async with everthread.open(f"sqlite:///{path}", worker=False) as et:
        await (await et.conversations.create(id="c")).append([{"role": "user", "content": "secret"}])
        await et.erase(conversation="c")
    assert tables_of(path) == {*CORE, "erasures"}


def test_a_table_is_made_with_all_that_goes_with_it_or_not_at_all(
    path: Path, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of a transaction too: half a table would be taken for a whole one."""
    broken = (*later._made_by()["blobs"], "CREATE INDEX by_x ON nowhere (x)")
    monkeypatch.setattr(later, "_made_by", lambda: {"blobs": broken})
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        connection.execute(KEEP, (1,))
    assert not connection.in_transaction
    assert tables_of(path) == CORE


@pytest.mark.parametrize("table", LATER)
def test_a_table_that_is_missing_is_empty_and_changing_it_does_not_make_it(table: str, connection: Connection) -> None:
    if table == "note_words":  # which gives and deletes nothing but by words
        assert connection.execute("SELECT * FROM note_words WHERE note_words MATCH 'a'").fetchall() == []
    else:
        assert connection.execute(f"SELECT * FROM {table}").fetchall() == []
        assert connection.execute(f"DELETE FROM {table}").rowcount == 0
    assert table not in schema_of(connection)


def test_what_another_process_makes_is_seen_by_a_statement_prepared_before(path: Path) -> None:
    with closing(files.connect(path)) as reader, closing(files.connect(path)) as writer:
        reader.execute("PRAGMA query_only = ON")
        assert reader.execute(KEPT).fetchone() == (0,)
        writer.execute(KEEP, (1,))
        reader.look_again()
        assert reader.execute(KEPT).fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM blobs")


def test_what_another_process_makes_stays_seen_after_a_rollback(path: Path) -> None:
    with closing(files.connect(path)) as ours, closing(files.connect(path)) as other:
        assert ours.execute(KEPT).fetchone() == (0,)
        other.execute(KEEP, (1,))
        for _ in range(2):
            ours.execute("BEGIN IMMEDIATE")
            ours.look_again()
            ours.execute("ROLLBACK")
        assert ours.execute(KEPT).fetchone() == (1,)


def test_two_that_write_to_a_missing_table_write_to_one(path: Path) -> None:
    with closing(files.connect(path)) as one, closing(files.connect(path)) as other:
        assert other.execute(KEPT).fetchone() == (0,)
        for number, connection in enumerate((one, other, one, other)):
            connection.execute("BEGIN IMMEDIATE")
            connection.look_again()
            connection.execute(KEEP, (number,))
            connection.execute("COMMIT")
        assert one.execute(KEPT).fetchone() == other.execute(KEPT).fetchone() == (4,)


def test_a_table_goes_with_the_transaction_that_made_it(path: Path, connection: Connection) -> None:
    for _ in range(2):
        connection.execute("BEGIN IMMEDIATE")
        connection.look_again()
        connection.execute(KEEP, (1,))
        assert connection.execute(KEPT).fetchone() == (1,)
        connection.execute("ROLLBACK")
        assert connection.execute(KEPT).fetchone() == (0,)
        assert tables_of(path) == CORE
    connection.execute("BEGIN IMMEDIATE")
    connection.look_again()
    connection.execute("SAVEPOINT one")
    connection.execute(KEEP, (1,))
    connection.execute("ROLLBACK TO one")
    connection.executemany(KEEP, ((number,) for number in (2, 3)))
    connection.execute("COMMIT")
    with closing(sqlite3.connect(path)) as outside:
        assert outside.execute("SELECT conversation FROM blobs").fetchall() == [(2,), (3,)]


def test_a_search_goes_on_while_tables_are_made(path: Path) -> None:
    """FTS5 fails when the tables of the file change twice while it looks for its own."""
    is_over = threading.Event()
    problems: list[Exception] = []

    def search() -> None:
        with closing(files.connect(path)) as connection:
            while not is_over.is_set():
                try:
                    connection.execute("SELECT rowid FROM words WHERE words MATCH 'x'").fetchall()
                    connection.execute("SELECT count(*) FROM entries").fetchone()
                except sqlite3.Error as problem:
                    problems.append(problem)

    readers = [threading.Thread(target=search) for _ in range(3)]
    for reader in readers:
        reader.start()
    with closing(files.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for number in range(600):
            connection.execute(f"CREATE TABLE made_{number} (x)")
    is_over.set()
    for reader in readers:
        reader.join()
    assert problems == []


@pytest.mark.parametrize(("messages", "times"), [(100, 2.5), (1_000, 1.5)])
async def test_a_file_with_one_conversation_weighs_little_more_than_it(
    messages: int, times: float, tmp_path: Path
) -> None:
    """The size of a file is no timing: it is the same everywhere."""
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        for start in range(0, messages, 5):
            await conv.append([_message(number) for number in range(start, start + 5)])
        await et.search("anything")
        payload = (await et.stats())["payload_bytes"]
    assert (tmp_path / "et.db").stat().st_size < times * payload


def _message(number: int) -> dict[str, str]:
    words: Sequence[str] = [f"word{number * word % 997}" for word in range(1, 50)]
    return {"role": "user", "content": " ".join(words)}


@pytest.mark.parametrize("missing", [1, 100, PAGE - 1])
def test_a_file_that_ends_within_a_page_is_damaged(missing: int, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(everthread.StoreDamaged, match="cut off"):
        files.prepare(path)
