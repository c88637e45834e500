"""What the URL of a database names: a file of SQLite, or a PostgreSQL server."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in ("postgresql", "postgres")


def sqlite_file(url: str) -> Path | None:
    """The file that the URL of a SQLite database names; None for another kind of URL."""
    scheme, _, rest = url.partition("://")
    path = path_in(rest)
    return Path(path) if scheme == "sqlite" and path else None


def path_in(rest: str) -> str:
    """The file that is named after the `://`; a `~` at its beginning is the user's home."""
    return os.path.expanduser(unquote(rest.partition("?")[0]).removeprefix("/"))
