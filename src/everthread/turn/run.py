"""The way of one message. Read `run_turn`, then `_story`: the numbers are those of the list below.

1. A message arrives, and is checked.
2. The question is recorded: its entry in the log, and the turn's row with an id set aside for the answer, are one
   transaction. From here on the turn ends in a final state, whatever happens. If another turn of the conversation
   runs, this one waits.
3. The window and the active summaries are read from the log      (nodes/recall.py, `conversation.context`),
4. with what the question brings back from before, once per turn  (nodes/recall.py, nodes/retrieve.py),
5. and assembled to a request that fits; its manifest is stored   (requests.py, asking.py).
6. The model is asked; what it says is told piece by piece        (asking.py, runs/event_log.py).
7. Each finished message enters the log when it is finished, never per token, never twice: it carries its id, and only
   the process that holds the turn may write                      (scene.py, nodes/tools.py).
8. The end is one transaction: the answer, the turn's state, the jobs that follow,
   the last events                                                (ending.py).
9. A worker does the rest: compact, index                         (jobs/handlers.py).

An error or a stop in between leads to 8 as well, with what there is of the answer. When the process dies, the next one
closes the turn from its events (runs/close.py). Whoever comes later hears it all the same (runs/follow.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from everthread.conversation import Conversation
from everthread.core.cancellation import finish_despite_cancel
from everthread.core.errors import Erased, TurnLost, TurnRunning
from everthread.core.nouns import Ref
from everthread.core.turn_events import Accepted, TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.history import turn_intents
from everthread.runs.close import close_run
from everthread.runs.event_log import EventLog
from everthread.runs.follow import follow as follow_run
from everthread.runs.leases import POLL_SECONDS, LiveRun, is_dead
from everthread.turn.agent import Agent
from everthread.turn.arriving import Arrived, arrive
from everthread.turn.ending import ended, finish, tell_lost
from everthread.turn.options import Options
from everthread.turn.scene import Scene, enter
from everthread.turn.switches import METADATA_KEY, laid_over


async def run_turn(
    conversation: Conversation, message: object, *, agent: Agent, options: Options | None = None, **given: Any
) -> AsyncIterator[TurnEvent]:
    """Answer a message, and tell what happens on the way. `given` are fields of `Options`.

    A text, a message of any shape that `append` takes, or several; None answers the conversation as it stands. Whoever
    stops listening stops the turn; `begin_turn` gives one that goes on by itself.
    """
    live = await begin_turn(conversation, message, agent=agent, options=options, **given)
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
    options: Options | None = None,
    outer: Scene | None = None,
    **given: Any,
) -> LiveRun:
    """Steps 1 and 2; the rest goes on by itself. When this returns, the question is kept for ever."""
    arrived = await arrive(conversation, message, agent, options or Options(**given))
    begun = await _recorded(conversation, agent, arrived)
    live = agent.leases.live.get(begun.turn.id)
    if live is not None:  # the same turn, begun a second time
        return live
    if begun.turn.holder != agent.leases.holder or begun.turn.state.is_final:
        raise TurnRunning(f"turn {begun.turn.id!r} was begun before, and is {begun.turn.state}; follow it instead")
    live = LiveRun(id=begun.turn.id, ref=Ref(conversation.owner, conversation.id), event_log=EventLog(begun.turn.id))
    live.event_log.emit(partial(_accepted, begun.turn))
    agent.leases.add(live)
    live.task = asyncio.create_task(_story(conversation, agent, arrived, begun, live, outer))
    return live


async def _story(
    conversation: Conversation,
    agent: Agent,
    arrived: Arrived,
    begun: turn_intents.BeginResult,
    live: LiveRun,
    outer: Scene | None,
) -> None:
    """Steps 2 to 8 of one turn, to its end."""
    var_child_runnable_config.set(None)  # begun inside of another graph, a turn is still nobody's subgraph
    ref = Ref(conversation.owner, conversation.id)
    keeper = asyncio.create_task(
        live.event_log.save_periodically(partial(agent.et.store.turns.add_events, ref, agent.leases.holder))
    )
    scene: Scene | None = None
    turn = begun.turn
    since = time.perf_counter()
    live.has_begun = True
    try:
        turn = await _its_turn(conversation, agent, begun)
        scene = await _scene(conversation, agent, arrived, turn, live.event_log, outer)
        await _answer(scene, arrived)
        ending = finish(conversation, agent, scene, turn, live.event_log, TurnState.COMPLETE)
    except TurnLost as problem:
        ending = tell_lost(conversation, turn, live.event_log, problem)
    except asyncio.CancelledError:
        ending = finish(conversation, agent, scene, turn, live.event_log, TurnState.CANCELLED)
    except Exception as problem:  # noqa: BLE001 - the stream's edge: whatever it was, the turn must end, and say so
        ending = finish(conversation, agent, scene, turn, live.event_log, TurnState.FAILED, problem)
    try:
        await finish_despite_cancel(ending)
    finally:
        keeper.cancel()
        live.event_log.close()
        agent.leases.remove(live)
        agent.et.hear(ended(ref, live, scene, time.perf_counter() - since))
        if scene is not None:
            scene.leave()


async def _recorded(conversation: Conversation, agent: Agent, arrived: Arrived) -> turn_intents.BeginResult:
    """Step 2."""
    intent = turn_intents.BeginTurn(
        turn=arrived.turn,
        messages=arrived.messages,
        when_busy=arrived.options.when_busy,
    )
    begun = await agent.et.runtime.write(Ref(conversation.owner, conversation.id), intent)
    if arrived.options.when_busy == "interrupt":
        for turn in begun.before:
            agent.leases.stop(turn.id)
    return begun


def _accepted(turn: Turn, number: int) -> Accepted:
    return Accepted(
        number=number,
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        question_id=turn.question_id,
        answer_id=turn.answer_id,
        question_seq=turn.question_seq,
    )


async def _its_turn(conversation: Conversation, agent: Agent, begun: turn_intents.BeginResult) -> Turn:
    """Wait until nothing is before it any more; what died before it is closed."""
    ref = Ref(conversation.owner, conversation.id)
    store, turn, before = agent.et.store, begun.turn, begun.before
    while turn.state is TurnState.RECEIVED:
        for other in before:
            if is_dead(other, agent.leases.clock()):
                await close_run(agent.et.runtime, ref, other)
        waiting = await store.turns.get(ref, turn.id)
        if waiting.state is TurnState.RECEIVED and waiting.question is None:
            raise Erased("the question was erased while it waited; there is nothing to answer")
        turn, _, before = await agent.et.runtime.write(ref, turn_intents.StartTurn(turn=waiting))
        if before:
            await agent.leases.wait_for_end(ref, POLL_SECONDS)
    return turn


async def _scene(
    conversation: Conversation, agent: Agent, arrived: Arrived, turn: Turn, event_log: EventLog, outer: Scene | None
) -> Scene:
    """Everything at hand, before the graph begins."""
    options = arrived.options
    if agent.prepare is not None:
        await agent.prepare()
    scene = Scene(
        agent=agent,
        conversation=conversation,
        turn=turn,
        event_log=event_log,
        voice=await agent.models.voice(options.model, options.model_pref or arrived.preference),
        switches=laid_over(agent.switches, conversation.metadata.get(METADATA_KEY), options.features),
        question=arrived.question,
        options=options,
        depth=0 if outer is None else outer.depth + 1,
    )
    enter(scene)
    return scene


async def _answer(scene: Scene, arrived: Arrived) -> None:
    """Steps 3 to 7: the graph."""
    options = arrived.options
    config = RunnableConfig(
        callbacks=list(options.callbacks),
        recursion_limit=3 * arrived.max_loops + 20,
        metadata={"turn_id": scene.turn.id},
        configurable={"thread_id": scene.ref.id, "everthread_owner": scene.ref.owner, "run_id": scene.turn.id},
    )
    # One checkpoint a turn, at its end: what is said is in the log before, and a turn that died is not taken up again.
    graph = scene.agent.graph
    await graph.ainvoke(arrived.state(scene), config, context=scene, durability="exit", stream_mode="updates")


def follow(conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0) -> AsyncIterator[TurnEvent]:
    """The events of a turn after a number, to its end: live or stored, wherever it runs."""
    return follow_run(conversation, turn_id, leases=agent.leases, after=after)
