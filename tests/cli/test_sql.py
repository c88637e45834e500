"""`everthread sql` reads the database itself, with the text of messages, and changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import everthread
from tests.cli.conftest import Quick


@pytest.fixture
async def filled(durable_url: str) -> str:
    """A message that was changed, one that was deleted, one in Chinese, one of another owner."""
    async with everthread.open(durable_url, worker=False) as et:
        trip = await et.conversations.create(id="trip", title="Trip")
        await trip.append([{"role": "user", "content": text, "id": text} for text in ("first", "gone", "去昆明")])
        await trip.append({"role": "user", "content": "second thoughts", "id": "first"})
        await trip.delete_message("gone")
        await trip.append({"role": "user", "content": [{"type": "text", "text": "in parts"}], "id": "parts"})
        await (await et.conversations.create(id="hers", owner="ann")).append({"role": "user", "content": "x" * 100_000})
    return durable_url


def test_messages_are_shown_with_their_text(filled: str, quick: Quick) -> None:
    query = "SELECT owner, conversation, seq, role, text FROM messages WHERE id <> 'parts' ORDER BY owner DESC, seq"
    rows = quick("sql", "--json", "--database", filled, query).lines
    assert [tuple(row.values()) for row in rows] == [
        ("local", "trip", 1, "user", "second thoughts"),
        ("local", "trip", 3, "user", "去昆明"),
        ("ann", "hers", 1, "user", "x" * 100_000),
    ]
    assert "in parts" in quick("sql", "--database", filled, "SELECT text FROM messages WHERE id = 'parts'").out


def test_a_table_is_printed_for_people(filled: str, quick: Quick) -> None:
    shown = quick("sql", "--database", filled, "SELECT conversation, at, text FROM messages WHERE id = 'first'").out
    assert shown.splitlines()[0].split() == ["conversation", "at", "text"]
    assert "second thoughts" in shown


@pytest.mark.parametrize("query", ["DELETE FROM entries", "DROP TABLE entries", "CREATE TABLE mine (x integer)"])
def test_nothing_can_be_changed(query: str, filled: str, quick: Quick) -> None:
    assert quick("sql", "--database", filled, query).code != 0
    assert quick("sql", "--json", "--database", filled, "SELECT count(*) AS n FROM entries").lines == [{"n": 7}]


def test_a_mistake_in_a_query_is_told(filled: str, quick: Quick) -> None:
    ran = quick("sql", "--json", "--database", filled, "SELECT x FROM nowhere")
    assert (ran.code, ran.error["code"]) == (2, "invalid")
    assert "nowhere" in ran.error["message"]


async def test_sqlite3_alone_shows_who_said_something_and_when(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        trip = await et.conversations.create(id="trip", title="Trip")
        await trip.append({"role": "user", "content": "hello", "id": "m1"})
    with closing(sqlite3.connect(tmp_path / "et.db")) as file:
        assert file.execute("SELECT owner, id, title, entries FROM conversation_list").fetchall() == [
            ("local", "trip", "Trip", 1)
        ]
        assert file.execute("SELECT conversation, seq, id, role FROM message_list").fetchall() == [
            ("trip", 1, "m1", "user")
        ]
