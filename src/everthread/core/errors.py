"""Every error a caller can meet, in one tree.

    EverthreadError              code, retryable
    ├── NotFound                 no such conversation, message or branch (also: another owner's)
    ├── Conflict                 the state does not allow it
    │   ├── HeadMoved            somebody else appended first: read again, then retry
    │   ├── TurnRunning          another turn of the conversation runs, and was not to be waited for
    │   ├── TurnLost             the turn was taken from this process, which gave no sign of life for too long
    │   ├── Erased               a late write to something that was erased
    │   └── Held                 a legal hold stands in the way of an erase
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
    ├── GraphFailed              the function that makes a served graph failed
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

import re
from typing import ClassVar

DATABASE_CLOSED = "the database is closed; open it with `async with everthread.open(...)`"


class EverthreadError(Exception):
    """The base class of every error that everthread raises.

    `code` is a stable word for programs (the HTTP service sends the same one), and `retryable` says whether the same
    call may succeed if it is simply made again.

    ```py
    try:
        await conv.append(message)
    except everthread.EverthreadError as error:
        print(error.code, "try again later" if error.retryable else error)
    ```
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class NotFound(EverthreadError):
    """There is no such conversation, message, branch or other object, or it belongs to another owner.

    ```python
    try:
        conv = await et.conversations.get("holiday")
    except everthread.NotFound:
        conv = await et.conversations.create(id="holiday")
    ```
    """

    code = "not_found"


class Conflict(EverthreadError):
    """The current state does not allow the call, for example because the id is already taken. Nothing was changed.

    ```python
    try:
        await et.conversations.create(id="trip")
    except everthread.Conflict:
        conv = await et.conversations.get("trip")
    ```
    """

    code = "conflict"


class HeadMoved(Conflict):
    """The branch has grown since the caller last read it: read it again, then decide whether to retry.

    ```python
    try:
        await conv.append({"role": "user", "content": "Book it."}, expected_head=3)
    except everthread.HeadMoved:
        newest = (await conv.tail(1))[0]  # somebody else was faster: look at what they wrote
    ```
    """

    code = "head_moved"
    retryable = True


class TurnRunning(Conflict):
    """Another turn of the conversation is running, and the caller asked not to wait for it.

    ```py
    try:
        events = [event async for event in everthread.run_turn(conv, "Hello", agent=agent, when_busy="reject")]
    except everthread.TurnRunning:
        print("still answering the previous question")
    ```
    """

    code = "turn_running"
    retryable = True


class TurnLost(Conflict):
    """The turn has ended or another process has taken it over, so this process may no longer write to it.

    It happens to a process that was suspended for longer than its lease. Nothing of the late write was stored.

    ```py
    async for event in everthread.run_turn(conv, "Hello", agent=agent):
        if event.kind == "failed" and event.code == everthread.TurnLost.code:
            page = await conv.turns(limit=1)  # how the turn really ended
    ```
    """

    code = "turn_lost"


class Erased(Conflict):
    """The target of the call was erased for good, and cannot be written to or created again.

    ```python
    await et.erase(conversation="trip")
    try:
        await conv.append({"role": "user", "content": "Are you still there?"})
    except everthread.Erased:
        conv = await et.conversations.create()
    ```
    """

    code = "erased"


class Held(Conflict):
    """A legal hold is on what was to be erased: the message names it, and nothing was erased.

    ```python
    hold = await et.holds.add("local", "trip", reason="case 12/2026", by="legal@example.org")
    try:
        await et.erase(conversation="trip")
    except everthread.Held as error:
        print(error)  # which hold, by whom, since when and why
    ```
    """

    code = "held"


class Invalid(EverthreadError):
    """An argument has the wrong type or value. `field` names it, and nothing was stored.

    ```python
    try:
        await conv.append({"content": "a message without a role"})
    except everthread.Invalid as error:
        print(error.field, error)
    ```
    """

    code = "invalid"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        """The part of the input that is wrong, as a path such as `messages[2].content`."""


class KeyReused(Invalid):
    """The idempotency key was already used with different content. Use a new key for new content.

    ```python
    await conv.append({"role": "user", "content": "Yes."}, idempotency_key="request-7")
    try:
        await conv.append({"role": "user", "content": "No."}, idempotency_key="request-7")
    except everthread.KeyReused:
        await conv.append({"role": "user", "content": "No."}, idempotency_key="request-8")
    ```
    """

    code = "key_reused"


class ContextOverflow(EverthreadError):
    """Not even the smallest valid request fits the budget. Shorten the system prompt or raise the budget.

    ```python
    try:
        await conv.context(system="Answer briefly. " * 1000, budget=everthread.Budget(window=1_000))
    except everthread.ContextOverflow:
        context = await conv.context(system="Answer briefly.", budget=everthread.Budget(window=8_000))
    ```
    """

    code = "context_overflow"


class ModelError(EverthreadError):
    """A model or its provider failed. The subclasses say how; what was stored before the failure stays.

    A turn does not raise it: it ends with a `failed` event that carries the same code.

    ```py
    async for event in everthread.run_turn(conv, "Hello", agent=agent):
        if event.kind == "failed" and event.retryable:
            print("try again:", event.code)  # "model_busy", "model_timeout" or "model_unreachable"
    ```
    """

    code = "model_error"


class ModelKeyMissing(ModelError):
    """The provider's API key is not set. The message names the environment variable.

    ```py
    async for event in everthread.run_turn(conv, "Hello", agent=everthread.agent(et, model="openai:gpt-5-mini")):
        if event.kind == "failed" and event.code == "model_key_missing":
            print(event.message)  # names OPENAI_API_KEY
    ```
    """

    code = "model_key_missing"


class ModelRefused(ModelError):
    """The provider rejected the request: it is malformed, or the account may not make it. Retrying does not help.

    ```py
    if event.kind == "failed" and event.code == everthread.ModelRefused.code:
        print(event.message)  # what the provider said
    ```
    """

    code = "model_refused"


class ModelOverflow(ModelError):
    """The provider found the request too long for the model. The next request is counted more carefully.

    ```py
    if event.kind == "failed" and event.code == everthread.ModelOverflow.code:
        events = everthread.run_turn(conv, None, agent=agent)  # answer again: it is made to fit
    ```
    """

    code = "model_overflow"


class ModelBusy(ModelError):
    """The provider has no capacity at the moment, or a rate limit was reached. Retryable.

    ```py
    if event.kind == "failed" and event.code == everthread.ModelBusy.code:
        await asyncio.sleep(30)
    ```
    """

    code = "model_busy"
    retryable = True


class ModelTimeout(ModelError):
    """The model did not answer in time. Retryable.

    ```py
    if event.kind == "failed" and event.code == everthread.ModelTimeout.code:
        print("so far:", event.text)  # what had arrived is stored
    ```
    """

    code = "model_timeout"
    retryable = True


class ModelUnreachable(ModelError):
    """The provider cannot be reached at the moment. Retryable.

    ```py
    if event.kind == "failed" and event.code == everthread.ModelUnreachable.code:
        print("check the network and EVERTHREAD_MODEL_BASE_URL")
    ```
    """

    code = "model_unreachable"
    retryable = True


class GraphFailed(EverthreadError):
    """A graph that is served could not be made: the function that `langgraph.json` names for it failed.

    ```py
    error = httpx.get("http://127.0.0.1:8123/assistants/agent/schemas").json()
    print(error["code"], error["detail"])  # "graph_failed", and what the function said
    ```
    """

    code = "graph_failed"


class MissingExtra(EverthreadError):
    """An optional part of everthread is not installed. The message contains the command that installs it.

    ```py
    try:
        et = everthread.open("postgresql://user@host/name")
    except everthread.MissingExtra as error:
        print(error)  # PostgreSQL needs an extra: pip install 'everthread[postgres]'
    ```
    """

    code = "missing_extra"

    def __init__(self, message: str) -> None:
        extra = re.search(r"pip install 'everthread(\[\w+\])'$", message)
        super().__init__(f"{message} (in a clone: pip install '.{extra[1]}')" if extra else message)


class StoreError(EverthreadError):
    """The database failed. Nothing of the call was stored; everything that was acknowledged earlier is safe.

    ```py
    try:
        await conv.append(message)
    except everthread.StoreError as error:
        if error.retryable:
            await conv.append(message)  # safe when the message has an id
    ```
    """

    code = "store_error"


class StoreBusy(StoreError):
    """Another process held the database for too long. Retryable.

    ```py
    try:
        await conv.append(message)
    except everthread.StoreBusy:
        await asyncio.sleep(1)
        await conv.append(message)
    ```
    """

    code = "store_busy"
    retryable = True


class StoreFull(StoreError):
    """The disk is full, and nothing of the call was stored. Retryable once there is room.

    ```py
    try:
        await conv.append(message)
    except everthread.StoreFull:
        print("free some disk space, then send the message again")
    ```
    """

    code = "store_full"
    retryable = True


class StoreGone(StoreError):
    """The connection broke during the call, so it may or may not have been stored. Retry with the same ids.

    ```py
    message = {"role": "user", "content": "Hello", "id": "m1"}
    try:
        await conv.append(message)
    except everthread.StoreGone:
        await conv.append(message)  # the id makes sure that it is stored once
    ```
    """

    code = "store_gone"
    retryable = True


class StoreDamaged(StoreError):
    """The file is not a valid database of everthread, or no longer one.

    ```py
    try:
        async with everthread.open("sqlite:///data/et.db") as et:
            report = await et.verify()
    except everthread.StoreDamaged as error:
        print(error, "- restore a backup")
    ```
    """

    code = "store_damaged"
