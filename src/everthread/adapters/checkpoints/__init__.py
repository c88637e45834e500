"""LangGraph's checkpoints over the log: `EverthreadSaver`, and `EverthreadStore` beside it.

A checkpoint refers to the log's entries instead of repeating them. The way of one `put`: `saver` (the public verbs) →
`lists` (which message objects are known, by identity) → `putting` (the intent: what enters the log, what the row
says) → the store, in one transaction.
"""

from __future__ import annotations
