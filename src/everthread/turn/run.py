"""The way of one message. Read `run_turn`, then `_run_to_end`: the numbers are those of the list below.

1. A message arrives, and is validated                            (request.py).
2. The question is recorded: its entry in the log, and the turn's row with an id reserved for the answer, are one
   transaction. From here on the turn ends in a final state, whatever happens. If another turn of the conversation
   runs, this one waits.
3. The window and the active summaries are read from the log      (graph.py: recall),
4. with what the question brings back from before, once per turn  (graph.py: recall, retrieve),
5. and assembled to a request that fits; its manifest is stored   (model_call.py).
6. The model is called; its answer is emitted piece by piece      (model_call.py, runs/event_log.py).
7. Each finished message enters the log when it is finished, never per token, never twice: it carries its id, and only
   the process that holds the turn may write                      (turn_context.py, tool_calls.py).
8. The end is one transaction: the answer, the turn's state, the jobs that follow,
   the last events                                                (finish.py).
9. A worker does the rest: compact, index                         (jobs/handlers.py).

An error or a stop in between leads to 8 as well, with what there is of the answer. When the process dies, the next one
closes the turn from its events (runs/close.py). Whoever comes later gets the same events (runs/follow.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Unpack

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from everthread.conversation import Conversation
from everthread.core.cancellation import finish_despite_cancel
from everthread.core.errors import Erased, TurnLost, TurnRunning
from everthread.core.nouns import Ref
from everthread.core.turn_events import Accepted, TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.history.turn_intents import BeginResult, BeginTurn, StartTurn
from everthread.runs.close import close_run
from everthread.runs.event_log import EventLog
from everthread.runs.follow import follow as follow_run
from everthread.runs.leases import POLL_SECONDS, LiveRun, is_dead
from everthread.turn.agent import FEATURES_KEY, Agent, merge_features
from everthread.turn.finish import emit_lost, finish, turn_ended
from everthread.turn.request import TurnFields, TurnOptions, TurnRequest, validate
from everthread.turn.turn_context import TurnContext, set_current


async def run_turn(
    conversation: Conversation,
    message: object,
    *,
    agent: Agent,
    options: TurnOptions | None = None,
    **fields: Unpack[TurnFields],
) -> AsyncIterator[TurnEvent]:
    """Answer a message, and yield the events of the turn as they happen.

    `message` is a text, anything that `Conversation.append` accepts, or several; None answers the conversation as it
    is. `fields` are those of `TurnOptions`. Whoever stops iterating stops the turn: use `everthread.turn.begin_turn`
    for one that goes on by itself.

    ```python
    async for event in everthread.run_turn(conv, "Where were we?", agent=agent):
        if event.kind == "token":
            print(event.text, end="")
    ```
    """
    live = await begin_turn(conversation, message, agent=agent, options=options, **fields)
    try:
        async for event in live.listen():
            yield event
    finally:
        live.stop()
        await live.wait()


async def begin_turn(
    conversation: Conversation,
    message: object,
    *,
    agent: Agent,
    options: TurnOptions | None = None,
    outer: TurnContext | None = None,
    **fields: Unpack[TurnFields],
) -> LiveRun:
    """Steps 1 and 2; the rest goes on by itself. When this returns, the question is safely stored."""
    request = await validate(conversation, message, agent, options or TurnOptions(**fields))
    ref = Ref(conversation.owner, conversation.id)
    intent = BeginTurn(turn=request.turn, messages=request.messages, when_busy=request.options.when_busy)
    begun = await agent.et.runtime.write(ref, intent)
    if request.options.when_busy == "interrupt":
        for other in begun.before:
            agent.leases.stop(other.id)
    turn = begun.turn
    live = agent.leases.live.get(turn.id)
    if live is not None:  # the same turn, begun a second time
        return live
    if turn.holder != agent.leases.holder or turn.state.is_final:
        raise TurnRunning(f"turn {turn.id!r} was begun before, and is {turn.state}; follow it instead")
    live = LiveRun(id=turn.id, ref=ref, event_log=EventLog(turn.id))
    live.event_log.emit(
        lambda number: Accepted(
            number=number,
            turn_id=turn.id,
            conversation_id=turn.conversation_id,
            question_id=turn.question_id,
            answer_id=turn.answer_id,
            question_seq=turn.question_seq,
        )
    )
    agent.leases.add(live)
    live.task = asyncio.create_task(_run_to_end(conversation, agent, request, begun, live, outer))
    return live


def follow(conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0) -> AsyncIterator[TurnEvent]:
    """The events of a turn after a number, to its end: live or stored, wherever it runs."""
    return follow_run(conversation, turn_id, leases=agent.leases, after=after)


async def _run_to_end(
    conversation: Conversation,
    agent: Agent,
    request: TurnRequest,
    begun: BeginResult,
    live: LiveRun,
    outer: TurnContext | None,
) -> None:
    """Steps 2 to 8 of one turn."""
    var_child_runnable_config.set(None)  # begun inside of another graph, a turn must not become its subgraph
    event_log = live.event_log
    save = partial(agent.et.store.turns.add_events, live.ref, agent.leases.holder)
    saving = asyncio.create_task(event_log.save_periodically(save))
    ctx: TurnContext | None = None
    turn = begun.turn
    began = time.perf_counter()
    live.has_begun = True
    try:
        turn = await _wait_until_first(live.ref, agent, begun)
        ctx = await _make_context(conversation, agent, request, turn, event_log, outer)
        await _run_graph(ctx, request)
        ending = finish(conversation, agent, ctx, turn, event_log, TurnState.COMPLETE)
    except TurnLost as problem:
        ending = emit_lost(conversation, turn, event_log, problem)
    except asyncio.CancelledError:
        ending = finish(conversation, agent, ctx, turn, event_log, TurnState.CANCELLED)
    except Exception as problem:  # noqa: BLE001 - the stream's edge: whatever it was, the turn must end, and say so
        ending = finish(conversation, agent, ctx, turn, event_log, TurnState.FAILED, problem)
    try:
        await finish_despite_cancel(ending)
    finally:
        saving.cancel()
        event_log.close()
        agent.leases.remove(live)
        agent.et.runtime.listener.on_event(turn_ended(live, ctx, time.perf_counter() - began))
        if ctx is not None:
            ctx.release()


async def _wait_until_first(ref: Ref, agent: Agent, begun: BeginResult) -> Turn:
    """Wait until no other turn of the conversation is before this one; those whose process died are closed."""
    turn, before = begun.turn, begun.before
    while turn.state is TurnState.RECEIVED:
        for other in before:
            if is_dead(other, agent.leases.clock()):
                await close_run(agent.et.runtime, ref, other)
        waiting = await agent.et.store.turns.get(ref, turn.id)
        if waiting.state is TurnState.RECEIVED and waiting.question is None:
            raise Erased("the question was erased while it waited; nothing to answer")
        turn, _, before = await agent.et.runtime.write(ref, StartTurn(turn=waiting))
        if before:
            await agent.leases.wait_for_end(ref, POLL_SECONDS)
    return turn


async def _make_context(
    conversation: Conversation,
    agent: Agent,
    request: TurnRequest,
    turn: Turn,
    event_log: EventLog,
    outer: TurnContext | None,
) -> TurnContext:
    options = request.options
    if agent.prepare is not None:
        await agent.prepare()
    ctx = TurnContext(
        agent=agent,
        conversation=conversation,
        turn=turn,
        event_log=event_log,
        model=await agent.models.get(options.model, options.model_pref or request.preference),
        features=merge_features(agent.features, conversation.metadata.get(FEATURES_KEY), options.features),
        question=request.question,
        options=options,
        depth=0 if outer is None else outer.depth + 1,
    )
    set_current(ctx)
    return ctx


async def _run_graph(ctx: TurnContext, request: TurnRequest) -> None:
    """Steps 3 to 7."""
    config = RunnableConfig(
        callbacks=list(request.options.callbacks),
        recursion_limit=3 * request.max_loops + 20,
        metadata={"turn_id": ctx.turn.id},
        configurable={"thread_id": ctx.ref.id, "everthread_owner": ctx.ref.owner, "run_id": ctx.turn.id},
    )
    state = request.initial_state(ctx.conversation)
    # One checkpoint a turn, at its end: messages are in the log before that, and a turn that died is not resumed.
    await ctx.agent.graph.ainvoke(state, config, context=ctx, durability="exit", stream_mode="updates")
