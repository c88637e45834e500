"""Legal holds: what must not be erased, who said so, when and why. A hold and its release are kept for ever.

A hold is on a conversation, with those of its subagents, or on everything of an owner. It is checked before an erase
begins; one that had begun goes on. Holds are documents of the server itself, whose name no owner can have, so nobody's
erase takes them along.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from everthread.core.clock import to_micros
from everthread.core.errors import Conflict, Held, Invalid, NotFound
from everthread.core.ids import check_conversation_id, check_id, check_text, new_id
from everthread.core.items import ItemChanges, ItemKey, StoredItem
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.history.read import descendants

MAX_REASON_CHARACTERS = 2_000
RECORDS = "the records of legal holds on what this owner has: who, when and the reason that was given"
"""The entry for holds in an erase report, under what it cannot reach."""
_SERVER = ""
_NAMESPACE = "everthread.holds"
DOCUMENTS = f"SELECT value FROM items WHERE owner = '{_SERVER}' AND namespace = '{_NAMESPACE}'"
"""The query of `everthread doctor`, which reads a database without opening it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A hold: what must not be erased, and who ordered it.

    ```python
    hold = await et.holds.add("alice", reason="case 12/2026", by="legal@example.org")
    print(hold.id, hold.is_active)
    ```
    """

    id: str
    owner: str
    conversation_id: str | None
    """None for everything of the owner."""
    reason: str
    held_by: str
    held_at: datetime
    released_by: str | None = None
    released_at: datetime | None = None

    @property
    def is_active(self) -> bool:
        """Whether it was not released yet."""
        return self.released_at is None

    def __str__(self) -> str:
        whose = f"the owner {self.owner!r}" if self.conversation_id is None else f"{self.conversation_id!r}"
        return f"hold {self.id} on {whose}, by {self.held_by} since {self.held_at:%Y-%m-%d %H:%M}: {self.reason}"


class Holds:
    """Legal holds: `et.holds`. While one stands, an erase of what it is on is refused with `Held`.

    ```python
    hold = await et.holds.add("local", "trip", reason="case 12/2026", by="legal@example.org")
    await et.holds.release(hold.id, by="legal@example.org")
    ```
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, owner: str, conversation: str | None = None, *, reason: str, by: str) -> Hold:
        """Hold a conversation, or everything of an owner. Raises NotFound when there is no such conversation, and
        Conflict when it is held already."""
        hold = Hold(
            id=new_id(),
            owner=check_id(owner, "owner"),
            conversation_id=None if conversation is None else check_conversation_id(conversation, "conversation"),
            reason=_check_reason(reason),
            held_by=check_id(by, "by"),
            held_at=datetime.now(UTC),
        )
        if hold.conversation_id is not None:
            info = await self._store.conversations.get(Ref(hold.owner, hold.conversation_id))
            if info.off_record:
                raise Invalid("a conversation off the record is not kept, so it cannot be held", field="conversation")
        known = [one for one in await self.list(hold.owner) if one.conversation_id == hold.conversation_id]
        if known:
            raise Conflict(f"it is held already: {known[0]}")
        await self._keep(hold)
        return hold

    async def release(self, id: str, *, by: str) -> Hold:
        """Let go. The record of the hold stays, with who released it. Raises NotFound when no hold has this id."""
        found = await self._store.items.get(_SERVER, [ItemKey(_NAMESPACE, check_id(id, "id"))])
        if not found:
            raise NotFound(f"no hold {id!r}")
        hold = _hold(found[0])
        if not hold.is_active:
            raise Conflict(f"hold {id} was released already, by {hold.released_by}")
        released = replace(hold, released_by=check_id(by, "by"), released_at=datetime.now(UTC))
        await self._keep(released)
        return released

    async def list(self, owner: str | None = None, *, include_released: bool = False) -> Sequence[Hold]:
        """Return the holds, newest first; of one owner, or of all."""
        found = [_hold(item) for item in await self._store.items.under(_SERVER, _NAMESPACE)]
        found.sort(key=lambda hold: (hold.held_at, hold.id), reverse=True)
        return [one for one in found if owner in (None, one.owner) and (include_released or one.is_active)]

    async def check(self, owner: str, conversation: str | None) -> None:
        """Raise Held when a conversation must not be erased, what it is a subagent's of, or one of its own subagents';
        or with None, when not everything of an owner may be."""
        holds = await self.list(owner)
        if conversation is not None and any(one.conversation_id is not None for one in holds):
            related = await self._related(owner, conversation)
            holds = [one for one in holds if one.conversation_id is None or one.conversation_id in related]
        self._refuse(holds)

    async def check_memory(self, owner: str, source: str | None) -> None:
        """Raise Held when a memory must not be erased: all of the owner's are held, or the conversation it is from."""
        if source is not None:
            await self.check(owner, source)
        self._refuse([one for one in await self.list(owner) if one.conversation_id is None])

    def _refuse(self, standing: Sequence[Hold]) -> None:
        if standing:
            raise Held(f"nothing was erased: {standing[0]}. `everthread hold release` lets it go")

    async def _related(self, owner: str, conversation: str) -> set[str]:
        found: set[str] = set()
        above: str | None = conversation
        try:
            while above is not None:
                found.add(above)
                above = (await self._store.conversations.get(Ref(owner, above))).parent_id
        except NotFound:  # the erase itself says so
            pass
        return found | {one.id async for one in descendants(self._store.conversations, owner, conversation)}

    async def _keep(self, hold: Hold) -> None:
        now = to_micros(datetime.now(UTC))
        value = json.dumps(asdict(hold), default=datetime.isoformat).encode()
        item = StoredItem(_NAMESPACE, hold.id, value, now, now)
        await self._store.items.change(_SERVER, ItemChanges(put=[item]))


def standing(values: Iterable[bytes]) -> int:
    """How many of these documents are active holds."""
    return sum(json.loads(value)["released_at"] is None for value in values)


def _check_reason(reason: object) -> str:
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON_CHARACTERS:
        raise Invalid(f"say why, in 1 to {MAX_REASON_CHARACTERS:,} characters", field="reason")
    return check_text(reason.strip(), "reason")


def _hold(item: StoredItem) -> Hold:
    kept: dict[str, Any] = json.loads(item.value)
    times = {name: kept[name] and datetime.fromisoformat(kept[name]) for name in ("held_at", "released_at")}
    return Hold(**{**kept, **times})
