"""From a checkpoint, as LangGraph puts it, to the intent that stores it: which values are new, which messages are
known by their objects, which message of the list is the one that a write held, and what of the rest is to be logged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.cache import CachedCheckpoint, ThreadCache
from everthread.adapters.checkpoints.checkpoint_intents import (
    ListedMessage,
    MatchedMessage,
    MatchedWrite,
    PutCheckpoint,
    PutResult,
    PutWrites,
)
from everthread.adapters.checkpoints.held_writes import HISTORY, HeldMessage, HeldMessages, WriteKey
from everthread.adapters.checkpoints.langchain_json import from_langchain, made_id
from everthread.adapters.checkpoints.message_lists import ListSnapshot, is_message_list
from everthread.adapters.checkpoints.row_format import (
    DELTA_COUNTERS,
    Blobs,
    LogRef,
    MessageRef,
    PackedValue,
    RowBody,
    UnloggedRef,
    messages_of,
    pack_blob,
    pack_body,
    pack_list,
    pack_value,
)
from everthread.adapters.checkpoints.serde import dump_channel
from everthread.adapters.checkpoints.stored_message import (
    JsonTemplate,
    SerdeBytes,
    StoredMessage,
    is_loggable,
    stored_message,
)
from everthread.adapters.checkpoints.threads import CheckpointAddress
from everthread.core.checkpoints import StoredWrite
from everthread.history import ingest
from everthread.history.ingest import Prepared


def warn_of_unlogged(checkpoint: Checkpoint, lists: Iterable[str]) -> None:
    """Say it when a thread's checkpoint has messages, and none in the channel that is logged."""
    if HISTORY not in checkpoint["channel_versions"] and (named := tuple(sorted(lists))):
        _warn_once(named)


@cache
def _warn_once(channels: tuple[str, ...]) -> None:
    """Once per process, since a graph has the same lists in every run. As a warning, because nobody sees log lines
    who has not asked for them."""
    named = ", ".join(map(repr, channels))
    warnings.warn(
        f"a graph has messages in {named} and none in {HISTORY!r}, the only channel that is logged: call the channel "
        f"{HISTORY!r} to find them in the conversation and in searches",
        stacklevel=2,
    )


class ListMatcher:
    """One list, as writes are matched with it: where its first messages stand, and the rest as items."""

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        known_refs: Sequence[MessageRef],
        items: Sequence[ListedMessage],
        stored: Mapping[MessageRef, StoredMessage],
    ) -> None:
        self._messages = messages
        self._known_refs = known_refs
        self._items = items
        self._stored = stored
        self._taken: set[int] = set()

    def match(self, part: HeldMessage) -> MatchedMessage | None:
        """The message with its index in the list; None when the list does not name it."""
        index = self._index_of(part)
        if index is None:
            return None
        self._taken.add(index)
        known = len(self._known_refs)
        is_known = index < known
        stored = self._stored.get(self._known_refs[index]) if is_known else self._items[index - known].stored
        return MatchedMessage(part, None, index, stored)

    def _index_of(self, part: HeldMessage) -> int | None:
        """By the object, by its id or, for one without, by what it says. From the end, where new ones stand."""
        indexes = range(len(self._messages) - 1, -1, -1)
        message = part.message
        by_object = next((index for index in indexes if self._messages[index] is message), None)
        if by_object is not None:
            return by_object
        if message.id is not None:
            return next((index for index in indexes if self._messages[index].id == message.id), None)
        new = range(len(self._known_refs), len(self._messages))
        return next((index for index in new if index not in self._taken and self._is_new_and_says(index, part)), None)

    def _is_new_and_says(self, index: int, part: HeldMessage) -> bool:
        item = self._items[index - len(self._known_refs)]
        if item.ref is None and isinstance(item.stored, JsonTemplate) and isinstance(part.stored, JsonTemplate):
            return _without_id(item.stored) == _without_id(part.stored)
        return False


def _without_id(stored: JsonTemplate) -> JsonTemplate:
    return stored._replace(plain={**stored.plain, "id": None})


class ChannelMessages(NamedTuple):
    """A channel that holds messages."""

    messages: Sequence[BaseMessage]
    is_delta: bool
    refs: list[MessageRef | None]
    """Where each stands, as far as that is known."""
    snapshot: ListSnapshot
    """What they look like now: they may be changed while they are being stored."""


class MessageToLog(NamedTuple):
    """A message ready to be logged."""

    prepared: Prepared
    stored: StoredMessage


@dataclass(slots=True)
class CheckpointDraft:
    """One checkpoint on its way to the store."""

    address: CheckpointAddress
    checkpoint: Checkpoint
    serde: SerializerProtocol
    cache: ThreadCache
    parent: CachedCheckpoint | None
    values: dict[str, PackedValue] = field(default_factory=dict)
    """Values other than lists of messages, and those carried over."""
    lists: dict[str, ChannelMessages] = field(default_factory=dict)
    carried: dict[str, Sequence[MessageRef]] = field(default_factory=dict)
    blobs: Blobs = field(default_factory=dict)
    counts_tokens_later: bool = False
    """Whether the store counts tokens by itself."""
    recheck_all: bool = False
    """Prepare every message of the list, known or not."""

    def sort_channels(self, new_versions: Mapping[str, Any]) -> None:
        """Sort the channels: what is as it was in the parent is carried over, the rest is packed."""
        before = self.parent.versions if self.parent is not None else {}
        for channel, version in self.checkpoint["channel_versions"].items():
            if channel not in new_versions and before.get(channel) == version:
                assert self.parent is not None
                if channel in self.parent.values:
                    self.values[channel] = self.parent.values[channel]
                if channel in self.parent.lists:
                    self.carried[channel] = self.parent.lists[channel]
            elif channel in self.checkpoint["channel_values"]:
                self._pack(channel, self.checkpoint["channel_values"][channel])

    def _pack(self, channel: str, value: object) -> None:
        messages, is_delta = messages_of(value)
        if is_message_list(messages):
            assert isinstance(messages, list)
            prefix = self.cache.unchanged_prefix(self.address.namespace, channel, messages)
            refs = self.cache.known_refs(self.address.namespace, channel, messages, prefix)
            if self.address.namespace and channel == HISTORY:  # an early checkpoint may have kept them as bytes
                refs = [
                    None if isinstance(ref, UnloggedRef) and is_loggable(message) else ref
                    for ref, message in zip(refs, messages, strict=True)
                ]
            self.lists[channel] = ChannelMessages(messages, is_delta, refs, ListSnapshot(messages, prefix=prefix))
        else:
            self.values[channel] = pack_value(*dump_channel(channel, value, self.serde), self.blobs)

    def keep_unlogged(self, *, is_early: bool = False) -> None:
        """Keep as bytes the messages that do not feed history and are in no log; of a checkpoint that is too early to
        be logged, all that are in no log."""
        if not self.address.namespace:
            warn_of_unlogged(self.checkpoint, self.lists)
        for channel, found in self.lists.items():
            for index, message in enumerate(found.messages):
                if found.refs[index] is None and (is_early or not (channel == HISTORY and is_loggable(message))):
                    stored = SerdeBytes(*dump_channel(channel, message, self.serde))
                    found.refs[index] = ref = UnloggedRef(pack_blob(*stored, self.blobs))
                    self.cache.stored[ref] = stored

    # -- the list that feeds history -----------------------------------------------------------------------

    def parent_refs(self) -> Sequence[MessageRef]:
        """The parent's list."""
        return () if self.parent is None else self.parent.lists.get(HISTORY, ())

    def listed_messages(self, *, may_refer_to_thread: bool = False) -> tuple[Sequence[MessageRef], list[ListedMessage]]:
        """The list: where its first messages stand that are known, then the rest, each by reference or ready to be
        logged.

        History is told by one path, so what the list before has not is looked up on the path by its id; a subgraph,
        which feeds no history, may refer to any entry of the thread.
        """
        found = self.lists.get(HISTORY)
        if found is None:
            return (), []
        before = self.parent_refs()
        size = len(before)
        if self.recheck_all or found.refs[:size] != list(before):
            size = 0
        refs: list[MessageRef | None] = found.refs[size:]
        if not may_refer_to_thread:
            known = set() if size else set(before)
            refs = [ref if ref in known or isinstance(ref, UnloggedRef) else None for ref in refs]
        pairs = zip(found.messages[size:], refs, strict=True)
        return before[:size], [self._item(index, *pair) for index, pair in enumerate(pairs, size)]

    def _item(self, index: int, message: BaseMessage, ref: MessageRef | None) -> ListedMessage:
        if ref is not None and not (self.recheck_all and is_loggable(message)):
            return ListedMessage(message, ref, None, self.cache.stored.get(ref))
        prepared, stored = self.prepare(index, message)
        if ref is None and message.id is None:
            # A message without an id that is just what stood at this index of the list before is that one.
            before = self.parent_refs()
            if index < len(before) and self.cache.stored.get(before[index]) == stored:
                ref = before[index]
        spare_id = None
        if not message.id and prepared.id.startswith("made-") and self._given_id(message) is None:
            spare_id = made_id([*self._scope(), self.checkpoint["id"]], index, prepared.payload)
        return ListedMessage(message, ref, prepared, stored, spare_id)

    def prepare(self, index: int, message: BaseMessage) -> MessageToLog:
        """A message, ready to be logged under its own id or one made for it."""
        payload = from_langchain(message)
        prepared = ingest.prepare(payload, field=f"{HISTORY}[{index}]", count_later=self.counts_tokens_later)
        given = self._given_id(message)
        if given is not None or not prepared.has_own_id:
            prepared = prepared._replace(id=given or made_id(self._scope(), index, payload), has_own_id=True)
        return MessageToLog(prepared, stored_message(prepared.payload, message, self.serde))

    def _scope(self) -> list[str]:
        return [self.address.thread_id, *(self.address.namespace.split("|") if self.address.namespace else [])]

    def _given_id(self, message: BaseMessage) -> str | None:
        """The id that the log gave to a message without one, which has been changed, or named, since."""
        if not self.cache.ids:
            return None
        refs = (kept.ref(message) for kept in self.cache.snapshots(self.address.namespace, HISTORY))
        return next((self.cache.ids[ref] for ref in refs if ref in self.cache.ids), None)

    def removed(self, known_refs: Sequence[MessageRef], items: Sequence[ListedMessage]) -> list[int]:
        """Entries of the parent's list that are not in this one."""
        before = self.parent_refs()
        is_emptied = HISTORY in self.values and HISTORY not in self.carried
        if not (HISTORY in self.lists or is_emptied) or len(known_refs) == len(before):
            return []
        still = {*known_refs, *(item.ref for item in items)}
        return [seq for ref in before if ref not in still and (seq := _own_seq(ref)) is not None]

    def match_writes(
        self, held: Mapping[WriteKey, HeldMessages], known_refs: Sequence[MessageRef], items: Sequence[ListedMessage]
    ) -> dict[WriteKey, MatchedWrite]:
        """The parent's writes that hold messages, matched with the list."""
        found = self.lists.get(HISTORY)
        matcher = ListMatcher(() if found is None else found.messages, known_refs, items, self.cache.stored)
        writes: dict[WriteKey, MatchedWrite] = {}
        for key, one in held.items():
            messages: list[MatchedMessage] = []
            for number, part in enumerate(one.parts):
                match = matcher.match(part)
                if match is None:
                    prepared = self.prepare_held(key, number, part) if is_loggable(part.message) else None
                    match = MatchedMessage(part, prepared, None)
                messages.append(match)
            writes[key] = MatchedWrite(one, messages)
        return writes

    def prepare_held(self, key: WriteKey, number: int, part: HeldMessage) -> Prepared:
        """A message that no list names, ready to be logged; without an id, its id is made from its write."""
        payload = from_langchain(part.message)
        prepared = ingest.prepare(payload, field=f"{HISTORY}[{number}]", count_later=self.counts_tokens_later)
        if part.message.id:
            return prepared
        scope = [*self._scope(), "held", self.address.id or "", key[0], str(key[1])]
        return prepared._replace(id=made_id(scope, number, payload), has_own_id=True)

    # -- the intent ----------------------------------------------------------------------------------------

    def intent(
        self,
        metadata: Mapping[str, Any],
        *,
        known_refs: Sequence[MessageRef] = (),
        items: Sequence[ListedMessage] = (),
        matched: Mapping[WriteKey, MatchedWrite] | None = None,
        rewritten: Mapping[WriteKey, StoredWrite] | None = None,
        with_writes: Sequence[PutWrites] = (),
        replaces_turn: bool = False,
    ) -> PutCheckpoint:
        """The intent that stores this checkpoint."""
        run_id = metadata.get("run_id")
        # The list of a delta channel may stand in earlier checkpoints; an untracked channel has none anywhere.
        channels = (self.lists, self.carried, self.values, metadata.get(DELTA_COUNTERS) or {})
        has_history = any(HISTORY in known for known in channels)
        for one in with_writes:
            self.blobs.update(one.blobs)
        return PutCheckpoint(
            serde=self.serde,
            namespace=self.address.namespace,
            id=self.checkpoint["id"],
            parent_id=self.address.id,
            run_id=run_id if isinstance(run_id, str) else None,
            metadata=ormsgpack.packb(list(self.serde.dumps_typed(metadata))),
            body=self._body,
            blobs=self.blobs,
            needs_parent=self.parent is not None,
            known_refs=known_refs,
            items=items,
            removed=[] if self.address.namespace else self.removed(known_refs, items),
            matched=matched or {},
            log_count=0 if self.parent is None else self.parent.log_count,
            rewritten=rewritten,
            with_writes=[write for one in with_writes for write in one.writes],
            is_silent=not has_history and not matched,
            replaces_turn=replaces_turn,
        )

    def _body(self, refs: Sequence[MessageRef], blobs: Blobs) -> bytes:
        rest = {key: value for key, value in self.checkpoint.items() if key != "channel_values"}
        for channel, found in self.lists.items():
            self.values[channel] = pack_list(self._refs(channel, refs), found.is_delta, blobs)
        return pack_body(RowBody(rest, self.values), self.serde)

    def _refs(self, channel: str, refs: Sequence[MessageRef]) -> Sequence[MessageRef]:
        if channel == HISTORY and refs:
            return refs
        return [ref for ref in self.lists[channel].refs if ref is not None]

    def update_cache(self, result: PutResult) -> None:
        """Remember what the next checkpoint will be compared with."""
        for ref, (id, stored) in result.logged.items():
            self.cache.stored[ref] = stored
            if isinstance(stored, JsonTemplate) and stored.plain["id"] is None:
                self.cache.ids[ref] = id
        lists = {channel: self._refs(channel, result.refs) for channel in self.lists}
        for channel, found in self.lists.items():
            found.snapshot.refs = list(lists[channel])
            self.cache.keep_list(self.address.namespace, channel, found.snapshot)
        row = result.row
        remembered = CachedCheckpoint(
            row.number, row.log_count, self.checkpoint["channel_versions"], self.values, {**self.carried, **lists}
        )
        self.cache.keep_checkpoint(row.namespace, row.id, remembered)


def _own_seq(ref: MessageRef) -> int | None:
    """The seq of an entry of the thread's own conversation."""
    if isinstance(ref, int):
        return ref
    return ref.seq if isinstance(ref, LogRef) and ref.home is None else None
