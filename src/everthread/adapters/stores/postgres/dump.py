"""Backups by PostgreSQL's own programs. The password goes to them by the environment, where `ps` does not show it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from everthread.adapters.stores.postgres.address import Address, parse
from everthread.adapters.stores.postgres.pool import connect
from everthread.adapters.stores.postgres.tables import version
from everthread.core.errors import Conflict, StoreError

SET_ASIDE = "everthread_replacing*"
"""The schema where a restore keeps the tables it replaces; backups leave it out."""


async def backup(address: Address, target: Path) -> None:
    """Write a consistent copy while the database is in use; the file appears only once it is complete."""
    partial = _partial_name(target)
    try:
        await _run("pg_dump", address, "--format=custom", f"--exclude-schema={SET_ASIDE}", f"--file={partial}")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def _partial_name(target: Path) -> Path:
    if target.exists():
        raise Conflict(f"{target} exists already; nothing was written: choose another name")
    return target.with_name(f"{target.name}.partial")


async def restore(url: str, source: Path) -> None:
    """Put a backup into an empty database, all of it or nothing; what was erased since, the caller erases again."""
    address = parse(url)
    connection = await connect(address)
    try:
        found = await version(connection)
    finally:
        await connection.close()
    if found is not None:
        raise Conflict("the database has tables already; nothing was changed: restore into an empty database")
    await _run(
        "pg_restore", address, "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", str(source)
    )


async def _run(program: str, address: Address, *options: str) -> None:
    found = shutil.which(program)
    if found is None:
        raise StoreError(
            f"{program} is not on the PATH; install PostgreSQL's client programs, of the server's version or newer "
            "(Debian: apt install postgresql-client)"
        )
    dsn, environment = address.for_programs()
    process = await asyncio.create_subprocess_exec(
        found, f"--dbname={dsn}", *options,
        env={**os.environ, **environment}, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await process.communicate()
    if process.returncode:
        raise StoreError(f"{program} failed: {address.without_secrets(said.decode(errors='replace').strip())}")
