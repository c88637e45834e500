"""A run as the protocol shows it: a turn with the request in its metadata.

pending   received       it waits for the runs before it on its thread
running   running
success   complete       also when the graph has stopped at an interrupt: the thread is `interrupted` then
error     failed
interrupted              cancelled, or interrupted: its process died or was stopped
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from everthread.conversation import Conversation
from everthread.core.turns import RUN_KIND, Turn, TurnState
from everthread.history.turn_intents import HIDDEN

MAX_RUNS = 1000
"""How many runs of a thread a stream of it follows."""
_FIRST_PAGE, _PAGE = 20, 500

RunStatus = Literal["pending", "running", "success", "error", "interrupted", "timeout"]

STATUS: Mapping[TurnState, RunStatus] = {
    TurnState.RECEIVED: "pending",
    TurnState.RUNNING: "running",
    TurnState.COMPLETE: "success",
    TurnState.FAILED: "error",
    TurnState.CANCELLED: "interrupted",
    TurnState.INTERRUPTED: "interrupted",
}
STATES_OF: Mapping[str, tuple[TurnState, ...]] = {
    status: tuple(state for state, shown in STATUS.items() if shown == status) for status in STATUS.values()
}


def is_visible_run(turn: Turn) -> bool:
    """Whether a row is a run, and neither deleted nor rolled back."""
    return turn.kind == RUN_KIND and not turn.metadata.get(HIDDEN)


async def visible_runs(
    thread: Conversation, *, most: int, states: Sequence[TurnState] = (), since: int = 0
) -> list[Turn]:
    """The newest runs of a thread, newest first; with `since`, only those from this number on. The first page is small:
    readers who look for new runs mostly find none."""
    found: list[Turn] = []
    cursor = None
    while len(found) < most:
        page = await thread.turns(
            states=states, cursor=cursor, limit=min(most, _FIRST_PAGE if cursor is None else _PAGE)
        )
        found += (turn for turn in page.items if turn.number >= since and is_visible_run(turn))
        if (cursor := page.next_cursor) is None or page.items[-1].number <= since:
            break
    return found[:most]


def run_error(turn: Turn) -> dict[str, Any] | None:
    """The error that a run failed with or was ended by: its type and its text."""
    if turn.error is None:
        return None
    is_json = turn.state is TurnState.FAILED and turn.error.startswith("{")
    error: dict[str, Any] = json.loads(turn.error) if is_json else {"error": "Interrupted", "message": turn.error}
    return error


def run_out(turn: Turn) -> dict[str, Any]:
    """A run, as the protocol shows it."""
    request = turn.metadata
    return {
        "run_id": turn.id,
        "thread_id": turn.conversation_id,
        "assistant_id": turn.assistant,
        "metadata": request.get("metadata", {}),
        "status": STATUS[turn.state],
        "kwargs": request.get("kwargs", {}),
        "multitask_strategy": request.get("multitask_strategy", "enqueue"),
        "created_at": turn.received_at,
        "updated_at": turn.ended_at or turn.started_at or turn.received_at,
    }
