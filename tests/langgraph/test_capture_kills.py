"""Killed between `put` and `put_writes`: what was handed to the saver before is in the log, once."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import everthread
from everthread.langgraph import ArchivingSaver
from tests.forkserver import ForkServer
from tests.langgraph.captures import paths_of, texts_in
from tests.langgraph.test_archiving_saver import THREAD, echo


@pytest.mark.parametrize("word", ["the question", "the answer"])
@pytest.mark.parametrize("moment", ["archived, not forwarded", "forwarded, not yet put"])
async def test_a_kill_between_put_and_put_writes_loses_and_doubles_nothing(
    moment: str, word: str, forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    file = str(tmp_path / "checkpoints.db")
    child = forkserver.start("tests.langgraph.crash_script:die", moment=moment, word=word, url=durable_url, file=file)
    assert child.wait() == -signal.SIGKILL
    async with AsyncSqliteSaver.from_conn_string(file) as inner, everthread.open(durable_url) as et:
        graph: Any = echo(ArchivingSaver(inner, et))
        await graph.ainvoke(None, THREAD)
        await graph.ainvoke({"messages": ["three"]}, THREAD)
        said = await texts_in(await et.conversations.get("t"))
        # The saver itself may have lost the checkpoint of the question: then it went on without it, and the question
        # stands on the branch that was left.
        paths = await paths_of(await et.conversations.get("t"))
        assert any(path[:3] == ["one", "re: one", "two"] for path in paths)
        assert said[:2] + said[-2:] == ["one", "re: one", "three", "re: three"]
        assert all(len(path) == len(set(path)) for path in paths)
        assert word == "the question" or said[2:4] == ["two", "re: two"]
        history = await et.full_history("t", saver=inner)
        assert [message["content"] for message in history["values"]["messages"]] == said
        assert (await et.verify()).problems == ()
