"""Erasing on PostgreSQL: no byte in the tables' files, and an honest word where there still is one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

import everthread
from everthread import EraseReport, Everthread
from everthread.adapters.stores.layout import OF_THE_OWNER
from everthread.adapters.stores.postgres import erase
from everthread.testing import ManualClock
from tests.postgres import Server, name_of

SECRET = "xylotomous"
"""A word that nothing else holds, and that its stem is a part of."""
UNFINISHED = "SELECT count(*) FROM erasures WHERE finished_at IS NULL"


async def _erased_at_once(et: Everthread, conversation: str, monkeypatch: pytest.MonkeyPatch) -> EraseReport:
    """Erase, and wait only a moment for those who still read it."""
    with monkeypatch.context() as patched:
        patched.setattr(erase, "_WAIT_SECONDS", 0.2)
        return await et.erase(conversation=conversation)


def traces(server: Server, name: str) -> list[Path]:
    """The files of a database that hold the secret, once what is in memory is written to them."""
    server.run_sql("CHECKPOINT")
    oid = server.run_sql(f"SELECT oid FROM pg_database WHERE datname = '{name}'")
    files = [file for file in (server.data / "base" / oid).iterdir() if file.is_file()]
    assert len(files) > 100
    return [file for file in files if b"xylotom" in file.read_bytes().lower()]


async def _talk(et: Everthread) -> str:
    conv = await et.conversations.create(title=SECRET, metadata={"about": SECRET})
    for number in range(20):
        content = f"{SECRET} {number}" + f" {SECRET} and more" * (5_000 if number == 7 else 1)
        await conv.append({"role": "user", "content": content, "id": f"m{number}"}, idempotency_key=f"k{number}")
    await conv.append({"role": "user", "content": f"{SECRET} revised", "id": "m3"})
    await conv.pin("m4")
    return conv.id


async def test_i22_after_an_erase_no_file_of_the_database_holds_the_text(
    address: str, name: str, postgres_server: Server
) -> None:
    async with everthread.open(address) as et:
        id = await _talk(et)
        other = await et.conversations.create()
        await other.append({"role": "user", "content": "stays"})
        postgres_server.run_sql("ANALYZE", name)
        assert traces(postgres_server, name)
        await et.erase(conversation=id)
        assert traces(postgres_server, name) == []
        assert [message.text async for message in other.messages()] == ["stays"]
        report = await et.verify()
        assert (report.ok, report.erased) == (True, 22)
        assert not await et.search(SECRET)
        assert len(await et.search("stays")) == 1


async def test_i22_after_the_last_message_with_it_is_erased_no_file_holds_a_word(
    address: str, name: str, postgres_server: Server
) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        await conv.append([{"role": "user", "content": SECRET, "id": "a"}, {"role": "user", "content": "b", "id": "b"}])
        await conv.append({"role": "user", "content": f"{SECRET} again", "id": "a"})
        postgres_server.run_sql("ANALYZE", name)
        proof = await et.erase(conversation=conv.id, message="a")
        assert (proof.entries, proof.reached["words"]) == (2, 2)
        assert traces(postgres_server, name) == []
        assert (await et.verify()).ok


async def test_the_report_names_replicas_and_the_write_ahead_log(address: str) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        proof = await et.erase(conversation=conv.id)
        said = " ".join(proof.cannot_reach)
        assert all(word in said for word in ("backups", "replicas", "write-ahead log", "server's own log"))


async def test_rows_that_a_transaction_still_sees_are_reported_and_removed_later(
    address: str, name: str, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await asyncpg.connect(address)
    async with everthread.open(address) as et:
        id = await _talk(et)
        async with reader.transaction(isolation="repeatable_read"):
            await reader.fetchval("SELECT 1")
            proof = await _erased_at_once(et, id, monkeypatch)
            assert erase.STILL_SEEN in proof.cannot_reach
            assert not await et.search(SECRET)
            assert traces(postgres_server, name)
    await reader.close()
    async with everthread.open(address):
        assert postgres_server.run_sql(UNFINISHED, name) == "0"
    assert traces(postgres_server, name) == []


async def test_a_transaction_in_another_database_keeps_rows_too_and_that_is_told(
    address: str, name: str, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = await asyncpg.connect(postgres_server.url("postgres"))
    async with everthread.open(address) as et, stranger.transaction():
        await stranger.fetchval("SELECT pg_current_xact_id()")
        proof = await _erased_at_once(et, await _talk(et), monkeypatch)
        assert erase.STILL_SEEN in proof.cannot_reach
    await stranger.close()
    async with everthread.open(address):
        assert postgres_server.run_sql(UNFINISHED, name) == "0"
    assert traces(postgres_server, name) == []


async def test_a_rewrite_that_cannot_lock_a_table_gives_way(
    address: str, name: str, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.adapters.stores.postgres.statements.REWRITE_PATIENCE", "SET lock_timeout = '100ms'")
    reader = await asyncpg.connect(address)
    async with everthread.open(address) as et:
        id = await _talk(et)
        async with reader.transaction():
            await reader.execute("LOCK TABLE words IN ACCESS SHARE MODE")
            proof = await et.erase(conversation=id)
            assert erase.STILL_SEEN in proof.cannot_reach
        await et.erase(owner="local")
        assert postgres_server.run_sql(UNFINISHED, name) == "0"
    await reader.close()
    assert traces(postgres_server, name) == []


async def test_i29_without_room_for_a_rewrite_what_is_left_is_named_and_the_database_opens(
    address: str, name: str, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with everthread.open(address) as et:
        id = await _talk(et)
        with monkeypatch.context() as patched:
            full = "DO $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$"
            patched.setattr("everthread.adapters.stores.postgres.statements.REWRITE", full)
            proof = await et.erase(conversation=id)
            assert proof.cannot_reach[-1] == f"{erase.NOT_REWRITTEN}: no space left on device"
            async with everthread.open(address) as again:
                assert (await again.verify()).erased == 22
    async with everthread.open(address):
        assert postgres_server.run_sql(UNFINISHED, name) == "0"
    assert traces(postgres_server, name) == []


async def test_a_user_who_may_not_rewrite_the_tables_is_told_so(
    address: str, name: str, postgres_server: Server
) -> None:
    role = f"guest_{name}"
    postgres_server.run_sql(f"CREATE ROLE {role} LOGIN")
    rights = {"TABLES": "SELECT, INSERT, UPDATE, DELETE", "SEQUENCES": "ALL"}
    postgres_server.run_sql(f"GRANT USAGE ON SCHEMA everthread_jobs TO {role}", name)
    for kind, granted in rights.items():
        postgres_server.run_sql(f"GRANT {granted} ON ALL {kind} IN SCHEMA public, everthread_jobs TO {role}", name)
    try:
        async with everthread.open(address.replace("postgres@", f"{role}@")) as et:
            proof = await et.erase(conversation=await _talk(et))
            assert erase.NOT_OWNED in proof.cannot_reach
            assert postgres_server.run_sql(UNFINISHED, name) == "1"
        async with everthread.open(address):
            assert postgres_server.run_sql(UNFINISHED, name) == "0"
        assert traces(postgres_server, name) == []
    finally:
        postgres_server.run_sql(f"DROP OWNED BY {role}", name)
        postgres_server.run_sql(f"DROP ROLE {role}")


async def test_an_owner_without_other_rights_can_erase(postgres_server: Server) -> None:
    with postgres_server.database(migrated=False) as url:
        name = name_of(url)
        role = f"owner_{name}"
        postgres_server.run_sql(f"CREATE ROLE {role} LOGIN")
        postgres_server.run_sql(f"ALTER DATABASE {name} OWNER TO {role}")
        async with everthread.open(url.replace("postgres@", f"{role}@")) as et:
            proof = await et.erase(conversation=await _talk(et))
            assert proof.cannot_reach == (*erase.BEYOND_REACH, OF_THE_OWNER)
        assert traces(postgres_server, name) == []
    postgres_server.run_sql(f"DROP ROLE {role}")


async def test_erasures_at_once_are_all_finished(address: str, name: str, postgres_server: Server) -> None:
    async with everthread.open(address) as et:
        ids = [(await et.conversations.create()).id for _ in range(4)]
        proofs = await asyncio.gather(*(et.erase(conversation=id) for id in ids))
        assert [proof.cannot_reach for proof in proofs] == [(*erase.BEYOND_REACH, OF_THE_OWNER)] * 4
        assert postgres_server.run_sql(UNFINISHED, name) == "0"
        assert {row[1] for row in await et.store.maintenance.erasures()} == set(ids)


async def test_what_is_off_the_record_is_gone_when_the_database_is_closed(
    address: str, name: str, postgres_server: Server
) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create(off_record=True, title=SECRET)
        await conv.append({"role": "user", "content": SECRET})
        assert traces(postgres_server, name)
    for _ in range(3):
        if traces(postgres_server, name):  # the server's own vacuum still read the old rows: an opening ends the work
            async with everthread.open(address):
                pass
    assert traces(postgres_server, name) == []


async def test_what_a_crash_left_off_the_record_is_erased_a_day_later(
    address: str, name: str, postgres_server: Server
) -> None:
    clock = ManualClock()
    crashed = everthread.open(address, clock=clock)
    await crashed.store.open()
    conv = await crashed.conversations.create(off_record=True)
    await conv.append({"role": "user", "content": SECRET})
    async with everthread.open(address, clock=clock) as et:
        assert (await et.stats())["conversations"] == 1
    clock.move(timedelta(days=2))
    async with everthread.open(address, clock=clock) as et:
        assert (await et.stats())["conversations"] == 0
        assert traces(postgres_server, name) == []
    await crashed.close()
