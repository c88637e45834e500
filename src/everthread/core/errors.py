"""Every error a caller can meet, in one tree.

    EverthreadError              code, retryable
    ├── NotFound                 no such conversation, message or branch (also: another owner's)
    ├── Conflict                 the state does not allow it
    │   ├── HeadMoved            somebody else appended first: read again, then retry
    │   ├── TurnRunning          another turn of the conversation runs, and was not to be waited for
    │   ├── TurnLost             the turn was taken from this process, which gave no sign of life for too long
    │   └── Erased               a late write to something that was erased
    ├── Invalid                  the input cannot be taken; `field` names the part
    │   └── KeyReused            an idempotency key that came with another body before
    ├── ContextOverflow          not even the smallest valid request fits the budget
    ├── ModelError               a model or its provider failed
    │   ├── ModelKeyMissing      the provider's key is not set; the message names the variable
    │   ├── ModelRefused         the provider does not take the request, or not from this account
    │   ├── ModelOverflow        the provider found the request too long
    │   ├── ModelBusy            it has no capacity now (retryable)
    │   ├── ModelTimeout         it did not answer in time (retryable)
    │   └── ModelUnreachable     there is no way to it now (retryable)
    ├── MissingExtra             an optional part is not installed
    └── StoreError               the database failed; nothing of the call was stored
        ├── StoreBusy            another process held it too long (retryable)
        ├── StoreFull            no room on the disk (retryable once there is)
        ├── StoreGone            the server went away in mid call: outcome unknown, retry by id (retryable)
        └── StoreDamaged         the file is not, or no longer, a sound database

Only `http/errors.py` knows status codes and only `cli/` knows exit codes. A message says what failed, what
is safe, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class EverthreadError(Exception):
    """The root: catch this to catch all of ours."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class NotFound(EverthreadError):
    """It does not exist for this owner."""

    code = "not_found"


class Conflict(EverthreadError):
    """The present state does not allow it."""

    code = "conflict"


class HeadMoved(Conflict):
    """The branch has grown since the caller read it."""

    code = "head_moved"
    retryable = True


class TurnRunning(Conflict):
    """Another turn of the conversation runs."""

    code = "turn_running"
    retryable = True


class TurnLost(Conflict):
    """The turn has ended, or is another process's, before this one wrote to it; nothing of the write was stored."""

    code = "turn_lost"


class Erased(Conflict):
    """What the call writes to was erased for good."""

    code = "erased"


class Invalid(EverthreadError):
    """The input cannot be taken as it is; nothing of it was stored."""

    code = "invalid"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        """The part of the input that is wrong, as a path such as `messages[2].content`."""


class KeyReused(Invalid):
    """The idempotency key was used before, with another body."""

    code = "key_reused"


class ContextOverflow(EverthreadError):
    """Not even the smallest valid request fits."""

    code = "context_overflow"


class ModelError(EverthreadError):
    """A model, or the provider behind it, failed."""

    code = "model_error"


class ModelKeyMissing(ModelError):
    """The key of a provider is not set."""

    code = "model_key_missing"


class ModelRefused(ModelError):
    """The provider does not take the request as it is, or not from this account."""

    code = "model_refused"


class ModelOverflow(ModelError):
    """The provider found the request too long for its model."""

    code = "model_overflow"


class ModelBusy(ModelError):
    """The provider has no capacity for the request now."""

    code = "model_busy"
    retryable = True


class ModelTimeout(ModelError):
    """The model did not answer in time."""

    code = "model_timeout"
    retryable = True


class ModelUnreachable(ModelError):
    """There is no way to the provider now."""

    code = "model_unreachable"
    retryable = True


class MissingExtra(EverthreadError):
    """An optional part of everthread is not installed; the message names the install command."""

    code = "missing_extra"


class StoreError(EverthreadError):
    """The database failed; what was acknowledged before stays."""

    code = "store_error"


class StoreBusy(StoreError):
    """Another process held the database longer than we wait."""

    code = "store_busy"
    retryable = True


class StoreFull(StoreError):
    """There is no room left; nothing of the call was stored."""

    code = "store_full"
    retryable = True


class StoreGone(StoreError):
    """The server went away in mid call: it may or may not have been stored; retry with the same ids."""

    code = "store_gone"
    retryable = True


class StoreDamaged(StoreError):
    """The file is not a sound database of ours."""

    code = "store_damaged"
