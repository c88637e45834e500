"""What the middleware hears, put into the log: the lists of all threads that its agents work on."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from langgraph.config import get_config

from everthread.adapters.checkpoints.spots import spot_of
from everthread.core.nouns import Ref
from everthread.instance import Everthread
from everthread.langgraph.events import Namespace
from everthread.langgraph.ledgers import Ledger
from everthread.langgraph.scopes import Scopes

_MOST_THREADS = 64


class Where(NamedTuple):
    """The thread and the graph in it that a hook is called in."""

    thread: Ref
    namespace: Namespace


def here(owner: str) -> Where:
    """Where the running hook is. Its own node is the last part of LangGraph's namespace, and not part of ours."""
    spot = spot_of(get_config(), owner)
    return Where(Ref(spot.owner, spot.thread_id), tuple(spot.namespace.split("|")[:-1]))


class _Thread:
    """One thread: hooks of parallel tools take turns."""

    def __init__(self, et: Everthread, ref: Ref) -> None:
        self.scopes = Scopes(et, ref.id, ref.owner)
        self.turn = asyncio.Lock()


class Hearing:
    """The threads heard of last. What is forgotten of one is read from the log again."""

    def __init__(self, et: Everthread) -> None:
        self._et = et
        self._threads: OrderedDict[Ref, _Thread] = OrderedDict()

    def _thread(self, ref: Ref) -> _Thread:
        found = self._threads.setdefault(ref, _Thread(self._et, ref))
        self._threads.move_to_end(ref)
        while len(self._threads) > _MOST_THREADS:
            self._threads.popitem(last=False)
        return found

    async def hear(self, where: Where, listed: Sequence[object], new: Sequence[object] = ()) -> Ledger:
        """Log a graph's list, then what is new and not in it yet; give the log they went to."""
        thread = self._thread(where.thread)
        async with thread.turn:
            await thread.scopes.log(where.namespace, listed)
            await thread.scopes.add(where.namespace, new)
            return thread.scopes.ledger(where.namespace)

    def ledger(self, where: Where) -> Ledger:
        """Where the messages of a graph go."""
        return self._thread(where.thread).scopes.ledger(where.namespace)
