"""The assistant `everthread`: a turn of our own agent, as clients of the protocol start and follow it.

Its run is the turn: the same row, and the same events, which are encoded as the protocol's frames for each reader:

    turn event         version 1 of the protocol                    version 2
    accepted           metadata                                     said by its lifecycle
    token, thinking    messages: chunks (messages-tuple), or all    messages: start, deltas and finish of blocks
                       so far (messages/partial)
    state              updates, by the name of the node             updates
    done               values: the newest messages of the log       values
    failed             error                                        said by its lifecycle
    others             custom                                       custom

Frames depend on the events alone, so a reader that comes back gets the same ones. The thread's state is the log:
`state_from_log` serves every conversation that no graph has run on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, Protocol

from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from everthread.adapters.checkpoints.saver import LogSaver
from everthread.conversation import Conversation
from everthread.core.errors import Invalid, NotFound
from everthread.core.nouns import Message, Ref
from everthread.core.turn_events import (
    END,
    ERROR,
    Accepted,
    Done,
    Failed,
    StateChanged,
    Thinking,
    Token,
    TurnEvent,
)
from everthread.core.turns import BUILTIN_MARK, RUN_KIND, Turn
from everthread.http.protocol.graph_stream import METADATA, NAMESPACE, TIMESTAMP, VERSION_2, Frame
from everthread.http.protocol.run_events import RunEvent
from everthread.http.protocol.run_request import RunRequest, busy_thread
from everthread.http.protocol.serialization import JsonObject, dumps
from everthread.http.turn_service import TurnService
from everthread.instance import Everthread
from everthread.langchain.messages import state_message
from everthread.runs.event_log import join_text_events
from everthread.turn.request import TurnOptions
from everthread.turn.run import begin_turn
from everthread.turn.state import AppState

NAME = "everthread"
_CONTEXT_KEYS = (
    "model",
    "model_pref",
    "agent_type",
    "features",
    "kb_prefix",
    "use_retrieval",
    "max_loops",
    "active_skill",
    "allowed_tools",
    "persistent_tools",
    "files",
    "debug",
)
"""What a run's `context` may set."""


class BuiltinAssistant:
    """Runs that are turns of our own agent."""

    def __init__(self, et: Everthread, turns: TurnService) -> None:
        self._et = et
        self._turns = turns

    def graph(self) -> Any:
        """The agent's graph, to be drawn."""
        return self._turns.agent.graph

    async def check(self, conversation: Conversation, request: RunRequest) -> None:
        """Raise what `begin` would raise for an invalid request, storing nothing."""
        options = TurnOptions(**_options(request))
        await self._turns.check(conversation, _question(request), options)

    async def begin(self, conversation: Conversation, request: RunRequest) -> Turn:
        """Start a turn; the question is durable when this returns."""
        options = TurnOptions(
            **_options(request),
            when_busy="interrupt" if request.strategy == "rollback" else request.strategy,
            kind=RUN_KIND,
            assistant=request.assistant_id,
            metadata={**request.row_metadata(), BUILTIN_MARK: True},
            turn_id=request.run_id,
        )
        with busy_thread(conversation.id, request):
            live = await begin_turn(
                conversation,
                _question(request),
                agent=self._turns.agent,
                options=options,
                after=partial(hide_thread, conversation) if request.is_temporary else None,
            )
        if conversation.title is None and not conversation.off_record:
            await conversation.request_title()
        return await conversation.turn(live.id)

    async def follow(self, ref: Ref, turn: Turn, after: int) -> AsyncIterator[Sequence[RunEvent]]:
        """A turn's events as frames. Those up to `after` are encoded too, because later ones build on them."""
        conversation = await self._et.conversations.get(ref.id, ref.owner)
        encoder = turn_encoder(turn)
        number, is_empty = 0, True
        async for batch in self._turns.follow_batches(conversation, turn.id):
            is_empty = False
            events: list[RunEvent] = []
            for event in encoder.select(batch):
                frames = list(encoder.frames(event))
                if isinstance(event, Done) and encoder.wants_state:
                    values = await _values_after(conversation, turn.id, event)
                    frames += [] if values is None else [encoder.state_frame(values)]
                for frame in frames:
                    # Where one event makes several frames, each has a number of its own: a reader may have only some.
                    number = number + 1 if encoder.counts_frames else event.number
                    if number > after:
                        events.append(RunEvent(number, frame.event, dumps(frame.data)))
                number = number if encoder.counts_frames else event.number
            if events:
                yield events
        if not is_empty and number + 1 > after:
            yield [RunEvent(number + 1, END, b"null")]


async def hide_thread(thread: Conversation) -> None:
    """The end of a run on a thread of its own that is not to be kept."""
    with suppress(NotFound):  # erased meanwhile
        await thread.delete()


async def _values_after(conversation: Conversation, turn_id: str, done: Done) -> JsonObject | None:
    """The thread's state as the turn left it: the same whenever it is asked for, and whatever was said or edited since.
    None for a turn that left nothing."""
    last_seq = (await conversation.turn(turn_id)).question_seq
    if done.answer_id is not None:
        with suppress(NotFound):
            last_seq = (await conversation.message(done.answer_id)).seq
    if last_seq is None:
        return None
    newest = await conversation.tail(STATE_MESSAGES, branch=last_seq)
    return {"messages": [_state_message(message) for message in newest]}


def _question(request: RunRequest) -> object:
    if request.command is not None:
        raise Invalid("this assistant has no interrupts to resume; send a message", field="command")
    if not isinstance(request.input, dict):
        return request.input
    if set(request.input) - {"messages"}:
        raise Invalid("only `messages` is accepted", field="input")
    return request.input.get("messages")


def _options(request: RunRequest) -> JsonObject:
    given = dict(request.context or {})
    if unknown := sorted(set(given) - set(_CONTEXT_KEYS)):
        raise Invalid(f"unknown key {unknown[0]!r}; allowed: {', '.join(_CONTEXT_KEYS)}", field="context")
    return given


# -- a turn's events as frames ---------------------------------------------------------------------------------------


class TurnEncoder(Protocol):
    """Encodes the events of one turn."""

    def select(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        """The events of a batch that get frames."""

    def frames(self, event: TurnEvent) -> Sequence[Frame]:
        """The frames of an event, without the state at the end."""

    def state_frame(self, values: JsonObject) -> Frame:
        """The thread's state."""

    @property
    def wants_state(self) -> bool:
        """Whether the run asked for the state."""

    @property
    def counts_frames(self) -> bool:
        """Whether frames are numbered by themselves, because an event may have several."""


def turn_encoder(turn: Turn) -> TurnEncoder:
    """The encoder for the version of the protocol in which the run was started."""
    return _TurnEncoderV2(turn) if turn.metadata.get("kwargs", {}).get("version") == 2 else _TurnEncoderV1(turn)


class _TurnEncoderV1:
    """At most one frame per event, in the modes that were asked for; partial messages are put together here."""

    counts_frames = False

    def __init__(self, turn: Turn) -> None:
        self._modes: Sequence[Any] = turn.metadata.get("kwargs", {}).get("stream_mode", ["values"])
        self._metadata = {"run_id": turn.id, "thread_id": turn.conversation_id, "langgraph_node": "plan"}
        self._partial: dict[str, AIMessageChunk] = {}

    @property
    def wants_state(self) -> bool:
        return "values" in self._modes

    def select(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        """`messages/partial` repeats all so far, so one frame does for several tokens."""
        return batch if "messages-tuple" in self._modes else join_text_events(batch)

    def state_frame(self, values: JsonObject) -> Frame:
        return Frame("values", values)

    def frames(self, event: TurnEvent) -> Sequence[Frame]:
        if isinstance(event, Done):
            return ()
        if isinstance(event, Accepted):
            return [Frame(METADATA, {"run_id": event.turn_id, "attempt": 1})]
        if isinstance(event, Failed):
            return [Frame(ERROR, {"error": event.code, "message": event.message})]
        if isinstance(event, Token | Thinking):
            return self._message_frames(event)
        mode = _mode(event)
        return [Frame(mode, _body(event))] if mode in self._modes else ()

    def _message_frames(self, event: Token | Thinking) -> Sequence[Frame]:
        content: Any = event.text if isinstance(event, Token) else [{"type": "thinking", "thinking": event.text}]
        chunk = AIMessageChunk(content=content, id=event.message_id)
        if "messages-tuple" in self._modes:
            return [Frame("messages", [chunk, self._metadata])]
        if "messages" not in self._modes:
            return ()
        before = self._partial.get(event.message_id)
        whole = chunk if before is None else before + chunk
        assert isinstance(whole, AIMessageChunk)
        self._partial[event.message_id] = whole
        return [Frame("messages/partial", [message_chunk_to_message(whole)])]


class _TurnEncoderV2:
    """Everything, with each token as a delta of a block of its message; the reader chooses among the channels."""

    wants_state = True
    counts_frames = True

    def __init__(self, turn: Turn) -> None:
        self._extra = {NAMESPACE: [], TIMESTAMP: int(turn.received_at.timestamp() * 1000)}
        self._message_id = ""
        """The id of the message that is open."""
        self._block_kind = ""
        """The kind of its open block."""
        self._index = -1
        self._text: list[str] = []

    def select(self, batch: Sequence[TurnEvent]) -> Iterable[TurnEvent]:
        return batch

    def state_frame(self, values: JsonObject) -> Frame:
        return self._frame("values", values)

    def frames(self, event: TurnEvent) -> Sequence[Frame]:
        if isinstance(event, Token | Thinking):
            return [self._frame("messages", data) for data in self._message_events(event)]
        ended = [self._frame("messages", data) for data in self._finish_message()]
        if isinstance(event, Accepted | Done | Failed):
            return ended
        return [*ended, self._frame(_mode(event), _body(event))]

    def _frame(self, method: str, data: JsonObject) -> Frame:
        return Frame(VERSION_2 + method, {**self._extra, **data})

    def _message_events(self, event: Token | Thinking) -> Iterator[JsonObject]:
        kind = "text" if isinstance(event, Token) else "reasoning"
        if event.message_id != self._message_id:
            yield from self._finish_message()
            self._message_id = event.message_id
            yield {"event": "message-start", "role": "ai", "id": event.message_id}
        if kind != self._block_kind:
            yield from self._finish_block()
            self._block_kind, self._index = kind, self._index + 1
            yield {"event": "content-block-start", "index": self._index, "content": {"type": kind, kind: ""}}
        self._text.append(event.text)
        delta = {"type": f"{kind}-delta", kind: event.text}
        yield {"event": "content-block-delta", "index": self._index, "delta": delta}

    def _finish_block(self) -> Iterator[JsonObject]:
        if self._block_kind:
            content = {"type": self._block_kind, self._block_kind: "".join(self._text)}
            yield {"event": "content-block-finish", "index": self._index, "content": content}
            self._block_kind, self._text = "", []

    def _finish_message(self) -> Iterator[JsonObject]:
        yield from self._finish_block()
        if self._message_id:
            yield {"event": "message-finish"}
            self._message_id, self._index = "", -1


def _mode(event: TurnEvent) -> str:
    return "updates" if isinstance(event, StateChanged) else "custom"


def _body(event: TurnEvent) -> JsonObject:
    if isinstance(event, StateChanged):
        return {event.node: {"loops": event.loops, **event.details}}
    return {"type": event.kind, **{name: value for name, value in asdict(event).items() if name != "number"}}


# -- the log as a thread's state -------------------------------------------------------------------------------------

STATE_MESSAGES = 200
"""How many messages a state shows; `older_cursor` leads to those before."""
_AGENT_KEYS = frozenset(AppState.__annotations__) - {"messages"}


async def state_from_log(saver: LogSaver, conversation: Conversation, cursor: str | None = None) -> JsonObject:
    """The newest messages, or those before a cursor, in the shape of a graph's state; and what our own agent's last
    turn left there: todos, the skill in use, files, the workspace.

    A conversation that did not come in through a graph has no checkpoint; so clients of the protocol can read it too.
    """
    if cursor is not None and (not cursor.isdecimal() or len(cursor) > 15):
        raise Invalid("must be the `older_cursor` of a state; omit it to start with the newest", field="cursor")
    before = None if cursor is None else int(cursor)
    tail = await conversation.tail(STATE_MESSAGES + 1, before=before)
    newest = tail[-STATE_MESSAGES:]
    messages = {"messages": [_state_message(message) for message in newest]} if newest else {}
    return {
        "values": {**messages, **(await _agent_values(saver, conversation) if newest else {})},
        "next": [],
        "tasks": [],
        "metadata": None,
        "created_at": conversation.updated_at,
        "checkpoint": None,
        "parent_checkpoint": None,
        "interrupts": [],
        "checkpoint_id": None,
        "parent_checkpoint_id": None,
        "older_cursor": str(newest[0].seq) if len(tail) > STATE_MESSAGES else None,
    }


async def _agent_values(saver: LogSaver, conversation: Conversation) -> JsonObject:
    """The state of our own agent without its messages; empty where it has not answered yet."""
    found = await saver.without_types().aget_tuple(
        {"configurable": {"thread_id": conversation.id, "checkpoint_ns": ""}}
    )
    values = {} if found is None else found.checkpoint["channel_values"]
    return {name: value for name, value in values.items() if name in _AGENT_KEYS}


def _state_message(message: Message) -> JsonObject:
    return state_message(message.payload, message.id)
