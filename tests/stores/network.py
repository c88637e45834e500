"""The network between a service and PostgreSQL: a proxy in the test's loop that delays, cuts, half-closes, or swallows
what is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

_PIECE_BYTES = 65_536


class Network:
    """Listens on a port of its own and hands everything on, both ways, until it is told otherwise."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._links: set[_Link] = set()
        self._delivers = _set_event()
        self.is_cut = False
        """Whether connections are refused."""
        self.delay_seconds = 0.0
        self.cut_after_bytes: int | None = None
        """How much of what the server says a new connection delivers before it breaks."""
        self.port = 0

    def url(self, database: str, **parameters: int) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}?" + "&".join(
            f"{name}={value}" for name, value in parameters.items()
        )

    async def end(self) -> None:
        self.break_all()
        for link in list(self._links):
            await asyncio.wait(link.tasks)

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        self.is_cut = True
        self.break_all()

    def break_all(self) -> None:
        for link in list(self._links):
            link.abort()

    def half_close(self) -> None:
        """Say that the server has said its last, on connections that still take what is sent."""
        for link in list(self._links):
            link.half_close()

    def freeze(self) -> None:
        """Nothing that is sent arrives any more, and nobody is told."""
        self._delivers.clear()

    def abandon(self) -> None:
        """The same for the connections there are; new ones are as before."""
        self._delivers.clear()
        self._delivers = _set_event()

    def mend(self) -> None:
        """What is still connected was lost meanwhile, as after a change of route; new connections are as before."""
        self.is_cut, self.delay_seconds, self.cut_after_bytes = False, 0.0, None
        self.break_all()
        self._delivers.set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_unix_connection(str(self._socket))
        link = _Link(self, self._delivers, writer, far_writer)
        self._links.add(link)
        ways = ((reader, far_writer, None), (far_reader, writer, self.cut_after_bytes))
        link.tasks = [asyncio.create_task(link.hand_on(*way)) for way in ways]
        await asyncio.wait(link.tasks)
        self._links.discard(link)


class _Link:
    """One connection through it."""

    def __init__(
        self, network: Network, delivers: asyncio.Event, near: asyncio.StreamWriter, far: asyncio.StreamWriter
    ) -> None:
        self._network = network
        self._delivers = delivers
        self._near = near
        self._far = far
        self.tasks: list[asyncio.Task[None]] = []

    def abort(self) -> None:
        self._near.transport.abort()
        self._far.transport.abort()
        for task in self.tasks:
            task.cancel()

    def half_close(self) -> None:
        with suppress(OSError, RuntimeError):
            self._near.write_eof()

    async def hand_on(self, one: asyncio.StreamReader, other: asyncio.StreamWriter, left: int | None) -> None:
        with suppress(OSError, RuntimeError):
            while piece := await one.read(_PIECE_BYTES if left is None else min(left, _PIECE_BYTES)):
                await self._delivers.wait()
                await asyncio.sleep(self._network.delay_seconds)
                other.write(piece)
                await other.drain()
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        break
        self.abort()


@asynccontextmanager
async def network_to(folder: Path) -> AsyncIterator[Network]:
    """Between us and the server whose socket is in a folder."""
    network = Network(folder / ".s.PGSQL.5432")
    server = await asyncio.start_server(network.connected, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    try:
        yield network
    finally:
        server.close()
        await network.end()


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
