"""Commands that look after the database: migrate, backup, restore."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door, is_postgres, require_postgres
from everthread.cli.errors import ExitCode
from everthread.cli.output import moment, size
from everthread.cli.proving import as_json, tell_report
from everthread.core.errors import Invalid

if TYPE_CHECKING:
    from everthread.adapters.stores.restoring import Erasure, Restored


@command(app)
async def migrate(door: Door) -> None:
    """Bring the database to today's tables. Where there is none, it is made."""
    ran = await _migrate(door)
    if door.out.json:
        door.out.document({"steps": ran})
    else:
        door.out.text(f"ran {', '.join(ran)}" if ran else "up to date: nothing to do")


async def _migrate(door: Door) -> Sequence[str]:
    from everthread.adapters.stores.restoring import sqlite_file  # noqa: PLC0415 - startup

    file = sqlite_file(door.url)
    if file is not None:
        return _migrate_file(file)
    if not is_postgres(door.url):
        async with door.open():
            return []
    require_postgres()
    from everthread.adapters.stores.postgres import address, tables  # noqa: PLC0415 - an extra

    return await tables.migrate(address.parse(door.url))


def _migrate_file(file: Path) -> Sequence[str]:
    from everthread.adapters.stores import migrating  # noqa: PLC0415 - startup
    from everthread.adapters.stores.sqlite import files  # noqa: PLC0415

    file.parent.mkdir(parents=True, exist_ok=True)
    revision = files.revision_of(file)
    if revision is not None:
        migrating.refuse_newer(revision)
    return files.migrate(file)


@command(app)
async def backup(
    door: Door, target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file to write; a new one.")]
) -> None:
    """Write a consistent copy of the database. Others may go on working meanwhile."""
    from everthread.adapters.stores.restoring import back_up  # noqa: PLC0415 - startup

    async with door.open() as et:
        written = await back_up(et.store, target)
    if door.out.json:
        door.out.document({"target": str(target), "bytes": written})
    else:
        door.out.text(f"{target}: {size(written)}")


@command(app)
async def sweep(
    door: Door,
    hours: Annotated[
        float, typer.Option("--older-than", metavar="HOURS", min=0, help="Leave what was written since.")
    ] = 24,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
) -> None:
    """Delete blobs that nothing refers to: a crash between a blob and its commit leaves one."""
    async with door.open() as et:
        gone = await et.sweep_blobs(older_than=timedelta(hours=hours), dry_run=dry_run)
    if door.out.json:
        for one in gone:
            door.out.document({"name": one.name, "bytes": one.size_bytes, "written_at": one.written_at})
    else:
        done = "would be deleted" if dry_run else "deleted"
        door.out.text(f"{len(gone)} blobs {done}, {size(sum(one.size_bytes for one in gone))}")


@command(app)
async def restore(
    door: Door,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A file that `everthread backup` wrote.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the database that is there.")] = False,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="Keep the replaced database beside the new one.")
    ] = False,
    erasures: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What `everthread erasures` printed, to be erased again too.")
    ] = None,
) -> None:
    """Put a backup in the place of the database. What was erased since it was taken is erased again."""
    more = [] if erasures is None else _read_erasures(erasures)
    restored = await _restore(door, source, more, force, keep_old)
    if door.out.json:
        door.out.document(_as_json(restored))
    else:
        _tell(door, restored)
    if not restored.report.ok:
        raise typer.Exit(ExitCode.INTEGRITY)


async def _restore(door: Door, source: Path, more: Sequence[Erasure], force: bool, keep_old: bool) -> Restored:
    from everthread.adapters.blobs import blobs_at  # noqa: PLC0415 - startup
    from everthread.adapters.stores.restoring import restore_sqlite, sqlite_file  # noqa: PLC0415

    target = sqlite_file(door.url)
    blobs = None if door.settings.blobs is None else blobs_at(door.settings.blobs)
    if target is not None:
        return await restore_sqlite(source, target, erasures=more, force=force, keep_old=keep_old, blobs=blobs)
    if not is_postgres(door.url):
        raise Invalid("only a SQLite file or a PostgreSQL database can be restored")
    require_postgres()
    from everthread.adapters.stores.restoring_postgres import restore_postgres  # noqa: PLC0415 - an extra

    return await restore_postgres(door.url, source, erasures=more, force=force, keep_old=keep_old, blobs=blobs)


def _as_json(restored: Restored) -> dict[str, object]:
    return {
        "restored": restored.report.ok,
        "erased_again": [erasure._asdict() for erasure in restored.erasures],
        "is_old_list_read": restored.is_old_list_read,
        "kept": restored.kept,
        "verify": as_json(restored.report),
    }


def _tell(door: Door, restored: Restored) -> None:
    tell_report(door, restored.report)
    if not restored.report.ok:
        door.out.text("the backup does not verify: nothing was changed")
        return
    door.out.text(f"restored; {len(restored.erasures)} erasures applied again")
    if restored.erasures:
        door.out.table(
            ("owner", "conversation", "message", "erased"),
            [
                (e.owner, e.conversation_id or "all", e.message_id or "all", moment(e.erased_at))
                for e in restored.erasures
            ],
        )
    if not restored.is_old_list_read:
        door.out.note(
            "the replaced database could not be read: what was erased in it is back unless --erasures named it"
        )
    if restored.kept is not None:
        door.out.text(f"the old database is kept as {restored.kept}")


def _read_erasures(file: Path) -> list[Erasure]:
    from everthread.adapters.stores.restoring import Erasure  # noqa: PLC0415 - startup

    found = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            fields = json.loads(line)
            at = datetime.fromisoformat(fields["erased_at"]).astimezone(UTC)
            found.append(Erasure(**{**fields, "erased_at": at}))
        except (ValueError, TypeError, KeyError) as problem:
            raise Invalid(f"{file}, line {number} is no line of `everthread erasures`: {problem}") from problem
    return found
