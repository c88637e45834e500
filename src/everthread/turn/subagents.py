"""Subagents: the same graph in a child conversation, with a state, a budget and an end of its own.

What comes back is a result, whatever happened: the answer, or why there is none. The whole transcript stays readable in
the child, whose id is the `context_id`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypedDict
from uuid import uuid4

from langchain_core.tools import tool
from pydantic import Field

from everthread.conversation import Conversation
from everthread.core.errors import EverthreadError
from everthread.core.timeouts import time_limit
from everthread.core.turn_events import Done, Failed, TurnEvent
from everthread.runs.engine import LiveTurn
from everthread.turn.agent import SUBAGENT
from everthread.turn.request import TurnOptions
from everthread.turn.turn_context import CALL_SUBAGENT, TurnContext, current

_MAX_LOOPS = 50
_TITLE_CHARACTERS = 80


class SubagentResult(TypedDict):
    """What the calling model reads."""

    ok: bool
    result: str
    context_id: str | None
    loops: int


@tool(CALL_SUBAGENT)
async def call_subagent(
    task: Annotated[
        str, Field(description="What to do, with everything it needs to know: it sees nothing of this conversation")
    ],
    max_loops: Annotated[int, Field(ge=1, le=_MAX_LOOPS, description="How many steps it may take")] = 10,
    tools: Annotated[
        list[str], Field(max_length=50, description="Tools of yours that it needs beyond the usual ones, by name")
    ] = [],  # noqa: B006 - a list in the schema that models are shown
) -> str:
    """Hand a task with many steps to a subagent with a context of its own; its result comes back, not its steps."""
    return json.dumps(await _run_subagent(current(), task, max_loops, tools), ensure_ascii=False)


async def _run_subagent(ctx: TurnContext, task: str, max_loops: int, tools: Sequence[str]) -> SubagentResult:
    limits = ctx.agent.limits
    if not task.strip():
        return _refusal("the task is empty; say what is to be done")
    if ctx.depth >= limits.subagent_depth:
        return _refusal(f"subagents are nested {limits.subagent_depth} deep at most; do it here")
    if len(ctx.subagents) >= limits.subagents:
        return _refusal(f"one turn calls {limits.subagents} subagents at most; do the rest here")
    if unknown := [name for name in tools if name not in ctx.offered]:
        return _refusal(f"no tool is called {unknown[0]!r} here; you have {', '.join(ctx.offered)}")
    conversation = ctx.conversation
    child = await ctx.agent.et.conversations.create(
        owner=conversation.owner,
        id=f"subagent-{uuid4()}",
        parent_id=conversation.id,
        title=task.replace("\x00", "")[:_TITLE_CHARACTERS],
        metadata={"turn_id": ctx.turn.id, "depth": ctx.depth + 1},
        off_record=conversation.off_record,
    )
    ctx.subagents.append(child.id)
    try:
        live = await _begin_child_turn(ctx, child, task, max_loops, tools)
    except EverthreadError as problem:
        return SubagentResult(ok=False, result=str(problem), context_id=child.id, loops=0)
    return await _wait_for_result(live, child, limits.subagent_seconds)


async def _begin_child_turn(
    ctx: TurnContext, child: Conversation, task: str, max_loops: int, tools: Sequence[str]
) -> LiveTurn:
    from everthread.turn.run import begin_turn  # noqa: PLC0415 - a turn calls tools, and this tool begins a turn

    outer = ctx.options
    options = TurnOptions(
        model=outer.model,
        model_pref=outer.model_pref,
        agent_type=SUBAGENT,
        features=outer.features,
        allowed_tools=list(dict.fromkeys([*outer.allowed_tools, *tools])),
        max_loops=max_loops,
        workspace=outer.workspace,
        callbacks=outer.callbacks,
        kind="subagent",
    )
    return await begin_turn(child, task, agent=ctx.agent, options=options, outer=ctx)


async def _wait_for_result(live: LiveTurn, child: Conversation, seconds: float) -> SubagentResult:
    last: TurnEvent | None = None
    try:
        async with time_limit(seconds):
            async for event in live.event_log.listen():
                last = event
    except TimeoutError:
        text = f"it did not end within {seconds:g} seconds and was stopped; what it did is in its conversation"
        return SubagentResult(ok=False, result=text, context_id=child.id, loops=0)
    finally:
        live.stop()
        await live.wait()
    if isinstance(last, Done):
        ok = last.state == "complete"
        result = last.text if ok else f"it was {last.state}: {last.text}".rstrip(": ")
        return SubagentResult(ok=ok, result=result, context_id=child.id, loops=last.loops)
    text = last.message if isinstance(last, Failed) else "it ended without a word"
    return SubagentResult(ok=False, result=text, context_id=child.id, loops=0)


def _refusal(why: str) -> SubagentResult:
    return SubagentResult(ok=False, result=why, context_id=None, loops=0)
