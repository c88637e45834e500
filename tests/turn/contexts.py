"""The context and state for one node alone: a turn that has begun, over a script."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from everthread import Conversation
from everthread.core.nouns import Ref
from everthread.history.turn_intents import BeginTurn
from everthread.runs.engine import LEASE_SECONDS
from everthread.runs.event_log import TurnEventLog
from everthread.testing.scripted import Script, ScriptedModel
from everthread.turn import Agent, TurnContext, TurnOptions
from everthread.turn.agent import merge_features
from everthread.turn.request import validate
from everthread.turn.state import AppState
from everthread.turn.turn_context import set_current


async def context_of(
    conv: Conversation, agent: Agent, question: str, script: Script = (), **given: Any
) -> tuple[AppState, TurnContext]:
    """What the graph would give to its first node."""
    options = TurnOptions(model=ScriptedModel(script), **given)
    request = await validate(conv, question, agent, options)
    lease_until = datetime.now(UTC) + timedelta(seconds=LEASE_SECONDS)
    turn = replace(request.turn, holder=agent.runs.holder, lease_until=lease_until)
    intent = BeginTurn(turn=turn, messages=request.messages)
    begun = await agent.et.runtime.write(Ref(conv.owner, conv.id), intent)
    ctx = TurnContext(
        agent=agent,
        conversation=conv,
        turn=begun.turn,
        event_log=TurnEventLog(Ref(conv.owner, conv.id), begun.turn.id),
        model=await agent.models.get(options.model, None),
        features=merge_features(agent.features, options.features),
        question=request.question,
        options=options,
    )
    set_current(ctx)
    return request.initial_state(conv), ctx
