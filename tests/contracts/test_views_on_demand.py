"""Nothing is spent until somebody needs it: no summary, vector or memory of what is only archived; all of them, soon
after they are first asked for; and a first context that does not wait for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import everthread
from everthread import CompactionPolicy, Conversation, Everthread, Invalid, Pace
from everthread.compaction import driver
from everthread.compaction.sources import ConversationKind
from everthread.core.jobs import COMPACT, EMBED, REMEMBER
from everthread.core.nouns import Ref
from everthread.testing import FakeEmbedder, ScriptedModel
from everthread.turn import run_turn
from tests.contracts.job_helpers import settled, until
from tests.contracts.message_helpers import says
from tests.contracts.views import check, live, tell, text_of, tight

PACE = Pace(poll_seconds=0.5, lease_seconds=5.0, stop_seconds=0.5)
COUNTED = CompactionPolicy(max_message_history=40)
MARK = COUNTED.message_mark
LONG = 100
"""Turns of four messages."""


class Asked:
    """A summary model that notes that it was asked."""

    name = "asked"

    def __init__(self) -> None:
        self.times = 0

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        self.times += 1
        return "They spoke of orders, towns and euros, and decided to ship by rail."


@pytest.fixture
async def working(url: str) -> AsyncIterator[Everthread]:
    """A database with a worker, and an embedder that could be used."""
    async with everthread.open(url, embedder=FakeEmbedder(), worker=PACE) as opened:
        yield opened


async def kinds(et: Everthread) -> list[str]:
    return sorted(job.kind for job in (await et.jobs()).jobs)


async def vectors(et: Everthread, conv: Conversation) -> int:
    found = (await et.vectors.indexed(Ref(conv.owner, conv.id))).get("fake")
    return found.parts if found else 0


# -- archived only -------------------------------------------------------------------------------------------------


async def test_what_is_only_archived_is_never_summarised_embedded_or_read_for_memories(working: Everthread) -> None:
    conv = await working.conversations.create()
    await conv.append([says("My name is Max, and I live in Rome.")])
    for batch in range(4):
        await tell(conv, LONG // 4, first=batch * LONG)
        assert await kinds(working) == []
    await working.search("order")
    assert [message async for message in conv.messages(limit=3)]
    assert b"".join([piece async for piece in conv.export("md")])
    assert await kinds(working) == []
    assert await live(conv) == []
    assert await vectors(working, conv) == 0
    assert (await working.memories.list("local")).items == []


# -- the first context ---------------------------------------------------------------------------------------------


async def test_the_first_context_of_a_long_history_comes_before_its_summaries_and_names_what_it_leaves_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_FIRST_CONTEXT_SECONDS", 0.0)
    async with everthread.open(url, compaction=COUNTED, worker=PACE) as et:
        conv = await et.conversations.create()
        await tell(conv, LONG)
        context = await conv.context()
        await check(conv, context)
        assert {one.reason for one in context.omitted} == {"passed_over"}
        assert sum((one.last_seq or one.seq) - one.seq + 1 for one in context.omitted) > 300
        await settled(et)
        after = await conv.context()
        await check(conv, after)
        assert after.omitted == ()
        assert (await live(conv))[-1].last_seq > 4 * LONG - MARK


async def test_what_can_be_summarised_in_a_short_time_is_in_the_first_context(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_FIRST_CONTEXT_SECONDS", 600.0)
    async with everthread.open(url, compaction=COUNTED, worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, LONG // 2)
        context = await conv.context()
        await check(conv, context)
        assert context.omitted == ()
        assert [part.kind for part in context.parts] == ["summary", "window"]
        assert COMPACT not in await kinds(et)


async def test_a_first_context_over_the_hard_limit_fits_too_and_leaves_the_rest_as_work_that_is_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_FIRST_CONTEXT_SECONDS", 0.0)
    async with everthread.open(url, compaction=COUNTED, worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, LONG)
        await check(conv, await conv.context(budget=tight(700)))
        (job,) = [job for job in (await et.jobs()).jobs if job.kind == COMPACT]
        assert job.priority == everthread.Priority.WAITED_FOR


async def test_a_first_context_asks_no_model_the_background_does(url: str) -> None:
    model = Asked()
    async with everthread.open(url, compaction=COUNTED, summariser=model, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await tell(conv, LONG)
        await check(conv, await conv.context())
        await check(conv, await conv.context(budget=tight(700)))
        assert (model.times, await live(conv)) == (0, [])
        assert COMPACT in await kinds(et)
        et_of_worker = (
            everthread.open(url, compaction=COUNTED, summariser=model, worker=PACE) if "memory" not in url else None
        )
    if et_of_worker is not None:
        async with et_of_worker as again:
            await settled(again)
            assert {one.model for one in await live(await again.conversations.get("c"))} >= {"asked"}


async def test_what_words_recall_is_in_a_first_context(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_FIRST_CONTEXT_SECONDS", 0.0)
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([says("The key of the boathouse is under the blue pot."), says("Noted.")])
        await tell(conv, LONG)
        context = await conv.context(query="Where is the key of the boathouse?")
        assert "under the blue pot" in text_of(context)


async def test_a_context_of_a_short_conversation_leaves_nothing_to_do(working: Everthread) -> None:
    conv = await working.conversations.create()
    await tell(conv, 3)
    await conv.context(query="order")
    assert await kinds(working) == []


async def test_a_conversation_in_use_is_summarised_before_its_window_is_full(working: Everthread) -> None:
    conv = await working.conversations.create()
    for number in range(30):
        await tell(conv, 1, first=number)
        context = await conv.context(compaction={"max_message_history": 40})
        await check(conv, context)
        assert context.omitted == ()
        await settled(working)
    assert len(await live(conv)) > 1


# -- memories ------------------------------------------------------------------------------------------------------


async def test_what_a_user_told_is_remembered_once_a_context_is_asked_for(working: Everthread) -> None:
    conv = await working.conversations.create()
    await conv.append([says("My name is Max.")])
    await tell(conv, 20)
    await conv.context()
    await settled(working)
    assert [one.text for one in (await working.memories.list("local")).items] == ["The user's name is Max."]
    await conv.append([says("I live in Rome.")])
    await conv.context()
    await settled(working)
    assert len((await working.memories.list("local")).items) == 2


async def test_what_was_read_for_memories_is_not_read_again_with_every_context(url: str) -> None:
    async with everthread.open(url, worker=PACE) as et:
        conv = await et.conversations.create()
        await conv.append([says("My name is Max.")])
        await conv.context()
        await settled(et)
        await et.stop_worker()
        await conv.context()
        assert await kinds(et) == []
        await conv.append([says("I live in Rome.")])
        await conv.context(to_keep=True)
        assert await kinds(et) == []
        await conv.keep_context(await conv.context(to_keep=True))
        assert await kinds(et) == [REMEMBER]


async def test_what_a_user_tells_in_a_turn_is_remembered(working: Everthread) -> None:
    conv = await working.conversations.create()
    agent = everthread.agent(working, tools=None, builtin=())
    async for _ in run_turn(conv, "Call me Max. What is new?", agent=agent, model=ScriptedModel(["Nothing."])):
        pass
    await settled(working)
    assert [one.text for one in (await working.memories.list("local")).items] == ["The user wants to be called Max."]


# -- meaning -------------------------------------------------------------------------------------------------------


async def test_the_first_who_asks_for_meaning_has_the_vectors_made(working: Everthread) -> None:
    conv, other = await working.conversations.create(), await working.conversations.create()
    for one in (conv, other):
        await tell(one, 3)
    hits = await conv.search("a cat", meaning=True)
    assert hits.is_behind
    await settled(working)
    assert await vectors(working, conv) > 0
    assert await vectors(working, other) == 0
    assert not (await conv.search("a cat", meaning=True)).is_behind


async def test_who_asks_for_meaning_in_everything_has_the_vectors_of_all_an_owner_has_made(working: Everthread) -> None:
    talks = [await working.conversations.create() for _ in range(3)]
    theirs = await working.conversations.create(owner="ann")
    for one in (*talks, theirs):
        await tell(one, 3)
    await working.search("a cat", meaning=True)
    await settled(working)
    assert all([await vectors(working, one) for one in talks])
    assert await vectors(working, theirs) == 0
    await working.search("another cat", meaning=True)
    assert EMBED not in await kinds(working), "they are looked through once a minute, not with every question"


# -- ahead, if somebody wants it -----------------------------------------------------------------------------------


async def test_one_conversation_can_be_compacted_ahead(url: str) -> None:
    async with everthread.open(url, worker=PACE) as et:
        conv, other = await et.conversations.create(), await et.conversations.create()
        await et.compaction_config.set({"compact_ahead": True}, conv)
        for one in (conv, other):
            await tell(one, LONG // 4)
            await tell(one, LONG // 4, first=LONG)
        await settled(et)
        assert (await live(conv))[-1].last_seq > 2 * LONG - MARK
        assert await live(other) == []
        await et.compaction_config.set({"compact_ahead": False}, conv)
        count = len(await live(conv))
        await tell(conv, LONG // 2, first=2 * LONG)
        await settled(et)
        assert len(await live(conv)) == count


async def test_other_settings_of_a_conversation_do_not_begin_it(url: str) -> None:
    async with everthread.open(url, worker=PACE) as et:
        conv = await et.conversations.create()
        await et.compaction_config.set({"threshold": 0.5}, conv)
        await tell(conv, LONG // 2)
        await settled(et)
        assert await live(conv) == []


async def test_ahead_is_not_set_in_the_database_for_all(et: Everthread) -> None:
    with pytest.raises(Invalid, match="can only be set per conversation here") as refused:
        await et.compaction_config.set({"compact_ahead": True})
    assert refused.value.field == "compact_ahead"


async def test_a_worker_that_is_not_set_so_makes_what_others_wanted_ahead(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False, compaction=CompactionPolicy(compact_ahead=True)) as et:
        await tell(await et.conversations.create(id="c"), LONG // 4)
        assert await kinds(et) == [COMPACT]
    async with everthread.open(durable_url, worker=PACE) as et:
        conv = await et.conversations.get("c")

        async def is_made() -> bool:
            return bool(await live(conv))

        await until(is_made)
