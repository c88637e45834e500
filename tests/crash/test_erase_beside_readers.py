"""Erasing while another process reads an old state of the file: the text is unreadable at once, and gone in the end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import everthread
from everthread import NotFound
from everthread.adapters.stores.sqlite.erase import HELD_PAGES
from tests.forensics import readable
from tests.forkserver import Child, ForkServer

SECRET = "q77-unlikely-word-77q"


def start_reader(forkserver: ForkServer, path: Path) -> tuple[Child, Path]:
    """A reader that holds its snapshot now, and the file that makes it stop."""
    reading, stop = path.parent / "reading", path.parent / "stop"
    reader = forkserver.start("tests.crash.reader:read_for_long", path=str(path), reading=str(reading), stop=str(stop))
    while not reading.exists():
        assert reader.is_at_work(), reader.said()
        time.sleep(0.01)
    return reader, stop


def files_with_secret(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if SECRET.encode() in readable(path.read_bytes())]


async def write(url: str) -> None:
    async with everthread.open(url) as et:
        conv = await et.conversations.create(id="c")
        await conv.append(
            [{"role": "user", "content": f"{SECRET} {number}", "id": f"m{number}"} for number in range(99)]
        )
        await et.search(SECRET)


async def erase(url: str, forkserver: ForkServer, path: Path) -> tuple[Child, Path]:
    """Erase beside a reader; the caller is told that the bytes are there still, and nobody is shown them."""
    async with everthread.open(url) as et:
        reader, stop = start_reader(forkserver, path)
        report = await et.erase(conversation="c")
        assert HELD_PAGES in report.cannot_reach
        with pytest.raises(NotFound):
            await et.conversations.get("c")
        assert not await et.search(SECRET)
        other = await et.conversations.create(id="other")
        await other.append([{"role": "user", "content": "work goes on"}])
        assert (await et.verify()).ok
    return reader, stop


async def open_and_close(url: str, folder: Path) -> list[str]:
    async with everthread.open(url) as et:
        assert (await et.verify()).ok
        return files_with_secret(folder)


def test_an_erase_beside_a_reader_is_finished_by_the_next_opening(forkserver: ForkServer, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    path = folder / "et.db"
    url = f"sqlite:///{path}"
    asyncio.run(write(url))
    reader, stop = asyncio.run(erase(url, forkserver, path))
    assert asyncio.run(open_and_close(url, folder)), "the reader is still there: opening must not wait for it"
    stop.touch()
    assert reader.wait() == 0, reader.said()
    assert asyncio.run(open_and_close(url, folder)) == []
