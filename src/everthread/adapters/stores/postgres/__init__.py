"""The store beyond one machine: PostgreSQL 14 and later, for any number of processes.

store                       joins the ports: `log`, `conversations`, `views`, `search`, `notes`, `checkpoints`, `items`,
                            `turns`, `access` (keys and replies) and `maintenance` each implement one
statements, turn_statements every SQL statement, by name
address, pool, errors       a database's address, the connections to it, and its errors as ours
tables, dump                bringing a database up to date; backups by PostgreSQL's own programs
compactions, erase, blobs   the summaries a view needs; erasing; large payloads outside of the database
"""

from __future__ import annotations

from everthread.adapters.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
