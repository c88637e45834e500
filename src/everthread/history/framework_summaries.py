"""Summaries that frameworks and imported agents wrote into their own state, listed as compactions: whose they are, and
what they cover.

The log stores such a summary as an entry of its own kind, and marks the messages that the framework removed for it in
the same transaction. The compactions are computed from these entries and stored nowhere else, so erasing the entry
erases the compaction. Our views do not use them, so none of them is live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everthread.core import payloads
from everthread.core.clock import from_micros
from everthread.core.compactions import FRAMEWORK, Compaction
from everthread.core.entries import Entry, EntryOrigin, Kind
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Log, PathQuery

_CUTOFF = "cutoff_index"
_OF_DEEPAGENTS = frozenset({_CUTOFF, "file_path"})


async def of_frameworks(log: Log, ref: Ref) -> list[Compaction]:
    """Return the compactions that frameworks made in this conversation, oldest first."""
    entries = await log.framework_entries(ref)
    newest = {entry.id: entry for entry in entries if entry.kind == Kind.SUMMARY and not entry.is_erased}
    made, before = [], 0
    for entry in newest.values():
        if entry.origin == EntryOrigin.IMPORT:
            said = await _said_between(log, ref, before, entry.seq)
            made.append(_compaction(entry, said, strategy=ref.id.partition(":")[0]))
            before = entry.seq
        else:
            extra = _extra(entry)
            removed = _removed_with(entry, entries)
            covered = (
                await log.find(ref, seqs=removed) if removed else await _listed_before(log, ref, extra.get(_CUTOFF))
            )
            strategy = "deepagents" if _OF_DEEPAGENTS & extra.keys() else "langchain"
            made.append(_compaction(entry, covered, strategy=strategy))
    return made


def _removed_with(summary: Entry, entries: Sequence[Entry]) -> list[int]:
    """Return the seqs of the messages removed from the framework's list in the summary's transaction."""
    marks = (entry for entry in entries if entry.kind == Kind.MARK and entry.created_at == summary.created_at)
    return sorted(mark.revises for mark in marks if mark.revises is not None)


async def _said_between(log: Log, ref: Ref, after: int, before: int) -> list[Entry]:
    """The messages that an agent's summary covers: everything after its previous summary, because the agent itself
    does not say."""
    said: list[Entry] = []
    while page := await log.path(ref, PathQuery(after=after, before=before)):
        said += [place for place, _ in page]
        after = said[-1].seq
    return said


def _extra(entry: Entry) -> Mapping[str, Any]:
    extra = payloads.fields(Message(entry).payload).get("additional_kwargs")
    return extra if isinstance(extra, Mapping) else {}


def _compaction(entry: Entry, covered: Sequence[Entry], *, strategy: str) -> Compaction:
    first, last = (covered[0].seq, covered[-1].seq) if covered else (0, 0)
    return Compaction(
        id=entry.id,
        level=1,
        first_seq=first,
        last_seq=last,
        after_seq=max(0, first - 1),
        branch=entry.branch,
        span_hash="",
        children=(),
        summary=Message(entry).text,
        strategy=strategy,
        model=None,
        trigger=FRAMEWORK,
        original_count=len(covered),
        new_count=1,
        tokens_before=sum(one.tokens for one in covered),
        tokens_after=entry.tokens,
        facts_total=0,
        facts_kept=0,
        seconds=0.0,
        created_at=from_micros(entry.created_at),
    )


async def _listed_before(log: Log, ref: Ref, cutoff: Any) -> Sequence[Entry]:
    """The messages that a summary of deepagents covers, which removes none but says how many of its list it covers."""
    if not isinstance(cutoff, int) or cutoff <= 0:
        return ()
    return [place for place, _ in await log.path(ref, PathQuery(limit=cutoff))]
