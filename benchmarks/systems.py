"""The systems that are measured: everthread, and what the harness beside the project brings."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import everthread
from benchmarks import SHARED
from everthread import Conversation, Everthread

R = TypeVar("R")
HARNESS = SHARED / "bench" / "perf"

Turn = list[dict[str, Any]]


class Ours:
    """everthread, on SQLite unless told, driven as the harness drives every system: from outside its event loop."""

    name = "everthread"
    concurrency = "async"

    def __init__(self, workdir: str, url: str | None = None) -> None:
        self.url = url or f"sqlite:///{workdir}/et.db"
        self.conversations: dict[str, Conversation] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def open(self) -> None:
        self._thread.start()
        opening = everthread.open(self.url, worker=False)  # the log alone, no summaries
        self.et: Everthread = self.run_async(opening.__aenter__())

    def close(self) -> None:
        self.run_async(self.et.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def run_async(self, work: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def conversation(self, thread: str) -> Conversation:
        if thread not in self.conversations:
            self.conversations[thread] = await self.et.conversations.ensure(thread)
        return self.conversations[thread]

    def prepare(self, turn: Turn) -> Turn:
        return turn

    async def aappend(self, thread: str, turn: Turn) -> None:
        await (await self.conversation(thread)).append(turn)

    def append(self, thread: str, turn: Turn) -> None:
        self.run_async(self.aappend(thread, turn))

    def seed(self, thread: str, turns: Sequence[Turn]) -> None:
        async def work() -> None:
            for start in range(0, len(turns), 100):
                await self.aappend(thread, [message for turn in turns[start : start + 100] for message in turn])
            await self.acatch_up()

        self.run_async(work())

    async def acatch_up(self) -> None:
        """Have everything indexed: otherwise the writer would do it while another system is being measured."""
        await self.et.search("anything")

    def load_page(self, thread: str, limit: int) -> int:
        async def work() -> int:
            return len([message.payload for message in await (await self.conversation(thread)).tail(limit)])

        return self.run_async(work())


def with_harness() -> bool:
    """Make the harness's `perf` package importable; say so when it is absent."""
    if not HARNESS.is_dir():
        print(f"(no harness at {HARNESS.name}: the bare databases and the peers are left out)")
        return False
    sys.path.insert(0, str(HARNESS))
    return True


def named(name: str) -> Any:
    """One of the harness's systems, opened in a folder of its own; None when what it needs is not installed."""
    from perf.systems import MODULES, REGISTRY  # noqa: PLC0415 - importable only after with_harness()

    try:
        __import__(f"perf.systems.{MODULES[name.partition('-')[0]]}")
    except ImportError as problem:
        print(f"({name} is left out: {problem})")
        return None
    system = REGISTRY[name](tempfile.mkdtemp(prefix="bench-"), None)
    system.open()
    return system
