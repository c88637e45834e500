"""The PostgreSQL store's connections: shared, careful with passwords, orderly in races, clear when refused."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import everthread
from everthread import Conversation, Everthread
from everthread.adapters.stores.postgres import errors
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.pool import Connection, Pool, connect
from everthread.core.errors import EverthreadError, Invalid, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreGone
from tests.postgres import Server, own_server

PASSWORD = "hush/hush@hush"
BACKENDS = "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'"


@pytest.fixture
async def et(address: str) -> AsyncIterator[Everthread]:
    async with everthread.open(address) as opened:
        yield opened


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    return await et.conversations.create()


def says(text: str, id: str | None = None) -> dict[str, str]:
    return {"role": "user", "content": text} | ({"id": id} if id else {})


async def _texts(conv: Conversation) -> list[str]:
    return [message.text async for message in conv.messages()]


async def _until(server: Server, statement: str, answer: str) -> None:
    while server.run_sql(statement) != answer:  # noqa: ASYNC110 - the server rings no bell
        await asyncio.sleep(0.01)


# -- sharing -------------------------------------------------------------------------------------------------------


async def test_all_who_open_a_database_in_one_loop_share_its_connections(
    address: str, name: str, postgres_server: Server
) -> None:
    async with everthread.open(address) as first, everthread.open(address) as second:
        await first.stats()
        await second.stats()
        assert postgres_server.run_sql(BACKENDS.format(name)) == "1"


async def test_only_the_first_connection_asks_what_an_array_of_numbers_is(address: str) -> None:
    asked: list[str] = []
    for _ in range(2):
        asked.clear()
        connection: Any = await connect(parse(address))
        with connection.query_logger(lambda record: asked.append(record.query)):
            assert await connection.fetchval("SELECT $1::bigint[]", [1, 2]) == [1, 2]
        await connection.close()
    assert asked == ["SELECT $1::bigint[]"]


async def test_the_last_to_close_closes_the_connections(address: str, name: str, postgres_server: Server) -> None:
    first, second = everthread.open(address), everthread.open(address)
    await first.store.open()
    await second.store.open()
    await first.close()
    assert (await second.stats())["conversations"] == 0
    await second.close()
    await _until(postgres_server, BACKENDS.format(name), "0")
    with pytest.raises(StoreError, match="closed"):
        await second.stats()


def test_each_event_loop_has_connections_of_its_own(address: str) -> None:
    async def append() -> int:
        async with everthread.open(address) as et:
            conv = await et.conversations.ensure("shared")
            return (await conv.append(says("hi")))[0].seq

    assert [asyncio.run(append()), asyncio.run(append())] == [1, 2]


async def test_the_pool_opens_no_more_connections_than_the_address_says(
    address: str, name: str, postgres_server: Server
) -> None:
    async with everthread.open(f"{address}&pool_size=2") as et:
        conv = await et.conversations.create()
        await asyncio.gather(*(conv.append(says(str(number))) for number in range(12)))
        assert postgres_server.run_sql(BACKENDS.format(name)) == "2"


async def test_without_a_statement_cache_nothing_stays_prepared(address: str) -> None:
    async with everthread.open(f"{address}&statement_cache_size=0") as et:
        conv = await et.conversations.create()
        await conv.append([says("a", "1"), says("b", "2")], idempotency_key="k")
        assert await _texts(conv) == ["a", "b"]
        assert len(await et.search("a")) == 1
        pool = Pool.of(parse(f"{address}&statement_cache_size=0"))
        assert await pool.read(lambda c: c.fetchval("SELECT count(*) FROM pg_prepared_statements")) == 0
        await pool.release()


async def test_commits_wait_for_the_disk_where_the_server_would_not(address: str) -> None:
    pool = Pool.of(parse(f"{address}&synchronous_commit=off"))
    await pool.start()
    assert await pool.write(lambda connection: connection.fetchval("SHOW synchronous_commit")) == "on"
    await pool.release()


# -- races ---------------------------------------------------------------------------------------------------------


async def _until_somebody_waits(server: Server) -> None:
    await _until(server, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted", "t")


async def test_an_append_that_waited_sees_the_branch_that_was_made_active_meanwhile(
    address: str, conv: Conversation, postgres_server: Server
) -> None:
    await conv.append([says("one", "1"), says("two", "2")])
    await conv.fork(1)
    other = await asyncpg.connect(address)
    async with other.transaction():
        await other.execute(
            "UPDATE conversations SET active_branch = 1, leaf_seq = 1, leaf_depth = 1 WHERE id = $1", conv.id
        )
        waiting = asyncio.create_task(conv.append(says("three")))
        await _until_somebody_waits(postgres_server)
    await waiting
    await other.close()
    assert await _texts(conv) == ["one", "three"]


async def test_an_append_that_waited_follows_what_was_appended_meanwhile(
    address: str, conv: Conversation, postgres_server: Server
) -> None:
    await conv.append(says("one"))
    other = await asyncpg.connect(address)
    async with other.transaction():
        await other.execute("SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE", conv.id)
        waiting = [asyncio.create_task(conv.append(says(text))) for text in ("two", "three")]
        await _until_somebody_waits(postgres_server)
    receipts = [await task for task in waiting]
    await other.close()
    assert sorted(receipt.seq for (receipt,) in receipts) == [2, 3]
    assert [message.parent_seq async for message in conv.messages()] == [None, 1, 2]


async def test_a_cancelled_append_leaves_the_log_and_the_connections_sound(
    address: str, et: Everthread, conv: Conversation, postgres_server: Server
) -> None:
    other = await asyncpg.connect(address)
    async with other.transaction():
        await other.execute("SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE", conv.id)
        waiting = [asyncio.create_task(conv.append(says("never"))) for _ in range(12)]
        await _until_somebody_waits(postgres_server)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    await other.close()
    await asyncio.gather(*(conv.append(says("kept", f"k{number}")) for number in range(12)))
    assert await _texts(conv) == ["kept"] * 12
    assert (await et.verify()).ok


async def test_two_who_create_the_same_conversation_get_one(et: Everthread) -> None:
    made = await asyncio.gather(*(et.conversations.create(id="same") for _ in range(8)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in made) == ["Conflict"] * 7 + ["Conversation"]


# -- refusals ------------------------------------------------------------------------------------------------------


async def test_i29_a_full_disk_fails_the_append_and_nothing_else(
    conv: Conversation, name: str, postgres_server: Server
) -> None:
    await conv.append(says("kept"))
    postgres_server.run_sql(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$; "
        "CREATE TRIGGER full_disk BEFORE INSERT ON words FOR EACH ROW EXECUTE FUNCTION full_disk()",
        name,
    )
    with pytest.raises(StoreFull, match="nothing of this call was stored"):
        await conv.append([says("lost"), says("too")])
    postgres_server.run_sql("DROP TRIGGER full_disk ON words", name)
    assert [receipt.seq for receipt in await conv.append(says("after"))] == [2]
    assert await _texts(conv) == ["kept", "after"]


async def test_a_conversation_locked_for_too_long_is_busy(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "everthread.adapters.stores.postgres.statements.BEGIN", "BEGIN; SET LOCAL lock_timeout = '100ms'"
    )
    other = await asyncpg.connect(address)
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        async with other.transaction():
            await other.execute("SELECT 1 FROM conversations FOR UPDATE")
            with pytest.raises(StoreBusy) as caught:
                await conv.append(says("later", "m"))
        assert caught.value.retryable
        assert (await conv.append(says("later", "m")))[0].new
    await other.close()


async def test_a_server_that_takes_no_writes_is_told_apart(address: str) -> None:
    async with everthread.open(f"{address}&default_transaction_read_only=on") as et:
        with pytest.raises(StoreError, match="connect to the primary"):
            await et.conversations.create()


async def test_a_call_that_the_server_cut_off_may_be_retried(address: str) -> None:
    pool = Pool.of(parse(f"{address}&statement_timeout=2000"))
    await pool.start()
    with pytest.raises(StoreBusy, match="time limit"):
        await pool.read(lambda connection: connection.execute("SELECT pg_sleep(10)"))
    await pool.release()


async def test_appends_take_turns_whatever_the_server_isolates_by_default(address: str) -> None:
    async with everthread.open(f"{address}&default_transaction_isolation=serializable") as et:
        conv = await et.conversations.create()
        await asyncio.gather(*(conv.append(says(str(number))) for number in range(16)))
        assert len(await _texts(conv)) == 16


async def test_a_failed_opening_leaves_no_connection(address: str, name: str, postgres_server: Server) -> None:
    postgres_server.run_sql("DROP TABLE erasures", name)
    with pytest.raises(StoreError, match="erasures"):
        await everthread.open(address).store.open()
    await _until(postgres_server, BACKENDS.format(name), "0")


async def test_a_server_without_a_connection_left_is_busy(address: str, name: str, postgres_server: Server) -> None:
    role = f"lonely_{name}"
    postgres_server.run_sql(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
    postgres_server.run_sql(f"GRANT USAGE ON SCHEMA everthread_jobs TO {role}", name)
    postgres_server.run_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA public, everthread_jobs TO {role}", name)
    url = address.replace("postgres@", f"{role}@")
    other = await asyncpg.connect(url)
    with pytest.raises(StoreBusy, match="no connection left"):
        async with everthread.open(url):
            pass
    await other.close()
    async with everthread.open(url) as et:
        assert (await et.stats())["conversations"] == 0
    postgres_server.run_sql(f"DROP OWNED BY {role}", name)
    postgres_server.run_sql(f"DROP ROLE {role}")


async def test_a_database_that_does_not_exist_is_named(postgres_server: Server) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        async with everthread.open(postgres_server.url("nowhere")):
            pass


@pytest.mark.parametrize("column", ["metadata = 'no JSON'", "metadata = '\\xff'"])
async def test_a_row_that_somebody_changed_is_damage(
    et: Everthread, conv: Conversation, name: str, postgres_server: Server, column: str
) -> None:
    postgres_server.run_sql(f"UPDATE conversations SET {column}", name)
    for deed in (et.conversations.get(conv.id), et.conversations.list(), et.heads()):
        with pytest.raises(StoreDamaged):
            await deed


async def test_a_payload_that_somebody_changed_is_damage(
    conv: Conversation, name: str, postgres_server: Server
) -> None:
    await conv.append(says("one", "a"))
    postgres_server.run_sql("UPDATE entries SET raw = 'no JSON'", name)
    with pytest.raises(StoreDamaged):
        await conv.append(says("two", "a"))


async def test_a_commit_that_the_server_turned_down_is_no_success(address: str) -> None:
    async def swallow(connection: Connection) -> None:
        with pytest.raises(asyncpg.PostgresError):
            await connection.execute("SELECT 1 / 0")

    pool = Pool.of(parse(address))
    await pool.start()
    with pytest.raises(StoreError, match="did not commit"):
        await pool.write(swallow)
    await pool.release()


@pytest.mark.parametrize(
    ("problem", "again"),
    [
        (asyncpg.DeadlockDetectedError("two met"), True),
        (asyncpg.SerializationError("two met"), True),
        (asyncpg.AdminShutdownError("the server stops"), True),
        (asyncpg.ConnectionDoesNotExistError("closed in mid call"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InternalClientError("out of step"), True),
        (ConnectionResetError("reset"), True),
        (asyncpg.DataError("a value it cannot encode"), False),
        (asyncpg.DiskFullError("full"), False),
        (asyncpg.LockNotAvailableError("waited"), False),
        (asyncpg.UniqueViolationError("there already"), False),
    ],
)
def test_only_what_may_succeed_at_once_is_tried_again(problem: Exception, again: bool) -> None:
    assert errors.is_worth_another_try(problem) is again


# -- addresses and passwords ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", ["pool_size=0", "pool_size=many", "statement_cache_size=-1", "x", "pool_size="])
async def test_a_parameter_that_makes_no_sense_is_refused(address: str, parameter: str) -> None:
    with pytest.raises(Invalid, match="url"):
        everthread.open(f"{address}&{parameter}")


def test_an_address_shows_no_password() -> None:
    for url in ("postgresql://me:hush@host/db", "postgresql://me@host/db?password=hush"):
        address = parse(url)
        assert "hush" not in repr(address)
        dsn, environment = address.for_programs()
        assert dsn == "postgresql://me@host/db"
        assert environment == {"PGPASSWORD": "hush"}


def _said(problem: BaseException) -> str:
    return "".join(traceback.format_exception(problem))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush%2Fhush%40hush@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=hush%2Fhush%40hush",
        "postgresql://me:hush/hush@hush@127.0.0.1:1/db",
        "postgresql://me:hush@hush@127.0.0.1:1/db",
        "postgresql://me:hush@[127.0.0.1/db",
        "postgresql://me:hush@127.0.0.1:port/db",
        "postgresql://me:hush@127.0.0.1:1/db?hush",
        "postgresql://me:hush@127.0.0.1:1/db?pool_size=hush",
    ],
)
async def test_i23_no_error_about_an_address_holds_its_password(url: str) -> None:
    with pytest.raises(EverthreadError) as caught:
        async with everthread.open(url):
            pass
    own_lines = [line for line in _said(caught.value).splitlines() if url not in line]
    assert not [line for line in own_lines if "hush" in line and "_hush" not in line and "test_" not in line]


async def test_i23_a_refused_password_is_not_shown(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        server.run_sql(f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
        (server.data / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        server.stop()
        server.start()
        async with everthread.open(server.url("everthread_template", password=PASSWORD)) as et:
            assert (await et.stats())["conversations"] == 0
        with pytest.raises(StoreError, match="refuses the connection") as caught:
            async with everthread.open(server.url("everthread_template", password=f"not {PASSWORD}")):
                pass
        assert not isinstance(caught.value, StoreGone)
        assert PASSWORD not in _said(caught.value)
