"""The assistant `everthread`: a turn of our own agent, as clients of the protocol begin and follow it.

Its run is the turn: the same row, the same events, told in the protocol's words.

    accepted             metadata
    token, thinking      messages            a piece (messages-tuple), or all so far (messages/partial)
    state                updates             by the name of the node
    tool_call, tool_result, recall, compaction     custom
    done                 values              the newest messages of the log
    failed               error
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.core.nouns import Ref
from everthread.core.turn_events import Accepted, Done, Failed, StateChanged, Thinking, Token, TurnEvent
from everthread.core.turns import Turn
from everthread.http.journal import Told
from everthread.http.langgraph.asked import Asked
from everthread.http.langgraph.frames import END, ERROR, METADATA, Frame
from everthread.http.langgraph.projecting import projected
from everthread.http.langgraph.rows import KIND
from everthread.http.langgraph.wire import Json, dumps
from everthread.http.talking import Talk
from everthread.instance import Everthread
from everthread.turn.options import Options
from everthread.turn.run import begin_turn
from everthread.turn.telling import joined

NAME = "everthread"
OWN = "is_own_turn"
"""In the metadata of a row whose events are a turn's."""
_OF_CONTEXT = ("model", "model_pref", "agent_type", "features", "kb_prefix", "max_loops", "active_skill", "debug")
"""What a run's `context` may say."""


def is_own(turn: Turn) -> bool:
    """Whether a run is a turn of our own agent, whichever assistant was made of it."""
    return turn.metadata.get(OWN) is True


class Own:
    """Turns of our own agent, the one that the app talks with."""

    def __init__(self, et: Everthread, talk: Talk) -> None:
        self._et = et
        self._talk = talk

    def drawn(self) -> Any:
        """Its graph, to be shown."""
        return self._talk.agent.graph

    async def begin(self, conversation: Conversation, asked: Asked) -> Turn:
        """Begin a turn; the question is kept when this returns."""
        told = {"metadata": asked.metadata, "kwargs": asked.kwargs(), "multitask_strategy": asked.strategy}
        options = Options(
            **_options(asked),
            when_busy="interrupt" if asked.strategy == "rollback" else asked.strategy,
            kind=KIND,
            assistant=asked.assistant_id,
            metadata={**told, OWN: True},
        )
        live = await begin_turn(conversation, _question(asked), agent=self._talk.agent, options=options)
        return await conversation.turn(live.id)

    def stop(self, id: str) -> None:
        """Stop a turn that runs here."""
        self._talk.stop_here(id)

    async def follow(self, ref: Ref, turn: Turn, after: int) -> AsyncIterator[Sequence[Told]]:
        """What a turn tells, in the protocol's words; what was told before an event is only read."""
        conversation = await self._et.conversations.get(ref.id, ref.owner)
        words = _Words(turn)
        last = 0
        async for batch in self._talk.follow_batches(conversation, turn.id):
            told: list[Told] = []
            for event in words.wanted(batch):
                last = event.number
                frame = await self._values(conversation, words) if isinstance(event, Done) else words.of(event)
                if frame is not None and last > after:
                    told.append(Told(last, frame.event, dumps(frame.data)))
            if told:
                yield told
        if last + 1 > after:
            yield [Told(last + 1, END, b"null")]

    async def _values(self, conversation: Conversation, words: _Words) -> Frame | None:
        if "values" not in words.modes:
            return None
        return Frame("values", (await projected(self._et, conversation))["values"])


def _question(asked: Asked) -> object:
    if asked.command is not None:
        raise Invalid("this assistant never stops to ask; send a message", field="command")
    messages = asked.input.get("messages") if isinstance(asked.input, dict) else asked.input
    if isinstance(asked.input, dict) and set(asked.input) - {"messages"}:
        raise Invalid("knows only messages", field="input")
    return messages


def _options(asked: Asked) -> Json:
    given = dict(asked.context or {})
    if unknown := sorted(set(given) - set(_OF_CONTEXT)):
        raise Invalid(f"knows {', '.join(_OF_CONTEXT)}, not {unknown[0]}", field="context")
    return given


class _Words:
    """One turn's events as frames; pieces of a message are put together here."""

    def __init__(self, turn: Turn) -> None:
        self.modes: Sequence[Any] = turn.metadata.get("kwargs", {}).get("stream_mode", ["values"])
        self._run = {"run_id": turn.id, "thread_id": turn.conversation_id, "langgraph_node": "plan"}
        self._whole: dict[str, AIMessageChunk] = {}

    def wanted(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        """Where each piece shows all before it, one does for several."""
        return batch if "messages-tuple" in self.modes else joined(batch)

    def of(self, event: TurnEvent) -> Frame | None:
        """The frame for an event; None where nobody asked for it."""
        if isinstance(event, Accepted):
            return Frame(METADATA, {"run_id": event.turn_id, "attempt": 1})
        if isinstance(event, Failed):
            return Frame(ERROR, {"error": event.code, "message": event.message})
        if isinstance(event, Token | Thinking):
            return self._piece(event)
        mode = "updates" if isinstance(event, StateChanged) else "custom"
        return Frame(mode, _body(event)) if mode in self.modes else None

    def _piece(self, event: Token | Thinking) -> Frame | None:
        content: Any = event.text if isinstance(event, Token) else [{"type": "thinking", "thinking": event.text}]
        chunk = AIMessageChunk(content=content, id=event.message_id)
        if "messages-tuple" in self.modes:
            return Frame("messages", [chunk, self._run])
        if "messages" not in self.modes:
            return None
        before = self._whole.get(event.message_id)
        whole = chunk if before is None else before + chunk
        assert isinstance(whole, AIMessageChunk)
        self._whole[event.message_id] = whole
        return Frame("messages/partial", [message_chunk_to_message(whole)])


def _body(event: TurnEvent) -> Json:
    if isinstance(event, StateChanged):
        return {event.node: {"loops": event.loops, **event.details}}
    return {"type": event.kind, **{name: value for name, value in asdict(event).items() if name != "number"}}
