"""The graph's state: what a turn knows while it runs.

The log is the truth, so most of this is a view. `messages` holds the window and what the turn adds to it, never the
whole history, and is rebuilt from the log by every turn; it and what is bulky are in *untracked* channels, which no
checkpoint keeps, as ids where the log or the store has the thing itself. What a session must find again (todos, tools
that stay, the skill, files) is tracked, and comes back with the next turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, BaseMessage, BaseMessageChunk, RemoveMessage
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.graph.message import add_messages

from everthread.turn.result import merge_results

MAIN_CONTEXT = "main"
"""The `context_id` of a conversation that is nobody's subagent."""


class MessagesChannel(UntrackedValue[list[AnyMessage]]):
    """Messages joined as `add_messages` does, in no checkpoint."""

    def update(self, values: Sequence[Any]) -> bool:
        for value in values:
            self.value = _joined(self.value if self.is_available() else [], value)
        return bool(values)


def _joined(known: list[AnyMessage], new: Any) -> list[AnyMessage]:
    """`add_messages`, without making an id at each step for every message of the window: none of them is looked for."""
    if not isinstance(new, list) or not all(map(_is_whole_kind, set(map(type, new)))):
        added: Any = add_messages(known, new)  # type: ignore[arg-type]
        return list(added)
    joined = list(known)
    named = {message.id for message in new} - {None}
    at = {message.id: place for place, message in enumerate(joined) if message.id in named} if named else {}
    for message in new:
        if message.id in at:
            joined[at[message.id]] = message
        else:
            if message.id is not None:
                at[message.id] = len(joined)
            joined.append(message)
    return joined


def _is_whole_kind(kind: type) -> bool:
    return issubclass(kind, BaseMessage) and not issubclass(kind, BaseMessageChunk | RemoveMessage)


class UniqueListChannel(UntrackedValue[list[str]]):
    """A list that parallel nodes add to, each value once; in no checkpoint."""

    def update(self, values: Sequence[Sequence[str]]) -> bool:
        known = self.value if self.is_available() else []
        self.value = list(dict.fromkeys([*known, *(word for value in values for word in value)]))
        return bool(values)


class ResultChannel(UntrackedValue[dict[str, Any]]):
    """What several nodes and tools say of the answer; in no checkpoint."""

    def update(self, values: Sequence[Mapping[str, Any]]) -> bool:
        known = self.value if self.is_available() else {}
        for value in values:
            known = merge_results(known, value)
        self.value = known
        return bool(values)


class AppState(TypedDict, total=False):
    """Conversation state tracked across graph execution. Nodes return only what they change."""

    messages: Annotated[list[AnyMessage], MessagesChannel]
    """The window, then what this turn adds."""
    images: Annotated[list[str], UntrackedValue]
    """Ids of messages that hold images; the images themselves are in the log or its blob store."""

    active_skill: str | None
    allowed_tools: list[str]
    """Tools this turn may use."""
    persistent_tools: list[str]
    """Tools the session keeps."""
    mentioned_agents: list[str]
    """What the question names with an @: agents, skills, tools."""

    todos: list[dict[str, Any]]

    context_id: str
    """`main`, or the id of a subagent's conversation."""
    parent_context: str | None

    loops: int
    """How often the model was called in this turn."""
    max_loops: int

    model_pref: str | None
    """default, vision, code or reasoning."""

    thread_id: str
    session_id: str
    conversation_id: str
    """Three names for the same id, the conversation's: clients of either naming find theirs."""
    user_id: str
    """The owner."""
    workspace_path: str | None
    uploaded_files: list[dict[str, Any]]

    memory_context: Annotated[list[str], UntrackedValue]
    """Ids of memories in the request."""
    conversation_summary: list[str]
    """Ids of the summaries that stand for what is before the window."""
    episodic_memory: Annotated[list[int], UntrackedValue]
    """Seqs of what was recalled."""
    kb_prefix: str | None
    """The knowledge base that is searched; None: none."""
    agent_type: str
    """Chooses the prompt and the tools."""
    use_retrieval: bool
    retrieval_results: Annotated[list[dict[str, Any]], UntrackedValue]
    """Passages of the knowledge base, as they are quoted."""
    debug: bool
    """Adds timings and changes of nodes, and the manifest, to the events."""

    degraded: Annotated[list[str], UniqueListChannel]
    """Which parts failed or ran out of time in this turn."""
    result: Annotated[dict[str, Any], ResultChannel]
    """What the answer says about itself (`result.py`)."""
