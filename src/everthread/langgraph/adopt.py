"""Take over what one of LangGraph's savers has kept so far: all messages of all its threads, from all checkpoints.

A summary removes messages from the newest state, but the checkpoints before it still have them, until they are pruned.
Each thread is replayed from its oldest checkpoint on, the way `ArchivingSaver` would have seen it. What the archive has
already is skipped, so adopting again changes nothing, and an interrupted adoption goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from langgraph.checkpoint.base import CheckpointTuple

from everthread.adapters.checkpoints.held_writes import HISTORY
from everthread.adapters.checkpoints.threads import CheckpointAddress
from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.checkpoints import CheckpointState
from everthread.core.nouns import Ref
from everthread.history.full_history import BEGAN_LATE, Payload, replayed
from everthread.instance import Everthread
from everthread.langgraph.archive import Archive, WritesRecord, put_record, writes_record
from everthread.langgraph.foreign_savers import CheckpointName, SaverDatabase

Step = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadReport:
    """What a saver has of one thread."""

    thread_id: str
    checkpoints: int
    messages: int
    """How many messages its checkpoints have; summaries are not counted."""
    lost: int
    """How many of them the newest state no longer has."""
    size_bytes: int
    prunable_bytes: int
    """How much the newest checkpoints do not need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadAdoption:
    """The result for one thread."""

    thread_id: str
    messages: int
    """How many messages its history has now."""
    entries: int
    """How many entries were added to the log: messages, revisions, summaries and marks."""


def report_thread(found: SaverDatabase, thread_id: str, step: Step = lambda _: None) -> ThreadReport:
    """Look at a thread; nothing is written anywhere."""
    names = found.checkpoints(thread_id)
    ever: dict[str, set[str]] = {}
    for name in names:
        ever.setdefault(name.namespace, set()).update(_ids(_messages_of(_get_tuple(found, thread_id, name))))
        step(1)
    newest = {name.namespace: name for name in names}
    now = {namespace: set(_ids(_newest_messages(found, thread_id, name))) for namespace, name in newest.items()}
    size, prunable = found.size_bytes(thread_id)
    return ThreadReport(
        thread_id=thread_id,
        checkpoints=len(names),
        messages=len(set().union(*ever.values())),
        lost=sum(len(ids - now[namespace]) for namespace, ids in ever.items()),
        size_bytes=size,
        prunable_bytes=prunable,
    )


def _get_tuple(found: SaverDatabase, thread_id: str, name: CheckpointName) -> CheckpointTuple | None:
    return found.saver.get_tuple(
        {"configurable": {"thread_id": thread_id, "checkpoint_ns": name.namespace, "checkpoint_id": name.id}}
    )


def _messages_of(found: CheckpointTuple | None) -> Sequence[Payload]:
    """The messages in a checkpoint and in the writes on it."""
    if found is None:
        return ()
    written = [value for _, channel, value in found.pending_writes or () if channel == HISTORY]
    beside = [message for write in written for message in replayed([], [write])]
    return [*replayed(found.checkpoint["channel_values"].get(HISTORY) or [], []), *beside]


def _newest_messages(found: SaverDatabase, thread_id: str, name: CheckpointName) -> Sequence[Payload]:
    """The messages that the newest state has, also where it is rebuilt from older checkpoints."""
    newest = _get_tuple(found, thread_id, name)
    if newest is None or HISTORY in newest.checkpoint["channel_values"]:
        return _messages_of(newest)
    history = found.saver.get_delta_channel_history(config=newest.config, channels=[HISTORY])[HISTORY]
    written = [value for _, channel, value in newest.pending_writes or () if channel == HISTORY]
    return replayed(history.get("seed") or [], [*(value for _, _, value in history["writes"]), *written])


def _ids(messages: Sequence[Payload]) -> Iterator[str]:
    for message in messages:
        if not payloads.is_summary(message) and (id := payloads.message_id(message)):
            yield str(id)


class Adopter:
    """Adopts the threads of one saver for one owner."""

    def __init__(self, et: Everthread, found: SaverDatabase, owner: str) -> None:
        self._et = et
        self._found = found
        self._owner = owner
        self._archive = Archive(et)

    async def adopt(self, thread_id: str, step: Step = lambda _: None) -> ThreadAdoption:
        """Archive a thread from all of its checkpoints, oldest first."""
        ref = Ref(self._owner, thread_id)
        conversation = await self._et.conversations.ensure(ref.id, ref.owner)
        before = conversation.info.entry_count
        names = await asyncio.to_thread(self._found.checkpoints, thread_id)
        known = await self._known(ref, names)
        if _began_late(names, known):
            await self._begin_anew(conversation)
            known = set()
        last = max((name.id for name in known), default="")
        for name in names:
            if name not in known or name.id == last:
                await self._take(thread_id, name, names, is_put=name in known)
            step(1)
        await self._archive.settle(ref)
        rows, active = await self._et.store.log.branches(ref)
        (shown,) = [row.leaf_depth for row in rows if row.number == active]
        after = (await conversation.refresh()).info.entry_count
        if conversation.title is None:
            await conversation.request_title()
        return ThreadAdoption(thread_id=thread_id, messages=shown, entries=after - before)

    async def _begin_anew(self, conversation: Conversation) -> None:
        """Begin a new branch with the whole thread, because an archive that began late cannot add earlier messages
        before those it has."""
        rest = {name: value for name, value in conversation.metadata.items() if name != BEGAN_LATE}
        await self._archive.delete(conversation.owner, conversation.id)
        await conversation.update(metadata=rest)

    async def _known(self, ref: Ref, names: Sequence[CheckpointName]) -> set[CheckpointName]:
        """The checkpoints that the archive has."""
        found = set()
        for name in names:
            saved = await self._et.store.checkpoints.get(ref, name.namespace, name.id)
            if saved is not None and saved.row.state != CheckpointState.AWAITED:
                found.add(name)
        return found

    async def _take(
        self, thread_id: str, name: CheckpointName, names: Sequence[CheckpointName], *, is_put: bool
    ) -> None:
        """One checkpoint and the writes on it."""
        found = await asyncio.to_thread(_get_tuple, self._found, thread_id, name)
        if found is None:
            return
        if not is_put:
            address = CheckpointAddress(self._owner, thread_id, name.namespace, name.parent_id)
            record = put_record(address, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
            roots = {one.id for one in names if not one.namespace}
            is_cut = not name.namespace and name.parent_id is not None and name.parent_id not in roots
            await self._archive.take(record._replace(began_late=is_cut))
        for record_of_writes in _writes(CheckpointAddress(self._owner, thread_id, name.namespace, name.id), found):
            await self._archive.take(record_of_writes)


def _began_late(names: Sequence[CheckpointName], known: set[CheckpointName]) -> bool:
    """Whether there are checkpoints from before the first one that the archive has."""
    first = min((name.id for name in known if not name.namespace), default="")
    return any(name.id < first for name in names if not name.namespace)


def _writes(address: CheckpointAddress, found: CheckpointTuple) -> Iterator[WritesRecord]:
    """What each task wrote, in the order in which a saver gives it."""
    for task_id, group in groupby(found.pending_writes or (), key=lambda write: write[0]):
        record = writes_record(address, [(channel, value) for _, channel, value in group], task_id, "")
        if record is not None:
            yield record
