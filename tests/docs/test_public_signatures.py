"""Public signatures name public types only, and nothing is passed as an untyped `**keyword`."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest

import everthread
from everthread import turn
from everthread.settings import Settings

PUBLIC = {*(getattr(everthread, name) for name in everthread.__all__), *(getattr(turn, name) for name in turn.__all__)}
INTERNAL = {
    # How the rooms of this package reach what is behind a public object. Documented as internal, and not shown in the
    # reference.
    *("Everthread.store", "Everthread.runtime", "Agent.graph", "Agent.runs", "Everthread.runs"),
    # The fields of `TurnOptions` once more, for type checkers.
    "run_turn",
}


def annotated(name: str) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """A public name and its members: where it is, what its module belongs to, and its annotations."""
    value = getattr(everthread, name)
    if not isinstance(value, type):
        yield name, value, getattr(value, "__annotations__", {})
        return
    for field, annotation in vars(value).get("__annotations__", {}).items():
        if not field.startswith("_"):
            yield f"{name}.{field}", value, {field: annotation}
    for member, found in vars(value).items():
        function = getattr(found, "fget", None) or getattr(found, "func", None) or found
        if not member.startswith("_") and inspect.isfunction(function):
            yield f"{name}.{member}", value, function.__annotations__


def imported(module: str) -> dict[str, Any]:
    """What a module's annotations may name, also what only type checkers import."""
    found = dict(vars(sys.modules[module]))
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                found[one.asname or one.name] = getattr(importlib.import_module(node.module), one.name, None)
    return found


def types_in(annotation: object, names: Mapping[str, Any]) -> Iterator[Any]:
    """The classes of this package that an annotation names, through aliases."""
    text = getattr(annotation, "__forward_arg__", annotation)
    if isinstance(text, str):
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name):
                yield from types_in(names.get(node.id), names)
    elif isinstance(text, type) and text.__module__.startswith("everthread"):
        yield text
    for inner in get_args(text):
        yield from types_in(inner, names)


@pytest.mark.parametrize("name", everthread.__all__)
def test_a_public_signature_names_public_types_only(name: str) -> None:
    events = get_args(everthread.TurnEvent)
    for where, owner, hints in annotated(name):
        if where in INTERNAL:
            continue
        names = imported(owner.__module__)
        for annotation in hints.values():
            hidden = set(types_in(annotation, names)) - PUBLIC - {Settings, *events}
            assert not hidden, f"{where} names {hidden}"


@pytest.mark.parametrize("name", everthread.__all__)
def test_a_public_signature_types_its_keywords(name: str) -> None:
    for where, value, _ in annotated(name):
        function = value if not isinstance(value, type) else getattr(value, where.partition(".")[2], None)
        for parameter in inspect.signature(function).parameters.values() if inspect.isfunction(function) else ():
            is_open = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            assert not is_open or "Unpack" in str(parameter.annotation), f"{where} takes anything as {parameter}"
