"""`everthread demo --load`: stores a long conversation to look at, with tools, thinking, a subagent, compactions and a
branch. It is written through the public API, and loading it again finds the same one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from everthread.adapters.models.scripted import ScriptedModel
from everthread.bootstrap import agent
from everthread.compaction.policy import CompactionPolicy
from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.ids import LOCAL
from everthread.demo.story import (
    ALLERGY,
    CLOSING,
    EDITED_ANSWER,
    EDITED_QUESTION,
    STOPS,
    SUBAGENT_RESULT,
    SUBAGENT_TASK,
    SUBAGENT_TURNS,
    Call,
    StoryTurn,
    more_turns,
    turns,
)
from everthread.demo.tools import TOOLS
from everthread.instance import Everthread
from everthread.turn import run_turn

ID: Final = "demo-journey"
SUBAGENT_ID: Final = "subagent-demo-guesthouse"
TITLE: Final = "A slow journey by train"
COMPACTIONS: Final = 3
_START: Final = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
_ONE_SUMMARY_EACH: Final = {
    "enabled": True,
    "leaf_max_messages": 200,
    "leaf_max_tokens": 32_000,
    "summary_max_tokens": 600,
}
"""Each compaction makes one summary, so that the page has a few long ones to open."""
_TOOLS: Final = {tool.name: tool for tool in TOOLS}
Message = dict[str, Any]


async def load(et: Everthread, owner: str = LOCAL) -> Conversation:
    """The demo conversation of this owner, created if missing."""
    try:
        return await et.conversations.get(ID, owner)
    except NotFound:
        return await _create(et, owner)


async def _create(et: Everthread, owner: str) -> Conversation:
    conversation = await et.conversations.create(owner=owner, id=ID, title=TITLE, metadata={"demo": True})
    await et.compaction_config.set(
        {"enabled": False}, conversation=conversation
    )  # no background compaction while we write
    child = await et.conversations.create(owner=owner, id=SUBAGENT_ID, title=SUBAGENT_TASK, parent_id=ID)
    await child.append(await MessageWriter("errand").story(SUBAGENT_TURNS))
    writer = MessageWriter("m")
    said = [*await writer.story(turns()), *writer.subagent_call(), *await writer.story(more_turns())]
    for stretch in _split_for_compactions(said, CompactionPolicy().keep_recent):
        await conversation.append(stretch)
        await conversation.compact(compaction=_ONE_SUMMARY_EACH)
    await _edit_question(conversation, said)
    await conversation.remember(ALLERGY, scope="conversation", seq=1)
    await _run_closing_turns(et, conversation)
    await et.compaction_config.set({"enabled": True}, conversation=conversation)
    return conversation


def _split_for_compactions(said: Sequence[Message], kept: int) -> Iterator[Sequence[Message]]:
    """One part per compaction. A part ends so that the messages a compaction leaves alone begin with a question: then
    one summary covers everything before them, and not a second one for a rest of three messages."""
    start = 0
    for number in range(1, COMPACTIONS):
        end = number * len(said) // COMPACTIONS
        while said[end - kept]["role"] != "user":
            end += 1
        yield said[start:end]
        start = end
    yield said[start:]


class MessageWriter:
    """Turns a story into messages, a minute apart, each with an id of its own."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._number = 0

    async def story(self, story: Iterable[StoryTurn]) -> list[Message]:
        return [message for turn in story for message in await self.turn(turn)]

    def subagent_call(self) -> list[Message]:
        """The subagent's task as the parent conversation sees it."""
        call = ("call_subagent", {"task": SUBAGENT_TASK})
        result = {"ok": True, "result": SUBAGENT_RESULT, "context_id": SUBAGENT_ID, "loops": 2}
        return [
            self._message(role="user", content="Find us a quiet place to stay in Chengdu."),
            *self._called(
                [call],
                [json.dumps(result, ensure_ascii=False)],
                thinking="That is a task of its own; a subagent can do it.",
            ),
            self._message(role="assistant", content=SUBAGENT_RESULT),
        ]

    async def turn(self, turn: StoryTurn) -> list[Message]:
        said = [self._message(role="user", content=turn.question)]
        thinking = turn.thinking
        for calls in filter(None, (turn.calls, turn.then)):
            said += self._called(calls, [await _call_tool(call) for call in calls], thinking)
            thinking = ""
        more = {"reasoning_content": thinking} if thinking else {}
        return [*said, self._message(role="assistant", content=turn.answer, **more)]

    def _called(self, calls: Sequence[Call], answers: Sequence[str], thinking: str) -> list[Message]:
        ids = [f"{self._prefix}-call-{self._number}-{index}" for index, _ in enumerate(calls)]
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
        moment = _START + timedelta(minutes=self._number)
        return {"id": f"{self._prefix}-{self._number}", **fields, "created_at": moment.isoformat()}


async def _run_closing_turns(et: Everthread, conversation: Conversation) -> None:
    """Turns of the real agent, with a scripted model, so that there are requests to look into."""
    played = agent(et)
    for question, answer in CLOSING:
        async for _ in run_turn(conversation, question, agent=played, model=ScriptedModel([answer])):
            pass


async def _call_tool(call: Call) -> str:
    name, arguments = call
    answer: str = await _TOOLS[name].ainvoke(dict(arguments))
    return answer


async def _edit_question(conversation: Conversation, said: Sequence[Message]) -> None:
    """Edit and answer a question about Dali on a branch that is not the active one."""
    asked = next(message for message in said if message["content"] == STOPS[1].sight)
    receipt = await conversation.edit(asked["id"], {"role": "user", "content": EDITED_QUESTION}, activate=False)
    answer = {"id": "anew-answer", "role": "assistant", "content": EDITED_ANSWER}
    await conversation.append([answer], branch=receipt.seq)
