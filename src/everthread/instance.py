"""An open database of conversations: what `everthread.open` gives."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from everthread.compaction.policy import CompactionPolicy, apply_settings, apply_stored_settings
from everthread.conversation import MAX_QUERY_CHARACTERS, Conversation, check_title, dump_metadata
from everthread.core.blobs import BlobInfo
from everthread.core.embeddings import Embedder, Vectors
from everthread.core.errors import Conflict, Erased, Invalid, NotFound
from everthread.core.events import Event, Metrics
from everthread.core.ids import LOCAL, check_id, new_id, owner_scope
from everthread.core.jobs import JobReport, Pace
from everthread.core.nouns import ConversationInfo, EraseReport, Head, Hits, Page, Ref, VerifyReport
from everthread.core.ports import ListPosition, NewConversation, Store
from everthread.history import archive as archiving
from everthread.history import blob_check, full_history, import_archive
from everthread.history import verify as verifying
from everthread.history.arguments import check_count
from everthread.history.blob_check import BlobReport
from everthread.history.forgetting import forgotten
from everthread.history.full_history import FullHistory
from everthread.history.import_archive import ImportReport
from everthread.history.search import search_by_words
from everthread.jobs.handlers import job_handlers
from everthread.jobs.worker import Worker
from everthread.recall import embedding
from everthread.recall.knowledge import Knowledge
from everthread.recall.memories import Memories
from everthread.recall.search import search_by_meaning
from everthread.runtime import Runtime
from everthread.workspaces.conversation_workspaces import ConversationWorkspaces

MAX_PAGE = 1000


class Conversations:
    """The conversations of a database, by owner and id."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store

    async def create(
        self,
        *,
        owner: str = LOCAL,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        off_record: bool = False,
    ) -> Conversation:
        """A new conversation. Conflict when the owner has one by this id.

        One that is `off_record` is indexed nowhere, and erased when the database is closed.
        """
        new = NewConversation(
            owner=check_id(owner, "owner"),
            id=new_id() if id is None else check_id(id, "id"),
            parent_id=None if parent_id is None else check_id(parent_id, "parent_id"),
            title=check_title(title),
            metadata=dump_metadata({} if metadata is None else metadata),
            off_record=off_record,
        )
        return Conversation(self._runtime, await self._store.conversations.create(new))

    async def get(self, id: str, owner: str = LOCAL) -> Conversation:
        """NotFound when this owner has none by this id, also when another owner has. Deleted ones are found."""
        info = await self._store.conversations.get(Ref(check_id(owner, "owner"), check_id(id, "id")))
        return Conversation(self._runtime, info)

    async def ensure(
        self,
        id: str,
        owner: str = LOCAL,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        parent_id: str | None = None,
        off_record: bool = False,
    ) -> Conversation:
        """The conversation by this id, created with the other arguments when it does not exist yet."""
        with suppress(NotFound):
            return await self.get(id, owner)
        try:
            return await self.create(
                id=id, owner=owner, title=title, metadata=metadata, parent_id=parent_id, off_record=off_record
            )
        except Erased:
            raise
        except Conflict:  # somebody else created it between our look and our write
            return await self.get(id, owner)

    async def list(
        self,
        owner: str = LOCAL,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_deleted: bool = False,
        parent_id: str | None = None,
    ) -> Page[Conversation]:
        """One page, the newest conversation first. `next_cursor` is None on the last page."""
        check_id(owner, "owner")
        check_count(limit, "limit", most=MAX_PAGE)
        if parent_id is not None:
            check_id(parent_id, "parent_id")
        position = None if cursor is None else _position(cursor, owner)
        infos, following = await self._store.conversations.list(
            owner, limit=limit, position=position, include_deleted=include_deleted, parent_id=parent_id
        )
        return Page(
            items=[Conversation(self._runtime, info) for info in infos],
            next_cursor=None if following is None else _cursor(following, owner),
        )


def _cursor(position: ListPosition, owner: str) -> str:
    return f"{owner_scope(owner)}.{position.number}"


def _position(cursor: object, owner: str) -> ListPosition:
    found = re.fullmatch(r"(\w+)\.([0-9]{1,18})", cursor) if isinstance(cursor, str) else None
    if found is None or found[1] != owner_scope(owner):
        raise Invalid("is not one that list() gave for this owner; begin without a cursor", field="cursor")
    return ListPosition(int(found[2]))


class CompactionConfig:
    """How conversations are compacted, changeable while everything runs: for all of them, or for one."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store

    async def get(self, conversation: Conversation | None = None) -> CompactionPolicy:
        """What holds now, all levels taken together."""
        policy = self._runtime.policy
        one = _ref(conversation)
        for ref in (None,) if one is None else (None, one):
            policy = apply_stored_settings(policy, await self._set_at(ref))
        return policy

    async def set(self, changes: Mapping[str, Any], conversation: Conversation | None = None) -> CompactionPolicy:
        """Set these fields, for all conversations or for one; a field set to None goes back to what is below.

        Invalid names a field that does not exist or a value out of its range; nothing is changed then.
        """
        if not isinstance(changes, Mapping):
            raise Invalid(f"must be a dict of settings, not {type(changes).__name__}", field="changes")
        ref = _ref(conversation)
        base = self._runtime.policy

        def change(server: bytes | None, here: bytes | None) -> bytes | None:
            kept = {name: value for name, value in {**_fields(here), **changes}.items() if value is not None}
            below = base if ref is None else apply_stored_settings(base, _fields(server))
            apply_settings(below, {**kept, **{name: kept.get(name, getattr(below, name, None)) for name in changes}})
            return orjson.dumps(kept) if kept else None

        await self._store.views.change_policy(ref, change)
        return await self.get(conversation)

    async def _set_at(self, ref: Ref | None) -> dict[str, Any]:
        return _fields(await self._store.views.policy(ref))


def _fields(kept: bytes | None) -> dict[str, Any]:
    fields: dict[str, Any] = {} if kept is None else orjson.loads(kept)
    return fields


def _ref(conversation: Conversation | None) -> Ref | None:
    """An id alone does not say whose conversation it is, so it is not taken for one."""
    if conversation is None:
        return None
    if not isinstance(conversation, Conversation):
        kind = type(conversation).__name__
        raise Invalid(f"must be a Conversation, not {kind}; `conversations.get(id)` gives it", field="conversation")
    return Ref(conversation.owner, conversation.id)


class Everthread:
    """A database of conversations. Use it as an async context manager; closing is safe at any time."""

    def __init__(self, runtime: Runtime, pace: Pace | None = None) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._blobs = runtime.blobs
        self._clock = runtime.clock
        self._worker = None if pace is None else Worker(runtime.store.jobs, job_handlers(runtime), pace)
        self._door = asyncio.Lock()
        """Opening and closing take turns, so that each happens once however many tasks ask for it."""
        port = runtime.workspaces
        self._workspaces = None if port is None else ConversationWorkspaces(runtime.store, port, runtime.clock)
        self.conversations = Conversations(runtime)
        self.compaction_config = CompactionConfig(runtime)
        self.memories = Memories(runtime.store, runtime.embedder)
        self.knowledge = Knowledge(runtime.store, runtime.read, runtime.embedder)

    @property
    def store(self) -> Store:
        """The store behind it, for adapters and tools."""
        return self._store

    @property
    def embedder(self) -> Embedder | None:
        """What finds by meaning here; None where words alone are searched."""
        return self._runtime.embedder

    @property
    def vectors(self) -> Vectors:
        """Where vectors are kept, for adapters and tools."""
        return self._runtime.vectors or self._store.vectors

    @property
    def workspaces(self) -> ConversationWorkspaces:
        """The folders of conversations: uploads, and the files that tools read and write."""
        if self._workspaces is None:
            raise Conflict("it was opened without a place for workspaces; `everthread.open` gives it one")
        return self._workspaces

    @property
    def runtime(self) -> Runtime:
        """What its conversations work with, for the rooms that run turns and jobs."""
        return self._runtime

    @property
    def metrics(self) -> Metrics:
        """Counts of compactions, recall and turns here since it was opened: `values()`, `text()` for Prometheus."""
        return self._runtime.listener.metrics

    def hear(self, event: Event) -> None:
        """Let an event be logged and counted."""
        self._runtime.listener.hear(event)

    def recent_events(self) -> Sequence[tuple[datetime, Event]]:
        """What was told here lately, of all owners, the newest first."""
        return self._runtime.listener.recent

    async def __aenter__(self) -> Everthread:
        async with self._door:
            await self._store.open()
            if self._worker is not None:
                await self._worker.stand_by()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let background work end or go back, erase what is off the record, and let go of the database."""
        async with self._door:
            if self._worker is not None:
                await self._worker.stop()
            if self._runtime.vectors is not None:
                await self._runtime.vectors.close()
            await self._store.close()
            if self._workspaces is not None:
                await self._workspaces.close()

    def start_worker(self) -> None:
        """Begin at once to take jobs, also those of other processes; otherwise the first one written here does it."""
        if self._worker is None:
            raise Conflict("it was opened without a worker; open it with worker=True")
        self._worker.start()

    async def jobs(self, *, limit: int = 100) -> JobReport:
        """What waits to be done in the background, what runs, and what was given up with its error."""
        return await self._store.jobs.report(check_count(limit, "limit", most=MAX_PAGE))

    async def retry_job(self, id: int) -> None:
        """Let a job that was given up wait again; NotFound when there is none by this id."""
        await self._store.jobs.retry(check_count(id, "id"))

    async def search(
        self,
        text: str,
        *,
        owner: str = LOCAL,
        conversation: str | None = None,
        limit: int = 20,
        meaning: bool = False,
    ) -> Hits:
        """Messages by their words, best first; words may be Chinese, of one character or more.

        With `meaning`, what has to do with the text, also in other words, as `Conversation.recall` finds it. Where that
        cannot be, words answer alone: `by_meaning` of the hits tells it, and `why_words_alone`.
        """
        if not isinstance(text, str):
            raise Invalid(f"must be a string, not {type(text).__name__}", field="text")
        if len(text) > MAX_QUERY_CHARACTERS:
            raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(text)}", field="text")
        check_id(owner, "owner")
        check_count(limit, "limit", most=MAX_PAGE)
        if conversation is not None:
            await self._store.conversations.get(Ref(owner, check_id(conversation, "conversation")))
        if meaning:
            return await search_by_meaning(self._runtime.sources, owner, conversation, text, limit)
        return await search_by_words(self._store.search, text, owner=owner, conversation=conversation, limit=limit)

    async def index_ready(self, conversation: Conversation) -> None:
        """Make the vectors of all that was said in a conversation up to now, unless they are there already.

        Without an embedder there is nothing to wait for: by their words, messages are found as soon as they are there.
        """
        ref = _ref(conversation)
        if ref is not None and self._runtime.meaning is not None:
            await embedding.catch_up(self._store, self._runtime.meaning, ref)

    async def reindex(
        self,
        *,
        owner: str | None = None,
        conversation: str | None = None,
        anew: bool = False,
        on_entries: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Make the vectors that are missing, of everything, of an owner or of one conversation; with `anew`, all of
        them. Gives how many passages were embedded; `on_entries` hears how many entries of a log were gone through.

        Memories and documents go along unless a conversation is named: theirs are made when they are added, and would
        be those of another embedder once it changed.

        Conflict when there is no embedder.
        """
        meaning = self._runtime.meaning
        if meaning is None:
            raise Conflict("there is no embedder here, and words need no index made; see `everthread models`")
        made = 0
        for head in await self._store.maintenance.heads():
            if owner in (None, head.owner) and conversation in (None, head.id) and head.deleted_at is None:
                made += await embedding.index_conversation(self._store, meaning, head, anew=anew)
                on_entries(head.entry_count)
        if conversation is None:
            made += await embedding.index_notes(self._store, meaning.embedder, owner, anew=anew)
        return made

    async def full_history(
        self,
        thread_id: str,
        owner: str = LOCAL,
        *,
        merge_checkpoint: bool = True,
        saver: Any = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> FullHistory:
        """Everything that was said in a thread, in the shape of LangGraph's `/threads/{id}/state`.

        With the thread's checkpointer as `saver`, what only its newest checkpoint has is put where its list has it.
        `source` says where the messages are from, `complete` and `gaps` whether some may be missing: a thread from
        before the archive is answered from its checkpoint, and says so. Without a `limit` all messages come at once;
        with one, about as many, and `next_cursor` for those after them. NotFound when nobody knows the thread.
        """
        ref = Ref(check_id(owner, "owner"), check_id(thread_id, "thread_id"))
        if limit is not None and check_count(limit, "limit", most=MAX_PAGE) == 0:
            raise Invalid("must be at least 1", field="limit")
        is_asked = merge_checkpoint and saver is not None
        found = await full_history.snapshot(saver, ref.id, ref.owner) if is_asked else None
        metadata = await self._metadata(ref)
        if metadata is None and found is None:
            raise NotFound(f"no thread {ref.id!r}, neither in the log nor in a checkpoint")
        return await full_history.read(self._store, ref, found=found, metadata=metadata, limit=limit, cursor=cursor)

    async def _metadata(self, ref: Ref) -> Mapping[str, Any] | None:
        try:
            return (await self._store.conversations.get(ref)).metadata
        except NotFound:
            return None

    async def archive(self, *, owner: str = LOCAL, conversations: Sequence[str] | None = None) -> AsyncIterator[bytes]:
        """An archive of these conversations with their subagents' (of all of an owner's), to be written to a file.

        It holds the whole log and proves itself; read in again elsewhere, it gives the same archive.
        """
        check_id(owner, "owner")
        infos = [info async for info in self._to_archive(owner, conversations)]
        async for piece in archiving.archive(self._store, archiving.parents_first(infos)):
            yield piece

    async def _to_archive(self, owner: str, conversations: Sequence[str] | None) -> AsyncIterator[ConversationInfo]:
        seen: set[str] = set()
        async for id in self._all_ids(owner) if conversations is None else self._with_descendants(owner, conversations):
            if id not in seen:
                seen.add(id)
                yield await self._store.conversations.get(Ref(owner, id))

    async def _with_descendants(self, owner: str, conversations: Sequence[str]) -> AsyncIterator[str]:
        for id in conversations:
            yield check_id(id, "conversation")
            async for below in self._descendants(owner, id):
                yield below

    async def _all_ids(self, owner: str) -> AsyncIterator[str]:
        position = None
        while True:
            page, position = await self._store.conversations.list(
                owner, limit=500, position=position, include_deleted=True, parent_id=None
            )
            for info in page:
                yield info.id
            if position is None:
                return

    async def read_archive(self, pieces: AsyncIterable[bytes], *, owner: str = LOCAL) -> ImportReport:
        """Read an archive in, for an owner. Conversations that are here already, entry for entry, are left as they are;
        Conflict for one that has other messages. Each is written whole or not at all."""
        return await import_archive.import_archive(self._store, check_id(owner, "owner"), pieces)

    async def heads(self) -> list[Head]:
        """The end of every log: keep it elsewhere, and `verify` proves later that nothing was cut off."""
        return await verifying.heads(self._store)

    async def verify(self, against: Iterable[Head] | None = None, *, owner: str | None = None) -> VerifyReport:
        """Hash every entry anew and follow every chain, of everybody or of one owner."""
        whose = None if owner is None else check_id(owner, "owner")
        return await verifying.verify(self._store, against, owner=whose)

    async def erase(
        self, *, owner: str | None = None, conversation: str | None = None, message: str | None = None
    ) -> EraseReport:
        """Destroy the text of a message, a conversation, or everything of an owner. It cannot be undone.

        A conversation goes with its children, the conversations of its subagents.
        The owner may be left out for `local`, except when everything of it is to go.
        """
        if owner is None and conversation is None:
            raise Invalid('name the owner whose every conversation is to be erased, such as "local"', field="owner")
        if message is not None and conversation is None:
            raise Invalid("name the conversation of the message too", field="conversation")
        whose = check_id(LOCAL if owner is None else owner, "owner")
        if conversation is None:
            return await self._erase(whose, None, None)
        check_id(conversation, "conversation")
        if message is not None:
            return await self._erase(whose, conversation, check_id(message, "message"))
        return await self._erase_with_children(whose, conversation)

    async def _erase_with_children(self, owner: str, conversation: str) -> EraseReport:
        """A conversation goes with what its subagents were told: they speak of the same things."""
        descendants = [id async for id in self._descendants(owner, conversation)]
        report = await self._erase(owner, conversation, None)
        for id in descendants:
            report = _both(report, await self._erase(owner, id, None))
        return report

    async def _erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        """The database first, then what lies outside of it: whoever writes there late finds it erased here."""
        report = await self._store.maintenance.erase(owner, conversation, message)
        if self._runtime.vectors_outside is not None:
            report = await forgotten(self._runtime.vectors_outside, self._store, report)
        return report if message is not None else await self._with_files(report)

    async def _with_files(self, report: EraseReport) -> EraseReport:
        """The files go after the text: a late upload finds the conversation erased."""
        if self._workspaces is None:
            return report
        count = await self._workspaces.erase(report.owner, report.conversation_id)
        return replace(report, reached={**report.reached, "workspace_files": count}) if count else report

    async def _descendants(self, owner: str, conversation: str) -> AsyncIterator[str]:
        position = None
        while True:
            children, position = await self._store.conversations.list(
                owner, limit=100, position=position, include_deleted=True, parent_id=conversation
            )
            for child in children:
                yield child.id
                async for id in self._descendants(owner, child.id):
                    yield id
            if position is None:
                return

    async def check_blobs(self) -> BlobReport:
        """Hold the blob store against the log: what is missing, damaged, or left over."""
        return await blob_check.check(self._store, self._blobs) if self._blobs else BlobReport(referred=0)

    async def sweep_blobs(
        self, *, older_than: timedelta = timedelta(days=1), dry_run: bool = False
    ) -> Sequence[BlobInfo]:
        """Delete blobs that a crash left without a reference; give those that went, or would go.

        Younger ones are left: somebody may be about to refer to them.
        """
        if self._blobs is None:
            return ()
        return await blob_check.sweep(self._store, self._blobs, before=self._clock() - older_than, dry_run=dry_run)

    async def stats(self) -> Mapping[str, int]:
        """Counts and bytes of the whole database."""
        return await self._store.maintenance.stats()

    async def backup(self, target: str | Path) -> None:
        """A consistent copy, taken while others go on working."""
        await self._store.maintenance.backup(Path(target))


def _both(one: EraseReport, other: EraseReport) -> EraseReport:
    """Two erasures as one: the first names what was asked for."""
    reached = Counter(one.reached) + Counter(other.reached)
    return replace(
        one,
        conversations=one.conversations + other.conversations,
        entries=one.entries + other.entries,
        reached=dict(reached),
        cannot_reach=tuple(dict.fromkeys([*one.cannot_reach, *other.cannot_reach])),
    )
