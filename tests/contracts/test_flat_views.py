"""A view reads the summaries it shows and no others, however many there are, and on any branch the right ones."""

from __future__ import annotations

from typing import Any

import pytest

import everthread
from everthread import Compaction, Conversation, Everthread, conversation
from everthread.adapters.stores.postgres import compactions as on_postgres
from everthread.adapters.stores.sqlite import compactions as on_sqlite
from everthread.compaction.summary_chain import summary_chain
from everthread.core.ports import MOST_PINNED
from everthread.core.recent import forget_texts
from tests.contracts.message_helpers import says
from tests.contracts.views import check, tell, text_of, tight

NARROW = {"fan_in": 2, "leaf_max_messages": 8}


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every row of a compaction that a database gave and we took up."""
    read: list[Any] = []
    for module in (on_sqlite, on_postgres):
        plain = module.compaction_from_row

        def counting(row: Any, plain: Any = plain) -> Compaction:
            read.append(row)
            made: Compaction = plain(row)
            return made

        monkeypatch.setattr(module, "compaction_from_row", counting)
    return read


async def known(conv: Conversation) -> list[Compaction]:
    return [one async for one in conv.compactions()]


async def test_a_view_reads_only_the_summaries_it_shows(url: str, conv: Conversation, rows_read: list[Any]) -> None:
    await tell(conv, 50)
    await conv.compact(compaction=NARROW)
    everything = len(await known(conv))
    forget_texts()
    rows_read.clear()
    context = await conv.context(compaction={"summaries_share": 0.05}, budget=tight(20_000))
    told = [id for part in context.parts for id in part.summary_ids]
    assert 0 < len(told) * 3 < everything
    assert len(rows_read) == (0 if url.startswith("memory") else len(told))


async def test_a_branch_that_left_inside_a_condensed_stretch_is_told_by_its_parts(conv: Conversation) -> None:
    await tell(conv, 40)
    await conv.compact(compaction=NARROW)
    inputs = await conv._store.views.inputs(conv._ref, None)
    top = inputs.summaries[0]
    assert top.level > 2
    branch = await conv.fork(top.last_seq // 2)
    await tell(conv, 3, first=50, branch=branch.id)
    of_branch = await conv._store.views.inputs(conv._ref, branch.id)
    assert of_branch.summaries == summary_chain(await known(conv), of_branch.segments)
    assert 0 < of_branch.summaries[-1].last_seq <= top.last_seq // 2
    assert top not in of_branch.summaries
    await check(conv, await conv.context(branch=branch.id), branch=branch.id)


async def test_all_compactions_come_in_pages_and_in_their_order(
    conv: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell(conv, 40)
    await conv.compact(compaction=NARROW)
    at_once = await known(conv)
    monkeypatch.setattr(conversation, "_PAGE", 3)
    assert await known(conv) == at_once
    assert [one.created_at for one in at_once] == sorted(one.created_at for one in at_once)
    assert len(at_once) > 9


async def test_the_newest_pinned_messages_are_taken_up_and_a_view_stays_bounded(conv: Conversation) -> None:
    pinned = [receipt.id for receipt in await conv.append([says(f"remember {n}") for n in range(MOST_PINNED + 2)])]
    for id in pinned:
        await conv.pin(id)
    await tell(conv, 20)
    inputs = await conv._store.views.inputs(conv._ref, None)
    assert [place.id for place, _ in inputs.pinned] == pinned[2:]


# --- what changes on one branch is no matter of another ---


async def two_branches(conv: Conversation) -> tuple[str, list[str], list[str]]:
    """Two branches after four shared messages, written in turns, so that the seqs of each lie inside the other's."""
    shared = await tell(conv, 1)
    branch = (await conv.fork(4)).id
    early = await tell(conv, 5, first=1)
    other = await tell(conv, 10, first=20, branch=branch)
    await tell(conv, 10, first=40)
    assert early
    return branch, shared, other


async def compacted(conv: Conversation, branch: str | None = None) -> Compaction:
    made = (await conv.compact(branch=branch)).compaction
    assert made is not None
    return made


async def is_live(conv: Conversation, one: Compaction) -> bool:
    return one.id in [other.id for other in await known(conv) if other.is_live]


async def test_a_revision_on_one_branch_leaves_the_summaries_of_another(conv: Conversation) -> None:
    branch, _, other = await two_branches(conv)
    mine, theirs = await compacted(conv), await compacted(conv, branch)
    inside = await conv.message(other[1])
    assert mine.first_seq < inside.seq < mine.last_seq
    await conv.append([says("said otherwise", id=other[1])])
    assert await is_live(conv, mine)
    assert not await is_live(conv, theirs)
    assert mine.summary in text_of(await conv.context())


@pytest.mark.parametrize("how", ["delete", "erase"])
async def test_deleting_and_erasing_on_one_branch_leave_the_summaries_of_another(
    et: Everthread, conv: Conversation, how: str
) -> None:
    branch, _, other = await two_branches(conv)
    mine, theirs = await compacted(conv), await compacted(conv, branch)
    if how == "delete":
        await conv.delete_message(other[1])
    else:
        report = await et.erase(conversation=conv.id, message=other[1])
        assert report.reached["compactions"] == 1
    assert await is_live(conv, mine)
    assert not await is_live(conv, theirs)


async def test_a_change_in_what_branches_share_reaches_the_summaries_of_both(conv: Conversation) -> None:
    branch, shared, _ = await two_branches(conv)
    mine, theirs = await compacted(conv), await compacted(conv, branch)
    await conv.append([says("said otherwise", id=shared[0])])
    assert not await is_live(conv, mine)
    assert not await is_live(conv, theirs)


async def test_an_undone_stretch_of_one_branch_is_not_asked_back_on_another(conv: Conversation) -> None:
    branch, _, _ = await two_branches(conv)
    await conv.undo_compaction((await compacted(conv, branch)).id)
    assert (await conv._store.views.inputs(conv._ref, branch)).was_undone
    assert not (await conv._store.views.inputs(conv._ref, None)).was_undone


async def test_a_summary_survives_a_reopening_and_is_found_by_its_id(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await tell(conv, 12)
        made = await compacted(conv)
    async with everthread.open(durable_url, worker=False) as et:
        conv = await et.conversations.get("c")
        assert (await conv.compaction_diff(made.id)).compaction == made
