"""The graph of a turn (steps 3 to 7), built once per agent. Each node returns only the fields of the state it changes.

route ─▶ recall ∥ retrieve ─▶ plan ⇄ tools ─▶ finalize ─▶ persist

    route      who answers, with which tools, and whether a knowledge base is searched
    recall     what the model will see of the past: window, summaries, what the question brings back
    retrieve   passages of the knowledge base
    plan       the model is called: it answers, or calls tools
    tools      the tools that it called, side by side (tool_calls.py)
    finalize   makes sure that there is an answer
    persist    what is kept of the turn beside its messages
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence, Set
from fnmatch import fnmatchcase
from inspect import signature
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from everthread.context.assemble import Context
from everthread.core.errors import ContextOverflow, EverthreadError, NotFound
from everthread.core.events import Recalled
from everthread.core.payloads import is_cut
from everthread.core.timeouts import time_limit
from everthread.core.tools import WHEN_NAMED
from everthread.core.turn_events import Compacted, Recall, StateChanged
from everthread.core.turns import MESSAGE_KEY
from everthread.turn.agent import GENERAL, SUBAGENT, CollectionChoice
from everthread.turn.model_call import assemble_context, call_model, offered_tools, request_messages
from everthread.turn.result import RESULT_FIELDS
from everthread.turn.state import AppState
from everthread.turn.tool_calls import requested_calls, tools
from everthread.turn.tracing import span
from everthread.turn.turn_context import FirstRequest, TurnContext

TurnGraph: TypeAlias = "CompiledStateGraph[AppState, TurnContext, AppState, AppState]"
NO_ANSWER = "(The model gave no answer. What it did is above; ask again to go on.)"
_MENTION = re.compile(r"(?<![\w@])@([A-Za-z][\w.-]{0,63})")
_MAX_PASSAGES = 6

# -- route -------------------------------------------------------------------------------------------------


async def route(state: AppState, ctx: TurnContext) -> dict[str, Any]:
    """Everything that is decided once, before anything is read."""
    mentioned = parse_mentions(ctx.question)
    agent_type = choose_type(state, ctx, mentioned)
    ctx.notices += _unknown_mentions(ctx, mentioned)
    ctx.skills = ctx.agent.skills.select([*mentioned, state.get("active_skill")])
    ctx.offered = choose_tools(state, ctx, agent_type, mentioned)
    collection, degraded = await _choose_collection(state, ctx)
    return {
        "agent_type": agent_type,
        "mentioned_agents": mentioned,
        "allowed_tools": list(ctx.offered),
        "kb_prefix": collection,
        "use_retrieval": collection is not None,
        "loops": 0,
        **({"degraded": degraded} if degraded else {}),
    }


def parse_mentions(text: str) -> list[str]:
    """The names that a text mentions with an @, each once; mail addresses are none."""
    return list(dict.fromkeys(name.rstrip(".-") for name in _MENTION.findall(text)))


def choose_type(state: AppState, ctx: TurnContext, mentioned: list[str]) -> str:
    """The agent type of the request; where it names none, the one that the question mentions."""
    given = state.get("agent_type") or GENERAL
    named = [name for name in mentioned if name in ctx.agent.types and name != SUBAGENT]
    return named[0] if named and given == GENERAL else given


def _unknown_mentions(ctx: TurnContext, mentioned: list[str]) -> list[str]:
    """A notice for each name that is neither an agent type nor a skill nor a tool: it changed nothing."""
    if not mentioned:
        return []
    known = {*ctx.agent.types, *(tool.name for tool in ctx.tools())}
    unknown = [name for name in mentioned if name not in known and ctx.agent.skills.get(name) is None]
    return [f"@{name} is not the name of an agent type, a skill or a tool, so it changed nothing" for name in unknown]


def choose_tools(state: AppState, ctx: TurnContext, agent_type: str, mentioned: list[str]) -> list[str]:
    """Which tools are offered: those of the agent's type, of the session, of the request (by name, or by a pattern such
    as `notes_*`), of mentions and of the skills in use, in the agent's order. A type that names no tools has all but
    those that must be named."""
    base = ctx.agent.get_type(agent_type).tools
    patterns = [*state.get("persistent_tools", ()), *state.get("allowed_tools", ()), *mentioned]
    patterns += [name for skill in ctx.skills for name in skill.tools]

    def is_offered(tool: BaseTool) -> bool:
        is_standard = WHEN_NAMED not in (tool.tags or ()) if base is None else tool.name in base
        return is_standard or any(fnmatchcase(tool.name, pattern) for pattern in patterns)

    return [tool.name for tool in ctx.tools() if is_offered(tool)]


async def _choose_collection(state: AppState, ctx: TurnContext) -> tuple[str | None, list[str]]:
    """The named knowledge base, else the one that fits; none where retrieval is off or does not answer in time."""
    is_off = not ctx.features.retrieval or state.get("use_retrieval") is False
    if is_off or ctx.agent.knowledge is None or not ctx.question.strip():
        return None, []
    if named := state.get("kb_prefix"):
        ctx.collection_why = "named in the request"
        return named, []
    try:
        async with time_limit(ctx.agent.limits.retrieve_seconds):
            chosen = await ctx.agent.knowledge.route(ctx.conversation.owner, ctx.question)
    except (EverthreadError, TimeoutError):
        return None, ["route"]
    if not isinstance(chosen, CollectionChoice):
        return chosen, []
    ctx.collection_why = chosen.why
    return chosen.collection, []


# -- recall and retrieve -----------------------------------------------------------------------------------


async def recall(state: AppState, ctx: TurnContext) -> dict[str, Any]:
    """The first request of the turn, with what was recalled for it: once per turn, within a time limit."""
    recalls = bool(ctx.features.recall and ctx.question.strip())
    began = time.perf_counter()
    context, degraded = await _assemble_first(state, ctx, recalls)
    seqs = [passage[0] for passage in context.manifest.recalled]
    memories = [*context.manifest.memory_ids, *context.manifest.reminded_ids]
    if recalls:
        ctx.agent.et.runtime.listener.on_event(
            Recalled(
                owner=ctx.ref.owner,
                conversation_id=ctx.ref.id,
                turn_id=ctx.turn.id,
                found=len(seqs),
                seconds=round(time.perf_counter() - began, 4),
                degraded=bool(degraded),
            )
        )
    request = request_messages(context, "")
    ctx.first_request = FirstRequest(context, request)
    if seqs or memories or degraded:
        ctx.event_log.emit(lambda number: Recall(number=number, seqs=seqs, memories=memories, degraded=degraded))
    window = [message for message in request if not isinstance(message, SystemMessage)]
    changed = {"messages": window, "episodic_memory": seqs, "memory_context": memories}
    return {**changed, **({"degraded": degraded} if degraded else {})}


async def _assemble_first(state: AppState, ctx: TurnContext, recalls: bool) -> tuple[Context, list[str]]:
    """With what the question brings back; when that fails or takes too long, with window and summaries alone."""
    if recalls or (ctx.features.memory and ctx.question.strip()):
        try:
            async with time_limit(ctx.agent.limits.recall_seconds):
                return await assemble_context(state, ctx, query=ctx.question), []
        except (ContextOverflow, NotFound):  # would fail without recall too
            raise
        except (EverthreadError, TimeoutError):
            return await assemble_context(state, ctx, query=None), ["recall"]
    return await assemble_context(state, ctx, query=None), []


async def retrieve(state: AppState, ctx: TurnContext) -> dict[str, Any]:
    """What the documents say to the question, within a time limit; without an answer the turn goes on."""
    knowledge, collection = ctx.agent.knowledge, state.get("kb_prefix")
    if knowledge is None or collection is None or not state.get("use_retrieval"):
        return {}
    try:
        async with time_limit(ctx.agent.limits.retrieve_seconds):
            found = await knowledge.search(ctx.conversation.owner, collection, ctx.question)
    except (EverthreadError, TimeoutError):
        ctx.event_log.emit(lambda number: Recall(number=number, collection=collection, degraded=["retrieve"]))
        return {"degraded": ["retrieve"]}
    passages = [passage._asdict() for passage in found[:_MAX_PASSAGES]]
    ctx.has_read_documents |= bool(passages)
    ctx.event_log.emit(
        lambda number: Recall(number=number, passages=len(passages), collection=collection, why=ctx.collection_why)
    )
    return {"retrieval_results": passages}


# -- plan --------------------------------------------------------------------------------------------------


async def plan(state: AppState, ctx: TurnContext, config: RunnableConfig) -> dict[str, Any]:
    """One call of the model. A message that calls tools is finished and enters the log here; an answer waits for what
    `persist` adds to it."""
    summaries = await _announce_summaries(state, ctx)
    message = await call_model(state, ctx, config, offered_tools(state, ctx))
    if requested_calls(message):
        await ctx.append(message)
        ctx.in_progress = None
    return {"messages": [message], "loops": state.get("loops", 0) + 1, **summaries}


async def _announce_summaries(state: AppState, ctx: TurnContext) -> dict[str, Any]:
    """Emit which summaries are new since the last turn."""
    if ctx.first_request is None:
        return {}
    known = state.get("conversation_summary")
    ids = list(ctx.first_request.context.manifest.summary_ids)
    fresh = [id for id in ids if id not in (known or ())]
    if fresh:
        messages = await _count_summarised(ctx, fresh, set(known or ()))
        if messages:  # none where known summaries were condensed to a coarser one
            ctx.event_log.emit(lambda number: Compacted(number=number, ids=fresh, messages=messages))
    return {"conversation_summary": ids} if fresh or ids != known else {}


async def _count_summarised(ctx: TurnContext, ids: Sequence[str], known: Set[str]) -> int:
    """How many messages these summaries stand for, without those that stood behind a known one before."""
    count = 0
    for id in ids:
        if id in known:
            continue
        one = await ctx.conversation.compaction(id)
        is_condensed = bool(one.children)
        count += (
            await _count_summarised(ctx, one.children, known)
            if is_condensed
            else one.original_count - one.new_count + 1
        )
    return count


# -- finalize and persist ----------------------------------------------------------------------------------


async def finalize(state: AppState, ctx: TurnContext, config: RunnableConfig) -> dict[str, Any]:
    """An answer in words: at the limit of loops, or where the model said nothing, it is called once more without
    tools."""
    newest = state["messages"][-1]
    if isinstance(newest, AIMessage) and not requested_calls(newest) and newest.text.strip():
        return {}
    message = await call_model(state, ctx, config, (), must_answer=True)
    if requested_calls(message) or not message.text.strip():
        message = message.model_copy(
            update={"content": message.text.strip() or NO_ANSWER, "tool_calls": [], "invalid_tool_calls": []}
        )
    return {"messages": [message], "loops": state.get("loops", 0) + 1}


async def persist(state: AppState, ctx: TurnContext) -> dict[str, Any]:
    """The answer as it will stand in the log, with its result metadata.

    It is committed with the turn's state only after the graph's checkpoint (`finish.py`): a turn that waits begins
    after that commit, and finds the state that this one left.
    """
    answer = state["messages"][-1]
    assert isinstance(answer, AIMessage)
    about = {**answer.additional_kwargs.get(MESSAGE_KEY, {}), "manifests": ctx.manifests}
    if result := {name: value for name, value in state.get("result", {}).items() if name in RESULT_FIELDS}:
        about["result"] = result
    if is_cut({"content": "", "response_metadata": answer.response_metadata}):
        about["result"] = {**result, "is_cut": True}
        written = answer.usage_metadata["output_tokens"] if answer.usage_metadata else 0
        ctx.notices.append("the answer was cut at its limit" + (f" of {written:,} tokens" if written else ""))
    if degraded := state.get("degraded"):
        about["degraded"] = degraded
    if ctx.notices:
        about["notices"] = ctx.notices
    if ctx.subagents:
        about["subagents"] = ctx.subagents
    ctx.answer = answer.model_copy(update={"additional_kwargs": {**answer.additional_kwargs, MESSAGE_KEY: about}})
    return {"messages": [ctx.answer]}


# -- the graph ---------------------------------------------------------------------------------------------

NODES: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "route": route,
    "recall": recall,
    "retrieve": retrieve,
    "plan": plan,
    "tools": tools,
    "finalize": finalize,
    "persist": persist,
}


def build_graph(saver: BaseCheckpointSaver[Any]) -> TurnGraph:
    """The graph over a checkpointer."""
    graph = StateGraph(AppState, context_schema=TurnContext)
    for name, node in NODES.items():
        graph.add_node(name, _observed(name, node))
    graph.add_edge(START, "route")
    graph.add_edge("route", "recall")
    graph.add_edge("route", "retrieve")
    graph.add_edge(["recall", "retrieve"], "plan")
    graph.add_conditional_edges("plan", after_plan, ["tools", "finalize"])
    graph.add_conditional_edges("tools", after_tools, ["plan", "finalize"])
    graph.add_edge("finalize", "persist")
    graph.add_edge("persist", END)
    return graph.compile(checkpointer=saver, name="everthread")


# Async though they await nothing: LangGraph runs a plain function in a thread.


async def after_plan(state: AppState) -> str:
    """Run tools, if the model called any."""
    return "tools" if requested_calls(state["messages"][-1]) else "finalize"


async def after_tools(state: AppState) -> str:
    """Call the model again, unless it was called often enough."""
    return "plan" if state["loops"] < state["max_loops"] else "finalize"


def _observed(name: str, node: Callable[..., Awaitable[dict[str, Any]]]) -> Any:
    """A node with a span around it and an event at its end."""
    takes_config = "config" in signature(node).parameters

    async def run(state: AppState, config: RunnableConfig, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        ctx = runtime.context
        began = time.perf_counter()
        attributes = {"everthread.conversation": ctx.conversation.id, "everthread.turn": ctx.turn.id}
        with span(f"everthread.turn.{name}", attributes):
            changed = await (node(state, ctx, config) if takes_config else node(state, ctx))
        details: dict[str, Any] = {}
        if state.get("debug"):
            details = {
                "seconds": round(time.perf_counter() - began, 4),
                "changed": sorted(changed),
                "update": {key: value for key, value in changed.items() if key != "messages"},
                "manifest": ctx.manifests[-1] if ctx.manifests else None,
            }
        loops = changed.get("loops", state.get("loops", 0))
        ctx.event_log.emit(lambda number: StateChanged(number=number, node=name, loops=loops, details=details))
        return changed

    run.__name__ = name
    return run
