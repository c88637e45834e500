"""What a command function receives: the settings in effect, the database they name, and the output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import everthread
from everthread.adapters.stores.database_url import sqlite_file
from everthread.core.errors import MissingExtra, NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from everthread.cli.output import Output
    from everthread.core.jobs import Pace
    from everthread.instance import Everthread
    from everthread.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One run of one command; command functions call theirs `cli`."""

    settings: Settings
    origins: Mapping[str, str]
    """Where each setting came from."""
    files: tuple[Path, ...]
    """The configuration files that were looked for."""
    out: Output

    @property
    def owner(self) -> str:
        return self.settings.owner

    @property
    def url(self) -> str:
        return self.settings.database

    @property
    def shown_url(self) -> str:
        """The database's URL without its password."""
        from everthread.settings import masked  # noqa: PLC0415 - startup

        return masked(self.url)

    @asynccontextmanager
    async def open(self, *, create: bool = False, worker: bool | Pace = False) -> AsyncIterator[Everthread]:
        """Open the database. Without `create`, a missing SQLite file is an error. Without `worker`, background jobs
        are left to the processes that run one."""
        if not create:
            self.require_database()
        async with everthread.open(self.url, settings=self.settings, worker=worker) as et:
            yield et

    def require_database(self) -> None:
        """NotFound if the URL names a SQLite file that does not exist: a mistyped path must not look like an empty
        database."""
        file = sqlite_file(self.url)
        if file is not None and not file.exists():
            raise NotFound(
                f"no database at {self.shown_url}; name another with --database, or create it: everthread migrate"
            )


def require_postgres() -> None:
    """MissingExtra if the driver is not installed."""
    if find_spec("asyncpg") is None:
        raise MissingExtra("PostgreSQL needs an extra: pip install 'everthread[postgres]'")
