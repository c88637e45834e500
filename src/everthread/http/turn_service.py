"""Turns as clients of the service follow them. A turn is a task of the server, never of a connection.

A reader that goes away changes nothing. One that comes back names the last event it has and gets the rest: from the
turn itself while it runs here, else from the database. Once events are pruned, it gets one `snapshot` of how the turn
ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from typing import Any

from langchain_core.runnables import RunnableConfig

from everthread import bootstrap
from everthread.conversation import Conversation
from everthread.core.errors import KeyReused, NotFound, TurnRunning
from everthread.core.nouns import Message, Ref
from everthread.core.turn_events import Done, Failed, Token, TurnEvent
from everthread.core.turns import Turn
from everthread.http.responses import dumps
from everthread.instance import Everthread
from everthread.runs.event_log import TurnCodec
from everthread.settings import Settings
from everthread.turn.agent import Agent
from everthread.turn.finish import outcome_of
from everthread.turn.request import TurnOptions, validate
from everthread.turn.run import begin_turn

REQUEST_HASH = "request"
"""The key in a turn's metadata of the request's hash, if it came with an idempotency key."""


class TurnService:
    """The turns of one app, and the agent that runs them."""

    def __init__(self, et: Everthread, settings: Settings) -> None:
        self._et = et
        self._settings = settings

    @cached_property
    def agent(self) -> Agent:
        """Created for the first turn, in the event loop that serves it."""
        return bootstrap.agent(self._et, settings=self._settings)

    async def begin_in(self, id: str, owner: str, message: object, options: TurnOptions) -> tuple[Conversation, str]:
        """Start a turn in the conversation with this id. A missing conversation is created once the request was
        found valid, so that a refused request leaves nothing."""
        try:
            conversation = await self._et.conversations.get(id, owner)
        except NotFound:
            await self.check(self._et.conversations.unsaved(id, owner), message, options)
            conversation = await self._et.conversations.ensure(id, owner)
        return conversation, await self.begin(conversation, message, options)

    async def begin(
        self, conversation: Conversation, message: object, options: TurnOptions, again: Message | None = None
    ) -> str:
        """Start a turn and return its id; the question is durable then. A turn id that exists is not started again."""
        if options.turn_id is not None and await _is_known(conversation, options):
            return options.turn_id
        try:
            begun = await begin_turn(conversation, message, agent=self.agent, options=options, again=again)
        except TurnRunning:
            if options.turn_id is not None and await _is_known(
                conversation, options
            ):  # the same request, at the same time
                return options.turn_id
            raise
        if conversation.title is None and not conversation.off_record:
            await conversation.request_title()
        return begun.id

    async def check(self, conversation: Conversation, message: object, options: TurnOptions) -> None:
        """Raise what `begin` would raise for an invalid request, storing nothing."""
        await validate(conversation, message, self.agent, options)

    def task(self, conversation: Conversation, turn_id: str) -> asyncio.Task[None] | None:
        """The task of a turn, if it is one of this process."""
        return self._et.runs.task(Ref(conversation.owner, conversation.id), turn_id)

    def follow_batches(
        self, conversation: Conversation, turn_id: str, *, after: int = 0
    ) -> AsyncIterator[Sequence[TurnEvent]]:
        """A turn's events after one, to its end; those of a batch go out in one write."""
        return self._et.runs.follow(Ref(conversation.owner, conversation.id), turn_id, TurnCodec, after=after)

    async def todos(self, conversation: Conversation) -> Sequence[Mapping[str, str]]:
        """The agent's to-do list, as the last turn left it."""
        config: RunnableConfig = {
            "configurable": {"thread_id": conversation.id, "everthread_owner": conversation.owner}
        }
        return (await self.agent.graph.aget_state(config)).values.get("todos") or ()

    async def wait_for_end(self, conversation: Conversation, turn_id: str) -> Done | Failed:
        """The last event of a turn, once it has ended; made from its row where its events are pruned."""
        async for batch in self.follow_batches(conversation, turn_id):
            if isinstance(batch[-1], Done | Failed):
                return batch[-1]
        return await outcome_of(conversation, await conversation.turn(turn_id), number=0)

    async def stop(self, conversation: Conversation, turn_id: str) -> Turn:
        """Stop a turn, wherever it runs."""
        return await self._et.runs.stop(Ref(conversation.owner, conversation.id), turn_id)

    async def frames(self, conversation: Conversation, turn_id: str, *, after: int = 0) -> AsyncIterator[bytes]:
        """A turn as server-sent events: an event's number is its id."""
        has_events = False
        async for batch in self.follow_batches(conversation, turn_id, after=after):
            has_events = True
            yield b"".join(map(encode_event, batch))
        if not has_events and (snapshot := await self._snapshot(conversation, turn_id, after)) is not None:
            yield snapshot

    async def _snapshot(self, conversation: Conversation, turn_id: str, after: int) -> bytes | None:
        """How a turn ended whose events are pruned, or end before where its reader is, as after a restored backup;
        None if neither is so, since the reader then has the last one."""
        async for _ in conversation.turn_events(turn_id, after=max(0, after - 1)):
            return None
        turn = await conversation.turn(turn_id)
        outcome = await outcome_of(conversation, turn, number=0)
        body = {"turn_id": turn.id, "state": turn.state.value, "text": outcome.text}
        return b"event: snapshot\ndata: " + dumps(body) + b"\n\n"


async def _is_known(conversation: Conversation, options: TurnOptions) -> bool:
    try:
        known = await conversation.turn(options.turn_id or "")
    except NotFound:
        return False
    if known.metadata.get(REQUEST_HASH) != options.metadata.get(REQUEST_HASH):
        raise KeyReused("this key was already used with a different request", field="Idempotency-Key")
    return True


def encode_event(event: TurnEvent) -> bytes:
    """A turn's event as a server-sent event. Nearly all are tokens, so these take a shortcut around `asdict`."""
    if isinstance(event, Token):
        data = dumps({"text": event.text, "message_id": event.message_id})
    else:
        body: dict[str, Any] = asdict(event)
        del body["number"]
        data = dumps(body)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.number, event.kind.encode(), data)


def id_from_key(owner: str, key: str, kind: str) -> str:
    """The id of what a request with an idempotency key creates: the same key of one owner gives the same id."""
    digest = sha256("\x00".join((owner, key)).encode()).hexdigest()
    return f"{kind}-{digest[:32]}"
