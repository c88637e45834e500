"""Appending: all of a batch or none of it, in order, each message with everything that can be read off it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

import everthread
from everthread import Conversation, Everthread, HeadMoved, Invalid
from everthread.context.tokens import count_tokens
from everthread.testing import ManualClock
from tests.contracts.message_helpers import appended, entry_count, history, says, seqs, texts


async def test_receipts_tell_what_became_of_each_message(conv: Conversation) -> None:
    receipts = await conv.append([says("one", id="m1"), says("two"), {"role": "assistant", "content": "three"}])
    assert [receipt.seq for receipt in receipts] == [1, 2, 3]
    assert [receipt.revision for receipt in receipts] == [1, 1, 1]
    assert [receipt.new for receipt in receipts] == [True, True, True]
    assert receipts[0].id == "m1"
    assert uuid.UUID(receipts[1].id).version == 7
    assert [message.id for message in await history(conv)] == [receipt.id for receipt in receipts]


async def test_a_message_shows_everything_that_can_be_read_off_it(url: str) -> None:
    clock = ManualClock()
    async with everthread.open(url, clock=clock) as et:
        conv = await et.conversations.create()
        await appended(conv, "before")
        at = clock.move(timedelta(seconds=5))
        payload = says("hello world", id="m2", name="Ann", created_at="2024-05-01T10:00:00+02:00", extra=[1])
        await conv.append([payload])
        listed = (await history(conv))[1]
        for message in (listed, (await conv.tail(1))[0], await conv.message("m2")):
            assert (message.seq, message.id, message.role, message.name) == (2, "m2", "user", "Ann")
            assert message.payload == payload
            assert list(message.payload) == list(payload), "the caller's key order is kept"
            assert isinstance(message.raw, bytes)
            assert message.text == "hello world"
            assert message.tokens == 2
            assert message.created_at == message.updated_at == at
            assert message.created_at.tzinfo is UTC
            assert message.said_at == datetime(2024, 5, 1, 8, tzinfo=UTC)
            assert (message.parent_seq, message.revision) == (1, 1)
            assert (message.is_deleted, message.is_pinned) == (False, False)
        assert (await history(conv))[0].parent_seq is None


async def test_the_same_message_is_equal_however_it_is_read(conv: Conversation) -> None:
    await conv.append([says("hi", id="m1")])
    listed = (await history(conv))[0]
    assert listed == await conv.message("m1") == (await conv.tail(1))[0]
    assert len({listed, await conv.message("m1")}) == 1


@pytest.mark.parametrize(
    ("said_at", "moment"),
    [
        ("2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01T10:00:00.123456", datetime(2024, 5, 1, 10, 0, 0, 123456, tzinfo=UTC)),
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        (1714557600, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        (1714557600.5, datetime(2024, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC)),
        (1714557600123, datetime(2024, 5, 1, 10, 0, 0, 123_000, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("", None),
        (None, None),
    ],
)
async def test_when_it_was_said_is_read_where_it_can_be(
    conv: Conversation, said_at: object, moment: datetime | None
) -> None:
    (receipt,) = await conv.append([says("hi", created_at=said_at)])
    message = await conv.message(receipt.id)
    assert message.said_at == moment
    assert message.payload["created_at"] == said_at


@pytest.mark.parametrize(
    "said_at", ["yesterday", "0001-01-01T00:00:00+14:00", "1714557600", 10**18, True, {"at": 1}], ids=str
)
async def test_a_time_that_cannot_be_read_is_refused(et: Everthread, conv: Conversation, said_at: object) -> None:
    with pytest.raises(Invalid, match=r"ISO 8601.*seconds or milliseconds.*datetime") as problem:
        await conv.append([says("before"), says("hi", created_at=said_at)])
    assert problem.value.field == "messages[1].created_at"
    assert await entry_count(et, conv) == 0


async def test_a_datetime_is_kept_as_the_text_it_is_in_json(conv: Conversation) -> None:
    east = datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    batch: list[Any] = [
        says("a", created_at=east),
        says("b", created_at=datetime.fromisoformat("2024-05-01T10:00")),
        HumanMessage("c", created_at=east),
    ]
    await conv.append(batch)
    eight, ten = datetime(2024, 5, 1, 8, tzinfo=UTC), datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert [message.said_at for message in await history(conv)] == [eight, ten, eight]
    assert (await history(conv))[0].payload["created_at"] == "2024-05-01T10:00:00+02:00"
    assert batch[0]["created_at"] is east, "what the caller holds is not changed"


async def test_a_result_that_names_no_call_is_kept_and_found_and_shown_to_no_model(conv: Conversation) -> None:
    await conv.append([says("Look."), {"role": "tool", "content": "a platypus"}])
    assert await texts(conv) == ["Look.", "a platypus"]
    assert len(await conv.search("platypus")) == 1
    assert "platypus" not in str((await conv.context()).messages)


async def test_batches_follow_each_other_in_order(conv: Conversation) -> None:
    assert await appended(conv, "a", "b") == [1, 2]
    assert await appended(conv, "c") == [3]
    assert await appended(conv, "d", "e", "f") == [4, 5, 6]
    assert await texts(conv) == ["a", "b", "c", "d", "e", "f"]
    assert [message.parent_seq for message in await history(conv)] == [None, 1, 2, 3, 4, 5]


async def test_two_equal_texts_are_two_messages(conv: Conversation) -> None:
    await conv.append([says("ok"), says("ok")])
    await conv.append([says("ok")])
    assert await texts(conv) == ["ok", "ok", "ok"]


async def test_an_empty_batch_writes_nothing(et: Everthread, conv: Conversation) -> None:
    assert await conv.append([]) == []
    assert await entry_count(et, conv) == 0


async def test_one_message_alone_is_a_batch_of_one(conv: Conversation) -> None:
    (from_dict,) = await conv.append(says("a dict"))
    (from_bytes,) = await conv.append(b'{"role": "user", "content": "bytes"}')
    assert (from_dict.seq, from_bytes.seq) == (1, 2)
    assert await texts(conv) == ["a dict", "bytes"]


async def test_a_thousand_messages_are_one_batch(et: Everthread, conv: Conversation) -> None:
    batch = [says(str(number), id=str(number)) for number in range(1_200)]
    assert [receipt.seq for receipt in await conv.append(batch)] == list(range(1, 1_201))
    assert not any(receipt.new for receipt in await conv.append(batch))
    batch[700] = says("revised", id="700")
    assert [receipt.id for receipt in await conv.append(batch) if receipt.new] == ["700"]
    assert await entry_count(et, conv) == 1_201


async def test_any_iterable_of_messages_is_a_batch(conv: Conversation) -> None:
    def made_one_by_one() -> Iterator[dict[str, Any]]:
        yield says("a")
        yield says("b")

    await conv.append(made_one_by_one())
    await conv.append((says("c"),))
    assert await texts(conv) == ["a", "b", "c"]


async def test_one_bad_message_keeps_its_whole_batch_out(et: Everthread, conv: Conversation) -> None:
    await appended(conv, "before")
    with pytest.raises(Invalid, match=r"messages\[1\]"):
        await conv.append([says("good"), {"content": "no role"}, says("good too")])
    assert await texts(conv) == ["before"]
    assert await entry_count(et, conv) == 1
    assert await appended(conv, "after") == [2]


async def test_what_the_caller_does_to_a_message_afterwards_changes_nothing_stored(conv: Conversation) -> None:
    message = says([{"type": "text", "text": "first"}], id="m1")
    await conv.append([message])
    message["content"][0]["text"] = "changed"
    read = await conv.message("m1")
    assert read.text == "first"
    read.payload["content"].clear()
    assert (await conv.message("m1")).text == "first"


async def test_the_expected_head_is_where_the_branch_must_end(et: Everthread, conv: Conversation) -> None:
    assert await appended(conv, "first", expected_head=0) == [1]
    assert await appended(conv, "second", expected_head=1) == [2]
    with pytest.raises(HeadMoved) as moved:
        await appended(conv, "late", expected_head=1)
    assert moved.value.retryable
    with pytest.raises(HeadMoved):
        await appended(conv, "from the future", expected_head=3)
    assert await texts(conv) == ["first", "second"]
    assert await entry_count(et, conv) == 2


async def test_marks_and_revisions_do_not_move_the_head(conv: Conversation) -> None:
    await conv.append([says("a", id="m1"), says("b", id="m2")])
    await conv.pin("m1")
    await conv.append([says("a, again", id="m1")])
    assert await appended(conv, "c", expected_head=2) == [5]


async def test_a_retry_that_finds_its_messages_there_is_not_late(conv: Conversation) -> None:
    await conv.append([says("a", id="m1")], expected_head=0)
    (again,) = await conv.append([says("a", id="m1")], expected_head=0)
    assert (again.seq, again.new) == (1, False)


async def test_a_summary_of_a_framework_is_kept_and_not_shown(et: Everthread, conv: Conversation) -> None:
    summary = says("Here is a summary", id="s1", additional_kwargs={"lc_source": "summarization"})
    receipts = await conv.append([says("a"), summary, says("b")])
    assert [receipt.seq for receipt in receipts] == [1, 2, 3]
    assert await texts(conv) == ["a", "b"]
    assert await texts(conv, revisions=True, include_deleted=True) == ["a", "b"]
    assert [message.parent_seq for message in await history(conv)] == [None, 1]
    assert [message.text for message in await conv.tail(5)] == ["a", "b"]
    kept = await conv.message("s1")
    assert kept.is_summary
    assert kept.payload == summary
    report = await et.verify()
    assert (report.entries, report.messages) == (3, 2)


async def test_a_text_that_reads_like_a_summary_is_a_message(conv: Conversation) -> None:
    await conv.append([says("Here is a summary of the conversation to date:", name="summarization")])
    assert len(await texts(conv)) == 1


async def test_a_pasted_secret_is_flagged_and_never_altered(conv: Conversation) -> None:
    key = "ghp_" + "a1B2" * 9
    await conv.append([says(f"my key is {key}", id="secret"), says("my key is under the mat", id="plain")])
    flagged = await conv.message("secret")
    assert flagged.has_secret
    assert flagged.text == f"my key is {key}"
    assert not (await conv.message("plain")).has_secret


async def test_i3_seq_is_1_to_n_without_gap_and_never_used_twice(et: Everthread, conv: Conversation) -> None:
    given = [receipt.seq for receipt in await conv.append([says("a", id="a"), says("b", id="b"), says("c", id="c")])]
    with pytest.raises(Invalid):
        await conv.append([says("bad"), "bad"])
    with pytest.raises(HeadMoved):
        await appended(conv, "late", expected_head=1)
    given += [receipt.seq for receipt in await conv.append([says("b2", id="b")])]
    given.append((await conv.edit("b", says("b3"))).seq)
    await conv.delete_message("a")
    await et.erase(conversation=conv.id, message="c")
    given += await appended(conv, "d")
    assert given == [1, 2, 3, 4, 5, 7]
    assert await entry_count(et, conv) == 7
    assert (await et.verify()).entries == 7
    assert await seqs(conv, branch="main", include_deleted=True) == [1, 2]


async def test_i5_only_erase_lowers_the_count(et: Everthread, conv: Conversation) -> None:
    counts = [0]

    async def counted() -> None:
        counts.append((await et.verify()).messages)

    await conv.append([says("a", id="a"), says("b", id="b")])
    await counted()
    await conv.append([says("a2", id="a")])
    await conv.delete_message("a")
    await conv.fork(1)
    await counted()
    await conv.edit("b", says("b2", id="b2"))
    await counted()
    await conv.set_active("main")
    await conv.delete()
    await counted()
    await conv.restore()
    await conv.restore_message("a")
    await counted()
    assert counts == [0, 2, 2, 3, 3, 3]
    await et.erase(conversation=conv.id, message="b")
    assert (await et.verify()).messages == 2
    await et.erase(conversation=conv.id)
    assert (await et.verify()).messages == 0


async def test_tokens_are_the_same_before_and_after_the_index_caught_up(et: Everthread, conv: Conversation) -> None:
    said = ["short", "两个 词语", "a much longer sentence about nothing " * 9, "x" * 9_000]
    await conv.append([says(text) for text in said])
    before = [message.tokens for message in await conv.tail(10)]
    await et.search("sentence")
    assert before == [count_tokens(text) for text in said]
    assert [message.tokens async for message in conv.messages()] == before


async def test_tokens_of_a_copy_are_those_of_the_original(conv: Conversation) -> None:
    said = ["word " * count for count in range(1, 9)]
    await conv.append([says(text) for text in said])
    copied = await conv.copy()
    assert [message.tokens for message in await copied.tail(8)] == [count_tokens(text) for text in said]
