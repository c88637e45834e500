"""LangGraph's checkpoints over the log: `EverthreadSaver`, and `EverthreadStore` beside it.

A checkpoint refers to the log's entries instead of repeating them. One `put` passes `saver` (the public verbs),
`put` (retries, waiting for what came before), `draft` (what is new in it, with the help of `cache` and
`message_lists`), `checkpoint_intents` (what enters the log and what the row says, decided inside the store's
transaction) and `row_format` (the row's bytes). Reading goes through `get` and `stored_message`.
"""

from __future__ import annotations
