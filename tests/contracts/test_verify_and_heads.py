"""The proof: every change made behind our back is found, and every honest log verifies."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable

import pytest

import everthread
from everthread import Conversation, Everthread, Head, NotFound, Ref
from tests.contracts.message_helpers import appended, says

asyncpg = pytest.importorskip("asyncpg")

Tamper = Callable[[str], Awaitable[None]]


@pytest.fixture
def tamper(durable_url: str) -> Tamper:
    """Run a statement on the database itself, past the store. On SQLite an entry's place is one number."""

    async def run(statement: str) -> None:
        if durable_url.startswith("sqlite"):
            of_sqlite = statement.replace(" seq =", " key & 4294967295 =").replace(" conversation =", " key >> 32 =")
            connection = sqlite3.connect(durable_url.removeprefix("sqlite:///"))
            with connection:
                connection.execute(of_sqlite)
            connection.close()
        else:
            over = await asyncpg.connect(durable_url)
            await over.execute(statement)
            if "SET owner" in statement:  # which is in every key here
                await over.execute("UPDATE branches SET owner = 'ann'; UPDATE entries SET owner = 'ann'")
            await over.close()

    return run


async def written(et: Everthread) -> Conversation:
    """Seven entries: a, b, c, a mark, a revision of c, an edit of b with what follows it."""
    conv = await et.conversations.create(id="c")
    await conv.append([says(letter, id=letter) for letter in "abc"])
    await conv.delete_message("a")
    await conv.append([says("c2", id="c")])
    await conv.edit("b", says("B", id="B"))
    await appended(conv, "after B")
    return conv


async def test_an_empty_database_verifies(et: Everthread) -> None:
    report = await et.verify()
    assert report.ok
    assert (report.conversations, report.entries, report.messages, report.erased) == (0, 0, 0, 0)
    assert await et.heads() == []


async def test_the_report_counts_what_it_read(et: Everthread) -> None:
    await written(et)
    other = await et.conversations.create(owner="ann")
    await other.append([says("x", id="x"), says("y")])
    await et.erase(owner="ann", conversation=other.id, message="x")
    await et.conversations.create(id="empty")
    report = await et.verify()
    assert report.ok
    assert list(report.problems) == []
    assert (report.conversations, report.entries, report.messages, report.erased) == (3, 9, 6, 1)


async def test_heads_name_the_end_of_every_log(et: Everthread) -> None:
    conv = await written(et)
    empty = await et.conversations.create(owner="ann", id="empty")
    heads = {(head.owner, head.conversation_id): head for head in await et.heads()}
    assert set(heads) == {(conv.owner, conv.id), (empty.owner, empty.id)}
    assert heads["local", "c"].count == 7
    assert heads["ann", "empty"].count == 0
    assert len({head.chain for head in heads.values()}) == 2
    assert all(len(bytes.fromhex(head.chain)) == 32 for head in heads.values())
    await appended(conv, "more")
    (grown,) = [head for head in await et.heads() if head.conversation_id == "c"]
    assert grown.count == 8
    assert grown.chain != heads["local", "c"].chain


async def test_heads_kept_elsewhere_still_stand_after_everything_that_is_allowed(et: Everthread) -> None:
    conv = await written(et)
    other = await et.conversations.create(id="other")
    heads = await et.heads()
    await appended(conv, "more")
    await conv.edit("a", says("A"))
    await conv.delete()
    await et.erase(conversation=conv.id, message="b")
    assert (await et.verify(against=heads)).ok
    await et.erase(conversation=conv.id)
    await et.erase(conversation=other.id)
    await et.conversations.create(id="new")
    assert (await et.verify(against=heads)).ok


async def test_a_head_of_a_conversation_that_is_not_there_is_missed(et: Everthread) -> None:
    await written(et)
    gone = Head(owner="local", conversation_id="gone", count=3, chain="00" * 32)
    report = await et.verify(against=[*await et.heads(), gone])
    assert [(problem.kind, problem.conversation_id) for problem in report.problems] == [("missing", "gone")]
    assert not report.ok


async def test_another_log_in_its_place_is_noticed(et: Everthread) -> None:
    async with everthread.open("memory://") as elsewhere:
        await written(elsewhere)
        heads = await elsewhere.heads()
    await written(et)
    report = await et.verify(against=heads)
    assert {(problem.kind, problem.seq) for problem in report.problems} == {("rewritten", 7), ("rewritten", None)}


async def test_a_head_from_the_future_is_a_cut(et: Everthread) -> None:
    await written(et)
    (head,) = await et.heads()
    later = Head(owner=head.owner, conversation_id=head.conversation_id, count=9, chain="11" * 32)
    report = await et.verify(against=[later])
    assert [problem.kind for problem in report.problems] == ["cut"]


async def test_verifying_while_others_write_finds_nothing_wrong(et: Everthread) -> None:
    conv = await written(et)
    for number in range(30):
        await conv.append([says("x", id=f"x{number}")])
    pinning = asyncio.gather(*(conv.pin(f"x{number}") for number in range(30)))
    revising = asyncio.gather(*(conv.append([says("y", id=f"x{number}")]) for number in range(30)))
    for _ in range(10):
        assert (await et.verify()).ok
    await asyncio.gather(pinning, revising)


@pytest.mark.parametrize(
    ("statement", "kind", "seq"),
    [
        ("UPDATE entries SET raw = chain WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET salt = chain WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET role = 'assistant' WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET id = 'other' WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET created_at = created_at + 1 WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET parent_seq = 2 WHERE seq = 7", "chain", 7),
        ("UPDATE entries SET how = 1 WHERE seq = 4", "chain", 4),
        ("UPDATE entries SET revises = 2 WHERE seq = 5", "chain", 5),
        ("UPDATE entries SET kind = 1 WHERE seq = 3", "chain", 3),
        ("UPDATE entries SET chain = raw WHERE seq = 3", "chain", 3),
        ("UPDATE entries SET raw = NULL WHERE seq = 3", "payload", 3),
        ("UPDATE entries SET raw = NULL, salt = NULL, flags = 4 WHERE seq = 3", "payload", 3),
        ("UPDATE entries SET raw = NULL, salt = NULL, commitment = chain WHERE seq = 3", "chain", 3),
        ("DELETE FROM entries WHERE seq = 2", "gap", 2),
        ("DELETE FROM entries WHERE seq = 7", "count", 6),
        ("UPDATE conversations SET chain = (SELECT chain FROM entries WHERE seq = 1)", "head", 7),
        ("UPDATE conversations SET owner = 'ann'", "chain", 1),
        ("UPDATE conversations SET id = 'd'", "chain", 1),
        ("UPDATE entries SET flags = 0 WHERE seq = 1", "projection", 1),
        ("UPDATE entries SET flags = 1 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET flags = 2 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET flags = 4 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET revision = 7 WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET revision = 1 WHERE seq = 5", "chain", 5),
        ("UPDATE entries SET revision = 1 WHERE seq = 6", "chain", 6),
        ("UPDATE entries SET revision = 3 WHERE seq = 5", "chain", 5),
        ("UPDATE entries SET origin = 2 WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET chain_version = 1 WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET flags = 8 WHERE seq = 2", "chain", 2),
        ("UPDATE entries SET flags = 16 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET tokens = 100 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET updated_at = 1 WHERE seq = 1", "projection", 1),
        ("UPDATE entries SET updated_at = 1 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET newest_seq = NULL WHERE seq = 3", "projection", 3),
        ("UPDATE entries SET newest_seq = 5 WHERE seq = 2", "projection", 2),
        ("UPDATE entries SET branch = 1 WHERE seq = 3", "projection", 6),
        ("UPDATE entries SET depth = 9 WHERE seq = 2", "projection", 2),
        ("UPDATE branches SET leaf_seq = 2 WHERE number = 0", "projection", 2),
        ("UPDATE branches SET leaf_depth = 2 WHERE number = 0", "projection", 3),
        ("UPDATE conversations SET leaf_seq = 2", "projection", 2),
        ("UPDATE conversations SET leaf_depth = 9", "projection", 7),
        ("UPDATE branches SET fork_seq = 2 WHERE number = 1", "projection", 2),
        ("DELETE FROM branches WHERE number = 0", "projection", 0),
    ],
)
async def test_a_change_behind_our_back_is_found(
    durable_url: str, tamper: Tamper, statement: str, kind: str, seq: int
) -> None:
    async with everthread.open(durable_url) as et:
        await written(et)
        assert (await et.verify()).ok
        await tamper(statement)
        report = await et.verify()
        assert not report.ok
        assert (kind, seq) in [(problem.kind, problem.seq) for problem in report.problems]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE conversations SET title = 'other'",
        "UPDATE conversations SET title = NULL",
        "UPDATE conversations SET metadata = '{\"a\": 2}'",
        "UPDATE conversations SET is_active = 0",
        "UPDATE conversations SET off_record = 1",
        "UPDATE conversations SET created_at = created_at + 1",
        "UPDATE conversations SET deleted_at = 1",
        "UPDATE conversations SET parent_number = 1",
        "UPDATE conversation_changes SET salt = commitment",
        "UPDATE conversation_changes SET salt = NULL",
        "UPDATE conversation_changes SET commitment = chain",
        "UPDATE conversation_changes SET changed_at = 1 WHERE number = 1",
        "DELETE FROM conversation_changes WHERE number = 1",
        "DELETE FROM conversation_changes WHERE number = 2",
    ],
)
async def test_a_change_of_what_is_shown_of_a_conversation_is_found(
    durable_url: str, tamper: Tamper, statement: str
) -> None:
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.create(id="c", title="first", metadata={"a": 1})
        await appended(conv, "a")
        await conv.update(title="second")
        assert (await et.verify()).ok
        await tamper(statement)
        assert [problem.kind for problem in (await et.verify()).problems] == ["settings"]


async def test_settings_put_back_to_an_earlier_state_show_only_against_heads(durable_url: str, tamper: Tamper) -> None:
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.create(id="c", title="first")
        await conv.update(title="second")
        heads = await et.heads()
        await conv.update(title="third")
        assert (await et.verify(against=heads)).ok
        await tamper("DELETE FROM conversation_changes")
        assert (await et.verify()).ok
        report = await et.verify(against=heads)
        assert [problem.kind for problem in report.problems] == ["cut"]


async def test_the_salt_of_an_erased_title_is_gone(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.create(id="c", title="a secret title")
        await conv.append([says("a secret title", id="m")])
        await et.erase(conversation="c", message="m")
        assert (await et.verify()).ok
        changes = await et.store.conversations.changes(Ref("local", "c"), after=0, limit=10)
        assert [change.salt is None for change in changes] == [True, False]
        await et.erase(conversation="c")
        changes = await et.store.conversations.changes(Ref("local", "c"), after=0, limit=10)
        assert [change.salt for change in changes] == [None, None]
        assert (await et.verify()).ok


async def test_a_tail_cut_off_cleanly_shows_only_against_heads(durable_url: str, tamper: Tamper) -> None:
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.create(id="c")
        await appended(conv, "a", "b", "c")
        heads = await et.heads()
        await tamper("DELETE FROM entries WHERE seq = 3")
        await tamper(
            "UPDATE conversations SET entry_count = 2, leaf_seq = 2, leaf_depth = 2, "
            "chain = (SELECT chain FROM entries WHERE seq = 2)"
        )
        assert (await et.verify()).ok
        report = await et.verify(against=heads)
        assert [(problem.kind, problem.seq) for problem in report.problems] == [("cut", 2)]


async def test_a_conversation_cut_out_cleanly_shows_only_against_heads(durable_url: str, tamper: Tamper) -> None:
    async with everthread.open(durable_url) as et:
        await appended(await et.conversations.create(id="c"), "a")
        heads = await et.heads()
        for table in ("entries", "branches", "conversations"):
            await tamper(f"DELETE FROM {table}")
        assert (await et.verify()).ok
        report = await et.verify(against=heads)
        assert [(problem.kind, problem.conversation_id) for problem in report.problems] == [("missing", "c")]


async def test_damage_in_one_conversation_leaves_the_others_proved(durable_url: str, tamper: Tamper) -> None:
    async with everthread.open(durable_url) as et:
        for name in ("one", "two", "three"):
            await appended(await et.conversations.create(id=name), "a", "b")
        await tamper("UPDATE entries SET role = 'x' WHERE conversation = 2 AND seq = 1")
        report = await et.verify()
        assert {problem.conversation_id for problem in report.problems} == {"two"}
        assert report.conversations == 3


async def test_verifying_a_conversation_that_does_not_exist_is_no_success(et: Everthread) -> None:
    await et.conversations.create(id="trip", owner="ann")
    assert (await et.verify(owner="ann", conversation="trip")).conversations == 1
    for wrong in ({"conversation": "tripp"}, {"owner": "bob", "conversation": "trip"}):
        with pytest.raises(NotFound, match="no conversation"):
            await et.verify(**wrong)  # type: ignore[arg-type]
    assert (await et.verify(owner="bob")).conversations == 0
