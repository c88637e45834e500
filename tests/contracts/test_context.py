"""A context is valid, within the limit and without a hole, whatever the history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everthread import Budget, Context, ContextOverflow, Conversation, Everthread, NotFound
from tests.contracts.message_helpers import appended, history, says, seqs
from tests.contracts.views import IMAGE, Payload, call, check, live, result, tell, text_of, tight

LIMITS = (300, 1_000, 4_000, 100_000)

THINKING = {"type": "thinking", "thinking": "Which order?", "signature": "ErUBCkYIBBgCIkD"}
HISTORIES: dict[str, list[Payload]] = {
    "one message": [says("hello")],
    "parallel calls": [says("both"), call("a", "b", "c"), result("c"), result("a"), result("b"), says("thanks")],
    "an interrupted call": [says("look"), call("a", "b"), result("a"), says("are you there?")],
    "a call answered twice": [says("look"), call("a"), result("a"), result("a", "again"), says("well?")],
    "an id used twice": [says("1"), call("a"), result("a", "first"), says("2"), call("a"), result("a", "second")],
    "a result of nobody": [says("look"), result("nobody"), says("well?")],
    "only an assistant": [{"role": "assistant", "content": "good morning "}],
    "a giant result": [says("read it"), call("a"), result("a", "line of a log\n" * 13_000), says("what does it say?")],
    "images": [says([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": IMAGE}}]), says("?")],
    "signed thinking": [
        says("look"),
        {"role": "assistant", "content": [THINKING, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "found"}]},
        {"role": "assistant", "content": [THINKING, {"type": "text", "text": "It is there."}]},
        says("thanks"),
    ],
    "Chinese": [says("帮我查一下上海到北京的航班，谢谢。" * 40), {"role": "assistant", "content": "找到航班。" * 60}],
    "empty contents": [says(""), {"role": "assistant", "content": None}, says(" "), says("now")],
    "a role nobody knows": [says("hello"), {"type": "critic", "content": "no"}, says("well?")],
    "a system prompt in the log": [{"role": "system", "content": "Be brief."}, says("hello")],
}  # fmt: skip

NEVER = {"enabled": False, "max_message_history": 40}
COUNTED = {"max_message_history": 40}
"""For a context of a history that nothing is summarised of."""


async def test_an_empty_conversation_has_an_empty_context(conv: Conversation) -> None:
    context = await conv.context()
    assert (context.messages, context.omitted, context.tokens) == ([], (), 0)
    assert [part.kind for part in (await conv.context(system="be brief")).parts] == ["system"]


@pytest.mark.parametrize("said", HISTORIES.values(), ids=HISTORIES.keys())
async def test_i7_every_history_makes_a_request_that_both_providers_take(
    conv: Conversation, said: list[Payload]
) -> None:
    await conv.append(said)
    for limit in LIMITS:
        context = await conv.context(system="be brief", budget=tight(limit))
        await check(conv, context)


@pytest.mark.parametrize("count", [50, pytest.param(120, marks=pytest.mark.long)])
async def test_i8_a_long_history_that_was_never_compacted_fits(conv: Conversation, count: int) -> None:
    await tell(conv, count)
    context = await conv.context(compaction=NEVER)
    await check(conv, context)
    assert len(context.messages) <= 40
    assert [omission.reason for omission in context.omitted] == ["passed_over"]
    for limit in (300, 2_000, 8_000):
        await check(conv, await conv.context(system="be brief", budget=tight(limit)))


async def test_i8_a_message_of_ten_megabytes_is_shown_in_part(conv: Conversation) -> None:
    await conv.append([says("read this"), says("word " * 2_000_000)])
    context = await conv.context(budget=tight(4_000))
    await check(conv, context)
    assert "history_open(seq=2)" in text_of(context)
    assert context.manifest.clamped == (2,)


async def test_i8_only_a_system_prompt_that_leaves_no_room_is_refused(conv: Conversation) -> None:
    await tell(conv, 30)
    await conv.compact()
    for limit in (40, 60, 100, 200, 500):
        await check(conv, await conv.context(budget=tight(limit)))
    with pytest.raises(ContextOverflow):
        await conv.context(system="be brief " * 200, budget=tight(200))


async def test_the_newest_words_of_the_user_are_the_last_to_suffer(conv: Conversation) -> None:
    await tell(conv, 30)
    await appended(conv, "What was decided about A-300?")
    context = await conv.context(system="be brief", budget=tight(150))
    assert context.messages[-1]["content"] == "What was decided about A-300?"


async def test_a_deleted_message_is_not_in_the_context_and_leaves_no_hole(conv: Conversation) -> None:
    ids = await tell(conv, 3)
    await conv.append([says("a secret word", id="m")])
    assert "secret word" in text_of(await conv.context())
    for id in ("m", *ids[:4]):
        await conv.delete_message(id)
    context = await conv.context()
    await check(conv, context)
    assert "secret word" not in text_of(context)
    assert context.omitted == ()
    for id in ids[4:]:
        await conv.delete_message(id)
    assert (await conv.context()).messages == []


async def test_a_pinned_message_stays_as_quoted_data_whatever_is_compacted(conv: Conversation) -> None:
    await conv.append([says("My allergy is peanuts.", id="m", name='a"><b>')])
    await tell(conv, 30)
    await conv.pin("m")
    for _ in range(2):
        context = await conv.context(compaction=COUNTED)
        await check(conv, context)
        (record,) = [message for message in context.messages if "<pinned" in str(message["content"])]
        assert record["role"] == "user"
        assert 'message="1" speaker="a&quot;&gt;&lt;b&gt;"' in record["content"]
        assert "My allergy is peanuts." in record["content"]
        await conv.compact()
    await conv.unpin("m")
    assert "<pinned" not in text_of(await conv.context(compaction=COUNTED))


async def test_pins_of_any_number_and_size_leave_room_for_the_question(conv: Conversation) -> None:
    await conv.append([says(f"pin {number} " + "and much more " * 1_000, id=f"p{number}") for number in range(6)])
    for number in range(6):
        await conv.pin(f"p{number}")
    await tell(conv, 20)
    await appended(conv, "so what?")
    for limit in (300, 2_000, 9_000):
        context = await conv.context(budget=tight(limit))
        await check(conv, context)
        assert context.messages[-1]["content"] == "so what?"


async def test_a_pinned_message_is_shown_when_nothing_is_left_after_the_summaries(conv: Conversation) -> None:
    await tell(conv, 30)
    first = (await history(conv))[0]
    await conv.pin(first.id)
    last = (await conv.compact()).compaction
    assert last is not None
    for message in await history(conv, after=last.last_seq):
        await conv.delete_message(message.id)
    context = await conv.context()
    await check(conv, context)
    assert [part.kind for part in context.parts] == ["summary", "pinned"]


async def test_each_branch_has_its_own_context(conv: Conversation) -> None:
    ids = await tell(conv, 30)
    await conv.compact()
    before = await conv.context()
    await conv.edit(ids[8], says("Rather tell me about the weather in Oslo."))
    edited = await conv.context()
    await check(conv, edited)
    assert "Oslo" in text_of(edited)
    assert [part.summary_ids for part in edited.parts if part.kind == "summary"] == []
    await check(conv, await conv.context(branch="main"), branch="main")
    assert (await conv.context(branch="main")).manifest.digest == before.manifest.digest


async def test_a_fork_shares_the_summaries_of_what_it_shares(conv: Conversation) -> None:
    await tell(conv, 30)
    await conv.compact()
    first, *_, last = await live(conv)
    after = await conv.fork(last.last_seq + 2)
    inside = await conv.fork(first.last_seq - 1)
    for branch, shares in ((after, True), (inside, False)):
        await conv.append([says("on the fork")], branch=branch)
        context = await conv.context(branch=branch)
        await check(conv, context, branch=branch)
        shown = [id for part in context.parts for id in part.summary_ids]
        assert (first.id in shown) is shares


async def test_a_context_may_end_at_any_message(conv: Conversation) -> None:
    await tell(conv, 5)
    context = await conv.context(branch=5)
    await check(conv, context, branch=5)
    assert context.parts[-1].seqs == (1, 2, 3, 4, 5)
    with pytest.raises(NotFound):
        await conv.context(branch=99)


async def test_a_long_run_of_tools_keeps_the_question_it_is_for(conv: Conversation) -> None:
    await conv.append([says("Fix the failing test.")])
    for first in (0, 30, 60):
        await conv.append(
            [message for at in range(30) for message in (call(f"c{first + at}"), result(f"c{first + at}"))]
        )
        context = await conv.context(compaction=NEVER)
        await check(conv, context)
        assert context.messages[0]["content"] == "Fix the failing test."
        assert len(context.messages) <= 41


async def test_the_window_starts_where_it_did_until_it_jumps(conv: Conversation) -> None:
    await conv.append([says("go")])
    await conv.append([message for at in range(40) for message in (call(f"c{at}"), result(f"c{at}"))])
    before = (await conv.context()).parts[-1].seqs
    await appended(conv, "thanks")
    after = (await conv.context()).parts[-1].seqs
    assert after == (*before, 82)


async def test_a_context_is_of_one_moment_while_others_write(conv: Conversation) -> None:
    await tell(conv, 12)

    async def write() -> None:
        for number in range(12, 24):
            await tell(conv, 1, first=number)

    async def read() -> list[Any]:
        return [await conv.context(compaction=NEVER) for _ in range(10)]

    _, contexts = await asyncio.gather(write(), read())
    for context in contexts:
        shown = context.parts[-1].seqs
        assert list(shown) == list(range(shown[0], shown[-1] + 1))
        assert shown[0] == 1 or context.omitted


async def test_parts_say_what_each_costs(conv: Conversation) -> None:
    await tell(conv, 30)
    await conv.compact()
    context = await conv.context(system="be brief")
    assert [part.kind for part in context.parts] == ["system", "summary", "window"]
    assert all(part.exact for part in context.parts)
    assert context.parts[2].seqs == tuple(await seqs(conv))[-len(context.parts[2].seqs) :]


async def test_a_count_that_is_an_estimate_says_so(conv: Conversation) -> None:
    await conv.append([says([{"type": "image_url", "image_url": {"url": IMAGE}}])])
    assert [(part.kind, part.exact) for part in (await conv.context(system="be brief")).parts] == [
        ("system", True),
        ("window", False),
    ]
    guessed = await conv.context(system="be brief", budget=Budget(factor=1.3))
    assert not any(part.exact for part in guessed.parts)


async def test_what_is_shown_in_part_is_named_as_such_and_not_as_left_out(conv: Conversation) -> None:
    await conv.append([says("line of a log\n" * 9_000)])
    context = await conv.context(budget=tight(1_000))
    assert context.omitted == ()
    assert context.manifest.clamped == (1,)
    assert [(piece.seqs, piece.form) for piece in context.pieces] == [((1,), "in_part")]


@pytest.mark.parametrize(
    ("memory", "said"),
    [("The user has a nut allergy.", "The <memory> tags below"), ("用户对坚果过敏。", "下面的 <memory> 标签里")],
)
async def test_a_record_says_only_what_concerns_it_in_its_language(et: Everthread, memory: str, said: str) -> None:
    await et.memories.add("local", memory, pinned=True)
    conv = await et.conversations.create()
    await conv.append([says("你好")])
    context = await conv.context()
    await check(conv, context)
    assert context.messages[0]["content"].startswith(said)
    assert not any(word in text_of(context) for word in ("<summary>", "history_open", "<record>", "长期有效"))
    assert (await conv.seen_context(await conv.keep_context(context))).is_same


# --- the system slot ---


def slot(context: Context) -> list[str]:
    """What stands in the system slot."""
    return [message["content"] for message in context.messages if message["role"] == "system"]


async def test_a_system_message_of_the_log_holds_however_far_the_window_moves(conv: Conversation) -> None:
    await conv.append([{"role": "system", "content": "Talk like a bird.", "id": "s"}])
    await tell(conv, 30)
    before = await conv.context(compaction=NEVER)
    assert before.omitted
    await conv.compact()
    after = await conv.context()
    for context in (before, after):
        await check(conv, context)
        assert slot(context) == ["Talk like a bird."]
        assert context.parts[0].kind == "system"
        assert context.parts[0].seqs == (1,)
    await conv.append([{"role": "system", "content": "Talk like a fish.", "id": "s"}])
    assert slot(await conv.context()) == ["Talk like a fish."]
    await conv.delete_message("s")
    assert slot(await conv.context()) == []


async def test_the_prompt_of_the_request_stands_before_those_of_the_log(conv: Conversation) -> None:
    await conv.append([{"role": "system", "content": "first"}, {"role": "developer", "content": "second"}])
    assert slot(await conv.context(system="given")) == ["given", "first", "second"]
    await tell(conv, 30)
    await conv.compact()
    context = await conv.context(system="given")
    assert slot(context) == ["given", "first", "second"]
    assert slot(await conv.context(system="second")) == ["second", "first"]
    seen = await conv.seen_context(await conv.keep_context(context))
    assert seen.is_same
    assert slot(seen.context) == slot(context)


async def test_an_instruction_in_mid_conversation_says_where_it_was_given(conv: Conversation) -> None:
    await conv.append([{"role": "system", "content": "Be brief."}])
    await tell(conv, 2)
    await conv.append([{"role": "system", "content": "Answer in French."}])
    before = await conv.context()
    assert slot(before) == ["Be brief.", "[given at message 10 of the conversation] Answer in French."]
    await tell(conv, 1, first=2)
    after = await conv.context()
    assert after.messages[: len(before.messages)] == before.messages
    assert (await conv.seen_context(await conv.keep_context(after))).is_same
    await conv.append([{"role": "system", "content": "Be brief."}])
    assert slot(await conv.context()) == ["Be brief."]
    await check(conv, await conv.context())


async def test_a_pinned_system_message_stands_in_the_slot_and_is_not_quoted(conv: Conversation) -> None:
    await tell(conv, 2)
    await conv.append([{"role": "system", "content": "Answer in French.", "id": "s"}])
    await tell(conv, 30, first=2)
    await conv.compact()
    assert slot(await conv.context()) == []
    await conv.pin("s")
    context = await conv.context()
    await check(conv, context)
    assert slot(context) == ["Answer in French."]
    assert "<pinned" not in text_of(context)


async def test_the_system_messages_at_the_start_stay_beside_a_record_and_newer_ones(
    et: Everthread,
) -> None:
    await et.memories.add("local", "The user has a nut allergy.", pinned=True)
    conv = await et.conversations.create()
    await conv.append([{"role": "system", "content": "You are Bot."}])
    await tell(conv, 1)
    await conv.append([{"role": "system", "content": "It is Monday."}, says("what now?")])
    context = await conv.context()
    await check(conv, context)
    assert "<memory" in text_of(context)
    assert slot(context) == ["You are Bot.", "[given at message 6 of the conversation] It is Monday."]
    assert context.omitted == ()


async def test_a_memory_newer_than_the_conversation_is_counted_where_nothing_else_is_recalled(
    et: Everthread, conv: Conversation
) -> None:
    await et.memories.add(conv.owner, "The user has a nut allergy.", pinned=True)
    await conv.append(says("hello"))
    context = await conv.context()
    await check(conv, context)
    assert [part.kind for part in context.parts] == ["memory", "window"]


async def test_a_pinned_system_message_stays_where_newer_ones_follow(conv: Conversation) -> None:
    await conv.append([{"role": "system", "content": "Be brief."}])
    await tell(conv, 2)
    await conv.append([{"role": "system", "content": "Answer in French.", "id": "s"}])
    await conv.append([{"role": "system", "content": "It is Monday."}])
    await tell(conv, 1, first=2)
    assert slot(await conv.context()) == ["Be brief.", "[given at message 11 of the conversation] It is Monday."]
    await conv.pin("s")
    context = await conv.context()
    await check(conv, context)
    assert slot(context) == [
        "Be brief.",
        "Answer in French.",
        "[given at message 11 of the conversation] It is Monday.",
    ]
    assert (await conv.seen_context(await conv.keep_context(context))).is_same


# --- what was shown ---


async def test_what_a_model_saw_can_be_rendered_again(conv: Conversation) -> None:
    ids = await tell(conv, 30)
    await conv.pin(ids[0])
    await conv.compact()
    for budget in (None, tight(700), Budget(window=9_000, factor=1.3)):
        context = await conv.context(system="be brief", budget=budget, provider="anthropic")
        id = await conv.keep_context(context)
        await tell(conv, 2, first=90)
        await conv.append([says("changed since", id=ids[-1])])
        await conv.delete_message(ids[-2])
        seen = await conv.seen_context(id)
        assert seen.is_same
        assert seen.context.messages == context.messages
        assert seen.manifest == context.manifest
        assert (seen.erased, seen.erased_summaries) == ((), ())


async def test_what_a_model_saw_says_what_was_erased_since(et: Everthread, conv: Conversation) -> None:
    ids = await tell(conv, 30)
    await conv.compact()
    context = await conv.context()
    id = await conv.keep_context(context)
    await et.erase(conversation=conv.id, message=ids[-1])
    seen = await conv.seen_context(id)
    assert not seen.is_same
    assert (seen.erased, seen.erased_summaries) == ((120,), ())
    await et.erase(conversation=conv.id, message=ids[0])
    gone = (await conv.seen_context(id)).erased_summaries
    assert set(gone) < set(context.manifest.summary_ids)
    assert gone


async def test_a_context_that_was_not_kept_is_not_found(conv: Conversation) -> None:
    with pytest.raises(NotFound):
        await conv.seen_context("nothing")
