"""Values that LangGraph's own serializer refuses, though they are plain data: numpy's scalars, pydantic's URLs, pure
paths. LangGraph's server pickles them; here they are written in LangGraph's format, like all others.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from pathlib import PurePath
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_PYDANTIC_V2,
    _msgpack_default,
    _option,
)
from pydantic import BaseModel, networks

_NUMBERS = frozenset(
    "bool int8 int16 int32 int64 longlong uint8 uint16 uint32 uint64 ulonglong float16 float32 float64".split()
)
_URLS = frozenset(
    name
    for name, value in vars(networks).items()
    if isinstance(value, type) and issubclass(value, networks._BaseUrl | networks._BaseMultiHostUrl)
)
_PATHS = ("PurePosixPath", "PureWindowsPath")

SAFE_TYPES = frozenset(
    {
        *(("numpy", name) for name in _NUMBERS),
        *(("pydantic.networks", name) for name in _URLS),
        *((module, name) for module in ("pathlib", "pathlib._local") for name in _PATHS),
    }
)
"""Building them runs nothing but their libraries' own checks."""


def encode_extension(value: Any) -> Any:
    """What MessagePack has no type for, for ormsgpack's `default`. Raises TypeError."""
    try:
        return _msgpack_default(value)
    except TypeError:
        parts = _parts(value)
        if parts is None:
            raise
    code, inside = parts
    cls = type(value)
    named = (cls.__module__, cls.__name__, inside, *(["model_validate_json"] if code == EXT_PYDANTIC_V2 else []))
    return ormsgpack.Ext(code, ormsgpack.packb(named, default=encode_extension, option=_option))


def _parts(value: Any) -> tuple[int, Any] | None:
    """The extension, and what it holds: of a container, because something in it is refused."""
    if isinstance(value, BaseModel):
        return EXT_PYDANTIC_V2, value.model_dump()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return EXT_CONSTRUCTOR_KW_ARGS, value._asdict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return EXT_CONSTRUCTOR_KW_ARGS, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, set | frozenset | deque):
        return EXT_CONSTRUCTOR_SINGLE_ARG, tuple(value)
    if isinstance(value, PurePath):
        return EXT_CONSTRUCTOR_POS_ARGS, value.parts
    return _scalar_parts(value)


def _scalar_parts(value: Any) -> tuple[int, Any] | None:
    cls = type(value)
    if cls.__module__ == "pydantic.networks" and cls.__name__ in _URLS:
        return EXT_CONSTRUCTOR_SINGLE_ARG, str(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and cls.__module__ == "numpy" and cls.__name__ in _NUMBERS:
        return EXT_CONSTRUCTOR_SINGLE_ARG, value.item()
    return None
