"""A turn of our own agent in the protocol's words: each of its events as frames.

    event              the first version                            the second
    accepted           metadata                                     its lifecycle says so
    token, thinking    messages: pieces (messages-tuple), or all    messages: start, deltas and finish of blocks
                       so far (messages/partial)
    state              updates, by the name of the node             updates
    done               values: the newest messages of the log       values
    failed             error                                        its lifecycle says so
    others             custom                                       custom

What is told depends on the events alone, so that a reader who comes back is told the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from everthread.core.turn_events import Accepted, Done, Failed, StateChanged, Thinking, Token, TurnEvent
from everthread.core.turns import Turn
from everthread.http.protocol.executing import NAMESPACE, TIMESTAMP, VERSION_2
from everthread.http.protocol.frames import ERROR, METADATA, Frame
from everthread.http.protocol.wire import Json
from everthread.runs.event_log import join_text_events


class Words(Protocol):
    """How one turn is told."""

    def wanted(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        """The events that are told, of some that lie ready."""

    def of(self, event: TurnEvent) -> Sequence[Frame]:
        """What to say of an event, but for the state at the end."""

    def state(self, values: Json) -> Frame:
        """How the thread stands."""

    @property
    def tells_state(self) -> bool:
        """Whether anybody asked for it."""


def words_of(turn: Turn) -> Words:
    """Those of the version that the run was begun in."""
    return _Second(turn) if turn.metadata.get("kwargs", {}).get("version") == 2 else _First(turn)


class _First:
    """One frame for an event, in the modes that were asked for; pieces of a message are put together here."""

    def __init__(self, turn: Turn) -> None:
        self._modes: Sequence[Any] = turn.metadata.get("kwargs", {}).get("stream_mode", ["values"])
        self._run = {"run_id": turn.id, "thread_id": turn.conversation_id, "langgraph_node": "plan"}
        self._whole: dict[str, AIMessageChunk] = {}

    @property
    def tells_state(self) -> bool:
        return "values" in self._modes

    def wanted(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        """Where each piece shows all before it, one does for several."""
        return batch if "messages-tuple" in self._modes else join_text_events(batch)

    def state(self, values: Json) -> Frame:
        return Frame("values", values)

    def of(self, event: TurnEvent) -> Sequence[Frame]:
        if isinstance(event, Done):
            return ()
        if isinstance(event, Accepted):
            return [Frame(METADATA, {"run_id": event.turn_id, "attempt": 1})]
        if isinstance(event, Failed):
            return [Frame(ERROR, {"error": event.code, "message": event.message})]
        if isinstance(event, Token | Thinking):
            return self._piece(event)
        mode = _mode(event)
        return [Frame(mode, _body(event))] if mode in self._modes else ()

    def _piece(self, event: Token | Thinking) -> Sequence[Frame]:
        content: Any = event.text if isinstance(event, Token) else [{"type": "thinking", "thinking": event.text}]
        chunk = AIMessageChunk(content=content, id=event.message_id)
        if "messages-tuple" in self._modes:
            return [Frame("messages", [chunk, self._run])]
        if "messages" not in self._modes:
            return ()
        before = self._whole.get(event.message_id)
        whole = chunk if before is None else before + chunk
        assert isinstance(whole, AIMessageChunk)
        self._whole[event.message_id] = whole
        return [Frame("messages/partial", [message_chunk_to_message(whole)])]


class _Second:
    """Everything, each piece as a delta of a block of its message; whoever follows chooses among the channels."""

    tells_state = True

    def __init__(self, turn: Turn) -> None:
        self._about = {NAMESPACE: [], TIMESTAMP: int(turn.received_at.timestamp() * 1000)}
        self._message_id = ""
        """Of the message that is being said."""
        self._kind = ""
        """Of its open block."""
        self._index = -1
        self._text: list[str] = []

    def wanted(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        return batch

    def state(self, values: Json) -> Frame:
        return self._frame("values", values)

    def of(self, event: TurnEvent) -> Sequence[Frame]:
        if isinstance(event, Token | Thinking):
            return [self._frame("messages", data) for data in self._piece(event)]
        ended = [self._frame("messages", data) for data in self._end_of_message()]
        if isinstance(event, Accepted | Done | Failed):
            return ended
        return [*ended, self._frame(_mode(event), _body(event))]

    def _frame(self, method: str, data: Json) -> Frame:
        return Frame(VERSION_2 + method, {**self._about, **data})

    def _piece(self, event: Token | Thinking) -> Iterator[Json]:
        kind = "text" if isinstance(event, Token) else "reasoning"
        if event.message_id != self._message_id:
            yield from self._end_of_message()
            self._message_id = event.message_id
            yield {"event": "message-start", "role": "ai", "id": event.message_id}
        if kind != self._kind:
            yield from self._end_of_block()
            self._kind, self._index = kind, self._index + 1
            yield {"event": "content-block-start", "index": self._index, "content": {"type": kind, kind: ""}}
        self._text.append(event.text)
        delta = {"type": f"{kind}-delta", kind: event.text}
        yield {"event": "content-block-delta", "index": self._index, "delta": delta}

    def _end_of_block(self) -> Iterator[Json]:
        if self._kind:
            content = {"type": self._kind, self._kind: "".join(self._text)}
            yield {"event": "content-block-finish", "index": self._index, "content": content}
            self._kind, self._text = "", []

    def _end_of_message(self) -> Iterator[Json]:
        yield from self._end_of_block()
        if self._message_id:
            yield {"event": "message-finish"}
            self._message_id, self._index = "", -1


def _mode(event: TurnEvent) -> str:
    return "updates" if isinstance(event, StateChanged) else "custom"


def _body(event: TurnEvent) -> Json:
    if isinstance(event, StateChanged):
        return {event.node: {"loops": event.loops, **event.details}}
    return {"type": event.kind, **{name: value for name, value in asdict(event).items() if name != "number"}}
