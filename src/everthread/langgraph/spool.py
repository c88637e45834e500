"""Where records wait on the disk while the archive cannot be written: one file each, in the order they came."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.spots import Spot
from everthread.core.errors import StoreError
from everthread.core.ids import new_id
from everthread.langgraph.archive import PutRecord, Record, WritesRecord

_SUFFIX = ".record"


class Spool:
    """A folder of records that are yet to be archived."""

    def __init__(self, folder: Path, serde: SerializerProtocol) -> None:
        self._folder = folder
        self._serde = serde

    def add(self, record: Record) -> None:
        """Keep a record; on the disk when this returns."""
        kind, body = self._serde.dumps_typed(_plain(record))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            waiting = self._folder / f"{new_id()}.part"
            with waiting.open("xb") as file:
                file.write(kind.encode() + b"\n" + body)
                file.flush()
                os.fsync(file.fileno())
            waiting.rename(waiting.with_suffix(_SUFFIX))
        except OSError as problem:
            raise StoreError(f"neither the archive nor {self._folder} can be written: {problem}") from problem

    def __iter__(self) -> Iterator[Path]:
        """The files that wait, oldest first: their names are ids that rise with time."""
        return iter(sorted(self._folder.glob(f"*{_SUFFIX}")) if self._folder.is_dir() else [])

    def read(self, file: Path) -> Record:
        """One of them."""
        kind, _, body = file.read_bytes().partition(b"\n")
        name, spot, *fields = self._serde.loads_typed((kind.decode(), body))
        if name == PutRecord.__name__:
            return PutRecord(Spot(*spot), *fields)
        writes, *task = fields
        return WritesRecord(Spot(*spot), [(channel, value) for channel, value in writes], *task)


def _plain(record: Record) -> list[Any]:
    """As lists: our own types are not among those that stored data may become."""
    if isinstance(record, PutRecord):
        return [PutRecord.__name__, [*record.spot], *record[1:]]
    return [WritesRecord.__name__, [*record.spot], [[*write] for write in record.writes], *record[2:]]
