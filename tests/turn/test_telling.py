"""What a turn tells, as readers take it: at their pace, in handfuls, from any event on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.turn_events import StateChanged, Thinking, Token, TurnEvent
from everthread.turn.telling import MOST_EVENTS, Teller, joined


def teller_of(pieces: int) -> Teller:
    teller = Teller("turn")
    for number in range(pieces):
        teller.token(f"{number} ", "answer")
    return teller


async def taken(teller: Teller, *, after: int = 0, pause_seconds: float = 0.0) -> list[Sequence[TurnEvent]]:
    return [batch async for batch in teller.batches(after, pause_seconds)]


async def test_events_that_lie_ready_are_taken_at_a_time_each_as_it_was_told() -> None:
    teller = teller_of(5)
    teller.close()
    assert await taken(teller) == [teller.events]
    assert await taken(teller, after=3) == [teller.events[3:]]
    assert await taken(teller, after=5) == []


async def test_a_long_turn_that_is_told_again_comes_in_handfuls_without_a_pause() -> None:
    teller = teller_of(4 * MOST_EVENTS)
    teller.close()
    async with asyncio.timeout(60):
        batches = await taken(teller, pause_seconds=3600)
    assert [len(batch) for batch in batches] == [MOST_EVENTS] * 4
    assert [event for batch in batches for event in batch] == teller.events


async def test_what_comes_after_a_silence_is_told_at_once() -> None:
    teller = teller_of(0)
    batches = teller.batches(0, 3600)
    first = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0)
    teller.token("hello", "answer")
    async with asyncio.timeout(60):
        assert await first == teller.events


async def test_tokens_that_come_faster_than_the_pause_share_a_wake_up() -> None:
    teller = teller_of(0)
    reading = asyncio.ensure_future(taken(teller, pause_seconds=0.2))
    for number in range(200):
        teller.token(f"{number} ", "answer")
        await asyncio.sleep(0)
    teller.close()
    batches = await reading
    assert [event for batch in batches for event in batch] == teller.events
    assert len(batches) < 100


@pytest.mark.parametrize("cut", [0, 1, 100, 199, 200])
async def test_i18_a_reader_in_handfuls_goes_on_after_any_event(cut: int) -> None:
    teller = teller_of(200)
    teller.close()
    rest = await taken(teller, after=cut)
    assert [event for batch in rest for event in batch] == teller.events[cut:]


pieces = st.tuples(st.sampled_from([Token, Thinking, StateChanged]), st.text(max_size=3), st.sampled_from("ab"))


@given(st.lists(pieces))
def test_joined_pieces_say_the_same_in_the_same_order(drawn: list[tuple[type, str, str]]) -> None:
    told: list[TurnEvent] = [
        StateChanged(number=number, node=text) if kind is StateChanged else kind(number, text, message_id)
        for number, (kind, text, message_id) in enumerate(drawn, 1)
    ]
    fewer = list(joined(told))
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
