"""Read checkpoints: one, many, or what a delta channel is rebuilt from, with messages made from the log's entries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, filterfalse
from typing import Any, NamedTuple, cast

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from everthread.adapters.checkpoints.cache import CachedCheckpoint, ThreadCache
from everthread.adapters.checkpoints.gc_pause import gc_paused
from everthread.adapters.checkpoints.held_writes import HISTORY, held_messages
from everthread.adapters.checkpoints.message_lists import ListSnapshot
from everthread.adapters.checkpoints.row_format import (
    DELTA,
    LIST,
    LogRef,
    MessageRef,
    RowBody,
    chunks_in,
    digests_in,
    refs_in,
    serde_digests_in,
    unpack_blob,
    unpack_body,
    unpack_refs,
    unpack_value,
)
from everthread.adapters.checkpoints.stored_message import SerdeBytes, template_from_raw
from everthread.adapters.checkpoints.threads import CheckpointAddress, Threads
from everthread.core import nouns
from everthread.core.checkpoints import (
    REFERS,
    CheckpointQuery,
    CheckpointsSeen,
    CheckpointState,
    ListedCheckpoint,
    SavedCheckpoint,
    StoredWrite,
)
from everthread.core.errors import NotFound
from everthread.core.nouns import Ref
from everthread.core.ports import Store

PAGE_SIZE = 500


class LoadedCheckpoint(NamedTuple):
    """A checkpoint with its values, writes and metadata decoded."""

    checkpoint: dict[str, Any]
    writes: list[tuple[str, str, Any]]
    metadata: Any


class CheckpointLoader:
    """Reads one conversation's checkpoints, with what is remembered of it."""

    def __init__(self, store: Store, ref: nouns.Ref, serde: SerializerProtocol, cache: ThreadCache) -> None:
        self._store = store
        self._ref = ref
        self._serde = serde
        self._cache = cache
        self._blobs: dict[bytes, bytes] = {}

    async def load(self, saved: SavedCheckpoint) -> LoadedCheckpoint:
        """A checkpoint as it was put."""
        body = unpack_body(saved.row.body, self._serde)
        loaded, lists = await self._load(saved, body)
        self._keep(saved, body, lists)
        return loaded

    async def load_channels(self, saved: SavedCheckpoint, channels: Container[str]) -> LoadedCheckpoint:
        """Only the values and the writes of some channels."""
        body = unpack_body(saved.row.body, self._serde)
        values = {channel: value for channel, value in body.values.items() if channel in channels}
        writes = [write for write in saved.writes if write.channel in channels]
        return (await self._load(saved._replace(writes=writes), body._replace(values=values)))[0]

    async def _load(
        self, saved: SavedCheckpoint, body: RowBody
    ) -> tuple[LoadedCheckpoint, Mapping[str, Sequence[MessageRef]]]:
        writes = {id(write): ormsgpack.unpackb(write.value) for write in saved.writes if write.kind == REFERS}
        chunks = [digest for _, elements in writes.values() for digest in chunks_in(elements)]
        await self._load_blobs([*digests_in(body.values.values()), *chunks])
        lists = refs_in(body.values, self._blobs)
        referred = {key: unpack_refs(elements, self._blobs) for key, (_, elements) in writes.items()}
        await self._load_messages([*lists.values(), *referred.values()])
        values = self._values(saved.row.namespace, body, lists)
        loaded = LoadedCheckpoint(
            {**body.checkpoint, "channel_values": values},
            [self._write(saved, write, writes, referred) for write in saved.writes],
            self.metadata(saved),
        )
        return loaded, lists

    async def load_for_child(self, saved: SavedCheckpoint) -> CachedCheckpoint:
        """Load only what the next checkpoint carries over."""
        body = unpack_body(saved.row.body, self._serde)
        await self._load_blobs(digests_in(body.values.values()))
        return self._keep(saved, body, refs_in(body.values, self._blobs))

    async def load_all_messages(self, found: CheckpointsSeen) -> dict[bytes, bytes]:
        """Load every message that a thread's checkpoints refer to; give all bytes they are made of."""
        await self._load_blobs(found.digests)
        bodies = [unpack_body(row.body, self._serde) for row in found.all if row.body]
        lists = [refs for body in bodies for refs in refs_in(body.values, self._blobs).values()]
        referring = [write for write in found.writes if write.kind == REFERS]
        lists += [unpack_refs(ormsgpack.unpackb(write.value)[1], self._blobs) for write in referring]
        await self._load_messages(lists)
        return self._blobs

    def metadata(self, saved: SavedCheckpoint) -> Any:
        kind, body = ormsgpack.unpackb(saved.row.metadata)
        return self._serde.loads_typed((kind, body))

    def _keep(
        self, saved: SavedCheckpoint, body: RowBody, lists: Mapping[str, Sequence[MessageRef]]
    ) -> CachedCheckpoint:
        row = saved.row
        found = CachedCheckpoint(row.number, row.log_count, body.checkpoint["channel_versions"], body.values, lists)
        self._cache.keep_checkpoint(row.namespace, row.id, found)
        return found

    def _values(self, namespace: str, body: RowBody, lists: Mapping[str, Sequence[MessageRef]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for channel, packed in body.values.items():
            if packed[0] in (LIST, DELTA):
                refs = list(filter(self._cache.stored.__contains__, lists[channel]))
                messages = self._build(namespace, channel, refs)
                values[channel] = _DeltaSnapshot(messages) if packed[0] == DELTA else messages
            elif packed[0] != "b" or packed[1] in self._blobs:  # bytes that are gone were erased
                values[channel] = unpack_value(packed, self._serde, self._blobs)
        return values

    def _build(self, namespace: str, channel: str, refs: Sequence[MessageRef]) -> list[BaseMessage]:
        """Build messages that belong to the reader, and remember them. Messages handed out before that nobody holds
        are reused."""
        stored, serde = list(map(self._cache.stored.__getitem__, refs)), self._serde
        prefix = self._cache.take_back(namespace, channel, refs)
        messages = [] if prefix is None else list(prefix.messages)
        with gc_paused(len(refs) - len(messages)):
            messages += [one.build(serde) for one in stored[len(messages) :]]
            self._cache.keep_list(namespace, channel, ListSnapshot(messages, refs, prefix=prefix, stored=stored))
        return messages

    def _write(
        self,
        saved: SavedCheckpoint,
        write: StoredWrite,
        writes: Mapping[int, tuple[str, Any]],
        referred: Mapping[int, Sequence[MessageRef]],
    ) -> tuple[str, str, Any]:
        if write.kind != REFERS:
            value = self._serde.loads_typed((write.kind, write.value))
            held = held_messages(value, self._serde) if write.is_held and write.channel == HISTORY else None
            if held is not None:
                # The reader may put these messages into the next checkpoint; they are then recognised as objects.
                self._cache.keep_held(saved.row.namespace, saved.row.id, (write.task_id, write.idx), held)
            return write.task_id, write.channel, value
        refs = [ref for ref in referred[id(write)] if ref in self._cache.stored]
        messages = self._build(saved.row.namespace, f"{write.channel}:writes", refs)
        return write.task_id, write.channel, messages[0] if writes[id(write)][0] == "one" and messages else messages

    async def _load_blobs(self, digests: Iterable[bytes]) -> None:
        """Bytes by digest, and those that they name when they are chunks of a list."""
        missing = [digest for digest in dict.fromkeys(digests) if digest not in self._blobs]
        while missing:
            found = await self._store.checkpoints.blobs(self._ref, missing)
            self._blobs.update(found)
            inner = [one for body in found.values() for one in _inner_chunks(body)]
            missing = [digest for digest in dict.fromkeys(inner) if digest not in self._blobs]

    async def _load_messages(self, lists: Iterable[Sequence[MessageRef]]) -> None:
        """Load each message that is not cached yet."""
        stored = self._cache.stored
        unknown = list(filterfalse(stored.__contains__, chain.from_iterable(lists)))
        if not unknown:
            return
        await self._load_blobs(serde_digests_in(unknown))
        seqs: dict[str, set[int]] = {}
        for ref in unknown:
            if isinstance(ref, int):
                seqs.setdefault("", set()).add(ref)
            elif ref.serde_digest in self._blobs:
                stored[ref] = SerdeBytes(*unpack_blob(self._blobs[ref.serde_digest]))
            elif isinstance(ref, LogRef) and ref.serde_digest is None:
                seqs.setdefault(ref.home or "", set()).add(ref.seq)
        for home, in_conversation in seqs.items():
            await self._load_entries(home, sorted(in_conversation))

    async def _load_entries(self, home: str, seqs: Sequence[int]) -> None:
        ref = nouns.Ref(self._ref.owner, home or self._ref.id)
        for first, last in _runs(seqs):
            try:
                entries = await self._store.log.scan(ref, after=first - 1, limit=last - first + 1, with_tokens=False)
            except NotFound:
                continue
            with gc_paused(len(entries)):
                for entry in entries:
                    template = None if entry.raw is None else template_from_raw(entry.raw)
                    if template is not None:
                        name: MessageRef = LogRef(entry.seq, home, None) if home else entry.seq
                        self._cache.stored[name] = template
                        if template.plain.get("id") is None:
                            self._cache.ids[name] = entry.id


def _inner_chunks(body: bytes) -> list[bytes]:
    """The chunks in a chunk; other bytes begin with the name of their kind."""
    if body[:1].isalpha():
        return []
    elements = ormsgpack.unpackb(body)
    return chunks_in(elements) if isinstance(elements, list) else []


def _runs(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as stretches without a gap, a page long at most."""
    start = 0
    for position in range(1, len(seqs) + 1):
        is_end = position == len(seqs) or seqs[position] != seqs[position - 1] + 1
        if is_end or position - start == PAGE_SIZE:
            yield seqs[start], seqs[position - 1]
            start = position


class DeltaWalk:
    """Goes up the ancestors, nearest first, until each channel has met a value of its own."""

    def __init__(self, channels: Sequence[str]) -> None:
        self._writes: dict[str, list[tuple[str, str, Any]]] = {channel: [] for channel in channels}
        self._seeds: dict[str, Any] = {}

    @property
    def open(self) -> set[str]:
        """The channels for which no value was found yet."""
        return self._writes.keys() - self._seeds.keys()

    def take(self, ancestor: LoadedCheckpoint) -> None:
        """Take a checkpoint's writes and values. A value is older than the writes on the same checkpoint, so these
        count too."""
        channels = self.open
        for write in reversed(ancestor.writes):
            if write[1] in channels:
                self._writes[write[1]].append(write)
        for channel in channels & ancestor.checkpoint["channel_values"].keys():
            self._seeds[channel] = ancestor.checkpoint["channel_values"][channel]

    def histories(self) -> dict[str, DeltaChannelHistory]:
        """Writes oldest first, and what they come on top of."""
        found: dict[str, DeltaChannelHistory] = {}
        for channel, writes in self._writes.items():
            found[channel] = {"writes": writes[::-1]}
            if channel in self._seeds:
                found[channel]["seed"] = self._seeds[channel]
        return found


_LIST_PAGE_SIZE = 100
_ANCESTORS_AT_ONCE = 500
"""How many ancestors are read at once to rebuild a delta channel."""


class ThreadReader:
    """Reads threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def get(self, address: CheckpointAddress, serde: SerializerProtocol) -> CheckpointTuple | None:
        """A checkpoint, or the newest."""
        ref = await self._threads.ref(address.owner, address.thread_id)
        saved = await self._threads.store.checkpoints.get(ref, address.namespace, address.id)
        if saved is None or saved.row.state != CheckpointState.VISIBLE:
            return None
        return await self._tuple(ref, address, saved, serde)

    async def _tuple(
        self, ref: Ref, address: CheckpointAddress, saved: SavedCheckpoint, serde: SerializerProtocol
    ) -> CheckpointTuple:
        cache = self._threads.caches.get(ref, saved.thread.erasures)
        loaded = await CheckpointLoader(self._threads.store, ref, serde, cache).load(saved)
        return CheckpointTuple(
            config=address.config(saved.row.id),
            checkpoint=cast(Checkpoint, loaded.checkpoint),
            metadata=loaded.metadata,
            parent_config=None if saved.row.parent_id is None else address.config(saved.row.parent_id),
            pending_writes=loaded.writes,
        )

    async def list(
        self, query: CheckpointQuery, matches: Mapping[str, Any], limit: int | None, serde: SerializerProtocol
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints, newest first within a namespace, whose metadata is equal to what is asked for."""
        if query.conversation is not None:
            ref = await self._threads.ref(query.owner, query.conversation)
            query = replace(query, conversation=ref.id)
        left = limit
        while left is None or left > 0:
            size = _LIST_PAGE_SIZE if left is None or matches else min(_LIST_PAGE_SIZE, left)
            page = await self._threads.store.checkpoints.list(replace(query, limit=size))
            for listed in page:
                if left is not None and left <= 0:
                    return
                if await self._matches(listed, query.owner, matches, serde):
                    left = None if left is None else left - 1
                    yield await self._listed_tuple(listed, query.owner, serde)
            if len(page) < size:
                return
            last = page[-1]
            query = replace(query, after=(last.conversation_id, last.saved.row.namespace, last.saved.row.id))

    async def _matches(
        self, listed: ListedCheckpoint, owner: str, matches: Mapping[str, Any], serde: SerializerProtocol
    ) -> bool:
        if not matches:
            return True
        ref = Ref(owner, listed.conversation_id)
        metadata = CheckpointLoader(self._threads.store, ref, serde, self._threads.caches.get(ref)).metadata(
            listed.saved
        )
        return all(metadata.get(key) == value for key, value in matches.items())

    async def _listed_tuple(self, listed: ListedCheckpoint, owner: str, serde: SerializerProtocol) -> CheckpointTuple:
        ref = Ref(owner, listed.conversation_id)
        address = CheckpointAddress(owner, self._threads.thread_id(ref), listed.saved.row.namespace, None)
        return await self._tuple(ref, address, listed.saved, serde)

    async def delta_history(
        self, address: CheckpointAddress, channels: Sequence[str], serde: SerializerProtocol
    ) -> Mapping[str, DeltaChannelHistory]:
        """What each delta channel is rebuilt from: the writes of ancestors, back to its last snapshot."""
        ref = await self._threads.ref(address.owner, address.thread_id)
        saved = await self._threads.store.checkpoints.get(ref, address.namespace, address.id)
        walk = DeltaWalk(channels)
        id = None if saved is None else saved.row.parent_id
        while id is not None and walk.open:
            chain = await self._threads.store.checkpoints.ancestors(
                ref, address.namespace, id, limit=_ANCESTORS_AT_ONCE
            )
            await self._walk(ref, [one for one in chain if one.row.state != CheckpointState.AWAITED], walk, serde)
            id = chain[-1].row.parent_id if len(chain) == _ANCESTORS_AT_ONCE else None
        return walk.histories()

    async def _walk(
        self, ref: Ref, chain: Sequence[SavedCheckpoint], walk: DeltaWalk, serde: SerializerProtocol
    ) -> None:
        for ancestor in chain:
            if not walk.open:
                return
            loader = CheckpointLoader(
                self._threads.store, ref, serde, self._threads.caches.get(ref, ancestor.thread.erasures)
            )
            walk.take(await loader.load_channels(ancestor, walk.open))


async def parent_of(
    threads: Threads, ref: Ref, address: CheckpointAddress, serde: SerializerProtocol, cache: ThreadCache
) -> CachedCheckpoint | None:
    """What a checkpoint carries over from its parent."""
    if address.id is None:
        return None
    known = cache.checkpoints.get((address.namespace, address.id))
    if known is not None:
        return known
    saved = await threads.store.checkpoints.get(ref, address.namespace, address.id)
    if saved is None or saved.row.state == CheckpointState.AWAITED:
        return None
    return await CheckpointLoader(threads.store, ref, serde, cache).load_for_child(saved)
