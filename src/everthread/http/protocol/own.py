"""The assistant `everthread`: a turn of our own agent, as clients of the protocol begin and follow it.

Its run is the turn: the same row, the same events, told in the protocol's words (words.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.core.nouns import Ref
from everthread.core.turn_events import Done, TurnEvent
from everthread.core.turns import Turn
from everthread.http.journal import Told
from everthread.http.protocol.asked import Asked
from everthread.http.protocol.frames import END, Frame
from everthread.http.protocol.projecting import projected
from everthread.http.protocol.rows import KIND
from everthread.http.protocol.wire import Json, dumps
from everthread.http.protocol.words import Words, words_of
from everthread.http.talking import Talk
from everthread.instance import Everthread
from everthread.turn.options import Options
from everthread.turn.run import begin_turn

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
        words = words_of(turn)
        last = 0
        async for batch in self._talk.follow_batches(conversation, turn.id):
            told: list[Told] = []
            for event in words.wanted(batch):
                last = event.number
                frames = [*words.of(event), *await self._state(conversation, words, event)]
                told += (Told(last, frame.event, dumps(frame.data)) for frame in frames if last > after)
            if told:
                yield told
        if last + 1 > after:
            yield [Told(last + 1, END, b"null")]

    async def _state(self, conversation: Conversation, words: Words, event: TurnEvent) -> Sequence[Frame]:
        """How the thread stands at the end of a turn."""
        if not isinstance(event, Done) or not words.tells_state:
            return ()
        return [words.state((await projected(self._et, conversation))["values"])]


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
