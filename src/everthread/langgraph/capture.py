"""What the log holds of the lists that one run's events carry: one scope for the thread, and one for each subgraph.

Every event brings its whole list again. A scope remembers what the log has of the list it saw last, so that an event
costs a comparison for each message, and a write only for what is new or was changed. A message is known by its own id
or, where it has none, by one that the next run computes again.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages

from everthread.adapters.checkpoints.in_flight import in_flight_puts
from everthread.adapters.checkpoints.langchain_json import from_langchain, made_id, subgraph_conversation_id
from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.errors import Invalid, NotFound
from everthread.core.ids import check_conversation_id
from everthread.core.nouns import Ref
from everthread.history.json_values import json_payload
from everthread.instance import Everthread

Namespace = tuple[str, ...]
"""Which subgraph an event comes from, as LangGraph writes it; `()` is the graph itself."""
LoggedPayload = Mapping[str, Any] | None
"""A message as the log has it; None for one that is not to be written: erased, or another conversation's."""


class LazyConversation:
    """One conversation that may not exist yet. A parent is made before its child."""

    def __init__(
        self,
        et: Everthread,
        id: str,
        owner: str,
        *,
        parent: LazyConversation | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id
        self._et = et
        self._owner = owner
        self._parent = parent
        self._metadata = metadata
        self._conversation: Conversation | None = None

    async def read(self, ids: Iterable[str]) -> dict[str, LoggedPayload]:
        """The messages that the log has of these, each in its newest revision."""
        if await self._existing() is None:
            return {}
        entries = await self._et.store.log.find(Ref(self._owner, self.id), ids=list(ids))
        return {entry.id: None if entry.raw is None else json.loads(entry.raw) for entry in entries}

    async def write(self, payloads: Iterable[Mapping[str, Any]]) -> None:
        """Append; durable when this returns."""
        conversation = await self._ensured()
        await conversation._append_captured(list(payloads))

    async def conversation(self) -> Conversation:
        """The conversation itself."""
        return await self._ensured()

    async def _existing(self) -> Conversation | None:
        if self._conversation is None:
            try:
                self._conversation = await self._et.conversations.get(self.id, self._owner)
            except NotFound:
                return None
        return self._conversation

    async def _ensured(self) -> Conversation:
        if self._conversation is None:
            parent = None if self._parent is None else await self._parent._ensured()
            self._conversation = await self._et.conversations.ensure(
                self.id, self._owner, parent_id=None if parent is None else parent.id, metadata=self._metadata
            )
        return self._conversation

    async def child_of(self, namespace: list[str]) -> str | None:
        """The id of the newest child that was made for this namespace."""
        conversation = await self._existing()
        if conversation is None:
            return None
        async for child in conversation.children():
            if child.metadata.get("namespace") == namespace:
                return child.id
        return None


class StateMessage(NamedTuple):
    """A message as a state holds it. One is made for every message of every event, so it is made cheaply."""

    message: BaseMessage | Mapping[str, Any]
    fields: Mapping[str, Any]
    """A message's fields as they are now: some middleware edits a message in place, so identity says nothing."""
    own_id: str | None

    @property
    def is_instruction(self) -> bool:
        """Whether it is an instruction to a reducer to remove a message."""
        return self.fields.get("type") == "remove"

    def payload(self) -> dict[str, Any]:
        """The message as JSON, a copy that later edits do not reach."""
        return from_langchain(self.message) if isinstance(self.message, BaseMessage) else json_payload(self.message)


def state_message(given: object, position: int) -> StateMessage:
    """A message as it is; LangChain's shorthands, `"hi"` and `("user", "hi")`, as the messages they mean."""
    if isinstance(given, BaseMessage):
        extra = given.__pydantic_extra__
        return StateMessage(given, {**vars(given), **extra} if extra else vars(given), given.id or None)
    if isinstance(given, Mapping):
        own = payloads.message_id(given)
        return StateMessage(given, given, own if own is None or isinstance(own, str) else str(own))
    if isinstance(given, str | tuple | list):
        (meant,) = convert_to_messages([given])
        return state_message(meant, position)
    raise Invalid(f"not a message: {type(given).__name__}", field=f"messages[{position}]")


class IdentifiedMessage(NamedTuple):
    """A message and the id it is logged by."""

    id: str
    found: StateMessage

    def payload(self) -> dict[str, Any]:
        """What the log keeps; a message without an id carries the one it was given."""
        payload = self.found.payload()
        return payload if self.found.own_id == self.id else with_id(payload, self.id)

    def says(self, kept: Mapping[str, Any]) -> bool:
        """Whether the log has exactly this message. Called for every message of every event, so the dump comes last."""
        return self.found.fields == kept or self.payload() == kept


class MessageIds:
    """Gives the messages of one list their ids, event after event.

    A message without an id gets one made from the thread, its position and what it says: the same list in a later
    run makes the same ids. Within a run an object keeps the id it was given, wherever it moves.
    """

    def __init__(self, scope: Sequence[str]) -> None:
        self._scope = list(scope)
        self._given: dict[int, IdentifiedMessage] = {}

    def name_all(self, messages: Iterable[object]) -> dict[str, IdentifiedMessage]:
        """The messages by id, in the list's order. Where an id stands twice, the last one is meant."""
        listed: dict[str, IdentifiedMessage] = {}
        given: dict[int, IdentifiedMessage] = {}
        for position, message in enumerate(messages):
            found = state_message(message, position)
            if not found.is_instruction:
                named = self._name(found, position)
                listed[named.id] = named
                if named.id != found.own_id:
                    given[id(found.message)] = named
        self._given = given
        return listed

    def _name(self, found: StateMessage, position: int) -> IdentifiedMessage:
        known = self._given.get(id(found.message)) if self._given else None
        if known is not None and known.found.message is found.message:
            return IdentifiedMessage(known.id, found)
        return IdentifiedMessage(
            made_id(self._scope, position, found.payload()) if found.own_id is None else found.own_id, found
        )


def with_id(payload: dict[str, Any], id: str) -> dict[str, Any]:
    """The payload with this id, where its shape keeps it."""
    inner = payloads.fields(payload)
    if inner is payload:
        return {**payload, "id": id}
    field = "kwargs" if payload.get("lc") == 1 else "data"
    return {**payload, field: {**inner, "id": id}}


MessagesById = Mapping[str, IdentifiedMessage]
"""A list of messages by id, in its order."""
WaitForPuts = Callable[[], Awaitable[None]]
"""Waits until the checkpoints that are on their way, which tell where a run goes on, are in the log."""


class ListCapture:
    """One list and the conversation that its messages go to.

    What an enclosing conversation logged first was handed down to this list, and is not copied.
    """

    def __init__(
        self, ledger: LazyConversation, wait_for_puts: WaitForPuts, enclosing: Sequence[LazyConversation] = ()
    ) -> None:
        self.ledger = ledger
        self._wait_for_puts = wait_for_puts
        self._enclosing = enclosing
        self._kept: dict[str, LoggedPayload] | None = None

    def continues_with(self, listed: MessagesById) -> bool:
        """Whether this may be the same list some steps later: it has a message in common with what was seen."""
        return not self._kept or not self._kept.keys().isdisjoint(listed)

    async def log(self, listed: MessagesById) -> None:
        """Log what is new or changed in the list."""
        kept = await self._known(listed)
        fresh = {id: named.payload() for id, named in listed.items() if _is_new_or_changed(named, kept)}
        await self._write(fresh)
        self._kept = {id: fresh[id] if id in fresh else kept[id] for id in listed}

    async def add(self, listed: MessagesById) -> None:
        """Write messages that are on their way into the list."""
        fresh = {id: named.payload() for id, named in listed.items() if _is_new_or_changed(named, self._kept or {})}
        await self._write(fresh)
        self._kept = {**(self._kept or {}), **fresh}

    async def _write(self, fresh: Mapping[str, Mapping[str, Any]]) -> None:
        if fresh:
            await self._wait_for_puts()
            await self.ledger.write(fresh.values())

    async def _known(self, listed: MessagesById) -> dict[str, LoggedPayload]:
        """What the log has of these messages. It is read once; messages unknown after that are new."""
        kept = await self.ledger.read(listed) if self._kept is None else self._kept
        for ledger in self._enclosing:
            if unknown := [id for id in listed if id not in kept]:
                kept = kept | dict.fromkeys(await ledger.read(unknown))
        return kept


def _is_new_or_changed(named: IdentifiedMessage, kept: Mapping[str, LoggedPayload]) -> bool:
    if named.id not in kept:
        return True
    known = kept[named.id]
    return known is not None and not named.says(known)


class RunCapture:
    """All lists of one run, by namespace."""

    def __init__(self, et: Everthread, thread_id: str, owner: str) -> None:
        thread_id = check_conversation_id(thread_id, "thread_id")
        self._et = et
        self._owner = owner
        self._thread = LazyConversation(et, thread_id, owner)
        self._namings: dict[Namespace, MessageIds] = {}
        self._wait_for_puts = partial(in_flight_puts(et).wait_until_none, Ref(owner, thread_id))
        self._scopes: dict[Namespace, ListCapture] = {(): ListCapture(self._thread, self._wait_for_puts)}

    async def log(self, namespace: Namespace, messages: Sequence[object]) -> None:
        """Log one event's list where it belongs."""
        naming = self._namings.setdefault(namespace, MessageIds([self._thread.id, *namespace]))
        if listed := naming.name_all(messages):
            await (await self._scope(namespace, listed)).log(listed)

    async def add(self, namespace: Namespace, messages: Sequence[object]) -> None:
        """Log messages that will stand in a list that was logged before; each has an id."""
        listed = MessageIds([self._thread.id, *namespace]).name_all(messages)
        if listed:
            await self._scopes.get(namespace, self._scopes[()]).add(listed)

    def ledger(self, namespace: Namespace) -> LazyConversation:
        """Where the messages of a namespace go; those of one that has said nothing yet, to the thread."""
        return self._scopes.get(namespace, self._scopes[()]).ledger

    async def _scope(self, namespace: Namespace, listed: MessagesById) -> ListCapture:
        known = self._scopes.get(namespace)
        if known is not None and (namespace == () or known.continues_with(listed)):
            return known
        self._scopes[namespace] = await self._child(namespace, listed)
        return self._scopes[namespace]

    async def _child(self, namespace: Namespace, listed: MessagesById) -> ListCapture:
        outer = [self._scopes.get(namespace[:length]) for length in range(len(namespace))]
        ledger = LazyConversation(
            self._et,
            await self._child_id(namespace, next(iter(listed.values()))),
            self._owner,
            parent=self._thread,
            metadata={"namespace": list(namespace)},
        )
        return ListCapture(ledger, self._wait_for_puts, [scope.ledger for scope in outer if scope is not None])

    async def _child_id(self, namespace: Namespace, first: IdentifiedMessage) -> str:
        """The same for the same thread, namespace and first message, so that a resumed run finds it again.

        A list that begins with a summary has lost its first message; then the newest child there is the one.
        """
        if payloads.is_summary(first.payload()) and (found := await self._thread.child_of(list(namespace))):
            return found
        return subgraph_conversation_id(self._thread.id, namespace, first.id)
