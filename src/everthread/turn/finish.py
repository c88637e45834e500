"""Step 8, the end of a turn: what there is of its answer, and the event that says how it ended. An error or a stop
keeps what there is, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.errors import EverthreadError, NotFound
from everthread.core.events import TurnEnded
from everthread.core.turn_events import Done, Failed, TurnEvent
from everthread.core.turns import Turn, TurnState
from everthread.runs.close import partial_message
from everthread.runs.engine import Ending
from everthread.turn.request import prepare_messages
from everthread.turn.result import ResultMetadata, result_metadata
from everthread.turn.turn_context import TurnContext


async def ending_of(
    ctx: TurnContext | None, turn: Turn, state: TurnState, problem: Exception | None
) -> Ending[TurnEvent]:
    """What to write at the end of a turn. `ctx` is None for one that ended before its graph began."""
    answer: BaseMessage | Mapping[str, Any] | None = None
    if ctx is not None and state is TurnState.COMPLETE:
        answer = ctx.answer
    elif ctx is not None and ctx.in_progress is not None and ctx.in_progress.text:
        try:  # stopped just after it was written, with its calls: then it stays as it is
            await ctx.conversation.message(ctx.in_progress.id)
        except NotFound:
            answer = partial_message(ctx.in_progress.id, ctx.in_progress.text, turn.id, state)
    answer_id = answer.id if isinstance(answer, BaseMessage) else None if answer is None else str(answer["id"])
    text = answer.text if isinstance(answer, BaseMessage) else "" if answer is None else str(answer["content"])
    result = result_metadata({"additional_kwargs": answer.additional_kwargs} if isinstance(answer, BaseMessage) else {})
    usage = {} if ctx is None else dict(ctx.usage)
    loops = 0 if ctx is None else ctx.model_calls
    notices = [] if ctx is None else list(ctx.notices)

    def last_event(number: int) -> Sequence[TurnEvent]:
        if problem is None:
            return [
                Done(
                    number=number,
                    state=state.value,
                    answer_id=answer_id,
                    text=text,
                    usage=usage,
                    loops=loops,
                    result=result,
                    notices=notices,
                )
            ]
        is_ours = isinstance(problem, EverthreadError)
        return [
            Failed(
                number=number,
                code=problem.code if is_ours else "error",  # type: ignore[attr-defined]
                message=error_text(problem),
                retryable=is_ours and problem.retryable,  # type: ignore[attr-defined]
                answer_id=answer_id,
                text=text,
            )
        ]

    messages = await prepare_messages([] if answer is None else [answer])
    return Ending(
        events=last_event,
        answer_id=answer_id,
        messages=messages,
        texts={one.id: payloads.text(one.payload) for one in messages},
        error=None if problem is None else error_text(problem),
        usage=usage,
    )


async def outcome_of(conversation: Conversation, turn: Turn, number: int) -> Done | Failed:
    """The last event of a turn that has ended, made from its row and its answer: its own events may be pruned."""
    text, result = "", ResultMetadata()
    with suppress(NotFound):
        answer = await conversation.message(turn.answer_id)
        text, result = answer.text, result_metadata(answer.payload)
    if turn.state is not TurnState.FAILED:
        state = turn.state.value
        return Done(number=number, state=state, answer_id=turn.answer_id, text=text, usage=turn.usage, result=result)
    message = turn.error or ""
    return Failed(number=number, code="error", message=message, retryable=False, answer_id=turn.answer_id, text=text)


def error_text(problem: Exception) -> str:
    """An error as a turn keeps it: of ours the message, of others the type only, since they may quote anything."""
    if isinstance(problem, EverthreadError):
        return str(problem)
    return f"{type(problem).__name__} inside of the turn; what was said until then is kept"


def turn_ended(
    conversation: Conversation, turn: Turn, state: TurnState, ctx: TurnContext | None, seconds: float
) -> TurnEnded:
    """The event for logs and metrics."""
    usage = {} if ctx is None else ctx.usage
    return TurnEnded(
        owner=conversation.owner,
        conversation_id=conversation.id,
        turn_id=turn.id,
        state=state.value,
        seconds=round(seconds, 3),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
    )
