"""The way of one message. Read `run_turn`, then `_story`: the numbers are those of the list below.

1. A message arrives, and is checked.
2. The question is recorded: its entry in the log, and the turn's row with an id set aside for the answer, are one
   transaction. From here on the turn ends in a final state, whatever happens. If another turn of the conversation
   runs, this one waits.
3. The window and the active summaries are read from the log      (nodes/recall.py, `conversation.context`),
4. with what the question brings back from before, once per turn  (nodes/recall.py, nodes/retrieve.py),
5. and assembled to a request that fits; its manifest is stored   (requests.py, asking.py).
6. The model is asked; what it says is told piece by piece        (asking.py, telling.py).
7. Each finished message enters the log when it is finished, never per token, never twice: it carries its id, and only
   the process that holds the turn may write                      (scene.py, nodes/tools.py).
8. The end is one transaction: the answer, the turn's state, the jobs that follow, the last events.
9. A worker does the rest: compact, index                         (chores.py).

An error or a stop in between leads to 8 as well, with what there is of the answer. When the process dies, the next one
closes the turn from its events (closing.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from everthread.conversation import Conversation
from everthread.core.errors import Erased, EverthreadError, NotFound, StoreError, TurnLost, TurnRunning
from everthread.core.events import TurnEnded
from everthread.core.nouns import Ref
from everthread.core.turn_events import Accepted, Done, Failed, TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.history import turning
from everthread.turn.agent import Agent
from everthread.turn.arriving import Arrived, arrive
from everthread.turn.closing import close, partial_message
from everthread.turn.live import LiveTurn
from everthread.turn.options import Options
from everthread.turn.presence import is_dead
from everthread.turn.scene import Scene, enter, prepared
from everthread.turn.switches import METADATA_KEY, laid_over
from everthread.turn.telling import MOST_EVENTS, Make, Teller

R = TypeVar("R")
_POLL_SECONDS = 0.25
"""How often a turn that waits looks whether one in another process has ended."""


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
        await live.ended()


async def begin_turn(
    conversation: Conversation,
    message: object,
    *,
    agent: Agent,
    options: Options | None = None,
    outer: Scene | None = None,
    **given: Any,
) -> LiveTurn:
    """Steps 1 and 2; the rest goes on by itself. When this returns, the question is kept for ever."""
    arrived = await arrive(conversation, message, agent, options or Options(**given))
    begun = await _recorded(conversation, agent, arrived)
    live = agent.presence.live.get(begun.turn.id)
    if live is not None:  # the same turn, begun a second time
        return live
    if begun.turn.holder != agent.presence.holder or begun.turn.state.is_final:
        raise TurnRunning(f"turn {begun.turn.id!r} was begun before, and is {begun.turn.state}; follow it instead")
    live = LiveTurn(id=begun.turn.id, ref=Ref(conversation.owner, conversation.id), teller=Teller(begun.turn.id))
    live.teller.tell(partial(_accepted, begun.turn))
    agent.presence.enter(live)
    live.task = asyncio.create_task(_story(conversation, agent, arrived, begun, live, outer))
    return live


async def follow(conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0) -> AsyncIterator[TurnEvent]:
    """What a turn tells, from the event after a number on: live where it runs here, else as it is stored."""
    if (live := _live(conversation, turn_id, agent)) is not None:
        async for event in live.listen(after):
            yield event
        return
    async for batch in _as_stored(conversation, turn_id, after):
        for event in batch:
            yield event


def follow_batches(
    conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0, pause_seconds: float = 0.0
) -> AsyncIterator[Sequence[TurnEvent]]:
    """The same, every event as it was told: as many at a time as lie ready, and the next after a pause."""
    live = _live(conversation, turn_id, agent)
    return _as_stored(conversation, turn_id, after) if live is None else live.batches(after, pause_seconds)


def _live(conversation: Conversation, turn_id: str, agent: Agent) -> LiveTurn | None:
    live = agent.presence.live.get(turn_id)
    return live if live is not None and Ref(conversation.owner, conversation.id) == live.ref else None


async def _as_stored(conversation: Conversation, turn_id: str, after: int) -> AsyncIterator[Sequence[TurnEvent]]:
    """What a turn told that runs elsewhere, or has ended."""
    while True:
        turn = await conversation.turn(turn_id)
        async for batch in _batched(conversation.turn_events(turn_id, after=after)):
            yield batch
            after = batch[-1].number
        if turn.state.is_final:
            break
        await asyncio.sleep(_POLL_SECONDS)
    if not after:  # its events are pruned, or went with an erase
        yield [await _snapshot(conversation, turn)]


async def _batched(events: AsyncIterator[TurnEvent]) -> AsyncIterator[Sequence[TurnEvent]]:
    batch: list[TurnEvent] = []
    async for event in events:
        batch.append(event)
        if len(batch) == MOST_EVENTS:
            yield batch
            batch = []
    if batch:
        yield batch


async def _snapshot(conversation: Conversation, turn: Turn) -> Done:
    """What is left to tell of a turn whose events are gone."""
    text = ""
    with suppress(NotFound):
        text = (await conversation.message(turn.answer_id)).text
    return Done(number=1, state=turn.state.value, answer_id=turn.answer_id, text=text, usage=turn.usage)


# -- the story ---------------------------------------------------------------------------------------------------


async def _story(
    conversation: Conversation,
    agent: Agent,
    arrived: Arrived,
    begun: turning.Begun,
    live: LiveTurn,
    outer: Scene | None,
) -> None:
    """Steps 2 to 8 of one turn, to its end."""
    var_child_runnable_config.set(None)  # begun inside of another graph, a turn is still nobody's subgraph
    ref = Ref(conversation.owner, conversation.id)
    keeper = asyncio.create_task(live.teller.keep_going(partial(agent.et.store.add_events, ref, agent.presence.holder)))
    scene: Scene | None = None
    turn = begun.turn
    since = time.perf_counter()
    live.has_begun = True
    try:
        turn = await _its_turn(conversation, agent, begun)
        scene = await _scene(conversation, agent, arrived, turn, live.teller, outer)
        await _answer(scene, arrived)
        ending = _finish(conversation, agent, scene, turn, live.teller, TurnState.COMPLETE)
    except TurnLost as problem:
        ending = _tell_lost(conversation, turn, live.teller, problem)
    except asyncio.CancelledError:
        ending = _finish(conversation, agent, scene, turn, live.teller, TurnState.CANCELLED)
    except Exception as problem:  # noqa: BLE001 - the stream's edge: whatever it was, the turn must end, and say so
        ending = _finish(conversation, agent, scene, turn, live.teller, TurnState.FAILED, problem)
    try:
        await surely(ending)
    finally:
        keeper.cancel()
        live.teller.close()
        agent.presence.leave(live, ref)
        agent.et.hear(_ended(ref, live, scene, time.perf_counter() - since))
        if scene is not None:
            scene.leave()


async def _recorded(conversation: Conversation, agent: Agent, arrived: Arrived) -> turning.Begun:
    """Step 2."""
    intent = turning.BeginTurn(
        turn=arrived.turn,
        messages=arrived.messages,
        when_busy=arrived.options.when_busy,
        first_look=agent.et.first_look,
    )
    begun = await agent.et.store.write(Ref(conversation.owner, conversation.id), intent)
    if arrived.options.when_busy == "interrupt":
        for turn in begun.before:
            agent.presence.stop(turn.id)
    return begun


async def _its_turn(conversation: Conversation, agent: Agent, begun: turning.Begun) -> Turn:
    """Wait until nothing is before it any more; what died before it is closed."""
    ref = Ref(conversation.owner, conversation.id)
    store, turn, before = agent.et.store, begun.turn, begun.before
    while turn.state is TurnState.RECEIVED:
        for other in before:
            if is_dead(other, agent.presence.clock()):
                await close(store, ref, other, first_look=agent.et.first_look)
        waiting = await store.turn(ref, turn.id)
        if waiting.state is TurnState.RECEIVED and waiting.question is None:
            raise Erased("the question was erased while it waited; there is nothing to answer")
        turn, _, before = await store.write(ref, turning.StartTurn(turn=waiting, first_look=agent.et.first_look))
        if before:
            await agent.presence.some_end(ref, _POLL_SECONDS)
    return turn


async def _scene(
    conversation: Conversation, agent: Agent, arrived: Arrived, turn: Turn, teller: Teller, outer: Scene | None
) -> Scene:
    """Everything at hand, before the graph begins."""
    options = arrived.options
    if agent.prepare is not None:
        await agent.prepare()
    scene = Scene(
        agent=agent,
        conversation=conversation,
        turn=turn,
        teller=teller,
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


# -- the end -----------------------------------------------------------------------------------------------------


async def _finish(
    conversation: Conversation,
    agent: Agent,
    scene: Scene | None,
    turn: Turn,
    teller: Teller,
    state: TurnState,
    problem: Exception | None = None,
) -> None:
    """Step 8."""
    if scene is None and turn.state is TurnState.RECEIVED and state is TurnState.CANCELLED:
        await conversation.stop_turn(turn.id)
        teller.tell(partial(_stopped, turn))
        return
    said = _last_words(scene, turn, state)
    async with teller.keeping:
        event, batches = teller.last(_ending(turn, scene, said, state, problem))
        intent = turning.FinishTurn(
            turn_id=turn.id,
            holder=agent.presence.holder,
            state=state,
            answer_id=_id_of(said),
            messages=await prepared([said] if said is not None else []),
            error=None if problem is None else described(problem),
            usage=dict(scene.usage) if scene is not None else {},
            jobs=scene.outcome.jobs if scene is not None else (),
            events=batches,
            first_look=agent.et.first_look,
        )
        try:
            await agent.et.store.write(Ref(conversation.owner, conversation.id), intent)
        except (TurnLost, NotFound, Erased):  # closed by another, or erased: there is nothing left to write to
            pass
        except StoreError as trouble:  # the row stays open, and is closed from its events when the lease is over
            event = _ending(turn, scene, said, TurnState.FAILED, trouble)(event.number)
    teller.publish(event)


def _last_words(scene: Scene | None, turn: Turn, state: TurnState) -> BaseMessage | Mapping[str, Any] | None:
    """The answer; of a turn that was cut short, what there is of it."""
    if scene is None:
        return None
    if state is TurnState.COMPLETE:
        return scene.outcome.answer
    cut = scene.utterance
    return partial_message(cut.id, cut.text, turn.id, state) if cut is not None and cut.text else None


def _ending(
    turn: Turn,
    scene: Scene | None,
    said: BaseMessage | Mapping[str, Any] | None,
    state: TurnState,
    problem: Exception | None,
) -> Make:
    text = said.text if isinstance(said, BaseMessage) else "" if said is None else str(said["content"])
    if problem is None:
        usage = dict(scene.usage) if scene is not None else {}
        return lambda number: Done(
            number=number,
            state=state.value,
            answer_id=_id_of(said),
            text=text,
            usage=usage,
            loops=scene.said if scene else 0,
        )
    ours = isinstance(problem, EverthreadError)
    return lambda number: Failed(
        number=number,
        code=problem.code if ours else "error",  # type: ignore[attr-defined]
        message=described(problem),
        retryable=ours and problem.retryable,  # type: ignore[attr-defined]
        answer_id=_id_of(said),
        text=text,
    )


def described(problem: Exception) -> str:
    """An error as a turn keeps it: of ours what it says, of others only their kind, since they may quote anything."""
    if isinstance(problem, EverthreadError):
        return str(problem)
    return f"{type(problem).__name__} inside of the turn; what was said until then is kept"


async def _tell_lost(conversation: Conversation, turn: Turn, teller: Teller, problem: TurnLost) -> None:
    """Somebody else has ended it: what it ended as is told, nothing is written."""
    with suppress(NotFound):
        ended = await conversation.turn(turn.id)
        if ended.state.is_final:
            teller.tell(lambda number: Done(number=number, state=ended.state.value, answer_id=ended.answer_id, text=""))
            return
    teller.tell(
        lambda number: Failed(
            number=number, code=problem.code, message=str(problem), retryable=False, answer_id=None, text=""
        )
    )


def _ended(ref: Ref, live: LiveTurn, scene: Scene | None, seconds: float) -> TurnEnded:
    """For the log and the counts."""
    last = live.teller.events[-1]
    usage = {} if scene is None else scene.usage
    return TurnEnded(
        owner=ref.owner,
        conversation_id=ref.id,
        turn_id=live.id,
        state=last.state if isinstance(last, Done) else TurnState.FAILED.value,
        seconds=round(seconds, 3),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
    )


def _accepted(turn: Turn, number: int) -> Accepted:
    return Accepted(
        number=number,
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        question_id=turn.question_id,
        answer_id=turn.answer_id,
        question_seq=turn.question_seq,
    )


def _stopped(turn: Turn, number: int) -> Done:
    return Done(number=number, state=TurnState.CANCELLED.value, answer_id=None, text="")


def _id_of(said: BaseMessage | Mapping[str, Any] | None) -> str | None:
    return said.id if isinstance(said, BaseMessage) else None if said is None else str(said["id"])


async def surely(work: Coroutine[Any, Any, R]) -> R:
    """To its end, however often whoever waits for it is cancelled."""
    task = asyncio.create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
