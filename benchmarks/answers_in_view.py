"""Whether the answer to a question about the past is in the request that a model would get.

    python -m benchmarks answers_in_view [--show-misses]

Conversations of five kinds, each with facts that somebody mentions in passing, are gone through as a program would:
messages are appended, and what is due is compacted. At the end each question is asked once without recall and once with
it, and its answer is looked for in the words of the request. `answers_in_view/planted.txt` was written without sight of
the conversations and of the source code, sealed by its hash, and opened once. The other questions are made by rule from
the conversations: of a message of the user that alone has a number or a name, the question is the rest of the message.

"langchain" is the state that LangChain's SummarizationMiddleware leaves, when it summarises at 0.8 of the same limit
with our extractive text in the place of a model's. Conversations that are not there are named and skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

import everthread
from benchmarks.facts_kept import DATA, beam, locomo
from benchmarks.report import Row
from everthread import Budget

FOLDER = Path(__file__).parent / "answers_in_view"
WINDOWS = (4_000, 8_000, 32_000, 128_000)
STEP = 6
"""Messages appended between two looks at what is due."""
Said = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fact that somebody mentions, and what will be asked."""

    kind: str
    role: str
    text: str
    question: str
    answer: tuple[str, ...]
    source: str = "planted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One conversation with its questions."""

    kind: str
    messages: list[Said]
    questions: list[Planted]


def planted(path: Path) -> Iterator[Planted]:
    """The facts of a file, one on each line."""
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, role, rest = line.split(" | ", 2)
            text, question, answer = rest.rsplit(" | ", 2)
            yield Planted(kind=kind, role=role, text=text, question=question, answer=tuple(answer.split("; ")))


def _talks(kind: str) -> list[list[Said]]:
    """The conversations of a kind."""
    if kind == "people":
        return [_said(talk.sources) for talk in islice(locomo(DATA / "locomo/dev.json"), 2)]
    if kind == "assistant":
        return [_said(talk.sources) for talk in islice(beam(DATA / "beam"), 2)]
    if kind == "chinese":
        talks = json.loads((DATA / "recall/zh-dev.json").read_text("utf-8"))
        return [[_turn(one) for talk in talks for one in talk["messages"]]]
    if kind == "service":
        talks = json.loads((DATA / "recall/tools-dev.json").read_text("utf-8"))
        return [[_turn(one) for one in talk["messages"]] for talk in talks[:2]]
    runs = sorted((DATA / "trajectories/swe-agent").rglob("*.traj"))
    said = [step for path in runs for step in _steps(path)]
    return [said[: len(said) // 2], said[len(said) // 2 :]] if said else []


KINDS = {
    "people": "locomo/dev.json",
    "assistant": "beam",
    "chinese": "recall/zh-dev.json",
    "service": "recall/tools-dev.json",
    "coding": "trajectories/swe-agent",
}


def _said(sources: Sequence[Any]) -> list[Said]:
    first = sources[0].name
    return [{"role": "assistant" if one.name != first else one.role, "content": one.text} for one in sources]


def _turn(one: dict[str, Any]) -> Said:
    return {"role": "user" if one["role"] == "user" else "assistant", "content": one["text"]}


def _steps(path: Path) -> Iterator[Said]:
    for step in json.loads(path.read_text("utf-8"))["history"]:
        if step["role"] != "system" and isinstance(step["content"], str):
            yield {"role": step["role"], "content": step["content"]}


def conversations(facts: Sequence[Planted], *, seed: int) -> Iterator[Asked]:
    """Each kind's conversations, with its facts dealt out among them, and questions made by rule."""
    for kind, place in KINDS.items():
        if not (DATA / place).exists():
            print(f"({kind} is left out: {place} is not there)")
            continue
        talks = _talks(kind)
        for at, talk in enumerate(talks):
            mine = [fact for fact in facts if fact.kind == kind][at :: len(talks)]
            rng = Random(seed + at)
            made = _made_by_rule(kind, talk, rng, 20 // len(talks))
            yield Asked(kind=kind, messages=_with_facts(talk, mine, rng), questions=[*mine, *made])


def _with_facts(talk: list[Said], facts: Sequence[Planted], rng: Random) -> list[Said]:
    places = sorted(rng.sample(range(int(0.9 * len(talk))), len(facts)))
    said: list[Said] = []
    before = 0
    for place, fact in zip(places, facts, strict=True):
        said += [*talk[before:place], *_turn_of(fact, place)]
        before = place
    return [*said, *talk[before:]]


def _turn_of(fact: Planted, place: int) -> list[Said]:
    if fact.role != "tool":
        return [{"role": fact.role, "content": fact.text}]
    call = {"id": f"call-{place}", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call-{place}", "content": fact.text.replace("\\n", "\n")},
    ]


_TOKEN = re.compile(r"\b(?:[A-Z][a-z]{3,}|\$?\d[\d,.:]*\d)\b|\d+[天块元号点岁]")


def _made_by_rule(kind: str, talk: Sequence[Said], rng: Random, count: int) -> list[Planted]:
    """Of messages of the user that alone have a number or a name: the message without it is the question."""
    often = Counter(chain.from_iterable(set(_TOKEN.findall(one["content"])) for one in talk))
    found: list[Planted] = []
    for one in talk[: int(0.9 * len(talk))]:
        text = one["content"]
        alone = [token for token in _TOKEN.findall(text) if often[token] == 1]
        if one["role"] == "user" and 12 <= len(text) <= 400 and alone and "?" not in text:
            token = rng.choice(alone)
            found.append(
                Planted(
                    kind=kind,
                    role="user",
                    text=text,
                    question=text.replace(token, "…"),
                    answer=(token,),
                    source="by rule",
                )
            )
    return rng.sample(found, min(count, len(found)))


def plain(text: str) -> str:
    """For comparing: without case, accents of width, and spaces."""
    return re.sub(r"\s+|(?<=\d),(?=\d)", "", unicodedata.normalize("NFKC", text).casefold())


def has_answer(messages: Sequence[Said], fact: Planted) -> bool:
    """Whether all parts of the answer are in the words of the request, its question aside."""
    whole = plain("\n".join(json.dumps(message, ensure_ascii=False) for message in messages[:-1]))
    return all(plain(part) in whole for part in fact.answer)


async def everthread_requests(talk: Asked, window: int) -> list[tuple[Planted, list[Said], list[Said], int]]:
    """For each question the request without recall and with it, and what the first counts to."""
    budget = Budget(window=window)
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        for at in range(0, len(talk.messages), STEP):
            await conv.append(talk.messages[at : at + STEP])
            await conv.compact_if_due(budget=budget)
        asked = []
        for fact in talk.questions:
            bare = await conv.context(budget=budget)
            recalled = await conv.context(budget=budget, query=fact.question)
            tail: list[Said] = [{"role": "user", "content": fact.question}]
            asked.append((fact, [*bare.messages, *tail], [*recalled.messages, *tail], bare.tokens))
        return asked


def langchain_request(talk: Asked, window: int) -> list[Said]:
    """The state that LangChain's middleware leaves of the conversation."""
    from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415 - an extra
    from langchain_core.language_models.fake_chat_models import FakeListChatModel  # noqa: PLC0415
    from langchain_core.messages import AnyMessage, RemoveMessage  # noqa: PLC0415
    from langgraph.graph.message import add_messages  # noqa: PLC0415

    from everthread.compaction.extract import extract  # noqa: PLC0415
    from everthread.compaction.sources import Source  # noqa: PLC0415
    from everthread.context.tokens import count_tokens, message_tokens  # noqa: PLC0415

    limit = Budget(window=window).limit

    class Extractive(SummarizationMiddleware):
        def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
            told = self._trim_messages_for_summary(messages_to_summarize)
            sources = [
                Source(seq=at, role="user" if one.type == "human" else "assistant", text=str(one.content))
                for at, one in enumerate(told, 1)
            ]
            return extract(sources, max_tokens=1_000, count_tokens=count_tokens)

    def count(messages: Any) -> int:
        return sum(message_tokens({"role": "user", "content": str(one.content)}) for one in messages)

    middleware = Extractive(
        FakeListChatModel(responses=["-"]),
        trigger=("tokens", int(0.8 * limit)),
        keep=("tokens", int(0.4 * limit)),
        token_counter=count,
    )
    state: list[Any] = []
    for at in range(0, len(talk.messages), STEP):
        new = [
            {"role": "assistant" if one["role"] == "tool" else one["role"], "content": one["content"]}
            for one in talk.messages[at : at + STEP]
        ]
        state = list(add_messages(state, new))  # type: ignore[arg-type]
        changed = middleware.before_model({"messages": state}, None)  # type: ignore[arg-type]
        if changed:
            state = [one for one in changed["messages"] if not isinstance(one, RemoveMessage)]
    return [{"role": one.type, "content": one.content} for one in state] + [{"role": "user", "content": ""}]


Counts = dict[tuple[str, str, str], list[int]]


def measure(facts: Sequence[Planted], window: int, *, peers: bool, show: bool) -> list[Row]:
    """The rows of a window: for each kind and sort of question, how many answers are there."""
    counts: Counts = {}
    tokens: dict[str, list[int]] = {}

    def note(system: str, fact: Planted, found: bool) -> None:
        tally = counts.setdefault((system, fact.kind, fact.source), [0, 0])
        tally[0] += found
        tally[1] += 1

    for talk in conversations(facts, seed=window):
        asked = asyncio.run(everthread_requests(talk, window))
        peer = langchain_request(talk, window) if peers else None
        for fact, bare, recalled, used in asked:
            tokens.setdefault(fact.kind, []).append(used)
            note("everthread", fact, has_answer(bare, fact))
            note("everthread, recall", fact, has_answer(recalled, fact))
            if show and fact.source == "by rule" and not has_answer(recalled, fact):
                print(f"  missed at {window}: {fact.text[:150]!r} -> {fact.answer}")
            if peer is not None:
                note("langchain", fact, has_answer(peer, fact))
    return [
        {
            "system": system,
            "window": window,
            "data": kind,
            "questions": source,
            "asked": total,
            "found": found,
            "tokens of a request": max(tokens[kind]) if system == "everthread" else None,
        }
        for (system, kind, source), (found, total) in counts.items()
    ]


def run(options: argparse.Namespace) -> Sequence[Row]:
    """Every window."""
    path = FOLDER / "planted.txt"
    facts = list(planted(path)) if path.exists() else []
    return [row for window in WINDOWS for row in measure(facts, window, peers=True, show=options.show_misses)]
