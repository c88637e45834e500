"""The owner's own documents as the knowledge that a turn asks (`ports.Knowledge`)."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.recall.knowledge import Knowledge
from everthread.turn.ports import Passage

_MOST_TOKENS = 2_000


class Documents:
    """Collections of documents, by the port of turns."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    async def route(self, owner: str, query: str) -> str | None:
        """Which collection fits the question; None: none."""
        return (await self._knowledge.route(owner, query)).collection

    async def search(self, owner: str, collection: str, query: str) -> Sequence[Passage]:
        """The best passages."""
        hits = await self._knowledge.search(owner, collection, query, max_tokens=_MOST_TOKENS)
        return [
            Passage(
                id=f"{hit.passage.document_id}#{hit.passage.position}",
                text=hit.passage.text,
                source=" › ".join(filter(None, [hit.passage.document_id, hit.passage.heading])),
                score=hit.score,
            )
            for hit in hits
        ]
