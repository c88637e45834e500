"""LangGraph's checkpointer over the log: its methods, each async and with a blocking twin.

The work is in `put`, `get`, `deletion` and `copy_thread`; this module says where a config points to and in which loop
it runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Literal, Self, TypeVar

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

from everthread.adapters.checkpoints.bridge import Bridge, require_bridge, running_loop
from everthread.adapters.checkpoints.copy_thread import ThreadCopier
from everthread.adapters.checkpoints.deletion import CheckpointRemover
from everthread.adapters.checkpoints.get import ThreadReader
from everthread.adapters.checkpoints.in_flight import in_flight_puts
from everthread.adapters.checkpoints.put import CheckpointWriter, dump_writes
from everthread.adapters.checkpoints.serde import Allowed, PlainSerializer, StateSerializer
from everthread.adapters.checkpoints.threads import OWNER_KEY, CheckpointAddress, Threads, address_of, check_filter
from everthread.adapters.stores import blocking
from everthread.adapters.stores.blocking import RunLock
from everthread.core.checkpoints import CheckpointQuery
from everthread.core.errors import Conflict, Invalid
from everthread.core.ids import LOCAL, check_conversation_id, check_id
from everthread.instance import Everthread

R = TypeVar("R")
OnDelete = Literal["keep", "erase"]
STRATEGIES = ("keep_latest", "delete")


class LogSaver(BaseCheckpointSaver[Any]):
    """A checkpointer over an open database; `everthread.langgraph` has the one to use.

    Our own agent's is made with `keeps_turns=False`: of its turns only the newest checkpoint is ever read, so each
    takes the place of the one before.
    """

    def __init__(
        self,
        et: Everthread,
        *,
        owner: str = LOCAL,
        on_delete: OnDelete = "keep",
        allowed: Allowed = (),
        serde: SerializerProtocol | None = None,
        bridge: Bridge | None = None,
        keeps_turns: bool = True,
    ) -> None:
        super().__init__(serde=serde or StateSerializer(allowed))
        if on_delete not in ("keep", "erase"):
            raise Invalid(f'must be "keep" or "erase", not {on_delete!r}', field="on_delete")
        self._owner = check_id(owner, "owner")
        threads = Threads(et, on_delete)
        self._writer, self._reader = CheckpointWriter(threads, keeps_turns=keeps_turns), ThreadReader(threads)
        self._remover, self._copier = CheckpointRemover(threads), ThreadCopier(threads)
        self._in_flight = in_flight_puts(et)
        self._may_block = blocking.ENABLED and et.store.can_block
        self._run_lock = RunLock()
        self._bridge = bridge
        self._allowed = tuple(allowed)

    # -- the types of graphs -------------------------------------------------------------------------------

    def for_types(self, types: frozenset[type]) -> Self:
        """The same saver for a graph that has types of its own."""
        if not isinstance(self.serde, StateSerializer):
            return self
        saver = copy(self)
        saver.serde = self.serde.with_types(types)
        return saver

    def without_types(self) -> Self:
        """The same saver for readers that have no graph: they get types of a graph's own as plain data."""
        if not isinstance(self.serde, StateSerializer):
            return self
        saver = copy(self)
        saver.serde = PlainSerializer(self._allowed)
        return saver

    def _reading_serde(self) -> SerializerProtocol:
        """The serializer that decodes what is read."""
        return self.serde

    def _require_bridge(self, work: Coroutine[Any, Any, R]) -> Bridge:
        try:
            return require_bridge(self._bridge, "EverthreadSaver")
        except Conflict:
            work.close()
            raise

    async def _run(self, work: Coroutine[Any, Any, R]) -> R:
        return await self._require_bridge(work).run(self._run_lock.in_loop(work))

    def _call(self, work: Coroutine[Any, Any, R]) -> R:
        return self._require_bridge(work).call(work)

    def _call_store(self, work: Coroutine[Any, Any, R]) -> R:
        """The same for work that only needs the store: run in this thread, if the store can block and no loop runs
        here."""
        bridge = self._require_bridge(work)
        if self._may_block and running_loop() is None:
            return self._run_lock.run(work)
        return bridge.call(self._run_lock.in_loop(work))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Whole numbers; where another saver has begun with its kind of versions, these go on."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}.{'0' * 16}"
        return 1 if current is None else current + 1

    # -- writing -------------------------------------------------------------------------------------------

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; what is new in its messages enters the log in the same transaction."""
        address = address_of(config, self._owner)
        with self._in_flight.track(address.thread):
            await self._run(
                self._writer.put(address, checkpoint, _stored_metadata(config, metadata), new_versions, self.serde)
            )
        return address.config(checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote on top of a checkpoint."""
        taken = dump_writes(writes, task_id, task_path, self.serde)
        await self._run(self._writer.put_writes(self._written_to(config), taken))

    def _written_to(self, config: RunnableConfig) -> CheckpointAddress:
        address = address_of(config, self._owner)
        if address.id is None:
            raise Invalid("is missing: writes belong to a checkpoint", field="checkpoint_id")
        return address

    # -- reading -------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint, or the newest of its namespace."""
        return await self._run(self._reader.get(address_of(config, self._owner), self._reading_serde()))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, newest first within a namespace; without a config, of all threads of the owner."""
        for found in await self._run(self._listed(config, filter, before, limit, self._reading_serde())):
            yield found

    async def _listed(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
        serde: SerializerProtocol,
    ) -> list[CheckpointTuple]:
        query = self._query(config, before)
        found = self._reader.list(query, check_filter(filter), limit, serde)
        return [one async for one in found]

    def _query(self, config: RunnableConfig | None, before: RunnableConfig | None) -> CheckpointQuery:
        until = None if before is None else before["configurable"].get("checkpoint_id")
        if config is None:
            return CheckpointQuery(owner=self._owner, before=until)
        address = address_of(config, self._owner)
        return CheckpointQuery(
            owner=address.owner,
            conversation=address.thread_id,
            namespace=config["configurable"].get("checkpoint_ns"),
            id=address.id,
            before=until,
        )

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What delta channels are rebuilt from."""
        return await self._run(self._deltas(config, channels, self._reading_serde()))

    async def _deltas(
        self, config: RunnableConfig, channels: Sequence[str], serde: SerializerProtocol
    ) -> Mapping[str, DeltaChannelHistory]:
        if not channels:
            return {}
        return await self._reader.delta_history(address_of(config, self._owner), channels, serde)

    # -- removing and copying ------------------------------------------------------------------------------

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread's checkpoints. Its log is kept, or erased, as the saver was made."""
        await self._run(self._remover.delete(self._owner, check_conversation_id(thread_id, "thread_id"), self.serde))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that some runs made."""
        if run_ids:
            await self._run(self._remover.delete_runs(self._owner, list(run_ids), self.serde))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, with its log and its checkpoints."""
        source, target = (
            check_conversation_id(source_thread_id, "thread_id"),
            check_conversation_id(target_thread_id, "thread_id"),
        )
        await self._run(self._copier.copy(self._owner, source, target, self.serde))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep of each thread the newest checkpoint per namespace, or with `delete` none. The log is not touched."""
        if strategy not in STRATEGIES:
            raise Invalid(f"must be one of {', '.join(STRATEGIES)}, not {strategy!r}", field="strategy")
        for thread_id in thread_ids:
            await self._run(self._remover.prune(self._owner, thread_id, strategy, self.serde))

    # -- the twins -----------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        address = address_of(config, self._owner)
        with self._in_flight.track(address.thread):
            self._call_store(
                self._writer.put(address, checkpoint, _stored_metadata(config, metadata), new_versions, self.serde)
            )
        return address.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        taken = dump_writes(writes, task_id, task_path, self.serde)
        self._call_store(self._writer.put_writes(self._written_to(config), taken))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._call_store(self._reader.get(address_of(config, self._owner), self._reading_serde()))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        yield from self._call_store(self._listed(config, filter, before, limit, self._reading_serde()))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._call_store(self._deltas(config, channels, self._reading_serde()))

    def delete_thread(self, thread_id: str) -> None:
        self._call(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._call(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._call(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._call(self.aprune(thread_ids, strategy=strategy))


def _stored_metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> dict[str, Any]:
    """A checkpoint's metadata without the owner, which has a column of its own."""
    return {key: value for key, value in get_checkpoint_metadata(config, metadata).items() if key != OWNER_KEY}
