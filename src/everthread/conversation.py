"""A conversation, as its users hold it: its log, its branches and what is read from them.

What each verb does is in the rooms: `history` reads and decides, `context` and `compaction` make what a model sees,
`recall` finds the old again. Here they become the verbs people call.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from types import EllipsisType
from typing import Any, Final

from everthread.compaction.compactor import CompactionDiff, CompactionOutcome, compaction_diff
from everthread.compaction.due import UNKNOWN_BUDGET, DueCompaction, due_trigger
from everthread.compaction.fullness import ContextPreview, measure
from everthread.compaction.intents import UndoCompaction
from everthread.compaction.policy import Trigger, check_trigger
from everthread.compaction.summary_chain import expand_to_level
from everthread.context import manifest as manifests
from everthread.context import read_view
from everthread.context.assemble import Context, tools_text
from everthread.context.budget import Budget, check_budget
from everthread.context.ingredients import RecalledPassage
from everthread.context.message_format import Provider, check_provider, is_user_turn
from everthread.context.read_view import SeenContext, View
from everthread.context.tokens import count_tokens, message_tokens
from everthread.core import payloads
from everthread.core.access import without_share
from everthread.core.background import is_in_loop
from everthread.core.clock import from_micros
from everthread.core.compactions import FRAMEWORK, Compaction
from everthread.core.entries import Entry, Mark
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreDamaged
from everthread.core.ids import check_id, check_text, new_id
from everthread.core.jobs import REMEMBER, TITLE, NewJob, Priority, rounds_behind
from everthread.core.log import BranchName, BranchRow, CompactionQuery
from everthread.core.memories import Memory, MemoryKind, MemoryScope, Origin
from everthread.core.notes import MemorySource
from everthread.core.nouns import Branch, ConversationInfo, Hits, Message, Page, Receipt, Ref
from everthread.core.ports import CompactionPosition, NewConversation
from everthread.core.trust import Trust
from everthread.core.turn_events import TurnEvent, from_stored
from everthread.core.turns import Turn, TurnQuery, TurnState
from everthread.history import export as exporting
from everthread.history import ingest, intents, read, turn_intents
from everthread.history.arguments import MAX_TITLE_CHARACTERS, check_branch, check_count
from everthread.history.framework_summaries import of_frameworks
from everthread.history.search import search_by_words
from everthread.history.turn_events import read_events
from everthread.recall import for_context
from everthread.recall.lookups import message_asked
from everthread.recall.memories import Memories, memories_for_context
from everthread.recall.memory_extraction import memories_read_until
from everthread.recall.memory_intents import QuarantineMemories
from everthread.recall.memory_rules import holds_memories, may_hold_memories
from everthread.recall.memory_selection import ContextMemories, may_be_shown
from everthread.recall.policy import Scope, check_scope
from everthread.recall.provenance import MemorySourceFound, Spread, find_spread, memories_reached, source_of_memory
from everthread.recall.search import RecallHits, active_path, recall, search_by_meaning
from everthread.runtime import MISSED_VECTORS, TO_EMBED, Runtime

_PAGE: Final = 200
MAX_QUERY_CHARACTERS: Final = 100_000
_MOST_TRIES: Final = 10
_OFFLOAD_BYTES: Final = 65_536
"""From this size on a batch is prepared in a thread: counting tokens of 10 MB takes about a second."""
_MOST_UNREAD: Final = 200
"""So many messages before the window may be unread for memories: earlier contexts have seen them in theirs."""

_NEWEST = 12
"""Among so many of the newest messages that of the user is looked for which may be the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """All that a request is made from, the request, and the work that was found to be wanted for the next."""

    view: View
    recalled: Sequence[RecalledPassage]
    known: ContextMemories | None
    made: Context
    jobs: tuple[NewJob, ...]


class Conversation:
    """One conversation of one owner. Its methods may be called from any number of tasks at once.

    ```python
    conv = await et.conversations.create(title="Trip")
    await conv.append([{"role": "user", "content": "My grandmother has a peanut allergy."}])
    context = await conv.context(system="You plan trips.")  # what to send to a model
    async for message in conv.messages():
        print(message.seq, message.role, message.text)
    ```
    """

    def __init__(self, runtime: Runtime, info: ConversationInfo) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._ref = Ref(info.owner, info.id)
        self.info = info
        """The conversation's row when it was last read or updated through this object."""

    def __repr__(self) -> str:
        return f"<Conversation {self.owner}/{self.id} {self.title!r}>"

    @property
    def id(self) -> str:
        """Its id, unique for its owner."""
        return self.info.id

    @property
    def owner(self) -> str:
        """Who it belongs to; `local` by default."""
        return self.info.owner

    @property
    def title(self) -> str | None:
        """Its title, if it has one."""
        return self.info.title

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The caller's own data about it."""
        return self.info.metadata

    @property
    def parent_id(self) -> str | None:
        """The conversation that this one was started from, if it belongs to a subagent."""
        return self.info.parent_id

    @property
    def is_active(self) -> bool:
        """Whether it is marked as active; a flag for the caller's own use."""
        return self.info.is_active

    @property
    def is_deleted(self) -> bool:
        """Whether it is hidden from lists and searches (`delete`)."""
        return self.info.deleted_at is not None

    @property
    def off_record(self) -> bool:
        """Whether it is never indexed, and erased when the database is closed."""
        return self.info.off_record

    @property
    def created_at(self) -> datetime:
        """When it was created."""
        return self.info.created_at

    @property
    def updated_at(self) -> datetime:
        """When it was last written to or changed."""
        return self.info.updated_at

    async def refresh(self) -> Conversation:
        """Read the conversation's row again, and return this object."""
        self.info = await self._store.conversations.get(self._ref)
        return self

    # -- the row -------------------------------------------------------------------------------------------

    async def update(
        self,
        *,
        title: str | EllipsisType | None = ...,
        metadata: Mapping[str, Any] | EllipsisType = ...,
        is_active: bool | EllipsisType = ...,
    ) -> Conversation:
        """Change the title, the metadata or the active flag; arguments that are left out stay as they are.

        ```python
        await conv.update(title="Trip to Kunming")
        ```
        """
        changes: dict[str, Any] = {}
        if title is not ...:
            changes["title"] = check_title(title)
        if metadata is not ...:
            changes["metadata"] = dump_metadata(metadata)
        if is_active is not ...:
            if not isinstance(is_active, bool):
                raise Invalid(f"must be true or false, not {is_active!r}", field="is_active")
            changes["is_active"] = is_active
        return await self._change(changes)

    async def delete(self) -> Conversation:
        """Hide the conversation from lists and searches. Nothing is destroyed; `restore` undoes it."""
        return await self._change({"deleted_at": self._runtime.clock()})

    async def restore(self) -> Conversation:
        """Undo `delete`."""
        return await self._change({"deleted_at": None})

    async def _change(self, changes: Mapping[str, Any]) -> Conversation:
        self.info = await self._store.conversations.update(self._ref, changes)
        return self

    # -- writing -------------------------------------------------------------------------------------------

    async def append(
        self,
        messages: object,
        *,
        idempotency_key: str | None = None,
        expected_head: int | None = None,
        branch: Branch | BranchName = None,
    ) -> list[Receipt]:
        """Store messages for good. When this returns they are durable, all of them or none.

        Accepts dicts in OpenAI's or LangChain's format, LangChain messages, and JSON bytes; one or a list. A role that
        no model knows, and a user's message whose content is not text or content blocks, raise Invalid. A message
        that is already there is stored only once; a known id with different content becomes a revision.
        When something was said is its field `created_at`: ISO 8601, seconds or milliseconds
        since 1970, or a datetime (UTC where it names no zone); without it, when it was stored. A tool's result should
        name its call (`tool_call_id`): without one it is kept and found, and no model is shown it. A retry is safe
        when the messages have ids or the call an `idempotency_key`. `expected_head` is the seq that the branch must end
        at (0 for an empty one), or HeadMoved is raised.

        ```python
        await conv.append([
            {"role": "user", "content": "Where to?", "id": "q1"},
            {"role": "assistant", "content": "To Kunming."},
        ])
        ```
        """
        if idempotency_key is not None:
            check_id(idempotency_key, "idempotency_key")
        if expected_head is not None:
            check_count(expected_head, "expected_head")
        prepared = await self._prepared(messages)
        ingest.check_said(prepared)
        return await self._append(
            intents.Append(
                messages=prepared,
                branch=check_branch(branch),
                expected_head=expected_head,
                idempotency_key=idempotency_key,
            )
        )

    async def _append_captured(self, messages: Sequence[object]) -> None:
        """Store what a framework has said already: none of it is refused for its role."""
        await self._append(intents.Append(messages=await self._prepared(messages)))

    async def _append(self, intent: intents.Append) -> list[Receipt]:
        prepared = intent.messages
        jobs = (*self._to_remember(prepared), *self._to_embed(len(prepared)))
        return await self._runtime.write(self._ref, replace(intent, jobs=jobs)) if prepared else []

    def _to_remember(self, messages: Sequence[ingest.Prepared]) -> Sequence[NewJob]:
        """A job where the user tells something that is worth remembering, and conversations are worked on ahead; else
        the next context finds it."""
        policy = self._runtime.policy
        if not policy.compact_ahead or not policy.extract_memories or not self._may_be_remembered:
            return ()
        is_worth_it = self._is_worth_remembering(payloads.text(one.payload) for one in messages if one.role == "user")
        return (NewJob(kind=REMEMBER, size=len(messages)),) if is_worth_it else ()

    @property
    def _may_be_remembered(self) -> bool:
        return self.parent_id is None and not self.off_record

    def _is_worth_remembering(self, said: Iterable[str]) -> bool:
        """Whether users' words hold something for who will read them: a model, or else the rules."""
        runtime = self._runtime
        has_model = runtime.summariser is not None or runtime.policy.summary_model is not None
        return any(may_hold_memories(text) if has_model else holds_memories(text) for text in said)

    def _to_embed(self, count: int) -> Sequence[NewJob]:
        """A job that makes vectors of what is said, where that is not left until somebody asks for meaning; one waits,
        however much is said until it is done."""
        if not self._runtime.recall.embed_ahead or self._runtime.meaning is None or self.off_record:
            return ()
        return (replace(TO_EMBED, size=count) if rounds_behind(count) else TO_EMBED,)

    async def request_title(self) -> None:
        """Ask for a title, made in the background from the first question. An existing title stays."""
        await self._store.log.write(self._ref, intents.PutJobs(jobs=(NewJob(kind=TITLE, priority=Priority.IN_USE),)))

    async def _prepared(self, messages: object) -> list[ingest.Prepared]:
        batch = ingest.as_batch(messages)
        count_later = self._store.log.defers_token_count and not self.off_record
        if ingest.rough_bytes(batch) < _OFFLOAD_BYTES:
            return ingest.prepare_all(batch, count_later=count_later)
        return await asyncio.to_thread(ingest.prepare_all, batch, count_later=count_later)

    async def edit(self, id: str, payload: object, *, activate: bool = True) -> Receipt:
        """Replace a message on a new branch. The original and everything after it stay on the old one. A text is the
        new content of the same message.

        ```python
        await conv.edit("m1", {"role": "user", "content": "My grandmother has a nut allergy."})
        ```
        """
        check_id(id, "id")
        if isinstance(payload, str):
            payload = payloads.with_content((await self.message(id)).payload, payload)
        (message,) = await self._prepared([payload])
        if message.role not in payloads.KNOWN_ROLES and message.role != (await self.message(id)).role:
            ingest.check_said([message])
        ingest.check_content(message, "content")
        sibling = intents.as_sibling(message, id, new_id())
        return await self._store.log.write(self._ref, intents.Edit(target=id, message=sibling, activate=activate))

    async def delete_message(self, id: str) -> None:
        """Hide a message from history and from the model. `restore_message` undoes it.

        A summary that it is in is made anew at once, without a model; other summaries stay as they are.
        """
        await self._mark(id, Mark.DELETED)
        await self._runtime.compaction.mend(self._ref)

    async def restore_message(self, id: str) -> None:
        """Undo `delete_message`: the summary that was there before is used again."""
        await self._mark(id, Mark.RESTORED)
        await self._runtime.compaction.mend(self._ref)

    async def pin(self, id: str) -> None:
        """Keep a message in the model's view, whatever is compacted."""
        await self._mark(id, Mark.PINNED)

    async def unpin(self, id: str) -> None:
        """Undo `pin`."""
        await self._mark(id, Mark.UNPINNED)

    async def quarantine(self, id: str) -> Spread:
        """Take a message that is not to be trusted out of every view at once: history, search, recall, contexts (which
        name it in `omitted`), summaries and memories that it may be in. `release` undoes it. Returns where it has been.

        A summary that it is in is made anew at once, without a model; other summaries stay as they are.
        """
        await self._mark(id, Mark.QUARANTINED)
        await self._hide_memories(id, is_back=False)
        await self._runtime.compaction.mend(self._ref)
        return await self.spread(id)

    async def release(self, id: str) -> None:
        """Undo `quarantine`: the same bytes are shown again."""
        await self._mark(id, Mark.RELEASED)
        await self._hide_memories(id, is_back=True)
        await self._runtime.compaction.mend(self._ref)

    async def _hide_memories(self, id: str, *, is_back: bool) -> None:
        place = (await self.message(id)).seq
        ids = [memory.id for memory in await memories_reached(self._store, self._ref, place)]
        if ids:
            source = MemorySource(self.id, place)
            change = QuarantineMemories(owner=self.owner, source=source, ids=ids, is_back=is_back)
            await self._store.notes.change(self.owner, change)

    async def spread(self, id: str) -> Spread:
        """Return every place that a message reached: summaries, memories, and the requests that showed it, or one of
        those, to a model. Requests are known as far as they were kept (`keep_context`), which turns do.

        ```python
        reached = await conv.spread("m1")
        print(reached.summaries, reached.memories, reached.requests)
        ```
        """
        place = (await self.message(check_id(id, "id"))).seq
        return await find_spread(self._store, self._ref, place)

    async def _mark(self, id: str, mark: Mark) -> None:
        await self._store.log.write(self._ref, intents.MarkMessage(target=check_id(id, "id"), mark=mark))

    # -- memories ------------------------------------------------------------------------------------------

    async def remember(
        self,
        text: str,
        *,
        kind: MemoryKind | str = MemoryKind.FACT,
        scope: MemoryScope | str = MemoryScope.USER,
        seq: int | None = None,
        subject: str | None = None,
        pinned: bool | None = None,
        origin: Origin = "person",
        has_read_documents: bool = False,
    ) -> Memory:
        """Remember something that was learned here, for the user or for this conversation only.

        `seq` names the message it comes from; the other arguments are those of `Memories.add`. What a program notes is
        the user's; what an agent notes (`origin="agent"`) is trusted as far as what it was made from, which is computed
        here: the message of the user that has its words, else everything in the log (`has_read_documents`: and
        documents beside it). Raises Conflict when the conversation is off the record.

        ```python
        await conv.remember("The grandmother is allergic to peanuts.", seq=1)
        ```
        """
        source = MemorySourceFound(Trust.USER, seq)
        if origin != "person" and isinstance(text, str):
            source = await source_of_memory(self._store, self._ref, text, has_read_documents=has_read_documents)
        return await Memories(self._store, self._runtime.embedder).add(
            self.owner,
            text,
            kind=kind,
            scope=scope,
            conversation=self.id,
            seq=source.seq or seq,
            subject=subject,
            pinned=pinned,
            origin=origin,
            trust=source.trust,
            made_at_seq=source.made_at_seq,
        )

    async def remembered(self, query: str | None = None, *, limit: int = 100) -> Sequence[Memory]:
        """Return the memories that apply here, newest first; with a query those that match it, best first."""
        memories = Memories(self._store, self._runtime.embedder)
        if query is None:
            found: Iterable[Memory] = (await memories.list(self.owner, conversation=self.id, limit=limit)).items
        else:
            hits = await memories.search(self.owner, query, conversation=self.id, limit=limit)
            found = [hit.memory for hit in hits]
        return [memory for memory in found if may_be_shown(memory, self.id)]

    async def forget(self, id: str) -> Memory:
        """Remove a memory from every search and context. `et.memories.restore` undoes it."""
        return await Memories(self._store, self._runtime.embedder).forget(self.owner, id)

    # -- branches ------------------------------------------------------------------------------------------

    async def fork(self, at_seq: int, *, activate: bool = False) -> Branch:
        """Create a branch that shares everything up to this message (0 for nothing).

        ```python
        branch = await conv.fork(2)
        await conv.append({"role": "user", "content": "Or to Dali?"}, branch=branch)
        ```
        """
        check_count(at_seq, "at_seq")
        row, active = await self._store.log.write(self._ref, intents.Fork(at_seq=at_seq, activate=activate))
        return _branch(row, active)

    async def set_active(self, branch: Branch | BranchName) -> Branch:
        """Make this the branch that is read and extended when no other is named."""
        row = await self._store.log.write(self._ref, intents.SetActive(branch=check_branch(branch)))
        return _branch(row, row.number)

    async def branches(self) -> AsyncIterator[Branch]:
        """Iterate over every branch, oldest first."""
        rows, active = await self._store.log.branches(self._ref)
        for row in rows:
            yield _branch(row, active)

    async def children(self) -> AsyncIterator[Conversation]:
        """Iterate over the conversations of its subagents, newest first."""
        async for info in read.conversations(self._store.conversations, self.owner, parent_id=self.id):
            yield Conversation(self._runtime, info)

    async def copy(self, *, id: str | None = None, title: str | None = None) -> Conversation:
        """Copy the conversation: the same messages, revisions, marks and branches in a new log.

        Children, idempotency keys and erased messages are not copied. If a crash interrupts it, the same call with the
        same id completes the copy.
        """
        entries, rows, active = await self._whole()
        new = NewConversation(
            owner=self.owner,
            id=new_id() if id is None else check_id(id, "id"),
            parent_id=None,
            title=self.title if title is None else check_title(title),
            metadata=dump_metadata(without_share(self.metadata)),
            off_record=self.off_record,
        )
        copied = Conversation(self._runtime, await self._created_or_empty(new))
        intent = intents.CopyLog(entries=entries, branches=rows, active=active)
        await self._store.log.write(copied._ref, intent)
        return await copied.refresh()

    async def _created_or_empty(self, new: NewConversation) -> ConversationInfo:
        try:
            return await self._store.conversations.create(new)
        except Erased:
            raise
        except Conflict:
            found = await self._store.conversations.get(Ref(new.owner, new.id))
            if found.entry_count:
                raise
            return found

    async def _whole(self) -> tuple[list[Entry], Sequence[BranchRow], int]:
        """The log and its branches as they were at one moment."""
        for _ in range(_MOST_TRIES):
            entries = [entry async for entry in read.log(self._store.log, self._ref)]
            rows, active = await self._store.log.branches(self._ref)
            if (await self._store.conversations.get(self._ref)).entry_count == len(entries):
                return [_with_payload(entry) for entry in entries], rows, active
        raise Conflict(f"conversation {self.id!r} is being written to all the time; nothing was copied: try again")

    # -- reading -------------------------------------------------------------------------------------------

    def messages(
        self,
        *,
        after: int = 0,
        limit: int | None = None,
        branch: Branch | BranchName = None,
        revisions: bool = False,
        include_deleted: bool = False,
    ) -> AsyncIterator[Message]:
        """Iterate over the messages of a branch in order, each in its newest revision, or with `revisions` in all of
        them.

        ```python
        async for message in conv.messages(after=1, limit=10):
            print(message.seq, message.role, message.text)
        ```
        """
        return read.stream(
            self._store.log,
            self._ref,
            after=check_count(after, "after"),
            limit=limit if limit is None else check_count(limit, "limit"),
            branch=check_branch(branch),
            revisions=revisions,
            include_deleted=include_deleted,
        )

    async def tail(
        self,
        count: int,
        *,
        before: int | None = None,
        branch: Branch | BranchName = None,
        include_deleted: bool = False,
    ) -> list[Message]:
        """Return the newest messages of a branch, in order."""
        check_count(count, "count")
        return await read.tail(
            self._store.log,
            self._ref,
            count,
            before=before if before is None else check_count(before, "before"),
            branch=check_branch(branch),
            include_deleted=include_deleted,
        )

    async def message(self, id: str) -> Message:
        """Return one message in its newest revision, whether deleted or not and on whichever branch."""
        return await read.one(self._store.log, self._ref, check_id(id, "id"))

    async def message_at(self, seq: int) -> Message:
        """Return the message at this position, or the one that the log entry there is about, in its newest revision."""
        for entry in await self._store.log.find(self._ref, seqs=[check_count(seq, "seq")]):
            return await read.one(self._store.log, self._ref, entry.id)
        raise NotFound(f"no message with seq {seq} in conversation {self.id!r}")

    def export(
        self,
        format: exporting.Format = "md",
        *,
        branch: Branch | BranchName = None,
        thinking: bool = True,
        tools: bool = True,
    ) -> AsyncIterator[bytes]:
        """Export the conversation as Markdown (`md`), a web page (`html`), `json`, or one line per message (`jsonl`).

        In Markdown and pages, `thinking` and `tools` say whether the model's reasoning and its tool calls are included.

        ```python
        markdown = b"".join([piece async for piece in conv.export("md")])
        ```
        """
        return exporting.export(self.info, self.messages(branch=branch), format, exporting.Parts(thinking, tools))

    async def search(self, text: str, *, limit: int = 20, meaning: bool = False, show_secrets: bool = False) -> Hits:
        """Search this conversation's messages by words, on every branch, best first.

        `meaning` and `show_secrets` are as in `Everthread.search`.
        """
        if not isinstance(text, str):
            raise Invalid(f"must be a string, not {type(text).__name__}", field="text")
        if len(text) > MAX_QUERY_CHARACTERS:
            raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(text)}", field="text")
        check_count(limit, "limit")
        if meaning:
            hits = await search_by_meaning(
                self._runtime.recall_services, self.owner, self.id, text, limit, show_secrets=show_secrets
            )
            await self._runtime.embed_if_behind(hits.is_behind, self.owner, self.id)
            return hits
        return await search_by_words(
            self._store.search, text, owner=self.owner, conversation=self.id, limit=limit, show_secrets=show_secrets
        )

    # -- what a model sees ---------------------------------------------------------------------------------

    async def context(
        self,
        *,
        system: str | None = None,
        query: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        provider: Provider | None = None,
        compaction: Mapping[str, Any] | None = None,
        to_keep: bool = False,
    ) -> Context:
        """Build a request for a model that is valid and within the budget, whatever the history.

        Nothing is summarised before somebody asks for a context. The first one on a long history comes at once, with
        the newest messages, what the query recalls by words, and what can be summarised in a quarter of a second;
        `omitted` names the rest, which the background then summarises. If the history is over the hard limit, its
        oldest part is summarised first; a summary model that fails costs its time limit and nothing else. Below the
        limit, a due compaction is left to the background.

        ```python
        context = await conv.context(system="You plan trips.", query="What can she not eat?")
        print(context.messages, context.tokens)
        ```

        Args:
            system: The system prompt. System messages at the beginning of the log, or pinned ones, follow it.
            query: What the model is about to be asked: related older messages and memories are quoted before the newest
                user message.
            tools: The tool schemas that will be sent too; room is left for them unless the budget already does.
            budget: How large the request may be.
            branch: The branch to build it from; by default the active one.
            provider: Whose rules the messages must obey; by default they are valid for every provider.
            compaction: Compaction settings for this call only.
            to_keep: Whether the result goes to `keep_context`, which then queues a due compaction in the same write.
        """
        _check_request(system, query, tools, budget)
        check_provider(provider)
        room = _with_tools(budget or Budget(), tools)
        path = check_branch(branch)
        render = partial(read_view.render, budget=room, system=system, tools=tools, provider=provider)
        given = await self._gathered(path, query, compaction, room, system, render)
        due = due_trigger(given.view, given.made, room)
        if due is not None and given.view.sets_summaries_aside:  # they must not be made again
            given = await self._gathered(path, query, compaction, room, system, render, whole_if_small=False)
            due = due_trigger(given.view, given.made, room)
        anew = render
        render = partial(render, recalled=given.recalled, known=given.known)
        view, made, jobs = given.view, given.made, given.jobs
        driver = self._runtime.compaction
        if due is not None and due != "hard_limit" and not view.summaries and view.passed_over is not None:
            view = await driver.catch_up_briefly(self._ref, view, path, compaction, room, due, system)
            made = render(view)
            due = due_trigger(view, made, room)
        if due is not None:
            priority, size = Priority.IN_USE, view.uncovered
            if due == "hard_limit":
                priority = Priority.WAITED_FOR
                made, size = await driver.compact_to_fit(self._ref, view, path, compaction, room, render, system)
                if query:  # what was in the window when it was looked for what to recall is not any more
                    made = (
                        await self._gathered(path, query, compaction, room, system, anew, whole_if_small=False)
                    ).made
            if size:
                jobs = (*jobs, self._compaction_job(made, room, system, path, compaction, priority, size))
        if jobs and not to_keep:
            await self._runtime.put_jobs_if_possible(self._ref, jobs)
        return replace(made, _jobs=jobs) if jobs else made

    async def preview_context(
        self,
        *,
        system: str | None = None,
        question: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        provider: Provider | None = None,
        compaction: Mapping[str, Any] | None = None,
    ) -> ContextPreview:
        """Build the request that `context` would build now, and change nothing: no summary is made, no job is queued.

        A `question` is taken as asked now: it is the newest message of the request, and what it recalls is quoted
        before it. The other arguments are those of `context`.

        ```python
        preview = await conv.preview_context(question="What can she not eat?")
        print(preview.due, [(piece.kind, piece.seqs) for piece in preview.context.pieces])
        ```
        """
        _check_request(system, question, tools, budget)
        check_provider(provider)
        room = _with_tools(budget or Budget(), tools)

        def asked(view: View) -> View:
            return read_view.with_question(view, question) if question else view

        def render(view: View, **more: Any) -> Context:
            return read_view.render(asked(view), room, system=system, tools=tools, provider=provider, **more)

        given = await self._gathered(check_branch(branch), question, compaction, room, system, render)
        return measure(asked(given.view), given.made, room)

    def _compaction_job(
        self,
        made: Context,
        room: Budget,
        system: str | None,
        path: BranchName,
        compaction: Mapping[str, Any] | None,
        priority: Priority,
        size: int,
    ) -> NewJob:
        system_tokens = message_tokens({"role": "system", "content": system}) if system else 0
        memory_tokens = sum(part.tokens for part in made.parts if part.kind == "memory")
        found = DueCompaction(
            budget=room, system_tokens=system_tokens + memory_tokens, branch=path, compaction=compaction
        )
        return found.as_job(priority, size)

    async def _gathered(
        self,
        path: BranchName,
        query: str | None,
        compaction: Mapping[str, Any] | None,
        room: Budget,
        system: str | None,
        render: Callable[..., Context],
        *,
        whole_if_small: bool = True,
    ) -> _Gathered:
        """All that a request is made from, and the request; in one trip to a reader where no embedder has to be waited
        for. Rendering takes milliseconds where the window is long: never in an event loop's thread."""
        runtime = self._runtime

        async def gathered() -> _Gathered:
            view = await runtime.compaction.view(
                self._ref, path, compaction, room, system, whole_if_small=whole_if_small
            )
            recalled: Sequence[RecalledPassage] = ()
            jobs: tuple[NewJob, ...] = ()
            if query:
                recalled, is_behind = await for_context.recall_episodes(runtime.recall_services, self._ref, view, query)
                jobs = MISSED_VECTORS if is_behind else ()
            if await self._has_unread(view):
                jobs = (*jobs, NewJob(kind=REMEMBER, size=max(1, view.uncovered)))
            known: ContextMemories | None = None
            if view.policy.memory_max_tokens:
                known = await memories_for_context(
                    self._store, self._ref, self.info.created_at, query, runtime.embedder
                )
            rendered = partial(render, view, recalled=recalled, known=known)
            made = await asyncio.to_thread(rendered) if is_in_loop() else rendered()
            return _Gathered(view=view, recalled=recalled, known=known, made=made, jobs=jobs)

        return await (self._store.run_reads(gathered) if runtime.embedder is None else gathered())

    async def _has_unread(self, view: View) -> bool:
        """Whether users may have said something worth remembering since this conversation was last read for it: in the
        window, or in more messages before it than a reading takes at once."""
        if not view.policy.extract_memories or not self._may_be_remembered or not view.window:
            return False
        until = await memories_read_until(self._store, self._ref)
        before = view.window[0].seq - 1
        if before - until > (_MOST_UNREAD if until else 0):
            return True
        unread = (one.payload for one in view.window if one.entry_seq > until)
        return self._is_worth_remembering(payloads.text(one) for one in unread if is_user_turn(one))

    async def compact(
        self,
        *,
        trigger: Trigger = "manual",
        dry_run: bool = False,
        branch: Branch | BranchName = None,
        compaction: Mapping[str, Any] | None = None,
        on_each: Callable[[CompactionOutcome], None] | None = None,
        budget: Budget | None = None,
    ) -> CompactionOutcome:
        """Summarise all messages except the most recent ones, in as many summaries as it takes. The log does not
        change.

        `compaction` of the outcome is the newest summary; `on_each` is called for every one. Given a `budget`,
        summaries are condensed until together they take at most a quarter of it.

        ```python
        outcome = await conv.compact(dry_run=True)
        print([(planned.first_seq, planned.last_seq) for planned in outcome.planned])
        ```
        """
        return await self._runtime.compaction.compact(
            self._ref,
            check_branch(branch),
            check_trigger(trigger),
            overrides=compaction,
            budget=budget,
            dry_run=dry_run,
            on_each=on_each or (lambda _: None),
        )

    async def compact_if_due(
        self,
        *,
        budget: Budget | None = None,
        branch: Branch | BranchName = None,
        compaction: Mapping[str, Any] | None = None,
    ) -> CompactionOutcome:
        """Compact as long as a limit is exceeded, as the background does by itself; for programs without a worker.

        Without a budget, only the number of messages counts.
        """
        found = DueCompaction(budget=budget or UNKNOWN_BUDGET, branch=check_branch(branch), compaction=compaction)
        return await self._runtime.compaction.compact_if_due(self._ref, found)

    async def keep_context(self, context: Context) -> str:
        """Record what a model is shown, by reference, and return the id for `seen_context`."""
        if not isinstance(context, Context):
            raise Invalid(f"must be what `conv.context()` returns, not {type(context).__name__}", field="context")
        id = new_id()
        kept = manifests.dump(context.manifest)
        await self._store.views.keep_manifest(self._ref, id, kept, context.shared, context._jobs)
        return id

    async def seen_context(self, id: str) -> SeenContext:
        """Render again, from the log, what a model was shown. The result says whether anything was erased since."""
        return await read_view.render_again(self._store, self._ref, check_id(id, "id"))

    async def compactions(self) -> AsyncIterator[Compaction]:
        """Iterate over every compaction, oldest first, including those undone or no longer valid.

        Summaries that a framework wrote into its own state are among them, with the trigger `framework` and the
        framework's name as their strategy.
        """
        theirs = deque(await of_frameworks(self._store.log, self._ref))
        after = None
        while page := await self._store.views.all_compactions(self._ref, after=after, limit=_PAGE):
            for compaction in page:
                while theirs and theirs[0].created_at <= compaction.created_at:
                    yield theirs.popleft()
                yield compaction
            after = CompactionPosition(page[-1].created_at, page[-1].id)
        for compaction in theirs:
            yield compaction

    async def summary(self, *, branch: Branch | BranchName = None, level: int | None = None) -> str | None:
        """Return the text of the summaries that stand for the part before the window; `level` 1 has the most detail."""
        summaries = await self.summaries(branch=branch, level=level)
        return "\n\n".join(compaction.summary for compaction in summaries) or None

    async def summaries(self, *, branch: Branch | BranchName = None, level: int | None = None) -> Sequence[Compaction]:
        """Return the compactions that stand for the part before the window, oldest first.

        With a lower `level`, those that they were made from.
        """
        summaries = (await self._store.views.inputs(self._ref, check_branch(branch))).summaries
        return summaries if level is None else await self._at_level(summaries, level)

    async def _at_level(self, summaries: Sequence[Compaction], level: int) -> Sequence[Compaction]:
        while children := [id for one in summaries if one.level > level for id in one.children]:
            below = {
                one.id: one for one in await self._store.views.compactions(self._ref, CompactionQuery(ids=children))
            }
            expanded = expand_to_level(summaries, below, level)
            if expanded == summaries:
                break
            summaries = expanded
        return summaries

    async def undo_compaction(self, id: str) -> Compaction:
        """Undo a compaction: the original messages return to the model's view.

        Raises Conflict while another compaction builds on this one.
        """
        known = await self.compaction(id)
        if known.trigger == FRAMEWORK:
            raise Conflict(
                f"compaction {id!r} is a summary in the state of {known.strategy}; everthread's views do not use it"
            )
        return await self._store.log.write(self._ref, UndoCompaction(id=id, stretch=(known.after_seq, known.last_seq)))

    async def compaction_diff(self, id: str) -> CompactionDiff:
        """Compare a compaction with its originals: what the summary says, and which facts only the originals have."""
        return await compaction_diff(self._store, self._ref, await self.compaction(id))

    async def compaction(self, id: str) -> Compaction:
        """Return one compaction, in use or not."""
        for compaction in await self._store.views.compactions(self._ref, CompactionQuery(ids=[check_id(id, "id")])):
            return compaction
        for compaction in await of_frameworks(self._store.log, self._ref):
            if compaction.id == id:
                return compaction
        raise NotFound(f"no compaction {id!r} in conversation {self._ref.id!r}")

    # -- turns ---------------------------------------------------------------------------------------------

    async def turn(self, id: str) -> Turn:
        """Return a turn and its state. Raises NotFound when this conversation has none with this id."""
        return await self._store.turns.get(self._ref, check_id(id, "id"))

    async def turns(
        self, *, limit: int = 50, cursor: str | None = None, states: Sequence[TurnState] = ()
    ) -> Page[Turn]:
        """List the conversation's turns page by page, newest first."""
        check_count(limit, "limit")
        if cursor is not None and not re.fullmatch("[0-9]{1,18}", cursor):
            raise Invalid("is not one that turns() returned; begin without a cursor", field="cursor")
        before = None if cursor is None else int(cursor)
        found = await self._store.turns.list(TurnQuery(self.owner, self.id, tuple(states), before, limit + 1))
        is_last = len(found) <= limit or not limit
        return Page(items=found[:limit], next_cursor=None if is_last else str(found[limit - 1].number))

    async def turn_events(self, id: str, *, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Iterate over the stored events of a turn after this number. Events are kept for seven days."""
        check_count(after, "after")
        async for page in read_events(self._store, self._ref, check_id(id, "id"), after):
            for one in page:
                yield from_stored(one)

    async def stop_turn(self, id: str) -> Turn:
        """Stop a turn, wherever it runs.

        A waiting one ends at once, a running one within a few seconds; what it has said so far is kept. A turn that has
        already ended stays as it is.
        """
        turn = await self.turn(id)
        return await self._runtime.write(self._ref, turn_intents.StopTurn(turn=turn))

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        max_tokens: int = 2000,
        scope: Scope | None = None,
        asked_at: datetime | None = None,
        show_secrets: bool = False,
    ) -> RecallHits:
        """Find what was said about a question, however long ago and in whatever words, best first.

        Searches the active branch by words and, if there is an embedder, by meaning; with the scope `owner`, everything
        the owner has. Of a long message only the relevant passage is returned. Relative times in the question ("last
        week") are resolved as of `asked_at`, by default now. All hits together count to at most `max_tokens`. The
        result says when an index is behind or a part did not answer. What the user said last is left out if it is the
        question itself or an agent now searches for its answer; so are such searches (`history_search`, `history_open`)
        and what they found. What looks like a credential is masked, unless `show_secrets`.

        ```python
        for hit in await conv.recall("What can my grandmother not eat?", limit=3):
            print(hit.said_at, hit.text)
        ```
        """
        if not isinstance(query, str):
            raise Invalid(f"must be a string, not {type(query).__name__}", field="query")
        if len(query) > MAX_QUERY_CHARACTERS:
            raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(query)}", field="query")
        check_count(limit, "limit")
        check_count(max_tokens, "max_tokens")
        services = self._runtime.recall_services
        is_wide = check_scope(services.policy.scope if scope is None else scope) == "owner"
        path = await active_path(self._store, self._ref)
        asked = message_asked(await self.tail(_NEWEST), query)
        result = await recall(
            services,
            self.owner,
            None if is_wide else self.id,
            query,
            asked_at=None if asked_at is None else check_moment(asked_at),
            path=None if is_wide else path,
            at_least=limit,
            question_at=None if asked is None else (self.id, asked),
        )
        await self._runtime.embed_if_behind(result.is_behind, self.owner, None if is_wide else self.id)
        return result.hits(limit, max_tokens, show_secrets=show_secrets)


def _check_request(system: object, query: object, tools: object, budget: object) -> None:
    """Invalid with the argument that is wrong, before anything is read."""
    for name, value in (("system", system), ("query", query)):
        if value is not None and not isinstance(value, str):
            raise Invalid(f"must be a string, not {type(value).__name__}", field=name)
    check_budget(budget)
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise Invalid(f"must be a list of tool schemas, not {type(tools).__name__}", field="tools")
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise Invalid(f"must be a schema as a dict, not {type(tool).__name__}", field=f"tools[{index}]")


def _with_tools(budget: Budget, tools: Sequence[Mapping[str, Any]]) -> Budget:
    if not tools or budget.tools_tokens:
        return budget
    return replace(budget, tools_tokens=_tools_tokens(tools_text(tools)))


@lru_cache(maxsize=32)
def _tools_tokens(text: bytes) -> int:
    """Counted once for the same tools: for twenty of them that takes a millisecond, and every request has them."""
    return count_tokens(text.decode())


def check_moment(moment: object) -> datetime:
    """A time with its zone, as UTC, or Invalid; one without a zone is UTC."""
    if not isinstance(moment, datetime):
        raise Invalid(f"must be a datetime, not {type(moment).__name__}", field="asked_at")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _with_payload(entry: Entry) -> Entry:
    """What was erased is left out of a copy; what is missing must not be left out silently."""
    if entry.raw is None and not entry.is_erased:
        raise StoreDamaged(f"the payload of entry {entry.seq} is missing; nothing was copied: run verify")
    return entry


def _branch(row: BranchRow, active: int) -> Branch:
    return Branch(
        id=row.id,
        leaf_seq=row.leaf_seq,
        fork_seq=row.fork_seq,
        is_active=row.number == active,
        created_at=from_micros(row.created_at),
    )


def check_title(title: object) -> str | None:
    """A title that any database can hold, or Invalid."""
    if title is None:
        return None
    if not isinstance(title, str):
        raise Invalid(f"must be a string, not {type(title).__name__}", field="title")
    if len(title) > MAX_TITLE_CHARACTERS:
        raise Invalid(f"must have at most {MAX_TITLE_CHARACTERS} characters, this has {len(title)}", field="title")
    return check_text(title, "title")


def dump_metadata(metadata: object) -> bytes:
    """Metadata as JSON bytes, or Invalid."""
    if not isinstance(metadata, Mapping):
        raise Invalid(f"must be a mapping, not {type(metadata).__name__}", field="metadata")
    return ingest.dump(dict(metadata), field="metadata")
