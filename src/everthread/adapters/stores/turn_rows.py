"""What both databases share about turns: which columns make a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from everthread.adapters.stores.packed_events import dump_json
from everthread.adapters.stores.packed_records import pack, unpack
from everthread.core.clock import from_micros, to_micros
from everthread.core.turns import Turn, TurnState

STATES = tuple(TurnState)
"""A state is stored as its index here; the first two are the states of unfinished turns."""
FIRST_FINAL = 2

TURN_COLUMNS = (
    "t.number, t.id, c.id, t.state, t.holder, t.lease_until, t.is_asked_to_stop, t.received_at, t.question, t.record, "
    "t.reserved_events"
)
"""The columns of `turns` (as t) and of its conversation (as c)."""

_RECORD = ("question_id", "answer_id", "kind", "assistant", "model", "question_seq", "error")


def turn_values(turn: Turn) -> tuple[Any, ...]:
    """A turn as the values of its row, after the conversation's number."""
    record = {name: getattr(turn, name) for name in _RECORD}
    record |= {"metadata": dict(turn.metadata), "usage": dict(turn.usage)}
    record |= {"started_at": _micros(turn.started_at), "ended_at": _micros(turn.ended_at)}
    return (
        turn.id,
        STATES.index(turn.state),
        turn.holder,
        _micros(turn.lease_until),
        int(turn.is_asked_to_stop),
        to_micros(turn.received_at),
        turn.question,
        pack(dump_json(record)),
        turn.reserved_events,
    )


def turn_from_row(row: Any) -> Turn:
    """A turn from the columns of `TURN_COLUMNS`."""
    number, id, conversation, state, holder, lease_until, is_stopped, received_at, question, record, reserved = row
    fields = json.loads(unpack(bytes(record)))
    started_at, ended_at = fields.pop("started_at"), fields.pop("ended_at")
    return Turn(
        **fields,
        number=number,
        id=id,
        conversation_id=conversation,
        state=STATES[state],
        holder=holder,
        lease_until=_moment(lease_until),
        is_asked_to_stop=bool(is_stopped),
        received_at=from_micros(received_at),
        question=None if question is None else bytes(question),
        reserved_events=reserved,
        started_at=_moment(started_at),
        ended_at=_moment(ended_at),
    )


def without(turn: Turn, texts: Sequence[str]) -> Turn | None:
    """Return the turn without its quotations of these texts; None when it has none."""
    if not any(turn.tells_of(text) for text in texts if text):
        return None
    return replace(turn, error=None if turn.error is None else "erased", metadata={})


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
