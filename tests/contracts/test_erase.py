"""Erase: the one way a text leaves. Nothing gives it back, everything else stays, and no late write revives it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread import Conversation, Erased, Everthread, NotFound
from everthread.adapters.stores.in_memory import InMemoryStore
from everthread.adapters.stores.sqlite import erase as sqlite_erase
from everthread.adapters.stores.sqlite.files import connect
from everthread.recall.ranking import recent_candidates
from tests.contracts.message_helpers import appended, entry_count, history, says, seqs, texts
from tests.forensics import in_memory, readable

asyncpg = pytest.importorskip("asyncpg")

SECRET = "xylophagous"
"""A word that nothing else shares a beginning with, so that an index cannot hide it behind a common prefix."""


# -- what an erase leaves ----------------------------------------------------------------------------------


async def test_an_erased_message_is_gone_and_the_others_stay(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(letter, id=letter) for letter in "abc"])
    proof = await et.erase(owner="local", conversation=conv.id, message="b")
    assert (proof.owner, proof.conversation_id, proof.message_id) == ("local", conv.id, "b")
    assert (proof.conversations, proof.entries) == (0, 1)
    assert proof.reached["entries"] == 1
    assert proof.cannot_reach
    assert await texts(conv) == ["a", "c"]
    assert await texts(conv, revisions=True, include_deleted=True) == ["a", "c"]
    assert [message.text for message in await conv.tail(5, include_deleted=True)] == ["a", "c"]
    with pytest.raises(NotFound):
        await conv.message("b")
    report = await et.verify()
    assert report.ok
    assert (report.entries, report.messages, report.erased) == (3, 2, 1)


async def test_what_was_recalled_of_an_erased_message_is_forgotten(et: Everthread, conv: Conversation) -> None:
    recent_candidates.clear()
    await conv.append([says(f"the {SECRET} beetle", id="a"), says("a beetle", id="b")])
    for question in (SECRET, "beetle"):
        assert await conv.recall(question)
        assert len(recent_candidates) == 2
    await et.erase(owner="local", conversation=conv.id, message="a")
    assert len(recent_candidates) == 0
    assert [hit.ids for hit in await conv.recall("beetle")] == [("b",)]


REVERSED = "laregafobmulp"
"""Read backwards, a word that this module does not hold itself."""


async def test_no_cache_of_this_process_keeps_a_word_of_what_was_erased(et: Everthread, conv: Conversation) -> None:
    for number in range(12):
        told = f"I decided that {REVERSED[::-1]} {number} costs 4{number} euros at Café {REVERSED[::-1].title()}. " * 5
        await conv.append([says(told, id=f"m{number}"), {"role": "assistant", "content": "So be it. " * 20}])
    await et.search(REVERSED[::-1])
    await conv.recall(f"What about {REVERSED[::-1]}, and 411 euros?")
    await conv.compact()
    await conv.context(budget=everthread.Budget(window=4_000))
    del told
    assert in_memory(REVERSED[::-1])
    await et.erase(conversation=conv.id)
    assert in_memory(REVERSED[::-1]) == []


async def test_every_revision_goes_with_its_message(et: Everthread, conv: Conversation) -> None:
    for text in ("v1", "v2", "v3"):
        await conv.append([says(text, id="m")])
    await conv.delete_message("m")
    assert (await et.erase(conversation=conv.id, message="m")).entries == 3
    assert await history(conv, revisions=True, include_deleted=True) == []


async def test_an_edit_is_a_message_of_its_own(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("original", id="m"), says("next")])
    edit = await conv.edit("m", says("sibling"))
    await et.erase(conversation=conv.id, message="m")
    assert await texts(conv) == ["sibling"]
    assert await texts(conv, branch="main") == ["next"]
    await et.erase(conversation=conv.id, message=edit.id)
    assert await texts(conv) == []


async def test_a_summary_can_be_erased(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("in short", id="s", additional_kwargs={"lc_source": "summarization"})])
    await et.erase(conversation=conv.id, message="s")
    with pytest.raises(NotFound):
        await conv.message("s")


async def test_a_branch_goes_on_after_an_erased_leaf(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(letter, id=letter) for letter in "abc"])
    await et.erase(conversation=conv.id, message="c")
    assert await appended(conv, "d", expected_head=3) == [4]
    assert await texts(conv) == ["a", "b", "d"]
    branch = await conv.fork(3)
    assert await texts(conv, branch=branch) == ["a", "b"]
    assert await seqs(conv, branch=3) == [1, 2]


async def test_an_erased_conversation_is_gone(et: Everthread, conv: Conversation) -> None:
    await conv.update(title="private", metadata={"who": "me"})
    await conv.append([says("a", id="a"), says("b", id="b")])
    await conv.pin("a")
    await conv.edit("b", says("B"))
    proof = await et.erase(conversation=conv.id)
    assert (proof.conversations, proof.entries, proof.message_id) == (1, 4, None)
    for call in (
        lambda: et.conversations.get(conv.id),
        lambda: conv.refresh(),
        lambda: texts(conv),
        lambda: conv.tail(1),
        lambda: conv.message("a"),
        lambda: conv.copy(),
        lambda: et.search("a", conversation=conv.id),
    ):
        with pytest.raises(NotFound):
            await call()
    with pytest.raises(NotFound):
        _ = [branch async for branch in conv.branches()]
    assert list((await et.conversations.list(include_deleted=True)).items) == []
    report = await et.verify()
    assert report.ok
    assert (report.conversations, report.entries, report.messages, report.erased) == (1, 4, 0, 4)
    assert await entry_count(et, conv) == 4


async def test_a_conversation_goes_with_what_its_subagents_were_told(et: Everthread, conv: Conversation) -> None:
    child = await et.conversations.create(parent_id=conv.id)
    grandchild = await et.conversations.create(parent_id=child.id)
    other = await et.conversations.create()
    for one in (conv, child, grandchild, other):
        await one.append({"role": "user", "content": "the plan"})
    await child.delete()
    report = await et.erase(conversation=conv.id)
    assert report.conversations == 3
    assert [hit.conversation_id for hit in await et.search("plan")] == [other.id]
    for gone in (child, grandchild):
        with pytest.raises(NotFound):
            await et.conversations.get(gone.id)


async def test_a_conversation_and_its_children_go_in_one_act_and_each_is_noted(et: Everthread) -> None:
    await et.conversations.create(id="parent")
    await et.conversations.create(id="child", parent_id="parent")
    await et.conversations.create(id="grandchild", parent_id="child")
    report = await et.store.maintenance.erase("local", "parent", None)
    assert report.conversations == 3
    assert {id for _, id, _, _ in await et.store.maintenance.erasures()} == {"parent", "child", "grandchild"}


async def test_what_an_interrupted_erase_left_of_a_family_is_erased_at_the_next_opening(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        await et.conversations.create(id="parent")
        child = await et.conversations.create(id="child", parent_id="parent")
        await child.append(says(SECRET))
        other = await et.conversations.create(id="other")
        await other.append(says("stays"))
        await as_erased_alone(durable_url, "parent")
    async with everthread.open(durable_url, worker=False) as et:
        assert [one.id for one in (await et.conversations.list()).items] == ["other"]
        with pytest.raises(Erased):
            await et.conversations.create(id="child")


async def as_erased_alone(url: str, id: str) -> None:
    """What a kill could leave when each conversation of a family was erased by itself."""
    statement = f"UPDATE conversations SET erased_at = 1 WHERE id = '{id}'"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            file.execute(statement)
        return
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


def files_in(folder: Path) -> int:
    return len(list(folder.rglob("a.txt")))


async def test_the_files_of_an_erased_family_are_removed_at_the_next_opening(durable_url: str, tmp_path: Path) -> None:
    async with everthread.open(durable_url, worker=False, workspaces=tmp_path) as et:
        for id, parent in (("parent", None), ("child", "parent"), ("other", None)):
            conv = await et.conversations.create(id=id, parent_id=parent)
            workspace = await et.workspaces.open(conv)
            workspace.write("a.txt", SECRET.encode())
            workspace.close()
        await et.store.maintenance.erase("local", "parent", None)  # killed before it came to the files
        assert files_in(tmp_path) == 3
        assert {ref.id for ref in await et.workspaces.left_by_erasures()} == {"parent", "child"}
    async with everthread.open(durable_url, worker=False, workspaces=tmp_path) as et:
        assert files_in(tmp_path) == 1
        assert await et.workspaces.left_by_erasures() == []


async def test_a_title_that_quotes_an_erased_message_goes_and_another_stays(et: Everthread) -> None:
    quoting = await et.conversations.create(title=f"My {SECRET} beetles")
    await quoting.append(says(f"My {SECRET} beetles eat the floor.", id="m"))
    report = await et.erase(conversation=quoting.id, message="m")
    assert report.reached["titles"] == 1
    assert (await quoting.refresh()).title is None
    other = await et.conversations.create(title="Holiday")
    await other.append(says(f"My {SECRET} beetles eat the floor.", id="m"))
    await et.erase(conversation=other.id, message="m")
    assert (await other.refresh()).title == "Holiday"


async def test_the_report_of_a_message_names_its_quotes_as_out_of_reach(et: Everthread, conv: Conversation) -> None:
    await conv.append(says("a", id="a"))
    report = await et.erase(conversation=conv.id, message="a")
    assert any("quotes of the message" in one for one in report.cannot_reach)


async def test_a_long_conversation_is_erased_whole(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(f"needle {number}", id=str(number)) for number in range(1_203)])
    assert await et.search("needle")
    await conv.append([says(f"needle again {number}", id=str(number)) for number in range(300)])
    proof = await et.erase(conversation=conv.id)
    assert proof.entries == 1_503
    assert not await et.search("needle")
    report = await et.verify()
    assert (report.messages, report.erased) == (0, 1_503)


async def test_an_owner_is_erased_with_every_conversation(et: Everthread) -> None:
    for number in range(3):
        conv = await et.conversations.create(owner="ann", id=str(number))
        await appended(conv, "a", "b")
    await et.erase(owner="ann", conversation="0")
    proof = await et.erase(owner="ann")
    assert (proof.conversations, proof.entries) == (2, 4)
    assert (proof.conversation_id, proof.message_id) == (None, None)
    assert list((await et.conversations.list("ann")).items) == []
    again = await et.erase(owner="ann")
    assert (again.conversations, again.entries) == (0, 0)
    fresh = await et.conversations.create(owner="ann", id="new")
    assert await appended(fresh, "anew") == [1]


async def test_only_what_is_there_can_be_erased(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("a", id="a"), says("b", id="b")], idempotency_key="k")
    await et.erase(conversation=conv.id, message="a")
    for wrong in (
        {"conversation": "unknown"},
        {"conversation": "unknown", "message": "b"},
        {"conversation": conv.id, "message": "unknown"},
        {"conversation": conv.id, "message": "a"},
        {"conversation": conv.id, "message": "b", "owner": "ann"},
    ):
        with pytest.raises(NotFound):
            await et.erase(**wrong)
    assert await texts(conv) == ["b"]
    await et.erase(conversation=conv.id)
    with pytest.raises(NotFound):
        await et.erase(conversation=conv.id)


async def test_an_erase_that_is_refused_changes_nothing(et: Everthread, conv: Conversation) -> None:
    first = await conv.append([says("a")], idempotency_key="k")
    with pytest.raises(NotFound):
        await et.erase(conversation=conv.id, message="unknown")
    assert await conv.append([says("a")], idempotency_key="k") == first
    assert (await et.verify()).erased == 0


# -- late writes -------------------------------------------------------------------------------------------


async def test_i21_a_late_write_to_an_erased_message_is_refused(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("a", id="a"), says("b", id="b")])
    await et.erase(conversation=conv.id, message="b")
    count = await entry_count(et, conv)
    for call in (
        lambda: conv.append([says("b", id="b")]),
        lambda: conv.append([says("other", id="b")]),
        lambda: conv.append([says("new", id="new"), says("b", id="b")]),
        lambda: conv.edit("b", says("B")),
        lambda: conv.edit("a", says("B", id="b")),
        lambda: conv.delete_message("b"),
        lambda: conv.restore_message("b"),
        lambda: conv.pin("b"),
        lambda: conv.unpin("b"),
    ):
        with pytest.raises(everthread.Conflict):
            await call()
    assert await entry_count(et, conv) == count
    assert await texts(conv) == ["a"]


async def test_i21_a_late_write_to_an_erased_conversation_is_refused(et: Everthread, conv: Conversation) -> None:
    await conv.append([says("a", id="a")], idempotency_key="k")
    await et.erase(conversation=conv.id)
    for call in (
        lambda: conv.append([says("a", id="a")]),
        lambda: conv.append([says("late")]),
        lambda: conv.append([says("a", id="a")], idempotency_key="k"),
        lambda: conv.edit("a", says("A")),
        lambda: conv.delete_message("a"),
        lambda: conv.pin("a"),
        lambda: conv.fork(1),
        lambda: conv.fork(0),
        lambda: conv.set_active("main"),
        lambda: et.conversations.create(id=conv.id),
        lambda: et.conversations.ensure(conv.id),
    ):
        with pytest.raises(Erased):
            await call()
    for change in (conv.update(title="late"), conv.delete(), conv.restore()):
        with pytest.raises(NotFound):
            await change
    assert (await et.verify()).messages == 0


async def test_i21_what_was_erased_stays_so_after_reopening(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        for id in ("whole", "part"):
            conv = await et.conversations.create(id=id)
            await conv.append([says("a", id="a"), says("b", id="b")])
        await et.erase(conversation="whole")
        await et.erase(conversation="part", message="a")
    async with everthread.open(durable_url) as et:
        part = await et.conversations.get("part")
        with pytest.raises(Erased):
            await part.append([says("a", id="a")])
        with pytest.raises(Erased):
            await et.conversations.create(id="whole")
        assert await texts(part) == ["b"]
        assert (await et.verify()).ok


# -- no byte of it is left ---------------------------------------------------------------------------------


async def everything_kept(et: Everthread, url: str) -> bytes:
    """Whatever the database holds now, as bytes: the files of SQLite, the rows of PostgreSQL, our own objects."""
    if isinstance(et.store, InMemoryStore):
        return b"\n".join(leaves(vars(et.store)))
    if url.startswith("sqlite"):
        return bytes_of_files(Path(url.removeprefix("sqlite:///")))
    return await rows_of_tables(url)


def leaves(value: Any) -> Iterator[bytes]:
    """Every string and every bytes inside an object, however deep."""
    if isinstance(value, str):
        yield value.encode("utf-8", "replace")
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, Mapping):
        yield from leaves(list(value.keys()))
        yield from leaves(list(value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from leaves(inner)
    elif hasattr(value, "__slots__"):
        yield from leaves([getattr(value, name) for name in value.__slots__])
    elif type(value).__module__.startswith("everthread.adapters."):  # a port of the memory store
        yield from leaves(vars(value))


def bytes_of_files(file: Path) -> bytes:
    return b"".join(readable(path.read_bytes()) for path in sorted(file.parent.glob(f"{file.name}*")))


async def rows_of_tables(url: str) -> bytes:
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = [await connection.fetch(f'SELECT * FROM "{name}"') for (name,) in names]
    finally:
        await connection.close()
    return b"\n".join(leaves([[tuple(row) for row in rows] for rows in tables]))


def traces(kept: bytes, *words: str) -> list[str]:
    """The words that are found, in either case and in the wide form that an index could use."""
    low = kept.lower()
    return [word for word in words if word.encode() in low or word.encode("utf-16-le") in low]


async def with_secrets(et: Everthread, owner: str = "local") -> Conversation:
    """A conversation with a word of its own in each kind of place, among others that stay."""
    stays = await et.conversations.create(owner=owner, id="stays", title="evergreen")
    await appended(stays, *(f"evergreen number{n}" for n in range(60)))
    conv = await et.conversations.create(
        owner=owner, id="goes", title="tatterdemalion", metadata={"k": "ultracrepidarian"}
    )
    await conv.append([says(f"{SECRET} small", id="small")], idempotency_key="k")
    await conv.append([says(f"{SECRET} " + "zymurgy " * 10_000, id="large")])
    await conv.append([says("quixotry first", id="revised")])
    await conv.append([says("rigmarole second", id="revised")])
    await conv.append([{"role": "assistant", "content": "", "id": "call", "tool_calls": [call("wherewithal")]}])
    await conv.edit("small", says("vituperation"))
    await conv.delete_message("large")
    return conv


def call(argument: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": f'{{"q": "{argument}"}}'}}


OF_THE_LOG = (SECRET, "zymurgy", "quixotry", "rigmarole", "wherewithal", "vituperation")
OF_THE_ROW = ("tatterdemalion", "ultracrepidarian")


@pytest.mark.parametrize("is_indexed", [True, False], ids=["indexed", "fresh"])
@pytest.mark.parametrize("reach", ["conversation", "owner"])
async def test_i22_after_erase_nothing_holds_the_text_of_a_conversation(url: str, reach: str, is_indexed: bool) -> None:
    async with everthread.open(url) as et:
        conv = await with_secrets(et, owner="ann")
        await with_secrets(et, owner="bob")
        await et.erase(owner="bob", conversation="goes")
        if is_indexed:
            assert await et.search(SECRET, owner="ann")
        assert traces(await everything_kept(et, url), *OF_THE_LOG, *OF_THE_ROW) == [*OF_THE_LOG, *OF_THE_ROW]
        await et.erase(owner="ann", conversation=conv.id if reach == "conversation" else None)
        assert traces(await everything_kept(et, url), *OF_THE_LOG, *OF_THE_ROW) == []
        assert bool(traces(await everything_kept(et, url), "evergreen")), "the scan sees what stays"
        for word in OF_THE_LOG:
            assert not await et.search(word, owner="ann")
        if reach == "conversation":
            assert len(await et.search("evergreen", owner="ann", limit=100)) == 60
        assert (await et.verify()).ok
    if url.startswith("sqlite"):
        assert traces(await everything_kept(et, url), *OF_THE_LOG, *OF_THE_ROW) == []


@pytest.mark.parametrize("is_indexed", [True, False], ids=["indexed", "fresh"])
async def test_i22_after_erase_nothing_holds_the_text_of_a_message(url: str, is_indexed: bool) -> None:
    async with everthread.open(url) as et:
        conv = await with_secrets(et)
        if is_indexed:
            assert await et.search("rigmarole")
        gone = {
            "large": ("zymurgy",),
            "small": (SECRET,),
            "revised": ("quixotry", "rigmarole"),
            "call": ("wherewithal",),
        }
        for id, words in gone.items():
            assert traces(await everything_kept(et, url), *words) == list(words)
            await et.erase(conversation=conv.id, message=id)
            assert traces(await everything_kept(et, url), *words) == []
            assert not any([list(await et.search(word)) for word in words])
        kept = ("vituperation", "tatterdemalion", "ultracrepidarian", "evergreen")
        assert traces(await everything_kept(et, url), *kept) == list(kept)
        assert [hit.conversation_id for hit in await et.search("vituperation")] == [conv.id]
        assert (await et.verify()).ok


async def test_i22_a_short_text_cannot_be_guessed_from_what_stays(url: str) -> None:
    async with everthread.open(url) as et:
        conv = await et.conversations.create()
        (receipt,) = await conv.append([says("yes", id="answer")], idempotency_key="k")
        message = await conv.message(receipt.id)
        (entry,) = await et.store.log.find(everthread.Ref(conv.owner, conv.id), ids=[receipt.id])
        salt = entry.salt
        assert salt is not None
        assert salt in await everything_kept(et, url)
        await et.erase(conversation=conv.id, message="answer")
        kept = await everything_kept(et, url)
        assert salt not in kept
        assert message.raw not in kept


async def test_i22_no_answer_of_the_api_holds_what_was_erased(et: Everthread) -> None:
    conv = await with_secrets(et)
    await et.erase(conversation=conv.id, message="small")
    await et.erase(conversation=conv.id, message="large")
    said = [
        repr([(m.payload, m.raw, m.text) for m in await history(conv, branch=b, revisions=True, include_deleted=True)])
        async for b in conv.branches()
    ]
    copy = await conv.copy()
    said += [repr([(m.payload, m.raw) for m in await history(copy, branch="main", include_deleted=True)])]
    said += [repr(await et.search(SECRET)), repr(await et.heads()), repr(await et.verify()), repr(await et.stats())]
    assert SECRET not in "".join(said)
    assert "zymurgy" not in "".join(said)


def test_i22_a_reader_elsewhere_that_holds_the_old_pages_is_told(tmp_path: Path, empty_file: Path) -> None:
    """On SQLite. While another process reads, the write-ahead log cannot be emptied: the erasure stays unfinished."""
    file = shutil.copyfile(empty_file, tmp_path / "et.db")
    writer, reader = connect(file), sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA busy_timeout = 10")
    writer.execute("INSERT INTO erasures (owner, erased_at) VALUES ('ann', 1)")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM erasures").fetchone()
    unfinished = "SELECT count(*) FROM erasures WHERE finished_at IS NULL"
    assert sqlite_erase.rewrite(writer, 2) == (sqlite_erase.HELD_PAGES,)
    assert writer.execute(unfinished).fetchone() == (1,)
    reader.execute("COMMIT")
    assert sqlite_erase.rewrite(writer, 3) == ()
    assert writer.execute(unfinished).fetchone() == (0,)
    writer.close()
    reader.close()
