"""A database of revision 0021, the last before the first release: as the code of then left it (`data/`)."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

from tests.postgres import Server

DATA = Path(__file__).parent / "data"


def make_older(url: str, server: Server | None = None) -> None:
    """Put it at this address; the server is PostgreSQL's."""
    if server is None:
        file = Path(url.removeprefix("sqlite:///"))
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DATA / "revision_0021.sqlite", file)
        return
    dump = gzip.decompress((DATA / "revision_0021.postgres.sql.gz").read_bytes())
    command = [str(server.programs / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url]
    subprocess.run(command, input=dump, stdout=subprocess.DEVNULL, check=True)
