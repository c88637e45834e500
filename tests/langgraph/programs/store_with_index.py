"""Long-term memory: a node puts items into the store, and finds them again by meaning."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypedDict

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from everthread.langgraph import EverthreadSaver, EverthreadStore, open_sync


class Letters(Embeddings):
    """Texts are near when they share letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def remember(state: State, runtime: Runtime[Any]) -> Any:
    assert runtime.store is not None
    text = state["messages"][-1].text
    found = runtime.store.search(("memories",), query=text, limit=1)
    runtime.store.put(("memories",), str(len(state["messages"])), {"text": text})
    return {"messages": [AIMessage(found[0].value["text"] if found and found[0].score else "nothing")]}


def main(url: str) -> None:
    with open_sync(url) as et:
        store = EverthreadStore(et, index={"dims": 26, "embed": Letters()})
        builder = StateGraph(State).add_node(remember).add_edge(START, "remember")
        graph: Any = builder.compile(checkpointer=EverthreadSaver(et), store=store)
        config: Any = {"configurable": {"thread_id": "memories"}}
        for text in ("green tea", "zebra zoo", "a zebra"):
            answer = graph.invoke({"messages": [("user", text)]}, config)["messages"][-1].text
        print("nearest to 'a zebra':", answer)


main(sys.argv[1])
