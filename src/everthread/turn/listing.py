"""What a turn would have, found without running one: its tools, to list them and to check the names that callers give;
and what its request would hold beside the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from everthread.conversation import Conversation
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnState
from everthread.runs.event_log import TurnEventLog
from everthread.turn.agent import FEATURES_KEY, Agent, merge_features

if TYPE_CHECKING:
    from everthread.turn.request import TurnOptions
    from everthread.turn.turn_context import TurnContext

_KEPT_STATE = ("active_skill", "persistent_tools")
"""What a turn takes over from the one before."""


async def tools_of(agent: Agent, conversation: Conversation, options: TurnOptions) -> Sequence[BaseTool]:
    """All tools of a turn, those included that are offered only when they are named; `prepare` of the agent is awaited
    first, as it is before a turn."""
    ctx = await _context(agent, conversation, options, "")
    try:
        return ctx.tools()
    finally:
        ctx.release()


class AgentPart(NamedTuple):
    """What the agent adds to a conversation in a request."""

    system: str
    tools: Sequence[Mapping[str, Any]]


async def agent_part(agent: Agent, conversation: Conversation, options: TurnOptions, question: str = "") -> AgentPart:
    """The system prompt and the tools of the next turn, if this was its question."""
    from everthread.turn.graph import choose_tools, choose_type, parse_mentions  # noqa: PLC0415 - the graph needs us
    from everthread.turn.model_call import offered_tools, system_prompt, tool_schema  # noqa: PLC0415
    from everthread.turn.state import AppState  # noqa: PLC0415

    config = RunnableConfig(configurable={"thread_id": conversation.id, "everthread_owner": conversation.owner})
    kept = (await agent.graph.aget_state(config)).values
    state = AppState(**{name: kept[name] for name in _KEPT_STATE if name in kept})  # type: ignore[typeddict-item]
    state["agent_type"] = options.agent_type
    if options.active_skill is not None:
        state["active_skill"] = options.active_skill
    ctx = await _context(agent, conversation, options, question)
    try:
        mentioned = parse_mentions(question)
        state["agent_type"] = choose_type(state, ctx, mentioned)
        ctx.skills = agent.skills.select([*mentioned, state.get("active_skill")])
        state["allowed_tools"] = choose_tools(state, ctx, state["agent_type"], mentioned)
        return AgentPart(system_prompt(state, ctx), [tool_schema(tool) for tool in offered_tools(state, ctx)])
    finally:
        ctx.release()


async def _context(agent: Agent, conversation: Conversation, options: TurnOptions, question: str) -> TurnContext:
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
    return TurnContext(
        agent=agent,
        conversation=conversation,
        turn=turn,
        event_log=TurnEventLog(Ref(conversation.owner, conversation.id), turn.id),
        model=await agent.models.get(options.model, options.model_pref),
        features=merge_features(agent.features, conversation.metadata.get(FEATURES_KEY), options.features),
        question=question,
        options=options,
    )
