"""A database as an earlier everthread left it: the tables of revision 0001 only, with conversations in them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.ext.asyncio import create_async_engine

import everthread
from everthread.adapters.stores.schema import metadata
from tests.forensics import unpacked

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

OLD_MESSAGES = [{"role": "user", "content": f"said long ago {number}", "id": f"old-{number}"} for number in range(50)]


def make_older(url: str, folder: Path) -> None:
    """Make an older database at this address. Its rows come from a new one in a folder: a few columns more."""
    rows = asyncio.run(_written_rows(folder / "source.db"))
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            _fill(connection, rows)
        engine.dispose()
    else:
        asyncio.run(_fill_postgres(url, rows))


async def _written_rows(path: Path) -> Rows:
    async with everthread.open(f"sqlite:///{path}", worker=False) as et:
        conv = await et.conversations.create(id="old", title="from before")
        await conv.append(OLD_MESSAGES)
        await conv.pin("old-7")
        await conv.edit("old-40", {"role": "user", "content": "said otherwise", "id": "old-sibling"})
        await et.search("ago")  # has every token counted, as it always was then
    engine = sa.create_engine(f"sqlite:///{path}")
    made = set(sa.inspect(engine).get_table_names())
    with engine.connect() as connection:
        rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in metadata.sorted_tables}
        for table in metadata.sorted_tables:
            if table.name in made:
                rows[table.name] = [dict(row) for row in connection.execute(table.select()).mappings()]
    engine.dispose()
    return {**rows, "entries": [{**row, "raw": unpacked(row["raw"], row["id"])} for row in rows["entries"]]}


def _fill(connection: sa.Connection, rows: Rows) -> None:
    config = Config()
    config.set_main_option("script_location", str(files("everthread.adapters.stores") / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")
    inspector = sa.inspect(connection)
    tables = inspector.get_table_names()
    for table in metadata.sorted_tables:
        if table.name in tables and rows[table.name]:
            columns = {column["name"] for column in inspector.get_columns(table.name)}
            old = [{key: value for key, value in row.items() if key in columns} for row in rows[table.name]]
            connection.execute(table.insert(), old)
    if connection.dialect.name == "postgresql":  # numbers that were given by hand move no sequence
        connection.execute(sa.text("SELECT setval(pg_get_serial_sequence('conversations', 'number'), 1)"))


async def _fill_postgres(url: str, rows: Rows) -> None:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.begin() as connection:
        await connection.run_sync(_fill, rows)
    await engine.dispose()
