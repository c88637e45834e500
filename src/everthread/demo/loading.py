"""`everthread demo --load`: a long conversation to look at, with tools, thinking, a subagent, compactions and a branch.

It is written as any program would write it, through the public verbs. Loaded again it is the same one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from everthread.adapters.models.scripted import ScriptedModel
from everthread.bootstrap import agent
from everthread.compaction.policy import CompactionPolicy
from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.ids import LOCAL
from everthread.demo.more_story import (
    ALLERGY,
    ANSWERED_ANEW,
    ASKED_ANEW,
    CLOSING,
    ERRAND,
    ERRAND_RESULT,
    ERRAND_TURNS,
    turns_after,
)
from everthread.demo.story import STOPS, Call, Turn, turns
from everthread.demo.tools import TOOLS
from everthread.instance import Everthread
from everthread.turn import run_turn

ID: Final = "demo-journey"
ERRAND_ID: Final = "subagent-demo-guesthouse"
TITLE: Final = "A slow journey by train"
COMPACTIONS: Final = 3
_BEGAN: Final = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
_AT_ONCE: Final = {"enabled": True, "leaf_max_messages": 200, "leaf_max_tokens": 32_000, "summary_max_tokens": 600}
"""Each compaction in one stretch, so that there are few and long bands to open."""
_TOOLS: Final = {tool.name: tool for tool in TOOLS}

Message = dict[str, Any]


async def load(et: Everthread, owner: str = LOCAL) -> Conversation:
    """The demo conversation of this owner, made if it is not there."""
    try:
        return await et.conversations.get(ID, owner)
    except NotFound:
        return await _made(et, owner)


async def _made(et: Everthread, owner: str) -> Conversation:
    conversation = await et.conversations.create(owner=owner, id=ID, title=TITLE, metadata={"demo": True})
    await et.compaction_config.set({"enabled": False}, conversation=conversation)  # nothing is to happen beside us
    child = await et.conversations.create(owner=owner, id=ERRAND_ID, title=ERRAND, parent_id=ID)
    await child.append(await _Scribe("errand").story(ERRAND_TURNS))
    scribe = _Scribe("m")
    said = [*await scribe.story(turns()), *scribe.errand(), *await scribe.story(turns_after())]
    for stretch in _stretches(said, CompactionPolicy().keep_recent):
        await conversation.append(stretch)
        await conversation.compact(compaction=_AT_ONCE)
    await _ask_anew(conversation, said)
    await conversation.remember(ALLERGY, scope="conversation", seq=1)
    await _talk_on(et, conversation)
    await et.compaction_config.set({"enabled": True}, conversation=conversation)
    return conversation


def _stretches(said: Sequence[Message], kept: int) -> Iterator[Sequence[Message]]:
    """As many as compactions are wanted. Each ends where what a compaction leaves alone begins with a question: then
    one summary stands for all before it, and no second one for a rest of three messages."""
    start = 0
    for number in range(1, COMPACTIONS):
        end = number * len(said) // COMPACTIONS
        while said[end - kept]["role"] != "user":
            end += 1
        yield said[start:end]
        start = end
    yield said[start:]


class _Scribe:
    """Writes a story down as messages, a minute apart, each with an id of its own."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number = 0

    async def story(self, story: Iterable[Turn]) -> list[Message]:
        return [message for turn in story for message in await self._turn(turn)]

    def errand(self) -> list[Message]:
        """How the errand looks from the conversation that sent it."""
        call = ("call_subagent", {"task": ERRAND})
        answer = {"ok": True, "result": ERRAND_RESULT, "context_id": ERRAND_ID, "loops": 2}
        return [
            self._message(role="user", content="Find us a quiet place to stay in Chengdu."),
            *self._called([call], [_json(answer)], thinking="That is an errand of its own; I send someone."),
            self._message(role="assistant", content=ERRAND_RESULT),
        ]

    async def _turn(self, turn: Turn) -> list[Message]:
        said = [self._message(role="user", content=turn.question)]
        thinking = turn.thinking
        for calls in filter(None, (turn.calls, turn.then)):
            said += self._called(calls, [await _looked_up(call) for call in calls], thinking)
            thinking = ""
        more = {"reasoning_content": thinking} if thinking else {}
        return [*said, self._message(role="assistant", content=turn.answer, **more)]

    def _called(self, calls: Sequence[Call], answers: Sequence[str], thinking: str) -> list[Message]:
        ids = [f"{self._prefix}-call-{self._number}-{place}" for place, _ in enumerate(calls)]
        made = [
            {
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given, ensure_ascii=False)},
            }
            for id, (name, given) in zip(ids, calls, strict=True)
        ]
        more = {"reasoning_content": thinking} if thinking else {}
        return [
            self._message(role="assistant", content="", tool_calls=made, **more),
            *(
                self._message(role="tool", tool_call_id=id, name=name, content=answer)
                for id, (name, _), answer in zip(ids, calls, answers, strict=True)
            ),
        ]

    def _message(self, **fields: Any) -> Message:
        self._number += 1
        moment = _BEGAN + timedelta(minutes=self._number)
        return {"id": f"{self._prefix}-{self._number}", **fields, "created_at": moment.isoformat()}


async def _talk_on(et: Everthread, conversation: Conversation) -> None:
    """The agent is asked about what was said, and a script answers for the model."""
    played = agent(et)
    for question, answer in CLOSING:
        async for _ in run_turn(conversation, question, agent=played, model=ScriptedModel([answer])):
            pass


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


async def _looked_up(call: Call) -> str:
    name, arguments = call
    answer: str = await _TOOLS[name].ainvoke(dict(arguments))
    return answer


async def _ask_anew(conversation: Conversation, said: Sequence[Message]) -> None:
    """One question about Dali, asked otherwise and answered, on a branch that is not the active one."""
    asked = next(message for message in said if message["content"] == STOPS[1].sight)
    receipt = await conversation.edit(asked["id"], {"role": "user", "content": ASKED_ANEW}, activate=False)
    answer = {"id": "anew-answer", "role": "assistant", "content": ANSWERED_ANEW}
    await conversation.append([answer], branch=receipt.seq)
