"""The demo from curtain to curtain: play the story, then count, verify and search."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import BaseMessage

from everthread import bootstrap
from everthread.conversation import Conversation
from everthread.core.ids import new_id
from everthread.core.nouns import Message
from everthread.demo.result import DemoResult, DemoSearch
from everthread.demo.stage import Stage
from everthread.demo.story import ASKED_LATER, turns
from everthread.instance import Everthread
from everthread.settings import masked


async def run(database_url: str | None = None) -> DemoResult:
    """Hold the conversation and measure what became of it; without an address in a temporary SQLite file."""
    if database_url is not None:
        return await _play(database_url, masked(database_url))
    with tempfile.TemporaryDirectory(prefix="everthread-demo-") as folder:
        return await _play(f"sqlite:///{Path(folder) / 'demo.db'}", None)


async def _play(url: str, shown: str | None) -> DemoResult:
    start = time.monotonic()
    story = list(turns())
    stage = Stage(story, f"demo-{new_id()}")
    async with bootstrap.open(url) as et:
        await stage.play(et)
        conversation = await et.conversations.get(stage.thread_id)
        history = [message async for message in conversation.messages()]
        left = {message.id for message in await stage.checkpoint()}
        report = await et.verify()
        return DemoResult(
            conversation_id=conversation.id,
            database=shown,
            turns=len(story),
            said=len(stage.witness.heard),
            in_checkpoint=sum(message.id in left for message in stage.witness.heard),
            in_log=len({message.id for message in history} & {message.id for message in stage.witness.heard}),
            is_exact=_is_exact(history, stage.witness.heard),
            summaries=len(stage.summariser.requests),
            verified_entries=report.entries,
            is_verified=report.ok,
            searches=[await _search(et, conversation, query, left) for query in ASKED_LATER],
            seconds=round(time.monotonic() - start, 2),
        )


def _is_exact(history: Sequence[Message], heard: Sequence[BaseMessage]) -> bool:
    return [(message.id, message.text) for message in history] == [(message.id, message.text) for message in heard]


async def _search(et: Everthread, conversation: Conversation, query: str, left: set[str | None]) -> DemoSearch:
    hits = await et.search(query, conversation=conversation.id, limit=1)
    if not hits:
        return DemoSearch(query=query, seq=0, role="", text="", in_checkpoint=False)
    found = await conversation.message(hits[0].id)
    return DemoSearch(query=query, seq=found.seq, role=found.role, text=found.text, in_checkpoint=found.id in left)
