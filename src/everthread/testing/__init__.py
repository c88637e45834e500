"""Doubles that are shipped, so that users test their own programs with the ones we test ours with.

`ScriptedModel` and its `Reply` need LangChain, and are imported only when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everthread.adapters.stores.in_memory import InMemoryStore
from everthread.core.errors import MissingExtra
from everthread.testing.clock import ManualClock
from everthread.testing.embedder import FakeEmbedder

if TYPE_CHECKING:
    from everthread.testing.scripted import Reply, ScriptedModel

__all__ = ["FakeEmbedder", "InMemoryStore", "ManualClock", "Reply", "ScriptedModel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from everthread.testing import scripted  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra(f"{name} needs an extra: pip install 'everthread[langchain]'") from problem
    return getattr(scripted, name)
