"""A program that is killed while a saver hands on what it archived; started by `test_capture_kills`."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import everthread
from everthread.langgraph import ArchivingSaver
from tests.langgraph.test_archiving_saver import THREAD, echo


def die(moment: str, word: str, url: str, file: str) -> None:
    """Be killed in the second run, as the question or the answer was archived or also handed on."""

    class Dying(AsyncSqliteSaver):
        async def aput_writes(self, config: Any, writes: Any, *given: Any) -> None:
            said = "re: two" if word == "the answer" else "two"
            is_it = any(said in str(value) for channel, value in writes if channel == "messages")
            if is_it and moment == "archived, not forwarded":
                os.kill(os.getpid(), signal.SIGKILL)
            await super().aput_writes(config, writes, *given)
            if is_it:
                os.kill(os.getpid(), signal.SIGKILL)

    async def talk() -> None:
        async with AsyncSqliteSaver.from_conn_string(file) as inner, everthread.open(url) as et:
            await echo(ArchivingSaver(inner, et)).ainvoke({"messages": ["one"]}, THREAD)
        async with Dying.from_conn_string(file) as inner, everthread.open(url) as et:
            await echo(ArchivingSaver(inner, et)).ainvoke({"messages": ["two"]}, THREAD, durability="sync")

    asyncio.run(talk())
