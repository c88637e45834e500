"""What happens to conversations of agents: scenes played by a scripted model, and all that was really said in them.

Each scene is given a rig (which saver, which middleware, which way of running) and tells the truth afterwards: the
paths that the conversation took, each as the list of its texts, the one that is shown last; and what subagents said.
Every text is said once, so texts tell messages apart without looking at ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from everthread.testing import Reply, ScriptedModel

LARGE = 180_000
"""Characters of a tool's result that deepagents does not leave in its state."""

Config = dict[str, Any]
Play = Callable[["Rig"], Awaitable["Truth"]]


class Crash(RuntimeError):
    """What a scripted model dies of."""


@dataclass(slots=True)
class Rig:
    """How a scene is played: what keeps its checkpoints, and what listens."""

    saver: BaseCheckpointSaver[Any]
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = ()
    run: Callable[[Any, Any, Config, Mapping[str, Any]], Awaitable[Any]] | None = None
    """Runs a graph on an input with a config and options; `ainvoke` where there is none."""
    agent: Any = None
    """The graph that the scene made."""
    config: Config = field(default_factory=lambda: {"configurable": {"thread_id": "scene"}, "recursion_limit": 500})

    async def ask(self, given: Any, config: Config | None = None, **options: Any) -> Any:
        if self.run is not None:
            return await self.run(self.agent, given, config or self.config, options)
        return await self.agent.ainvoke(given, config or self.config, **options)

    async def say(self, *texts: str, **options: Any) -> Any:
        """A turn of the user's."""
        return await self.ask({"messages": [HumanMessage(text) for text in texts]}, **options)


@dataclass(slots=True)
class Truth:
    """All that was said."""

    paths: list[list[str]]
    """Each way that the conversation took; the last is the one that is shown."""
    subagents: list[list[str]] = field(default_factory=list)

    @property
    def texts(self) -> set[str]:
        return {text for path in (*self.paths, *self.subagents) for text in path}


class Script:
    """A model that writes down what it says, and tools that do."""

    def __init__(self, answer: Callable[[Script, Sequence[BaseMessage]], Reply | Exception]) -> None:
        self.said: list[str] = []
        self._answer = answer
        self.model = ScriptedModel(self._reply)

    def _reply(self, messages: Sequence[BaseMessage]) -> Reply | Exception:
        reply = self._answer(self, messages)
        if isinstance(reply, Reply) and reply.error is None:
            self.said.append(reply.text)
        return reply

    def number(self) -> int:
        """How much was said so far: makes every text a new one."""
        return len(self.said)

    def tool(self, delay: Callable[[str], float] = lambda word: 0.0, size: int = 0) -> BaseTool:
        @tool
        async def look_up(word: str) -> str:
            """What is known about a word."""
            await asyncio.sleep(delay(word))
            text = f"known about {word}" + "".join(f"\n{line} of {word}" for line in range(size // 20))
            self.said.append(text)
            return text

        return look_up


def _two_steps(script: Script, messages: Sequence[BaseMessage]) -> Reply:
    """A tool for every question, then an answer."""
    if isinstance(messages[-1], ToolMessage):
        return Reply(text=f"answer {script.number()}")
    return Reply(text=f"let me see {script.number()}", calls=[("look_up", {"word": f"w{script.number()}"})])


def _summarises(trigger: int = 10, keep: int = 4) -> SummarizationMiddleware[Any, Any]:
    model = ScriptedModel(lambda messages: "in short")
    return SummarizationMiddleware(model, trigger=("messages", trigger), keep=("messages", keep))


# -- LangChain -------------------------------------------------------------------------------------------------------


async def summaries_over_many_turns(rig: Rig) -> Truth:
    script = Script(_two_steps)
    rig.agent = create_agent(
        script.model, [script.tool()], middleware=[_summarises(), *rig.middleware], checkpointer=rig.saver
    )
    for number in range(12):
        script.said.append(f"question {number}")
        await rig.say(f"question {number}")
    return Truth([script.said])


async def a_summary_inside_one_long_run(rig: Rig) -> Truth:
    def answer(script: Script, messages: Sequence[BaseMessage]) -> Reply:
        if script.number() > 60:
            return Reply(text="done")
        return Reply(text=f"step {script.number()}", calls=[("look_up", {"word": f"w{script.number()}"})])

    script = Script(answer)
    rig.agent = create_agent(
        script.model, [script.tool()], middleware=[_summarises(), *rig.middleware], checkpointer=rig.saver
    )
    script.said.append("go on for long")
    await rig.say("go on for long")
    return Truth([script.said])


async def a_model_that_crashes(rig: Rig) -> Truth:
    crashes = iter([True])

    def answer(script: Script, messages: Sequence[BaseMessage]) -> Reply | Exception:
        if isinstance(messages[-1], ToolMessage) and next(crashes, False):
            return Crash("the provider is down")
        return _two_steps(script, messages)

    script = Script(answer)
    rig.agent = create_agent(script.model, [script.tool()], middleware=[*rig.middleware], checkpointer=rig.saver)
    script.said.append("first question")
    try:
        await rig.say("first question")
    except Crash:
        script.said.append("are you there?")
        await rig.say("are you there?")
    return Truth([script.said])


async def an_interrupt_with_an_edit(rig: Rig) -> Truth:
    script = Script(_two_steps)
    asks = HumanInTheLoopMiddleware(interrupt_on={"look_up": {"allowed_decisions": ["approve", "edit"]}})
    rig.agent = create_agent(script.model, [script.tool()], middleware=[asks, *rig.middleware], checkpointer=rig.saver)
    script.said.append("a question")
    await rig.say("a question")
    edited = {"type": "edit", "edited_action": {"name": "look_up", "args": {"word": "another"}}}
    await rig.ask(Command(resume={"decisions": [edited]}))
    noted = [text for text in await texts_in_state(rig) if text.endswith("known about another")]
    return Truth([[*script.said[:2], *noted, script.said[-1]]])  # the middleware writes a note before the result


async def an_answer_made_again(rig: Rig) -> Truth:
    script = Script(_two_steps)
    rig.agent = create_agent(script.model, [script.tool()], middleware=[*rig.middleware], checkpointer=rig.saver)
    for text in ("first question", "second question"):
        script.said.append(text)
        await rig.say(text)
    first = list(script.said)
    async for snapshot in rig.agent.aget_state_history(rig.config):
        if snapshot.next and snapshot.values["messages"][-1].text == "second question":
            await rig.ask(None, snapshot.config)
            break
    place = first.index("second question") + 1
    return Truth([first, first[:place] + script.said[len(first) :]])


async def messages_removed_by_hand(rig: Rig) -> Truth:
    script = Script(_two_steps)
    rig.agent = create_agent(script.model, [script.tool()], middleware=[*rig.middleware], checkpointer=rig.saver)
    for number in range(3):
        script.said.append(f"question {number}")
        await rig.say(f"question {number}")
        state = await rig.agent.aget_state(rig.config)
        gone = [RemoveMessage(id=message.id) for message in state.values["messages"][:3]]
        await rig.agent.aupdate_state(rig.config, {"messages": gone})
    return Truth([script.said])


async def saved_only_at_the_exit(rig: Rig) -> Truth:
    script = Script(_two_steps)
    rig.agent = create_agent(
        script.model, [script.tool()], middleware=[_summarises(6, 2), *rig.middleware], checkpointer=rig.saver
    )
    for number in range(4):
        script.said.append(f"question {number}")
        await rig.say(f"question {number}", durability="exit")
    return Truth([script.said])


async def tools_that_finish_in_reverse(rig: Rig) -> Truth:
    def answer(script: Script, messages: Sequence[BaseMessage]) -> Reply:
        if isinstance(messages[-1], ToolMessage):
            return Reply(text=f"answer {script.number()}")
        words = [f"slow{script.number()}", f"quick{script.number()}"]
        return Reply(text=f"both {script.number()}", calls=[("look_up", {"word": word}) for word in words])

    script = Script(answer)
    look_up = script.tool(delay=lambda word: 0.05 if word.startswith("slow") else 0.0)
    rig.agent = create_agent(
        script.model, [look_up], middleware=[_summarises(), *rig.middleware], checkpointer=rig.saver
    )
    truth: list[str] = []
    for number in range(5):
        start = script.number()
        await rig.say(f"question {number}")
        both, quick, slow, answered = script.said[start:]
        truth += [f"question {number}", both, slow, quick, answered]
    return Truth([truth])


# -- deepagents ------------------------------------------------------------------------------------------------------


def _deep(rig: Rig, script: Script, tools: Sequence[BaseTool], **options: Any) -> Any:
    summarises = DeepSummarization(
        ScriptedModel(lambda messages: "in short"),
        backend=StateBackend(),
        trigger=("messages", 10),
        keep=("messages", 4),
    )
    return create_deep_agent(
        script.model, tools, middleware=[summarises, *rig.middleware], checkpointer=rig.saver, **options
    )


async def deepagents_with_summaries(rig: Rig) -> Truth:
    script = Script(_two_steps)
    rig.agent = _deep(rig, script, [script.tool()])
    for number in range(8):
        script.said.append(f"question {number}")
        await rig.say(f"question {number}")
    return Truth([script.said])


async def deepagents_with_subagents(rig: Rig) -> Truth:
    inner = Script(_two_steps)
    tool_of_inner = inner.tool()

    def answer(script: Script, messages: Sequence[BaseMessage]) -> Reply:
        if isinstance(messages[-1], ToolMessage):
            return Reply(text=f"thanks {script.number()}")
        task = {"description": f"task {script.number()}", "subagent_type": "clerk"}
        return Reply(text=f"a clerk shall see {script.number()}", calls=[("task", task)])

    script = Script(answer)
    clerk = {
        "name": "clerk",
        "description": "looks things up",
        "system_prompt": "Look it up.",
        "model": inner.model,
        "tools": [tool_of_inner],
        "middleware": [*rig.middleware],
    }
    rig.agent = _deep(rig, script, [], subagents=[clerk])
    path: list[str] = []
    subagents: list[list[str]] = []
    for number in range(4):
        begun, inside = script.number(), inner.number()
        await rig.say(f"question {number}")
        asked, thanks = script.said[begun:]
        seen, known, found = inner.said[inside:]
        path += [f"question {number}", asked, f"{found}", thanks]
        subagents.append([f"task {begun}", seen, known, found])
    return Truth([path], subagents)


async def a_large_tool_result(rig: Rig) -> Truth:
    script = Script(_two_steps)
    rig.agent = _deep(rig, script, [script.tool(size=LARGE)])
    script.said.append("how much is known?")
    await rig.say("how much is known?")
    return Truth([script.said])


SCENES: dict[str, Play] = {
    "LangChain summaries over many turns": summaries_over_many_turns,
    "LangChain summary inside one long run": a_summary_inside_one_long_run,
    "model crash, then another question": a_model_that_crashes,
    "interrupt, edit, resume": an_interrupt_with_an_edit,
    "answer made again from an earlier checkpoint": an_answer_made_again,
    "update_state with RemoveMessage": messages_removed_by_hand,
    'durability="exit" with summaries': saved_only_at_the_exit,
    "parallel tools that finish in reverse": tools_that_finish_in_reverse,
    "deepagents with summaries": deepagents_with_summaries,
    "deepagents with subagents": deepagents_with_subagents,
    "deepagents, tool result of 180 kB": a_large_tool_result,
}


def texts_of(messages: Sequence[BaseMessage]) -> list[str]:
    """What messages say; summaries are no history."""
    return [message.text for message in messages if message.additional_kwargs.get("lc_source") != "summarization"]


async def texts_in_state(rig: Rig) -> list[str]:
    """What the newest state still has."""
    state = await rig.agent.aget_state(rig.config)
    return texts_of(state.values["messages"])


async def texts_in_checkpoints(rig: Rig) -> set[str]:
    """What any checkpoint of the thread has, in every namespace, with the writes on it."""
    found: set[str] = set()
    thread: Any = {"configurable": {"thread_id": rig.config["configurable"]["thread_id"]}}
    async for one in rig.saver.alist(thread):
        written = [value for _, channel, value in one.pending_writes or () if channel == "messages"]
        for value in (one.checkpoint["channel_values"].get("messages"), *written):
            listed = getattr(value, "value", value)  # a delta channel's snapshot
            found.update(texts_of([item for item in _listed(listed) if isinstance(item, BaseMessage)]))
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
