"""What a command function receives: the settings in effect, the database they name, and the output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import everthread
from everthread.core.errors import Invalid, MissingExtra, NotFound
from everthread.core.nouns import MAX_PAGE

if TYPE_CHECKING:
    from pathlib import Path

    from everthread.cli.output import Output
    from everthread.conversation import Conversation
    from everthread.core.jobs import Pace
    from everthread.instance import Everthread
    from everthread.settings import Settings

_SHOWN_MATCHES = 5


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
        from everthread.adapters.stores.restore import sqlite_file  # noqa: PLC0415 - startup

        file = sqlite_file(self.url)
        if file is not None and not file.exists():
            raise NotFound(
                f"no database at {self.shown_url}; name another with --database, or create it: everthread migrate"
            )


async def find_conversation(et: Everthread, owner: str, given: str) -> Conversation:
    """The conversation with this id, or the only one whose id begins so; the order of ids is that of their making, so
    those of one day begin alike, and a few letters more tell them apart."""
    with suppress(NotFound):
        return await et.conversations.get(given, owner)
    found: list[Conversation] = []
    cursor = None
    while True:
        page = await et.conversations.list(owner, limit=MAX_PAGE, cursor=cursor, include_deleted=True)
        found += [one for one in page.items if one.id.startswith(given)]
        cursor = page.next_cursor
        if cursor is None:
            break
    by_id = {one.id: one for one in found}
    return by_id[only_one(given, by_id, "conversation", "`everthread ls` lists them")]


def only_one(given: str, ids: Iterable[str], what: str, see: str) -> str:
    """The id that was given, or the only one that begins so; else an error that says what it is an id of."""
    matching = [id for id in ids if given and id.startswith(given)]
    if given in matching or len(matching) == 1:
        return given if given in matching else matching[0]
    if not matching:
        raise NotFound(f"no {what} {given!r}; {see}")
    some = ", ".join(matching[:_SHOWN_MATCHES]) + (", …" if len(matching) > _SHOWN_MATCHES else "")
    raise Invalid(f"{given!r} begins {len(matching):,} ids: {some}; give more of it", field=what)


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in ("postgresql", "postgres")


def require_postgres() -> None:
    """MissingExtra if the driver is not installed."""
    if find_spec("asyncpg") is None:
        raise MissingExtra("PostgreSQL needs an extra: pip install 'everthread[postgres]'")
