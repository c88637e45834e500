"""The connections of one event loop to one database, shared by all who open it there.

A call takes a connection, works and gives it back. One that fails because its connection broke, or because
it collided with another, is tried once more, unless its commit had begun: then nobody knows whether it happened,
and the caller is told so. So a restart of the server costs at most the calls in mid commit.

A network may also drop what is sent, without a word: no statement is waited for longer than `command_timeout`, and no
connection is used again that did not answer in time. What may take hours has a connection of its own, which is given
up when the server cannot be reached otherwise (`alone`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, TypeVar

import asyncpg

from everthread.adapters.stores.postgres import errors
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.address import Address, parse
from everthread.adapters.stores.postgres.signals import PostgresSignals
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock, to_micros
from everthread.core.errors import DATABASE_CLOSED, Invalid, StoreBusy, StoreError
from everthread.core.failpoints import reach
from everthread.core.timeouts import time_limit
from everthread.core.timings import Timings

R = TypeVar("R")
Row = Sequence[Any]

_CLOSE_SECONDS = 10
_ALIVE_SECONDS = 15.0
"""How often a server that works on something long is asked whether it is still there."""
_FIRST_OF_OTHERS = 10_000
"""Below this, PostgreSQL's sources give the numbers of types."""
_NOT_ASKED = SimpleNamespace(name="none was made")
"""In the place of the statement that asked: the driver looks whether it took the place of the caller's."""


class Connection(Protocol):
    """The part of the driver's connection that we use."""

    async def fetch(self, query: str, *values: object) -> list[Row]: ...

    async def fetchrow(self, query: str, *values: object) -> Row | None: ...

    async def fetchval(self, query: str, *values: object) -> Any: ...

    async def execute(self, query: str, *values: object) -> str: ...

    async def executemany(self, query: str, rows: Iterable[Row]) -> None: ...

    def transaction(self, *, readonly: bool = False) -> AbstractAsyncContextManager[object]: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


Work = Callable[[Connection], Awaitable[R]]


class Pool:
    """Connections of the running loop. `Pool.of` shares them; the last `release` closes them."""

    _pools: ClassVar[dict[tuple[asyncio.AbstractEventLoop, Address], Pool]] = {}

    @classmethod
    def of(cls, address: Address) -> Pool:
        """The pool of this address in this loop. It connects when it is first used."""
        for place in [place for place in cls._pools if place[0].is_closed()]:
            cls._pools.pop(place, None)
        place = (asyncio.get_running_loop(), address)
        pool = cls._pools.get(place) or cls._pools.setdefault(place, cls(address))
        pool._users += 1
        return pool

    def __init__(self, address: Address) -> None:
        self.address = address
        self._users = 0
        self.signals = PostgresSignals(lambda: connect(address))
        self._begin = sql.BEGIN
        self._starting = asyncio.Lock()
        self._is_started = False
        self.waits = Timings()
        """How long calls waited for a connection."""
        self._connections = asyncpg.create_pool(
            min_size=0,
            max_size=address.pool_size,
            connect=self._connect_one,
            reset=_leave_as_it_is,
        )

    async def start(self) -> None:
        """Prepare a connection: a server that may lose acknowledged commits is told to make them durable."""
        async with self._starting:
            if self._is_started:
                return
            await self._connections
            if await self.read(lambda connection: connection.fetchval(sql.COMMITS_WITHOUT_WAITING)):
                self._begin = sql.BEGIN_DURABLY
            self._is_started = True

    async def release(self) -> None:
        """Let go; the last one out closes the connections."""
        self._users -= 1
        if self._users:
            return
        self._pools.pop((asyncio.get_running_loop(), self.address), None)
        await self.signals.close()
        with suppress(TimeoutError, *errors.DRIVER):  # a stuck call, or a server that died: closing cuts them off
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._connections.close()

    async def read(self, work: Work[R]) -> R:
        """Run it outside of a transaction: each statement sees what is committed when it begins."""
        return await self._twice(work)

    async def write(self, work: Work[R]) -> R:
        """Run it in a transaction; durable when this returns. The work may run twice, its effect is there once."""

        async def in_transaction(connection: Connection) -> R:
            async with self._transaction(connection):
                return await work(connection)

        result = await self._twice(in_transaction)
        reach("ack.before")
        return result

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Connection]:
        """A connection beside the pool, for what changes its session or takes long. Errors are the driver's."""
        connection = await connect(self.address, command_timeout=None)
        watch = asyncio.create_task(self._watch(connection), name="is PostgreSQL there?")
        try:
            yield connection
        finally:
            watch.cancel()
            with suppress(*errors.DRIVER):  # lost already
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await connection.close()

    async def _watch(self, connection: Connection) -> None:
        """End a connection whose server cannot be reached any more, so that its callers stop waiting."""
        while True:
            await asyncio.sleep(_ALIVE_SECONDS)
            try:
                other = await connect(self.address)
            except StoreBusy:  # it has no connection left: it is there
                continue
            except StoreError:
                connection.terminate()
                return
            other.terminate()

    async def _twice(self, work: Work[R]) -> R:
        try:
            return await self._once(work)
        except errors.DRIVER as problem:
            if errors.is_lost(problem):
                await self._connections.expire_connections()
            if not errors.is_worth_another_try(problem):
                raise errors.translated(problem, self.address) from problem
        try:
            return await self._once(work)
        except errors.DRIVER as problem:
            raise errors.translated(problem, self.address) from problem

    async def _once(self, work: Work[R]) -> R:
        async with self._taken() as connection:
            try:
                return await work(connection)
            except errors.UNREADABLE as problem:
                raise errors.damaged(problem) from problem
            except errors.DRIVER as problem:
                if errors.is_lost(problem):
                    _let_go(connection)
                raise

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[Connection]:
        """A connection of the pool. StoreBusy when none becomes free."""
        asked_at = time.perf_counter()
        try:
            async with time_limit(self.address.command_timeout):
                connection = await self._connections.acquire()
        except TimeoutError as problem:
            raise errors.none_free(self.address) from problem
        self.waits.observe(time.perf_counter() - asked_at)
        try:
            yield connection
        finally:
            await self._connections.release(connection)

    @asynccontextmanager
    async def _transaction(self, connection: Connection) -> AsyncIterator[None]:
        await connection.execute(self._begin)
        is_decided = False
        try:
            yield
            is_decided = True
        except TimeoutError:  # a server that does not answer this will not answer the next either
            _let_go(connection)
            is_decided = True
            raise
        finally:
            if not is_decided:
                await connection.execute("ROLLBACK")
        reach("commit.before")
        await _commit(connection)
        reach("commit.after")

    async def _connect_one(self, _: object, **options: object) -> Connection:
        return await connect(self.address, **options)


class PostgresDatabase:
    """One store's hold on the pool of the running loop, its clock and its blobs: what the store's ports work with."""

    def __init__(self, url: str, clock: Clock, blobs: Blobs | None) -> None:
        self.address = parse(url)
        self.clock = clock
        self.blobs = blobs
        self._pool: Pool | None = None

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    @property
    def pool(self) -> Pool:
        """StoreError when the store is closed."""
        if self._pool is None:
            raise StoreError(DATABASE_CLOSED)
        return self._pool

    def now(self) -> int:
        return to_micros(self.clock())

    def acquire(self) -> None:
        self._pool = Pool.of(self.address)

    async def release(self) -> None:
        pool, self._pool = self.pool, None
        await pool.release()


async def connect(address: Address, **options: object) -> Connection:
    """A new connection, or an error that names the place and no password."""
    try:
        connection: Connection = await asyncpg.connect(
            address.dsn,
            timeout=address.connect_timeout,
            statement_cache_size=address.statement_cache_size,
            **{"command_timeout": address.command_timeout, **options, "connection_class": _WellRead},
        )
    except ValueError:  # quotes the part of the address that it does not understand
        raise Invalid("is not a valid PostgreSQL URL; write postgresql://user@host/name", field="url") from None
    except errors.DRIVER as problem:
        raise errors.cannot_connect(problem, address) from problem
    return connection


class _WellRead(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """Asks for the types of PostgreSQL's own catalogue once in a process: their numbers never change.

    The driver asks on each connection, before the first statement with an array of numbers: half of what a
    connection takes until its first append is done. Were the driver to ask by another name, it would ask as often.
    """

    __slots__ = ()
    _known: ClassVar[dict[frozenset[int], Sequence[Row]]] = {}

    async def _introspect_types(self, typeoids: Iterable[int], *within: float | None) -> tuple[Sequence[Row], Any]:
        asked = frozenset(typeoids)
        if asked in self._known:
            return self._known[asked], _NOT_ASKED
        found, statement = await super()._introspect_types(typeoids, *within)
        if max(asked) < _FIRST_OF_OTHERS:
            self._known[asked] = found
        return found, statement


async def _commit(connection: Connection) -> None:
    try:
        status = await connection.execute("COMMIT")
    except errors.DRIVER as problem:
        if errors.is_lost(problem):
            _let_go(connection)
            raise errors.unknown_outcome() from problem
        raise
    if status != "COMMIT":  # what PostgreSQL answers when a statement before had failed
        raise StoreError("PostgreSQL did not commit; nothing of this call was stored")


def _let_go(connection: Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # the pool has let go of it already
        connection.terminate()


async def _leave_as_it_is(_: Connection) -> None:
    """No call changes its session, so the statement that would reset it is a round trip for nothing."""
