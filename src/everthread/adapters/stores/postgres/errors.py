"""PostgreSQL's errors in our words, and what follows from them: try again, or tell the caller."""

from __future__ import annotations

from json import JSONDecodeError

import asyncpg

from everthread.adapters.stores.postgres.address import Address
from everthread.core.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreGone

DRIVER: tuple[type[Exception], ...] = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)
"""What the driver raises. All but the first are found by the driver itself: the connection is closed, or out of
step."""

UNREADABLE = (UnicodeDecodeError, JSONDecodeError)
"""The exceptions that reading a damaged row raises."""

_LOST = ("08", "57P", "25P03")
"""States of a connection that failed or was idle too long, and of a server that shuts down, crashed or starts."""
_COLLIDED = ("40001", "40P01")
_FULL = ("53100",)
_CROWDED = ("53300",)
_WAITED = ("55P03",)
_CUT_OFF = ("57014",)
"""A statement that took longer than the server is set to allow."""
_DAMAGED = ("XX001", "XX002")
_REFUSED = ("28", "3D000", "42501")
_READ_ONLY = ("25006",)


def is_lost(problem: Exception) -> bool:
    """Whether the connection was lost, so that the outcome of its operation is unknown."""
    if isinstance(problem, asyncpg.PostgresError):
        return _state(problem).startswith(_LOST)
    return not isinstance(problem, ValueError)  # a value that the driver cannot encode


def is_worth_another_try(problem: Exception) -> bool:
    """Whether an immediate retry may succeed; asked only for work whose commit had not begun. After a wait in vain
    for an answer, it is not retried."""
    if isinstance(problem, TimeoutError):
        return False
    return is_lost(problem) or _state(problem) in _COLLIDED


def translated(problem: Exception, address: Address) -> StoreError:
    """The error of an operation that was not committed."""
    state = _state(problem)
    if isinstance(problem, TimeoutError):
        return StoreBusy(
            f"PostgreSQL did not answer within {address.command_timeout} seconds; nothing of this call was stored: "
            "retry, or raise command_timeout in the address"
        )
    if is_lost(problem):
        return StoreGone("the connection to PostgreSQL was lost; nothing of this call was stored: retry")
    if state in _FULL:
        return StoreFull(
            "the server's disk is full; nothing of this call was stored, all before it is safe: make room and retry"
        )
    if state in _WAITED or state in _COLLIDED:
        return StoreBusy("another process holds the conversation; nothing of this call was stored: retry")
    if state in _CUT_OFF:
        return StoreBusy("the server ended the call at its time limit; nothing of it was stored: retry")
    if state in _DAMAGED:
        return StoreDamaged(f"PostgreSQL: {text(problem, address)}: restore a backup")
    if state in _READ_ONLY:
        return StoreError("the server is read-only (a standby?); nothing was stored: connect to the primary")
    return StoreError(f"PostgreSQL: {text(problem, address)}; nothing of this call was stored")


def cannot_connect(problem: Exception, address: Address) -> StoreError:
    """The error of an operation that never reached the database."""
    state = _state(problem)
    if state in _CROWDED:
        return StoreBusy(
            f"{address.place} has no connection left; nothing was stored: retry, or lower pool_size in the address"
        )
    if state.startswith(_REFUSED):
        return StoreError(f"{address.place} refuses the connection: {text(problem, address)}")
    why = "no answer" if isinstance(problem, TimeoutError) else text(problem, address)
    return StoreGone(f"cannot reach PostgreSQL at {address.place}: {why}; nothing was stored: retry when it is back")


def none_free(address: Address) -> StoreBusy:
    """The error of an operation that got no connection."""
    return StoreBusy(
        f"no connection to {address.place} became free within {address.command_timeout} seconds; nothing was stored: "
        "retry, or raise pool_size in the address"
    )


def damaged(problem: ValueError) -> StoreDamaged:
    """The error of an operation that met a row it cannot read."""
    return StoreDamaged(f"a row does not hold what was written ({problem}): restore a backup")


def unknown_outcome() -> StoreGone:
    """The error of an operation whose commit got no answer."""
    return StoreGone(
        "the connection to PostgreSQL was lost during the commit, so this call may or may not have been stored: "
        "retry with the same ids or the same idempotency key, which stores nothing twice"
    )


def _state(problem: Exception) -> str:
    return str(getattr(problem, "sqlstate", None) or "")


def text(problem: Exception, address: Address) -> str:
    """What the driver says, its first line only: details of the server can quote a row."""
    said: object = problem.args[0] if isinstance(problem, asyncpg.PostgresError) and problem.args else problem
    return address.without_secrets(str(said).partition("\n")[0])
