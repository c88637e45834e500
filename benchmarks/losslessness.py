"""How many of the messages that were really said each place still has: the table of docs/how-to/keep-full-history.md.

`python -m benchmarks.losslessness` prints it. Every scene is played twice by a scripted model: with LangGraph's own
`InMemorySaver`, and with the same saver inside `ArchivingSaver` and with `EverthreadMiddleware`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.memory import InMemorySaver

import everthread
from benchmarks.scenarios import SCENES, Play, Rig, Truth, texts_in_checkpoints, texts_in_state
from everthread import Conversation, Everthread
from everthread.langchain import EverthreadMiddleware
from everthread.langgraph import ArchivingSaver


class Kept(NamedTuple):
    """One row: a scene, and how many of its texts each place has."""

    scene: str
    said: int
    in_state: int
    in_checkpoints: int
    in_everthread: int
    is_in_order: bool
    """Whether everthread's history is just the path that is shown, each message once, in order."""


async def measure(scene: str, play: Play) -> Kept:
    """Play a scene without and with everthread."""
    bare = Rig(InMemorySaver())
    truth = await play(bare)
    in_state = truth.texts & set(await texts_in_state(bare))
    in_checkpoints = truth.texts & await texts_in_checkpoints(bare)
    async with everthread.open("memory://") as et:
        rig = Rig(ArchivingSaver(InMemorySaver(), et), [EverthreadMiddleware(et, history_tools=False)])
        kept = await play(rig)
        found = await _texts_in_log(await et.conversations.get("scene"))
        is_in_order = await _history(et, rig) == kept.paths[-1]
        return Kept(scene, len(truth.texts), len(in_state), len(in_checkpoints), len(kept.texts & found), is_in_order)


async def _history(et: Everthread, rig: Rig) -> list[Any]:
    history = await et.full_history("scene", saver=rig.saver)
    return [message["content"] for message in history["values"]["messages"]]


async def _texts_in_log(conversation: Conversation) -> set[str]:
    """On all branches, and in the conversations of subagents."""
    found: set[str] = set()
    async for branch in conversation.branches():
        found.update([message.text async for message in conversation.messages(branch=branch)])
    async for child in conversation.children():
        found |= await _texts_in_log(child)
    return found


def table(rows: Sequence[Kept]) -> str:
    """The rows as Markdown."""
    head = "| scene | said | `get_state` | checkpoint history | everthread |\n|---|---|---|---|---|\n"
    return head + "\n".join(
        f"| {row.scene} | {row.said} | {row.in_state} | {row.in_checkpoints} | {row.in_everthread} |" for row in rows
    )


async def measure_all() -> list[Kept]:
    """Every scene."""
    return [await measure(scene, play) for scene, play in SCENES.items()]


__all__ = ["Kept", "Truth", "measure", "measure_all", "table"]

if __name__ == "__main__":
    print(table(asyncio.run(measure_all())))
