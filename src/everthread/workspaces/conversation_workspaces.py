"""Workspaces of conversations, as an open database gives them: opened, cleaned when idle, erased with their owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from everthread.conversation import Conversation
from everthread.core.clock import Clock
from everthread.core.errors import Invalid, NotFound, StoreError
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.workspaces import CleanReport, FileInfo, Upload, Workspace, WorkspaceInfo, Workspaces

_LOG = logging.getLogger("everthread.workspaces")


class ConversationWorkspaces:
    """A folder for each conversation, for uploads and for the files of its tools: `et.workspaces`.

    ```python
    workspace = await et.workspaces.open(conv)
    workspace.write("plan.md", b"# Plan")
    workspace.close()
    ```
    """

    def __init__(self, store: Store, port: Workspaces, clock: Clock) -> None:
        self._store = store
        self._port = port
        self._clock = clock

    @property
    def root(self) -> Path:
        """The folder that contains the workspaces."""
        return self._port.root

    async def open(self, conversation: Conversation, *, expected: bool = False) -> Workspace:
        """Open the workspace of a conversation, creating it if there is none. Close it when done.

        With `expected`, the caller knows that there was one before: if it is gone, `notice` of the new one says so.
        Raises NotFound when the conversation was erased.
        """
        info = (await conversation.refresh()).info
        ref = Ref(info.owner, info.id)
        return await asyncio.to_thread(self._port.open, ref, expected=expected, off_record=info.off_record)

    def path(self, conversation: Conversation) -> Path:
        """The folder of its files, which is created when it is first opened."""
        return self._port.path(Ref(conversation.owner, conversation.id))

    async def uploads(self, conversation: Conversation) -> Sequence[Upload]:
        """List its uploads, oldest first, without opening it."""
        return await asyncio.to_thread(self._port.uploads, Ref(conversation.owner, conversation.id))

    async def files(self, conversation: Conversation) -> Sequence[FileInfo]:
        """List its files by name; none where it was never opened."""
        if not await asyncio.to_thread(self.path(conversation).is_dir):
            return ()
        workspace = await self.open(conversation)
        try:
            return await asyncio.to_thread(workspace.files)
        finally:
            await asyncio.to_thread(workspace.close)

    async def clean(self, *, idle_days: float | None = None, dry_run: bool = False) -> CleanReport:
        """Remove the files of workspaces that have been idle for so many days.

        A workspace is in use while it is open, or while a turn of its conversation waits or runs; such a one is never
        removed. Writing to the conversation counts as use as well.
        """
        idle_days = self._port.idle_days if idle_days is None else idle_days
        if isinstance(idle_days, bool) or not isinstance(idle_days, int | float) or not idle_days >= 0:
            raise Invalid("must be a number of days, 0 or more", field="idle_days")
        before = self._clock() - timedelta(days=min(idle_days, 100_000))
        live = {ref for ref, _ in await self._store.turns.unfinished()}
        removed: list[WorkspaceInfo] = []
        counts = {"in_use": 0, "recent": 0}
        for one in await asyncio.to_thread(lambda: list(self._port.everything())):
            if one.in_use or one.ref in live:
                counts["in_use"] += 1
            elif not await self._is_idle(one, before):
                counts["recent"] += 1
            elif dry_run or await self._remove(one.ref):
                removed.append(one)
            else:
                counts["in_use"] += 1
        return CleanReport(removed=tuple(removed), dry_run=dry_run, **counts)

    async def _remove(self, ref: Ref) -> bool:
        try:
            return await asyncio.to_thread(self._port.remove, ref)
        except StoreError as problem:  # nothing in one of them may keep a server from starting
            _LOG.warning("the workspace of %r could not be removed: %s", ref.id, problem)
            return False

    async def _is_idle(self, one: WorkspaceInfo, before: datetime) -> bool:
        """One that no conversation here has may be another database's; or it is what a crash left off the record."""
        try:
            said_at = (await self._store.conversations.get(one.ref)).updated_at
        except NotFound:
            return one.off_record
        return max(one.used_at, said_at) <= before

    async def erase(self, owner: str, conversation: str | None = None) -> int:
        """Destroy the files of a conversation, or of everything an owner has, and return how many there were."""
        return await asyncio.to_thread(self._port.erase, owner, conversation)

    async def finish_erasures(self) -> None:
        """Destroy the files of what was erased, where a crash came between the text and the files, or they could not be
        removed then."""
        for ref in await self.left_by_erasures():
            try:
                await self.erase(*ref)
            except StoreError as problem:  # no reason not to open: the next opening tries again
                _LOG.warning("files of the erased conversation %r are left: %s", ref.id, problem)

    async def left_by_erasures(self) -> list[Ref]:
        """The erased conversations that still have files."""
        if not self._port.root.is_dir():
            return []
        erased = await self._store.maintenance.erasures()
        found = await asyncio.to_thread(
            lambda: list(
                self._port.used_before((owner, id, at) for owner, id, message, at in erased if message is None)
            )
        )
        return [ref for ref in found if not await self._is_there(ref)]

    async def _is_there(self, ref: Ref) -> bool:
        try:
            await self._store.conversations.get(ref)
        except NotFound:
            return False
        return True

    async def close(self) -> None:
        """Destroy the workspaces of conversations that are off the record."""
        await asyncio.to_thread(self._port.close)
