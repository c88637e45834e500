"""One run's figures, as a table for people and JSON for the record."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]
_PACKAGES = ("everthread", "langgraph", "langgraph-checkpoint-sqlite", "openai-agents", "asyncpg", "orjson")


def show(title: str, rows: Sequence[Row]) -> None:
    """Print the rows as a table."""
    table = Table(title=title)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for column in columns:
        table.add_column(column, justify="left" if column == "system" else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    Console(width=140).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return (
        f"{value:,.3g}"
        if isinstance(value, float) and abs(value) < 1000
        else f"{value:,.0f}"
        if isinstance(value, float | int)
        else str(value)
    )


def write(path: Path, results: Mapping[str, Sequence[Row]], **more: Any) -> None:
    """Keep the figures with what is needed to read them again, and `more` of a scenario's own."""
    record = {
        "commit": _commit(),
        "load": os.getloadavg(),
        "cores": os.cpu_count(),
        "versions": _versions(),
        "results": results,
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _commit() -> str:
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
