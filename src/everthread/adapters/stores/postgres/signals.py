"""Changes of turns, and erasures, from process to process: LISTEN on a connection of its own, NOTIFY in the writer's
transaction.

The connection is opened with the first subscriber, kept while there are any, and opened again when it breaks.
Waiting readers also poll, more slowly, so what is missed meanwhile, or behind a pooler that does not pass
notifications on, is found all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from everthread.adapters.stores.change_signals import ChangeSignals, OnChange, signal_key
from everthread.adapters.stores.postgres import errors
from everthread.adapters.stores.postgres.turn_statements import CHANNEL
from everthread.core.cancellation import wait_for_event
from everthread.core.errors import EverthreadError
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.recent import forget_texts
from everthread.core.turns import Change

_LOG = logging.getLogger("everthread.postgres")
_RECONNECT_SECONDS = 1.0
_ALIVE_SECONDS = 30.0
_MOST_KEYS = 400
"""In one notification, which holds at most 8,000 bytes."""


_ERASED = "erased"
_CANNOT_LISTEN: tuple[type[Exception], ...] = (*errors.DRIVER, EverthreadError)


class PostgresSignals(ChangeSignals):
    """The subscribers of one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        super().__init__()
        self._connect = connect
        self._sender = new_id()[-12:]
        """Tells our own notifications, which subscribers have heard of already, from those of others."""
        self._listener: asyncio.Task[None] | None = None

    def subscribe(self, ref: Ref, on_change: OnChange) -> Callable[[], None]:
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name="turn notifications")
        return super().subscribe(ref, on_change)

    def payloads(self, refs: Sequence[Ref], *, is_state: bool) -> Sequence[str]:
        """What to notify other processes of: sender, kind, and the keys of conversations."""
        keys = sorted({signal_key(ref) for ref in refs})
        prefix = f"{self._sender} {'state' if is_state else 'events'} "
        return [prefix + " ".join(keys[start : start + _MOST_KEYS]) for start in range(0, len(keys), _MOST_KEYS)]

    def erased_payload(self) -> str:
        """What to notify other processes of when something was erased: they forget what they keep of texts."""
        return f"{self._sender} {_ERASED}"

    async def close(self) -> None:
        """Stop listening."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            connection = None
            try:
                connection = await self._connect()
                broken = asyncio.Event()
                connection.add_termination_listener(lambda _, broken=broken: broken.set())
                await connection.add_listener(CHANNEL, self._on_notification)
                self.publish_to_all(Change(is_state=True, is_remote=True))  # some may have been missed meanwhile
                forget_texts()  # of an erase, too
                while not await wait_for_event(broken, _ALIVE_SECONDS):
                    await connection.execute("SELECT")  # on a network that drops what is sent, nothing else would tell
            except _CANNOT_LISTEN as problem:
                _LOG.warning("cannot listen for notifications; polling instead", exc_info=problem)
            finally:
                if connection is not None:
                    with suppress(*errors.DRIVER):
                        connection.terminate()
            await asyncio.sleep(_RECONNECT_SECONDS)

    def _on_notification(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        sender, kind, *keys = payload.split(" ")
        if kind == _ERASED:
            forget_texts()
        elif sender != self._sender:
            change = Change(is_state=kind == "state", is_remote=True)
            for key in keys:
                self.publish_key(key, change)
