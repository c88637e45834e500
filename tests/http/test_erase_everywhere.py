"""A word of its own through every door, then an erase, then a look at every byte: of the tables, packed or not, the
files of the database and the folders beside it. What is left is what the report names, and nothing else."""

from __future__ import annotations

import json
import logging
import sqlite3
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest
import zstandard

import everthread
from everthread import Everthread
from everthread.adapters.stores import packed_records
from everthread.adapters.stores.sqlite.compression import add_compression_functions
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http.app import create_app
from everthread.mcp.over_http import McpOverHttp
from everthread.settings import Settings
from tests.forensics import readable
from tests.http.conftest import client_of, key_for
from tests.http.protocol.rig import CONFIG, says
from tests.postgres import Server

asyncpg = pytest.importorskip("asyncpg")

API = "/api/v1"
OF_THE_MESSAGE = ("qzchatone", "qzanswer")
"""In a message and in the answer that repeats it."""
OF_THE_CONVERSATION = (
    "qzchattwo", "qzthinking", "qzargument", "qzresult", "qzlarge", "qzuploadname", "qzuploadtext", "qzedited",
    "qzrevised", "qzchild", "qzmemory", "qzsystem", "qztool", "qztitle", "qzmetadata", "qzhidden",
)  # fmt: skip
OF_A_THREAD = ("qzgraph", "qzthreadmeta", "qzstate")
OF_THE_OWNER = ("qzownmemory", "qzmcpmemory", "qzdocument", "qzitem", "qzcron", "qzkeyname", "qzimport", "qzclaude")
LEFT_WITHOUT_TEXT = {
    "branches", "calibrations", "conversation_changes", "conversations", "entries", "entry_ids", "entry_ids_until",
    "erasures", "items", "schema_version", "threads", "unindexed", "vector_models",
}  # fmt: skip
"""The tables that may have rows when all of the only owner is erased: numbers, ids, hashes; and the list
of whose crons are started."""


class World(NamedTuple):
    et: Everthread
    http: httpx.AsyncClient
    url: str
    folder: Path
    blobs: Path


@asynccontextmanager
async def world(url: str, folder: Path) -> AsyncIterator[World]:
    work, blobs = folder / "work", folder / "blobs"
    opened = everthread.open(url, worker=False, workspaces=work, blobs=f"file://{blobs}")
    async with opened as et:
        settings = Settings(database=url, requests_per_minute=0, model="scripted:echo", langgraph_config=CONFIG)
        mcp = McpOverHttp(et)
        app = create_app(et, settings, needs_key=True, mcp=mcp)
        async with app.router.lifespan_context(app), client_of(app, await key_for(et, "ann")) as http:
            http.timeout = httpx.Timeout(60)
            yield World(et, http, url, work, blobs)


async def sent(http: httpx.AsyncClient, method: str, path: str, **given: Any) -> Any:
    answer = await http.request(method, path, **given)
    assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
    return answer.json() if answer.content else None


async def fill(it: World) -> None:
    """Everything that somebody can put into one conversation, and into what an owner has beside it."""
    http = it.http
    made = {"id": "trip", "title": "qztitle", "metadata": {"about": "qzmetadata"}}
    await sent(http, "POST", f"{API}/conversations", json=made, headers={"Idempotency-Key": "k1"})
    await sent(http, "POST", f"{API}/chat", json={"conversation_id": "trip", "message": "qzchattwo first"})
    messages = [
        {"role": "user", "content": "qzchatone please", "id": "m1"},
        {"role": "assistant", "content": "as you said, qzanswer", "id": "m2", "reasoning_content": "qzthinking"},
        {"role": "assistant", "content": "", "id": "m3", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "qzargument"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "qzresult found"},
        {"role": "user", "content": "qzlarge " + "filler " * 20_000, "id": "m5"},
        {"role": "user", "content": "qzhidden", "id": "m6"},
        {"role": "user", "content": "before", "id": "m7"},
        {"role": "user", "content": "qzrevised", "id": "m8"},
    ]  # fmt: skip
    await sent(http, "POST", f"{API}/conversations/trip/messages", json={"messages": messages},
               headers={"Idempotency-Key": "k2"})  # fmt: skip
    conv = await it.et.conversations.get("trip", "ann")
    await conv.append({"role": "user", "content": "now otherwise", "id": "m8"})
    await conv.edit("m7", {"role": "user", "content": "qzedited"})
    await conv.delete_message("m6")
    await conv.remember("The user likes qzmemory.", seq=1)
    file = {"file": ("qzuploadname.txt", b"qzuploadtext in a file", "text/plain")}
    await sent(http, "POST", f"{API}/conversations/trip/files", files=file)
    child = await it.et.conversations.create(id="child", owner="ann", parent_id="trip")
    await child.append({"role": "user", "content": "qzchild"})
    tools = [{"name": "t", "description": "qztool", "parameters": {}}]
    await conv.keep_context(await conv.context(system="qzsystem", tools=tools))
    await sent(http, "POST", f"{API}/conversations/trip/share", json={})
    await conv.search("qzchatone")
    # A graph's thread.
    await sent(http, "POST", "/threads", json={"thread_id": "graph", "metadata": {"m": "qzthreadmeta"}})
    run = {"assistant_id": "agent", "input": says("qzgraph")}
    await sent(http, "POST", "/threads/graph/runs/wait", json=run)
    await sent(http, "POST", "/threads/graph/state", json={"values": says("qzstate")})
    # What belongs to the owner.
    await sent(http, "POST", f"{API}/memories", json={"text": "Likes qzownmemory."}, headers={"Idempotency-Key": "k3"})
    call = {"name": "remember", "arguments": {"text": "Likes qzmcpmemory."}}
    await sent(http, "POST", "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
               headers={"Accept": "application/json, text/event-stream"})  # fmt: skip
    document = {"collection": "books", "text": "qzdocument says so.", "title": "qzdocument"}
    await sent(http, "POST", f"{API}/knowledge/documents", json=document)
    await sent(http, "PUT", "/store/items", json={"namespace": ["a"], "key": "k", "value": {"v": "qzitem"}})
    cron = {"assistant_id": "agent", "schedule": "0 0 1 1 *", "input": says("qzcron")}
    await sent(http, "POST", "/runs/crons", json=cron)
    line = {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/qzclaude",
            "message": {"role": "user", "content": "qzimport"}}  # fmt: skip
    await sent(http, "POST", f"{API}/import", content=json.dumps(line).encode() + b"\n",
               headers={"Content-Type": "application/octet-stream"})  # fmt: skip
    await it.et.store.api_keys.add(new_key("ann", name="qzkeyname", now=system_clock()).key)


# -- looking -----------------------------------------------------------------------------------------------------------


def forms(word: str) -> list[bytes]:
    """A word as it may stand in bytes: plain, wide, and in base64 at any place of a text."""
    raw = word.encode()
    shifted = [b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)]
    return [raw, word.encode("utf-16-le"), *(piece for piece in shifted if len(piece) > 7)]


def found_in(pieces: Iterable[bytes], words: Iterable[str]) -> set[str]:
    whole = b"\n".join(pieces)
    low = whole.lower()
    return {word for word in words if any((form in low) or (form in whole) for form in forms(word))}


def unpacked(value: Any) -> list[bytes]:
    """A value of a row, in every way that we pack."""
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(value, default=str)
    if isinstance(value, str):
        return [value.encode("utf-8", "replace")]
    if not isinstance(value, bytes):
        return [str(value).encode()]
    out = [value]
    with closing(sqlite3.connect(":memory:")) as taught:
        add_compression_functions(taught)
        out.append(bytes(taught.execute("SELECT unpacked(?, '')", (value,)).fetchone()[0]))
    out.append(packed_records.unpack(value))
    for skipped in (0, 1):
        try:
            out.append(zstandard.ZstdDecompressor().decompress(value[skipped:], max_output_size=1 << 24))
        except zstandard.ZstdError:
            continue
    return out


async def rows_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
            names = [name for (name,) in connection.execute(tables)]  # an index stands in tables of its own
            return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        return {
            name if schema != "everthread_jobs" else f"{schema}.{name}": [
                tuple(row) for row in await connection.fetch(f'SELECT * FROM "{schema}"."{name}"')
            ]
            for schema, name in names
        }
    finally:
        await connection.close()


def files_of(it: World, server: Server | None) -> list[bytes]:
    """The database's own files, the folders beside it, and the names in them."""
    pieces = []
    for folder in (it.folder, it.blobs):
        for path in folder.rglob("*"):
            pieces.append(str(path.relative_to(folder)).encode())
            if path.is_file():
                pieces += unpacked(path.read_bytes())
    if server is None:
        file = Path(it.url.removeprefix("sqlite:///"))
        return [*pieces, *(readable(path.read_bytes()) for path in file.parent.glob(f"{file.name}*") if path.is_file())]
    name = urlsplit(it.url).path[1:]
    server.run_sql("ANALYZE", name)  # what the planner remembers of the rows that are left
    server.run_sql("CHECKPOINT")
    oid = server.run_sql(f"SELECT oid FROM pg_database WHERE datname = '{name}'")
    return [*pieces, *(file.read_bytes() for file in (server.data / "base" / oid).iterdir() if file.is_file())]


async def left_of(it: World, server: Server | None, words: Iterable[str]) -> set[str]:
    cells = [one for rows in (await rows_of(it.url)).values() for row in rows for cell in row for one in unpacked(cell)]
    return found_in([*cells, *files_of(it, server)], words)


ALL = (*OF_THE_MESSAGE, *OF_THE_CONVERSATION, *OF_A_THREAD, *OF_THE_OWNER)


@pytest.mark.long
async def test_i22_an_erase_leaves_no_byte_of_what_came_in_by_any_door(
    durable_url: str, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    server: Server | None = None
    if durable_url.startswith("postgres"):
        server = request.getfixturevalue("postgres_server")
    with caplog.at_level(logging.DEBUG, logger="everthread"):
        async with world(durable_url, tmp_path) as it:
            await fill(it)
            there = await left_of(it, server, ALL)
            assert set(ALL) - there == set(), "the scan sees what came in"

            await it.et.erase(owner="ann", conversation="trip", message="m1")
            assert await left_of(it, server, ["qzchatone"]) == set()

            erased = await sent(it.http, "POST", f"{API}/conversations/trip/erase", json={"confirm": "trip"})
            assert await left_of(it, server, [*OF_THE_MESSAGE, *OF_THE_CONVERSATION]) == set(), erased
            assert await left_of(it, server, OF_A_THREAD) == set(OF_A_THREAD)

            await it.et.erase(owner="ann", conversation="graph")
            assert await left_of(it, server, OF_A_THREAD) == set()
            assert await left_of(it, server, OF_THE_OWNER) == set(OF_THE_OWNER)

            await it.et.erase(owner="ann")
            assert await left_of(it, server, ALL) == set()
            filled = {name for name, rows in (await rows_of(it.url)).items() if rows}
            ours = {name for name in filled if not name.startswith(("words_", "note_words_", "sqlite_"))}
            assert ours <= LEFT_WITHOUT_TEXT | {"everthread_jobs.procrastinate_workers"}, ours - LEFT_WITHOUT_TEXT
            assert (await it.et.verify()).ok
    logged = "\n".join(str(vars(record)) for record in caplog.records).encode()
    assert found_in([logged], ALL) == set(), "no text is logged"
