"""`ArchivingSaver`: any checkpointer, with everything that passes through it kept in the log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.in_flight import in_flight_puts
from everthread.adapters.checkpoints.saver import LogSaver
from everthread.adapters.checkpoints.serde import Allowed
from everthread.adapters.checkpoints.threads import CheckpointAddress, address_of
from everthread.core.errors import Invalid, StoreError
from everthread.core.ids import LOCAL, check_conversation_id, check_id, new_id
from everthread.instance import Everthread
from everthread.langgraph.archive import Archive, PutRecord, Record, WritesRecord, put_record, writes_record
from everthread.langgraph.lifecycle import bridge_of

_SUFFIX = ".record"


class Spool:
    """A folder of records that wait to be archived."""

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
        """Read the record of a file."""
        kind, _, body = file.read_bytes().partition(b"\n")
        name, address, *fields = self._serde.loads_typed((kind.decode(), body))
        if name == PutRecord.__name__:
            return PutRecord(CheckpointAddress(*address), *fields)
        writes, *task = fields
        return WritesRecord(CheckpointAddress(*address), [(channel, value) for channel, value in writes], *task)


def _plain(record: Record) -> list[Any]:
    """The record as lists, since stored data may not become our own types."""
    if isinstance(record, PutRecord):
        return [PutRecord.__name__, [*record.address], *record[1:]]
    return [WritesRecord.__name__, [*record.address], [[*write] for write in record.writes], *record[2:]]


OnFailure = Literal["raise", "spool"]
SPOOL = Path("everthread-spool")


class ArchivingSaver(BaseCheckpointSaver[Any]):
    """Wraps any checkpointer: what passes through it is in the log before it is in the checkpoint.

        async with everthread.open("sqlite:///et.db") as et:
            graph = builder.compile(checkpointer=ArchivingSaver(PostgresSaver(…), et))

    - `put` and `put_writes` are read, sync and async, in all namespaces. The messages of a write are held under its
      checkpoint, task and index until the next `put` names them, so the log has the list's order.
    - A fork is a branch, an edit a revision, a removal a mark. A summary (LangChain's message, deepagents' event) is
      kept as a summary, and is no history.
    - What a subgraph says first goes to a child conversation of the thread's.
    - When the archive fails, the write fails, and nothing is forwarded. With `on_failure="spool"` the record waits in
      the folder `spool` instead, and is archived, in its order, before the next one.
    - `delete_thread`, `prune`, `delete_for_runs` and `copy_thread` are forwarded; they never remove a message.
    - With `durability="exit"` LangGraph calls a saver at the end of a run only: add `EverthreadMiddleware`.

    Custom message classes are to be named in `allowed`, as for `EverthreadSaver`.
    """

    def __init__(
        self,
        inner: BaseCheckpointSaver[Any],
        et: Everthread,
        *,
        owner: str = LOCAL,
        on_failure: OnFailure = "raise",
        spool: str | Path = SPOOL,
        allowed: Allowed = (),
    ) -> None:
        if not isinstance(inner, BaseCheckpointSaver):
            raise Invalid(
                f"must be the checkpointer to wrap, not {type(inner).__name__}; the database comes after it: "
                "ArchivingSaver(saver, et)",
                field="inner",
            )
        super().__init__(serde=inner.serde)
        if isinstance(inner, LogSaver | ArchivingSaver):
            raise Invalid(f"{type(inner).__name__} keeps everything in the log already; use it as it is", field="inner")
        if on_failure not in ("raise", "spool"):
            raise Invalid(f'must be "raise" or "spool", not {on_failure!r}', field="on_failure")
        self._inner = inner
        self._owner = check_id(owner, "owner")
        self._bridge = bridge_of(et)
        self._archive = Archive(et, allowed)
        self._in_flight = in_flight_puts(et)
        self._spool = Spool(Path(spool), self._archive.serde) if on_failure == "spool" else None
        self._turn = asyncio.Lock()
        """Keeps records in order while some wait on the disk."""

    @property
    def inner(self) -> BaseCheckpointSaver[Any]:
        """The checkpointer that is wrapped."""
        return self._inner

    @property
    def config_specs(self) -> list[Any]:
        return self._inner.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._inner.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """A saver that also revives these types, over a wrapped one that does; both share their archive."""
        other = copy(self)
        other._inner = self._inner.with_allowlist(extra_allowlist)
        other.serde = other._inner.serde
        other._archive = self._archive.with_allowlist(extra_allowlist)
        return other

    # -- archiving -----------------------------------------------------------------------------------------

    async def _keep(self, record: Record) -> None:
        """Archive a record after those in the spool, or add it to the spool."""
        if self._spool is None:
            await self._archive.take(record)
            return
        async with self._turn:
            try:
                await self._catch_up(self._spool)
                await self._archive.take(record)
            except StoreError:
                self._spool.add(record)

    async def _catch_up(self, spool: Spool) -> None:
        for file in spool:
            await self._archive.take(spool.read(file))
            file.unlink()

    async def catch_up(self) -> None:
        """Archive what waits in the spool now; StoreError when that cannot be done yet."""
        if self._spool is not None:
            await self._bridge.run(self._caught_up(self._spool))

    async def _caught_up(self, spool: Spool) -> None:
        async with self._turn:
            await self._catch_up(spool)

    async def _is_unheard_of(self, record: PutRecord) -> bool:
        """Whether the archive does not know the thread of a checkpoint that has a parent."""
        if record.address.namespace or record.address.id is None:
            return False
        try:
            return not await self._archive.has_begun(record.address)
        except StoreError:
            if self._spool is None:
                raise
            return False

    # -- writing -------------------------------------------------------------------------------------------

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Archive a checkpoint's messages, then forward it."""
        record = self._record(config, checkpoint, metadata, new_versions)
        with self._in_flight.track(record.address.thread):
            if await self._bridge.run(self._is_unheard_of(record)):
                record = record._replace(began_late=await self._inner.aget_tuple(_parent(record)) is not None)
            await self._bridge.run(self._keep(record))
        return await self._inner.aput(config, checkpoint, metadata, new_versions)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        record = self._record(config, checkpoint, metadata, new_versions)
        with self._in_flight.track(record.address.thread):
            if self._bridge.call(self._is_unheard_of(record)):
                record = record._replace(began_late=self._inner.get_tuple(_parent(record)) is not None)
            self._bridge.call(self._keep(record))
        return self._inner.put(config, checkpoint, metadata, new_versions)

    def _record(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> PutRecord:
        stored_metadata = get_checkpoint_metadata(config, metadata)
        return put_record(address_of(config, self._owner), checkpoint, stored_metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Hold the messages that a task wrote, then forward the writes."""
        record = writes_record(address_of(config, self._owner), writes, task_id, task_path)
        if record is not None:
            await self._bridge.run(self._keep(record))
        await self._inner.aput_writes(config, writes, task_id, task_path)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        record = writes_record(address_of(config, self._owner), writes, task_id, task_path)
        if record is not None:
            self._bridge.call(self._keep(record))
        self._inner.put_writes(config, writes, task_id, task_path)

    # -- reading: as the wrapped one does ------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await self._inner.aget_tuple(config)
        if found is not None:
            await self._bridge.run(self._archive.recognise(address_of(config, self._owner), found))
        return found

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As the wrapped one does. A run that blocks begins here, and its first write from a worker thread would wait
        for ever for a loop that the run itself blocks, so it is refused here.
        """
        found = self._inner.get_tuple(config)
        self._bridge.call(
            _nothing() if found is None else self._archive.recognise(address_of(config, self._owner), found)
        )
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in self._inner.alist(config, filter=filter, before=before, limit=limit):
            yield found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        yield from self._inner.list(config, filter=filter, before=before, limit=limit)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._inner.aget_delta_channel_history(config=config, channels=channels)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._inner.get_delta_channel_history(config=config, channels=channels)

    # -- removing and copying: what waits in writes is logged first ----------------------------------------

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove the thread's checkpoints; its log is kept, and a later put begins anew."""
        await self._bridge.run(self._archive.delete(self._owner, check_conversation_id(thread_id, "thread_id")))
        await self._inner.adelete_thread(thread_id)

    def delete_thread(self, thread_id: str) -> None:
        self._bridge.call(self._archive.delete(self._owner, check_conversation_id(thread_id, "thread_id")))
        self._inner.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._bridge.run(self._archive.delete_runs(self._owner, run_ids))
        await self._inner.adelete_for_runs(run_ids)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._bridge.call(self._archive.delete_runs(self._owner, run_ids))
        self._inner.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """A thread with a log of its own, then the wrapped saver's copy."""
        await self._bridge.run(self._archive.copy(self._owner, source_thread_id, target_thread_id))
        await self._inner.acopy_thread(source_thread_id, target_thread_id)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._bridge.call(self._archive.copy(self._owner, source_thread_id, target_thread_id))
        self._inner.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove older checkpoints; the log is not touched."""
        await self._bridge.run(self._prune(thread_ids, strategy))
        await self._inner.aprune(thread_ids, strategy=strategy)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._bridge.call(self._prune(thread_ids, strategy))
        self._inner.prune(thread_ids, strategy=strategy)

    async def _prune(self, thread_ids: Sequence[str], strategy: str) -> None:
        for thread_id in thread_ids:
            await self._archive.prune(self._owner, thread_id, strategy)

    def __getattr__(self, name: str) -> Any:
        """What only the wrapped saver has: `setup`, `conn` and the like."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)


async def _nothing() -> None:
    """A call that only asks whether the loop can answer."""


def _parent(record: PutRecord) -> RunnableConfig:
    return record.address.config(record.address.id)
