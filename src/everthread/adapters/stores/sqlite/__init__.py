"""The embedded store: one file, one writer thread with group commit, readers beside it."""

from __future__ import annotations

from everthread.adapters.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
