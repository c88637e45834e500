"""What a turn costs beside its model: `run_turn` with a scripted model that answers at once, on SQLite.

`run`: CPU of the whole process for one turn of a conversation of 100 and of 10,000 messages, the least and the median
of several; with the tools that every agent has, and with none. Before each turn a plain loop is timed: on a shared
machine the same work takes twice the CPU time in one minute and not in the next, and the turn in such loops does not.
`streaming`: CPU of one token, from the model through the turn to a reader that takes each: a long answer less a short
one, by the tokens between them.
`savings`: tokens sent over a conversation of 100 turns, beside the newest 40 messages and the full history.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

import everthread
from benchmarks.context_cost import filled
from benchmarks.context_cost import turn as told_turn
from benchmarks.report import Row
from everthread import Conversation, Everthread
from everthread.context.tokens import message_tokens
from everthread.core.turn_events import Done, Token
from everthread.testing import Reply, ScriptedModel
from everthread.testing.scripted import Step
from everthread.turn import Agent, Features, begin_turn, run_turn

LOOP_STEPS = 100_000
"""Of the loop that says how fast the machine is just then."""
SHORT_TOKENS, LONG_TOKENS = 100, 4_100
TURNS = 100
_WINDOW = 40


def run(options: argparse.Namespace) -> Sequence[Row]:
    """One turn, at every length."""
    return asyncio.run(_cost(options.turn_lengths, options.rounds))


async def _cost(lengths: Sequence[int], rounds: int) -> list[Row]:
    async with opened() as et:
        agents = {
            "all tools, recall": everthread.agent(et),
            "no tools, recall": everthread.agent(et, tools=None, builtin=()),
            "no tools, no recall": everthread.agent(et, tools=None, builtin=(), features=Features(recall=False)),
        }
        rows = [_row("one node on SqliteSaver", length, *_of_peer(length, max(2, rounds // 4))) for length in lengths]
        for length in lengths:
            conversation = await filled(et, f"c{length}", length)
            await et.compaction_config.set({"enabled": True})
            await conversation.compact()
            await et.search("anything")
            for name, agent in agents.items():
                loops, spent = [], []
                for _ in range(rounds + 2):
                    loops.append(_loop())
                    spent.append(await _one(conversation, agent, "It is on its way."))
                rows.append(_row(name, length, spent[2:], loops[2:]))
        return rows


def _loop() -> float:
    """CPU milliseconds of a plain loop."""
    began = time.process_time()
    sum(step * step for step in range(LOOP_STEPS))
    return 1e3 * (time.process_time() - began)


def _of_peer(length: int, rounds: int) -> tuple[list[float], list[float]]:
    """A graph of one node that answers at once, with the whole history in its state."""
    with SqliteSaver.from_conn_string(f"{tempfile.mkdtemp(prefix='bench-')}/peer.db") as saver:
        graph = _one_node(saver)
        config = RunnableConfig(configurable={"thread_id": "t"})
        said = [HumanMessage(str(message["content"])) for n in range(length // 4) for message in told_turn(n)]
        graph.update_state(config, {"messages": said})
        loops, spent = [], []
        for _ in range(rounds + 1):
            loops.append(_loop())
            began = time.process_time()
            graph.invoke({"messages": [HumanMessage("Where is order A-700 now?")]}, config)
            spent.append(1e3 * (time.process_time() - began))
        return spent[1:], loops[1:]


def _one_node(saver: SqliteSaver) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda _: {"messages": [AIMessage("It is on its way.")]})
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


def opened() -> Everthread:
    return everthread.open(f"sqlite:///{tempfile.mkdtemp(prefix='bench-')}/et.db", worker=False)


async def _one(conversation: Conversation, agent: Agent, answer: str) -> float:
    """CPU milliseconds of one turn."""
    model = ScriptedModel([answer])
    began = time.process_time()
    async for event in run_turn(conversation, "Where is order A-700 now?", agent=agent, model=model):
        last = event
    assert isinstance(last, Done)
    return 1e3 * (time.process_time() - began)


def _row(system: str, length: int, spent: Sequence[float], loops: Sequence[float]) -> Row:
    return {
        "system": system,
        "messages": length,
        "least CPU ms": min(spent),
        "median CPU ms": statistics.median(spent),
        "a loop, median CPU ms": statistics.median(loops),
        "median in loops": statistics.median(turn / loop for turn, loop in zip(spent, loops, strict=True)),
    }


# -- tokens ----------------------------------------------------------------------------------------------------


def streaming(options: argparse.Namespace) -> Sequence[Row]:
    """One token."""
    return asyncio.run(_streaming(options.rounds))


async def _streaming(rounds: int) -> list[Row]:
    async with opened() as et:
        agent = everthread.agent(et, tools=None, builtin=())
        spent: dict[int, list[float]] = {SHORT_TOKENS: [], LONG_TOKENS: []}
        taken = 0
        for number in range(rounds):
            for tokens, times in spent.items():
                conversation = await et.conversations.create(id=f"{number}-{tokens}")
                cost, taken = await _streamed(conversation, agent, tokens)
                times.append(cost)
        each = (min(spent[LONG_TOKENS]) - min(spent[SHORT_TOKENS])) / (LONG_TOKENS - SHORT_TOKENS)
        return [
            {"system": "run_turn", "tokens": LONG_TOKENS, "events taken": taken, "least CPU us a token": 1e3 * each}
        ]


async def _streamed(conversation: Conversation, agent: Agent, tokens: int) -> tuple[float, int]:
    model = ScriptedModel(["a token " * tokens])
    taken = 0
    began = time.process_time()
    live = await begin_turn(conversation, "Go on.", agent=agent, model=model)
    async for batch in live.event_log.batches():  # each token as an event, as the service sends them
        taken += sum(isinstance(event, Token) for event in batch)
    await live.wait()
    return 1e3 * (time.process_time() - began), taken


@tool
async def find(order: int) -> str:
    """Find an order."""
    rows = [f"line {line}: article {order * 31 + line}, {line * 7 % 90 + 1} pieces, depot {line}" for line in range(20)]
    return f"Order A-{order}00\n" + "\n".join(rows)


# -- what is saved ---------------------------------------------------------------------------------------------


def savings(options: argparse.Namespace) -> Sequence[Row]:
    """A conversation of 100 turns, sent in three ways."""
    return asyncio.run(_savings())


async def _savings() -> list[Row]:
    async with everthread.open("memory://", worker=False) as et:
        agent = everthread.agent(et, tools=lambda _: [find], builtin=())
        conversation = await et.conversations.create()
        sent = {"everthread": 0, f"newest {_WINDOW}": 0, "full history": 0}
        for number in range(TURNS):
            question, _, _, answer = (str(message["content"]) for message in told_turn(number))
            steps: list[Step] = [Reply(calls=[("find", {"order": number})]), answer]
            async for event in run_turn(conversation, question, agent=agent, model=ScriptedModel(steps)):
                last = event
            assert isinstance(last, Done)
            newest = (await conversation.tail(1))[0]
            for id in newest.payload["additional_kwargs"]["everthread"]["manifests"]:
                sent["everthread"] += (await conversation.seen_context(id)).manifest.tokens
            counts = [message_tokens(message.payload) async for message in conversation.messages()]
            for length in (len(counts) - 3, len(counts) - 1):  # what had been said at each of the two requests
                sent[f"newest {_WINDOW}"] += sum(counts[max(0, length - _WINDOW) : length])
                sent["full history"] += sum(counts[:length])
            await conversation.compact_if_due()
        whole = sent["full history"]
        return [
            {"system": name, "turns": TURNS, "tokens a turn": count / TURNS, "saved %": 100 * (1 - count / whole)}
            for name, count in sent.items()
        ]
