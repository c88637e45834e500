"""The last step of a turn: its answer, its state, the jobs that follow and the last events, in one transaction.

However it ended: an error or a stop keeps what there is of the answer, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.conversation import Conversation
from everthread.core.errors import Erased, EverthreadError, NotFound, StoreError, TurnLost
from everthread.core.events import TurnEnded
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, Failed
from everthread.core.turns import Turn, TurnState
from everthread.history import turn_intents
from everthread.runs.close import partial_message
from everthread.runs.event_log import EventLog, MakeEvent
from everthread.runs.leases import LiveRun
from everthread.turn.agent import Agent
from everthread.turn.scene import Scene, prepared


async def finish(
    conversation: Conversation,
    agent: Agent,
    scene: Scene | None,
    turn: Turn,
    event_log: EventLog,
    state: TurnState,
    problem: Exception | None = None,
) -> None:
    """Step 8."""
    if scene is None and turn.state is TurnState.RECEIVED and state is TurnState.CANCELLED:
        await conversation.stop_turn(turn.id)
        event_log.emit(partial(_stopped, turn))
        return
    said = _last_words(scene, turn, state)
    async with event_log.save_lock:
        event, batch = event_log.prepare_last(_ending(turn, scene, said, state, problem))
        intent = turn_intents.FinishTurn(
            turn_id=turn.id,
            holder=agent.leases.holder,
            state=state,
            answer_id=_id_of(said),
            messages=await prepared([said] if said is not None else []),
            error=None if problem is None else described(problem),
            usage=dict(scene.usage) if scene is not None else {},
            jobs=scene.outcome.jobs if scene is not None else (),
            events=[batch],
        )
        try:
            await agent.et.runtime.write(Ref(conversation.owner, conversation.id), intent)
        except (TurnLost, NotFound, Erased):  # closed by another, or erased: there is nothing left to write to
            pass
        except StoreError as trouble:  # the row stays open, and is closed from its events when the lease is over
            event = _ending(turn, scene, said, TurnState.FAILED, trouble)(event.number)
    event_log.publish(event)


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
) -> MakeEvent:
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


async def tell_lost(conversation: Conversation, turn: Turn, event_log: EventLog, problem: TurnLost) -> None:
    """Somebody else has ended it: what it ended as is told, nothing is written."""
    with suppress(NotFound):
        ended = await conversation.turn(turn.id)
        if ended.state.is_final:
            event_log.emit(
                lambda number: Done(number=number, state=ended.state.value, answer_id=ended.answer_id, text="")
            )
            return
    event_log.emit(
        lambda number: Failed(
            number=number, code=problem.code, message=str(problem), retryable=False, answer_id=None, text=""
        )
    )


def ended(ref: Ref, live: LiveRun, scene: Scene | None, seconds: float) -> TurnEnded:
    """For the log and the counts."""
    last = live.event_log.events[-1]
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


def _stopped(turn: Turn, number: int) -> Done:
    return Done(number=number, state=TurnState.CANCELLED.value, answer_id=None, text="")


def _id_of(said: BaseMessage | Mapping[str, Any] | None) -> str | None:
    return said.id if isinstance(said, BaseMessage) else None if said is None else str(said["id"])
