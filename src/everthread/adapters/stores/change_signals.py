"""Tells those who wait for a turn of a conversation that something has changed, in this process or from another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

from everthread.core.nouns import Ref
from everthread.core.turns import Change

OnChange = Callable[[Change], None]


class ChangeSignals:
    """The subscribers of one database in one process. `publish` may be called from any thread."""

    def __init__(self) -> None:
        self._subscribers: dict[str, dict[object, tuple[asyncio.AbstractEventLoop, OnChange]]] = {}

    def subscribe(self, ref: Ref, on_change: OnChange) -> Callable[[], None]:
        """Call `on_change` in this event loop from now on; the function that is returned ends it."""
        key, token = signal_key(ref), object()
        self._subscribers.setdefault(key, {})[token] = (asyncio.get_running_loop(), on_change)

        def unsubscribe() -> None:
            subscribers = self._subscribers.get(key, {})
            subscribers.pop(token, None)
            if not subscribers:
                self._subscribers.pop(key, None)

        return unsubscribe

    def publish(self, ref: Ref, *, is_state: bool) -> None:
        """Tell of a change that this process has committed."""
        if self._subscribers:
            self.publish_key(signal_key(ref), Change(is_state=is_state, is_remote=False))

    def publish_key(self, key: str, change: Change) -> None:
        """The same by a conversation's key, as another process names it."""
        for loop, on_change in list(self._subscribers.get(key, {}).values()):
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(on_change, change)

    def publish_to_all(self, change: Change) -> None:
        """Tell everybody: something may have been missed."""
        for key in list(self._subscribers):
            self.publish_key(key, change)


def signal_key(ref: Ref) -> str:
    """A conversation as it is named to other processes: short, and it tells nothing."""
    return sha256("\x00".join(ref).encode("utf-8", "surrogatepass")).hexdigest()[:16]
