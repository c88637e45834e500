"""The databases of LangGraph's own savers, as `adopt` reads them: SqliteSaver's file, PostgresSaver's tables.

Checkpoints are read with the savers' own code, one at a time: a thread of a thousand turns may hold two gigabytes.
What SQL there is here only counts, names and, for SQLite, prunes. Reading runs nothing: what is stored becomes the
types that LangGraph calls safe, and anything else becomes None, since only messages are of interest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import ormsgpack
import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row

from everthread.adapters.checkpoints.serde import StrictSerializer
from everthread.core.errors import Invalid, NotFound, StoreError


class CheckpointName(NamedTuple):
    """One checkpoint of a thread."""

    namespace: str
    id: str
    parent_id: str | None


class Foreign(Protocol):
    """A saver's database."""

    saver: BaseCheckpointSaver[Any]

    def threads(self) -> list[str]: ...

    def checkpoints(self, thread_id: str) -> list[CheckpointName]:
        """All of a thread, in all namespaces, oldest first."""

    def size_bytes(self, thread_id: str) -> tuple[int, int]:
        """What a thread takes, and what of that is not needed for its newest checkpoints."""

    def prune(self, thread_id: str) -> bool:
        """Keep the newest checkpoint of each namespace; False where older ones are needed to rebuild it."""

    def shrink(self) -> None:
        """Give the freed space back."""


class InertSerializer(StrictSerializer):
    """Revives what is on the allow-list; all else is None, and nothing of it is built."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        if kind != "msgpack":
            return super().loads_typed(data)

        def revive(code: int, part: bytes) -> Any:
            refused: list[str] = []
            self._inspect(code, part, refused)
            return None if refused else self._unpack_ext_hook(code, part)

        return ormsgpack.unpackb(body, ext_hook=revive, option=ormsgpack.OPT_NON_STR_KEYS)


@contextmanager
def foreign_at(url: str, *, read_only: bool) -> Iterator[Foreign]:
    """A saver's database by its address."""
    if url.startswith("sqlite:///"):
        with _sqlite(Path(url.removeprefix("sqlite:///")), read_only) as found:
            yield found
    elif url.partition("://")[0] in ("postgresql", "postgres"):
        with _postgres(url, read_only) as found:
            yield found
    else:
        raise Invalid("must be sqlite:///file or postgresql://…, where a saver of LangGraph's keeps its checkpoints")


# -- SQLite ----------------------------------------------------------------------------------------------------------


@contextmanager
def _sqlite(file: Path, read_only: bool) -> Iterator[Foreign]:
    if not file.exists():
        raise NotFound(f"no database at {file}")
    mode = "ro" if read_only else "rw"
    try:
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode={mode}", uri=True, check_same_thread=False)
        try:
            yield SqliteForeign(connection)
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise StoreError(f"{file} is no database of a SqliteSaver that can be read: {problem}") from problem


_WHOLE_SINCE = 4
"""The format of checkpoints from which on one needs nothing of its parent."""
_SQLITE_NEWEST = """\
SELECT max(checkpoint_id) FROM checkpoints c WHERE c.thread_id = o.thread_id AND c.checkpoint_ns = o.checkpoint_ns"""
_SQLITE_SIZE = "coalesce(length(checkpoint), 0) + coalesce(length(metadata), 0)"


class SqliteForeign:
    """A SqliteSaver's file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        saver = SqliteSaver(connection, serde=InertSerializer())
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
        row = self._connection.execute(
            f"SELECT total(size), total(size * is_old) FROM (SELECT {_SQLITE_SIZE} AS size,"
            f" checkpoint_id < ({_SQLITE_NEWEST}) AS is_old FROM checkpoints o WHERE thread_id = ?"
            f" UNION ALL SELECT coalesce(length(value), 0), checkpoint_id < ({_SQLITE_NEWEST})"
            " FROM writes o WHERE thread_id = ?)",
            (thread_id, thread_id),
        ).fetchone()
        return int(row[0]), int(row[1]) if self._can_prune(thread_id) else 0

    def _can_prune(self, thread_id: str) -> bool:
        """Whether every newest checkpoint is whole: no delta channel, and none from before LangGraph's format 4."""
        newest = {name.namespace: name.id for name in self.checkpoints(thread_id)}
        return all(_is_whole(self.saver, thread_id, namespace, id) for namespace, id in newest.items())

    def prune(self, thread_id: str) -> bool:
        if not self._can_prune(thread_id):
            return False
        with self._connection:
            for table in ("writes", "checkpoints"):
                self._connection.execute(
                    f"DELETE FROM {table} AS o WHERE thread_id = ? AND checkpoint_id < ({_SQLITE_NEWEST})", (thread_id,)
                )
        return True

    def shrink(self) -> None:
        self._connection.execute("VACUUM")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _is_whole(saver: BaseCheckpointSaver[Any], thread_id: str, namespace: str, id: str) -> bool:
    found = saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": id}})
    if found is None or found.checkpoint["v"] < _WHOLE_SINCE or found.metadata.get("counters_since_delta_snapshot"):
        return False
    return "messages" in found.checkpoint["channel_values"] or "messages" not in found.checkpoint["channel_versions"]


# -- PostgreSQL ------------------------------------------------------------------------------------------------------


@contextmanager
def _postgres(url: str, read_only: bool) -> Iterator[Foreign]:
    try:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row) as connection:
            if read_only:
                connection.execute("SET default_transaction_read_only = on")
            yield PostgresForeign(connection)
    except psycopg.Error as problem:
        raise StoreError(f"the database of the PostgresSaver cannot be read: {type(problem).__name__}") from problem


_POSTGRES_SIZES = """\
WITH newest AS (
    SELECT checkpoint_ns, max(checkpoint_id) AS id FROM checkpoints WHERE thread_id = %(thread)s GROUP BY 1
), used AS (
    SELECT c.checkpoint_ns, v.key AS channel, v.value AS version
    FROM checkpoints c JOIN newest n ON c.checkpoint_ns = n.checkpoint_ns AND c.checkpoint_id = n.id,
         jsonb_each_text(c.checkpoint -> 'channel_versions') v
    WHERE c.thread_id = %(thread)s
), parts AS (
    SELECT pg_column_size(checkpoint) + pg_column_size(metadata) AS size, checkpoint_id < n.id AS is_old
    FROM checkpoints c JOIN newest n USING (checkpoint_ns) WHERE thread_id = %(thread)s
    UNION ALL
    SELECT octet_length(blob), checkpoint_id < n.id
    FROM checkpoint_writes w JOIN newest n USING (checkpoint_ns) WHERE thread_id = %(thread)s
    UNION ALL
    SELECT octet_length(blob), u.channel IS NULL
    FROM checkpoint_blobs b LEFT JOIN used u USING (checkpoint_ns, channel, version) WHERE thread_id = %(thread)s
)
SELECT coalesce(sum(size), 0) AS total, coalesce(sum(size) FILTER (WHERE is_old), 0) AS old FROM parts"""


class PostgresForeign:
    """A PostgresSaver's tables."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection
        self.saver: BaseCheckpointSaver[Any] = PostgresSaver(connection, serde=InertSerializer())

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
        row = self._connection.execute(_POSTGRES_SIZES, {"thread": thread_id}).fetchone()
        assert row is not None
        return int(row["total"]), int(row["old"])

    def prune(self, thread_id: str) -> bool:
        try:
            self.saver.prune([thread_id])
        except NotImplementedError:  # a delta channel
            return False
        return True

    def shrink(self) -> None:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            self._connection.execute(f"VACUUM FULL {table}")
