"""A file that was damaged behind our back: a clear error or a report of problems, never silence, nor a stray error."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

import everthread
from everthread import Everthread, EverthreadError, Head, StoreDamaged, StoreError

CONVERSATIONS = ("first", "second")
NEEDLE = "needle-in-the-payload"
FLIPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A database file as it was, and what it says."""

    content: bytes
    heads: list[Head]
    raws: dict[str, list[bytes]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    path = tmp_path_factory.mktemp("sound") / "et.db"
    heads, raws = asyncio.run(write(f"sqlite:///{path}"))
    return Sound(content=path.read_bytes(), heads=heads, raws=raws)


async def write(url: str) -> tuple[list[Head], dict[str, list[bytes]]]:
    async with everthread.open(url) as et:
        for name in CONVERSATIONS:
            conv = await et.conversations.create(id=name, title=f"the {name}", metadata={"n": [1, {"a": None}]})
            for number in range(20):
                text = f"{NEEDLE} {number} " + "lorem ipsum " * (number * 3)
                await conv.append([{"role": "user", "content": text, "id": f"m{number}"}])
            await conv.append([{"role": "tool", "content": "large " * 20_000, "id": "large"}])
            await conv.pin("m3")
            await conv.edit("m15", {"role": "user", "content": "said otherwise", "id": "sibling"})
            await et.erase(conversation=name, message="m1")
        await et.search("lorem")
        return await et.heads(), {name: await raws_of(et, name) for name in CONVERSATIONS}


async def raws_of(et: Everthread, name: str) -> list[bytes]:
    conv = await et.conversations.get(name)
    return [message.raw async for branch in conv.branches() async for message in conv.messages(branch=branch)]


def damaged(folder: Path, content: bytes) -> str:
    path = folder / "et.db"
    path.write_bytes(content)
    return f"sqlite:///{path}"


async def finds_nothing_wrong(url: str, sound: Sound) -> bool:
    """Whether opening and verifying find nothing; any error but one of ours falls through."""
    try:
        async with everthread.open(url) as et:
            report = await et.verify(against=sound.heads)
            raws = {name: await raws_of(et, name) for name in CONVERSATIONS}
    except EverthreadError:
        return False
    assert not report.ok or raws == sound.raws, "other messages, and nobody says so"
    return report.ok


@pytest.mark.parametrize("seed", range(FLIPS))
def test_flipped_bytes_are_a_clear_error_or_change_nothing(seed: int, sound: Sound, tmp_path: Path) -> None:
    dice = random.Random(seed)
    content = bytearray(sound.content)
    for _ in range(dice.choice((1, 2, 16, 128))):
        content[dice.randrange(100, len(content))] ^= dice.randrange(1, 256)
    asyncio.run(finds_nothing_wrong(damaged(tmp_path, bytes(content)), sound))


def packed_payloads(sound: Sound, folder: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """By conversation and message, where in the file the payload begins, and its size; those that lie in one piece."""
    path = folder / "sound.db"
    path.write_bytes(sound.content)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT c.id, e.id, e.raw FROM entries e JOIN conversations c ON c.number = e.key >> 32 "
            "WHERE e.raw IS NOT NULL AND e.kind = 0 ORDER BY e.key"
        ).fetchall()
    assert all(raw[0] == 1 for _, _, raw in rows), "all are packed"
    return {(name, id): (sound.content.index(raw), len(raw)) for name, id, raw in rows if raw in sound.content}


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_of_a_payload_is_always_found(bit: int, sound: Sound, tmp_path: Path) -> None:
    frames = packed_payloads(sound, tmp_path)
    assert len(frames) >= 20
    for place, size in list(frames.values())[:: len(frames) // 5]:
        content = bytearray(sound.content)
        content[place + (size // 2 if bit % 2 else 0)] ^= 1 << bit
        assert not asyncio.run(finds_nothing_wrong(damaged(tmp_path, bytes(content)), sound)), place


def test_a_flipped_bit_of_a_payload_is_told_with_its_place(sound: Sound, tmp_path: Path) -> None:
    place, size = packed_payloads(sound, tmp_path)[CONVERSATIONS[0], "m7"]
    content = bytearray(sound.content)
    content[place + size // 2] ^= 1
    report = asyncio.run(verified(damaged(tmp_path, bytes(content)), []))
    assert [(problem.kind, problem.seq) for problem in report.problems] == [("chain", 8)]


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b'{"n":[1,', b'{"n":[1\xff'),
        (b'{"n":[1,', b'{"n":[1}'),
        (b"CREATE TABLE entries", b"CREATE TABLE \xff\xfe\xfd\xfc\xfb\xfa\xf9"),
    ],
    ids=["metadata that are no text", "metadata that are no JSON", "a schema that is no text"],
)
def test_rows_that_cannot_be_read_are_damage(was: bytes, becomes: bytes, sound: Sound, tmp_path: Path) -> None:
    url = damaged(tmp_path, sound.content.replace(was, becomes))
    with pytest.raises(StoreDamaged, match="restore a backup"):
        asyncio.run(verified(url, []))


@pytest.mark.parametrize("column", ["salt", "chain", "raw", "created_at", "flags"])
def test_a_column_of_another_type_is_damage(column: str, sound: Sound, tmp_path: Path) -> None:
    url = damaged(tmp_path, sound.content)
    spoil(tmp_path / "et.db", f"UPDATE entries SET {column} = 0.5 WHERE id = 'm7'")
    with pytest.raises(StoreDamaged, match="restore a backup"):
        asyncio.run(verified(url, []))


def test_a_damaged_payload_does_not_keep_others_from_being_found(sound: Sound, tmp_path: Path) -> None:
    url = damaged(tmp_path, sound.content)
    spoil(tmp_path / "et.db", "UPDATE entries SET raw = x'7bff' WHERE id = 'm7'")
    spoil(tmp_path / "et.db", "INSERT INTO words (words) VALUES ('delete-all')")
    spoil(tmp_path / "et.db", "INSERT INTO unindexed SELECT number, 0, 0 FROM conversations")
    assert len(asyncio.run(found(url, NEEDLE))) == 2 * (20 - 2), "all but the erased and the damaged ones"


def spoil(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


async def found(url: str, text: str) -> list[str]:
    async with everthread.open(url) as et:
        return [hit.id for hit in await et.search(text, limit=1000)]


@pytest.mark.parametrize("part", [0.999, 0.9, 0.5, 0.1, 0.01])
def test_a_file_that_was_cut_off_is_found(part: float, sound: Sound, tmp_path: Path) -> None:
    content = sound.content[: int(len(sound.content) * part)]
    assert not asyncio.run(finds_nothing_wrong(damaged(tmp_path, content), sound))


def test_an_emptied_file_is_a_new_database_whose_heads_are_missing(sound: Sound, tmp_path: Path) -> None:
    report = asyncio.run(verified(damaged(tmp_path, b""), sound.heads))
    assert {problem.kind for problem in report.problems} == {"missing"}


async def verified(url: str, heads: list[Head]) -> everthread.VerifyReport:
    async with everthread.open(url) as et:
        return await et.verify(against=heads)


@pytest.mark.parametrize(
    "content",
    [
        b"Dear diary,\nthis is no database.\n" * 100,
        random.Random(1).randbytes(8192),
        b"\x00" * 8192,
        b"SQLite format 3\x00",
    ],
    ids=["text", "noise", "zeros", "only the first line"],
)
def test_what_is_no_database_is_refused_and_left_alone(content: bytes, tmp_path: Path) -> None:
    url = damaged(tmp_path, content)
    with pytest.raises(StoreDamaged, match="restore a backup"):
        asyncio.run(verified(url, []))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("et.db", content)]


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        asyncio.run(verified(f"sqlite:///{tmp_path}", []))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="folder"):
        asyncio.run(verified(f"sqlite:///{tmp_path / 'file' / 'et.db'}", []))
