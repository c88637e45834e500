"""Memories: what is known beyond the messages, by owner and scope, with its past, and gone with what it is from."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import everthread
from everthread import (
    Conflict,
    Everthread,
    Held,
    Invalid,
    Memories,
    MemoryKind,
    MemoryScope,
    MemoryState,
    ModelError,
    NotFound,
)
from everthread.core.nouns import Ref
from everthread.recall.memories import memories_for_context
from everthread.testing import FakeEmbedder
from tests.contracts.message_helpers import says
from tests.contracts.test_erase import everything_kept, traces

SECRET = "xylophagous"


async def texts(et: Everthread, owner: str = "ann", **query: Any) -> list[str]:
    return [memory.text for memory in (await et.memories.list(owner, **query)).items]


async def found(et: Everthread, words: str, owner: str = "ann", **query: Any) -> list[str]:
    return [hit.memory.text for hit in await et.memories.search(owner, words, **query)]


# -- adding --------------------------------------------------------------------------------------------------------


async def test_a_memory_says_what_it_is_and_where_it_is_from(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    (receipt,) = await conv.append([says("I'm allergic to nuts")])
    made = await et.memories.add(
        "ann", "is allergic to nuts", kind="fact", conversation=conv.id, seq=receipt.seq, confidence=0.9
    )
    assert (made.owner, made.text, made.kind, made.scope) == ("ann", "is allergic to nuts", "fact", "user")
    assert made.source == (conv.id, receipt.seq)
    assert (made.confidence, made.is_pinned, made.state) == (0.9, False, MemoryState.LIVE)
    assert made.tokens > 0
    assert await et.memories.get("ann", made.id) == made
    assert (await et.memories.list("ann")).items == [made]


async def test_the_same_text_again_is_nothing_new(et: Everthread) -> None:
    first = await et.memories.add("ann", "likes tea")
    assert await et.memories.add("ann", " Likes  tea. ") == first
    assert await et.memories.add("ann", "likes tea", id=first.id) == first
    assert await texts(et) == ["likes tea"]
    with pytest.raises(Conflict):
        await et.memories.add("ann", "likes coffee", id=first.id)


async def test_who_the_user_is_and_how_to_serve_them_is_pinned_unless_said_otherwise(et: Everthread) -> None:
    for kind in MemoryKind:
        await et.memories.add("ann", f"a {kind}", kind=kind)
        await et.memories.add("ann", f"another {kind}", kind=kind, pinned=kind == "fact")
    assert await texts(et, pinned=True) == ["a instruction", "a profile", "another fact"]


# -- superseding ---------------------------------------------------------------------------------------------------


async def test_a_newer_one_about_the_same_subject_takes_the_place_and_the_older_stays_readable(et: Everthread) -> None:
    old = await et.memories.add("ann", "lives in Paris", subject="home")
    other = await et.memories.add("ann", "is called Ann", subject="name")
    new = await et.memories.add("ann", "lives in Berlin", subject=" Home ")
    assert new.supersedes == old.id
    assert await texts(et) == ["lives in Berlin", "is called Ann"]
    assert await found(et, "lives") == ["lives in Berlin"]
    past = await et.memories.get("ann", old.id)
    assert (past.state, past.superseded_by, past.past_at is not None) == (MemoryState.PAST, new.id, True)
    assert await texts(et, include_past=True) == ["lives in Berlin", "is called Ann", "lives in Paris"]
    newest = await et.memories.update("ann", new.id, text="lives in Rome")
    for id in (old.id, new.id, newest.id):
        told = [memory.text for memory in await et.memories.history("ann", id)]
        assert told == ["lives in Paris", "lives in Berlin", "lives in Rome"]
    assert [memory.text for memory in await et.memories.history("ann", other.id)] == ["is called Ann"]


async def test_one_may_be_superseded_by_name_but_only_while_it_lives(et: Everthread) -> None:
    old = await et.memories.add("ann", "drinks coffee")
    new = await et.memories.add("ann", "drinks tea", supersedes=old.id)
    assert (await et.memories.get("ann", old.id)).superseded_by == new.id
    with pytest.raises(Conflict, match=new.id):
        await et.memories.add("ann", "drinks water", supersedes=old.id)
    with pytest.raises(NotFound):
        await et.memories.add("ann", "drinks water", supersedes="unknown")
    assert await texts(et) == ["drinks tea"]


async def test_an_update_keeps_the_source_so_that_an_erase_reaches_it(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    await conv.append([says("call me Max", id="m")])
    made = await et.memories.add("ann", "is called Max", conversation=conv.id, seq=1, kind="profile")
    newer = await et.memories.update("ann", made.id, text="is called Maximilian")
    assert (newer.source, newer.kind, newer.is_pinned) == ((conv.id, 1), "profile", True)
    await et.erase(owner="ann", conversation=conv.id, message="m")
    assert await texts(et, include_past=True) == []


async def test_what_is_no_text_is_changed_in_place(et: Everthread) -> None:
    made = await et.memories.add("ann", "likes tea", kind="preference")
    changed = await et.memories.update("ann", made.id, pinned=True, confidence=0.5, kind="fact")
    assert (changed.id, changed.is_pinned, changed.confidence, changed.kind) == (made.id, True, 0.5, "fact")
    assert not (await et.memories.update("ann", made.id, pinned=False)).is_pinned
    assert len(await texts(et, include_past=True)) == 1


async def test_of_many_at_once_about_one_subject_one_lives(et: Everthread) -> None:
    await asyncio.gather(*(et.memories.add("ann", f"lives at number {n}", subject="home") for n in range(8)))
    assert len(await texts(et)) == 1
    (newest,) = (await et.memories.list("ann")).items
    assert len(await et.memories.history("ann", newest.id)) == 8


# -- forgetting ----------------------------------------------------------------------------------------------------


async def test_what_is_forgotten_is_found_no_more_until_it_is_restored(et: Everthread) -> None:
    made = await et.memories.add("ann", "likes tea", pinned=True)
    for _ in range(2):
        assert (await et.memories.forget("ann", made.id)).state is MemoryState.FORGOTTEN
        assert await texts(et) == []
        assert await texts(et, pinned=True) == []
        assert await found(et, "tea") == []
    assert await texts(et, include_past=True) == ["likes tea"]
    for _ in range(2):
        assert (await et.memories.restore("ann", made.id)).is_live
        assert await found(et, "tea") == ["likes tea"]


async def test_what_is_past_or_forgotten_is_not_updated(et: Everthread) -> None:
    made = await et.memories.add("ann", "likes tea")
    await et.memories.forget("ann", made.id)
    with pytest.raises(Conflict):
        await et.memories.update("ann", made.id, text="likes coffee")


# -- scopes --------------------------------------------------------------------------------------------------------


async def test_a_conversation_sees_the_users_and_its_own(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    task = await et.conversations.create(owner="ann", parent_id=conv.id)
    await et.memories.add("ann", "plan of the user")
    await et.memories.add("ann", "plan of the talk", scope="conversation", conversation=conv.id)
    made = await et.memories.add("ann", "plan of the task", scope=MemoryScope.TASK, conversation=task.id)
    assert (made.scope, made.conversation_id) == (MemoryScope.TASK, task.id)
    for one, other in ((conv, "plan of the talk"), (task, "plan of the task")):
        assert await texts(et, conversation=one.id) == [other, "plan of the user"]
        assert sorted(await found(et, "plan", conversation=one.id)) == sorted([other, "plan of the user"])
    assert len(await texts(et)) == len(await found(et, "plan")) == 3


async def test_a_subject_counts_within_its_scope(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    await et.memories.add("ann", "speaks English", subject="language")
    await et.memories.add("ann", "speaks French here", subject="language", scope="conversation", conversation=conv.id)
    assert len(await texts(et)) == 2


async def test_a_task_is_the_run_of_a_subagent(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    with pytest.raises(Invalid, match="scope"):
        await et.memories.add("ann", "a plan", scope="task", conversation=conv.id)
    with pytest.raises(Invalid, match="conversation"):
        await et.memories.add("ann", "a plan", scope="task")


async def test_what_is_off_the_record_is_not_remembered(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann", off_record=True)
    await conv.append([says("call me Max")])
    for scope in ("user", "conversation"):
        with pytest.raises(Conflict, match="off the record"):
            await et.memories.add("ann", "is called Max", scope=scope, conversation=conv.id, seq=1)
    assert await texts(et, include_past=True) == []


# -- searching and paging ------------------------------------------------------------------------------------------


async def test_memories_are_found_by_words_of_any_script(et: Everthread) -> None:
    said = ("is allergic to peanuts", "我喜欢喝乌龙茶", "works at Müller GmbH", "Любит чай", "плюс emoji 🥜 and C++")
    for text in said:
        await et.memories.add("ann", text)
    assert await found(et, "what is she allergic to?") == [said[0]]
    assert await found(et, "乌龙") == [said[1]]
    assert await found(et, "茶") == [said[1]]
    assert await found(et, "müller") == [said[2]]
    assert await found(et, "чай") == [said[3]]
    assert await found(et, "peanuts 乌龙茶 gmbh", limit=2) != []


@pytest.mark.parametrize(
    "query",
    ["", "   ", '"', "NEAR(a b) OR *", "'; DROP TABLE notes; --", "a" * 100_000, "\x00", "🥜", "茶 OR tea", "the of"],
)
async def test_any_text_is_a_question(et: Everthread, query: str) -> None:
    await et.memories.add("ann", "drinks tea")
    assert isinstance(await et.memories.search("ann", query), list)


async def test_pages_follow_each_other_newest_first(et: Everthread) -> None:
    for number in range(7):
        await et.memories.add("ann", f"number {number}")
    cursor, told = None, []
    while True:
        page = await et.memories.list("ann", limit=3, cursor=cursor)
        told += [memory.text for memory in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert told == [f"number {number}" for number in reversed(range(7))]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": "x" * 4_001}, "text"),
        ({"text": 7}, "text"),
        ({"text": "a\x00b"}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"kind": "wish"}, "kind"),
        ({"scope": "world"}, "scope"),
        ({"confidence": 2}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"pinned": "yes"}, "pinned"),
        ({"subject": ""}, "subject"),
        ({"subject": "x" * 129}, "subject"),
        ({"seq": 1}, "conversation"),
        ({"id": ""}, "id"),
        ({"owner": ""}, "owner"),
    ],
)
async def test_what_cannot_be_remembered_is_refused_by_its_field(
    et: Everthread, wrong: dict[str, Any], field: str
) -> None:
    given = {"owner": "ann", "text": "drinks tea", **wrong}
    with pytest.raises(Invalid) as problem:
        await et.memories.add(given.pop("owner"), given.pop("text"), **given)
    assert problem.value.field == field
    assert await texts(et, include_past=True) == []


async def test_a_source_must_be_there(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    with pytest.raises(NotFound):
        await et.memories.add("ann", "drinks tea", conversation=conv.id, seq=1)
    with pytest.raises(NotFound):
        await et.memories.add("ann", "drinks tea", conversation="unknown")


# -- by meaning ----------------------------------------------------------------------------------------------------


async def test_what_is_near_in_meaning_is_found_and_superseded_with_its_vector(et: Everthread) -> None:
    embedder = FakeEmbedder(alike={"movies": "films"})
    memories = Memories(et.store, embedder)
    made = await memories.add("ann", "watches old films")
    assert await found(et, "movies") == []
    assert [hit.memory.id for hit in await memories.search("ann", "movies")] == [made.id]
    await memories.update("ann", made.id, pinned=True)
    await memories.forget("ann", made.id)
    assert await memories.search("ann", "movies") == []
    await memories.restore("ann", made.id)
    newer = await memories.update("ann", made.id, text="watches new films")
    assert [hit.memory.id for hit in await memories.search("ann", "movies")] == [newer.id]
    conv = await et.conversations.create(owner="ann")
    shown = await memories_for_context(et.store, Ref("ann", conv.id), conv.created_at, "movies", embedder)
    assert [memory.id for memory in shown.hits] == [newer.id]


async def test_an_embedder_that_fails_leaves_the_words(et: Everthread) -> None:
    embedder = FakeEmbedder()
    embedder.fails = ModelError("away")
    memories = Memories(et.store, embedder)
    await memories.add("ann", "watches old films")
    assert [hit.memory.text for hit in await memories.search("ann", "films")] == ["watches old films"]


async def test_a_model_is_not_asked_where_nothing_is_remembered(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    embedder = FakeEmbedder()
    await memories_for_context(et.store, Ref("ann", conv.id), conv.created_at, "movies", embedder)
    assert embedder.asked == []


# -- owners and erasing --------------------------------------------------------------------------------------------


async def test_i20_another_owners_memories_look_unknown(et: Everthread) -> None:
    hers = await et.memories.add("ann", "drinks tea", pinned=True)
    conv = await et.conversations.create(owner="ann")
    assert await texts(et, owner="bob", include_past=True) == []
    assert await found(et, "tea", owner="bob") == []
    for call in (
        lambda: et.memories.get("bob", hers.id),
        lambda: et.memories.history("bob", hers.id),
        lambda: et.memories.update("bob", hers.id, text="drinks beer"),
        lambda: et.memories.forget("bob", hers.id),
        lambda: et.memories.restore("bob", hers.id),
        lambda: et.memories.add("bob", "drinks beer", supersedes=hers.id),
        lambda: et.memories.add("bob", "drinks beer", conversation=conv.id),
        lambda: et.memories.list("bob", conversation=conv.id),
        lambda: et.memories.search("bob", "tea", conversation=conv.id),
    ):
        with pytest.raises(NotFound):
            await call()
    await et.memories.add("ann", "drinks water")
    cursor = (await et.memories.list("ann", limit=1)).next_cursor
    with pytest.raises(Invalid):
        await et.memories.list("bob", cursor=cursor)
    assert await et.memories.get("ann", hers.id) == hers
    his = await et.memories.add("bob", "drinks beer", id=hers.id)
    assert (await et.memories.get("ann", his.id)).text == "drinks tea"


@pytest.mark.parametrize("reach", ["message", "conversation", "owner"])
async def test_i22_after_erase_nothing_holds_a_memory_of_it(url: str, reach: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(owner="ann", id="goes")
        await conv.append([says("something", id="m"), says("else", id="stays")])
        first = await et.memories.add("ann", f"{SECRET} one", conversation="goes", seq=1, subject="wood")
        await et.memories.add("ann", f"{SECRET} two", conversation="goes", seq=1, subject="wood")
        await et.memories.add("ann", "quixotry", conversation="goes", seq=1, scope="conversation")
        await et.memories.forget("ann", (await et.memories.add("ann", "rigmarole", conversation="goes", seq=1)).id)
        await et.memories.add("ann", "evergreen", conversation="goes", seq=2)
        await et.memories.add("bob", "evergreen")
        words = (SECRET, "quixotry", "rigmarole")
        assert traces(await everything_kept(et, url), *words) == list(words)
        report = await et.erase(
            owner="ann",
            conversation=None if reach == "owner" else "goes",
            message="m" if reach == "message" else None,
        )
        assert report.reached["notes"] >= 4
        assert traces(await everything_kept(et, url), *words) == []
        assert await texts(et) == (["evergreen"] if reach == "message" else [])
        assert await texts(et, owner="bob") == ["evergreen"]
        assert await found(et, SECRET) == []
        with pytest.raises(NotFound):
            await et.memories.get("ann", first.id)


async def test_i22_an_erased_memory_leaves_no_trace_and_the_others_stay(url: str) -> None:
    async with everthread.open(url, embedder=FakeEmbedder(), worker=False) as et:
        conv = await et.conversations.create(owner="ann", id="c")
        await conv.append([says("something", id="m")])
        past = await et.memories.add("ann", f"{SECRET} one", subject="wood")
        other = await et.memories.add("ann", "evergreen one", subject="forest")
        made = await et.memories.add("ann", f"{SECRET} two", subject="wood", pinned=True)
        await et.memories.add("bob", "evergreen", id=made.id)
        shown = await conv.context(query=SECRET)
        assert made.id in [id for part in shown.parts for id in part.memory_ids]
        assert traces(await everything_kept(et, url), SECRET) == [SECRET]
        report = await et.memories.erase("ann", made.id)
        assert (report.owner, report.memory_id, dict(report.reached)) == ("ann", made.id, {"notes": 2})
        assert traces(await everything_kept(et, url), SECRET) == []
        assert await found(et, SECRET) == []
        with pytest.raises(NotFound):
            await et.memories.get("ann", past.id)
        assert [one.text for one in await et.memories.history("ann", other.id)] == ["evergreen one"]
        assert await texts(et, owner="bob") == ["evergreen"]
        assert [message.id async for message in conv.messages()] == ["m"]
        with pytest.raises(NotFound):
            await et.memories.erase("ann", made.id)


@pytest.mark.parametrize("named", range(4))
async def test_i22_an_erase_of_any_version_reaches_them_all(url: str, named: int) -> None:
    async with everthread.open(url, worker=False) as et:
        ids = [(await et.memories.add("ann", f"{SECRET} 0")).id]
        for number in range(1, 4):
            ids.append((await et.memories.update("ann", ids[-1], text=f"{SECRET} {number}")).id)
        await et.memories.add("ann", "likes tea")
        report = await et.memories.erase("ann", ids[named])
        assert (report.memory_id, dict(report.reached)) == (ids[named], {"notes": 4})
        assert traces(await everything_kept(et, url), SECRET) == []
        assert await texts(et, include_past=True) == ["likes tea"]


async def test_a_hold_on_the_source_of_an_older_version_keeps_them_all(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann", id="c")
    await conv.append(says("something"))
    old = await conv.remember("lives in Paris", subject="home", seq=1)
    new = await et.memories.add("ann", "lives in Berlin", supersedes=old.id)
    await et.holds.add("ann", "c", reason="case 12", by="legal")
    with pytest.raises(Held):
        await et.memories.erase("ann", new.id)
    assert len(await et.memories.history("ann", new.id)) == 2


async def test_a_memory_can_be_erased_by_its_owner_only(et: Everthread) -> None:
    made = await et.memories.add("ann", "likes tea")
    with pytest.raises(NotFound):
        await et.memories.erase("bob", made.id)
    with pytest.raises(NotFound):
        await et.memories.erase("ann", "nowhere")
    assert await texts(et) == ["likes tea"]
    await et.memories.forget("ann", made.id)
    await et.memories.erase("ann", made.id)
    assert await texts(et, include_past=True) == []


async def test_an_erased_message_is_no_source(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    await conv.append([says("call me Max", id="m")])
    await et.erase(owner="ann", conversation=conv.id, message="m")
    with pytest.raises(NotFound):
        await et.memories.add("ann", "is called Max", conversation=conv.id, seq=1)


async def test_memories_outlive_the_process(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        made = await et.memories.add("ann", "drinks tea", subject="drink")
    async with everthread.open(durable_url, worker=False) as et:
        assert await et.memories.get("ann", made.id) == made
        assert await found(et, "tea") == ["drinks tea"]


# -- habits --------------------------------------------------------------------------------------------------------


def calls(*names: str, arguments: str = "{}") -> dict[str, Any]:
    made = [
        {"id": str(at), "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, name in enumerate(names)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made}


async def habits(et: Everthread, owner: str = "ann") -> list[tuple[str, str, int, int]]:
    return [(one.kind, one.name, one.uses, one.conversations) for one in await et.memories.habits(owner)]


async def test_the_tools_and_skills_a_user_uses_are_counted(et: Everthread) -> None:
    one, other = [await et.conversations.create(owner="ann") for _ in range(2)]
    await one.append([calls("search", "search", "read_file"), says("what about tool_calls?")])
    await other.append([calls("search"), calls("use_skill", arguments='{"name": "invoices"}')])
    assert await habits(et) == [("tool", "search", 3, 2), ("skill", "invoices", 1, 1), ("tool", "read_file", 1, 1)]
    assert await habits(et, "bob") == []


async def test_a_retry_counts_once_and_nothing_off_the_record(et: Everthread) -> None:
    conv = await et.conversations.create(owner="ann")
    for _ in range(2):
        await conv.append([{**calls("search"), "id": "m"}])
    secret = await et.conversations.create(owner="ann", off_record=True)
    await secret.append([calls("search")])
    assert await habits(et) == [("tool", "search", 1, 1)]


async def test_i22_habits_go_with_their_conversation(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        talk = await et.conversations.create(owner="ann", id="goes")
        await talk.append([calls(SECRET)])
        assert traces(await everything_kept(et, url), SECRET) == [SECRET]
        await et.erase(owner="ann", conversation="goes")
        assert await habits(et) == []
        assert traces(await everything_kept(et, url), SECRET) == []
