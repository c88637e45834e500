"""Erasing in memory: an entry keeps its place and its proof, and loses what it said."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime

from everthread.adapters.stores.layout import traces_of
from everthread.adapters.stores.memory.rows import Kept
from everthread.core.chain import commitment_of
from everthread.core.clock import to_micros
from everthread.core.entries import Entry, Flag
from everthread.core.paths import holds


def to_erase(row: Kept, message: str | None) -> list[Entry]:
    """The entries of one message, or all, that still say something."""
    entries = row.entries if message is None else row.by_id(message)
    return [entry for entry in entries if not entry.is_erased]


def blank(row: Kept, message: str | None, now: datetime, reached: Counter[str]) -> None:
    """Take from a conversation what it, or one of its messages, said; `reached` counts what that was."""
    reached.update(row.shelf.forget(None if message is None else traces_of(to_erase(row, message))))
    for entry in to_erase(row, message):
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
        row.info = replace(row.info, title=None, metadata={}, updated_at=now)
        reached["conversations"] += 1
