"""Reading in pages, so that any length fits in little memory: messages along one path, entries, conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from everthread.core.entries import Entry, Kind, Revision
from everthread.core.errors import NotFound
from everthread.core.log import BranchName
from everthread.core.nouns import ConversationInfo, Message, Ref
from everthread.core.ports import ConversationRows, Log, PathQuery

PAGE = 500


async def stream(
    log: Log,
    ref: Ref,
    *,
    after: int,
    limit: int | None,
    branch: BranchName,
    revisions: bool,
    include_deleted: bool,
) -> AsyncIterator[Message]:
    """Yield the messages of a path with seq > after, oldest first; with `revisions`, older revisions first."""
    if branch is None and (limit is None or limit > PAGE):
        branch = await _active(log, ref)
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        pairs = await log.path(ref, PathQuery(branch=branch, after=after, limit=size, include_deleted=include_deleted))
        for message in await _with_older(log, ref, pairs) if revisions else _newest(pairs):
            yield message
        if len(pairs) < size:
            return
        after = pairs[-1][0].seq
        left = None if left is None else left - len(pairs)


async def _active(log: Log, ref: Ref) -> str:
    """Return the active branch by name, so that reading many pages stays on it when another becomes active."""
    rows, active = await log.branches(ref)
    return next(row.id for row in rows if row.number == active)


async def log(log: Log, ref: Ref) -> AsyncIterator[Entry]:
    """Every entry of a log, in order."""
    after = 0
    while page := await log.scan(ref, after=after, limit=PAGE):
        for entry in page:
            yield entry
        after = page[-1].seq


async def conversations(
    rows: ConversationRows, owner: str, *, parent_id: str | None = None, include_deleted: bool = False
) -> AsyncIterator[ConversationInfo]:
    """Every conversation of an owner, newest first; with `parent_id`, the children of that one."""
    position = None
    while True:
        page, position = await rows.list(
            owner, limit=PAGE, position=position, include_deleted=include_deleted, parent_id=parent_id
        )
        for info in page:
            yield info
        if position is None:
            return


async def descendants(rows: ConversationRows, owner: str, conversation: str) -> AsyncIterator[ConversationInfo]:
    """The children of a conversation, deleted ones too, each followed by its own descendants."""
    async for child in conversations(rows, owner, parent_id=conversation, include_deleted=True):
        yield child
        async for below in descendants(rows, owner, child.id):
            yield below


async def tail(
    log: Log, ref: Ref, count: int, *, before: int | None = None, branch: BranchName, include_deleted: bool
) -> list[Message]:
    """The newest messages of a path, or the newest before a seq, in order."""
    query = PathQuery(branch=branch, before=before, limit=count, newest_first=True, include_deleted=include_deleted)
    return _newest((await log.path(ref, query))[::-1])


async def one(log: Log, ref: Ref, id: str) -> Message:
    """The newest revision of a message, deleted or not."""
    found = [entry for entry in await log.find(ref, ids=[id]) if entry.change_kind != Revision.STUB]
    if not found:
        raise NotFound(f"no message {id!r} in conversation {ref.id!r}")
    newest = found[-1]
    if newest.is_erased:
        raise NotFound(f"message {id!r} was erased from conversation {ref.id!r}")
    # On several branches an id has several places: the newest revision says which one is its own.
    place = newest if newest.change_kind != Revision.REPLACE else next(e for e in found if e.seq == newest.revises)
    return Message(newest, place)


def _newest(pairs: Sequence[tuple[Entry, Entry]]) -> list[Message]:
    return [Message(newest, place) for place, newest in pairs]


async def _with_older(log: Log, ref: Ref, pairs: Sequence[tuple[Entry, Entry]]) -> list[Message]:
    revised = [place.id for place, newest in pairs if newest is not place]
    older: dict[str, list[Entry]] = {}
    for entry in await log.find(ref, ids=revised) if revised else ():
        if entry.kind == Kind.MESSAGE:
            older.setdefault(entry.id, []).append(entry)
    return [Message(entry, place) for place, newest in pairs for entry in older.get(place.id, [newest])]
