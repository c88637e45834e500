"""An open database of conversations: what `everthread.open` gives."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, get_args

import orjson

from everthread.compaction.policy import CompactionPolicy, apply_settings, apply_stored_settings
from everthread.conversation import MAX_QUERY_CHARACTERS, Conversation, check_title, dump_metadata
from everthread.core.blobs import BlobInfo
from everthread.core.clock import system_clock
from everthread.core.embeddings import Embedder, Vectors
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreError
from everthread.core.events import Metrics
from everthread.core.ids import LOCAL, check_conversation_id, check_id, new_id, owner_scope
from everthread.core.jobs import JobReport, JobState, Pace
from everthread.core.nouns import (
    MAX_PAGE,
    ConversationInfo,
    EraseReport,
    Head,
    Hit,
    Hits,
    Message,
    Page,
    Ref,
    VerifyReport,
)
from everthread.core.ports import ListOrder, ListPosition, NewConversation, Store
from everthread.history import archive as archiving
from everthread.history import blob_check, full_history, import_archive, read
from everthread.history import verify as verifying
from everthread.history.arguments import check_count
from everthread.history.blob_check import BlobReport
from everthread.history.erase_vectors import erase_vectors
from everthread.history.full_history import CheckpointReader, FullHistory
from everthread.history.holds import RECORDS, Holds
from everthread.history.import_archive import Archive, ImportReport
from everthread.history.search import search_by_words
from everthread.jobs.handlers import job_handlers
from everthread.jobs.worker import Worker
from everthread.recall import embedding
from everthread.recall.knowledge import Knowledge
from everthread.recall.memories import Memories
from everthread.recall.search import search_by_meaning
from everthread.runs.engine import RunEngine
from everthread.runtime import Runtime
from everthread.workspaces.conversation_workspaces import ConversationWorkspaces


class Conversations:
    """The conversations of a database, by owner and id: `et.conversations`.

    ```python
    conv = await et.conversations.ensure("support-4711", owner="alice")
    print([conversation.title for conversation in await et.conversations.list("alice")])
    ```
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store

    async def create(
        self,
        *,
        owner: str = LOCAL,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        id: str | int | None = None,
        parent_id: str | None = None,
        off_record: bool = False,
    ) -> Conversation:
        """Create a conversation. Raises Conflict when the owner already has one with this id.

        A conversation that is `off_record` is never indexed, and erased when the database is closed. `parent_id` makes
        it the conversation of a subagent.

        ```python
        conv = await et.conversations.create(title="Holiday", metadata={"channel": "web"})
        ```
        """
        new = NewConversation(
            owner=check_id(owner, "owner"),
            id=new_id() if id is None else check_conversation_id(id),
            parent_id=None if parent_id is None else check_conversation_id(parent_id, "parent_id"),
            title=check_title(title),
            metadata=dump_metadata({} if metadata is None else metadata),
            off_record=off_record,
        )
        return Conversation(self._runtime, await self._store.conversations.create(new))

    async def get(self, id: str | int, owner: str = LOCAL) -> Conversation:
        """Return a conversation, also a deleted one. Raises NotFound when this owner has none with this id.

        A number is an id too: 123 is "123".
        """
        info = await self._store.conversations.get(Ref(check_id(owner, "owner"), check_conversation_id(id)))
        return Conversation(self._runtime, info)

    async def ensure(
        self,
        id: str | int,
        owner: str = LOCAL,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        parent_id: str | None = None,
        off_record: bool = False,
    ) -> Conversation:
        """Return the conversation with this id, and create it with the other arguments if it does not exist yet."""
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

    async def top(self, conversation: Conversation) -> Conversation:
        """The conversation that a subagent's works for in the end; of another, itself."""
        while conversation.parent_id is not None:
            conversation = await self.get(conversation.parent_id, conversation.owner)
        return conversation

    def unsaved(self, id: str, owner: str = LOCAL) -> Conversation:
        """A conversation that does not exist yet and is not created by this: something to check a request against."""
        now = self._runtime.clock()
        info = ConversationInfo(
            owner=check_id(owner, "owner"),
            id=check_conversation_id(id),
            parent_id=None,
            title=None,
            metadata={},
            is_active=True,
            off_record=False,
            created_at=now,
            updated_at=now,
            deleted_at=None,
            entry_count=0,
            chain=b"",
        )
        return Conversation(self._runtime, info)

    async def list(
        self,
        owner: str = LOCAL,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_deleted: bool = False,
        parent_id: str | None = None,
        order: ListOrder = "created",
    ) -> Page[Conversation]:
        """List an owner's conversations page by page, newest first: by their creation or, with `order="said"`, by when
        something was said in them last. One in which something is said meanwhile moves to the front, so only pages in
        the order of creation are sure to show each conversation.

        ```python
        page = await et.conversations.list("local", limit=20)
        print([conversation.title for conversation in page], page.next_cursor)
        ```
        """
        check_id(owner, "owner")
        check_count(limit, "limit", most=MAX_PAGE)
        if parent_id is not None:
            parent_id = check_conversation_id(parent_id, "parent_id")
        if order not in get_args(ListOrder):
            raise Invalid(f"must be one of {', '.join(get_args(ListOrder))}", field="order")
        position = None if cursor is None else _position(cursor, owner)
        infos, following = await self._store.conversations.list(
            owner, limit=limit, position=position, include_deleted=include_deleted, parent_id=parent_id, order=order
        )
        return Page(
            items=[Conversation(self._runtime, info) for info in infos],
            next_cursor=None if following is None else _cursor(following, owner),
        )


def _cursor(position: ListPosition, owner: str) -> str:
    return f"{owner_scope(owner)}.{position.number}.{position.said_at}"


def _position(cursor: object, owner: str) -> ListPosition:
    found = re.fullmatch(r"(\w+)\.([0-9]{1,18})\.(-?[0-9]{1,18})", cursor) if isinstance(cursor, str) else None
    if found is None or found[1] != owner_scope(owner):
        raise Invalid("was not returned by a list of this owner; begin without a cursor", field="cursor")
    return ListPosition(int(found[2]), int(found[3]))


class CompactionConfig:
    """The stored compaction settings, for all conversations or for one; they can change at any time.

    ```python
    await et.compaction_config.set({"threshold": 0.7})
    await et.compaction_config.set({"enabled": False}, conv)
    print((await et.compaction_config.get(conv)).threshold)
    ```
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store

    async def get(self, conversation: Conversation | None = None) -> CompactionPolicy:
        """Return the settings in effect, for everything or for one conversation."""
        policy = self._runtime.policy
        one = _ref(conversation)
        for ref in (None,) if one is None else (None, one):
            policy = apply_stored_settings(policy, await self._set_at(ref))
        return policy

    async def set(self, changes: Mapping[str, Any], conversation: Conversation | None = None) -> CompactionPolicy:
        """Change some settings for all conversations or for one, and return those in effect.

        A field set to None returns to its default from the level below. Raises Invalid, and changes nothing, when a
        field is unknown or its value is out of range.
        """
        if not isinstance(changes, Mapping):
            raise Invalid(f"must be a dict of settings, not {type(changes).__name__}", field="changes")
        ref = _ref(conversation)
        base = self._runtime.policy
        if ref is None and changes.get("compact_ahead") is not None:
            raise Invalid(
                "can only be set per conversation here; set it globally in the settings or with open(compaction=…)",
                field="compact_ahead",
            )

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


def _watch_timings(runtime: Runtime) -> None:
    watch, jobs = runtime.listener.watch, runtime.job_timings
    watch("append_seconds", "From a write to the log until it was durable.", lambda: {(): runtime.appends})
    watch("database_wait_seconds", "How long calls waited for the database.", lambda: {(): runtime.store.waits})
    watch("job_seconds", "How long background jobs took, by kind and outcome.", jobs.read, jobs.labels)


class Everthread:
    """An open database of conversations: what `everthread.open` returns. Use it as an async context manager.

    ```python
    async with everthread.open("memory://") as et:
        conv = await et.conversations.create(title="Trip")
        await conv.append({"role": "user", "content": "Hello"})
        print(len(await et.search("hello")))
    ```
    """

    def __init__(self, runtime: Runtime, pace: Pace | None = None) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._blobs = runtime.blobs
        self._clock = runtime.clock
        self._worker = (
            None if pace is None else Worker(runtime.store.jobs, job_handlers(runtime), pace, runtime.job_timings)
        )
        _watch_timings(runtime)
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
        """The store behind it. Internal: for the adapters and doors of this package, and without any promise."""
        return self._store

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that finds by meaning; None when only words are searched."""
        return self._runtime.embedder

    @property
    def vectors(self) -> Vectors:
        """Where vectors are kept."""
        return self._runtime.vectors or self._store.vectors

    @property
    def workspaces(self) -> ConversationWorkspaces:
        """The folders of the conversations: uploads, and the files that tools read and write."""
        if self._workspaces is None:
            raise Conflict("the database has no workspace storage; use everthread.open()")
        return self._workspaces

    @property
    def runtime(self) -> Runtime:
        """What its conversations work with. Internal: for turns, jobs and doors, and without any promise."""
        return self._runtime

    @cached_property
    def runs(self) -> RunEngine:
        """Runs the turns of this process. Internal: for agents and doors, and without any promise."""
        return RunEngine(self._runtime, system_clock)

    @cached_property
    def holds(self) -> Holds:
        """Legal holds: what must not be erased."""
        return Holds(self._store)

    @property
    def metrics(self) -> Metrics:
        """Counters of compactions, recall and turns in this process since it was opened."""
        return self._runtime.listener.metrics

    def __enter__(self) -> NoReturn:
        raise TypeError("write `async with everthread.open(…)`, or without async `with everthread.open_sync(…)`")

    def __exit__(self, *_: object) -> None:
        """Without it Python would say only that this is no context manager."""

    async def __aenter__(self) -> Everthread:
        async with self._door:
            await self._store.open()
            if self._workspaces is not None:
                await self._workspaces.finish_erasures()
            if self._worker is not None:
                await self._worker.stand_by()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the database: interrupt what runs, finish or return background work, and erase what is off the record.
        Safe at any time."""
        async with self._door:
            if "runs" in self.__dict__:
                await self.runs.close(0)
            if self._worker is not None:
                await self._worker.stop()
            if self._runtime.vectors is not None:
                await self._runtime.vectors.close()
            await self._store.close()
            if self._workspaces is not None:
                await self._workspaces.close()

    def start_worker(self) -> None:
        """Start taking jobs at once, also those of other processes.

        Otherwise the first job written here starts the worker.
        """
        if self._worker is None:
            raise Conflict("it was opened without a worker; open it with worker=True")
        self._worker.start()

    async def stop_worker(self) -> None:
        """Take no more jobs. Those that run may end within their time, then they go back to the queue.

        Closing the database does the same; a server calls it as soon as it is told to stop.
        """
        if self._worker is not None:
            await self._worker.stop()

    async def jobs(self, *, limit: int = 100, state: JobState | None = None) -> JobReport:
        """Report the background jobs: which wait, which run, and which were given up with what error.

        With a `state`, `jobs` of the report are only those in it; the counts are of all.
        """
        if state is not None and not isinstance(state, JobState):
            raise Invalid(f"must be a JobState, not {state!r}", field="state")
        return await self._store.jobs.report(check_count(limit, "limit", most=MAX_PAGE), state)

    async def retry_job(self, id: int) -> None:
        """Let a job that was given up run again, before all automatic ones.

        Raises NotFound when there is none with this id.
        """
        await self._store.jobs.retry(check_count(id, "id"))

    async def retry_dead_jobs(self) -> int:
        """Let all jobs that were given up run again, each with the priority it had, and return how many there were."""
        return await self._store.jobs.retry_all()

    async def discard_job(self, id: int) -> None:
        """Delete a job that was given up. What it was to do is done by the next job of its kind and conversation.

        Raises NotFound when there is none with this id.
        """
        await self._store.jobs.discard(check_count(id, "id"))

    async def search(
        self,
        text: str,
        *,
        owner: str = LOCAL,
        conversation: str | None = None,
        limit: int = 20,
        meaning: bool = False,
        show_secrets: bool = False,
    ) -> Hits:
        """Search an owner's messages by words, best first. Words may be Chinese, even of a single character.

        With `meaning`, messages that are related to the text in other words are found too, as in `Conversation.recall`.
        When that is not possible only words are searched; `by_meaning` and `why_words_alone` of the result say so.
        What looks like a credential is masked in the snippets, unless `show_secrets`.

        ```python
        for hit in await et.search("peanut allergy", limit=5):
            print(hit.conversation_id, hit.seq, hit.snippet)
        ```
        """
        if not isinstance(text, str):
            raise Invalid(f"must be a string, not {type(text).__name__}", field="text")
        if len(text) > MAX_QUERY_CHARACTERS:
            raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(text)}", field="text")
        check_id(owner, "owner")
        check_count(limit, "limit", most=MAX_PAGE)
        if conversation is not None:
            conversation = check_conversation_id(conversation, "conversation")
            await self._store.conversations.get(Ref(owner, conversation))
        if meaning:
            hits = await search_by_meaning(
                self._runtime.recall_services, owner, conversation, text, limit, show_secrets=show_secrets
            )
            await self._runtime.embed_if_behind(hits.is_behind, owner, conversation)
            return hits
        return await search_by_words(
            self._store.search, text, owner=owner, conversation=conversation, limit=limit, show_secrets=show_secrets
        )

    async def index_ready(self, conversation: Conversation) -> None:
        """Wait until everything said in a conversation so far can be found by meaning.

        Without an embedder this returns at once: words can be found as soon as a message is stored.
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
        """Embed everything that has no vector yet, and return how many passages that were.

        Of everything, of one owner or of one conversation; with `anew`, existing vectors are made again. Unless a
        conversation is named, memories and documents are included: their vectors are made when they are added, and are
        useless after a change of embedder. `on_entries` is called with the number of log entries processed. Raises
        Conflict when there is no embedder.
        """
        meaning = self._runtime.meaning
        if meaning is None:
            raise Conflict(
                "no embedder is configured, and search by words needs no reindexing; see `everthread models`"
            )
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
        saver: CheckpointReader | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> FullHistory:
        """Return everything that was said in a thread, in the format of LangGraph's `/threads/{id}/state`.

        Given the thread's checkpointer as `saver`, messages that only its newest checkpoint has are merged in at their
        place. `source` says where the messages come from, `complete` and `gaps` whether some may be missing, as in a
        thread that is older than its archive. With a `limit`, about that many messages come at once, and `next_cursor`
        leads to the rest. Raises NotFound when neither the log nor the checkpointer knows the thread.
        """
        ref = Ref(check_id(owner, "owner"), check_conversation_id(thread_id, "thread_id"))
        if limit is not None and check_count(limit, "limit", most=MAX_PAGE) == 0:
            raise Invalid("must be at least 1", field="limit")
        found = None
        if merge_checkpoint and saver is not None:
            found = await full_history.snapshot(saver, ref.id, ref.owner)
        metadata = await self._metadata(ref)
        if metadata is None and found is None:
            raise NotFound(f"no thread {ref.id!r}, neither in the log nor in a checkpoint")
        return await full_history.read(self._store, ref, found=found, metadata=metadata, limit=limit, cursor=cursor)

    async def _metadata(self, ref: Ref) -> Mapping[str, Any] | None:
        try:
            return (await self._store.conversations.get(ref)).metadata
        except NotFound:
            return None

    async def export_archive(
        self, *, owner: str = LOCAL, conversations: Sequence[str] | None = None
    ) -> AsyncIterator[bytes]:
        """Export conversations, with those of their subagents, as an archive; by default all of an owner's.

        The archive contains the whole log and its proof. Importing it elsewhere and exporting again gives the same
        bytes.

        ```py
        with open("trip.archive", "wb") as file:
            async for piece in et.export_archive(conversations=["trip"]):
                file.write(piece)
        ```
        """
        check_id(owner, "owner")
        refs = archiving.parents_first(await self._to_archive(owner, conversations))
        async for piece in archiving.archive(self._store, refs):
            yield piece

    async def _to_archive(self, owner: str, conversations: Sequence[str] | None) -> Sequence[ConversationInfo]:
        rows = self._store.conversations
        if conversations is None:
            return [info async for info in read.conversations(rows, owner, include_deleted=True)]
        if isinstance(conversations, str | bytes) or not isinstance(conversations, Iterable):
            raise Invalid(f"must be a list of ids such as [{conversations!r}]", field="conversations")
        found: dict[str, ConversationInfo] = {}
        for id in conversations:
            info = await rows.get(Ref(owner, check_conversation_id(id, "conversation")))
            found[info.id] = info
            found |= {below.id: below async for below in read.descendants(rows, owner, info.id)}
        return list(found.values())

    async def import_archive(self, pieces: Archive, *, owner: str = LOCAL) -> ImportReport:
        """Import an archive for an owner: its bytes, the path of its file, a file that is open for reading bytes, or
        the pieces as `export_archive` gives them.

        Conversations that are already here, entry for entry, are skipped. Raises Conflict for one that has different
        messages here. Each conversation is imported completely or not at all.
        """
        check_id(owner, "owner")
        async with aclosing(import_archive.pieces_of(pieces)) as read:
            return await import_archive.import_archive(self._store, owner, read)

    async def heads(self) -> list[Head]:
        """Return the end of every log. Keep it elsewhere: `verify` can later prove that nothing was cut off."""
        return await verifying.heads(self._store)

    async def verify(
        self, against: Iterable[Head] | None = None, *, owner: str | None = None, conversation: str | None = None
    ) -> VerifyReport:
        """Recompute the hash of every entry and follow every chain: everybody's, one owner's, or one conversation's.

        Raises NotFound for a conversation that does not exist. Of an owner who has none, `report.conversations` is 0.

        ```python
        report = await et.verify()
        assert report.ok, report.problems
        ```
        """
        whose = None if owner is None else check_id(owner, "owner")
        which = None if conversation is None else check_id(conversation, "conversation")
        return await verifying.verify(self._store, against, owner=whose, conversation=which)

    async def erase(
        self, *, owner: str | None = None, conversation: str | None = None, message: str | None = None
    ) -> EraseReport:
        """Destroy the text of a message, of a conversation, or of everything an owner has. This cannot be undone.

        A conversation goes with its children, the conversations of its subagents. `owner` defaults to `local`, except
        when everything of an owner is to be erased. Raises Held while a legal hold is on any of it (`et.holds`).

        ```python
        report = await et.erase(conversation="trip", message="m1")
        print(report.reached, report.cannot_reach)
        ```
        """
        if owner is None and conversation is None:
            raise Invalid('name the owner whose every conversation is to be erased, such as "local"', field="owner")
        if message is not None and conversation is None:
            raise Invalid("required together with a message", field="conversation")
        whose = check_id(LOCAL if owner is None else owner, "owner")
        conversation = None if conversation is None else check_conversation_id(conversation, "conversation")
        await self.holds.check(whose, conversation)
        was_held = bool(await self.holds.list(whose, include_released=True))  # once it is erased, nothing may fail
        if message is not None and conversation is not None:
            report = await self._erase(whose, conversation, check_id(message, "message"))
        elif conversation is None:
            report = await self._erase(whose, None, None)
        else:
            report = await self._erase_with_children(whose, conversation)
        if was_held:
            report = replace(report, cannot_reach=(*report.cannot_reach, RECORDS))
        return report

    async def _erase_with_children(self, owner: str, conversation: str) -> EraseReport:
        """A conversation goes with what its subagents were told: they speak of the same things. The database does it in
        one transaction, and notes each of them: whatever lies outside is found there, here or at the next opening."""
        below = [one.id async for one in read.descendants(self._store.conversations, owner, conversation)]
        report = await self._store.maintenance.erase(owner, conversation, None)
        for id in (conversation, *below):
            report = await self._erase_outside(replace(report, conversation_id=id))
        return replace(report, conversation_id=conversation, cannot_reach=tuple(dict.fromkeys(report.cannot_reach)))

    async def _erase(self, owner: str, conversation: str | None, message: str | None) -> EraseReport:
        """The database first, then what lies outside of it: whoever writes there late finds it erased here."""
        return await self._erase_outside(await self._store.maintenance.erase(owner, conversation, message))

    async def _erase_outside(self, report: EraseReport) -> EraseReport:
        if self._runtime.vectors_outside is not None:
            report = await erase_vectors(self._runtime.vectors_outside, self._store, report)
        return report if report.message_id is not None else await self._with_files(report)

    async def _with_files(self, report: EraseReport) -> EraseReport:
        """The files go after the text: a late upload finds the conversation erased."""
        if self._workspaces is None:
            return report
        try:
            count = await self._workspaces.erase(report.owner, report.conversation_id)
        except StoreError as problem:  # the text is gone: what is left outside is named, and tried again
            left = f"files in {self._workspaces.root}, until a process can remove them ({problem})"
            return replace(report, cannot_reach=(*report.cannot_reach, left))
        files = report.reached.get("workspace_files", 0) + count
        return replace(report, reached={**report.reached, "workspace_files": files}) if count else report

    async def check_blobs(self) -> BlobReport:
        """Compare the blob store with the log: what is missing, damaged or unused."""
        return await blob_check.check(self._store, self._blobs) if self._blobs else BlobReport(referred=0)

    async def sweep_blobs(
        self, *, older_than: timedelta = timedelta(days=1), dry_run: bool = False
    ) -> Sequence[BlobInfo]:
        """Delete blobs that a crash left without a reference, and return those that were, or would be, deleted.

        Recent ones are kept: a write in progress may be about to refer to them.
        """
        if self._blobs is None:
            return ()
        return await blob_check.sweep(self._store, self._blobs, before=self._clock() - older_than, dry_run=dry_run)

    async def stats(self) -> Mapping[str, int]:
        """Return counts and sizes of the whole database."""
        return await self._store.maintenance.stats()

    async def backup(self, target: str | Path) -> None:
        """Write a consistent copy of the database to a file, while others go on working."""
        await self._store.maintenance.backup(Path(target))


def check_everthread(et: object) -> Everthread:
    """An open database, or Invalid that says what to pass instead."""
    if not isinstance(et, Everthread):
        url = "; over an address: `EverthreadSaver.from_url(url)`" if isinstance(et, str) else ""
        kind = type(et).__name__
        raise Invalid(f"must be the database that `everthread.open(url)` returns, not {kind}{url}", field="et")
    return et


async def found_messages(et: Everthread, owner: str, hits: Hits) -> list[tuple[Hit, Conversation, Message]]:
    """Each hit with its conversation and its message. What was erased between the search and the look is left out."""
    ids = {hit.conversation_id for hit in hits}
    found = await asyncio.gather(*(et.conversations.get(id, owner) for id in ids), return_exceptions=True)
    conversations = {one.id: one for one in found if isinstance(one, Conversation)}
    known = [hit for hit in hits if hit.conversation_id in conversations]
    said = await asyncio.gather(
        *(conversations[hit.conversation_id].message(hit.id) for hit in known), return_exceptions=True
    )
    return [
        (hit, conversations[hit.conversation_id], message)
        for hit, message in zip(known, said, strict=True)
        if isinstance(message, Message)
    ]
