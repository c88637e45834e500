"""The body that starts a run, and the validated request that the engine runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from everthread.core.errors import Invalid, TurnRunning
from everthread.core.ids import new_id
from everthread.core.turns import MultitaskStrategy
from everthread.http.protocol.run_context import context_for
from everthread.http.protocol.serialization import JsonObject

Mode = Literal["values", "messages", "messages-tuple", "updates", "events", "tasks", "checkpoints", "debug", "custom"]
Durability = Literal["sync", "async", "exit"]
Nodes = Literal["*"] | list[str]
_SERVER_KEYS = frozenset(
    {"thread_id", "run_id", "graph_id", "assistant_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"}
)
_PRIVATE_PREFIXES = ("__", "everthread_", "langgraph_auth")
"""Keys of `configurable` with these prefixes are for LangGraph or us to set: one of them names the owner."""


@contextmanager
def busy_thread(id: str, request: RunRequest) -> Iterator[None]:
    """A refused run in the words of this protocol."""
    try:
        yield
    except TurnRunning as problem:
        if request.strategy != "reject":
            raise
        raise TurnRunning(
            f"a run of thread {id!r} is not finished, and nothing was stored: wait for it, cancel it, or let this one "
            "wait with multitask_strategy='enqueue'"
        ) from problem


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given


class CheckpointRef(BaseModel):
    """A checkpoint."""

    checkpoint_id: str | None = Field(default=None, max_length=128)
    checkpoint_ns: str | None = None
    checkpoint_map: dict[str, Any] | None = None
    thread_id: str | None = None

    def configurable(self) -> JsonObject:
        """The keys of LangGraph's `configurable`."""
        given = self.model_dump(include={"checkpoint_id", "checkpoint_ns", "checkpoint_map"})
        return {name: value for name, value in given.items() if value is not None}


class RunBody(BaseModel):
    """A run to start. Unknown keys are ignored: clients send new ones with each release."""

    model_config = ConfigDict(extra="ignore")

    assistant_id: str = Field(
        min_length=1, max_length=128, description="The id of an assistant, or the name of a graph."
    )
    input: Any = None
    command: dict[str, Any] | None = Field(default=None, description="`resume`, `update`, `goto`.")
    stream_mode: Annotated[list[Mode], BeforeValidator(_as_list)] = Field(default=["values"])
    stream_subgraphs: bool = False
    stream_resumable: bool = Field(default=True, description="Ignored: every stream can be resumed.")
    config: dict[str, Any] = Field(default_factory=dict)
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    checkpoint: CheckpointRef | None = None
    checkpoint_id: str | None = Field(default=None, max_length=128)
    checkpoint_during: bool | None = None
    interrupt_before: Nodes | None = None
    interrupt_after: Nodes | None = None
    multitask_strategy: MultitaskStrategy = "enqueue"
    if_not_exists: Literal["reject", "create"] = "reject"
    on_disconnect: Literal["continue", "cancel"] = "continue"
    on_completion: Literal["delete", "keep"] = Field(
        default="delete", description="What to do with the thread of a stateless run."
    )
    durability: Durability | None = None
    webhook: str | None = None
    after_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run as it will run: the body's values over the assistant's."""

    graph_id: str
    assistant_id: str
    input: Any
    command: Mapping[str, Any] | None
    modes: Sequence[Mode]
    subgraphs: bool
    config: JsonObject
    context: Mapping[str, Any] | None
    metadata: JsonObject
    checkpoint: JsonObject
    interrupt_before: Nodes | None
    interrupt_after: Nodes | None
    strategy: MultitaskStrategy
    durability: Durability
    is_temporary: bool = False
    version: Literal[1, 2] = 1
    run_id: str | None = None
    """The id of a run that may be requested several times and must run once."""

    def graph_context(self, schema: Any) -> JsonObject | None:
        """The context for a graph with this `context_schema`; Invalid when it is wrong."""
        return context_for(schema, self.context, self.config.get("configurable", {}))

    def with_message_ids(self) -> RunRequest:
        """The same request, whose messages have ids: whatever becomes of the run, each can be found in the log."""
        given = self.input.get("messages") if isinstance(self.input, dict) else None
        if not given:
            return self
        messages = [_with_id(message) for message in (given if isinstance(given, list) else [given])]
        return replace(self, input={**self.input, "messages": messages})

    def kwargs(self) -> JsonObject:
        """The request, as the protocol shows it with a run."""
        return {
            "input": self.input,
            "command": self.command,
            "config": self.config,
            "context": self.context or {},
            "stream_mode": list(self.modes),
            "interrupt_before": self.interrupt_before,
            "interrupt_after": self.interrupt_after,
            "webhook": None,
            "feedback_keys": None,
            "temporary": self.is_temporary,
            "subgraphs": self.subgraphs,
            "resumable": True,
            "checkpoint_during": self.durability != "exit",
            "durability": self.durability,
            "version": self.version,
            "graph_id": self.graph_id,
        }

    def row_metadata(self) -> JsonObject:
        """The parts of the request that are stored in the run's row."""
        return {"metadata": self.metadata, "kwargs": self.kwargs(), "multitask_strategy": self.strategy}

    def run_config(self, thread_id: str, run_id: str) -> JsonObject:
        """The config for LangGraph; the server's own keys come last, so that nobody can override them. As on
        LangGraph's server, a graph that still looks for its context there finds it."""
        configurable = {
            **_user_keys({"configurable": self.context}),
            **self.config.get("configurable", {}),
            **self.checkpoint,
            "thread_id": thread_id,
            "run_id": run_id,
            "graph_id": self.graph_id,
            "assistant_id": self.assistant_id,
        }
        server = {
            "graph_id": self.graph_id,
            "assistant_id": self.assistant_id,
            "run_id": run_id,
            "run_attempt": 1,
            "thread_id": thread_id,
        }
        metadata = {**self.config.get("metadata", {}), **self.metadata, **server}
        return {**self.config, "configurable": configurable, "metadata": metadata, "run_id": UUID(run_id)}


def _with_id(message: Any) -> Any:
    """A message as LangGraph would read it, with an id; whatever it would refuse stays as it is."""
    if isinstance(message, str):
        return {"role": "user", "content": message, "id": new_id()}
    if isinstance(message, list) and len(message) == 2:
        return {"role": message[0], "content": message[1], "id": new_id()}
    if isinstance(message, dict) and message.get("id") is None and "lc" not in message:
        return {**message, "id": new_id()}
    return message


def parse_run_request(
    body: RunBody,
    assistant: Mapping[str, Any],
    *,
    is_temporary: bool = False,
    version: Literal[1, 2] = 1,
    run_id: str | None = None,
) -> RunRequest:
    """Merge a body with its assistant; Invalid for what is not supported here."""
    if body.webhook is not None:
        raise Invalid("not supported; follow the run, or wait for its end with /join", field="webhook")
    if body.after_seconds:
        raise Invalid("not supported; start the run when it is due", field="after_seconds")
    checkpoint = body.checkpoint.configurable() if body.checkpoint else {}
    if body.checkpoint_id:
        checkpoint["checkpoint_id"] = body.checkpoint_id
    return RunRequest(
        graph_id=assistant["graph_id"],
        assistant_id=assistant["assistant_id"],
        input=body.input,
        command=body.command,
        modes=body.stream_mode or ["values"],
        subgraphs=body.stream_subgraphs,
        config=_config(assistant["config"], body.config),
        context=_context(assistant["context"], body),
        metadata={
            **assistant["metadata"],
            **body.metadata,
            "graph_id": assistant["graph_id"],
            "assistant_id": assistant["assistant_id"],
        },
        checkpoint=checkpoint,
        interrupt_before=body.interrupt_before,
        interrupt_after=body.interrupt_after,
        strategy=body.multitask_strategy,
        durability=body.durability or ("exit" if body.checkpoint_during is False else "async"),
        is_temporary=is_temporary,
        version=version,
        run_id=run_id,
    )


def _context(base: Mapping[str, Any], body: RunBody) -> JsonObject | None:
    """The assistant's context with the run's over it; a run that has none may say the same in `configurable`."""
    given = body.context or (_user_keys(body.config) if base else {})
    return {**base, **given} or None


def _config(base: Mapping[str, Any], given: Mapping[str, Any]) -> JsonObject:
    """The assistant's config with the run's over it, without the keys that only the server may set."""
    config: JsonObject = {}
    if tags := given.get("tags") or base.get("tags"):
        config["tags"] = tags
    limit = given.get("recursion_limit", base.get("recursion_limit"))
    if limit is not None:
        if not isinstance(limit, int) or not 1 <= limit <= 10_000:
            raise Invalid("must be an integer from 1 to 10000", field="config.recursion_limit")
        config["recursion_limit"] = limit
    config["configurable"] = {**_user_keys(base), **_user_keys(given)}
    if metadata := {**(base.get("metadata") or {}), **(given.get("metadata") or {})}:
        config["metadata"] = metadata
    return config


def _user_keys(config: Mapping[str, Any]) -> JsonObject:
    given = config.get("configurable") or {}
    if not isinstance(given, Mapping):
        raise Invalid("must be an object", field="config.configurable")
    return {
        name: value
        for name, value in given.items()
        if name not in _SERVER_KEYS and not name.startswith(_PRIVATE_PREFIXES)
    }
