"""Payloads as they stand in a SQLite file: packed, and always the same again."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everthread
from everthread.adapters.stores.sqlite import files as database_files
from everthread.adapters.stores.sqlite.compression import add_compression_functions
from everthread.adapters.stores.sqlite.statements import WAL_BYTES
from tests.forensics import packed, readable, unpacked

MESSAGE = {"role": "assistant", "content": "We meet on Tuesday, and Ann brings the cake.", "id": "01999a2b-77aa-7c1d"}
RAW = json.dumps(MESSAGE, separators=(",", ":")).encode()
ID = MESSAGE["id"]


@pytest.fixture
def taught() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        add_compression_functions(connection)
        yield connection


def there_and_back(raw: bytes, id: str) -> bytes:
    return unpacked(packed(raw, id), id)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), json_values), st.text(min_size=1), st.sampled_from(["utf-8", "utf-16", "utf-32-be"]))
def test_what_was_packed_comes_back(payload: dict[str, object], id: str, encoding: str) -> None:
    id = id.encode("utf-8", "replace").decode()
    for raw in (json.dumps(payload), f" \n{json.dumps({**payload, 'id': id})}"):
        assert there_and_back(raw.encode(encoding), id) == raw.encode(encoding)


@pytest.mark.parametrize("id", ["a", "e", '"', "content", "角色", "\x01", "x" * 128, ID])
def test_an_id_may_stand_anywhere_in_its_payload(id: str) -> None:
    for raw in (RAW, json.dumps({**MESSAGE, "id": id, "content": [id, id]}, ensure_ascii=False).encode()):
        assert there_and_back(raw, id) == raw


def test_a_message_takes_less_room_packed_and_never_more() -> None:
    assert len(packed(RAW, ID)) < 0.6 * len(RAW)
    assert packed(b"{}", "x") == b"{}"
    noise = b'{"a":"' + os.urandom(200).hex().encode() + b'"}'
    assert len(packed(noise, "x")) < len(noise)


@pytest.mark.parametrize("raw", [RAW, b" " + RAW, b"\xef\xbb\xbf" + RAW, json.dumps(MESSAGE).encode("utf-16-be")])
def test_what_an_earlier_version_wrote_is_read_as_it_stands(raw: bytes) -> None:
    assert unpacked(raw, ID) == raw


@given(st.binary(), st.integers(0, 7), st.data())
def test_what_is_damaged_never_fails_to_be_read(noise: bytes, bit: int, data: st.DataObject) -> None:
    """Who reads it sees that it is no payload, or that it is another one."""
    frame = bytearray(packed(RAW, ID))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= 1 << bit
    for damaged in (bytes(frame), bytes(frame)[: len(frame) // 2], b"\x01" + noise, b"\x02" + noise, noise):
        unpacked(damaged, ID)


@pytest.mark.parametrize("value", [0.5, 7, "text", b"", None])
def test_a_column_of_another_type_is_handed_out_as_it_is(value: object, taught: sqlite3.Connection) -> None:
    for id in (ID, None, 3):
        assert taught.execute("SELECT unpacked(?, ?)", (value, id)).fetchone() == (value,)


def test_the_dictionary_never_changes() -> None:
    """Nothing that was packed with it could be read. Another one is a file and a first byte of its own."""
    content = (files("everthread.adapters.stores.sqlite") / "payloads-1.dict").read_bytes()
    assert sha256(content).hexdigest() == "dfd84b5d6270a9cef2ab340cf90f6f573c2d320b5b5a5f9f3aa87b27b446d923"


def test_connections_pack_and_unpack_beside_each_other() -> None:
    raws = [json.dumps({**MESSAGE, "content": f"{number} " * (number % 700)}).encode() for number in range(2_000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda raw: there_and_back(raw, ID), raws)) == raws


async def test_a_file_with_payloads_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'et.db'}"
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await conv.append(
            [{"role": "user", "content": f"said {number} long ago", "id": f"m{number}"} for number in range(9)]
        )
        await conv.append([{"role": "user", "content": "large " * 20_000, "id": "large"}])
    with closing(sqlite3.connect(tmp_path / "et.db")) as connection, connection:
        add_compression_functions(connection)
        connection.execute("UPDATE entries SET raw = unpacked(raw, id)")
        connection.execute("UPDATE payloads SET body = unpacked(body, 'large')")
    assert b"long ago" in (tmp_path / "et.db").read_bytes()
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get("c")
        await conv.append([{"role": "user", "content": "said now", "id": "new"}])
        assert [m.text async for m in conv.messages()][-3:] == ["said 8 long ago", "large " * 20_000, "said now"]
        assert len(await et.search("said")) == 10
        assert (await et.verify()).ok
        await et.erase(conversation="c", message="m3")
        assert b"said 3 long" not in readable((tmp_path / "et.db").read_bytes())


async def test_stats_tell_the_bytes_of_the_payloads_as_they_came(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([MESSAGE, {"role": "user", "content": "large " * 20_000}])
        raws = [message.raw async for message in conv.messages()]
        assert (await et.stats())["payload_bytes"] == sum(map(len, raws))


@pytest.mark.parametrize("page_bytes", [1024, 4096])
def test_the_write_ahead_log_grows_as_long_whatever_the_pages_of_the_file(page_bytes: int, tmp_path: Path) -> None:
    """Files of earlier versions have pages of 4 KB, and keep them."""
    path = tmp_path / "et.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"PRAGMA page_size = {page_bytes}")
        made.execute("VACUUM")
    with closing(database_files.connect(path)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (page_bytes,)
        (pages,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    assert pages * page_bytes == WAL_BYTES
