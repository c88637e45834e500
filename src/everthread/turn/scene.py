"""What one turn has at hand while it runs, beside its state: the conversation, the model, the event_log.

It is the graph's runtime context, so it is in no checkpoint. Here is also the one way in which a turn writes to the
log: as messages are finished, and only as long as the turn is this process's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool

from everthread.context.assemble import Context
from everthread.conversation import Conversation
from everthread.core.errors import Conflict
from everthread.core.jobs import NewJob
from everthread.core.nouns import Receipt, Ref
from everthread.core.turns import Turn
from everthread.history import ingest, turn_intents
from everthread.runs.event_log import EventLog
from everthread.turn.agent import Agent
from everthread.turn.options import Options
from everthread.turn.ports import Voice
from everthread.turn.skills import Skill
from everthread.turn.switches import Switches

CALL_SUBAGENT = "call_subagent"
_LARGE = 65_536
"""From so many characters on a message is prepared in a thread."""


@dataclass(slots=True, kw_only=True)
class Utterance:
    """The message that the model is saying now."""

    id: str
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class FirstRequest(NamedTuple):
    """The first request of a turn."""

    context: Context
    messages: Sequence[BaseMessage]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a turn ends with."""

    answer: BaseMessage | None = None
    jobs: Sequence[NewJob] = ()


@dataclass(slots=True, kw_only=True)
class Scene:
    """One turn at work."""

    agent: Agent
    conversation: Conversation
    turn: Turn
    event_log: EventLog
    voice: Voice
    switches: Switches
    question: str
    """The text that is recalled and retrieved for."""
    options: Options
    depth: int = 0
    """How many subagents this turn is inside of."""
    subagents: list[str] = field(default_factory=list)
    """The conversations of those it called."""
    skills: Sequence[Skill] = ()
    """Those that it works by: named in the question, or active since before."""
    first: FirstRequest | None = None
    """What `recall` made, for the first call of the model."""
    utterance: Utterance | None = None
    usage: Counter[str] = field(default_factory=Counter)
    said: int = 0
    """How many messages of the model there were."""
    manifests: list[str] = field(default_factory=list)
    """What the model was shown, one id for each time it was asked."""
    outcome: Outcome = field(default_factory=Outcome)
    _tools: Sequence[BaseTool] | None = None

    @property
    def ref(self) -> Ref:
        return Ref(self.conversation.owner, self.conversation.id)

    def next_message_id(self) -> str:
        """The first one has the id that was set aside; the others are called after it."""
        self.said += 1
        return self.turn.answer_id if self.said == 1 else f"{self.turn.answer_id}.{self.said}"

    def tools(self) -> Sequence[BaseTool]:
        """Everything the agent could do in this turn."""
        if self._tools is None:
            own = () if self.agent.hands is None else self.agent.hands(self)
            is_deepest = self.depth >= self.agent.limits.subagent_depth
            builtin = [tool for tool in self.agent.builtin if not (is_deepest and tool.name == CALL_SUBAGENT)]
            self._tools = [*own, *builtin]
        return self._tools

    def leave(self) -> None:
        """The turn is over. Tools know their scene and the scene knows them: without this, all that it told would lie
        in memory until somebody looks for garbage."""
        self._tools = None

    async def say(self, *messages: BaseMessage) -> Sequence[Receipt]:
        """Finished messages enter the log; TurnLost when the turn is not ours any more."""
        intent = turn_intents.AppendToTurn(
            turn_id=self.turn.id,
            holder=self.agent.leases.holder,
            messages=await prepared(messages),
        )
        return await self.agent.et.runtime.write(self.ref, intent)


async def prepared(messages: Sequence[BaseMessage | Mapping[str, Any]]) -> list[ingest.Prepared]:
    """Messages as they are written."""
    if ingest.rough_bytes(messages) < _LARGE:
        return ingest.prepare_all(messages)
    return await asyncio.to_thread(ingest.prepare_all, messages)


_current: ContextVar[Scene] = ContextVar("everthread_scene")


def enter(scene: Scene) -> None:
    """From here on, in this task and those it starts, this is the turn that runs."""
    _current.set(scene)


def current() -> Scene:
    """The turn that runs, for tools; Conflict outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise Conflict("no turn runs here; a tool that needs one is called by the agent") from None
