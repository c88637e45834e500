"""The store in memory: the reference that the databases are compared with, and a quick one for tests."""

from __future__ import annotations

from everthread.adapters.stores.in_memory.store import InMemoryStore

__all__ = ["InMemoryStore"]
