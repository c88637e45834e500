"""The way out: a stored checkpoint as LangGraph knows it, its messages cast from the log."""

from __future__ import annotations

import gc
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, filterfalse, groupby
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from everthread.adapters.checkpoints import moulds
from everthread.adapters.checkpoints.elements import Entry, Loose, Ref, chunks_in, forms_in, unpack
from everthread.adapters.checkpoints.holding import HISTORY, hold
from everthread.adapters.checkpoints.lists import Snapshot
from everthread.adapters.checkpoints.moulds import Form
from everthread.adapters.checkpoints.remembering import Memory, Remembered
from everthread.adapters.checkpoints.values import (
    DELTA,
    LIST,
    Body,
    digests_in,
    refs_in,
    unpack_blob,
    unpack_body,
    unpack_value,
)
from everthread.core import nouns
from everthread.core.checkpoints import REFERS, CheckpointsSeen, Saved, StoredWrite
from everthread.core.entries import Entry as LogEntry
from everthread.core.errors import NotFound
from everthread.core.ports import Store

PAGE = 500
_FEW = 1_000
"""While so few messages are made the collector looks only at what was made last, which takes a quarter of what it takes
to look at all of them afterwards."""


class Loaded(NamedTuple):
    """A checkpoint with everything revived."""

    checkpoint: dict[str, Any]
    writes: list[tuple[str, str, Any]]
    metadata: Any


class Loader:
    """Reads one conversation's checkpoints, with what is remembered of it."""

    def __init__(self, store: Store, ref: nouns.Ref, serde: SerializerProtocol, memory: Memory) -> None:
        self._store = store
        self._ref = ref
        self._serde = serde
        self._memory = memory
        self._blobs: dict[bytes, bytes] = {}

    async def load(self, saved: Saved) -> Loaded:
        """A checkpoint as it was put."""
        body = unpack_body(saved.row.body, self._serde)
        loaded, lists = await self._load(saved, body)
        self._remember(saved, body, lists)
        return loaded

    async def load_some(self, saved: Saved, channels: Container[str]) -> Loaded:
        """Only the values and the writes of some channels."""
        body = unpack_body(saved.row.body, self._serde)
        values = {channel: value for channel, value in body.values.items() if channel in channels}
        writes = [write for write in saved.writes if write.channel in channels]
        return (await self._load(saved._replace(writes=writes), body._replace(values=values)))[0]

    async def _load(self, saved: Saved, body: Body) -> tuple[Loaded, Mapping[str, Sequence[Ref]]]:
        writes = {id(write): ormsgpack.unpackb(write.value) for write in saved.writes if write.kind == REFERS}
        await self._fetch([*digests_in(body.values.values()), *_chunks(elements for _, elements in writes.values())])
        lists = refs_in(body.values, self._blobs)
        referred = {key: unpack(elements, self._blobs) for key, (_, elements) in writes.items()}
        await self._learn([*lists.values(), *referred.values()])
        values = self._values(saved.row.namespace, body, lists)
        loaded = Loaded(
            {**body.checkpoint, "channel_values": values},
            [self._write(saved, write, writes, referred) for write in saved.writes],
            self.metadata(saved),
        )
        return loaded, lists

    async def remember(self, saved: Saved) -> Remembered:
        """Only what the next checkpoint carries over."""
        body = unpack_body(saved.row.body, self._serde)
        await self._fetch(digests_in(body.values.values()))
        return self._remember(saved, body, refs_in(body.values, self._blobs))

    async def learn_all(self, found: CheckpointsSeen) -> dict[bytes, bytes]:
        """Make a cast of every message that a thread's checkpoints refer to; give all bytes they are made of."""
        await self._fetch(found.digests)
        bodies = [unpack_body(row.body, self._serde) for row in found.all if row.body]
        lists = [refs for body in bodies for refs in refs_in(body.values, self._blobs).values()]
        referring = [write for write in found.writes if write.kind == REFERS]
        lists += [unpack(ormsgpack.unpackb(write.value)[1], self._blobs) for write in referring]
        await self._learn(lists)
        return self._blobs

    def metadata(self, saved: Saved) -> Any:
        kind, body = ormsgpack.unpackb(saved.row.metadata)
        return self._serde.loads_typed((kind, body))

    def _remember(self, saved: Saved, body: Body, lists: Mapping[str, Sequence[Ref]]) -> Remembered:
        row = saved.row
        found = Remembered(row.number, row.log_count, body.checkpoint["channel_versions"], body.values, lists)
        self._memory.keep_checkpoint(row.namespace, row.id, found)
        return found

    def _values(self, namespace: str, body: Body, lists: Mapping[str, Sequence[Ref]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for channel, packed in body.values.items():
            if packed[0] in (LIST, DELTA):
                refs = list(filter(self._memory.casts.__contains__, lists[channel]))
                messages = self._cast(namespace, channel, refs)
                values[channel] = _DeltaSnapshot(messages) if packed[0] == DELTA else messages
            elif packed[0] != "b" or packed[1] in self._blobs:  # bytes that are gone were erased
                values[channel] = unpack_value(packed, self._serde, self._blobs)
        return values

    def _cast(self, namespace: str, channel: str, refs: Sequence[Ref]) -> list[BaseMessage]:
        """Messages of the reader's own, remembered as they are handed out; those that nobody has any more, again."""
        casts, serde = list(map(self._memory.casts.__getitem__, refs)), self._serde
        begun = self._memory.take_back(namespace, channel, refs, serde)
        messages = [] if begun is None else list(begun.messages)
        with uncollected(len(refs) - len(messages)):
            messages += [cast.cast(serde) for cast in casts[len(messages) :]]
            self._memory.keep_list(namespace, channel, Snapshot(messages, refs, begun=begun, casts=casts))
        return messages

    def _write(
        self,
        saved: Saved,
        write: StoredWrite,
        writes: Mapping[int, tuple[str, Any]],
        referred: Mapping[int, Sequence[Ref]],
    ) -> tuple[str, str, Any]:
        if write.kind != REFERS:
            value = self._serde.loads_typed((write.kind, write.value))
            self._hold(saved, write, value)
            return write.task_id, write.channel, value
        refs = [ref for ref in referred[id(write)] if ref in self._memory.casts]
        messages = self._cast(saved.row.namespace, f"{write.channel}:writes", refs)
        return write.task_id, write.channel, messages[0] if writes[id(write)][0] == "one" and messages else messages

    def _hold(self, saved: Saved, write: StoredWrite, value: object) -> None:
        """Whoever is handed these messages may put them into the next checkpoint: they are then known by object."""
        held = hold(value, self._serde) if write.is_held and write.channel == HISTORY else None
        if held is not None:
            key = (write.task_id, write.idx)
            self._memory.hold(saved.row.namespace, saved.row.id, key, held)

    async def _fetch(self, digests: Iterable[bytes]) -> None:
        """Bytes by digest, and those that they name when they are chunks of a list."""
        missing = [digest for digest in dict.fromkeys(digests) if digest not in self._blobs]
        while missing:
            found = await self._store.checkpoints.blobs(self._ref, missing)
            self._blobs.update(found)
            inner = [one for body in found.values() for one in _inner_chunks(body)]
            missing = [digest for digest in dict.fromkeys(inner) if digest not in self._blobs]

    async def _learn(self, lists: Iterable[Sequence[Ref]]) -> None:
        """Make a cast of each message that has none yet."""
        casts = self._memory.casts
        unknown = list(filterfalse(casts.__contains__, chain.from_iterable(lists)))
        if not unknown:
            return
        await self._fetch(forms_in(unknown))
        for ref in unknown:
            if not isinstance(ref, int) and ref.form in self._blobs:
                casts[ref] = Form(*unpack_blob(self._blobs[ref.form]))
        plain = sorted({_address(ref) for ref in unknown if isinstance(ref, int) or _is_plain(ref)})
        for home, addresses in groupby(plain, key=lambda address: address[0]):
            await self._learn_from(home, [seq for _, seq in addresses])

    async def _learn_from(self, home: str, seqs: Sequence[int]) -> None:
        ref = nouns.Ref(self._ref.owner, home or self._ref.id)
        for first, last in _stretches(seqs):
            try:
                entries = await self._store.log.scan(ref, after=first - 1, limit=last - first + 1, is_counted=False)
            except NotFound:
                continue
            with uncollected(len(entries)):
                self._learn_entries(home, entries)

    def _learn_entries(self, home: str, entries: Iterable[LogEntry]) -> None:
        for entry in entries:
            made = None if entry.raw is None else moulds.of_raw(entry.raw)
            if made is not None:
                name: Ref = Entry(entry.seq, home, None) if home else entry.seq
                self._memory.casts[name] = made
                if made.plain.get("id") is None:
                    self._memory.ids[name] = entry.id


def uncollected(count: int) -> AbstractContextManager[None]:
    """Make so many objects that all stay: of thousands the collector would look through the whole process meanwhile,
    again and again, and take longer than the making.
    """
    return _uncollected() if count > _FEW and gc.isenabled() else nullcontext()


@contextmanager
def _uncollected() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _chunks(lists: Iterable[Sequence[Any]]) -> list[bytes]:
    return [digest for elements in lists for digest in chunks_in(elements)]


def _inner_chunks(body: bytes) -> list[bytes]:
    """The chunks in a chunk; other bytes begin with the name of their kind."""
    if body[:1].isalpha():
        return []
    elements = ormsgpack.unpackb(body)
    return chunks_in(elements) if isinstance(elements, list) else []


def _is_plain(ref: Ref) -> bool:
    return isinstance(ref, Entry) and ref.form is None


def _address(ref: Ref) -> tuple[str, int]:
    assert not isinstance(ref, Loose)
    return ("", ref) if isinstance(ref, int) else (ref.home or "", ref.seq)


def _stretches(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as stretches without a gap, a page long at most."""
    start = 0
    for position in range(1, len(seqs) + 1):
        is_end = position == len(seqs) or seqs[position] != seqs[position - 1] + 1
        if is_end or position - start == PAGE:
            yield seqs[start], seqs[position - 1]
            start = position
