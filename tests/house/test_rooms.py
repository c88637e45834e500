"""Every room has its place in the order of imports, and every module says what it is for."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def package(root: Path) -> Path:
    return root / "src" / "everthread"


@pytest.fixture(scope="module")
def contracts(root: Path) -> list[dict[str, Any]]:
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    found: list[dict[str, Any]] = pyproject["tool"]["importlinter"]["contracts"]
    return found


def layers_of(contracts: list[dict[str, Any]]) -> list[frozenset[str]]:
    """The layers from the doors down, each as the set of its rooms."""
    (ordered,) = (contract for contract in contracts if contract["type"] == "layers")
    return [frozenset(room.strip(" ()") for room in layer.split("|")) for layer in ordered["layers"]]


def rooms_in(package: Path) -> frozenset[str]:
    """Top-level packages and modules that hold code."""
    folders = {entry.name for entry in package.iterdir() if entry.is_dir() and any(entry.rglob("*.py"))}
    modules = {entry.stem for entry in package.glob("*.py") if entry.stem != "__init__"}
    return frozenset(folders | modules)


def imported_by(module: Path) -> Iterator[str]:
    """Full names of what a module imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_every_room_has_a_layer(package: Path, contracts: list[dict[str, Any]]) -> None:
    (ordered,) = (contract for contract in contracts if contract["type"] == "layers")
    assert ordered["exhaustive"] is True
    assert rooms_in(package) <= frozenset().union(*layers_of(contracts))


def test_the_decision_lists_the_rooms_in_their_order(root: Path, contracts: list[dict[str, Any]]) -> None:
    page = (root / "docs" / "decisions" / "0002-rooms-and-direction.md").read_text(encoding="utf-8")
    listed = page.split("```")[1].strip().replace("\n  |", " |").splitlines()
    rooms = [frozenset(re.findall(r"\w+", re.split(r"  +", line)[0])) for line in listed]
    assert rooms == [layer for layer in layers_of(contracts) if layer != {"__main__"}]


def test_no_inner_room_is_excused_from_ignorance_of_drivers(contracts: list[dict[str, Any]]) -> None:
    (kept,) = (contract for contract in contracts if contract["name"].startswith("Only the outer rooms"))
    excused = {expression.split(" -> ")[0].split(".")[1] for expression in kept["ignore_imports"]}
    layers = layers_of(contracts)
    (first_inner,) = (place for place, layer in enumerate(layers) if "instance" in layer)
    assert kept["source_modules"] == ["everthread.*"]
    assert excused.isdisjoint(frozenset().union(*layers[first_inner:]))


def test_the_core_imports_the_standard_library_only(package: Path) -> None:
    strangers = [
        f"{module.relative_to(package)} imports {name}"
        for module in (package / "core").rglob("*.py")
        for name in imported_by(module)
        if not name.startswith((".", "everthread.core")) and name.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert strangers == []


def test_every_module_opens_with_its_place_in_the_flow(package: Path) -> None:
    modules = list(package.rglob("*.py"))
    silent = [
        str(module.relative_to(package))
        for module in modules
        if not ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    ]
    assert modules
    assert silent == []
