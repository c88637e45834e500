"""What a saver remembers of a thread, so that a checkpoint costs what is new in it.

Entries never change, so what is cached of them stays true, except after an erase: the store counts those, and an older
cache is dropped. Everything here can be lost at any time; the store has all of it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

from langchain_core.messages import BaseMessage

from everthread.adapters.checkpoints.held_writes import HeldMessages, WriteKey
from everthread.adapters.checkpoints.message_lists import ListSnapshot
from everthread.adapters.checkpoints.row_format import MessageRef
from everthread.adapters.checkpoints.stored_message import StoredMessage
from everthread.core import nouns
from everthread.core.recent import forget_on_erase

K = TypeVar("K")
V = TypeVar("V")

_MAX_THREADS = 64
_MAX_LISTS = 3
"""How many lists of one channel are remembered, so how many readers at a time can have theirs recognised."""
_MAX_CHANNELS = 16
_MAX_CHECKPOINTS = 64


class CachedCheckpoint(NamedTuple):
    """What the next checkpoint carries over from this one."""

    number: int
    log_count: int
    versions: Mapping[str, Any]
    values: Mapping[str, Any]
    """Packed, by channel."""
    lists: Mapping[str, Sequence[MessageRef]]


@dataclass(slots=True)
class ThreadCache:
    """What is remembered of one conversation."""

    erasures: int = 0
    stored: dict[MessageRef, StoredMessage] = field(default_factory=dict)
    ids: dict[MessageRef, str] = field(default_factory=dict)
    """The ids that messages without one were given in the log."""
    lists: OrderedDict[tuple[str, str], deque[ListSnapshot]] = field(default_factory=OrderedDict)
    """By namespace and channel, newest first."""
    checkpoints: OrderedDict[tuple[str, str], CachedCheckpoint] = field(default_factory=OrderedDict)
    held: OrderedDict[tuple[str, str], dict[WriteKey, HeldMessages]] = field(default_factory=OrderedDict)

    def keep_list(self, namespace: str, channel: str, snapshot: ListSnapshot) -> None:
        """Remember a list, and forget the one that it continues object by object."""
        kept = self.lists.get((namespace, channel), deque())
        others = [one for one in kept if not one.is_continued_by(snapshot.messages)]
        _put_newest(self.lists, (namespace, channel), deque([snapshot, *others][:_MAX_LISTS]), _MAX_CHANNELS)

    def take_back(self, namespace: str, channel: str, refs: Sequence[MessageRef]) -> ListSnapshot | None:
        """The first messages of a list that was handed out before, if nobody holds them any more. Other lists that
        nobody holds are forgotten."""
        kept = self.lists.get((namespace, channel))
        if kept is None:
            return None
        prefix = None
        for index, snapshot in enumerate(kept):
            if parts := snapshot.split(refs):
                prefix, kept[index] = parts
                break
        self.lists[namespace, channel] = deque(filter(ListSnapshot.is_in_use, kept))
        return prefix

    def snapshots(self, namespace: str, channel: str) -> Iterator[ListSnapshot]:
        """The lists that may share objects with a new one, the likeliest first."""
        yield from self.lists.get((namespace, channel), ())
        for key, kept in self.lists.items():
            if key != (namespace, channel):
                yield from kept

    def unchanged_prefix(self, namespace: str, channel: str, messages: Sequence[BaseMessage]) -> ListSnapshot | None:
        """A list that this one continues, with nothing changed in it."""
        return next((kept for kept in self.snapshots(namespace, channel) if kept.known_prefix(messages)), None)

    def known_refs(
        self, namespace: str, channel: str, messages: Sequence[BaseMessage], prefix: ListSnapshot | None = None
    ) -> list[MessageRef | None]:
        """Where messages stand in the log; None for those that are unknown or were changed."""
        first = [] if prefix is None else prefix.refs
        refs: list[MessageRef | None] = [*first, *[None] * (len(messages) - len(first))]
        rest = list(range(len(first), len(messages)))
        for kept in self.snapshots(namespace, channel) if rest else ():
            rest = [index for index in rest if refs[index] is None]
            for index, ref in zip(rest, kept.known([messages[index] for index in rest]), strict=True):
                refs[index] = ref
        return refs

    def keep_checkpoint(self, namespace: str, id: str, row: CachedCheckpoint) -> None:
        _put_newest(self.checkpoints, (namespace, id), row, _MAX_CHECKPOINTS)

    def keep_held(self, namespace: str, checkpoint: str, key: WriteKey, held: HeldMessages) -> None:
        kept = self.held.get((namespace, checkpoint), {})
        _put_newest(self.held, (namespace, checkpoint), {**kept, key: held}, _MAX_CHECKPOINTS)


_in_use: WeakSet[ThreadCaches] = WeakSet()


@forget_on_erase
def _forget_threads() -> None:
    for caches in list(_in_use):
        caches.clear()


class ThreadCaches:
    """The conversations used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[nouns.Ref, ThreadCache] = OrderedDict()
        _in_use.add(self)

    def get(self, ref: nouns.Ref, erasures: int | None = None) -> ThreadCache:
        """What is remembered of a conversation; an empty cache if something in it was erased since."""
        found = self._kept.get(ref)
        if found is None or (erasures is not None and found.erasures != erasures):
            found = ThreadCache(erasures=erasures or 0)
        _put_newest(self._kept, ref, found, _MAX_THREADS)
        return found

    def drop(self, ref: nouns.Ref) -> None:
        self._kept.pop(ref, None)

    def clear(self) -> None:
        self._kept = OrderedDict()  # another thread may be at work on the old one


def _put_newest(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
