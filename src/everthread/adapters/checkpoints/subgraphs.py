"""A subgraph's messages. What it was given by the thread refers to the thread's log; what is first seen there goes to a
child conversation, before the checkpoint that refers to it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from everthread.adapters.checkpoints.checkpoint_intents import MatchedMessage, MatchedWrite
from everthread.adapters.checkpoints.draft import CheckpointDraft
from everthread.adapters.checkpoints.held_writes import HISTORY, HeldMessages, WriteKey, with_references
from everthread.adapters.checkpoints.langchain_json import subgraph_conversation_id
from everthread.adapters.checkpoints.row_format import Blobs, LogRef, MessageRef, pack_blob
from everthread.adapters.checkpoints.stored_message import SerdeBytes, StoredMessage
from everthread.core import nouns
from everthread.core.checkpoints import StoredWrite
from everthread.core.entries import Entry, Revision
from everthread.core.errors import NotFound
from everthread.history.branch_writer import FollowList
from everthread.history.ingest import Prepared
from everthread.instance import Everthread


class _New(NamedTuple):
    prepared: Prepared
    stored: StoredMessage


class SubgraphLog:
    """Logs the messages of one subgraph."""

    def __init__(self, et: Everthread, thread: nouns.Ref, draft: CheckpointDraft) -> None:
        self._et = et
        self._thread = thread
        self._draft = draft

    async def log_new(
        self, writes: Sequence[StoredWrite], held: Mapping[WriteKey, HeldMessages]
    ) -> dict[WriteKey, StoredWrite]:
        """Log what is new in the list, and what the parent's writes hold beside it; those writes, with references."""
        draft = self._draft
        known, items = draft.listed_messages(may_refer_to_thread=True)
        matched = draft.match_writes(held, known, items)
        unlisted = [one for wait in matched.values() for one in wait.messages if one.prepared is not None]
        new = [_New(one.prepared, one.part.stored) for one in unlisted if one.prepared is not None]
        fresh = [item for item in items if item.ref is None]
        new += [
            _New(item.prepared, item.stored) for item in fresh if item.prepared is not None and item.stored is not None
        ]
        refs = await self._log(new)
        by_part = dict(zip((id(one.part) for one in unlisted), refs, strict=False))
        rest = iter(refs[len(unlisted) :])
        known_refs = [*known, *(next(rest) if item.ref is None else item.ref for item in items)]
        if HISTORY in draft.lists:
            draft.lists[HISTORY].refs[:] = known_refs
        return {
            (write.task_id, write.idx): self._with_references(write, matched, known_refs, by_part) for write in writes
        }

    def _with_references(
        self,
        write: StoredWrite,
        matched: Mapping[WriteKey, MatchedWrite],
        known_refs: Sequence[MessageRef],
        by_part: Mapping[int, MessageRef],
    ) -> StoredWrite:
        wait = matched[write.task_id, write.idx]

        def reference(one: MatchedMessage) -> MessageRef | None:
            if one.list_index is None:
                return by_part.get(id(one.part))
            return known_refs[one.list_index] if one.listed == one.part.stored else None

        return with_references(write, wait.held, [reference(one) for one in wait.messages], self._draft.blobs)

    async def _log(self, new: Sequence[_New]) -> list[MessageRef]:
        """Where messages stand: in the thread's log where that has just them, else in the child's."""
        if not new:
            return []
        in_thread = await self._refs_in_thread(new)
        own = [one for one, ref in zip(new, in_thread, strict=True) if ref is None]
        seqs = iter(await self._append(own) if own else [])
        refs = [next(seqs) if ref is None else ref for ref in in_thread]
        self._draft.cache.stored.update(zip(refs, (one.stored for one in new), strict=True))
        return refs

    async def _refs_in_thread(self, new: Sequence[_New]) -> list[MessageRef | None]:
        try:
            found = await self._et.store.log.find(self._thread, ids=[one.prepared.id for one in new])
        except NotFound:
            return [None] * len(new)
        newest = {entry.id: entry for entry in found if entry.change_kind != Revision.STUB}
        return [self._ref_if_same(one, newest.get(one.prepared.id)) for one in new]

    def _ref_if_same(self, one: _New, entry: Entry | None) -> MessageRef | None:
        if entry is None or entry.raw != one.prepared.raw:
            return None
        return self._reference(entry.seq, None, one.stored, self._draft.blobs)

    async def _append(self, own: Sequence[_New]) -> list[MessageRef]:
        namespace = self._draft.address.namespace.split("|")
        home = self._child_id(namespace, own)
        await self._et.conversations.ensure(self._thread.id, self._thread.owner)
        await self._et.conversations.ensure(
            home, self._thread.owner, parent_id=self._thread.id, metadata={"namespace": namespace}
        )
        intent = FollowList(messages=[one.prepared for one in own])
        receipts = await self._et.store.log.write(nouns.Ref(self._thread.owner, home), intent)
        return [
            self._reference(receipt.seq, home, one.stored, self._draft.blobs)
            for one, receipt in zip(own, receipts, strict=True)
        ]

    def _child_id(self, namespace: Sequence[str], own: Sequence[_New]) -> str:
        """The child that the list before refers to, or one named after the first message."""
        for ref in self._draft.parent_refs():
            if isinstance(ref, LogRef) and ref.home is not None:
                return ref.home
        first = self._draft.lists[HISTORY].messages[0].id if HISTORY in self._draft.lists else None
        return subgraph_conversation_id(self._thread.id, namespace, first or own[0].prepared.id)

    @staticmethod
    def _reference(seq: int, home: str | None, stored: StoredMessage, blobs: Blobs) -> MessageRef:
        if isinstance(stored, SerdeBytes):
            return LogRef(seq, home, pack_blob(*stored, blobs))
        return seq if home is None else LogRef(seq, home, None)
