"""Which memories a request shows, and where. Pure.

Pinned ones stand at the beginning, as they were when the conversation was last compacted, or else when it began: a
prompt cache holds that part, so it changes only when the request begins anew. What was pinned or superseded since, and
what has to do with the question, is shown beside the recalled messages. What a person forgot or unpinned is gone from
both at once, and nothing is shown whose message is in view.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from everthread.context.ingredients import QuotedMemory
from everthread.context.quotes import memories_tokens, memory_block
from everthread.core.memories import Memory, MemoryState
from everthread.core.nouns import Ref

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known when a request is made."""

    ref: Ref
    begun_at: datetime = _NEVER
    """When the conversation began."""
    pinned: Sequence[Memory] = ()
    """Live ones, and those that were; the newest first."""
    hits: Sequence[Memory] = ()
    """What has to do with the question, best first."""

    def standing(self, compacted_at: datetime | None, room_tokens: int) -> list[QuotedMemory]:
        """What stands at the beginning until the next compaction, oldest first."""
        since = compacted_at or self.begun_at
        return self._fitting(self._stood(since), room_tokens)

    def reminded(self, compacted_at: datetime | None, room_tokens: int, in_view: Collection[int]) -> list[QuotedMemory]:
        """What is new since then, or has to do with the question; the newest, or else the best, last."""
        stood = {one.id for one in self._stood(compacted_at or self.begun_at)}
        news = [one for one in self.pinned if one.is_live and one.id not in stood]
        hits = [one for one in self.hits if one.id not in stood]
        wanted = {one.id: one for one in (*news, *hits)}
        return self._fitting((one for one in wanted.values() if not self._is_in(one, in_view)), room_tokens)

    def _stood(self, since: datetime) -> list[Memory]:
        return [
            one for one in self.pinned if one.pinned_at is not None and one.pinned_at <= since and _held(one, since)
        ]

    def _fitting(self, wanted: Iterable[Memory], room_tokens: int) -> list[QuotedMemory]:
        """As many as go into the room, by rank, the first of them last."""
        kept: list[QuotedMemory] = []
        left = room_tokens
        for one in wanted:
            quoted = as_quoted(one, self.ref)
            cost = memory_block(quoted).tokens if kept else memories_tokens([quoted])
            if cost <= left:
                left -= cost
                kept.append(quoted)
        return kept[::-1]

    def _is_in(self, memory: Memory, in_view: Collection[int]) -> bool:
        source = memory.source
        return source is not None and source.conversation == self.ref.id and source.seq in in_view


def _held(memory: Memory, since: datetime) -> bool:
    if memory.state is MemoryState.PAST:
        return memory.past_at is not None and memory.past_at > since
    return memory.is_live


def as_quoted(memory: Memory, ref: Ref) -> QuotedMemory:
    """A memory as a request of this conversation quotes it."""
    source = memory.source
    is_here = source is not None and source.conversation == ref.id
    return QuotedMemory(
        id=memory.id,
        text=memory.text,
        tokens=memory.tokens,
        noted=memory.created_at.date().isoformat(),
        conversation=None if source is None or is_here else source.conversation,
        message=source.seq or None if source is not None and is_here else None,
    )
