"""The command `doctor`: what is in order, what is not, and what to do about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door, is_postgres, require_postgres
from everthread.cli.errors import ExitCode
from everthread.core.errors import EverthreadError

if TYPE_CHECKING:
    from everthread.cli.checks import Check


@command(app)
async def doctor(door: Door) -> None:
    """Look for trouble, changing nothing. Exit code 5 when stored data are damaged, 1 when something else fails."""
    from everthread.cli.checks import State, check_machine  # noqa: PLC0415 - startup

    checks = [*check_machine(door.settings), *[check async for check in _check_database(door)]]
    if door.settings.blobs is not None and all(check.state in (State.OK, State.WARN) for check in checks):
        checks.append(await _check_blobs(door))
    if door.settings.vectors is not None:
        checks.append(await _check_vectors(door.settings.vectors))
    if door.out.json:
        for check in checks:
            door.out.document(asdict(check))
    else:
        door.out.table(("", "what", "found", "what to do"), [(c.state, c.name, c.found, c.advice) for c in checks])
    states = {check.state for check in checks}
    if State.DAMAGED in states:
        raise typer.Exit(ExitCode.INTEGRITY)
    if State.FAIL in states:
        raise typer.Exit(ExitCode.ERROR)


async def _check_blobs(door: Door) -> Check:
    from everthread.cli.checks import check_blobs  # noqa: PLC0415 - startup

    async with door.open() as et:
        return check_blobs(await et.check_blobs())


async def _check_vectors(address: str) -> Check:
    """Those outside of the database; whoever holds those inside is asked with it."""
    from everthread.adapters.vectors.choosing import outside_at  # noqa: PLC0415 - startup
    from everthread.cli.checks import Check, State, check_vectors  # noqa: PLC0415

    try:
        vectors = outside_at(address)
        try:
            return check_vectors(vectors.about, await vectors.models())
        finally:
            await vectors.close()
    except EverthreadError as problem:
        advice = "see that it can be reached; until then words alone are searched"
        return Check(name="vectors", state=State.FAIL, found=str(problem), advice=advice)


async def _check_database(door: Door) -> AsyncIterator[Check]:
    from everthread.adapters.stores.restoring import sqlite_file  # noqa: PLC0415 - startup
    from everthread.cli.checks import Check, State  # noqa: PLC0415

    file = sqlite_file(door.url)
    if file is not None:
        from everthread.cli.checks_sqlite import check_file  # noqa: PLC0415 - startup

        for check in check_file(file):
            yield check
    elif is_postgres(door.url):
        require_postgres()
        from everthread.cli.checks_postgres import check_server  # noqa: PLC0415 - an extra

        async for check in check_server(door.url):
            yield check
    else:
        async with door.open():
            yield Check(name="database", state=State.OK, found="in memory")
