"""Bad input: what comes in comes back exactly, or is refused by a typed error with nothing of its batch stored."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import RemoveMessage

import everthread
from everthread import Conversation, Everthread, EverthreadError, Invalid, NotFound, StoreDamaged, StoreError
from tests.contracts.message_helpers import appended, entry_count, history, says, texts

PAIR_IN_HALVES = "\ud83d" + "\ude00"
"""Two halves that never met, as a stream decoded piece by piece leaves them: not the same text as 😀."""


def nested(depth: int) -> Any:
    value: Any = "core"
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


async def comes_back(conv: Conversation, payload: Any) -> None:
    """Append it between two others and read it back in every way."""
    (receipt,) = await conv.append([payload])
    message = await conv.message(receipt.id)
    assert message.payload == payload
    assert json.loads(message.raw) == payload
    assert (await conv.tail(1))[0].payload == payload
    assert isinstance(message.text, str)
    assert message.tokens >= 0


async def refused(et: everthread.Everthread, conv: Conversation, batch: object, field: str | None = None) -> None:
    """Refused by an Invalid that names the part, with nothing of the batch stored."""
    before = await entry_count(et, conv)
    with pytest.raises(Invalid) as problem:
        await conv.append(batch)
    assert problem.value.field is not None
    assert field is None or problem.value.field == field
    assert await entry_count(et, conv) == before


# -- texts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "before\0after",
        "\ud800",
        "half \udc00 of a pair",
        PAIR_IN_HALVES,
        f"whole 😀 and halves {PAIR_IN_HALVES}",
        "\ufeff\ufffe\uffff",
        "e\u0301 é ｅ",
        "\u202eright to left",
        "line\u2028break\r\n\x1b[31m",
        "'; DROP TABLE entries; --",
        "<|endoftext|><|im_start|>",
        "😀" * 1_000,
        "\u0300" * 10_000,
    ],
    ids=lambda text: ascii(text)[:24],
)
async def test_any_text_comes_back_exactly(et: everthread.Everthread, conv: Conversation, text: str) -> None:
    await comes_back(conv, says(text))
    await comes_back(conv, says([{"type": "text", "text": text}, {"type": text, text: text}]))
    assert await texts(conv) == [text, text]
    assert not await et.search("nowhere")


@pytest.mark.parametrize("text", ["\0", "\ud800", PAIR_IN_HALVES], ids=ascii)
async def test_any_text_can_be_revised_searched_and_erased(
    et: everthread.Everthread, conv: Conversation, text: str
) -> None:
    await conv.append([says(f"{text} platypus", id="m1")])
    assert [hit.id for hit in await et.search("platypus")] == ["m1"]
    (again,) = await conv.append([says(f"{text} platypus", id="m1")])
    assert not again.new
    await conv.append([says(f"{text} wombat", id="m1")])
    assert [hit.id for hit in await et.search("wombat")] == ["m1"]
    await et.erase(conversation=conv.id, message="m1")
    assert not await et.search("wombat")


async def test_ten_megabytes_come_back_exactly(conv: Conversation) -> None:
    text = "All work and no play makes Jack a dull boy.\n" * 230_000
    assert len(text.encode()) > 10_000_000
    await comes_back(conv, says(text))
    await appended(conv, "after")
    assert (await conv.tail(1))[0].parent_seq == 1


async def test_a_hundred_thousand_distinct_words_come_back_and_are_found(
    et: everthread.Everthread, conv: Conversation
) -> None:
    await comes_back(conv, says(" ".join(f"w{number}" for number in range(100_000)), id="many"))
    assert [hit.id for hit in await et.search("w77777")] == ["many"]
    await et.erase(conversation=conv.id, message="many")
    assert not await et.search("w77777")


# -- shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 60, 150])
async def test_deep_json_comes_back_exactly(conv: Conversation, depth: int) -> None:
    payload = {"role": "tool", "content": nested(depth), "extra": nested(depth)}
    await comes_back(conv, payload)
    await conv.append(json.dumps(payload).encode())
    assert (await conv.tail(1))[0].payload == payload


@pytest.mark.parametrize("depth", [900, 5_000, 100_000])
async def test_json_deeper_than_any_reader_bears_is_refused(
    et: everthread.Everthread, conv: Conversation, depth: int
) -> None:
    await refused(et, conv, [says("good"), says("bad", extra=nested(depth))])
    raw = b'{"role": "user", "content": ' + b"[" * depth + b"]" * depth + b"}"
    await refused(et, conv, [says("good"), raw])


async def test_what_was_taken_can_be_read_from_a_deep_stack(conv: Conversation) -> None:
    taken = 0
    for depth in range(100, 1_000, 100):
        try:
            await conv.append([says("deep", id=str(depth), extra=nested(depth))])
        except Invalid:
            break
        taken = depth

    def read_at(frames: int, message: everthread.Message) -> object:
        return read_at(frames - 1, message) if frames else message.payload["extra"]

    assert taken >= 100
    assert read_at(500, await conv.message(str(taken))) == nested(taken)


@pytest.mark.parametrize(
    "value",
    [
        2**53 + 1,
        2**63 - 1,
        2**63,
        2**64,
        2**70,
        -(2**70),
        0.1,
        5e-324,
        1.7976931348623157e308,
        -0.0,
        1e22,
        True,
        None,
        [],
        {},
        {"": ""},
    ],
    ids=repr,
)
async def test_any_json_value_comes_back_with_its_type(conv: Conversation, value: Any) -> None:
    await comes_back(conv, says("x", value=value, deep=[{"value": [value]}]))
    read = (await conv.tail(1))[0].payload["value"]
    assert (type(read), repr(read)) == (type(value), repr(value))


@dataclass
class Thing:
    name: str = "thing"


class Colour(Enum):
    RED = "red"


STRANGERS: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "5,000 digits": 10**5_000,
    "set": {1, 2},
    "frozenset": frozenset("ab"),
    "bytes": b"bytes",
    "bytearray": bytearray(b"bytes"),
    "datetime": datetime(2024, 1, 1, tzinfo=UTC),
    "decimal": Decimal("0.1"),
    "uuid": UUID(int=1),
    "complex": 1j,
    "object": object(),
    "dataclass": Thing(),
    "enum": Colour.RED,
    "path": Path("x"),
    "function": print,
    "range": range(3),
    "int key": {1: "x"},
    "none key": {None: "x"},
    "bool key": {True: "x"},
    "tuple key": {("a",): "x"},
    "float key": {1.5: "x"},
    "enum key": {Colour.RED: "x"},
}


@pytest.mark.parametrize("value", STRANGERS.values(), ids=STRANGERS.keys())
async def test_what_json_cannot_hold_is_refused_with_its_place(
    et: everthread.Everthread, conv: Conversation, value: Any
) -> None:
    for batch in (
        [says("good"), says("bad", value=value)],
        [says("bad", deep=[{"in": [value]}])],
        [says("large" * 20_000, value=value)],
        [says([{"type": "text", "text": "bad", "value": value}])],
    ):
        await refused(et, conv, batch)
    with pytest.raises(Invalid, match=r"messages\[1\]"):
        await conv.append([says("good"), says("bad", value=value)])
    with pytest.raises(Invalid, match="metadata"):
        await et.conversations.create(metadata={"deep": [value]})
    with pytest.raises(Invalid, match="metadata"):
        await conv.update(metadata={"value": value})
    assert (await conv.refresh()).metadata == {}
    assert len((await et.conversations.list()).items) == 1


async def test_the_error_names_where_it_stands(et: everthread.Everthread, conv: Conversation) -> None:
    await refused(et, conv, [says("x"), says("y", a=[{"b": float("nan")}])], field="messages[1].a[0].b")


class Word(StrEnum):
    HI = "hi"


class Number(IntEnum):
    ONE = 1


async def test_kin_of_json_types_come_back_as_what_they_equal(conv: Conversation) -> None:
    await conv.append([says(Word.HI, id="m1", number=Number.ONE, ordered=OrderedDict(a=1), pair=(1, (2,)))])
    await conv.append([MappingProxyType(says("read-only", id="m2"))])
    assert (await conv.message("m1")).payload == says("hi", id="m1", number=1, ordered={"a": 1}, pair=[1, [2]])
    assert await texts(conv) == ["hi", "read-only"]


async def test_a_circle_is_refused(et: everthread.Everthread, conv: Conversation) -> None:
    circle = says("round")
    circle["self"] = circle
    await refused(et, conv, [circle])
    ring: list[Any] = []
    ring.append(ring)
    await refused(et, conv, [says("round", ring=ring)])


# -- bytes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b'{"role":"user","content":"plain"}',
        b' {\n"content" : "\\u00e9\\ud83d\\ude00", "role" : "user", "n": 1.50, "big": 12345678901234567890123 } ',
        b'{"role":"user","content":"a","content":"b"}',
        '{"role":"user","content":"中文 😀"}'.encode(),
        b'{"role":"user","content":"\xed\xa0\x80"}',
        b'{"role":"user","content":"\\ud800 \\u0000"}',
        '{"role":"user","content":"wide"}'.encode("utf-16"),
        b'{"role":"user","content":"x","huge":1e400}',
    ],
    ids=ascii,
)
async def test_bytes_come_back_as_they_came(conv: Conversation, raw: bytes) -> None:
    (receipt,) = await conv.append([raw])
    message = await conv.message(receipt.id)
    assert message.raw == raw
    assert message.payload == json.loads(raw)
    (receipt,) = await conv.append([bytearray(raw)])
    assert (await conv.message(receipt.id)).raw == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"12",
        b"{",
        b'{"role":"user","content":"\xff"}',
        b'{"role":"user","content":"\xc3"}',
        b'{"role":"user","content":NaN}',
        b'{"role":"user","content":[Infinity, -Infinity]}',
        b'{"role":"user","content":"x","n":' + b"9" * 5_000 + b"}",
        b"{'role': 'user', 'content': 'x'}",
        b'{"role":"user","content":"x"} trailing',
        b'{"content":"no role"}',
        b"\x80\x04\x95.",
        b"\0",
    ],
    ids=lambda raw: ascii(raw)[:40],
)
async def test_bytes_that_are_no_message_are_refused(et: everthread.Everthread, conv: Conversation, raw: bytes) -> None:
    await refused(et, conv, [says("good"), raw], field=None)
    await refused(et, conv, raw)


# -- batches, ids and roles --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "batch",
    [
        None,
        "a text",
        "",
        5,
        True,
        [None],
        ["text"],
        [5],
        [[]],
        [[says("nested list")]],
        [{}],
        {},
        [{"content": "no role"}],
        [{"role": None, "content": "x"}],
        [{"role": "", "content": "x"}],
        [{"role": 5, "content": "x"}],
        [{"role": ["user"], "content": "x"}],
        [{"role": "u" * 65, "content": "x"}],
        [{"role": "a\0b", "content": "x"}],
        [{"role": "\ud800", "content": "x"}],
        [says("good"), None],
    ],
)
async def test_what_is_no_message_is_refused(et: everthread.Everthread, conv: Conversation, batch: Any) -> None:
    await refused(et, conv, batch)
    await conv.append([says("stays", id="m1")])
    if not isinstance(batch, str):  # a text is the new content
        with pytest.raises(Invalid):
            await conv.edit("m1", batch)
    assert await texts(conv) == ["stays"]


@pytest.mark.parametrize("id", [0, 5])
async def test_a_number_names_a_conversation_and_no_message(
    et: everthread.Everthread, conv: Conversation, id: Any
) -> None:
    await refused(et, conv, [says("good"), says("bad", id=id)])
    assert (await et.conversations.create(id=id)).id == str(id)
    assert (await et.conversations.get(str(id))).id == (await et.conversations.get(id)).id


@pytest.mark.parametrize("id", ["x" * 129, "a\0b", "\ud800", 1.5, True, ["x"], {"x": 1}, b"x"], ids=ascii)
async def test_a_wrong_id_is_refused_everywhere(et: everthread.Everthread, conv: Conversation, id: Any) -> None:
    await refused(et, conv, [says("good"), says("bad", id=id)])
    for call in (
        lambda: et.conversations.create(id=id),
        lambda: et.conversations.create(owner=id),
        lambda: et.conversations.create(parent_id=id),
        lambda: et.conversations.get(id),
        lambda: et.conversations.get("x", owner=id),
        lambda: et.conversations.list(owner=id),
        lambda: et.conversations.list(parent_id=id),
        lambda: et.search("x", owner=id),
        lambda: et.search("x", conversation=id),
        lambda: et.erase(owner=id),
        lambda: et.erase(conversation=id),
        lambda: et.erase(conversation=conv.id, message=id),
        lambda: conv.copy(id=id),
        lambda: conv.message(id),
        lambda: conv.edit(id, says("x")),
        lambda: conv.delete_message(id),
        lambda: conv.restore_message(id),
        lambda: conv.pin(id),
        lambda: conv.unpin(id),
    ):
        with pytest.raises(Invalid):
            await call()
    assert len((await et.conversations.list()).items) == 1


async def test_an_empty_id_is_refused_for_conversations_and_none_for_messages(
    et: everthread.Everthread, conv: Conversation
) -> None:
    for call in (
        lambda: et.conversations.create(id=""),
        lambda: et.conversations.create(owner=""),
        lambda: et.conversations.get(""),
        lambda: conv.message(""),
        lambda: et.erase(conversation=""),
    ):
        with pytest.raises(Invalid):
            await call()
    (receipt,) = await conv.append([says("no id", id="")])
    assert receipt.id
    assert (await conv.message(receipt.id)).payload == says("no id", id="")


@pytest.mark.parametrize(
    "id",
    [
        "x" * 128,
        "中" * 128,
        "😀" * 128,
        "../../etc/passwd",
        "'; DROP TABLE entries; --",
        'with "quotes" and \\backslashes\\',
        "a/b?c=d#e%00",
        " spaces ",
        "%_*",
        "\n\t\x7f",
        "e\u0301",
        "NULL",
        "None",
        "0",
    ],
    ids=lambda id: ascii(id)[:24],
)
async def test_any_other_string_is_an_id(et: everthread.Everthread, id: str) -> None:
    conv = await et.conversations.create(id=id, owner=id)
    await conv.append([says("numbat", id=id)])
    found = await et.conversations.get(id, owner=id)
    assert (found.id, found.owner) == (id, id)
    assert (await found.message(id)).id == id
    await found.edit(id, says("quokka"))
    await found.pin(id)
    assert [hit.conversation_id for hit in await et.search("numbat", owner=id, conversation=id)] == [id]
    child = await et.conversations.create(owner=id, parent_id=id)
    assert [item.id async for item in found.children()] == [child.id]
    await et.erase(owner=id, conversation=id, message=id)
    with pytest.raises(NotFound):
        await found.message(id)


async def test_ids_that_look_alike_are_different(et: everthread.Everthread, conv: Conversation) -> None:
    ids = ["a", "A", " a", "a ", "ä", "a\u0308", "а"]
    await conv.append([says(id, id=id) for id in ids])
    assert [message.id for message in await history(conv)] == ids
    for id in ids:
        assert (await conv.message(id)).text == id


# -- titles, metadata, cursors, searches ------------------------------------------------------------------


@pytest.mark.parametrize("title", ["", "t" * 1_000, "中" * 1_000, "'\"\\\n", "😀"], ids=lambda title: ascii(title)[:12])
async def test_any_title_comes_back(et: everthread.Everthread, conv: Conversation, title: str) -> None:
    made = await et.conversations.create(title=title)
    await conv.update(title=title)
    for one in (made, conv):
        assert (await et.conversations.get(one.id)).title == title


@pytest.mark.parametrize("title", ["t" * 1_001, "a\0b", "\ud800", 5, b"t", ["t"], True], ids=lambda t: ascii(t)[:12])
async def test_a_wrong_title_is_refused(et: everthread.Everthread, conv: Conversation, title: Any) -> None:
    with pytest.raises(Invalid, match="title"):
        await et.conversations.create(title=title)
    with pytest.raises(Invalid, match="title"):
        await conv.update(title=title)
    with pytest.raises(Invalid, match="title"):
        await conv.copy(title=title)
    assert [item.title for item in (await et.conversations.list()).items] == [None]


@pytest.mark.parametrize("metadata", ["text", 5, [], [("a", 1)], True, b"{}"])
async def test_metadata_is_a_mapping(et: everthread.Everthread, conv: Conversation, metadata: Any) -> None:
    with pytest.raises(Invalid, match="metadata"):
        await et.conversations.create(metadata=metadata)
    with pytest.raises(Invalid, match="metadata"):
        await conv.update(metadata=metadata)


async def test_any_json_is_metadata(et: everthread.Everthread) -> None:
    metadata = {"nul": "\0", "half": "\ud800", "halves": PAIR_IN_HALVES, "big": 2**70, "deep": nested(60), "": None}
    conv = await et.conversations.create(metadata=metadata)
    assert (await et.conversations.get(conv.id)).metadata == metadata
    assert (await (await conv.copy()).refresh()).metadata == metadata


@pytest.mark.parametrize("is_active", [1, 0, "yes", None, []])
async def test_is_active_is_true_or_false(conv: Conversation, is_active: Any) -> None:
    with pytest.raises(Invalid, match="is_active"):
        await conv.update(title="not set either", is_active=is_active)
    assert (await conv.refresh()).title is None


async def test_a_cursor_that_was_not_given_is_refused(et: everthread.Everthread) -> None:
    for owner in ("ann", "bob"):
        for number in range(3):
            await et.conversations.create(id=str(number), owner=owner)
    anns = (await et.conversations.list("ann", limit=1)).next_cursor
    assert anns is not None
    wrong: list[Any] = [anns, "", "x", "0", "null", "[]", "e30=", "中", "\0", anns + "0" * 40, "[" * 100_000, 5, b"x"]
    for cursor in wrong:
        with pytest.raises(Invalid, match="cursor"):
            await et.conversations.list("bob", cursor=cursor)


@pytest.mark.parametrize("limit", [-1, 1_001, 10**30, 1.5, "1", True, None])
async def test_a_wrong_limit_is_refused(et: everthread.Everthread, limit: Any) -> None:
    with pytest.raises(Invalid, match="limit"):
        await et.conversations.list(limit=limit)
    with pytest.raises(Invalid, match="limit"):
        await et.search("x", limit=limit)


@pytest.mark.parametrize("branch", [1.5, True, b"main", [], -1, float("nan"), {}], ids=repr)
async def test_a_wrong_branch_is_refused(conv: Conversation, branch: Any) -> None:
    await appended(conv, "a")
    for call in (
        lambda: appended(conv, "x", branch=branch),
        lambda: conv.set_active(branch),
        lambda: conv.tail(1, branch=branch),
        lambda: texts(conv, branch=branch),
    ):
        with pytest.raises(Invalid):
            await call()
    assert await texts(conv) == ["a"]


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"], "x" * 100_001], ids=lambda text: ascii(text)[:12])
async def test_a_wrong_question_is_refused(et: everthread.Everthread, text: Any) -> None:
    with pytest.raises(Invalid, match="text"):
        await et.search(text)


@pytest.mark.parametrize("wrong", [{}, {"message": "m"}, {"owner": "local", "message": "m"}])
async def test_an_erase_says_what_it_is_of(
    et: everthread.Everthread, conv: Conversation, wrong: dict[str, str]
) -> None:
    await conv.append([says("stays", id="m")])
    with pytest.raises(Invalid):
        await et.erase(**wrong)
    assert await texts(conv) == ["stays"]


async def test_one_bad_call_spoils_no_other(et: everthread.Everthread, conv: Conversation) -> None:
    def a_call(number: int) -> Awaitable[object]:
        if number % 3 == 0:
            return conv.append([says(f"{number}", id=str(number))])
        return conv.delete_message("\ud800") if number % 3 == 1 else conv.append([says("late")], expected_head=10_000)

    outcomes = await asyncio.gather(*(a_call(number) for number in range(60)), return_exceptions=True)
    assert [isinstance(outcome, EverthreadError) for outcome in outcomes] == [n % 3 != 0 for n in range(60)]
    assert await entry_count(et, conv) == 20


@pytest.mark.parametrize("against", ["heads.json", [1], [{"owner": "local"}], [None]], ids=repr)
async def test_what_are_no_heads_is_refused(et: everthread.Everthread, against: Any) -> None:
    with pytest.raises(Invalid, match="against"):
        await et.verify(against=against)


# -- addresses and closed databases ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "et.db",
        "/tmp/et.db",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://et.db",
        "sqlite:///:memory:",
        "sqlite:///a%00b",
        "sqlite:///a\0b",
        "mysql://host/db",
        "http://host",
        "://",
        None,
        5,
        b"memory://",
        Path("et.db"),
    ],
    ids=repr,
)
def test_a_wrong_address_is_refused_before_anything_is_opened(url: Any) -> None:
    with pytest.raises(Invalid, match="url"):
        everthread.open(url)


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    for size in (20, 300, 512, 3500):
        notes = (b"these are my notes, not a database\n" * 100)[:size]
        file.write_bytes(notes)
        with pytest.raises(StoreDamaged, match="is not an SQLite database"):
            async with everthread.open(f"sqlite:///{file}"):
                pass
        assert file.read_bytes() == notes


async def test_a_context_that_is_none_is_not_kept(conv: Conversation) -> None:
    with pytest.raises(Invalid, match=r"conv\.context"):
        await conv.keep_context(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["recall", "compaction"])
def test_a_policy_of_another_type_is_refused_when_the_database_is_opened(policy: str) -> None:
    wrong: dict[str, Any] = {policy: 5}
    with pytest.raises(Invalid, match=f"{policy}: must be a"):
        everthread.open("memory://", **wrong)


async def test_a_place_that_cannot_hold_a_file_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file" / "et.db", tmp_path / ("x" * 300)):
        with pytest.raises(StoreError):
            async with everthread.open(f"sqlite:///{place}"):
                pass


async def test_a_closed_database_refuses_every_call(url: str) -> None:
    et = everthread.open(url)
    with pytest.raises(StoreError, match="closed"):
        await et.conversations.create()
    async with et:
        conv = await et.conversations.create(id="c")
        await conv.append([says("kept", id="m")])
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: et.conversations.create(),
        lambda: et.conversations.get("c"),
        lambda: et.conversations.list(),
        lambda: et.search("kept"),
        lambda: et.heads(),
        lambda: et.verify(),
        lambda: et.erase(owner="local"),
        lambda: et.stats(),
        lambda: conv.append([says("late")]),
        lambda: conv.update(title="late"),
        lambda: conv.tail(1),
        lambda: texts(conv),
        lambda: conv.message("m"),
        lambda: conv.pin("m"),
        lambda: conv.copy(),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="closed"):
            await call()
    await et.close()
    async with et:
        assert await texts(conv) == ["kept"]
        assert (await et.verify()).messages == 1


async def test_what_was_kept_is_there_after_reopening(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.create(id="c")
        await comes_back(conv, says(f"\0 \ud800 {PAIR_IN_HALVES}", id="m1", big=2**70))
    for _ in range(2):
        async with everthread.open(durable_url) as et:
            conv = await et.conversations.get("c")
            assert (await conv.message("m1")).payload == says(f"\0 \ud800 {PAIR_IN_HALVES}", id="m1", big=2**70)
            assert (await et.verify()).ok


async def test_two_openings_of_one_database_see_each_other(durable_url: str) -> None:
    async with everthread.open(durable_url) as one, everthread.open(durable_url) as other:
        conv = await one.conversations.create(id="c")
        await appended(await other.conversations.get("c"), "from the other")
        await appended(conv, "from the one")
        assert await texts(conv) == ["from the other", "from the one"]
        await one.close()
        assert await appended(await other.conversations.get("c"), "alone") == [3]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"system": 5}, "system"),
        ({"query": 5}, "query"),
        ({"budget": 5}, "budget"),
        ({"tools": [object()]}, "tools[0]"),
        ({"tools": "x"}, "tools"),
        ({"provider": "gemini"}, "provider"),
        ({"compaction": 5}, "compaction"),
    ],
)
async def test_a_context_names_the_argument_that_is_wrong(
    conv: Conversation, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await conv.context(**arguments)
    assert refused.value.field == field


async def test_settings_of_compaction_name_the_argument_that_is_wrong(et: Everthread) -> None:
    config: Any = et.compaction_config
    for wrong, field in (
        (config.get("an id"), "conversation"),
        (config.set({"fan_in": 4}, conversation="an id"), "conversation"),
        (config.set(None), "changes"),
    ):
        with pytest.raises(Invalid) as refused:
            await wrong
        assert refused.value.field == field


def test_blobs_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(Invalid) as refused:
        everthread.open("memory://", blobs="gopher://x")
    assert refused.value.field == "blobs"


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "User", "content": "x"}, "role"),
        ({"role": "usr", "content": "x"}, "role"),
        ({"role": "critic", "type": "human", "content": "x"}, "role"),
        ({"role": "user"}, "content"),
        ({"role": "human", "text": "x"}, "content"),
        ({"role": "user", "contnet": "x"}, "content"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "user", "content": 5}, "content"),
        ({"role": "user", "content": {"a": 1}}, "content"),
        ({"role": "user", "content": ["x", 5]}, "content[1]"),
        ({"type": "human", "data": {"content": {"a": 1}}}, "content"),
    ],
)
async def test_what_no_model_would_be_shown_is_refused(
    et: Everthread, conv: Conversation, message: dict[str, Any], field: str
) -> None:
    await refused(et, conv, [says("before"), message], f"messages[1].{field}")
    await refused(et, conv, json.dumps(message).encode(), f"messages[0].{field}")


async def test_a_mistyped_role_is_told_what_it_may_be(conv: Conversation) -> None:
    with pytest.raises(Invalid, match=r'did you mean "user".*human.*ai.*developer'):
        await conv.append({"role": "User", "content": "x"})
    with pytest.raises(Invalid, match="did you mean"):
        await conv.append({"role": "Human", "content": "x"})


async def test_an_edit_keeps_the_role_of_its_message_or_takes_a_known_one(conv: Conversation) -> None:
    await conv.append({"type": "chat", "role": "critic", "content": "no", "id": "m1"})
    await conv.edit("m1", {"role": "critic", "content": "yes"})
    with pytest.raises(Invalid, match="role"):
        await conv.edit("m1", {"role": "usr", "content": "yes"})


async def test_an_edit_that_says_nothing_is_refused(conv: Conversation) -> None:
    await conv.append(says("no", id="m1"))
    with pytest.raises(Invalid, match="content: must be text or a list of content blocks, not a number"):
        await conv.edit("m1", {"role": "user", "content": 5})
    assert (await conv.message("m1")).text == "no"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": []},
        {"role": "human", "content": ""},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "tool", "tool_call_id": "c1", "content": {"celsius": 21}},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": "look", "args": {}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
        {"type": "chat", "role": "narrator", "content": "x"},
        {"type": "reasoning", "summary": []},
    ],
)
async def test_roles_of_frameworks_and_items_without_one_are_taken(conv: Conversation, message: dict[str, Any]) -> None:
    await comes_back(conv, message)


@pytest.mark.parametrize(
    "order", [RemoveMessage(id="m1"), {"type": "remove", "id": "m1", "content": ""}], ids=["message", "dict"]
)
async def test_an_order_to_remove_is_no_message_and_blanks_none(
    et: everthread.Everthread, conv: Conversation, order: object
) -> None:
    await conv.append(says("kept", id="m1"))
    await refused(et, conv, [says("beside it"), order], "messages[1]")
    with pytest.raises(Invalid, match="delete_message"):
        await conv.append(order)
    assert [(message.text, message.revision) for message in await history(conv)] == [("kept", 1)]


@pytest.mark.parametrize("type_", [[], {}, 5, None], ids=["list", "object", "number", "null"])
async def test_a_block_whose_type_is_no_text_is_kept_and_hurts_no_reader(conv: Conversation, type_: object) -> None:
    calls = [{"id": "c", "name": "look", "args": {}}]
    for role, more in (("user", {}), ("assistant", {"tool_calls": calls})):
        await conv.append({"role": role, "content": [{"type": type_, "text": "odd"}], **more})
    await conv.append({"role": "user", "content": "And now?"})
    stored = [message.payload["content"][0] async for message in conv.messages() if message.role != "user"]
    assert stored == [{"type": type_, "text": "odd"}]
    for budget in (None, everthread.Budget(window=8_000)):
        context = await conv.context(budget=budget)
        assert "And now?" in str(context.messages)
    assert await conv.recall("odd") is not None


@pytest.mark.parametrize("messages", [("user", "hi"), [("user", "hi")]], ids=["alone", "in a list"])
async def test_langchains_shorthand_is_told_how_to_write_it(conv: Conversation, messages: object) -> None:
    with pytest.raises(Invalid, match=r'write \(\'user\', "…"\) as \{"role": \'user\', "content": "…"\}'):
        await conv.append(messages)


@pytest.mark.parametrize(
    "said",
    [
        says("before", name="Ann", id="m1"),
        {"type": "human", "data": {"content": "before", "name": "Ann", "id": "m1"}},
        {"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "before", "name": "Ann"}},
    ],
    ids=["openai", "langchain", "envelope"],
)
async def test_an_edit_by_a_text_changes_the_words_alone(conv: Conversation, said: dict[str, Any]) -> None:
    (stored,) = await conv.append(said)
    receipt = await conv.edit(stored.id, "after")
    edited = await conv.message(receipt.id)
    assert (edited.text, edited.role, edited.name) == ("after", "user", "Ann")
    assert (await conv.message(stored.id)).text == "before"


@pytest.mark.parametrize("conversations", ["long", b"long", 5], ids=str)
async def test_an_archive_of_one_conversation_takes_a_list(et: everthread.Everthread, conversations: Any) -> None:
    with pytest.raises(Invalid, match=r"conversations: must be a list of ids such as \["):
        [piece async for piece in et.export_archive(conversations=conversations)]
