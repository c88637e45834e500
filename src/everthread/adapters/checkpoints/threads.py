"""Which thread and checkpoint a LangGraph config points to, and which conversation holds that thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig

from everthread.adapters.checkpoints.cache import ThreadCaches
from everthread.core.errors import Invalid, NotFound
from everthread.core.ids import check_id, check_text
from everthread.core.nouns import Ref
from everthread.instance import Everthread

OWNER_KEY = "everthread_owner"
"""The key in `configurable` that names the owner of a call."""
_FILTER_KEY = re.compile(r"[\w.:\- ]{1,128}")


class CheckpointAddress(NamedTuple):
    """A thread, a namespace in it, and perhaps a checkpoint."""

    owner: str
    thread_id: str
    namespace: str
    id: str | None

    @property
    def thread(self) -> Ref:
        """The thread, under whichever conversation it has now."""
        return Ref(self.owner, self.thread_id)

    def config(self, id: str | None) -> RunnableConfig:
        """The config that points to a checkpoint of this namespace."""
        return {
            "configurable": {"thread_id": self.thread_id, "checkpoint_ns": self.namespace, "checkpoint_id": id},
        }


def address_of(config: RunnableConfig, owner: str) -> CheckpointAddress:
    """The address that a config points to."""
    given: Mapping[str, Any] = config.get("configurable") or {}
    if "thread_id" not in given:
        raise Invalid('is missing; call with {"configurable": {"thread_id": "…"}}', field="thread_id")
    return CheckpointAddress(
        check_id(given.get(OWNER_KEY) or owner, OWNER_KEY),
        check_id(str(given["thread_id"]), "thread_id"),
        check_text(given.get("checkpoint_ns") or "", "checkpoint_ns"),
        given.get("checkpoint_id"),
    )


def check_filter(filter: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The metadata that checkpoints must have. Invalid for a key that metadata cannot have."""
    for key in filter or {}:
        if not isinstance(key, str) or not _FILTER_KEY.fullmatch(key):
            raise Invalid(f"{key!r} is not a valid metadata key; use letters, digits and . : - _", field="filter")
    return filter or {}


class Threads:
    """The threads of all owners in one database, as one saver sees them."""

    def __init__(self, et: Everthread, on_delete: str) -> None:
        self.et = et
        self.store = et.store
        self.caches = ThreadCaches()
        self.erases = on_delete == "erase"
        """Whether a thread that is deleted takes its log along."""
        self._erased: set[Ref] | None = None
        self._thread_ids: dict[Ref, str] = {}
        """The thread of a conversation, where the two have different ids."""

    async def ref(self, owner: str, thread_id: str) -> Ref:
        """The conversation of a thread. An erased one is never written to again: the next epoch is another."""
        ref = Ref(owner, thread_id)
        if not self.erases:
            return ref
        if self._erased is None:
            self._erased = {
                Ref(row[0], row[1]) for row in await self.store.maintenance.erasures() if row[1] and not row[2]
            }
        epoch = 1
        while ref in self._erased:
            epoch += 1
            ref = Ref(owner, f"{thread_id}~{epoch}")
        self._thread_ids[ref] = thread_id
        return ref

    def thread_id(self, ref: Ref) -> str:
        """The id of a conversation's thread."""
        return self._thread_ids.get(ref, ref.id)

    async def erase(self, ref: Ref) -> None:
        """Erase a thread's conversation, if it has one."""
        try:
            await self.et.erase(owner=ref.owner, conversation=ref.id)
        except NotFound:  # nothing was ever put there
            return
        self._erased = None
