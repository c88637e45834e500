"""Where imported messages come from, in memory. Their lines are in the rows of their conversations."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.in_memory.rows import InMemoryDatabase
from everthread.adapters.stores.layout import line_with
from everthread.core.imports import NOT_IN_FILE, ImportLine, ImportSource
from everthread.core.nouns import Ref


class InMemoryImports:
    """`store.imports` of core/ports.py."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database
        self._kept: dict[tuple[str, str], ImportSource] = {}
        self._count = 0

    async def sources(self, owner: str) -> Sequence[ImportSource]:
        return [self._kept[key] for key in sorted(self._kept) if key[0] == owner]

    async def source(self, owner: str, path: str) -> ImportSource | None:
        return self._kept.get((owner, path))

    async def keep_source(self, owner: str, source: ImportSource) -> int:
        known = self._kept.get((owner, source.path))
        self._count += known is None
        number = self._count if known is None else known.number
        self._kept[owner, source.path] = source._replace(number=number)
        return number

    async def lines(self, ref: Ref, *, after: int, limit: int) -> Sequence[ImportLine]:
        lines = self._database.row(ref).lines
        return [lines[seq] for seq in sorted(lines) if seq > after][:limit]

    async def write_at(self, ref: Ref, source: int, first_byte: int, more: bytes) -> None:
        lines = self._database.row(ref).lines
        before = [one for one in lines.values() if one.source == source and 0 <= one.first_byte <= first_byte]
        if before:
            last = max(before, key=lambda one: one.first_byte)
            line = line_with(last.first_byte, last.line, first_byte, more)
            lines[last.seq] = last if line is None else last._replace(line=line)

    async def detach_lines(self, ref: Ref, source: int) -> None:
        lines = self._database.row(ref).lines
        for line in [one for one in lines.values() if one.source == source]:
            lines[line.seq] = line._replace(first_byte=NOT_IN_FILE)

    def forget(self, owner: str) -> int:
        """Forget which files an owner imported."""
        gone = [key for key in self._kept if key[0] == owner]
        for key in gone:
            del self._kept[key]
        return len(gone)
