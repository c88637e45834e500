"""The saver of our own agent: what the agent says is logged by the agent, never by its checkpoints."""

from __future__ import annotations

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from everthread import Everthread
from everthread.adapters.checkpoints.bridge import Bridge
from everthread.adapters.checkpoints.saver import LogSaver


async def test_a_window_that_a_stopped_turn_wrote_is_not_logged_again(et: Everthread) -> None:
    saver = LogSaver(et, bridge=Bridge.here(), keeps_turns=False)
    began: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    stopped = await saver.aput(began, empty_checkpoint(), {"source": "input", "step": -1, "parents": {}}, {})
    await saver.aput_writes(stopped, [("messages", [HumanMessage("Where were we?")])], "task")
    await saver.aput(stopped, empty_checkpoint(), {"source": "input", "step": 0, "parents": {}}, {})
    assert not list(await (await et.conversations.get("t")).tail(5))
