"""The tools that a turn would have, listed without running one: for callers, and to check the names they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool

from everthread.conversation import Conversation
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnState
from everthread.runs.event_log import TurnEventLog
from everthread.turn.agent import FEATURES_KEY, Agent, merge_features

if TYPE_CHECKING:
    from everthread.turn.request import TurnOptions


async def tools_of(agent: Agent, conversation: Conversation, options: TurnOptions) -> Sequence[BaseTool]:
    """All tools of a turn, those included that are offered only when they are named; `prepare` of the agent is awaited
    first, as it is before a turn."""
    from everthread.turn.turn_context import TurnContext  # noqa: PLC0415 - it holds the options, which are checked here

    if agent.prepare is not None:
        await agent.prepare()
    turn = Turn(
        id=new_id(),
        conversation_id=conversation.id,
        state=TurnState.RECEIVED,
        question_id="",
        answer_id=new_id(),
        received_at=agent.runs.clock(),
    )
    ctx = TurnContext(
        agent=agent,
        conversation=conversation,
        turn=turn,
        event_log=TurnEventLog(Ref(conversation.owner, conversation.id), turn.id),
        model=await agent.models.get(options.model, options.model_pref),
        features=merge_features(agent.features, conversation.metadata.get(FEATURES_KEY), options.features),
        question="",
        options=options,
    )
    try:
        return ctx.tools()
    finally:
        ctx.release()
