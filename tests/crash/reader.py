"""A child that reads in one long transaction, as a backup or a careless report does."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path


def read_for_long(path: str, reading: str, stop: str) -> None:
    """Hold a snapshot of a SQLite file from when `reading` appears until `stop` does."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM entries").fetchone()
    Path(reading).touch()
    while not Path(stop).exists():
        time.sleep(0.01)
    connection.execute("COMMIT")
    connection.close()
