"""Writes imported sessions to the log, batch by batch. Every batch is one transaction and may be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everthread.conversation import dump_metadata
from everthread.core.entries import EntryOrigin
from everthread.core.errors import Conflict, Erased, EverthreadError, Invalid, NotFound
from everthread.core.nouns import Ref
from everthread.core.ports import NewConversation
from everthread.history import ingest
from everthread.imports.intents import Incoming, PlaceMessages
from everthread.imports.session import NativeMessage, Session
from everthread.instance import Everthread
from everthread.runtime import TO_EMBED

BATCH_MESSAGES = 500
BATCH_BYTES = 4 << 20


@dataclass(slots=True, kw_only=True)
class ImportCounts:
    """What an import wrote, and what it could not read."""

    files: int = 0
    """Files that were read."""
    unchanged: int = 0
    """Files that are as they were when they were last read, and were not read again."""
    imported: list[str] = field(default_factory=list)
    """The ids of conversations that are new here."""
    messages: int = 0
    """Messages that are new here."""
    revised: int = 0
    """Messages that were here with other content, and have a newer version now."""
    known: int = 0
    """Messages that were here already."""
    removed: int = 0
    """Messages that their program has removed since, and that are kept."""
    passed_over: list[str] = field(default_factory=list)
    """Files of a known kind that hold no conversations."""
    problems: list[str] = field(default_factory=list)
    """What could not be read, each with its place. Everything around it was."""
    problem_count: int = 0

    def add_problem(self, text: str) -> None:
        """Keep the first thousand, each once; of a broken file of gigabytes the rest is only counted."""
        if text in self.problems:
            return
        self.problem_count += 1
        if len(self.problems) < 1000:
            self.problems.append(text)


class SessionWriter:
    """Collects messages of one import and writes them to the conversations they belong to."""

    def __init__(self, et: Everthread, owner: str, counts: ImportCounts) -> None:
        self._et = et
        self._store = et.store
        self._owner = owner
        self._counts = counts
        self._known: dict[str, tuple[str | None, dict[str, Any]]] = {}
        """Title and metadata of the conversations that are known to exist."""
        self._erased: set[str] = set()
        is_embedded = et.runtime.recall.embed_ahead and et.runtime.meaning is not None
        self._jobs = (TO_EMBED,) if is_embedded else ()  # else when somebody asks for meaning

    def ref(self, session_id: str) -> Ref:
        return Ref(self._owner, session_id)

    async def write(
        self,
        session: Session,
        messages: Sequence[tuple[NativeMessage, int | None, bytes]],
        *,
        source: int,
        place: str,
        is_newest: Callable[[NativeMessage], bool] = lambda _: False,
    ) -> None:
        """Write messages of one session, each with the position and the bytes of its line. Those that cannot be stored
        are named in the report, with `place`, and left out. `is_newest` knows which are the last versions of
        themselves."""
        if session.id in self._erased or not messages:
            return
        incoming = await asyncio.to_thread(self._prepare, messages, place, is_newest)
        if not incoming:
            return
        try:
            await self._ensure(session)
            intent = PlaceMessages(messages=incoming, source=source, jobs=self._jobs)
            outcome = await self._store.log.write(self.ref(session.id), intent)
        except Erased:
            self._erased.add(session.id)
            self._counts.add_problem(f"{place}: conversation {session.id} was erased here and is not imported again")
            return
        self._counts.messages += outcome.new
        self._counts.revised += outcome.revised
        self._counts.known += len(incoming) - outcome.new - outcome.revised - len(outcome.skipped)
        for id in outcome.skipped:
            self._counts.add_problem(f"{place}: message {id} was erased here and is not imported again")

    def _prepare(
        self,
        messages: Sequence[tuple[NativeMessage, int | None, bytes]],
        place: str,
        is_newest: Callable[[NativeMessage], bool],
    ) -> list[Incoming]:
        incoming = []
        for native, first_byte, line in messages:
            try:
                prepared = ingest.prepare(
                    native.payload,
                    field=str(native.payload.get("id")),
                    count_later=self._store.log.defers_token_count,
                    origin=EntryOrigin.IMPORT,
                )
            except EverthreadError as problem:
                self._counts.add_problem(f"{place}: {problem}")
                continue
            incoming.append(
                Incoming(prepared, native.after, first_byte, line, is_newest(native), native.replaces_nothing)
            )
        return incoming

    async def _ensure(self, session: Session) -> None:
        """Create the conversation where it is missing, and tell an existing one what is known of it now."""
        if session.parent_id is not None and session.parent_id not in self._known:
            await self._ensure(Session(id=session.parent_id, agent=session.agent, created_at=session.created_at))
        known = self._known.get(session.id)
        if known is None:
            known = await self._created_or_found(session)
        title, metadata = known
        changes: dict[str, Any] = {}
        if session.title is not None and title is None:
            changes["title"] = title = session.title
        if more := {name: value for name, value in session.metadata.items() if name not in metadata}:
            metadata = {**metadata, **more}
            changes["metadata"] = _dumped(metadata)
        if changes:
            await self._store.conversations.update(self.ref(session.id), changes)
        self._known[session.id] = (title, metadata)

    async def _created_or_found(self, session: Session) -> tuple[str | None, dict[str, Any]]:
        try:
            found = await self._store.conversations.get(self.ref(session.id))
            return found.title, dict(found.metadata)
        except NotFound:
            pass
        new = NewConversation(
            owner=self._owner,
            id=session.id,
            parent_id=session.parent_id,
            title=session.title,
            metadata=_dumped(session.metadata),
            off_record=False,
            created_at=session.created_at,
        )
        try:
            await self._store.conversations.create(new)
        except Erased:
            raise
        except Conflict:  # another watcher was faster
            found = await self._store.conversations.get(self.ref(session.id))
            return found.title, dict(found.metadata)
        self._counts.imported.append(session.id)
        return session.title, dict(session.metadata)


def _dumped(metadata: Mapping[str, Any]) -> bytes:
    try:
        return dump_metadata(metadata)
    except Invalid:  # half a surrogate in a path: keep what can be kept
        return dump_metadata({name: ascii(value) for name, value in metadata.items()})
