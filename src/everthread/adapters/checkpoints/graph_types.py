"""The types of the user's own that a graph can put into its state: those that its schemas and its code name.

All is read from the graph itself, never from what is stored, so that it is the same after a restart and on another
server:

- its schemas (state, input, output, context, those of single nodes) and whatever their fields name, with the subclasses
  that stand in the same module;
- its code (nodes, branches, reducers, tools, middleware, tasks, subgraphs): what a function names, closes over or is
  annotated with, and the same of the user's functions that it calls;
- the modules of both, and those of the user's that they import: of what these define or import, the types that run
  nothing when they are built (`passive_types`). Such a one may come from outside, as the answer to an interrupt.

Only types that hold data count: dataclasses, pydantic models, named tuples, enums and the like. What is merely
importable does not, nor does what runs code of its own and is not named.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ForwardRef, Literal, TypeVar, get_args, get_origin
from uuid import UUID
from weakref import WeakKeyDictionary

from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from pydantic import BaseModel, SecretBytes, SecretStr
from typing_extensions import TypeAliasType, is_typeddict

from everthread.adapters.checkpoints.passive_types import is_passive
from everthread.instance import Everthread

_FRAMEWORKS = frozenset(
    {"deepagents", "everthread", "langchain", "langchain_core", "langgraph", "langsmith", "pydantic"}
)
"""Into their objects is looked for what they were given; their own code names nothing of the user's."""
_VALUES = (str, bytes, bytearray, int, float, complex, type(None), CodeType)
_CLOSED = (BaseCheckpointSaver, BaseStore, Everthread)
"""They hold what is stored, and nothing that a graph is made of."""
_DATA = (Enum, SecretBytes, SecretStr, UUID, Decimal, date, time, timedelta, set, frozenset, deque)
_MAX_OBJECTS = 100_000
"""A graph that holds more is looked through no further; what is missing then is named by hand."""

_known: WeakKeyDictionary[Any, frozenset[type]] = WeakKeyDictionary()
"""By one of a graph's nodes: a graph is copied for each change of its config, its nodes are not."""


def types_of(graph: Pregel[Any, Any, Any, Any]) -> frozenset[type]:
    """The types that a graph can put into its state, besides those that LangGraph calls safe."""
    key = next(iter(graph.nodes.values()), None)
    found = _known.get(key) if key is not None else None
    if found is None:
        search = _Search()
        search.look_through(graph)
        found = frozenset(search.found)
        if key is not None:
            _known[key] = found
    return found


class _Search:
    """Goes through objects, one after the other, and never twice."""

    def __init__(self) -> None:
        self.found: set[type] = set()
        self._seen: dict[int, Any] = {}
        """By id; kept, so that no id is given away again meanwhile."""
        self._waiting: list[tuple[Callable[[Any], None], Any]] = []
        self._users: set[str] = set()
        """The packages that the graph's own functions and schemas are in …"""
        self._modules: set[str] = set()
        """… and their modules."""

    def look_through(self, graph: Any) -> None:
        self._add(self._value, graph)
        self._look_on()
        own = [module for name in self._modules if (module := sys.modules.get(name))]
        imported = [value for module in own for value in vars(module).values() if isinstance(value, ModuleType)]
        for module in [*own, *(one for one in imported if self._is_users(one.__name__))]:
            types = [value for value in vars(module).values() if isinstance(value, type)]
            self._add_all(self._hint, [one for one in types if _is_passive_data(one)])
        self._look_on()

    def _look_on(self) -> None:
        while self._waiting and len(self._seen) < _MAX_OBJECTS:
            look, at = self._waiting.pop()
            with suppress(Exception):  # an object of the user's that minds being looked at
                look(at)

    def _add(self, look: Callable[[Any], None], at: Any) -> None:
        if id(at) not in self._seen and not isinstance(at, _VALUES):
            self._seen[id(at)] = at
            self._waiting.append((look, at))

    def _add_all(self, look: Callable[[Any], None], several: Iterable[Any]) -> None:
        for one in several:
            self._add(look, one)

    # -- objects -------------------------------------------------------------------------------------------

    def _value(self, value: Any) -> None:
        if isinstance(value, type):
            self._type(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self._add_all(self._value, [value.__func__, value.__self__])
        elif isinstance(value, functools.partial):
            self._add_all(self._value, [value.func, *value.args, *value.keywords.values()])
        elif isinstance(value, staticmethod | classmethod | property):
            self._add(self._value, getattr(value, "fget", None) or getattr(value, "__func__", None))
        elif isinstance(value, dict):
            self._add_all(self._value, list(value.values()))
        elif isinstance(value, list | tuple | set | frozenset | deque):
            self._add_all(self._value, list(value))
        elif get_origin(value) is not None or isinstance(value, TypeVar | TypeAliasType):
            self._hint(value)
        elif not isinstance(value, (ModuleType, *_CLOSED)):
            self._instance(value)

    def _instance(self, value: Any) -> None:
        """What an object of a framework or of the user's holds; into those of other libraries is not looked."""
        cls = type(value)
        if isinstance(value, Pregel):
            self._schemas(value)
        elif isinstance(value, StateGraph):
            self._builder(value)
        if self._is_users(cls.__module__):
            self._add(self._value, cls)
        elif cls.__module__.partition(".")[0] not in _FRAMEWORKS:
            return
        self._add_all(self._value, list(getattr(value, "__dict__", {}).values()))
        slots = (name for base in cls.__mro__ for name in _slots(base))
        self._add_all(self._value, [getattr(value, name, None) for name in slots])

    def _schemas(self, graph: Pregel[Any, Any, Any, Any]) -> None:
        for channel in graph.channels.values():
            for name in ("ValueType", "UpdateType"):
                with suppress(Exception):  # a channel of the user's, which may not know
                    self._add(self._hint, getattr(channel, name, None))
        for node in graph.nodes.values():
            self._own_code(node.bound)
        self._own_schemas([graph.context_schema])

    def _builder(self, builder: StateGraph[Any, Any, Any, Any]) -> None:
        nodes = [node.input_schema for node in builder.nodes.values()]
        self._own_schemas([*builder.schemas, builder.context_schema, *nodes])

    def _own_schemas(self, schemas: Iterable[Any]) -> None:
        for schema in schemas:
            self._own_module(getattr(schema, "__module__", None))
            self._add(self._hint, schema)

    def _own_code(self, bound: Any) -> None:
        function = getattr(bound, "func", None) or getattr(bound, "afunc", None)
        self._own_module(getattr(function, "__module__", None))

    def _own_module(self, module: str | None) -> None:
        package = (module or "").partition(".")[0]
        if package and package not in _FRAMEWORKS and package not in sys.stdlib_module_names:
            self._users.add(package)
            self._modules.add(module or "")

    def _is_users(self, module: str) -> bool:
        """Whether a module is part of the user's program: not of the standard library, nor of one that was installed,
        unless the graph itself is in it."""
        package = module.partition(".")[0]
        if package in self._users or package == "__main__":
            return True
        if package in _FRAMEWORKS or package in sys.stdlib_module_names:
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        return file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts)

    # -- code ----------------------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> None:
        self._add_all(self._value, _closure(function))
        self._add_all(self._value, [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()])
        self._add(self._value, getattr(function, "__wrapped__", None))
        if not self._is_users(function.__module__ or ""):
            return
        self._add_all(self._hint, _hints(function))
        names = list(_names(function.__code__))
        for name in names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType):  # as in `models.Plan(…)`
                self._add_all(self._value, [vars(value).get(inner) for inner in names])
            else:
                self._add(self._value, value)

    # -- types ---------------------------------------------------------------------------------------------

    def _hint(self, hint: Any) -> None:
        """An annotation."""
        origin = get_origin(hint)
        if origin is Literal:
            self._add_all(self._value, [type(value) for value in get_args(hint) if isinstance(value, Enum)])
        elif origin is not None:
            first, *others = get_args(hint) or [None]
            self._add_all(self._hint, [origin, first, *others])
            self._add_all(self._value, getattr(hint, "__metadata__", ()))  # a reducer, say
        elif isinstance(hint, TypeVar):
            self._add_all(self._hint, [hint.__bound__, *hint.__constraints__, getattr(hint, "__default__", None)])
        elif isinstance(hint, TypeAliasType):
            self._add(self._hint, hint.__value__)
        elif isinstance(hint, list):  # the arguments of a Callable
            self._add_all(self._hint, hint)
        elif isinstance(hint, type):
            self._type(hint)
        elif not isinstance(hint, ForwardRef):
            self._add(self._hint, getattr(hint, "__supertype__", None))

    def _type(self, cls: type) -> None:
        if is_typeddict(cls):
            self._add_all(self._hint, _hints(cls))
            return
        is_data = _holds_data(cls)
        if is_data and _is_reachable(cls):
            self.found.add(cls)
        if is_data or self._is_users(cls.__module__):
            self._add_all(self._hint, _hints(cls))
            self._add_all(self._hint, [base for base in cls.__bases__ if self._is_users(base.__module__)])
            self._add_all(self._hint, [sub for sub in _subclasses(cls) if sub.__module__ == cls.__module__])
        if self._is_users(cls.__module__):
            kinds = (type, FunctionType, staticmethod, classmethod, property)
            self._add_all(self._value, [value for value in vars(cls).values() if isinstance(value, kinds)])


def _holds_data(cls: type) -> bool:
    """Whether a type is made to hold data; what runs is none, though LangChain makes pydantic models of it."""
    if cls in (BaseModel, *_DATA) or issubclass(cls, Runnable):
        return cls in (SecretBytes, SecretStr)
    is_named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
    is_model = issubclass(cls, BaseModel) or "__validators__" in vars(cls)  # pydantic 2, or 1
    return is_model or is_named_tuple or dataclasses.is_dataclass(cls) or issubclass(cls, _DATA)


def _is_passive_data(cls: type) -> bool:
    with suppress(Exception):  # a class of the user's that minds being looked at
        return _holds_data(cls) and is_passive(cls)
    return False


def _is_reachable(cls: type) -> bool:
    """Whether a class is the one of its name: not one that LangGraph calls safe anyway, nor one that another took the
    place of, as a dataclass with slots does. One that is defined in another, or in a function, has no such place."""
    if (cls.__module__, cls.__name__) in SAFE_MSGPACK_TYPES:
        return False
    here = vars(sys.modules.get(cls.__module__, sys)).get(cls.__qualname__, cls)
    return here is cls or not isinstance(here, type)


def _hints(of: Any) -> list[Any]:
    """The annotations of a function or a class; those that cannot be resolved are left out."""
    try:
        found = list(typing.get_type_hints(of, localns=_scope(of), include_extras=True).values())
    except Exception:  # noqa: BLE001 - a name that only a type checker knows
        found = [hint for hint in getattr(of, "__annotations__", {}).values() if not isinstance(hint, str)]
    if isinstance(of, type) and issubclass(of, BaseModel):  # resolved by pydantic, the arguments of generics too
        found += [field.annotation for field in of.model_fields.values()]
    return found


def _scope(of: Any) -> dict[str, Any]:
    """What an annotation may name besides the globals of its module."""
    inside = dict(vars(of)) if isinstance(of, type) else {}
    if isinstance(of, FunctionType):
        inside |= dict(zip(of.__code__.co_freevars, _closure(of), strict=False))
    return inside


def _closure(function: FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not bound yet
            found.append(None)
    return found


def _names(code: CodeType) -> Iterator[str]:
    """Every name that code uses, functions inside it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _slots(cls: type) -> Iterable[str]:
    slots = vars(cls).get("__slots__", ())
    return [slots] if isinstance(slots, str) else list(slots)


def _subclasses(cls: type) -> list[type]:
    try:
        return cls.__subclasses__()
    except TypeError:  # `type` itself
        return []
