"""Where in a thread a call of LangGraph's points to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig

from everthread.core.errors import Invalid
from everthread.core.ids import check_id, check_text
from everthread.core.nouns import Ref

OWNER = "everthread_owner"
"""The key in `configurable` that names the owner of a call."""
_FILTER_KEY = re.compile(r"[\w.:\- ]{1,128}")


class Spot(NamedTuple):
    """A thread, a namespace in it, and perhaps a checkpoint."""

    owner: str
    thread_id: str
    namespace: str
    id: str | None

    @property
    def thread(self) -> Ref:
        """Its thread, whichever conversation that is now."""
        return Ref(self.owner, self.thread_id)

    def config(self, id: str | None) -> RunnableConfig:
        """The config that points to a checkpoint of this namespace."""
        return {
            "configurable": {"thread_id": self.thread_id, "checkpoint_ns": self.namespace, "checkpoint_id": id},
        }


def spot_of(config: RunnableConfig, owner: str) -> Spot:
    """Where a config points to."""
    given: Mapping[str, Any] = config.get("configurable") or {}
    if "thread_id" not in given:
        raise Invalid('is missing; call with {"configurable": {"thread_id": "…"}}', field="thread_id")
    return Spot(
        check_id(given.get(OWNER) or owner, OWNER),
        check_id(str(given["thread_id"]), "thread_id"),
        check_text(given.get("checkpoint_ns") or "", "checkpoint_ns"),
        given.get("checkpoint_id"),
    )


def check_filter(filter: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What checkpoints' metadata must be equal to. A key that could be no key of metadata is refused."""
    for key in filter or {}:
        if not isinstance(key, str) or not _FILTER_KEY.fullmatch(key):
            raise Invalid(f"{key!r} is no key of metadata; use letters, digits and . : - _", field="filter")
    return filter or {}
