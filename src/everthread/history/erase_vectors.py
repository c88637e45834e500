"""Continues an erase outside of the database: vectors in a store of their own, which no transaction reaches."""

from __future__ import annotations

from dataclasses import replace

from everthread.core.embeddings import Vectors
from everthread.core.errors import StoreError
from everthread.core.nouns import EraseReport, Ref
from everthread.core.ports import Store


async def erase_vectors(vectors: Vectors, store: Store, report: EraseReport) -> EraseReport:
    """Delete the vectors too, and return the report with their number, or with the note that the store could not be
    reached; the text itself is erased either way."""
    try:
        gone = await vectors.forget(report.owner, report.conversation_id, seqs=await _seqs(store, report))
    except StoreError as problem:
        left = f"vectors {vectors.about}, until a process reaches it ({problem})"
        return replace(report, cannot_reach=(*report.cannot_reach, left))
    left = f"files that hold vectors {vectors.about}, until it removes deleted rows (Milvus Lite may never)"
    reached = {**report.reached, "vectors": report.reached.get("vectors", 0) + gone}
    return replace(report, reached=reached, cannot_reach=(*report.cannot_reach, left))


async def _seqs(store: Store, report: EraseReport) -> list[int] | None:
    """The seqs of an erased message, from its tombstones."""
    if report.message_id is None or report.conversation_id is None:
        return None
    ref = Ref(report.owner, report.conversation_id)
    return [entry.seq for entry in await store.log.find(ref, ids=[report.message_id])]
