"""Step 8, the end of a turn: its answer, its state, the jobs that follow and the last events, in one transaction.

However it ended: an error or a stop keeps what there is of the answer, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.conversation import Conversation
from everthread.core.errors import Erased, EverthreadError, NotFound, StoreError, TurnLost
from everthread.core.events import TurnEnded
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, Failed
from everthread.core.turns import Turn, TurnState
from everthread.history.turn_intents import FinishTurn
from everthread.runs.close import partial_message
from everthread.runs.event_log import EventLog, MakeEvent
from everthread.runs.leases import LiveRun
from everthread.turn.agent import Agent
from everthread.turn.request import prepare_messages
from everthread.turn.turn_context import TurnContext


async def finish(
    conversation: Conversation,
    agent: Agent,
    ctx: TurnContext | None,
    turn: Turn,
    event_log: EventLog,
    state: TurnState,
    problem: Exception | None = None,
) -> None:
    """Write the end and emit the last event. `ctx` is None for a turn that ended before its graph began."""
    if ctx is None and turn.state is TurnState.RECEIVED and state is TurnState.CANCELLED:
        await conversation.stop_turn(turn.id)
        event_log.emit(lambda number: Done(number=number, state=state.value, answer_id=None, text=""))
        return
    answer: BaseMessage | Mapping[str, Any] | None = None
    if ctx is not None and state is TurnState.COMPLETE:
        answer = ctx.answer
    elif ctx is not None and ctx.in_progress is not None and ctx.in_progress.text:
        answer = partial_message(ctx.in_progress.id, ctx.in_progress.text, turn.id, state)
    async with event_log.save_lock:
        event, batch = event_log.prepare_last(_last_event(ctx, answer, state, problem))
        intent = FinishTurn(
            turn_id=turn.id,
            holder=agent.leases.holder,
            state=state,
            answer_id=_id_of(answer),
            messages=await prepare_messages([] if answer is None else [answer]),
            error=None if problem is None else error_text(problem),
            usage=dict(ctx.usage) if ctx is not None else {},
            events=[batch],
        )
        try:
            await agent.et.runtime.write(Ref(conversation.owner, conversation.id), intent)
        except (TurnLost, NotFound, Erased):  # closed by another process, or erased: nothing is left to write to
            pass
        except StoreError as trouble:  # the row stays open; once the lease is over it is closed from its events
            event = _last_event(ctx, answer, TurnState.FAILED, trouble)(event.number)
    event_log.publish(event)


def _last_event(
    ctx: TurnContext | None,
    answer: BaseMessage | Mapping[str, Any] | None,
    state: TurnState,
    problem: Exception | None,
) -> MakeEvent:
    text = answer.text if isinstance(answer, BaseMessage) else "" if answer is None else str(answer["content"])
    if problem is None:
        return lambda number: Done(
            number=number,
            state=state.value,
            answer_id=_id_of(answer),
            text=text,
            usage=dict(ctx.usage) if ctx is not None else {},
            loops=ctx.model_calls if ctx is not None else 0,
        )
    is_ours = isinstance(problem, EverthreadError)
    return lambda number: Failed(
        number=number,
        code=problem.code if is_ours else "error",  # type: ignore[attr-defined]
        message=error_text(problem),
        retryable=is_ours and problem.retryable,  # type: ignore[attr-defined]
        answer_id=_id_of(answer),
        text=text,
    )


def error_text(problem: Exception) -> str:
    """An error as a turn keeps it: of ours the message, of others the type only, since they may quote anything."""
    if isinstance(problem, EverthreadError):
        return str(problem)
    return f"{type(problem).__name__} inside of the turn; what was said until then is kept"


async def emit_lost(conversation: Conversation, turn: Turn, event_log: EventLog, problem: TurnLost) -> None:
    """Another process has ended the turn: the last event says how, and nothing is written."""
    with suppress(NotFound):
        ended = await conversation.turn(turn.id)
        if ended.state.is_final:
            state, answer_id = ended.state.value, ended.answer_id
            event_log.emit(lambda number: Done(number=number, state=state, answer_id=answer_id, text=""))
            return
    event_log.emit(
        lambda number: Failed(
            number=number, code=problem.code, message=str(problem), retryable=False, answer_id=None, text=""
        )
    )


def turn_ended(live: LiveRun, ctx: TurnContext | None, seconds: float) -> TurnEnded:
    """The event for logs and metrics."""
    last = live.event_log.events[-1]
    usage = {} if ctx is None else ctx.usage
    return TurnEnded(
        owner=live.ref.owner,
        conversation_id=live.ref.id,
        turn_id=live.id,
        state=last.state if isinstance(last, Done) else TurnState.FAILED.value,
        seconds=round(seconds, 3),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
    )


def _id_of(answer: BaseMessage | Mapping[str, Any] | None) -> str | None:
    return answer.id if isinstance(answer, BaseMessage) else None if answer is None else str(answer["id"])
