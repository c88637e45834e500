"""A child that works on a file which, after a while, may only be read."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
from pathlib import Path
from typing import Any

import everthread
from everthread.core.errors import StoreError
from tests.crash.small_disk import Tmpfs, small_disk

_MS_RDONLY, _MS_REMOUNT = 0x1, 0x20
MEGABYTE = 1 << 20


def work_and_lose_the_right_to_write(folder: str, report: str) -> None:
    """What happened is written as JSON to `report`, and the database's bytes before and after."""
    with open(report, "w") as told:  # elsewhere
        disk = small_disk("tmpfs", Path(folder), size_bytes=8 * MEGABYTE, ballast_bytes=0)
        assert isinstance(disk, Tmpfs)
        json.dump(asyncio.run(_story(disk.folder)), told)


async def _story(folder: Path) -> dict[str, Any]:
    file = folder / "et.db"
    url = f"sqlite:///{file}"
    async with everthread.open(url, worker=False, embedder=None) as et:
        conv = await et.conversations.create(id="c")
        await conv.append({"role": "user", "content": "hello"})
    before = file.read_bytes()
    _remount(folder, _MS_RDONLY)
    refused = await _problem(url)
    is_unchanged = file.read_bytes() == before
    _remount(folder, 0)
    async with everthread.open(url, worker=False, embedder=None) as et:
        texts = [message.text async for message in (await et.conversations.get("c")).messages()]
        is_sound = (await et.verify()).ok
    return {"refused": refused, "is unchanged": is_unchanged, "texts": texts, "is sound": is_sound}


async def _problem(url: str) -> str:
    try:
        async with everthread.open(url, worker=False, embedder=None) as et:
            await (await et.conversations.get("c")).append({"role": "user", "content": "lost"})
    except StoreError as problem:
        return str(problem)
    return "it was stored"


def _remount(folder: Path, flags: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    if system.mount(None, os.fsencode(folder), None, _MS_REMOUNT | flags, None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
