"""The command that queries the database itself: sql. It only reads.

Payloads are packed on SQLite, so `sqlite3 et.db` shows who said something and when, not what (the views of schema.sql).
Here a view `messages` has the text too, on either database.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from everthread.adapters.stores.database_url import is_postgres, sqlite_file
from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation, require_postgres
from everthread.core.entries import HIDDEN_FLAGS, SEQ_BITS, SEQ_MASK, Kind, Revision
from everthread.core.errors import Invalid, StoreError

_MOST_BYTES = 16
"""How many bytes of a binary value a table shows."""

SQLITE_MESSAGES = f"""
CREATE TEMP VIEW messages AS
SELECT c.owner, c.id AS conversation, place.key & {SEQ_MASK} AS seq, place.id, e.role,
    strftime('%Y-%m-%d %H:%M:%S', e.created_at / 1000000, 'unixepoch') AS at, message_text({{raw}}) AS text
FROM entries place
JOIN entries e ON e.key = (place.key & ~{SEQ_MASK}) | coalesce(place.newest_seq, place.key & {SEQ_MASK})
JOIN conversations c ON c.number = place.key >> {SEQ_BITS}
WHERE place.kind = {Kind.MESSAGE:d} AND (place.how IS NULL OR place.how = {Revision.EDIT:d})
  AND place.flags & {HIDDEN_FLAGS:d} = 0 AND c.deleted_at IS NULL"""
"""Every message in its newest revision, but those that are deleted or erased."""

POSTGRES_MESSAGES = f"""
CREATE FUNCTION pg_temp.message_text(raw bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN convert_from(raw, 'UTF8')::json ->> 'content';
EXCEPTION WHEN OTHERS THEN RETURN NULL;  -- text that JSON takes and PostgreSQL does not
END $$;
CREATE TEMP VIEW messages AS
SELECT c.owner, c.id AS conversation, place.seq, place.id, e.role, to_timestamp(e.created_at / 1000000.0) AS at,
    pg_temp.message_text(coalesce(e.raw, (
        SELECT p.body FROM payloads p
        WHERE p.owner = e.owner AND p.conversation = e.conversation AND p.seq = e.seq))) AS text
FROM entries place
JOIN entries e ON e.owner = place.owner AND e.conversation = place.conversation
  AND e.seq = coalesce(place.newest_seq, place.seq)
JOIN conversations c ON c.owner = place.owner AND c.number = place.conversation
WHERE place.kind = {Kind.MESSAGE:d} AND (place.how IS NULL OR place.how = {Revision.EDIT:d})
  AND place.flags & {HIDDEN_FLAGS:d} = 0 AND c.deleted_at IS NULL;
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"""
"""The same; content that is a list of parts is shown as JSON."""


@command(app)
async def sql(
    cli: Invocation, query: Annotated[str, typer.Argument(metavar="QUERY", help="One statement that reads.")]
) -> None:
    """Query the database itself, read-only. The view `messages` has owner, conversation, seq, id, role, at and text."""
    cli.require_database()
    file = sqlite_file(cli.url)
    if file is not None:
        columns, rows = _query_file(file, query)
    elif is_postgres(cli.url):
        require_postgres()
        columns, rows = await _query_postgres(cli.url, query)
    else:
        raise Invalid("names a database in memory, which no other program can read", field="database")
    if cli.out.json:
        for row in rows:
            cli.out.document(dict(zip(columns, row, strict=True)))
    else:
        cli.out.table(columns, [[_shown(value) for value in row] for row in rows])


def _query_file(file: Path, query: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    import sqlite3  # noqa: PLC0415 - startup

    from everthread.adapters.stores import schema  # noqa: PLC0415
    from everthread.adapters.stores.sqlite import statements  # noqa: PLC0415
    from everthread.adapters.stores.sqlite.blobs import add_blob_functions  # noqa: PLC0415
    from everthread.adapters.stores.sqlite.compression import add_compression_functions  # noqa: PLC0415
    from everthread.adapters.stores.sqlite.files import DAMAGE, read_version, translated  # noqa: PLC0415

    with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)) as connection:
        try:
            if read_version(connection) != schema.VERSION:
                raise StoreError("the database has tables of another version; run `everthread migrate` first")
            add_blob_functions(connection, lambda: None)
            add_compression_functions(connection)
            connection.create_function("message_text", 1, _message_text, deterministic=True)
            connection.execute(SQLITE_MESSAGES.format(raw=statements.RAW))
            connection.execute("PRAGMA query_only = ON")
        except DAMAGE as problem:
            raise translated(problem) from problem
        try:
            found = connection.execute(query)
            return [column[0] for column in found.description or ()], found.fetchall()
        except (sqlite3.Error, sqlite3.Warning) as problem:
            raise Invalid(str(problem), field="query") from problem


def _message_text(raw: bytes | None) -> str | None:
    from everthread.adapters.stores.layout import sound_payload  # noqa: PLC0415 - startup
    from everthread.core import payloads  # noqa: PLC0415

    if raw is None:
        return None
    text = payloads.text(sound_payload(raw))
    return text.encode("utf-8", "replace").decode()  # SQLite refuses half of a surrogate pair


async def _query_postgres(url: str, query: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    import asyncpg  # noqa: PLC0415 - an extra

    from everthread.adapters.stores import schema  # noqa: PLC0415 - startup
    from everthread.adapters.stores.postgres import tables  # noqa: PLC0415
    from everthread.adapters.stores.postgres.address import parse  # noqa: PLC0415
    from everthread.adapters.stores.postgres.pool import connect  # noqa: PLC0415

    connection: Any = await connect(parse(url))
    try:
        if await tables.version(connection) != schema.VERSION:
            raise StoreError("the database has tables of another version; run `everthread migrate` first")
        await connection.execute(POSTGRES_MESSAGES)
        try:
            statement = await connection.prepare(query)
            rows = [tuple(row) for row in await statement.fetch()]
        except asyncpg.PostgresError as problem:
            raise Invalid(str(problem), field="query") from problem
        return [column.name for column in statement.get_attributes()], rows
    finally:
        await connection.close()


def _shown(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value[:_MOST_BYTES].hex() + ("…" if len(value) > _MOST_BYTES else "")
    return value
