"""The embedded store: one file, one writer thread with group commit, readers beside it.

store                       joins the ports: `log`, `conversations`, `views`, `search`, `notes`, `checkpoints`, `items`,
                            `turns`, `access` (keys and replies) and `maintenance` each implement one
statements, turn_statements every SQL statement, by name
engine, files               the writer and the readers; opening a file and bringing it up to date
indexing, unindexed         the search index, written in batches, and what waits for it; `id_index` does so for ids
compactions, erase          the summaries a view needs; erasing
blobs, compression          large payloads outside of the file; payloads compressed in it
"""

from __future__ import annotations

from everthread.adapters.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
