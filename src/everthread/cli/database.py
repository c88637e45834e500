"""Look after the database as a whole: stats, migrate, backup, restore."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.adapters.stores.database_url import is_postgres, sqlite_file
from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode
from everthread.cli.invocation import Invocation, require_postgres
from everthread.cli.output import counted, format_bytes, format_time
from everthread.cli.verify import as_json, print_report
from everthread.core.errors import Invalid

if TYPE_CHECKING:
    from everthread.adapters.stores.restore import Erasure, Restored


@command(app)
async def stats(cli: Invocation) -> None:
    """Show counts and sizes of the whole database, all owners."""
    async with cli.open() as et:
        counted = await et.stats()
    if cli.out.json:
        cli.out.document(dict(counted))
    else:
        cli.out.table(
            ("", ""),
            [
                (name, format_bytes(count) if name.endswith("_bytes") else f"{count:,}")
                for name, count in counted.items()
            ],
        )


@command(app)
async def migrate(cli: Invocation) -> None:
    """Upgrade the database to the current schema, or create it."""
    ran = [f"{version:04d}" for version in await _migrate(cli)]
    if cli.out.json:
        cli.out.document({"steps": ran})
    else:
        cli.out.text(f"ran {', '.join(ran)}" if ran else "up to date: nothing to do")


async def _migrate(cli: Invocation) -> Sequence[int]:
    file = sqlite_file(cli.url)
    if file is not None:
        return _migrate_file(file)
    if not is_postgres(cli.url):
        async with cli.open():
            return []
    require_postgres()
    from everthread.adapters.stores.postgres import address, tables  # noqa: PLC0415 - an extra

    return await tables.migrate(address.parse(cli.url))


def _migrate_file(file: Path) -> Sequence[int]:
    from everthread.adapters.stores import schema  # noqa: PLC0415 - startup
    from everthread.adapters.stores.sqlite import files  # noqa: PLC0415

    file.parent.mkdir(parents=True, exist_ok=True)
    version = files.version_of(file)
    if version is not None:
        schema.refuse_newer(version)
    return files.migrate(file)


@command(app)
async def backup(
    cli: Invocation, target: Annotated[Path, typer.Argument(metavar="TARGET", help="The new file to write.")]
) -> None:
    """Write a consistent copy of the database while it is in use."""
    from everthread.adapters.stores.restore import back_up  # noqa: PLC0415 - startup

    async with cli.open() as et:
        with cli.out.busy(f"writing {target.name}"):
            written = await back_up(et.store, target)
    if cli.out.json:
        cli.out.document({"target": str(target), "bytes": written})
    else:
        cli.out.text(f"{target}: {format_bytes(written)}")


@command(app)
async def restore(
    cli: Invocation,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A file that `everthread backup` wrote.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the existing database.")] = False,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="Keep the replaced database next to the new one.")
    ] = False,
    erasures: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of `everthread erasures`: erase this again, too.")
    ] = None,
) -> None:
    """Replace the database with a backup. What was erased, and the keys and links that were revoked, since the backup
    are erased and revoked again."""
    more = [] if erasures is None else _read_erasures(erasures)
    restored = await _restore(cli, source, more, force, keep_old)
    if cli.out.json:
        cli.out.document(_as_json(restored))
    else:
        _print(cli, restored)
    if not restored.report.ok:
        raise typer.Exit(ExitCode.INTEGRITY)


async def _restore(cli: Invocation, source: Path, more: Sequence[Erasure], force: bool, keep_old: bool) -> Restored:
    from everthread.adapters.blobs import blobs_at  # noqa: PLC0415 - startup
    from everthread.adapters.stores.restore import restore_sqlite  # noqa: PLC0415

    target = sqlite_file(cli.url)
    blobs = None if cli.settings.blobs is None else blobs_at(cli.settings.blobs)
    if target is not None:
        return await restore_sqlite(source, target, erasures=more, force=force, keep_old=keep_old, blobs=blobs)
    if not is_postgres(cli.url):
        raise Invalid("only a SQLite file or a PostgreSQL database can be restored")
    require_postgres()
    from everthread.adapters.stores.restore_postgres import restore_postgres  # noqa: PLC0415 - an extra

    return await restore_postgres(cli.url, source, erasures=more, force=force, keep_old=keep_old, blobs=blobs)


def _as_json(restored: Restored) -> dict[str, object]:
    return {
        "restored": restored.report.ok,
        "erased_again": [erasure._asdict() for erasure in restored.erasures],
        "revoked_again": restored.revoked._asdict(),
        "is_old_list_read": restored.is_old_list_read,
        "kept": restored.kept,
        "verify": as_json(restored.report),
    }


def _print(cli: Invocation, restored: Restored) -> None:
    print_report(cli, restored.report)
    if not restored.report.ok:
        cli.out.text("the backup does not verify: nothing was changed")
        return
    cli.out.text(f"restored; {counted(len(restored.erasures), 'erasure')} applied again")
    if restored.erasures:
        cli.out.table(
            ("owner", "conversation", "message", "erased"),
            [
                (e.owner, e.conversation_id or "all", e.message_id or "all", format_time(e.erased_at))
                for e in restored.erasures
            ],
        )
    keys, links = restored.revoked
    if keys or links:
        cli.out.text(f"revoked again: {counted(keys, 'key')}, {counted(links, 'share link')}")
    if not restored.is_old_list_read:
        cli.out.note(
            "the replaced database could not be read: what was erased in it is back, unless --erasures listed it, and "
            "so are keys and share links that were revoked: revoke them again"
        )
    if restored.kept is not None:
        cli.out.text(f"the old database is kept as {restored.kept}")


def _read_erasures(file: Path) -> list[Erasure]:
    from everthread.adapters.stores.restore import Erasure  # noqa: PLC0415 - startup

    found = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            fields = json.loads(line)
            at = datetime.fromisoformat(fields["erased_at"]).astimezone(UTC)
            found.append(Erasure(**{**fields, "erased_at": at}))
        except (ValueError, TypeError, KeyError) as problem:
            raise Invalid(f"{file}, line {number} is not a line of `everthread erasures`: {problem}") from problem
    return found
