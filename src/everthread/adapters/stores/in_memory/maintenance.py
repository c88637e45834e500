"""Operations on the whole store, in memory. Erasing removes an entry's text and keeps its place and commitment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from everthread.adapters.jobs.in_memory import InMemoryJobs
from everthread.adapters.stores.in_memory.access import InMemoryApiKeys, InMemoryReplies
from everthread.adapters.stores.in_memory.imports import InMemoryImports
from everthread.adapters.stores.in_memory.items import InMemoryItems
from everthread.adapters.stores.in_memory.log import copy_of
from everthread.adapters.stores.in_memory.notes import InMemoryNotes
from everthread.adapters.stores.in_memory.rows import ConversationRow, InMemoryDatabase
from everthread.adapters.stores.in_memory.turns import InMemoryTurns
from everthread.adapters.stores.layout import (
    CANNOT_REACH,
    erase_report,
    memory_erased,
    texts_of,
    title_quotes,
    traces_of,
)
from everthread.adapters.vectors.in_memory import InMemoryVectors
from everthread.core.chain import SettingsChange, commitment_of
from everthread.core.clock import to_micros
from everthread.core.entries import Entry, Flag
from everthread.core.errors import NotFound, StoreError
from everthread.core.nouns import ConversationInfo, EraseReport, Ref
from everthread.core.paths import holds
from everthread.core.recent import forget_texts


class InMemoryMaintenance:
    """`store.maintenance` of core/ports.py."""

    def __init__(
        self,
        database: InMemoryDatabase,
        *,
        items: InMemoryItems,
        imports: InMemoryImports,
        notes: InMemoryNotes,
        turns: InMemoryTurns,
        vectors: InMemoryVectors,
        jobs: InMemoryJobs,
        api_keys: InMemoryApiKeys,
        replies: InMemoryReplies,
    ) -> None:
        self._database = database
        self._items = items
        self._imports = imports
        self._notes = notes
        self._turns = turns
        self._vectors = vectors
        self._jobs = jobs
        self._api_keys = api_keys
        self._replies = replies
        self._erasures: list[tuple[str, str | None, str | None, datetime]] = []

    async def heads(self) -> Sequence[ConversationInfo]:
        return [copy_of(row.info) for row in self._database.rows.values()]

    async def newest_changes(self) -> Mapping[Ref, SettingsChange]:
        return {ref: row.changes[-1] for ref, row in self._database.rows.items() if row.changes}

    async def erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        forget_texts()
        if conversation is None and message is not None:
            return self._erase_memory(owner, message)
        rows = self._database.living(owner, conversation, with_children=message is None)
        if not rows and conversation is not None:
            raise NotFound(f"no conversation {conversation!r}")
        if message is not None and not any(_to_erase(row, message) for row in rows):
            raise NotFound(f"no message {message!r} in conversation {conversation!r}")
        now = self._database.clock()
        reached: Counter[str] = Counter()
        for row in rows:
            seqs = None if message is None else [entry.seq for entry in row.by_id(message)]
            reached["notes"] += self._notes.erase(owner, row.info.id, seqs)
            said = texts_of(_to_erase(row, message)) if message is not None else []
            if message is not None and title_quotes(row.info.title, _to_erase(row, message)):
                row.info = replace(row.info, title=None)
                row.note_change(to_micros(now))
                reached["titles"] += 1
            self._turns.forget(Ref(owner, row.info.id), message, said, reached)
            seqs = None if message is None else [entry.seq for entry in _to_erase(row, message)]
            reached["vectors"] += self._vectors.forget_now(owner, row.info.id, seqs=seqs)
            _blank(row, message, now, reached)
            forgotten = self._jobs.forget(Ref(owner, row.info.id), only_errors=message is not None)
            reached["jobs"] += forgotten
        if conversation is None:
            reached["items"] += self._items.forget(owner)
            reached["import_sources"] += self._imports.forget(owner)
            reached["notes"] += self._notes.erase(owner, None, None)
            reached["api_keys"] += self._api_keys.forget(owner)
        # Those of an owner as a whole; else one after the other, a conversation and those of its subagents.
        for id in [None] if conversation is None else [row.info.id for row in rows]:
            reached["replies"] += self._replies.forget(owner, id)
            self._erasures.append((owner, id, message, now))
        return erase_report(owner, conversation, message, reached, CANNOT_REACH, to_micros(now))

    def _erase_memory(self, owner: str, id: str) -> EraseReport:
        if not self._notes.erase_memory(owner, id):
            raise NotFound(f"no memory {id!r}")
        self._replies.blank(owner, None)
        now = self._database.clock()
        self._erasures.append((owner, None, id, now))
        return memory_erased(owner, id, CANNOT_REACH, to_micros(now))

    async def erasures(self) -> Sequence[tuple[str, str | None, str | None, datetime]]:
        return list(self._erasures)

    async def stats(self) -> Mapping[str, int]:
        entries = [entry for row in self._database.rows.values() for entry in row.entries]
        return {
            "conversations": sum(not row.is_erased for row in self._database.rows.values()),
            "messages": sum(entry.is_place and not entry.is_erased for entry in entries),
            "entries": len(entries),
            "erased_entries": sum(entry.is_erased for entry in entries),
            "flagged_secrets": sum(bool(entry.flags & Flag.SECRET) for entry in entries),
            "owners": len({ref.owner for ref in self._database.rows}),
            "jobs_waiting": (await self._jobs.report(0)).waiting,
            "jobs_dead": (await self._jobs.report(0)).dead,
            "payload_bytes": sum(len(entry.raw or b"") for entry in entries),
            "database_bytes": 0,
        }

    async def payload_blobs(self) -> Mapping[str, int]:
        return {}

    async def blob_at(self, ref: Ref, seq: int) -> str | None:
        return None

    async def delete_unused_blobs(self, names: Sequence[str]) -> int:
        return 0

    async def backup(self, target: Path) -> None:
        raise StoreError("a database in memory cannot be backed up; open a file with sqlite:///…")


def _to_erase(row: ConversationRow, message: str | None) -> list[Entry]:
    """The entries of one message, or all, that still say something."""
    entries = row.entries if message is None else row.by_id(message)
    return [entry for entry in entries if not entry.is_erased]


def _blank(row: ConversationRow, message: str | None, now: datetime, reached: Counter[str]) -> None:
    """Blank the text of a conversation or of one of its messages; `reached` counts what was erased."""
    reached.update(row.checkpoints.forget(None if message is None else traces_of(_to_erase(row, message))))
    for entry in _to_erase(row, message):
        row.entries[entry.seq - 1] = entry._replace(
            raw=None,
            salt=None,
            commitment=commitment_of(entry),
            tokens=0,
            flags=int(entry.flags | Flag.ERASED),
            updated_at=to_micros(now),
        )
        reached["entries"] += 1
        reached["words"] += row.words.pop(entry.seq, None) is not None
        reached["import_lines"] += row.lines.pop(entry.seq, None) is not None
        over = [one.id for one in row.compactions.values() if entry.is_place and holds(row.branches, one, entry)]
        reached["compactions"] += sum(row.compactions.pop(id, None) is not None for id in over)
    blanked = [answer for answer in row.answers.values() if message is None or answer.tells_of(message)]
    reached["answers"] += len(blanked)
    row.answers.update({answer.key: answer.blanked() for answer in blanked})
    if message is None:
        row.answers.clear()
        row.manifests.clear()
        row.prompts.clear()
        row.policy = None
        reached["uses"] += len(row.uses)
        row.uses.clear()
        row.is_erased = True
        row.blank_changes()
        row.info = replace(row.info, title=None, metadata={}, updated_at=now)
        reached["conversations"] += 1
