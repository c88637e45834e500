"""The tables are written down once, and what the last version before left is still opened."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

import everthread
from everthread import Priority, StoreError
from everthread.adapters.stores import schema
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.tables import migrate
from everthread.adapters.stores.schema import Database
from everthread.adapters.stores.sqlite import files
from everthread.adapters.stores.sqlite.statements import PAGE
from everthread.core.ids import owner_scope
from everthread.imports.importer import Importer
from everthread.langgraph import EverthreadSaver
from everthread.testing import ManualClock
from everthread.text.words import scope_token
from tests.contracts.job_helpers import Diary, put, settled, working
from tests.postgres import Server
from tests.stores.older import make_older

GLOBAL_TABLES = {
    "schema_version": "one row for the whole database",
    "api_keys": "a key is looked up before its owner is known",
    "calibrations": "of models, whoever uses them",
    "vector_models": "of embedders, whoever uses them",
    "doomed_blobs": "a queue of names, read as a whole",
    "erasures": "a list that a restore reads as a whole",
}
"""On PostgreSQL, tables without the owner in their keys: copied to every server where tables are distributed."""
OWNERS_TABLES = {"conversations", "prompts", "items", "notes", "import_sources", "replies"}
"""Tables whose rows belong to an owner and to no single conversation."""


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.param
    return found


@pytest.fixture
def empty(database: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a database without tables."""
    if database == "sqlite":
        yield f"sqlite:///{tmp_path / 'et.db'}"
        return
    server: Server = request.getfixturevalue("postgres_server")
    with server.database(migrated=False) as url:
        yield url


@pytest.fixture
def older(database: Database, empty: str, request: pytest.FixtureRequest) -> str:
    """The address of a database of revision 0021."""
    make_older(empty, request.getfixturevalue("postgres_server") if database == "postgres" else None)
    return empty


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements past the store; what the last one finds."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            return [file.execute(statement).fetchall() for statement in statements][-1]
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            done = connection.execute(statement.encode())
    return done.fetchall() if done.description else []


async def bring_up_to_date(url: str) -> list[int]:
    if url.startswith("sqlite"):
        return files.migrate(Path(url.removeprefix("sqlite:///")))
    return await migrate(parse(url))


def shape(url: str) -> Mapping[str, object]:
    """Columns and indexes by table, whatever their order."""
    if url.startswith("sqlite"):
        rows = run(url, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        columns = "SELECT name, type, \"notnull\", pk FROM pragma_table_info('{}')"
        indexes = "SELECT name, \"unique\", partial FROM pragma_index_list('{}')"
    else:
        rows = run(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        columns = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstattarget, a.attcollation
FROM pg_attribute a WHERE a.attrelid = '{}'::regclass AND a.attnum > 0 AND NOT a.attisdropped"""
        indexes = "SELECT indexdef FROM pg_indexes WHERE tablename = '{}' AND indexname NOT LIKE 'vectors_near%'"
    return {
        table: {part: sorted(map(str, run(url, part.format(table)))) for part in (columns, indexes)}
        for (table,) in rows
    }


# -- one source --------------------------------------------------------------------------------------------------------


def test_every_table_has_an_erase_rule(database: Database) -> None:
    assert set(schema.tables(database)) <= set(schema.ERASE_RULES)


async def test_tables_can_be_made_removed_and_made_again(empty: str, database: Database) -> None:
    assert await bring_up_to_date(empty) == [schema.VERSION]
    made = shape(empty)
    run(empty, *(statement for step in reversed(schema.MIGRATIONS) for statement in step.downgrade(database)))
    left = shape(empty)
    assert not left
    assert await bring_up_to_date(empty) == [schema.VERSION]
    assert shape(empty) == made


async def test_what_is_brought_up_to_date_is_what_is_made_at_once(
    older: str, database: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert await bring_up_to_date(older) == [step.version for step in schema.MIGRATIONS]
    if database == "postgres":
        run(older, "ALTER TABLE vectors DROP COLUMN embedding")  # made at run time, where pgvector is
        server: Server = request.getfixturevalue("postgres_server")
        with server.database() as new:
            assert shape(older) == shape(new)
    else:
        new = f"sqlite:///{tmp_path / 'new.db'}"
        await bring_up_to_date(new)
        assert shape(older) == shape(new)


async def test_on_postgresql_every_unique_key_has_the_columns_to_distribute_by(postgres_server: Server) -> None:
    with postgres_server.database() as url:
        keys = run(
            url,
            """
SELECT t.relname, i.indexrelid::regclass::text, array_agg(a.attname ORDER BY a.attnum)
FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = i.indexrelid
WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace GROUP BY 1, 2""",
        )
    assert {table for table, _, _ in keys} == set(schema.tables("postgres"))
    for table, index, columns in keys:
        if table not in GLOBAL_TABLES:
            wanted = {"owner"} if table in OWNERS_TABLES else {"owner", "conversation"}
            assert wanted <= set(columns), index


def test_a_new_file_is_small(tmp_path: Path) -> None:
    files.prepare(tmp_path / "et.db")
    assert (tmp_path / "et.db").stat().st_size < 110_000


@pytest.mark.parametrize(("messages", "times"), [(100, 4.0), (1_000, 1.75)])
async def test_a_file_with_one_conversation_weighs_little_more_than_it(
    messages: int, times: float, tmp_path: Path
) -> None:
    """The size of a file is no timing: it is the same everywhere."""
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conversation = await et.conversations.create()
        for start in range(0, messages, 5):
            await conversation.append([_message(number) for number in range(start, start + 5)])
        await et.search("anything")
        payload = (await et.stats())["payload_bytes"]
    assert (tmp_path / "et.db").stat().st_size < times * payload


def _message(number: int) -> dict[str, str]:
    return {"role": "user", "content": " ".join(f"word{number * word % 997}" for word in range(1, 50))}


@pytest.mark.parametrize("missing", [1, 100, PAGE - 1])
def test_a_file_that_ends_within_a_page_is_damaged(missing: int, tmp_path: Path) -> None:
    path = tmp_path / "et.db"
    files.prepare(path)
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(everthread.StoreDamaged, match="cut off"):
        files.prepare(path)


# -- versions ----------------------------------------------------------------------------------------------------------


async def test_tables_of_a_later_everthread_are_left_alone(empty: str) -> None:
    await bring_up_to_date(empty)
    run(empty, "UPDATE schema_version SET version = 9999")
    with pytest.raises(StoreError, match="version 9999"):
        async with everthread.open(empty):
            pass
    assert run(empty, "SELECT version FROM schema_version") == [(9999,)]


async def test_tables_older_than_revision_0021_are_left_alone(older: str) -> None:
    run(older, "UPDATE alembic_version SET version_num = '0020'")
    with pytest.raises(StoreError, match="revision 0020"):
        async with everthread.open(older):
            pass


async def test_another_programs_alembic_is_none_of_ours(empty: str) -> None:
    run(empty, "CREATE TABLE alembic_version (version_num TEXT)", "INSERT INTO alembic_version VALUES ('ae1027a6acf')")
    async with everthread.open(empty, worker=False) as et:
        await et.conversations.create(id="c")
    assert run(empty, "SELECT version_num FROM alembic_version") == [("ae1027a6acf",)]


async def test_jobs_of_version_1_are_done_by_their_owners_turn(empty: str, database: Database) -> None:
    """Before version 2 jobs knew no owner and waited in one line."""
    async with everthread.open(empty, worker=False) as et:
        for owner in ("anna", "bert"):
            await put(et, await et.conversations.create(owner=owner, id=owner))
    if database == "postgres":
        run(empty, "UPDATE everthread_jobs.procrastinate_jobs SET priority = 0, args = args - 'level' - 'round'")
    back = [statement for step in reversed(schema.MIGRATIONS[1:]) for statement in step.downgrade(database)]
    run(empty, *back, "UPDATE schema_version SET version = 1")
    assert await bring_up_to_date(empty) == [step.version for step in schema.MIGRATIONS[1:]]
    async with everthread.open(empty, worker=False) as et:
        assert [(job.ref.owner, job.priority, job.died_at) for job in (await et.jobs()).jobs] == [
            ("anna", Priority.AUTOMATIC, None),
            ("bert", Priority.AUTOMATIC, None),
        ]
        await put(et, await et.conversations.create(owner="anna", id="urgent"), priority=Priority.WAITED_FOR)
        await put(et, await et.conversations.create(owner="anna", id="later"))
        diary = Diary()
        async with working(et, everthread.Pace(concurrency=1), test=diary.do):
            await settled(et)
    assert diary.done == ["urgent", "anna", "bert", "later"]


async def listed(et: everthread.Everthread) -> list[tuple[str, datetime | None]]:
    return [(one.id, one.info.last_said_at) for one in await et.conversations.list(order="said")]


OLD_CHAT = {
    "uuid": "old", "name": "Old", "created_at": "2021-03-01T10:00:00Z", "chat_messages": [
        {"uuid": "h", "sender": "human", "text": "Peanuts?", "created_at": "2021-03-01T10:00:01Z", "content": []},
    ],
}  # fmt: skip


async def test_conversations_of_version_4_are_listed_by_when_something_was_said(
    empty: str, database: Database, tmp_path: Path
) -> None:
    """Before version 5 that was not kept; when imported messages were said stands in their payloads alone."""
    clock = ManualClock()
    async with everthread.open(empty, worker=False, clock=clock) as et:
        first = await et.conversations.create(id="first")
        await et.conversations.create(id="unsaid")
        clock.move(timedelta(days=2))
        await first.append([{"role": "user", "content": "hi"}])
        said_at = clock.now
        clock.move(timedelta(days=1))
        (tmp_path / "chats.json").write_text(json.dumps([OLD_CHAT]))
        await Importer(et, "local").import_path(tmp_path / "chats.json")
        assert (await listed(et))[-1] == ("claude-ai:old", datetime(2021, 3, 1, 10, 0, 1, tzinfo=UTC))
    run(empty, *schema.MIGRATIONS[4].downgrade(database), "UPDATE schema_version SET version = 4")
    assert await bring_up_to_date(empty) == [5, 6]
    async with everthread.open(empty, worker=False) as et:
        began_at = datetime(2021, 3, 1, 10, tzinfo=UTC)
        assert await listed(et) == [("first", said_at), ("unsaid", None), ("claude-ai:old", began_at)]


async def test_what_was_indexed_with_accents_before_version_6_is_found_without(empty: str, database: Database) -> None:
    async with everthread.open(empty, worker=False) as et:
        conversation = await et.conversations.create(id="c")
        await conversation.append({"role": "user", "content": "The café of 雲南"})
        await et.memories.add("local", "Likes the Łódź opera")
        await et.search("opera")
    scope = scope_token(owner_scope("local"))
    if database == "postgres":
        run(
            empty,
            f"UPDATE words SET tokens = array_to_tsvector(ARRAY['the', 'café', 'of', '雲南', '南', '{scope}'])",
            "UPDATE notes SET tokens = array_to_tsvector(array_replace(tsvector_to_array(tokens), 'lodz', 'łódź'))",
        )
    else:
        ((key,),) = run(empty, "SELECT key FROM entries")
        run(
            empty,
            "INSERT INTO words (words) VALUES ('delete-all')",
            f"INSERT INTO words (rowid, tokens) VALUES ({key}, 'the café of 雲南 南 {scope}')",
            "INSERT INTO note_words (note_words) VALUES ('delete-all')",
        )
    run(empty, "UPDATE schema_version SET version = 5")
    assert await bring_up_to_date(empty) == [6]
    async with everthread.open(empty, worker=False) as et:
        for words in ("cafe", "café", "云南", "雲南"):
            assert [hit.seq for hit in await et.search(words)] == [1], words
        assert [one.memory.text for one in await et.memories.search("local", "lodz")] == ["Likes the Łódź opera"]
        await et.erase(conversation="c")
        assert not await et.search("cafe")
        assert (await et.verify()).ok


# -- what the last version before left ---------------------------------------------------------------------------------


async def test_an_older_database_has_the_same_messages_and_verifies(older: str) -> None:
    async with everthread.open(older, worker=False, embedder=None) as et:
        report = await et.verify()
        assert report.ok
        assert (report.conversations, report.entries, report.messages, report.erased) == (8, 164, 158, 3)
        trip = await et.conversations.get("trip")
        said = [message.text async for message in trip.messages()]
        assert hashlib.sha256("\n".join(said).encode()).hexdigest()[:16] == "49d5c64dbfe79810"
        assert (trip.title, trip.metadata) == ("Trip", {"colour": "green"})
        assert (await trip.message("large")).text == "Lijiang " * 12_000
        assert (await trip.message("q2")).revision == 2
        assert (await trip.message("q7")).is_pinned
        assert [branch.id async for branch in trip.branches()] == ["main", "b1", "b2"]
        assert [child.id async for child in trip.children()] == ["subagent-1"]
        (again,) = await trip.append({"role": "user", "content": "once only", "id": "once"}, idempotency_key="key-1")
        assert again.seq == 142, "the answer of then"
        assert [receipt.seq for receipt in await trip.append({"role": "user", "content": "on"})] == [148]


async def test_an_older_database_is_searched_and_recalled(older: str) -> None:
    async with everthread.open(older, worker=False, embedder=None) as et:
        assert {hit.conversation_id for hit in await et.search("train")} == {"trip"}
        assert [hit.seq for hit in await et.search("花生")] == [1]
        assert len(await et.search("xylophagous")) == 0
        passages = await et.knowledge.search("local", "travel", "how high is Kunming?")
        assert "1892" in passages[0].passage.text
        assert len((await et.memories.list("local")).items) == 2


async def test_an_older_database_has_its_summaries_contexts_and_turns(older: str) -> None:
    async with everthread.open(older, worker=False, embedder=None) as et:
        trip, turned = await et.conversations.get("trip"), await et.conversations.get("turned")
        assert await trip.summary()
        assert (await et.compaction_config.get(trip)).keep_recent == 10
        assert (await et.compaction_config.get()).keep_recent == 8
        contexts = run(older, "SELECT m.id, c.id FROM manifests m JOIN conversations c ON c.number = m.conversation")
        assert len(contexts) == 4
        for context, conversation in contexts:
            seen = await (await et.conversations.get(conversation)).seen_context(context)
            assert seen.is_same or seen.is_of_other_renderer, "what was sent, or that it cannot be shown as it was"
            assert not seen.erased
        (turn,) = await turned.turns()
        events = [event async for event in turned.turn_events(turn.id)]
        assert events
        assert [event.number for event in events] == [*range(1, len(events) + 1)]


async def test_an_older_databases_checkpoints_go_on(older: str) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(f"You asked: {state['messages'][-1].text}")]})
    builder.add_edge(START, "answer")
    config: Any = {"configurable": {"thread_id": "thread"}}
    async with everthread.open(older, worker=False, embedder=None) as et:
        graph = builder.compile(checkpointer=EverthreadSaver(et))
        state = await graph.aget_state(config)
        assert [message.text for message in state.values["messages"]][::2] == [
            "How high is Kunming?", "How high is Dali?", "How high is Lijiang?"
        ]  # fmt: skip
        await graph.ainvoke({"messages": [HumanMessage("And Chengdu?")]}, config)
        assert len((await graph.aget_state(config)).values["messages"]) == 8
        assert (await et.verify()).ok


# -- prompts -----------------------------------------------------------------------------------------------------------


async def test_a_prompt_is_kept_once_for_an_owner_and_goes_with_the_last_that_names_it(durable_url: str) -> None:
    prompts = "SELECT owner, conversations, body FROM prompts ORDER BY owner"
    kept: dict[tuple[str, str], str] = {}
    async with everthread.open(durable_url, worker=False) as et:
        for owner, id in (("ann", "one"), ("ann", "two"), ("bob", "one")):
            conversation = await et.conversations.create(id=id, owner=owner)
            await conversation.append({"role": "user", "content": "hi"})
            for _ in range(2):
                context = await conversation.context(system="You are a guide.", to_keep=True)
                kept[owner, id] = await conversation.keep_context(context)
        assert run(durable_url, prompts) == [("ann", 2, b"You are a guide."), ("bob", 1, b"You are a guide.")]
        await et.erase(owner="ann", conversation="one")
        await et.erase(owner="bob", conversation="one")
        assert run(durable_url, prompts) == [("ann", 1, b"You are a guide.")]
        two = await et.conversations.get("two", owner="ann")
        assert (await two.seen_context(kept["ann", "two"])).is_same
        await et.erase(owner="ann", conversation="two")
        assert run(durable_url, prompts) == []
