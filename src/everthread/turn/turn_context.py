"""What one turn works with while it runs, beside its state: the conversation, the model, the event log.

It is the graph's runtime context, so no checkpoint holds it. Here is also the one way a turn writes to the log: message
by message as they are finished, and only while this process holds the turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool

from everthread.context.assemble import Context
from everthread.conversation import Conversation
from everthread.core.entries import EntryOrigin
from everthread.core.errors import Conflict
from everthread.core.nouns import Receipt, Ref
from everthread.core.turns import Turn
from everthread.history.turn_intents import AppendToTurn
from everthread.runs.event_log import TurnEventLog
from everthread.turn.agent import Agent, ChatModel, Features
from everthread.turn.request import TurnOptions, prepare_messages
from everthread.turn.skills import Skill

CALL_SUBAGENT = "call_subagent"


@dataclass(slots=True, kw_only=True)
class MessageInProgress:
    """The message that the model is writing now."""

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
class TurnContext:
    """One turn at work."""

    agent: Agent
    conversation: Conversation
    turn: Turn
    event_log: TurnEventLog
    model: ChatModel
    features: Features
    question: str
    """The text that is recalled and retrieved for."""
    options: TurnOptions
    depth: int = 0
    """How many subagents this turn is nested in."""
    subagents: list[str] = field(default_factory=list)
    """The conversations of the subagents it called."""
    offered: Sequence[str] = ()
    """The names of the tools that the model may call."""
    skills: Sequence[Skill] = ()
    """Those in use: named in the question, or active since before."""
    collection_why: str = ""
    """Why the knowledge base is searched that is."""
    notices: list[str] = field(default_factory=list)
    """What was not done as it was asked for."""
    first_request: FirstRequest | None = None
    """What `recall` assembled for the first call of the model."""
    in_progress: MessageInProgress | None = None
    usage: Counter[str] = field(default_factory=Counter)
    model_calls: int = 0
    manifests: list[str] = field(default_factory=list)
    """What the model was shown: one manifest id for each call."""
    has_read_documents: bool = False
    """Whether passages of documents were retrieved for it."""
    answer: BaseMessage | None = None
    """As it will stand in the log, once `persist` has made it."""
    _tools: Sequence[BaseTool] | None = None

    @property
    def ref(self) -> Ref:
        return Ref(self.conversation.owner, self.conversation.id)

    def next_message_id(self) -> str:
        """The first message has the id that was reserved for the answer; later ones add a number to it."""
        self.model_calls += 1
        return self.turn.answer_id if self.model_calls == 1 else f"{self.turn.answer_id}.{self.model_calls}"

    def tools(self) -> Sequence[BaseTool]:
        """All tools of this turn, made once."""
        if self._tools is None:
            own = () if self.agent.tools is None else self.agent.tools(self)
            is_deepest = self.depth >= self.agent.limits.subagent_depth
            builtin = [tool for tool in self.agent.builtin if not (is_deepest and tool.name == CALL_SUBAGENT)]
            self._tools = [*own, *builtin]
        return self._tools

    def release(self) -> None:
        """The turn is over. Tools hold this context and it holds them: without breaking the cycle, all events of the
        turn would stay in memory until the garbage collector runs."""
        self._tools = None

    async def append(self, *messages: BaseMessage, origin: EntryOrigin | None = None) -> Sequence[Receipt]:
        """Write finished messages to the log; TurnLost when this process no longer holds the turn. `origin` where their
        role does not say through which door they came."""
        intent = AppendToTurn(
            turn_id=self.turn.id,
            holder=self.agent.runs.holder,
            messages=await prepare_messages(messages, origin),
        )
        return await self.agent.et.runtime.write(self.ref, intent)


_current: ContextVar[TurnContext] = ContextVar("everthread_turn_context")


def set_current(ctx: TurnContext) -> None:
    """Make this the running turn of this task, and of those it starts."""
    _current.set(ctx)


def current() -> TurnContext:
    """The running turn, for tools; Conflict outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise Conflict("no turn is running here; a tool that needs one is called by the agent") from None
