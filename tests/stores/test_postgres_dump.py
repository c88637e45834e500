"""Backups of a PostgreSQL database by its own programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.postgres.dump import restore
from everthread.core.errors import Conflict, StoreError
from tests.postgres import Server


@pytest.fixture
def programs(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PostgreSQL's programs on the PATH."""
    monkeypatch.setenv("PATH", f"{postgres_server.programs}{os.pathsep}{os.environ['PATH']}")
    return postgres_server.programs


@pytest.mark.usefixtures("programs")
async def test_a_restored_backup_proves_the_same_heads(address: str, postgres_server: Server, tmp_path: Path) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create(title="kept")
        await conv.append([{"role": "user", "content": "hello"}, {"role": "user", "content": "x" * 100_000}])
        heads = await et.heads()
        await et.backup(tmp_path / "copy.dump")
        await conv.append({"role": "user", "content": "after the backup"})
    assert os.listdir(tmp_path) == ["copy.dump"]
    with postgres_server.database(migrated=False) as empty:
        await restore(empty, tmp_path / "copy.dump")
        async with everthread.open(empty) as et:
            assert (await et.verify(against=heads)).ok
            again = await et.conversations.get(conv.id)
            assert [len(message.text) async for message in again.messages()] == [5, 100_000]
            assert len(await et.search("hello")) == 1
            assert (await again.append({"role": "user", "content": "goes on"}))[0].seq == 3
            assert (await et.conversations.create()).id


@pytest.mark.usefixtures("programs")
async def test_a_backup_overwrites_nothing(address: str, tmp_path: Path) -> None:
    target = tmp_path / "copy.dump"
    target.write_text("precious")
    async with everthread.open(address) as et:
        with pytest.raises(Conflict, match="exists already"):
            await et.backup(target)
    assert target.read_text() == "precious"


@pytest.mark.usefixtures("programs")
async def test_a_database_with_tables_is_not_restored_into(address: str, tmp_path: Path) -> None:
    async with everthread.open(address) as et:
        await et.backup(tmp_path / "copy.dump")
        await et.conversations.create(id="stays")
    with pytest.raises(Conflict, match="empty database"):
        await restore(address, tmp_path / "copy.dump")
    async with everthread.open(address) as et:
        assert (await et.conversations.get("stays")).id == "stays"


@pytest.mark.usefixtures("programs")
async def test_what_is_no_backup_is_refused(postgres_server: Server, tmp_path: Path) -> None:
    (tmp_path / "copy.dump").write_text("no backup")
    with postgres_server.database(migrated=False) as empty, pytest.raises(StoreError, match="pg_restore failed"):
        await restore(empty, tmp_path / "copy.dump")


async def test_without_the_programs_the_error_says_what_to_install(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with everthread.open(address) as et:
        with pytest.raises(StoreError, match="postgresql-client"):
            await et.backup(tmp_path / "copy.dump")
    assert os.listdir(tmp_path) == []


async def test_i23_programs_get_the_password_where_no_list_of_processes_shows_it(
    address: str, name: str, postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = tmp_path / "pg_dump"
    spy.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\necho "$PGPASSWORD" > {tmp_path}/environment\nexit 1\n'
    )
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    async with everthread.open(postgres_server.url(name, password="hush@hush")) as et:
        with pytest.raises(StoreError, match="pg_dump failed"):
            await et.backup(tmp_path / "copy.dump")
    assert "hush" not in (tmp_path / "arguments").read_text()
    assert (tmp_path / "environment").read_text() == "hush@hush\n"
