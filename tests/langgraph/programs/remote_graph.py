"""A graph that is served, used from elsewhere as if it were here: alone, and as a node of another graph."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_sync_client

from everthread.langgraph import EverthreadSaver, open_sync


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def count(state: State) -> State:
    return {"messages": [AIMessage(f"{len(state['messages'])} so far")]}


graph = StateGraph(State).add_node(count).add_edge(START, "count").compile()


@contextmanager
def served(url: str) -> Iterator[str]:
    """The graph above, by `everthread serve`."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "langgraph.json")
        config.write_text(json.dumps({"dependencies": [], "graphs": {"counting": f"{Path(__file__)}:graph"}}))
        command = [sys.executable, "-m", "everthread", "serve", "--database", url, "--langgraph", str(config)]
        environment = {**os.environ, "EVERTHREAD_REQUIRE_KEY": "false"}
        with subprocess.Popen(
            [*command, "--port", "0", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        ) as server:
            assert server.stdout is not None
            try:
                yield json.loads(server.stdout.readline())["listening"]
            finally:
                server.terminate()


def main(url: str) -> None:
    with served(url) as address, get_sync_client(url=address) as client:
        remote: Any = RemoteGraph("counting", sync_client=client)
        thread = client.threads.create(thread_id="t", if_exists="do_nothing")
        config: Any = {"configurable": {"thread_id": thread["thread_id"]}}
        said = {"messages": [{"role": "user", "content": "hi"}]}
        for update in remote.stream(said, config, stream_mode="updates"):
            last = update["count"]["messages"][0]["content"]
        states = len(list(remote.get_state_history(config, limit=100)))
        remote.update_state(config, {"messages": [{"role": "ai", "content": "by hand"}]}, as_node="count")
        with open_sync("memory://") as et:
            outer: Any = (
                StateGraph(State).add_node("remote", remote).add_edge(START, "remote").compile(EverthreadSaver(et))
            )
            inside = outer.invoke(said, {"configurable": {"thread_id": "outer"}})["messages"]
        messages = len(remote.get_state(config).values["messages"])
        print(f"{last}; {states} states; {messages} messages; {inside[-1].text}")


if __name__ == "__main__":
    main(sys.argv[1])
