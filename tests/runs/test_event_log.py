"""What a turn tells, as readers take it: at their pace, in handfuls, from any event on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.nouns import Ref
from everthread.core.turn_events import StateChanged, Thinking, Token, TurnEvent
from everthread.core.turns import RESERVED_EVENTS
from everthread.runs.event_log import BATCH_EVENTS, MOST_IN_MEMORY, TurnEventLog, join_text_events


def log_of(pieces: int) -> TurnEventLog:
    event_log = TurnEventLog(Ref("local", "c"), "turn")
    for number in range(pieces):
        event_log.emit_token(f"{number} ", "answer")
    return event_log


async def taken(event_log: TurnEventLog, *, after: int = 0) -> list[Sequence[TurnEvent]]:
    return [batch async for batch in event_log.batches(after)]


async def test_what_is_ready_comes_in_one_batch() -> None:
    event_log = log_of(5)
    event_log.close()
    assert await taken(event_log) == [event_log.events]
    assert await taken(event_log, after=3) == [event_log.events[3:]]
    assert await taken(event_log, after=5) == []


async def test_a_long_run_comes_in_batches_that_do_not_block_the_loop() -> None:
    event_log = log_of(4 * BATCH_EVENTS)
    event_log.close()
    batches = await taken(event_log)
    assert max(map(len, batches)) == BATCH_EVENTS
    assert [event for batch in batches for event in batch] == event_log.events


async def test_i31_an_event_is_shown_only_when_it_is_stored() -> None:
    announced: list[object] = []
    event_log = TurnEventLog(Ref("local", "c"), "turn", on_emit=announced.append)
    reading = asyncio.ensure_future(anext(aiter(event_log.batches())))
    for text in ("one ", "two ", "three "):
        event_log.emit_token(text, "answer")
    await asyncio.sleep(0.01)
    assert not reading.done()
    assert announced == [event_log], "the writer is told once"
    batch = event_log.take_unstored()
    assert batch is not None
    assert event_log.take_unstored() is batch, "until it is stored, it is that batch again"
    event_log.emit_token("four", "answer")
    event_log.mark_stored(batch.last)
    assert [event.number for event in await reading] == [1, 2, 3]
    assert [event.number for event in event_log.take_unstored().events] == [4]  # type: ignore[union-attr]


async def test_numbers_are_reserved_long_before_they_are_used_up() -> None:
    event_log = TurnEventLog(Ref("local", "c"), "turn", on_emit=lambda _: None)
    reserved = RESERVED_EVENTS
    for _ in range(5 * RESERVED_EVENTS):
        event_log.emit_token("x", "answer")
        if event_log.last % 40 == 0:
            batch = event_log.take_unstored()
            assert batch is not None
            reserved = max(reserved, batch.reserved)
            assert batch.last < reserved
            event_log.mark_stored(batch.last)
    assert reserved > 5 * RESERVED_EVENTS


async def test_what_left_memory_is_read_from_the_store() -> None:
    numbers = range(1, 3 * MOST_IN_MEMORY + 1)

    class Stored:
        """As the store has them."""

        async def read(self, after: int) -> AsyncIterator[Sequence[TurnEvent]]:
            yield [Token(number, "x", "answer") for number in numbers if after < number <= event_log.last - 10]

        def follow(self, after: int) -> AsyncIterator[Sequence[TurnEvent]]:
            raise AssertionError(f"nobody took the run over, yet it is followed after {after}")

    event_log = TurnEventLog(Ref("local", "c"), "turn", on_emit=lambda _: None, stored=Stored())
    for _ in numbers:
        event_log.emit_token("x", "answer")
        batch = event_log.take_unstored()
        assert batch is not None
        event_log.mark_stored(batch.last)
    event_log.close()
    assert len(event_log.events) <= MOST_IN_MEMORY
    assert [event.number for batch in await taken(event_log, after=7) for event in batch] == list(numbers)[7:]


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
