"""A child that writes until the disk is full, looks what is left, makes room and goes on."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import everthread
from everthread import Conversation, Everthread, NotFound, StoreError
from tests.crash.small_disk import SmallDisk, small_disk
from tests.forensics import packed
from tests.postgres import TEMPLATE, OwnServer

BATCH = 3
MESSAGE_BYTES = 20_000
_FRUGAL = {"max_wal_size": "32MB", "min_wal_size": "32MB", "shared_buffers": "16MB", "restart_after_crash": "off"}
ATTEMPTS = 3
"""How often the batch that found no room is tried again before there is any."""


def fill_sqlite(way: str, folder: str, report: str, size_bytes: int, ballast_bytes: int) -> None:
    """The whole story on a SQLite file; what happened is written as JSON to `report`."""
    with open(report, "w") as told:  # opened before there is any limit
        disk = small_disk(way, Path(folder), size_bytes=size_bytes, ballast_bytes=ballast_bytes)
        json.dump(asyncio.run(fill(f"sqlite:///{disk.folder / 'et.db'}", disk)), told)


def fill_postgres(folder: str, report: str, size_bytes: int, left_bytes: int) -> None:
    """The same under a server whose data directory is on the small disk."""
    with open(report, "w") as told:
        disk = small_disk("tmpfs", Path(folder), size_bytes=size_bytes, ballast_bytes=0)
        data = disk.folder / "server"
        data.mkdir()
        server = OwnServer(data, Path(report).with_name("postgres.log"), _FRUGAL)
        try:
            server.start()
            server.make_template()
            leave(disk, left_bytes)
            json.dump(asyncio.run(_fill_server(server, disk)), told)
        finally:
            server.end()


async def _fill_server(server: OwnServer, disk: SmallDisk) -> dict[str, Any]:
    """A server that cannot even write its log ahead stops; then it is started again once there is room."""
    told: dict[str, Any] = {}
    async with everthread.open(server.url(TEMPLATE)) as et:
        conv = await et.conversations.create(id="full")
        told["acknowledged"], told["problems"] = await _append_until_full(conv, 0)
        if "StoreGone" in told["problems"]:
            server.await_end()
        told["server survived"] = server.is_running()
        disk.make_room()
        if not told["server survived"]:
            server.start()
        told["seen"] = await _seen(et)
        told["with room"] = [receipt.new for receipt in await conv.append(batch(told["acknowledged"]))]
        told["seen again"] = await _seen(et)
    return told


async def fill(url: str, disk: SmallDisk) -> dict[str, Any]:
    """Fill up, look, make room, go on, fill up again, erase, open again."""
    told: dict[str, Any] = {}
    async with everthread.open(url) as et:
        conv = await et.conversations.create(id="full")
        told["acknowledged"], told["problems"] = await _append_until_full(conv, 0)
        told["seen"] = await _seen(et)
        disk.make_room()
        told["with room"] = [receipt.new for receipt in await conv.append(batch(told["acknowledged"]))]
        told["acknowledged again"], told["problems again"] = await _append_until_full(conv, told["acknowledged"] + 1)
        told["seen again"] = await _seen(et)
        told["erase"] = await _erase_first(et)
    async with everthread.open(url) as et:
        told["after opening"] = await _seen(et)
    return told


def erase_without_room(folder: str, report: str, size_bytes: int, left_bytes: int) -> None:
    """Erase when there is room to blank a text, but none to rewrite the file; then make room."""
    with open(report, "w") as told:
        disk = small_disk("tmpfs", Path(folder), size_bytes=size_bytes, ballast_bytes=0)
        url = f"sqlite:///{disk.folder / 'et.db'}"
        asyncio.run(_write(url, batches=size_bytes // 3 // (BATCH * MESSAGE_BYTES)))
        leave(disk, left_bytes)
        erased = asyncio.run(_erase(url))
        opened = asyncio.run(_open(url))
        disk.make_room()
        found = {**erased, "opened": opened, "opened with room": asyncio.run(_open(url)), "still in": _still_in(disk)}
        json.dump(found, told)


def leave(disk: SmallDisk, left_bytes: int) -> None:
    """Put on so much ballast that this room is left."""
    free = shutil.disk_usage(disk.folder).free
    (disk.folder / "ballast").write_bytes(bytes(free - left_bytes))


async def _write(url: str, batches: int) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(id="full")
        for number in range(batches):
            await conv.append(batch(number))


async def _erase(url: str) -> dict[str, Any]:
    async with everthread.open(url, worker=False) as et:
        report = await et.erase(conversation="full", message="m0")
        return {"cannot reach": list(report.cannot_reach), "seen": await _seen(et)}


async def _open(url: str) -> dict[str, Any]:
    async with everthread.open(url, worker=False) as et:
        return await _seen(et)


def _still_in(disk: SmallDisk) -> list[str]:
    (first, *_) = batch(0)
    frame = packed(json.dumps(first, separators=(",", ":")).encode(), first["id"])
    pieces = [frame[start : start + 60] for start in range(100, len(frame) - 60, 300)]
    return [path.name for path in disk.folder.iterdir() if any(one in path.read_bytes() for one in pieces)]


def batch(number: int) -> list[dict[str, str]]:
    """A batch of messages whose text does not compress, the same for the same number."""
    dice = random.Random(number)
    return [
        {"role": "user", "id": f"m{number * BATCH + position}", "content": dice.randbytes(MESSAGE_BYTES // 2).hex()}
        for position in range(BATCH)
    ]


async def _append_until_full(conv: Conversation, acknowledged: int) -> tuple[int, list[str]]:
    """How many batches stand acknowledged at the end, and the errors that the next one met each time."""
    problems: list[str] = []
    while len(problems) < ATTEMPTS:
        try:
            await conv.append(batch(acknowledged))
        except StoreError as problem:
            problems.append(type(problem).__name__)
        else:
            acknowledged += 1
    return acknowledged, problems


async def _seen(et: Everthread) -> dict[str, Any]:
    """How many messages history shows, each of them just as it was sent, and what `verify` says."""
    conv = await et.conversations.get("full")
    count = 0
    async for message in conv.messages():
        number, position = divmod(message.seq - 1, BATCH)
        assert message.payload == batch(number)[position]
        count += 1
    report = await et.verify()
    return {"messages": count, "entries": report.entries, "ok": report.ok}


async def _erase_first(et: Everthread) -> dict[str, Any]:
    """Erasing needs room too; without it the text is all there still, or not to be read any more."""
    conv = await et.conversations.get("full")
    try:
        await et.erase(conversation="full", message="m0")
        outcome = "done"
    except StoreError as problem:
        outcome = type(problem).__name__
    try:
        return {"outcome": outcome, "is readable": (await conv.message("m0")).payload == batch(0)[0]}
    except NotFound:
        return {"outcome": outcome, "is readable": False}
