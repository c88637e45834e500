"""Turns as rows: one runs at a time, each ends once, and what it told is found again. On every store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everthread import Conversation, Everthread, Invalid, NotFound, TurnLost, TurnRunning
from everthread.core.ids import new_id
from everthread.core.jobs import COMPACT, NewJob
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, Thinking, Token, TurnEvent, to_stored
from everthread.core.turns import (
    RESERVED_EVENTS,
    Change,
    EventBatch,
    HeldTurn,
    StoredEvent,
    Turn,
    TurnQuery,
    TurnState,
    WhenBusy,
)
from everthread.history import ingest, turn_intents
from everthread.history.turn_events import without_texts
from tests.contracts.message_helpers import says, texts

ME = "here/1"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def prepared(text: str, id: str | None = None) -> list[ingest.Prepared]:
    return ingest.prepare_all([says(text, id=id) if id else says(text)])


def new_turn(conv: Conversation, **fields: Any) -> Turn:
    return Turn(
        **{
            "id": new_id(),
            "conversation_id": conv.id,
            "state": TurnState.RECEIVED,
            "question_id": "q",
            "answer_id": "a",
            "received_at": NOW,
            "holder": ME,
            "lease_until": LATER,
            **fields,
        }
    )


def ref_of(conv: Conversation) -> Ref:
    return Ref(conv.owner, conv.id)


async def begun(
    et: Everthread, conv: Conversation, text: str = "question", when_busy: WhenBusy = "enqueue", **fields: Any
) -> turn_intents.BeginResult:
    intent = turn_intents.BeginTurn(turn=new_turn(conv, **fields), messages=prepared(text), when_busy=when_busy)
    return await et.store.log.write(ref_of(conv), intent)


async def finished(et: Everthread, conv: Conversation, turn: Turn, text: str = "answer", **fields: Any) -> Turn:
    return await et.store.log.write(
        ref_of(conv),
        turn_intents.FinishTurn(
            **{
                "turn_id": turn.id,
                "holder": ME,
                "state": TurnState.COMPLETE,
                "messages": prepared(text, turn.answer_id),
                **fields,
            }
        ),
    )


async def add(et: Everthread, ref: Ref, events: EventBatch) -> Sequence[str]:
    return await et.store.turns.add_events(ME, [(ref, events)])


async def close(et: Everthread, ref: Ref, turn: Turn, messages: Sequence[ingest.Prepared] = ()) -> Turn | None:
    """As another process does that found this one dead."""
    take = turn_intents.TakeTurn(turn=turn, holder="there/2", lease_until=LATER)
    if (taken := await et.store.log.write(ref, take)) is None:
        return None
    return await et.store.log.write(ref, turn_intents.CloseTurn(turn=taken, messages=messages))


def batch(turn: Turn, first: int, *pieces: str) -> EventBatch:
    events = [
        StoredEvent(number, "token", {"text": text, "message_id": turn.answer_id})
        for number, text in enumerate(pieces, first)
    ]
    return EventBatch(turn_id=turn.id, events=events)


# -- beginning and ending ----------------------------------------------------------------------------------


async def test_a_question_and_its_turn_are_kept_together(et: Everthread, conv: Conversation) -> None:
    started = await begun(et, conv, "hello", model="scripted:echo", metadata={"a": 1})
    assert await texts(conv) == ["hello"]
    turn = await conv.turn(started.turn.id)
    assert (turn.state, turn.question_seq, turn.is_complete) == (TurnState.RUNNING, 1, False)
    assert (turn.model, turn.metadata, turn.answer_id) == ("scripted:echo", {"a": 1}, "a")
    assert turn.started_at is not None
    assert turn.ended_at is None


async def test_an_end_writes_the_answer_the_state_the_jobs_and_the_events(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    ended = await finished(
        et, conv, turn, jobs=[NewJob(kind=COMPACT)], events=[batch(turn, 1, "answer")], usage={"input_tokens": 7}
    )
    assert (ended.state, ended.is_complete, ended.usage) == (TurnState.COMPLETE, True, {"input_tokens": 7})
    assert await texts(conv) == ["question", "answer"]
    assert (await et.jobs()).waiting == 1
    assert [event.number async for event in conv.turn_events(turn.id)] == [1]
    assert (await conv.turn(turn.id)).ended_at is not None


async def test_a_turn_ends_once(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    await finished(et, conv, turn)
    with pytest.raises(TurnLost):
        await finished(et, conv, turn, state=TurnState.FAILED, messages=prepared("late"))
    assert await texts(conv) == ["question", "answer"]
    assert (await conv.turn(turn.id)).is_complete


async def test_the_same_turn_again_is_nothing_new(et: Everthread, conv: Conversation) -> None:
    first = await begun(et, conv, id="t")
    again = await begun(et, conv, id="t")
    assert again.turn.number == first.turn.number or first.turn.number == 0
    assert await texts(conv) == ["question"]


async def test_turns_are_listed_newest_first_and_by_state(et: Everthread, conv: Conversation) -> None:
    ids = []
    for place in range(3):
        turn = (await begun(et, conv, f"q{place}", answer_id=f"a{place}")).turn
        await finished(et, conv, turn)
        ids.append(turn.id)
    running = (await begun(et, conv)).turn
    assert [turn.id for turn in await conv.turns()] == [running.id, *ids[::-1]]
    assert [turn.id for turn in await conv.turns(states=[TurnState.RUNNING])] == [running.id]
    page = await conv.turns(limit=2)
    rest = await conv.turns(cursor=page.next_cursor)
    assert [turn.id for turn in rest] == [ids[1], ids[0]]
    assert rest.next_cursor is None
    assert (await conv.turns(limit=4)).next_cursor is None
    with pytest.raises(Invalid):
        await conv.turns(cursor="elsewhere")


# -- one at a time -----------------------------------------------------------------------------------------


async def test_i15_of_one_conversation_one_turn_runs(et: Everthread, conv: Conversation) -> None:
    first = (await begun(et, conv, "first")).turn
    second = await begun(et, conv, "second", answer_id="b")
    assert second.turn.state is TurnState.RECEIVED
    assert [turn.id for turn in second.before] == [first.id]
    assert await texts(conv) == ["first"], "the question of one that waits is kept with it"
    waiting = await conv.turn(second.turn.id)
    assert (
        await et.store.log.write(ref_of(conv), turn_intents.StartTurn(turn=waiting))
    ).turn.state is TurnState.RECEIVED
    await finished(et, conv, first)
    started = await et.store.log.write(ref_of(conv), turn_intents.StartTurn(turn=waiting))
    assert started.turn.state is TurnState.RUNNING
    assert await texts(conv) == ["first", "answer", "second"]
    with pytest.raises(TurnLost):
        await et.store.log.write(ref_of(conv), turn_intents.StartTurn(turn=waiting))


async def test_i15_of_two_writers_the_one_that_lost_the_turn_is_refused(et: Everthread, conv: Conversation) -> None:
    turn = await conv.turn((await begun(et, conv)).turn.id)
    closed = await close(et, ref_of(conv), turn, prepared("half", "a"))
    assert closed is not None
    assert closed.state is TurnState.INTERRUPTED
    late = turn_intents.AppendToTurn(turn_id=turn.id, holder=ME, messages=prepared("late", "a"))
    with pytest.raises(TurnLost):
        await et.store.log.write(ref_of(conv), late)
    assert await add(et, ref_of(conv), batch(turn, 2, "late")) == [turn.id], "it is told that the turn is lost"
    assert await texts(conv) == ["question", "half"]
    assert [event.kind async for event in conv.turn_events(turn.id)] == ["accepted", "done"]


async def test_a_question_may_be_refused_while_another_turn_runs(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    with pytest.raises(TurnRunning):
        await begun(et, conv, "second", when_busy="reject")
    assert await texts(conv) == ["question"]
    assert len(await conv.turns()) == 1
    await finished(et, conv, turn)
    assert (await begun(et, conv, "second", when_busy="reject", answer_id="b")).turn.state is TurnState.RUNNING


async def test_one_that_interrupts_tells_those_before_it_to_stop(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    second = await begun(et, conv, "second", when_busy="interrupt")
    assert second.turn.state is TurnState.RECEIVED
    held = await et.store.turns.renew(ME, LATER)
    assert held == [HeldTurn(ref_of(conv), turn.id, True), HeldTurn(ref_of(conv), second.turn.id, False)]


async def test_a_turn_that_waits_ends_when_it_is_stopped_and_keeps_its_question(
    et: Everthread, conv: Conversation
) -> None:
    first = (await begun(et, conv, "first")).turn
    second = (await begun(et, conv, "second")).turn
    assert (await conv.stop_turn(second.id)).state is TurnState.CANCELLED
    assert await texts(conv) == ["first", "second"]
    assert (await conv.stop_turn(first.id)).is_asked_to_stop
    await finished(et, conv, first, state=TurnState.CANCELLED)
    assert (await conv.stop_turn(first.id)).state is TurnState.CANCELLED


async def test_a_question_that_waits_keeps_its_bytes(et: Everthread, conv: Conversation) -> None:
    await begun(et, conv)
    raw = '{"role": "user",  "content": "\\ud800 naïve \\u0000", "n": 1e2}'.encode()
    intent = turn_intents.BeginTurn(turn=new_turn(conv), messages=ingest.prepare_all([raw]))
    waiting = await conv.turn((await et.store.log.write(ref_of(conv), intent)).turn.id)
    await conv.stop_turn(waiting.id)
    assert (await conv.tail(1))[0].raw == raw


# -- processes that die ------------------------------------------------------------------------------------


async def test_i16_a_turn_whose_process_died_is_closed_with_what_it_said(et: Everthread, conv: Conversation) -> None:
    running = (await begun(et, conv, "first")).turn
    waiting = (await begun(et, conv, "second")).turn
    await et.store.log.write(
        ref_of(conv), turn_intents.AppendToTurn(turn_id=running.id, holder=ME, messages=prepared("said", "s"))
    )
    found = await et.store.turns.unfinished()
    assert [(ref.id, turn.id) for ref, turn in found] == [(conv.id, running.id), (conv.id, waiting.id)]
    for ref, turn in found:
        partial = prepared("ha", "a") if turn.id == running.id else []
        assert await close(et, ref, turn, partial) is not None
    assert await texts(conv) == ["first", "said", "ha", "second"]
    assert [turn.state for turn in await conv.turns()] == [TurnState.INTERRUPTED] * 2
    assert await et.store.turns.unfinished() == []


async def test_a_sign_of_life_keeps_a_turn_from_being_closed(et: Everthread, conv: Conversation) -> None:
    await begun(et, conv)
    ((ref, found),) = await et.store.turns.unfinished()
    await et.store.turns.renew(ME, LATER + timedelta(minutes=1))
    assert await close(et, ref, found) is None
    assert (await conv.turn(found.id)).state is TurnState.RUNNING


# -- events ------------------------------------------------------------------------------------------------


async def test_i18_events_come_back_from_any_number_on(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    await add(et, ref_of(conv), batch(turn, 2, "one", "two"))
    await add(et, ref_of(conv), batch(turn, 4, "three"))
    await add(et, ref_of(conv), batch(turn, 4, "three"))
    for after in range(6):
        assert [event.number async for event in conv.turn_events(turn.id, after=after)] == [1, 2, 3, 4][after:]
    first = await et.store.turns.events(ref_of(conv), turn.id, after=0, limit=1)
    assert next(event.number for event in first) == 1


async def test_old_events_are_pruned_and_young_ones_stay(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    await add(et, ref_of(conv), batch(turn, 2, "one"))
    assert await et.store.turns.prune_events(datetime(2000, 1, 1, tzinfo=UTC)) == 0
    assert await et.store.turns.prune_events(datetime(2200, 1, 1, tzinfo=UTC)) == 2
    assert [event async for event in conv.turn_events(turn.id)] == []


# -- owners and erasing ------------------------------------------------------------------------------------


async def test_i20_turns_of_another_owner_look_unknown(et: Everthread) -> None:
    mine = await et.conversations.create(id="same", owner="ann")
    theirs = await et.conversations.create(id="same", owner="bob")
    turn = (await begun(et, mine)).turn
    await add(et, Ref("ann", "same"), batch(turn, 2, "one"))
    for call in (theirs.turn(turn.id), theirs.stop_turn(turn.id)):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(NotFound):
        await et.store.turns.events(Ref("bob", "same"), turn.id, after=0, limit=10)
    assert (await theirs.turns()).items == []
    assert await et.store.turns.list(TurnQuery("bob")) == []
    assert len(await et.store.turns.list(TurnQuery("ann"))) == 1


async def test_i22_turns_and_events_go_with_their_conversation(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv)).turn
    await add(et, ref_of(conv), batch(turn, 2, "one"))
    report = await et.erase(conversation=conv.id)
    assert (report.reached["turns"], report.reached["run_events"]) == (1, 2)
    assert await et.store.turns.unfinished() == []
    assert await add(et, ref_of(conv), batch(turn, 3, "late")) == [turn.id]
    with pytest.raises(NotFound):
        await conv.turn(turn.id)


async def test_i22_of_an_erased_message_no_event_and_no_error_is_left(et: Everthread, conv: Conversation) -> None:
    turn = (await begun(et, conv, metadata={"input": {"content": "my long secret answer"}})).turn
    await add(et, ref_of(conv), batch(turn, 2, "my long ", "secret answer"))
    await finished(
        et, conv, turn, "my long secret answer", state=TurnState.FAILED, error="failed on: my long secret answer"
    )
    report = await et.erase(conversation=conv.id, message="a")
    assert (report.reached["turns"], report.reached["run_events"]) == (1, 2)
    left = await conv.turn(turn.id)
    assert (left.error, left.metadata, left.state) == ("erased", {}, TurnState.FAILED)


async def test_i22_a_question_that_waits_is_erased_with_its_message(et: Everthread, conv: Conversation) -> None:
    await begun(et, conv)
    intent = turn_intents.BeginTurn(turn=new_turn(conv, question_id="w"), messages=prepared("waits", "w"))
    waiting = (await et.store.log.write(ref_of(conv), intent)).turn
    await conv.append([says("waits", id="w")])
    await et.erase(conversation=conv.id, message="w")
    assert (await conv.turn(waiting.id)).question is None


async def test_i31_the_end_of_a_dead_turn_has_a_number_that_nobody_can_have_seen(
    et: Everthread, conv: Conversation
) -> None:
    """After a power cut the store may have fewer events than were shown; the reserved numbers it has."""
    turn = await conv.turn((await begun(et, conv)).turn.id)
    assert turn.reserved_events == RESERVED_EVENTS
    await add(et, ref_of(conv), replace(batch(turn, 2, "one"), reserved=5000))
    turn = await conv.turn(turn.id)
    assert turn.reserved_events == 5000
    assert await close(et, ref_of(conv), turn) is not None
    assert [(event.number, event.kind) async for event in conv.turn_events(turn.id)] == [
        (1, "accepted"),
        (2, "token"),
        (5001, "done"),
    ]


async def test_i31_a_turn_that_waits_and_is_stopped_says_so_in_its_last_event(
    et: Everthread, conv: Conversation
) -> None:
    await begun(et, conv, "first")
    waiting = (await begun(et, conv, "second")).turn
    await conv.stop_turn(waiting.id)
    assert [(event.number, event.kind) async for event in conv.turn_events(waiting.id)] == [
        (1, "accepted"),
        (2, "done"),
    ]


async def test_i18_the_events_of_an_ended_turn_are_the_same_though_its_text_is_stored_once(
    et: Everthread, conv: Conversation
) -> None:
    turn = (await begun(et, conv)).turn
    pieces = ["Naïve ", "答案 ", "\ud83d\ude00 ".encode("utf-16", "surrogatepass").decode("utf-16"), "end"]
    told: list[TurnEvent] = [
        await anext(conv.turn_events(turn.id)),
        *(Token(number, text, "a") for number, text in enumerate(pieces, 2)),
        Thinking(6, "hmm", "a"),
        Done(number=7, state="complete", answer_id="a", text="".join(pieces)),
    ]
    stored = without_texts([to_stored(event) for event in told], {"a": "".join(pieces)})
    assert "Naïve" not in str(stored)
    await add(et, ref_of(conv), batch(turn, 2, *pieces))
    whole = EventBatch(turn_id=turn.id, events=stored, replaces_earlier=True)
    await finished(et, conv, turn, "".join(pieces), events=[whole])
    await conv.append([{**says("edited since", id="a"), "role": "assistant"}])
    for after in range(len(told) + 1):
        assert [event async for event in conv.turn_events(turn.id, after=after)] == told[after:]


# -- changes -----------------------------------------------------------------------------------------------


async def test_who_waits_for_a_conversation_is_told_of_its_changes_and_of_no_others(
    et: Everthread, conv: Conversation
) -> None:
    other = await et.conversations.create()
    changes: list[Change] = []
    unsubscribe = et.store.turns.subscribe(ref_of(conv), changes.append)
    turn = (await begun(et, conv)).turn
    await begun(et, other)
    await add(et, ref_of(conv), batch(turn, 2, "one"))
    await asyncio.sleep(0.05)
    own = [change for change in changes if not change.is_remote]
    assert own == [Change(is_state=True, is_remote=False), Change(is_state=False, is_remote=False)]
    unsubscribe()
    await finished(et, conv, turn)
    await asyncio.sleep(0.05)
    assert len([change for change in changes if not change.is_remote]) == 2


async def test_i22_what_was_erased_while_a_turn_ran_is_not_written_back_at_its_end(
    et: Everthread, conv: Conversation
) -> None:
    await conv.append([says("my secret", id="s")])
    turn = (await begun(et, conv)).turn
    told: list[TurnEvent] = [
        await anext(conv.turn_events(turn.id)),
        Token(2, "you said: my secret", "a"),
        Done(number=3, state="complete", answer_id=None, text=""),
    ]
    await add(et, ref_of(conv), batch(turn, 2, "you said: my secret"))
    await et.erase(conversation=conv.id, message="s")
    whole = EventBatch(turn_id=turn.id, events=[to_stored(one) for one in told], replaces_earlier=True, earlier=2)
    await finished(et, conv, turn, "fine", events=[whole])
    assert [event async for event in conv.turn_events(turn.id)] == told[-1:]
