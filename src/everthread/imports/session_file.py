"""The file of a session, put together from its lines in the log: those it has, and those that it had and lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from heapq import merge
from typing import NamedTuple

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.imports import NOT_IN_FILE, ImportLine
from everthread.core.nouns import Ref
from everthread.imports.line_file import without_damage
from everthread.instance import Everthread

_PAGE = 1000


class SessionFile(NamedTuple):
    """The content of a session file."""

    content: bytes
    is_original: bool
    """Whether it is what the agent had written, byte for byte."""
    restored: int
    """How many messages are in it that the agent's own file had lost when it was last read."""
    unreadable: int
    """How many lines are not in it because they are no JSON."""
    has_gaps: bool
    """Whether something of the file is not in the log: it was erased here."""


class _Placed(NamedTuple):
    """A line and where its message stands in the conversation."""

    conversation: int
    place: int
    line: ImportLine


async def lines_of(et: Everthread, conversation: Conversation) -> AsyncIterator[ImportLine]:
    """All lines that a conversation has in the log, in the order in which they were written there."""
    after = 0
    ref = Ref(conversation.owner, conversation.id)
    while page := await et.store.imports.lines(ref, after=after, limit=_PAGE):
        for line in page:
            yield line
        after = page[-1].seq


def main_source(lines: Sequence[ImportLine]) -> int:
    """The file that most lines came from: a session can have been imported from several places."""
    return Counter(line.source for line in lines).most_common(1)[0][0]


async def whole_file(et: Everthread, conversation: Conversation, source: int) -> SessionFile:
    """The whole file: as it was last read, and with every message that it had before and no longer has."""
    placed = await _placed(et, conversation, source, 0)
    number = 0
    async for child in conversation.children():  # older files have their subagents' lines between their own
        number += 1
        placed += await _placed(et, child, source, number)
    there = sorted((one for one in placed if one.line.first_byte != NOT_IN_FILE), key=lambda one: one.line.first_byte)
    lost = _lost(placed)
    ends = [one.line.first_byte + len(one.line.line) for one in there]
    has_gaps = bool(there) and [one.line.first_byte for one in there] != [0, *ends[:-1]]
    content, unreadable = _joined(
        [one.line.line for one in merge(there, lost, key=lambda one: one[:2])], are_apart=bool(lost)
    )
    is_original = not (lost or unreadable or has_gaps)
    return SessionFile(content, is_original, len(lost), unreadable, has_gaps)


async def file_up_to(et: Everthread, conversation: Conversation, source: int, last_seq: int) -> SessionFile:
    """The file as far as an entry of the log, whether or not it still has all of that."""
    lines = [line async for line in lines_of(et, conversation) if line.source == source and line.seq <= last_seq]
    content, unreadable = _joined([line.line for line in lines], are_apart=True)
    return SessionFile(content, False, 0, unreadable, False)


def _lost(placed: Sequence[_Placed]) -> list[_Placed]:
    """For each message that the file has in no version, its newest line."""
    there = {one[:2] for one in placed if one.line.first_byte != NOT_IN_FILE}
    newest = {one[:2]: one for one in sorted(placed, key=lambda one: one.line.seq) if one[:2] not in there}
    return [newest[at] for at in sorted(newest)]


async def _placed(et: Everthread, conversation: Conversation, source: int, number: int) -> list[_Placed]:
    lines = [line async for line in lines_of(et, conversation) if line.source == source]
    places: dict[int, int] = {}
    if any(line.first_byte == NOT_IN_FILE for line in lines):
        ref = Ref(conversation.owner, conversation.id)
        for start in range(0, len(lines), _PAGE):
            seqs = [line.seq for line in lines[start : start + _PAGE]]
            places |= {entry.seq: entry.place_seq for entry in await et.store.log.find(ref, seqs=seqs)}
    return [_Placed(number, places.get(line.seq, line.seq), line) for line in lines]


def _joined(lines: Sequence[bytes], *, are_apart: bool) -> tuple[bytes, int]:
    """Lines one after the other without those that are no JSON, and how many those are. Where they did not stand so in
    their file, one that was its last may have no end."""
    ended = (line if not are_apart or line.endswith(b"\n") else line + b"\n" for line in lines)
    *found, rest = b"".join(ended).split(b"\n")
    unreadable = 0
    content = bytearray()
    for index, line in enumerate([*found, rest]):
        good = without_damage(line, is_first=not index)
        unreadable += good != line
        if good is not None:
            content += good
            content += b"\n" if index < len(found) else b""
    return bytes(content), unreadable


async def source_path(et: Everthread, owner: str, number: int) -> str:
    """Where a file was, by the number of its source."""
    for source in await et.store.imports.sources(owner):
        if source.number == number:
            return source.path
    raise NotFound("the file that this session came from is not known any more; name another with --output")
