"""Who a message in a graph's list is: its own id or, where it has none, one that the next run finds again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, convert_to_messages

from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.history.ingest import canonical
from everthread.integrations.langchain.payloads import from_langchain, plain_payload

Shaped = BaseMessage | Mapping[str, Any]
"""A message as a state holds it."""


class Named(NamedTuple):
    """A message and the id it is logged by."""

    id: str
    message: Shaped

    def payload(self) -> dict[str, Any]:
        """What the log keeps; a message without an id carries the one it was given."""
        payload = payload_of(self.message)
        return payload if payloads.message_id(payload) == self.id else with_id(payload, self.id)

    def says(self, kept: Mapping[str, Any]) -> bool:
        """Whether the log keeps just this. Asked for every message of every event: the dump comes last."""
        message = self.message
        if isinstance(message, BaseMessage) and _fields(message) == kept:
            return True
        return self.payload() == kept


def _fields(message: BaseMessage) -> Mapping[str, Any]:
    """The fields as they are now: some middleware edits a message in place, so its identity says nothing."""
    own, extra = vars(message), message.__pydantic_extra__
    return {**own, **extra} if extra else own


class Naming:
    """Gives the messages of one list their ids, event after event.

    A message without an id gets one made from the thread, its position and what it says: the same list in
    a later run makes the same ids. Within a run an object keeps the id it was given, wherever it moves.
    """

    def __init__(self, scope: Sequence[str]) -> None:
        self._scope = list(scope)
        self._given: dict[int, Named] = {}

    def name_all(self, messages: Iterable[object]) -> dict[str, Named]:
        """The messages by id, in the list's order. Where an id stands twice, the last one is meant."""
        found = list(self._named(messages))
        self._given = {id(named.message): named for named in found if _own_id(named.message) != named.id}
        return {named.id: named for named in found}

    def _named(self, messages: Iterable[object]) -> Iterator[Named]:
        for position, given in enumerate(messages):
            message = shaped(given, position)
            if getattr(message, "type", None) == "remove":  # an instruction to a reducer; nobody said it
                continue
            known = self._given.get(id(message))
            own = _own_id(message)
            if known is not None and known.message is message:
                yield known
            else:
                yield Named(self._made(message, position) if own is None else own, message)

    def _made(self, message: Shaped, position: int) -> str:
        said = canonical(payload_of(message))
        return "made-" + sha256(json.dumps([self._scope, position, said]).encode()).hexdigest()[:32]


def shaped(message: object, position: int) -> Shaped:
    """A message as it is; LangChain's shorthands, `"hi"` and `("user", "hi")`, as the messages they mean."""
    if isinstance(message, BaseMessage | Mapping):
        return message
    if isinstance(message, str | tuple | list):
        (meant,) = convert_to_messages([message])
        return meant
    raise Invalid(f"a {type(message).__name__} is no message", field=f"messages[{position}]")


def payload_of(message: Shaped) -> dict[str, Any]:
    """The message as JSON, a copy that later edits do not reach."""
    return from_langchain(message) if isinstance(message, BaseMessage) else plain_payload(message)


def with_id(payload: dict[str, Any], id: str) -> dict[str, Any]:
    """The payload with this id, where its shape keeps it."""
    inner = payloads.fields(payload)
    if inner is payload:
        return {**payload, "id": id}
    place = "kwargs" if payload.get("lc") == 1 else "data"
    return {**payload, place: {**inner, "id": id}}


def _own_id(message: Shaped) -> str | None:
    if isinstance(message, BaseMessage):
        return message.id or None
    found = payloads.message_id(message)
    return found if found is None or isinstance(found, str) else str(found)
