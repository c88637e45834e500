"""What the log holds of the lists that one run's events carry: a scope for the thread, and one for each subgraph.

Every event brings its whole list again. A scope remembers what the log has of the list it saw last, so that an
event costs a comparison for each message, and a write only for what is new or was changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from everthread.adapters.checkpoints.arriving import arriving
from everthread.adapters.checkpoints.payloads import child_id
from everthread.core import payloads
from everthread.core.nouns import Ref
from everthread.instance import Everthread
from everthread.langgraph.events import Namespace
from everthread.langgraph.ledgers import Kept, Ledger
from everthread.langgraph.naming import Named, Naming

Listed = Mapping[str, Named]
"""A list of messages by id, in its order."""
Settled = Callable[[], Awaitable[None]]
"""Waits until the checkpoints that are on their way, which tell where a run goes on, are in the log."""


class Scope:
    """One list and the conversation that its messages go to.

    What an enclosing conversation logged first was handed down to this list, and is not copied.
    """

    def __init__(self, ledger: Ledger, settled: Settled, enclosing: Sequence[Ledger] = ()) -> None:
        self.ledger = ledger
        self._settled = settled
        self._enclosing = enclosing
        self._kept: dict[str, Kept] | None = None

    def continues_with(self, listed: Listed) -> bool:
        """Whether this may be the same list some steps later: it has a message in common with what was seen."""
        return not self._kept or not self._kept.keys().isdisjoint(listed)

    async def log(self, listed: Listed) -> None:
        """Write what is new in the list and what was changed in it."""
        kept = await self._known(listed)
        fresh = {id: named.payload() for id, named in listed.items() if _is_fresh(named, kept)}
        await self._write(fresh)
        self._kept = {id: fresh[id] if id in fresh else kept[id] for id in listed}

    async def add(self, listed: Listed) -> None:
        """Write messages that are on their way into the list."""
        fresh = {id: named.payload() for id, named in listed.items() if _is_fresh(named, self._kept or {})}
        await self._write(fresh)
        self._kept = {**(self._kept or {}), **fresh}

    async def _write(self, fresh: Mapping[str, Mapping[str, Any]]) -> None:
        if fresh:
            await self._settled()
            await self.ledger.write(fresh.values())

    async def _known(self, listed: Listed) -> dict[str, Kept]:
        """What is known of these messages. The log is read once: after that, what is unknown is new."""
        kept = await self.ledger.read(listed) if self._kept is None else self._kept
        for ledger in self._enclosing:
            if unknown := [id for id in listed if id not in kept]:
                kept = kept | dict.fromkeys(await ledger.read(unknown))
        return kept


def _is_fresh(named: Named, kept: Mapping[str, Kept]) -> bool:
    if named.id not in kept:
        return True
    known = kept[named.id]
    return known is not None and not named.says(known)


class Scopes:
    """All lists of one run, by namespace."""

    def __init__(self, et: Everthread, thread_id: str, owner: str) -> None:
        self._et = et
        self._owner = owner
        self._thread = Ledger(et, thread_id, owner)
        self._namings: dict[Namespace, Naming] = {}
        self._settled = partial(arriving(et).settled, Ref(owner, thread_id))
        self._scopes: dict[Namespace, Scope] = {(): Scope(self._thread, self._settled)}

    async def log(self, namespace: Namespace, messages: Sequence[object]) -> None:
        """Log one event's list where it belongs."""
        naming = self._namings.setdefault(namespace, Naming([self._thread.id, *namespace]))
        if listed := naming.name_all(messages):
            await (await self._scope(namespace, listed)).log(listed)

    async def add(self, namespace: Namespace, messages: Sequence[object]) -> None:
        """Log messages that will stand in a list that was logged before; each has an id."""
        listed = Naming([self._thread.id, *namespace]).name_all(messages)
        if listed:
            await self._scopes.get(namespace, self._scopes[()]).add(listed)

    def ledger(self, namespace: Namespace) -> Ledger:
        """Where the messages of a namespace go; those of one that has said nothing yet, to the thread."""
        return self._scopes.get(namespace, self._scopes[()]).ledger

    async def _scope(self, namespace: Namespace, listed: Listed) -> Scope:
        known = self._scopes.get(namespace)
        if known is not None and (namespace == () or known.continues_with(listed)):
            return known
        self._scopes[namespace] = await self._child(namespace, listed)
        return self._scopes[namespace]

    async def _child(self, namespace: Namespace, listed: Listed) -> Scope:
        outer = [self._scopes.get(namespace[:length]) for length in range(len(namespace))]
        ledger = Ledger(
            self._et,
            await self._child_id(namespace, next(iter(listed.values()))),
            self._owner,
            parent=self._thread,
            metadata={"namespace": list(namespace)},
        )
        return Scope(ledger, self._settled, [scope.ledger for scope in outer if scope is not None])

    async def _child_id(self, namespace: Namespace, first: Named) -> str:
        """The same for the same thread, namespace and first message, so that a resumed run finds it again.

        A list that begins with a summary has lost its first message; then the newest child there is the one.
        """
        if payloads.is_summary(first.payload()) and (found := await self._thread.child_of(list(namespace))):
            return found
        return child_id(self._thread.id, namespace, first.id)
