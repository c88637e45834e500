"""The file that the address of a SQLite database names."""

from __future__ import annotations

import os
from urllib.parse import unquote


def path_in(rest: str) -> str:
    """The file that is named after the `://`; a `~` at its beginning is the user's home."""
    return os.path.expanduser(unquote(rest.partition("?")[0]).removeprefix("/"))
