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
from everthread.core.notes import MemorySource
from everthread.core.nouns import Ref
from everthread.core.trust import Trust

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMemories:
    """The memories that a request may show."""

    ref: Ref
    begun_at: datetime = _NEVER
    """When the conversation began."""
    pinned: Sequence[Memory] = ()
    """Live ones, and those that were; the newest first."""
    hits: Sequence[Memory] = ()
    """What has to do with the question, best first."""

    def at_start(self, compacted_at: datetime | None, room_tokens: int) -> list[QuotedMemory]:
        """What stands at the beginning until the next compaction, oldest first."""
        return self._fit(self._pinned_before(compacted_at or self.begun_at), room_tokens)

    def before_question(
        self, compacted_at: datetime | None, room_tokens: int, in_view: Collection[int]
    ) -> list[QuotedMemory]:
        """What is new since then, or has to do with the question; the newest, or else the best, last."""
        at_start = {memory.id for memory in self._pinned_before(compacted_at or self.begun_at)}
        live = (memory for memory in self.pinned if memory.is_live)
        shown = (memory for memory in (*live, *self.hits) if may_be_shown(memory, self.ref.id))
        others = {memory.id: memory for memory in shown if memory.id not in at_start}
        sources_in_view = {MemorySource(self.ref.id, seq) for seq in in_view}
        return self._fit((memory for memory in others.values() if memory.source not in sources_in_view), room_tokens)

    def _pinned_before(self, moment: datetime) -> list[Memory]:
        """What was pinned then, and has not been forgotten or unpinned since; what was superseded since stays."""
        return [
            memory
            for memory in self.pinned
            if memory.pinned_at is not None
            and memory.pinned_at <= moment
            and _held_at(memory, moment)
            and may_be_shown(memory, self.ref.id)
        ]

    def _fit(self, memories: Iterable[Memory], room_tokens: int) -> list[QuotedMemory]:
        """As many as fit into the room, by rank, the first of them last."""
        kept: list[QuotedMemory] = []
        left = room_tokens
        for memory in memories:
            quoted = quote_memory(memory, self.ref)
            cost = memory_block(quoted).tokens if kept else memories_tokens([quoted])
            if cost <= left:
                left -= cost
                kept.append(quoted)
        return kept[::-1]


def _held_at(memory: Memory, moment: datetime) -> bool:
    if memory.state is MemoryState.PAST:
        return memory.past_at is not None and memory.past_at > moment
    return memory.is_live


def may_be_shown(memory: Memory, conversation: str) -> bool:
    """What may come from text that others wrote stays in its own conversation until the user confirms it."""
    if memory.trust is not Trust.DATA:
        return True
    return conversation in (memory.conversation_id, None if memory.source is None else memory.source.conversation)


def quote_memory(memory: Memory, ref: Ref) -> QuotedMemory:
    """A memory as a request of this conversation quotes it."""
    source = memory.source
    is_here = source is not None and source.conversation == ref.id
    return QuotedMemory(
        id=memory.id,
        text=memory.text,
        tokens=memory.tokens,
        noted=memory.created_at.date().isoformat(),
        is_confirmed=memory.trust is not Trust.DATA,
        conversation=None if source is None or is_here else source.conversation,
        message=source.seq or None if source is not None and is_here else None,
    )
