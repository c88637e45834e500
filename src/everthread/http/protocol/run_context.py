"""The `context` of a run, as its graph's `context_schema` wants it: with its defaults where the request says nothing,
as LangGraph's own server builds it. What the schema refuses is refused before the run begins, with the field.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import is_typeddict

from everthread.core.errors import Invalid
from everthread.http.protocol.serialization import JsonObject


def context_for(schema: Any, context: Mapping[str, Any] | None, configurable: Mapping[str, Any]) -> JsonObject | None:
    """What a graph with this schema is given: the context or, without one, what `configurable` has for it. Keys that
    the schema does not know are left out. Invalid names the field that is wrong or missing."""
    if schema is None:
        return None if context is None else dict(context)
    names = _names(schema)
    values = {name: value for name, value in (context or configurable).items() if names is None or name in names}
    _check(schema, values)
    return values


def build_context(schema: Any, context: Mapping[str, Any] | None, configurable: Mapping[str, Any]) -> Any:
    """The same as an object of the schema, for a function that makes the graph."""
    values = context_for(schema, context, configurable)
    is_class = isinstance(schema, type) and (issubclass(schema, BaseModel) or dataclasses.is_dataclass(schema))
    return schema(**values or {}) if is_class else values


def _names(schema: Any) -> Collection[str] | None:
    """The keys that a schema knows; None if it takes any."""
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        if schema.model_config.get("extra") == "allow":
            return None
        aliases = [field.alias for field in schema.model_fields.values() if field.alias]
        return {*schema.model_fields, *aliases}
    if dataclasses.is_dataclass(schema):
        return {field.name for field in dataclasses.fields(schema) if field.init}
    if is_typeddict(schema):
        return {*schema.__required_keys__, *schema.__optional_keys__}
    return None


def _check(schema: Any, values: JsonObject) -> None:
    try:
        if is_typeddict(schema):  # key by key: LangGraph passes a dict on as it is, so keys may be missing
            for name, value in values.items():
                _validate(_hints(schema).get(name, Any), value, name)
        else:
            _validate(schema, values)
    except Invalid:
        raise
    except Exception as problem:  # the schema's own code
        raise Invalid(f"refused by the graph's context_schema: {problem}", field="context") from problem


def _validate(kind: Any, value: Any, *path: str) -> None:
    adapter = _adapter(kind)
    if adapter is None:
        return
    try:
        adapter.validate_python(value)
    except ValidationError as problem:
        error = problem.errors(include_url=False, include_input=False)[0]
        raise Invalid(error["msg"], field=".".join(["context", *path, *map(str, error["loc"])])) from problem


@lru_cache(maxsize=256)
def _adapter(kind: Any) -> TypeAdapter[Any] | None:
    """The validator for a type; None for one that pydantic does not know."""
    try:
        return TypeAdapter(kind)
    except (PydanticUserError, TypeError, NameError):
        return None


@lru_cache(maxsize=256)
def _hints(schema: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(schema)
    except (TypeError, NameError):
        return {}
