"""Types whose construction runs none of the user's code: whatever the stored bytes are, they become data and nothing
more.

They have no validator, no `__post_init__`, and no constructor or default written by the user, and neither have the
types of their fields.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, WrapValidator
from pydantic_core import PydanticUndefined
from typing_extensions import is_typeddict

_VALIDATORS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)
_LIBRARIES = frozenset(
    {"builtins", "collections", "datetime", "decimal", "ipaddress", "pathlib", "pydantic.networks", "typing", "uuid"}
)
_DATACLASS_HOOKS = ("__post_init__", "__new__")


@cache
def is_passive(cls: type) -> bool:
    """Whether building this type runs nothing of the user's."""
    return all(_is_passive_alone(one) for one in _types_in([cls], set()))


def _types_in(hints: list[Any], seen: set[int]) -> Iterator[Any]:
    """The types that annotations name, and those of their fields."""
    while hints:
        hint = hints.pop()
        if id(hint) in seen or get_origin(hint) is Literal:
            continue
        seen.add(id(hint))
        if get_origin(hint) is not None:
            hints += [get_origin(hint), *get_args(hint)]
            if any(isinstance(note, _VALIDATORS) for note in getattr(hint, "__metadata__", ())):
                yield Any  # what it does is not known
        elif isinstance(hint, TypeVar | str | typing.ForwardRef):
            yield Any
        elif isinstance(hint, type):
            yield hint
            if hint.__module__ not in _LIBRARIES and not issubclass(hint, Enum):
                hints += _field_types(hint)


def _field_types(cls: type) -> list[Any]:
    if issubclass(cls, BaseModel):
        return [part for field in cls.model_fields.values() for part in (field.annotation, *field.metadata)]
    try:
        return list(typing.get_type_hints(cls, include_extras=True).values())
    except Exception:  # noqa: BLE001 - a name that only a type checker knows
        return ["?"]


def _is_passive_alone(cls: Any) -> bool:
    if not isinstance(cls, type):
        return False
    if cls.__module__ in _LIBRARIES or is_typeddict(cls):
        return True
    if issubclass(cls, Enum):
        return not _has_own(cls, ("_missing_", "__new__", "__init__"), Enum)
    if issubclass(cls, BaseModel):
        return _is_passive_model(cls)
    if issubclass(cls, tuple):
        return hasattr(cls, "_fields") and cls.__bases__[0] is tuple
    if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.init:  # type: ignore[attr-defined]
        return False
    own = _has_own(cls, _DATACLASS_HOOKS, object)
    return not own and all(_is_plain_factory(field.default_factory) for field in dataclasses.fields(cls))


def _is_passive_model(cls: type[BaseModel]) -> bool:
    decorators = cls.__pydantic_decorators__
    validates = (
        decorators.validators,
        decorators.field_validators,
        decorators.root_validators,
        decorators.model_validators,
    )
    own = ("__init__", "__new__", "model_post_init", "__get_pydantic_core_schema__", "__setattr__")
    fields = cls.model_fields.values()
    return (
        not any(validates)
        and not _has_own(cls, own, BaseModel)
        and not any(isinstance(note, _VALIDATORS) for field in fields for note in field.metadata)
        and all(_is_plain_factory(field.default_factory) for field in fields)
    )


def _has_own(cls: type, names: tuple[str, ...], base: type) -> bool:
    """Whether a class, or one between it and this base, has code of its own under one of these names."""
    between = [one for one in cls.__mro__ if one not in base.__mro__ and one.__module__ not in (*_LIBRARIES, "enum")]
    return any(name in vars(one) for one in between for name in names)


def _is_plain_factory(factory: Any) -> bool:
    if factory in (None, PydanticUndefined, dataclasses.MISSING):
        return True
    return isinstance(factory, type) and factory.__module__ in _LIBRARIES
