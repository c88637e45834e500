"""The library works without the packages of the extras `cli` and `metrics`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_EXTRAS = "import sys; sys.modules.update(dict.fromkeys(['typer', 'rich', 'prometheus_client']))\n"

CONVERSATION = """
import asyncio, everthread
from everthread.core.errors import MissingExtra

async def main(url):
    async with everthread.open(url) as et:
        conversation = await et.conversations.create()
        await conversation.append([{"role": "user", "content": f"message {n}"} for n in range(60)])
        assert [message.text async for message in conversation.messages(limit=2)] == ["message 0", "message 1"]
        await conversation.compact()  # its events are logged, and not counted
        assert et.runtime.listener.recent
        try:
            et.metrics
        except MissingExtra as problem:
            print(problem)

asyncio.run(main(sys.argv[1]))
"""

SAVER = """
from langgraph.graph import START, MessagesState, StateGraph
from everthread.langgraph import EverthreadSaver

builder = StateGraph(MessagesState)
builder.add_node("answer", lambda state: {"messages": [("ai", "hello")]})
builder.add_edge(START, "answer")
config = {"configurable": {"thread_id": "t1"}}
with EverthreadSaver.from_url(sys.argv[1]) as saver:
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [("user", "hi")]}, config)
    print([message.content for message in graph.get_state(config).values["messages"]])
"""

COMMAND_LINE = """
from everthread.cli import main
main()
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_EXTRAS + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("program", "output"),
    [
        (
            CONVERSATION,
            "metrics need an extra: pip install 'everthread[metrics]' (in a clone: pip install '.[metrics]')\n",
        ),
        (SAVER, "['hi', 'hello']\n"),
    ],
    ids=["conversation", "saver"],
)
def test_the_library_needs_no_command_line_and_no_metrics(program: str, output: str, tmp_path: Path) -> None:
    ran = run(program, f"sqlite:///{tmp_path / 'et.db'}")
    assert (ran.returncode, ran.stdout) == (0, output), ran.stderr


def test_the_command_line_names_its_extra() -> None:
    ran = run(COMMAND_LINE, "ls")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "everthread: the command line needs an extra: pip install 'everthread[cli]'\n"


@pytest.mark.parametrize("room", ["langgraph", "langchain"])
def test_an_integration_names_its_extra(room: str) -> None:
    ran = run(f"sys.modules['langchain_core'] = None\nimport everthread.{room}")
    assert ran.returncode == 1
    assert f"everthread.{room} needs an extra: pip install 'everthread[{room}]'" in ran.stderr.splitlines()[-1]
