"""An agent with a structured answer, over several turns and processes."""

from __future__ import annotations

import sys
from typing import Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from pydantic import BaseModel, Field

from everthread.langgraph import EverthreadSaver
from everthread.testing import Reply, ScriptedModel


class Address(BaseModel):
    city: str


class Contact(BaseModel):
    """Somebody to write to."""

    name: str = Field(min_length=1)
    address: Address


def main(url: str) -> None:
    call = ("Contact", {"name": "Ann", "address": {"city": "Kunming"}})
    with EverthreadSaver.from_url(url) as saver:
        model = ScriptedModel([Reply(calls=[call])] * 2)
        agent: Any = create_agent(model, response_format=ToolStrategy(Contact), checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "contacts"}}
        for question in ("Whom do I write to?", "And again?"):
            answer = agent.invoke({"messages": [("user", question)]}, config)
            assert answer["structured_response"] == Contact(name="Ann", address=Address(city="Kunming"))
        print(len(answer["messages"]), "messages;", repr(agent.get_state(config).values["structured_response"]))


main(sys.argv[1])
