"""Files of other programs that anybody may upload, made to keep the server busy or to fill its memory: databases that
compute, zips that lie about what is in them, JSON that is small in a file only. Imports run one at a time, so one that
does not end would keep everybody from importing."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import stat
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import everthread
from everthread import Everthread
from everthread.imports import foreign_database
from tests.forkserver import ForkServer
from tests.http.served import API
from tests.http.test_hostile_uploads import import_two_at_once, of_repeated_bytes

FILE = {"Content-Type": "application/octet-stream"}
HERMES = "id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL"
GOOSE = "id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, created_timestamp INT, content_json TEXT"
ZED = "id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB"
ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS id, 's' AS session_id, 'user' AS role, 'x' AS content, 1 AS timestamp FROM n"
)
SOUND = b'{"messages": [{"role": "user", "content": "all is well"}]}'


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The doors are the same over any store."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


def doubling(count: int) -> str:
    """Columns, each of which is twice the one before."""
    return "c0, " + ", ".join(f"c{n} AS (c{n - 1} + c{n - 1})" for n in range(1, count))


def nested_views(count: int) -> list[str]:
    above = [f"CREATE VIEW v{n} AS SELECT a.* FROM v{n - 1} a, v{n - 1} b" for n in range(1, count)]
    return [f"CREATE TABLE v0 ({HERMES})", *above, f"CREATE VIEW messages AS SELECT * FROM v{count - 1}"]


DATABASES = {
    "an endless view": [f"CREATE VIEW messages AS {ENDLESS}"],
    "an endless view that says it is a table": [
        f"CREATE VIEW messages AS {ENDLESS}",
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET type = 'table'",
    ],
    "an endless view of sessions": [
        f"CREATE TABLE messages ({GOOSE})",
        "CREATE VIEW sessions AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n",
    ],
    "views of views of views": nested_views(7),
    "columns each twice the one before": [
        f"CREATE TABLE messages ({HERMES}, {doubling(60)})",
        "INSERT INTO messages (session_id, role, content, timestamp, c0) VALUES ('s', 'user', 'x', 1, 1)",
    ],
    "a column of 50 MB that is computed": [
        f"CREATE TABLE messages ({HERMES}, more AS (printf('%.50000000c', 'x')))",
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'x', 1)",
    ],
    "a thread that unpacks to 256 MB": [
        f"CREATE TABLE threads ({ZED})",
        f"INSERT INTO threads VALUES ('t', 't', '2026-01-01', 'zstd', x'{of_repeated_bytes(8192, b' ').hex()}')",
    ],
    "many sessions, each of which has all messages looked through": [
        "CREATE TABLE session (id TEXT, time_updated INT)",
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT)",
        "CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) "
        "INSERT INTO session SELECT i, i FROM n",
        "INSERT INTO message SELECT id, id, 1, '{}' FROM session",
        "INSERT INTO part SELECT id, id, '{}' FROM session",
    ],
}


@pytest.mark.parametrize("statements", DATABASES.values(), ids=DATABASES)
async def test_a_database_that_computes_without_end_is_given_up(
    alice: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    monkeypatch.setattr(foreign_database, "_SPARE_STEPS", 10_000_000)
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    async with asyncio.timeout(60):
        answer = await alice.post(f"{API}/import", content=path.read_bytes(), headers=FILE)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 200:
        assert answer.json()["problems"] != []
        assert str(tmp_path.parent) not in answer.text
        assert "everthread-import-" not in answer.text
    async with asyncio.timeout(10):
        assert (await alice.post(f"{API}/import", content=SOUND, headers=FILE)).json()["messages"] == 1


async def test_rows_that_share_their_pages_give_no_more_than_the_file_can_hold(
    alice: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a damaged file may: what comes out is counted, wherever it comes from."""
    monkeypatch.setattr(foreign_database, "_SPARE_BYTES", 0)
    monkeypatch.setattr(foreign_database, "_READINGS", 1)
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE messages ({HERMES})")
        rows = [("s", "user", "x" * 1000, 1)] * 100
        connection.executemany("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    answer = await alice.post(f"{API}/import", content=path.read_bytes(), headers=FILE)
    assert (answer.json()["messages"], answer.json()["problems"]) == (100, [])
    monkeypatch.setattr(foreign_database, "_ROW_BYTES", 500)
    answer = await alice.post(f"{API}/import", content=path.read_bytes() + bytes(4096), headers=FILE)
    assert answer.json()["problems"] == ["the upload: gives more than a file of its size can hold"]


def named(name: str) -> Callable[[zipfile.ZipFile], None]:
    return lambda packed: packed.writestr(name, SOUND)


def link(packed: zipfile.ZipFile) -> None:
    entry = zipfile.ZipInfo("link.json")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    packed.writestr(entry, "/etc/passwd")


def packed_bombs(packed: zipfile.ZipFile) -> None:
    for number in range(4):
        packed.writestr(f"{number}.jsonl.zstd", of_repeated_bytes(64 * 1024, b" "))


def nested(packed: zipfile.ZipFile) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as other:
        named("a.json")(other)
    packed.writestr("inner.zip", inner.getvalue())


def lying_size(packed: zipfile.ZipFile) -> None:
    packed.writestr("a.json", SOUND)
    packed.infolist()[0].file_size = 7


ENTRIES: dict[str, Callable[[zipfile.ZipFile], None]] = {
    "a symbolic link": link,
    "a path above": named("../../../../tmp/everthread-escaped.json"),
    "two dots alone": named(".."),
    "a path of the root": named("/tmp/everthread-escaped.json"),
    "a path of another system": named("C:\\..\\..\\everthread-escaped.json"),
    "a name of 60,000 bytes": named("x" * 60_000),
    "a name of wide letters": named("\U0001f600" * 200),
    "files that unpack to 2 GB each": packed_bombs,
    "a zip in the zip": nested,
    "less than it says": lying_size,
}


@pytest.mark.parametrize("put", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
async def test_whatever_a_zip_names_stays_in_its_folder_and_the_other_files_are_read(
    alice: httpx.AsyncClient, et: Everthread, put: Callable[[zipfile.ZipFile], None]
) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        put(packed)
        packed.writestr("last.json", b'{"messages": [{"role": "user", "content": "the last"}]}')
    async with asyncio.timeout(60):
        answer = await alice.post(f"{API}/import", content=made.getvalue(), headers=FILE)
    assert answer.status_code == 200, answer.text
    assert len(await et.search("last", owner="alice")) == 1, answer.text
    assert list(await et.search("root", owner="alice")) == []
    assert not await asyncio.to_thread(Path("/tmp/everthread-escaped.json").exists)


WIDE = b"[]," * 8_800_000 + b"[]"
"""25 MiB, of which a parser makes nine million lists."""


def zipped(body: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("conversations.json", body)
    return made.getvalue()


@pytest.mark.timeout(240)
def test_json_that_is_small_in_a_file_only_is_refused_within_bounded_memory(
    forkserver: ForkServer, tmp_path: Path
) -> None:
    files = (b"[[" + WIDE + b"]]", zipped(b'{"messages":[' + WIDE + b"]}"))
    statuses, mebibytes = import_two_at_once(forkserver, tmp_path, files, kind=FILE["Content-Type"])
    assert statuses == [200, 200]
    assert mebibytes < 600
