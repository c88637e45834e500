"""The protocol's part of an app: what is served and what runs, made at the first need, closed when the app stops."""

from __future__ import annotations

from functools import cached_property

from everthread.http.protocol.graphs import Graphs, Offer
from everthread.http.protocol.own import NAME, Own
from everthread.http.protocol.running import Running
from everthread.http.protocol.served import Served
from everthread.http.talking import Talk
from everthread.instance import Everthread


class Office:
    """Made with the app, which may be before any loop runs; the rest needs one."""

    def __init__(self, et: Everthread, graphs: Graphs, talk: Talk) -> None:
        self._et = et
        self.own = Own(et, talk)
        own = Offer(id=NAME, made=self.own.drawn, description="Our own agent: it never forgets.")
        self.graphs = Graphs(offers={NAME: own, **graphs.offers})

    @cached_property
    def served(self) -> Served:
        """The graphs, for whoever asks."""
        return Served(self._et, self.graphs)

    @cached_property
    def running(self) -> Running:
        """The runs of this process."""
        return Running(self.served, self.own if self.graphs.get(NAME).made == self.own.drawn else None)

    async def close(self, seconds: float) -> None:
        """Let what runs end for a while, and close the rest as interrupted."""
        if "running" in self.__dict__:
            await self.running.close(seconds)
