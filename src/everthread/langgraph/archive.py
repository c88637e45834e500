"""What is logged of another saver's checkpoints: the messages in them and their order, nothing else.

It is `EverthreadSaver`'s own way into the log (adapters/checkpoints), given checkpoints that hold their messages only.
So whatever that one knows about writes that wait, forks, edits, removals and subgraphs holds here too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple

from everthread.adapters.checkpoints.copy_thread import ThreadCopier
from everthread.adapters.checkpoints.deletion import CheckpointRemover
from everthread.adapters.checkpoints.draft import warn_of_unlogged
from everthread.adapters.checkpoints.held_writes import HISTORY, as_messages
from everthread.adapters.checkpoints.langchain_json import from_langchain, made_id
from everthread.adapters.checkpoints.message_lists import is_message_list
from everthread.adapters.checkpoints.put import CheckpointWriter, dump_writes
from everthread.adapters.checkpoints.row_format import messages_of
from everthread.adapters.checkpoints.serde import Allowed, StrictSerializer
from everthread.adapters.checkpoints.threads import CheckpointAddress, Threads
from everthread.core.checkpoints import SavedCheckpoint
from everthread.core.errors import StoreError
from everthread.core.nouns import Ref
from everthread.history.full_history import BEGAN_LATE
from everthread.instance import Everthread
from everthread.langgraph.capture import LazyConversation, with_id

SUMMARY_CHANNEL = "_summarization_event"
"""The channel in which deepagents keeps its newest summary."""
_METADATA = ("source", "step", "run_id")

Write = tuple[str, Any]


class PutRecord(NamedTuple):
    """One `put`, with all that the archive takes of it."""

    address: CheckpointAddress
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    new_versions: Mapping[str, Any]
    began_late: bool = False
    """Whether the saver has checkpoints of this thread that the archive never saw."""


class WritesRecord(NamedTuple):
    """One `put_writes`, with all that the archive takes of it."""

    address: CheckpointAddress
    writes: Sequence[Write]
    task_id: str
    task_path: str


Record = PutRecord | WritesRecord


def put_record(
    address: CheckpointAddress, checkpoint: Checkpoint, metadata: Mapping[str, Any], new_versions: Mapping[str, Any]
) -> PutRecord:
    """The part of a checkpoint that is archived."""
    if not address.namespace:
        found = checkpoint["channel_values"].items()
        warn_of_unlogged(checkpoint, (name for name, value in found if is_message_list(messages_of(value)[0])))
    values = {name: checkpoint["channel_values"].get(name) for name in (HISTORY, SUMMARY_CHANNEL)}
    values[HISTORY] = _as_messages(values[HISTORY])
    versions = {name: v for name, v in checkpoint["channel_versions"].items() if name == HISTORY}
    kept = {
        "v": checkpoint["v"],
        "id": checkpoint["id"],
        "ts": checkpoint["ts"],
        "channel_values": {name: value for name, value in values.items() if value is not None},
        "channel_versions": versions,
        "versions_seen": {},
        "updated_channels": None,
    }
    archived_metadata = {name: metadata[name] for name in _METADATA if name in metadata}
    if metadata.get("parents"):  # a subgraph's: where it was started from
        archived_metadata["parents"] = metadata["parents"]
    return PutRecord(
        address, kept, archived_metadata, {name: v for name, v in new_versions.items() if name in versions}
    )


def _as_messages(value: Any) -> Any:
    """A plain list may hold dicts and other shorthands; the log has the messages that they mean."""
    if value.__class__ is not list or all(isinstance(item, BaseMessage) for item in value):
        return value
    return as_messages(value) or value  # or no list of messages, whatever the channel is called


def writes_record(
    address: CheckpointAddress, writes: Sequence[Write], task_id: str, task_path: str
) -> WritesRecord | None:
    """The part of a task's writes that is archived; None when it wrote no message and no summary."""
    kept = [(channel, value) for channel, value in writes if channel in (HISTORY, SUMMARY_CHANNEL)]
    return WritesRecord(address, kept, task_id, task_path) if kept else None


class Archive:
    """Logs the threads of another saver."""

    def __init__(self, et: Everthread, allowed: Allowed = ()) -> None:
        self._et = et
        threads = Threads(et, "keep")
        self._writer, self._remover, self._copier = (
            CheckpointWriter(threads),
            CheckpointRemover(threads),
            ThreadCopier(threads),
        )
        self._begun: set[Ref] = set()
        self._met: set[Ref] = set()
        """Threads that this process has seen."""
        self._early: dict[Ref, set[str | None]] = {}
        """Checkpoints of unseen threads to which this process has already written."""
        self._meeting = asyncio.Lock()
        self.serde = StrictSerializer(allowed)

    def with_allowlist(self, extra: Allowed) -> Archive:
        """The same archive, which also revives these types."""
        other = copy(self)
        other.serde = self.serde.with_msgpack_allowlist(extra)
        return other

    async def take(self, record: Record) -> None:
        """Log a record; durable when this returns. Taking the same record again changes nothing."""
        if Ref(record.address.owner, record.address.thread_id) not in self._met:
            await self._meet(record)
        if isinstance(record, PutRecord):
            await self._take_put(record)
        else:
            await self._take_writes(record)

    async def has_begun(self, address: CheckpointAddress) -> bool:
        """Whether the archive has a checkpoint of this thread."""
        ref = Ref(address.owner, address.thread_id)
        if ref not in self._begun and await self._et.store.checkpoints.get(ref, "", None) is not None:
            self._begun.add(ref)
        return ref in self._begun

    async def _take_put(self, record: PutRecord) -> None:
        values = dict(record.checkpoint["channel_values"])
        event = values.pop(SUMMARY_CHANNEL, None)
        checkpoint = cast(Checkpoint, {**record.checkpoint, "channel_values": values})
        if record.began_late:
            await self._note_beginning(record.address)
        await self._writer.put(record.address, checkpoint, record.metadata, record.new_versions, self.serde)
        await self._take_event(record.address, event)

    async def _meet(self, record: Record) -> None:
        """Called before the first record of a thread: log the messages that a dead process left held on checkpoints
        that are not continued. Those held on the continued one will be named by the next put."""
        address = record.address
        ref = Ref(address.owner, address.thread_id)
        async with self._meeting:
            if ref in self._met:
                return
            continued = (
                None if address.id is None else await self._et.store.checkpoints.get(ref, address.namespace, address.id)
            )
            if continued is None and isinstance(record, WritesRecord):
                # It overtook the put of its checkpoint, and only that one tells where the thread goes on.
                self._early.setdefault(ref, set()).add(address.id)
                return
            early = self._early.pop(ref, set())
            if not address.namespace and await self._is_abandoned(ref, continued):
                await self._remover.log_held(self.serde, ref, besides=early)
            self._met.add(ref)

    async def _is_abandoned(self, ref: Ref, continued: SavedCheckpoint | None) -> bool:
        if ref not in await self._et.store.checkpoints.conversations(ref.owner, run_ids=None):
            return False
        return continued is None or not any(write.is_held for write in continued.writes)

    async def _take_writes(self, record: WritesRecord) -> None:
        messages = [write for write in record.writes if write[0] == HISTORY]
        if messages:
            taken = dump_writes(messages, record.task_id, record.task_path, self.serde)
            await self._writer.put_writes(record.address, taken)
        for channel, value in record.writes:
            if channel == SUMMARY_CHANNEL:
                await self._take_event(record.address, value)

    async def _note_beginning(self, address: CheckpointAddress) -> None:
        conversation = await self._et.conversations.ensure(address.thread_id, address.owner)
        if BEGAN_LATE not in conversation.metadata:
            await conversation.update(metadata={**conversation.metadata, BEGAN_LATE: address.id})

    async def _take_event(self, address: CheckpointAddress, event: object) -> None:
        """Keep deepagents' summary as a summary entry: what it says, and up to where in the list it stands for."""
        message = event.get("summary_message") if isinstance(event, Mapping) else None
        if not isinstance(event, Mapping) or not isinstance(message, BaseMessage):
            return
        payload = from_langchain(message)
        facts = {name: event[name] for name in ("cutoff_index", "file_path") if event.get(name) is not None}
        extra = {**(payload.get("additional_kwargs") or {}), "lc_source": "summarization", **facts}
        payload = {**payload, "additional_kwargs": extra}
        namespace = address.namespace.split("|") if address.namespace else []
        id = message.id or made_id(
            [address.thread_id, *namespace, SUMMARY_CHANNEL], event.get("cutoff_index") or 0, payload
        )
        ledger = await self._home(address, namespace)
        if id not in await ledger.read([id]):
            await ledger.write([with_id(payload, id)])

    async def _home(self, address: CheckpointAddress, namespace: list[str]) -> LazyConversation:
        thread = LazyConversation(self._et, address.thread_id, address.owner)
        child = await thread.child_of(namespace) if namespace else None
        return thread if child is None else LazyConversation(self._et, child, address.owner)

    async def recognise(self, address: CheckpointAddress, found: CheckpointTuple) -> None:
        """Remember the messages that the saver has just handed out. It only saves work, so it may fail."""
        listed = found.checkpoint["channel_values"].get(HISTORY)
        if listed.__class__ is not list or not all(isinstance(item, BaseMessage) for item in listed):
            return
        with suppress(StoreError):
            await self._writer.recognise(address._replace(id=found.checkpoint["id"]), listed, self.serde)

    # -- the rest of a saver's verbs -----------------------------------------------------------------------

    async def delete(self, owner: str, thread_id: str) -> None:
        """The saver's thread was deleted: the log is kept, and later records under the same id start a new branch."""
        self._begun.discard(Ref(owner, thread_id))
        await self._remover.delete(owner, thread_id, self.serde)

    async def delete_runs(self, owner: str, run_ids: Sequence[str]) -> None:
        """The saver's checkpoints of these runs were deleted."""
        await self._remover.delete_runs(owner, run_ids, self.serde)

    async def copy(self, owner: str, source: str, target: str) -> None:
        """The saver's thread is copied: copy its log too."""
        await self._copier.copy(owner, source, target, self.serde)

    async def prune(self, owner: str, thread_id: str, strategy: str) -> None:
        """The saver's older checkpoints were deleted; the log is not touched."""
        await self._remover.prune(owner, thread_id, strategy, self.serde)

    async def settle(self, thread: Ref) -> None:
        """Log the messages that are still held in a thread's writes."""
        await self._remover.log_held(self.serde, thread)
