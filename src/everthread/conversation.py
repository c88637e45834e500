"""A conversation, as its users hold it: its log, its branches and what is read from them.

What a model sees of it is in `contexts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from everthread.contexts import TO_EMBED, Contexts
from everthread.core import payloads
from everthread.core.clock import from_micros
from everthread.core.entries import Entry, Mark
from everthread.core.errors import Conflict, Erased, Invalid, NotFound, StoreDamaged
from everthread.core.ids import check_id, check_text, new_id
from everthread.core.jobs import REMEMBER, NewJob
from everthread.core.log import BranchName, BranchRow
from everthread.core.memories import Memory, MemoryKind, MemoryScope, Origin
from everthread.core.nouns import Branch, ConversationInfo, Hits, Message, Receipt, Ref
from everthread.core.ports import NewConversation
from everthread.core.turn_events import TurnEvent, from_stored
from everthread.core.turns import Turn, TurnQuery, TurnState
from everthread.history import exporting, ingest, intents, reading, turn_intents
from everthread.history import search as searching
from everthread.history.arguments import check_branch, check_count
from everthread.recall import search as recalling
from everthread.recall.memories import Memories
from everthread.recall.policy import RecallHits, Scope, check_scope
from everthread.recall.remarks import may_tell, remarks

MAX_TITLE_CHARACTERS: Final = 1000
MAX_QUERY_CHARACTERS: Final = 100_000
_MOST_TRIES: Final = 10
_EVENTS: Final = 1000
"""About how many events are read at once."""
_OFFLOAD_BYTES: Final = 65_536
"""From this size on a batch is prepared in a thread: counting tokens of 10 MB takes about a second."""


class _Unset:
    """Stands for an argument that was not given, where None means something."""


UNSET: Final = _Unset()


class Conversation(Contexts):
    """One conversation of one owner. All of its verbs may be called from any number of tasks at once."""

    def __repr__(self) -> str:
        return f"<Conversation {self.owner}/{self.id} {self.title!r}>"

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def owner(self) -> str:
        return self.info.owner

    @property
    def title(self) -> str | None:
        return self.info.title

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.info.metadata

    @property
    def parent_id(self) -> str | None:
        """The conversation this one is a subagent of."""
        return self.info.parent_id

    @property
    def is_active(self) -> bool:
        return self.info.is_active

    @property
    def is_deleted(self) -> bool:
        return self.info.deleted_at is not None

    @property
    def off_record(self) -> bool:
        """Whether it is kept out of every index and erased when the database is closed."""
        return self.info.off_record

    @property
    def created_at(self) -> datetime:
        return self.info.created_at

    @property
    def updated_at(self) -> datetime:
        return self.info.updated_at

    async def refresh(self) -> Conversation:
        """Read the row again."""
        self.info = await self._store.conversations.get(self._ref)
        return self

    # -- the row -------------------------------------------------------------------------------------------

    async def update(
        self,
        *,
        title: str | _Unset | None = UNSET,
        metadata: Mapping[str, Any] | _Unset = UNSET,
        is_active: bool | _Unset = UNSET,
    ) -> Conversation:
        """Set what is given; leave the rest."""
        changes: dict[str, Any] = {}
        if not isinstance(title, _Unset):
            changes["title"] = check_title(title)
        if not isinstance(metadata, _Unset):
            changes["metadata"] = dump_metadata(metadata)
        if not isinstance(is_active, _Unset):
            if not isinstance(is_active, bool):
                raise Invalid(f"must be true or false, not {is_active!r}", field="is_active")
            changes["is_active"] = is_active
        return await self._change(changes)

    async def delete(self) -> Conversation:
        """Take it out of lists and searches. Nothing is removed; `restore` undoes it."""
        return await self._change({"deleted_at": self._clock()})

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
        """Keep these messages for ever; durable when this returns, all of them or none.

        Takes OpenAI-shape and LangChain-shape dicts, LangChain messages and JSON bytes. The same message again
        is nothing new; a known id with other content is a revision. A retry is safe when the messages carry ids
        or the call an idempotency key. `expected_head` is the seq the branch must end at (0: still empty).
        """
        if idempotency_key is not None:
            check_id(idempotency_key, "idempotency_key")
        if expected_head is not None:
            check_count(expected_head, "expected_head")
        prepared = await self._prepared(messages)
        intent = intents.Append(
            messages=prepared,
            branch=check_branch(branch),
            expected_head=expected_head,
            idempotency_key=idempotency_key,
            first_look=self._means.first_look,
            jobs=(*self._to_remember(prepared), *self._to_embed()),
        )
        return await self._store.log.write(self._ref, intent) if intent.messages else []

    def _to_remember(self, messages: Sequence[ingest.Prepared]) -> Sequence[NewJob]:
        """A job where the user tells something that is worth remembering: most messages need none."""
        policy = self._means.policy
        if not policy.extract_memories or self.parent_id is not None or self.off_record:
            return ()
        has_model = self._means.summariser is not None or policy.summary_model is not None
        said = (payloads.text(one.payload) for one in messages if one.role == "user")
        is_worth_it = any(may_tell(text) if has_model else remarks(text) for text in said)
        return (NewJob(kind=REMEMBER),) if is_worth_it else ()

    def _to_embed(self) -> Sequence[NewJob]:
        """A job that makes vectors of what is said; one waits, however much is said until it is done."""
        return TO_EMBED if self._means.meaning is not None and not self.off_record else ()

    async def _prepared(self, messages: object) -> list[ingest.Prepared]:
        batch = ingest.as_batch(messages)
        count_later = self._store.log.counts_later and not self.off_record
        if ingest.rough_bytes(batch) < _OFFLOAD_BYTES:
            return ingest.prepare_all(batch, count_later=count_later)
        return await asyncio.to_thread(ingest.prepare_all, batch, count_later=count_later)

    async def edit(self, id: str, payload: object, *, activate: bool = True) -> Receipt:
        """Put another message in this one's place, on a new branch; the original and its answers stay."""
        check_id(id, "id")
        (message,) = await self._prepared([payload])
        sibling = intents.as_sibling(message, id, new_id())
        return await self._store.log.write(self._ref, intents.Edit(target=id, message=sibling, activate=activate))

    async def delete_message(self, id: str) -> None:
        """Hide a message from history and from the model; `restore_message` undoes it."""
        await self._mark(id, Mark.DELETED)

    async def restore_message(self, id: str) -> None:
        """Undo `delete_message`."""
        await self._mark(id, Mark.RESTORED)

    async def pin(self, id: str) -> None:
        """Keep a message in the model's view whatever is compacted."""
        await self._mark(id, Mark.PINNED)

    async def unpin(self, id: str) -> None:
        """Undo `pin`."""
        await self._mark(id, Mark.UNPINNED)

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
    ) -> Memory:
        """Remember something that is known from here (from the message `seq`): of the user, or for this conversation
        alone. Conflict when it is off the record."""
        return await Memories(self._store, self._means.embedder).add(
            self.owner,
            text,
            kind=kind,
            scope=scope,
            conversation=self.id,
            seq=seq,
            subject=subject,
            pinned=pinned,
            origin=origin,
        )

    async def remembered(self, query: str | None = None, *, limit: int = 100) -> Sequence[Memory]:
        """The memories that hold here, newest first; with a query those that have its words, best first."""
        memories = Memories(self._store, self._means.embedder)
        if query is None:
            return (await memories.list(self.owner, conversation=self.id, limit=limit)).items
        return [hit.memory for hit in await memories.search(self.owner, query, conversation=self.id, limit=limit)]

    async def forget(self, id: str) -> Memory:
        """Take a memory that holds here out of every search and context; `et.memories.restore` undoes it."""
        return await Memories(self._store, self._means.embedder).forget(self.owner, id)

    # -- branches ------------------------------------------------------------------------------------------

    async def fork(self, at_seq: int, *, activate: bool = False) -> Branch:
        """A new branch that shares everything up to this message (0: nothing)."""
        check_count(at_seq, "at_seq")
        row, active = await self._store.log.write(self._ref, intents.Fork(at_seq=at_seq, activate=activate))
        return _branch(row, active)

    async def set_active(self, branch: Branch | BranchName) -> Branch:
        """Show and extend this branch when no other is named."""
        row = await self._store.log.write(self._ref, intents.SetActive(branch=check_branch(branch)))
        return _branch(row, row.number)

    async def branches(self) -> AsyncIterator[Branch]:
        """Every branch, oldest first."""
        rows, active = await self._store.log.branches(self._ref)
        for row in rows:
            yield _branch(row, active)

    async def children(self) -> AsyncIterator[Conversation]:
        """The conversations of its subagents, newest first."""
        position = None
        while True:
            page, position = await self._store.conversations.list(
                self.owner, limit=200, position=position, include_deleted=False, parent_id=self.id
            )
            for info in page:
                yield Conversation(self._means, info)
            if position is None:
                return

    async def copy(self, *, id: str | None = None, title: str | None = None) -> Conversation:
        """A new conversation with entries of its own: the same messages, revisions, marks and branches.

        Children and idempotency keys are not copied, nor is what was erased. A copy that a crash cut short is
        empty; the same call with the same id completes it.
        """
        entries, rows, active = await self._whole()
        new = NewConversation(
            owner=self.owner,
            id=new_id() if id is None else check_id(id, "id"),
            parent_id=None,
            title=self.title if title is None else check_title(title),
            metadata=dump_metadata(self.metadata),
            off_record=self.off_record,
        )
        copied = Conversation(self._means, await self._created_or_empty(new))
        intent = intents.Transcribe(entries=entries, branches=rows, active=active)
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
            entries = [entry async for entry in reading.log(self._store.log, self._ref)]
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
        """The messages along a branch in their order, each in its newest revision (or in all of them)."""
        return reading.stream(
            self._store.log,
            self._ref,
            after=check_count(after, "after"),
            limit=limit if limit is None else check_count(limit, "limit"),
            branch=check_branch(branch),
            revisions=revisions,
            include_deleted=include_deleted,
        )

    async def tail(
        self, count: int, *, branch: Branch | BranchName = None, include_deleted: bool = False
    ) -> list[Message]:
        """The newest messages of a branch, in their order."""
        check_count(count, "count")
        return await reading.tail(
            self._store.log, self._ref, count, branch=check_branch(branch), include_deleted=include_deleted
        )

    async def message(self, id: str) -> Message:
        """One message in its newest revision, deleted or not, on whichever branch it stands."""
        return await reading.one(self._store.log, self._ref, check_id(id, "id"))

    async def message_at(self, seq: int) -> Message:
        """The message at this place, or that the entry there speaks of, in its newest revision."""
        for entry in await self._store.log.find(self._ref, seqs=[check_count(seq, "seq")]):
            return await reading.one(self._store.log, self._ref, entry.id)
        raise NotFound(f"no message with seq {seq} in conversation {self.id!r}")

    def export(
        self,
        format: exporting.Format = "md",
        *,
        branch: Branch | BranchName = None,
        thinking: bool = True,
        tools: bool = True,
    ) -> AsyncIterator[bytes]:
        """The conversation as Markdown (`md`), a page (`html`), `json`, or a line for each message (`jsonl`).

        Markdown and pages also without the model's thinking, or without its calls of tools and what came of them.
        """
        return exporting.export(self.info, self.messages(branch=branch), format, exporting.Parts(thinking, tools))

    async def search(self, text: str, *, limit: int = 20) -> Hits:
        """Messages of this conversation by their words, on whichever branch, best first."""
        if not isinstance(text, str):
            raise Invalid(f"must be a string, not {type(text).__name__}", field="text")
        check_count(limit, "limit")
        return await searching.search(self._store.search, text, owner=self.owner, conversation=self.id, limit=limit)

    # -- turns ---------------------------------------------------------------------------------------------

    async def turn(self, id: str) -> Turn:
        """Where a turn stands; NotFound when this conversation has none by this id."""
        return await self._store.turns.get(self._ref, check_id(id, "id"))

    async def turns(
        self, *, limit: int = 50, before: int | None = None, states: Sequence[TurnState] = ()
    ) -> Sequence[Turn]:
        """Its turns, newest first; the next page begins `before` the number of the last one."""
        check_count(limit, "limit")
        return await self._store.turns.list(TurnQuery(self.owner, self.id, tuple(states), before, limit))

    async def turn_events(self, id: str, *, after: int = 0) -> AsyncIterator[TurnEvent]:
        """What a turn has told so far, from the event after this number on; kept for some days."""
        check_count(after, "after")
        while page := await self._store.turns.events(self._ref, check_id(id, "id"), after=after, limit=_EVENTS):
            for one in page:
                yield from_stored(one)
            after = page[-1].number

    async def stop_turn(self, id: str) -> Turn:
        """Stop a turn, wherever it runs. One that waits ends at once; one that runs ends within a few seconds, what it
        has said is kept. One that has ended stays as it is."""
        turn = await self.turn(id)
        return await self._store.log.write(
            self._ref, turn_intents.StopTurn(turn=turn, first_look=self._means.first_look)
        )

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        max_tokens: int = 2000,
        scope: Scope | None = None,
        asked_at: datetime | None = None,
    ) -> RecallHits:
        """What was said that has to do with a question, however long ago and in whatever words, best first.

        Found by words and, where there is an embedder, by meaning, along the active branch; with the scope `owner` in
        all that the owner has. Of a long message comes the passage that has to do with it. A question that names a
        time (`last week`) means it as of `asked_at`, which is now unless told. All hits together count to
        `max_tokens` at most. The answer says when an index is behind, or a part of it did not answer.
        """
        if not isinstance(query, str):
            raise Invalid(f"must be a string, not {type(query).__name__}", field="query")
        if len(query) > MAX_QUERY_CHARACTERS:
            raise Invalid(f"must have at most {MAX_QUERY_CHARACTERS} characters, this has {len(query)}", field="query")
        check_count(limit, "limit")
        check_count(max_tokens, "max_tokens")
        sources = self._means.sources
        is_wide = check_scope(sources.policy.scope if scope is None else scope) == "owner"
        path = await recalling.path_of(self._store, self._ref)
        found = await recalling.find(
            sources,
            self.owner,
            None if is_wide else self.id,
            query,
            asked_at=None if asked_at is None else check_moment(asked_at),
            path=None if is_wide else path,
            at_least=limit,
        )
        await self._index_later(found.is_behind)
        return found.hits(limit, max_tokens)


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
