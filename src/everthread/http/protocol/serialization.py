"""LangGraph's objects as JSON: messages, states, interrupts; and commands, on the way in."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import PurePath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
from langgraph.types import Command, Interrupt, Send, StateSnapshot
from pydantic import AnyUrl, BaseModel, SecretStr

from everthread.core.errors import Invalid

JsonObject = dict[str, Any]
_ADDRESSES = IPv4Address | IPv4Interface | IPv4Network | IPv6Address | IPv6Interface | IPv6Network


def dumps(value: object) -> bytes:
    """JSON as bytes, whatever a state holds: what has no form in JSON is written as its `repr`, and half of a surrogate
    pair as `?`, because LangGraph's clients cannot read it."""
    try:
        return orjson.dumps(value, default=_to_json, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        return json.dumps(value, default=_to_json, ensure_ascii=False).encode(errors="replace")


def to_plain(value: object) -> Any:
    """The same as plain Python values, to be stored or compared."""
    return json.loads(dumps(value))


def contains(value: Any, wanted: Any) -> bool:
    """Whether all that is wanted is in a value: each member of an object, each element of a list."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            name in value and contains(value[name], inner) for name, inner in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(contains(one, inner) for one in value) for inner in wanted)
    return bool(value == wanted)


def _to_json(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # a named one
        return value._asdict()
    if isinstance(value, Send):
        return {"node": value.node, "args": value.arg}
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes | bytearray):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _scalar_to_json(value)


def _scalar_to_json(value: object) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, timezone | ZoneInfo):
        return value.tzname(None) or str(value)
    if isinstance(value, UUID | BaseException | PurePath | AnyUrl | SecretStr | _ADDRESSES):
        return str(value)
    return repr(value)


# -- checkpoints and states ------------------------------------------------------------------------------------------


def checkpoint_out(config: Mapping[str, Any] | None) -> JsonObject | None:
    """The checkpoint that a config points to, or None."""
    given = (config or {}).get("configurable") or {}
    if not given.get("thread_id") or not given.get("checkpoint_id"):
        return None
    found = {"checkpoint_id": given["checkpoint_id"], "thread_id": given["thread_id"]}
    if "checkpoint_ns" in given:
        found["checkpoint_ns"] = given["checkpoint_ns"] or ""
    if "checkpoint_map" in given:
        found["checkpoint_map"] = given["checkpoint_map"]
    return found


def state_out(snapshot: StateSnapshot) -> JsonObject:
    """A state, as `/threads/{id}/state` returns it."""
    checkpoint, parent = checkpoint_out(snapshot.config), checkpoint_out(snapshot.parent_config)
    metadata: JsonObject | None = None if snapshot.metadata is None else {**snapshot.metadata}
    if metadata is not None and checkpoint is not None:
        metadata["thread_id"] = checkpoint["thread_id"]  # which LangGraph itself leaves out
    return {
        "values": snapshot.values,
        "next": list(snapshot.next),
        "tasks": [_task_out(task) for task in snapshot.tasks],
        "metadata": metadata,
        "created_at": snapshot.created_at,
        "checkpoint": checkpoint,
        "parent_checkpoint": parent,
        "interrupts": [interrupt_out(one) for one in snapshot.interrupts],
        "checkpoint_id": None if checkpoint is None else checkpoint["checkpoint_id"],
        "parent_checkpoint_id": None if parent is None else parent["checkpoint_id"],
    }


def _task_out(task: Any) -> JsonObject:
    inside = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": task.path,
        "error": None if task.error is None else str(task.error),
        "interrupts": [interrupt_out(one) for one in task.interrupts],
        "checkpoint": inside["configurable"] if isinstance(inside, dict) else None,
        "state": state_out(inside) if isinstance(inside, StateSnapshot) else None,
        "result": task.result,
    }


def interrupt_out(interrupt: Interrupt) -> JsonObject:
    """What a graph asks for, and the id to answer it by."""
    found = {"id": interrupt.id, "value": interrupt.value}
    schema = getattr(interrupt, "response_schema", None)
    return found if schema is None else {**found, "response_schema": schema}


# -- on the way in ---------------------------------------------------------------------------------------------------


def parse_command(given: Mapping[str, Any]) -> Command[Any]:
    """A command from its JSON; Invalid names the part that is wrong."""
    unknown = set(given) - {"update", "resume", "goto"}
    if unknown:
        raise Invalid(f"unknown key {sorted(unknown)[0]!r}; allowed: update, resume, goto", field="command")
    return Command(
        update=_parse_update(given.get("update")), goto=_parse_goto(given.get("goto")), resume=given.get("resume")
    )


def _parse_update(given: Any) -> Any:
    """A list of pairs is a list of writes: unlike a mapping, it may write the same key twice."""
    if isinstance(given, list) and all(isinstance(one, list) and len(one) == 2 for one in given):
        return [(str(key), value) for key, value in given]
    return given


def _parse_goto(given: Any) -> Sequence[str | Send]:
    listed = given if isinstance(given, list) else [] if given is None else [given]
    return [_parse_step(one) for one in listed]


def _parse_step(given: Any) -> str | Send:
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and isinstance(given.get("node"), str):
        return Send(given["node"], given.get("input"))
    raise Invalid('must be the name of a node, or {"node": …, "input": …}', field="command.goto")
