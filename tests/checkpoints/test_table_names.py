"""Our tables have names of their own, so that LangGraph's savers may live beside them; older ones are renamed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

import everthread
from everthread.langgraph import EverthreadSaver
from tests.langgraph.test_archiving_saver import THREAD, echo
from tests.stores.older_sqlite import back_to

OLDER = [
    "DROP TABLE IF EXISTS calibrations",
    "ALTER TABLE agent_checkpoints RENAME TO checkpoints",
    "ALTER TABLE agent_writes RENAME TO writes",
    "UPDATE alembic_version SET version_num = '0015'",
]
OLDER_INDEXES = [
    "ALTER INDEX agent_checkpoints_pkey RENAME TO checkpoints_pkey",
    "ALTER INDEX agent_writes_pkey RENAME TO writes_pkey",
]


def make_older(url: str) -> None:
    """The tables as step 0007 once named them."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            for statement in OLDER[:-1]:
                file.execute(statement)
            back_to(file, "0015")
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in OLDER + OLDER_INDEXES:
                connection.execute(statement.encode())


async def test_checkpoints_under_their_older_names_are_found_under_their_own(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        await echo(EverthreadSaver(et)).ainvoke({"messages": ["one"]}, THREAD)
    make_older(durable_url)
    async with everthread.open(durable_url, worker=False) as et:
        graph = echo(EverthreadSaver(et))
        await graph.ainvoke({"messages": ["two"]}, THREAD)
        state = await graph.aget_state(THREAD)
    assert [message.content for message in state.values["messages"]] == ["one", "re: one", "two", "re: two"]
