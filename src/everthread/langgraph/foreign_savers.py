"""The databases of LangGraph's own savers, as `adopt` reads them: SqliteSaver's file, PostgresSaver's tables.

Checkpoints are read with the savers' own code, one at a time: a thread of a thousand turns may hold two gigabytes. The
SQL here only counts, names and prunes. Reading runs nothing: stored data becomes the types that LangGraph calls safe,
and anything else becomes None, since only messages are of interest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import ormsgpack
import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row

from everthread.adapters.checkpoints.serde import StrictSerializer
from everthread.adapters.stores.database_url import is_postgres
from everthread.core.errors import Invalid, NotFound, StoreError


class CheckpointName(NamedTuple):
    """One checkpoint of a thread."""

    namespace: str
    id: str
    parent_id: str | None


class SaverDatabase(Protocol):
    """A saver's database."""

    saver: BaseCheckpointSaver[Any]

    def threads(self) -> list[str]: ...

    def checkpoints(self, thread_id: str) -> list[CheckpointName]:
        """All checkpoints of a thread, in all namespaces, oldest first."""

    def size_bytes(self, thread_id: str) -> tuple[int, int]:
        """How much a thread takes, and how much of that its newest checkpoints do not need."""

    def prune(self, thread_id: str) -> bool:
        """Keep the newest checkpoint of each namespace and those that it is rebuilt from; False if these cannot be
        determined."""

    def shrink(self) -> None:
        """Return the freed space to the system."""


class MessagesOnlySerializer(StrictSerializer):
    """Revives the types on the allow-list; everything else becomes None, and is not built."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        if kind != "msgpack":
            return super().loads_typed(data)

        def revive(code: int, part: bytes) -> Any:
            refused: list[str] = []
            self._inspect(code, part, refused)
            return None if refused else self._revive(code, part)

        return ormsgpack.unpackb(body, ext_hook=revive, option=ormsgpack.OPT_NON_STR_KEYS)


@contextmanager
def open_saver_database(url: str, *, read_only: bool) -> Iterator[SaverDatabase]:
    """A saver's database by its address."""
    if url.startswith("sqlite:///"):
        with _sqlite(Path(url.removeprefix("sqlite:///")), read_only) as found:
            yield found
    elif is_postgres(url):
        with _postgres(url, read_only) as found:
            yield found
    else:
        raise Invalid("must be sqlite:///file or postgresql://…, where a saver of LangGraph's keeps its checkpoints")


# -- SQLite ----------------------------------------------------------------------------------------------------------


@contextmanager
def _sqlite(file: Path, read_only: bool) -> Iterator[SaverDatabase]:
    if not file.exists():
        raise NotFound(f"no database at {file}")
    mode = "ro" if read_only else "rw"
    try:
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode={mode}", uri=True, check_same_thread=False)
        try:
            yield SqliteSaverDatabase(connection)
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise StoreError(f"{file} is not a readable database of a SqliteSaver: {problem}") from problem


_SELF_CONTAINED_SINCE = 4
"""Since this format a checkpoint needs nothing of its parent."""
_SQLITE_SIZES = """\
SELECT checkpoint_ns, checkpoint_id, coalesce(length(checkpoint), 0) + coalesce(length(metadata), 0)
FROM checkpoints WHERE thread_id = :thread
UNION ALL
SELECT checkpoint_ns, checkpoint_id, coalesce(length(value), 0) FROM writes WHERE thread_id = :thread"""


class SqliteSaverDatabase:
    """A SqliteSaver's file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        saver = SqliteSaver(connection, serde=MessagesOnlySerializer())
        columns = [row[1] for row in connection.execute("PRAGMA table_info(writes)")]
        if not columns:
            raise Invalid("has no tables of a SqliteSaver", field="saver")
        saver.is_setup = True  # its tables are there, and a reader makes none
        saver._has_task_path = "task_path" in columns
        self.saver: BaseCheckpointSaver[Any] = saver

    def threads(self) -> list[str]:
        return [row[0] for row in self._connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")]

    def checkpoints(self, thread_id: str) -> list[CheckpointName]:
        rows = self._connection.execute(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = ?"
            " ORDER BY checkpoint_id, checkpoint_ns",
            (thread_id,),
        )
        return [CheckpointName(*row) for row in rows]

    def size_bytes(self, thread_id: str) -> tuple[int, int]:
        rows = self._connection.execute(_SQLITE_SIZES, {"thread": thread_id}).fetchall()
        kept = needed_checkpoints(self.saver, thread_id, self.checkpoints(thread_id))
        old = [size for namespace, id, size in rows if kept is not None and (namespace, id) not in kept]
        return sum(size for *_, size in rows), sum(old)

    def prune(self, thread_id: str) -> bool:
        names = self.checkpoints(thread_id)
        kept = needed_checkpoints(self.saver, thread_id, names)
        if kept is None:
            return False
        old = [(thread_id, one.namespace, one.id) for one in names if (one.namespace, one.id) not in kept]
        with self._connection:
            for table in ("writes", "checkpoints"):
                self._connection.executemany(
                    f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", old
                )
        return True

    def shrink(self) -> None:
        self._connection.execute("VACUUM")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def needed_checkpoints(
    saver: BaseCheckpointSaver[Any], thread_id: str, names: Sequence[CheckpointName]
) -> set[tuple[str, str]] | None:
    """The newest checkpoint of each namespace, and what it is rebuilt from: a delta channel's value stands in an
    earlier checkpoint, and the writes on all since. None where a checkpoint is of a format that does not tell."""
    by_key = {(name.namespace, name.id): name for name in names}
    kept: set[tuple[str, str]] = set()
    for namespace, id in {name.namespace: name.id for name in names}.items():
        key: tuple[str, str] | None = (namespace, id)
        missing: set[str] | None = None
        while key is not None and (missing is None or missing):
            found = _get_tuple(saver, thread_id, *key)
            if found is None or found.checkpoint["v"] < _SELF_CONTAINED_SINCE:
                return None
            missing = (
                _missing_channels(found) if missing is None else missing - found.checkpoint["channel_values"].keys()
            )
            kept.add(key)
            parent = by_key[key].parent_id
            key = None if parent is None or (namespace, parent) not in by_key else (namespace, parent)
    return kept


def _get_tuple(saver: BaseCheckpointSaver[Any], thread_id: str, namespace: str, id: str) -> CheckpointTuple | None:
    address = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": id}
    return saver.get_tuple({"configurable": address})


def _missing_channels(found: CheckpointTuple) -> set[str]:
    """The channels of a checkpoint whose values stand elsewhere."""
    counted = set(found.metadata.get("counters_since_delta_snapshot") or ())
    listed = {"messages"} & found.checkpoint["channel_versions"].keys()
    return (counted | listed) - found.checkpoint["channel_values"].keys()


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


@contextmanager
def _postgres(url: str, read_only: bool) -> Iterator[SaverDatabase]:
    try:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row) as connection:
            if read_only:
                connection.execute("SET default_transaction_read_only = on")
            yield PostgresSaverDatabase(connection)
    except psycopg.Error as problem:
        raise StoreError(f"the database of the PostgresSaver cannot be read: {type(problem).__name__}") from problem


_POSTGRES_SIZES = """\
WITH used AS (
    SELECT DISTINCT c.checkpoint_ns, v.key AS channel, v.value AS version
    FROM checkpoints c, jsonb_each_text(c.checkpoint -> 'channel_versions') v
    WHERE c.thread_id = %(thread)s AND (c.checkpoint_ns || ' ' || c.checkpoint_id) = ANY(%(kept)s)
), parts AS (
    SELECT pg_column_size(checkpoint) + pg_column_size(metadata) AS size,
           (checkpoint_ns || ' ' || checkpoint_id) <> ALL(%(kept)s) AS is_old
    FROM checkpoints WHERE thread_id = %(thread)s
    UNION ALL
    SELECT octet_length(blob), (checkpoint_ns || ' ' || checkpoint_id) <> ALL(%(kept)s)
    FROM checkpoint_writes WHERE thread_id = %(thread)s
    UNION ALL
    SELECT octet_length(blob), u.channel IS NULL
    FROM checkpoint_blobs b LEFT JOIN used u USING (checkpoint_ns, channel, version) WHERE thread_id = %(thread)s
)
SELECT coalesce(sum(size), 0) AS total, coalesce(sum(size) FILTER (WHERE is_old), 0) AS old FROM parts"""
_POSTGRES_PRUNE = (
    "DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s"
    " AND (checkpoint_ns || ' ' || checkpoint_id) <> ALL(%(kept)s)",
    "DELETE FROM checkpoints WHERE thread_id = %(thread)s AND (checkpoint_ns || ' ' || checkpoint_id) <> ALL(%(kept)s)",
    "DELETE FROM checkpoint_blobs b WHERE thread_id = %(thread)s AND NOT EXISTS (SELECT FROM checkpoints c"
    " WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns"
    " AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)",
)
"""Deletes writes, checkpoints and values that the remaining checkpoints do not need."""


class PostgresSaverDatabase:
    """A PostgresSaver's tables."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection
        self.saver: BaseCheckpointSaver[Any] = PostgresSaver(connection, serde=MessagesOnlySerializer())

    def threads(self) -> list[str]:
        rows = self._connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")
        return [row["thread_id"] for row in rows]

    def checkpoints(self, thread_id: str) -> list[CheckpointName]:
        rows = self._connection.execute(
            "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = %s"
            " ORDER BY checkpoint_id, checkpoint_ns",
            (thread_id,),
        )
        return [CheckpointName(row["checkpoint_ns"], row["checkpoint_id"], row["parent_checkpoint_id"]) for row in rows]

    def size_bytes(self, thread_id: str) -> tuple[int, int]:
        kept = self._kept(thread_id)
        values = {"thread": thread_id, "kept": kept or []}
        row = self._connection.execute(_POSTGRES_SIZES, values).fetchone()
        assert row is not None
        return int(row["total"]), 0 if kept is None else int(row["old"])

    def _kept(self, thread_id: str) -> list[str] | None:
        """What a prune leaves, each as its namespace and its id."""
        kept = needed_checkpoints(self.saver, thread_id, self.checkpoints(thread_id))
        return None if kept is None else [f"{namespace} {id}" for namespace, id in kept]

    def prune(self, thread_id: str) -> bool:
        kept = self._kept(thread_id)
        if kept is None:
            return False
        with self._connection.transaction():
            for statement in _POSTGRES_PRUNE:
                self._connection.execute(statement, {"thread": thread_id, "kept": kept})
        return True

    def shrink(self) -> None:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            self._connection.execute(f"VACUUM FULL {table}")
