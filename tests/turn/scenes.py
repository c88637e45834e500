"""A scene for one node alone: a turn that has begun, over a script."""

from __future__ import annotations

from typing import Any

from everthread import Conversation
from everthread.core.nouns import Ref
from everthread.history import turn_intents
from everthread.runs.event_log import EventLog
from everthread.testing.scripted import Script, ScriptedModel
from everthread.turn import Agent, Options, Scene
from everthread.turn.arriving import arrive
from everthread.turn.scene import enter
from everthread.turn.state import AppState
from everthread.turn.switches import laid_over


async def scene_of(
    conv: Conversation, agent: Agent, question: str, script: Script = (), **given: Any
) -> tuple[AppState, Scene]:
    """What the graph would give to its first node."""
    options = Options(model=ScriptedModel(script), **given)
    arrived = await arrive(conv, question, agent, options)
    intent = turn_intents.BeginTurn(turn=arrived.turn, messages=arrived.messages)
    begun = await agent.et.store.log.write(Ref(conv.owner, conv.id), intent)
    scene = Scene(
        agent=agent,
        conversation=conv,
        turn=begun.turn,
        event_log=EventLog(begun.turn.id),
        voice=await agent.models.voice(options.model, None),
        switches=laid_over(agent.switches, options.features),
        question=arrived.question,
        options=options,
    )
    enter(scene)
    return arrived.state(scene), scene
