"""The serializers of checkpoints: MessagePack, and strict. Nothing stored is revived outside an allow-list; an error
names the type that is missing there. No pickle, and LangChain's `lc` envelopes stay the dicts they are.

What is written is LangGraph's format: an extension names a class by its module and its name. What is read is built
here, because LangGraph finds a class only by importing it, and so not one that is defined in another or in a function.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
    _option,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send

from everthread.adapters.checkpoints.more_types import SAFE_TYPES, encode_extension
from everthread.core.errors import Invalid, StoreDamaged

TypeName = tuple[str, ...]
"""A module, and the name of a type in it."""
Allowed = Iterable[TypeName | type]

_CONSTRUCTORS = frozenset(
    {
        EXT_CONSTRUCTOR_SINGLE_ARG,
        EXT_CONSTRUCTOR_POS_ARGS,
        EXT_CONSTRUCTOR_KW_ARGS,
        EXT_METHOD_SINGLE_ARG,
        EXT_PYDANTIC_V1,
        EXT_PYDANTIC_V2,
    }
)
"""The extension codes that name a class or a function to call."""
_KINDS = frozenset({"null", "bytes", "bytearray", "msgpack"})
_HOW_TO_ALLOW = (
    "name it in EverthreadSaver(…, allowed=[…]) or, for `everthread serve`, in the setting allowed_types = "
    '["package.module:Name"]'
)


def type_name(cls: type) -> TypeName:
    """The name that a type is stored under."""
    return cls.__module__, cls.__name__


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer with its own safe types, those of `more_types`, those named here, and no others."""

    def __init__(self, allowed: Allowed = ()) -> None:
        super().__init__(allowed_msgpack_modules=None)
        self._named: frozenset[TypeName] = frozenset()
        self._classes: dict[TypeName, type] = {}
        """Those of the allowed types that are at hand; the others are imported."""
        self._allow(allowed)

    def _allow(self, allowed: Allowed) -> None:
        given = list(allowed)
        self._classes = {**self._classes, **{type_name(one): one for one in given if isinstance(one, type)}}
        self._named |= {one for one in given if not isinstance(one, type)}

    def with_msgpack_allowlist(self, extra_allowlist: Allowed) -> Self:
        extra = [one for one in extra_allowlist if not self._is_known(type_name(one) if isinstance(one, type) else one)]
        if not extra:
            return self
        other = copy.copy(self)
        other._allow(extra)
        return other

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        if kind not in _KINDS:
            raise Invalid(f"a stored value of the kind {kind!r} is not revived: it could run code", field="value")
        if kind != "msgpack":
            return super().loads_typed(data)
        refused: list[str] = []

        def revive(code: int, part: bytes) -> Any:  # ormsgpack hides what a hook raises
            self._inspect(code, part, refused)
            return None if refused else self._revive(code, part)

        try:
            value = _unpack(body, revive)
        except (ormsgpack.MsgpackDecodeError, ValueError) as problem:
            raise StoreDamaged(f"a stored value cannot be read ({problem}): restore a backup") from problem
        if refused:
            raise Invalid(
                f"the stored type {refused[0]} is not on the allow-list, and nothing of it was built; if it is yours, "
                f"{_HOW_TO_ALLOW}",
                field="value",
            )
        return value

    def _inspect(self, code: int, part: bytes, refused: list[str]) -> None:
        """Look at all that an extension names, to any depth, before anything of it is built."""
        if code not in _CONSTRUCTORS and code != EXT_DELTA_SNAPSHOT:
            return

        def look(inner: int, inside: bytes) -> None:
            self._inspect(inner, inside, refused)

        parts = _unpack(part, look)
        if code != EXT_DELTA_SNAPSHOT and not self._is_allowed(code, parts):
            names = parts[:2] if isinstance(parts, list) else ["?"]
            refused.append(".".join(map(str, names)))

    def _is_allowed(self, code: int, parts: Any) -> bool:
        if not isinstance(parts, list) or len(parts) < 3:
            return False
        if code == EXT_METHOD_SINGLE_ARG:
            is_date = parts[3:] == ["fromisoformat"] and self._is_known(tuple(parts[:2]))
            return is_date or tuple(parts[:2] + parts[3:4]) in SAFE_MSGPACK_METHODS
        return self._is_known(tuple(parts[:2]))

    def _is_known(self, name: TypeName) -> bool:
        return name in SAFE_MSGPACK_TYPES or name in SAFE_TYPES or name in self._classes or name in self._named

    def _revive(self, code: int, part: bytes) -> Any:
        """Build what was inspected. As with LangGraph, a value that its class refuses today becomes plain data."""
        if code == EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(_unpack(part, self._revive))
        if code not in _CONSTRUCTORS:
            return self._unpack_ext_hook(code, part)
        module, name, value, *method = _unpack(part, self._revive)
        try:
            cls = self._classes.get((module, name)) or getattr(importlib.import_module(module), name)
            return _construct(getattr(cls, method[0]) if code == EXT_METHOD_SINGLE_ARG else cls, code, value)
        except Exception:  # noqa: BLE001 - the user's own class
            return value


def _unpack(body: bytes, hook: Callable[[int, bytes], Any]) -> Any:
    return ormsgpack.unpackb(body, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)


def _construct(cls: Any, code: int, value: Any) -> Any:
    if code == EXT_CONSTRUCTOR_POS_ARGS:
        # LangGraph stores a timeout third, and its Send takes it by name only.
        return Send(*value[:2], timeout=value[2]) if cls is Send and len(value) > 2 else cls(*value)
    if code == EXT_CONSTRUCTOR_KW_ARGS:
        return _dataclass(cls, value) if dataclasses.is_dataclass(cls) else cls(**value)
    if code in (EXT_PYDANTIC_V1, EXT_PYDANTIC_V2):
        try:
            return cls(**value)
        except Exception:  # noqa: BLE001 - a validator that refuses what it once made
            return (cls.model_construct if code == EXT_PYDANTIC_V2 else cls.construct)(**value)
    return cls(value)


def _dataclass(cls: Any, values: Mapping[str, Any]) -> Any:
    """Also with fields that its constructor does not take."""
    later = {field.name for field in dataclasses.fields(cls) if not field.init}
    made = cls(**{name: value for name, value in values.items() if name not in later})
    for name in later & values.keys():
        object.__setattr__(made, name, values[name])
    return made


def dump_channel(channel: str, value: Any, serde: SerializerProtocol) -> tuple[str, bytes]:
    """A value's bytes; an error names the channel."""
    try:
        return serde.dumps_typed(value)
    except Invalid as problem:
        raise Invalid(str(problem).removeprefix(f"{problem.field}: "), field=f"channel {channel!r}") from None


class StateSerializer(StrictSerializer):
    """The serializer of a graph's state: it also revives the graph's own types, and refuses to write what it could
    not read."""

    def __init__(self, allowed: Allowed = ()) -> None:
        super().__init__(allowed)
        self._learned: Iterable[type] = ()

    def learn(self, types: frozenset[type]) -> None:
        """Allow types that a graph names. Where two have the same name, the later one is meant."""
        if types is not self._learned:
            self._learned = types
            self._classes.update({type_name(one): one for one in types})

    def with_types(self, types: frozenset[type]) -> Self:
        """The same for one graph."""
        other = copy.copy(self)
        other._classes = dict(self._classes)
        other.learn(types)
        return other

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj is None or isinstance(obj, bytes | bytearray):
            return super().dumps_typed(obj)
        has_extensions = False
        unknown: list[TypeName] = []

        def encode(part: Any) -> Any:
            nonlocal has_extensions
            has_extensions = True
            try:
                return encode_extension(part)
            except TypeError:
                unknown.append(type_name(type(part)))
                raise

        try:
            body = ormsgpack.packb(obj, default=encode, option=_option)
        except TypeError as problem:
            what = f"a value of the type {'.'.join(unknown[-1])}, or something in it," if unknown else "a value"
            raise Invalid(
                f"{what} cannot be stored ({problem}), and nothing was; a state holds plain data, dataclasses, "
                "pydantic models, named tuples and enums; make it one of these, or annotate the channel with "
                "langgraph.channels.UntrackedValue, which is never stored",
                field="value",
            ) from problem
        if has_extensions:
            refused: list[str] = []
            _unpack(body, lambda code, part: self._inspect(code, part, refused))
            if refused:
                raise Invalid(
                    f"a value of the type {refused[0]} could not be read back, because neither the schemas nor the "
                    f"code of the graph name this type, and was not stored; if it is yours, {_HOW_TO_ALLOW}",
                    field="value",
                )
        return "msgpack", body


class PlainSerializer(StrictSerializer):
    """For readers that have no graph: what is not on the allow-list comes back as the plain data it is stored as."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        return _unpack(body, self._revive) if kind == "msgpack" else super().loads_typed(data)

    def _revive(self, code: int, part: bytes) -> Any:
        if code not in _CONSTRUCTORS:
            return super()._revive(code, part)
        parts = _unpack(part, self._revive)
        if self._is_allowed(code, parts):
            return super()._revive(code, part)
        return parts[2] if isinstance(parts, list) and len(parts) > 2 else None
