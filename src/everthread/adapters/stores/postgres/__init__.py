"""The store beyond one machine: PostgreSQL 14 and later, for any number of processes."""

from __future__ import annotations

from everthread.adapters.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
