"""The store in memory: the reference that the databases are compared with, and a quick one for tests."""

from __future__ import annotations

from everthread.adapters.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
