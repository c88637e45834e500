"""Our own JSON as it stands in a database: packed, and always the same again."""

from __future__ import annotations

import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everthread
from everthread.adapters.stores.packed_records import pack, unpack
from everthread.context import manifest as manifests
from everthread.core.ids import new_id
from tests.forensics import readable

RECORD = {
    "question_id": new_id(), "answer_id": new_id(), "kind": "turn", "assistant": None, "model": None,
    "question_seq": 401, "error": None, "metadata": {}, "usage": {"input_tokens": 900, "output_tokens": 76},
}  # fmt: skip

ids = st.uuids().map(str) | st.binary(min_size=8, max_size=8).map(bytes.hex) | st.binary(min_size=32, max_size=32).map(
    bytes.hex
)  # fmt: skip
documents = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**53) | st.text() | ids,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | ids, inner),
)


@given(documents, st.lists(ids, max_size=4))
def test_what_was_packed_comes_back(document: object, known: list[str]) -> None:
    for written in (json.dumps([document, known]), json.dumps([document, known], ensure_ascii=False, indent=1)):
        raw = written.encode("utf-8", "surrogatepass")
        assert unpack(pack(raw, known), known) == raw


def test_a_record_takes_a_third_of_its_room_and_never_more() -> None:
    raw = orjson.dumps(RECORD)
    assert len(pack(raw)) < len(raw) / 3
    assert len(pack(raw, [str(RECORD["question_id"]), str(RECORD["answer_id"])])) < len(raw) / 6
    assert pack(b"[]") == b"[]"


def test_an_id_in_capitals_or_within_other_text_is_kept_as_it_is() -> None:
    id = new_id()
    for text in (id.upper(), f"x{id}y", id[:-1], f"{id}{id}", UUID(id).hex, "ABCDEF0123456789", "0" * 16, "0" * 64):
        raw = orjson.dumps({"id": text, "other": id, "same": [text, text]})
        assert orjson.loads(unpack(pack(raw, [id]), [id])) == orjson.loads(raw)


@given(st.binary(), st.integers(0, 7), st.data())
def test_what_is_damaged_never_fails_to_be_unpacked(noise: bytes, bit: int, data: st.DataObject) -> None:
    """Who reads it sees that it is no JSON, or that it is another document."""
    frame = bytearray(pack(orjson.dumps(RECORD)))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= 1 << bit
    for damaged in (bytes(frame), bytes(frame)[: len(frame) // 2], b"\x03" + noise, noise):
        unpack(damaged)


def test_threads_pack_and_unpack_beside_each_other() -> None:
    raws = [orjson.dumps({**RECORD, "error": f"{number} " * (number % 700)}) for number in range(2_000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda raw: unpack(pack(raw)), raws)) == raws


def test_the_dictionary_never_changes() -> None:
    """Nothing that was packed with it could be read. Another one is a file and a first byte of its own."""
    content = (files("everthread.adapters.stores") / "records-1.dict").read_bytes()
    assert sha256(content).hexdigest() == "6818733e8aa3264c6b5b6df7d563abfcef84775f55e7a00f03ad213a2c33e490"


@pytest.mark.parametrize("refs", [(), ((3, 3),), ((1, 1), (2, 2), (3, 9), (4, 4), (5, 5), (6, 6), (9, 9), (12, 14))])
async def test_a_window_is_kept_by_its_runs(refs: tuple[tuple[int, int], ...]) -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append({"role": "user", "content": "hello"})
        made = (await conv.context()).manifest
    fields = {name: getattr(made, name) for name in made.__slots__}
    whole = manifests.Manifest(**{**fields, "window": refs})
    assert manifests.load(manifests.dump(whole)) == whole
    assert manifests.load(orjson.dumps(whole)) == whole, "as an earlier version wrote it"


async def test_a_file_with_records_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'et.db'}"
    kept: list[str] = []
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(id="c")
        for number in range(30):
            await conv.append({"role": "user", "content": f"number {number} costs {number} euros", "id": f"m{number}"})
            kept.append(await conv.keep_context(await conv.context(system="be brief")))
        await conv.compact()
        summary = await conv.summary()
    with closing(sqlite3.connect(tmp_path / "et.db")) as connection, connection:
        whole = connection.execute("SELECT id, manifest FROM manifests ORDER BY id").fetchall()
        assert [id for id, _ in whole] == sorted(kept)
        connection.create_function("unpacked_record", 1, lambda body: unpack(bytes(body)))
        connection.execute("UPDATE compactions SET record = unpacked_record(record)")
        connection.execute("UPDATE manifests SET manifest = unpacked_record(manifest)")
    assert b'"summary"' in (tmp_path / "et.db").read_bytes()
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get("c")
        assert await conv.summary() == summary
        kept.append(await conv.keep_context(await conv.context(system="be brief")))
        for id in kept:
            assert (await conv.seen_context(id)).is_same


async def test_a_summary_that_is_there_is_found_in_the_bytes_of_its_file(tmp_path: Path) -> None:
    """Else the tests of erasing, which look for it there, could not fail."""
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        for number in range(200):
            code = sha256(b"%d" % number).hexdigest()[:12].upper()
            await conv.append({"role": "user", "content": f"Order {number} of Xylophonquartz{code} is due on May 9."})
        await conv.compact()
        summary = await conv.summary() or ""
        assert len(pack(orjson.dumps(summary))) > 1_024, "more than a page holds"
    found = readable((tmp_path / "et.db").read_bytes())
    assert all(name.encode() in found for name in re.findall(r"Xylophonquartz\w+", summary))
