"""What a turn tells, as readers take it: at their pace, in handfuls, from any event on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.turn_events import StateChanged, Thinking, Token, TurnEvent
from everthread.runs.event_log import BATCH_EVENTS, EventLog, join_text_events


def log_of(pieces: int) -> EventLog:
    event_log = EventLog("turn")
    for number in range(pieces):
        event_log.emit_token(f"{number} ", "answer")
    return event_log


async def taken(event_log: EventLog, *, after: int = 0, pause_seconds: float = 0.0) -> list[Sequence[TurnEvent]]:
    return [batch async for batch in event_log.batches(after, pause_seconds)]


async def test_events_that_lie_ready_are_taken_at_a_time_each_as_it_was_told() -> None:
    event_log = log_of(5)
    event_log.close()
    assert await taken(event_log) == [event_log.events]
    assert await taken(event_log, after=3) == [event_log.events[3:]]
    assert await taken(event_log, after=5) == []


async def test_a_long_turn_that_is_told_again_comes_in_handfuls_without_a_pause() -> None:
    event_log = log_of(4 * BATCH_EVENTS)
    event_log.close()
    async with asyncio.timeout(60):
        batches = await taken(event_log, pause_seconds=3600)
    assert [len(batch) for batch in batches] == [BATCH_EVENTS] * 4
    assert [event for batch in batches for event in batch] == event_log.events


async def test_what_comes_after_a_silence_is_told_at_once() -> None:
    event_log = log_of(0)
    batches = event_log.batches(0, 3600)
    first = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0)
    event_log.emit_token("hello", "answer")
    async with asyncio.timeout(60):
        assert await first == event_log.events


async def test_tokens_that_come_faster_than_the_pause_share_a_wake_up() -> None:
    event_log = log_of(0)
    reading = asyncio.ensure_future(taken(event_log, pause_seconds=0.2))
    for number in range(200):
        event_log.emit_token(f"{number} ", "answer")
        await asyncio.sleep(0)
    event_log.close()
    batches = await reading
    assert [event for batch in batches for event in batch] == event_log.events
    assert len(batches) < 100


@pytest.mark.parametrize("cut", [0, 1, 100, 199, 200])
async def test_i18_a_reader_in_handfuls_goes_on_after_any_event(cut: int) -> None:
    event_log = log_of(200)
    event_log.close()
    rest = await taken(event_log, after=cut)
    assert [event for batch in rest for event in batch] == event_log.events[cut:]


pieces = st.tuples(st.sampled_from([Token, Thinking, StateChanged]), st.text(max_size=3), st.sampled_from("ab"))


@given(st.lists(pieces))
def test_joined_pieces_say_the_same_in_the_same_order(drawn: list[tuple[type, str, str]]) -> None:
    told: list[TurnEvent] = [
        StateChanged(number=number, node=text) if kind is StateChanged else kind(number, text, message_id)
        for number, (kind, text, message_id) in enumerate(drawn, 1)
    ]
    fewer = list(join_text_events(told))
    assert _said(fewer) == _said(told)
    assert [one.number for one in fewer] == sorted({one.number for one in fewer})
    assert not told or fewer[-1].number == told[-1].number
    assert all(_text(one) is None or _text(one) != _text(other) for one, other in pairwise(fewer))


def _text(event: TurnEvent) -> tuple[type, str] | None:
    return (type(event), event.message_id) if isinstance(event, Token | Thinking) else None


def _said(events: Sequence[TurnEvent]) -> list[object]:
    """Each character with the text it belongs to, and where the graph was between them."""
    said: list[object] = []
    for event in events:
        said += [(_text(event), one) for one in event.text] if isinstance(event, Token | Thinking) else [event]
    return said
