"""The way of one message. Read `run_turn`, then `AgentTurn`: the numbers are those of the list below.

1. A message arrives, and is validated                            (request.py).
2. The question is recorded: its entry in the log, and the turn's row with an id reserved for the answer, are one
   transaction. From here on the turn ends in a final state, whatever happens. If another turn of the conversation
   runs, this one waits                                           (runs/engine.py).
3. The window and the active summaries are read from the log      (graph.py: recall),
4. with what the question brings back from before, once per turn  (graph.py: recall, retrieve),
5. and assembled to a request that fits; its manifest is stored   (model_call.py).
6. The model is called; its answer is emitted piece by piece,
   and each piece is shown when it is stored                      (model_call.py, runs/event_log.py).
7. Each finished message enters the log when it is finished, never per token, never twice: it carries its id, and only
   the process that holds the turn may write                      (turn_context.py, tool_calls.py).
8. The end is one transaction: the answer, the turn's state,
   the jobs that follow, the last events                          (finish.py, runs/engine.py).
9. A worker does the rest: compact, index                         (jobs/handlers.py).

An error or a stop in between leads to 8 as well, with what there is of the answer. When the process dies, another one
closes the turn from its events (runs/close.py). Whoever comes later gets the same events (runs/stored_events.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Unpack

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from everthread.conversation import Conversation
from everthread.core.errors import Conflict
from everthread.core.imports import check_not_of_an_agent
from everthread.core.nouns import Message, Ref
from everthread.core.turn_events import TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.history.turn_intents import BeginTurn
from everthread.runs.engine import Ending, LiveTurn
from everthread.runs.event_log import TurnCodec, TurnEventLog
from everthread.turn.agent import FEATURES_KEY, Agent, merge_features
from everthread.turn.finish import ending_of, outcome_of, turn_ended
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
        async for event in live.event_log.listen():
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
    after: Callable[[], Awaitable[None]] | None = None,
    again: Message | None = None,
    **fields: Unpack[TurnFields],
) -> LiveTurn:
    """Steps 1 and 2; the rest goes on by itself. When this returns, the question is safely stored. `after` is awaited
    once the turn has ended, however it did. With `again`, and without a message, that question is answered again, on a
    branch that begins with the turn or not at all."""
    if (await conversation.refresh()).is_deleted:
        raise Conflict(
            f"conversation {conversation.id!r} was deleted, nothing was stored: restore it first, or use another id"
        )
    check_not_of_an_agent(conversation.info)
    request = await validate(conversation, message, agent, options or TurnOptions(**fields), again)
    ref, id = Ref(conversation.owner, conversation.id), request.turn.id
    log = TurnEventLog(ref, id, on_emit=agent.runs.announce, stored=agent.runs.stored(ref, id, TurnCodec))
    intent = BeginTurn(
        turn=request.turn,
        messages=request.messages,
        when_busy=request.options.when_busy,
        fork_at_seq=None if again is None else again.seq,
    )
    return await agent.runs.begin(
        ref, intent, log, lambda log: AgentTurn(conversation, agent, request, log, outer, after)
    )


async def follow(conversation: Conversation, turn_id: str, *, agent: Agent, after: int = 0) -> AsyncIterator[TurnEvent]:
    """The events of a turn after a number, to its end: live or stored, wherever it runs. Where they are pruned, only
    the last one, made from the turn."""
    ref = Ref(conversation.owner, conversation.id)
    is_empty = True
    async for batch in agent.runs.follow(ref, turn_id, TurnCodec, after=after):
        is_empty = False
        for event in batch:
            yield event
    if is_empty and not after:
        yield await outcome_of(conversation, await conversation.turn(turn_id), number=1)


class AgentTurn:
    """Steps 3 to 8 of one turn, as the engine runs it."""

    def __init__(
        self,
        conversation: Conversation,
        agent: Agent,
        request: TurnRequest,
        event_log: TurnEventLog,
        outer: TurnContext | None,
        after: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._conversation = conversation
        self._agent = agent
        self._request = request
        self._event_log = event_log
        self._outer = outer
        self._after = after
        self._ctx: TurnContext | None = None
        """None until it runs."""

    async def execute(self, turn: Turn) -> None:
        """Steps 3 to 7."""
        var_child_runnable_config.set(None)  # begun inside of another graph, a turn must not become its subgraph
        ctx = self._ctx = await self._make_context(turn)
        set_current(ctx)
        config = RunnableConfig(
            callbacks=list(self._request.options.callbacks),
            recursion_limit=3 * self._request.max_loops + 20,
            metadata={"turn_id": turn.id},
            configurable={"thread_id": ctx.ref.id, "everthread_owner": ctx.ref.owner, "run_id": turn.id},
        )
        state = self._request.initial_state(self._conversation)
        # One checkpoint a turn, at its end: messages are in the log before that, and a turn that died is not resumed.
        # It takes the place of the last turn's (checkpoint_intents.py: TURN_KEY).
        # Nothing of what it would stream is looked at: `custom` is the one mode in which the graph itself says nothing.
        await self._agent.graph.ainvoke(state, config, context=ctx, durability="exit", stream_mode="custom")

    async def _make_context(self, turn: Turn) -> TurnContext:
        agent, options = self._agent, self._request.options
        if agent.prepare is not None:
            await agent.prepare()
        return TurnContext(
            agent=agent,
            conversation=self._conversation,
            turn=turn,
            event_log=self._event_log,
            model=await agent.models.get(options.model, options.model_pref or self._request.preference),
            features=merge_features(agent.features, self._conversation.metadata.get(FEATURES_KEY), options.features),
            question=self._request.question,
            options=options,
            depth=0 if self._outer is None else self._outer.depth + 1,
        )

    async def ending(self, turn: Turn, state: TurnState, problem: Exception | None) -> Ending[TurnEvent]:
        """Step 8."""
        return await ending_of(self._ctx, turn, state, problem)

    async def ended(self, turn: Turn, state: TurnState, seconds: float) -> None:
        self._agent.et.runtime.listener.on_event(turn_ended(self._conversation, turn, state, self._ctx, seconds))
        if self._ctx is not None:
            self._ctx.release()
        if self._after is not None:
            await self._after()
