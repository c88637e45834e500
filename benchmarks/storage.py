"""Bytes on the disk against the bytes of the payloads, with and without the search index."""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Row
from benchmarks.systems import Ours


def run(options: argparse.Namespace) -> Sequence[Row]:
    """One conversation of each length, written turn by turn, then closed."""
    return [_at_length(length) for length in options.lengths]


def _at_length(length: int) -> Row:
    from perf.data import Gen  # noqa: PLC0415 - importable only with the harness

    folder = tempfile.mkdtemp(prefix="bench-")
    ours = Ours(folder)
    ours.open()
    for start in range(0, length, 1_000):
        ours.seed("t", Gen(start).turns(min(1_000, length - start)))
    payload = ours.run_async(ours.et.stats())["payload_bytes"]
    ours.close()
    file = Path(folder) / "et.db"
    index = _index_bytes(file)
    return {
        "system": "everthread",
        "messages": length,
        "payload bytes": payload,
        "file bytes": file.stat().st_size,
        "times payload": file.stat().st_size / payload,
        "without index": (file.stat().st_size - index) / payload,
    }


def _index_bytes(file: Path) -> int:
    connection = sqlite3.connect(file)
    found: int = connection.execute("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name LIKE 'words%'").fetchone()[
        0
    ]
    connection.close()
    return found
