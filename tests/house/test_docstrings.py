"""What a module's first lines say of our code is still there under that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

NAMED = re.compile(r"`(?P<name>[A-Za-z_][\w.]*)(?:\([^`]*\))?`")
LOOKS_LIKE_OURS = re.compile(r"_?[A-Z][a-z0-9]+[A-Z]\w*|\w+_\w+|_\w+")
"""A name of several words, or a private one; a single word may be anything."""
OF_OTHERS = frozenset({
    # names of other programs and of their data
    "langgraph_sdk", "compact_boundary", "environment_context", "send_timeout",
    # examples of what a user may write
    "EVERTHREAD_CONFIG", "call_1", "notes_search", "snake_case",
})  # fmt: skip


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that is defined, used or spelled in code."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text


def stale(text: str, known: frozenset[str]) -> list[str]:
    """The names in backticks that look like code of ours and are not."""
    parts = (part for match in NAMED.finditer(text) for part in match["name"].split("."))
    return [part for part in parts if LOOKS_LIKE_OURS.fullmatch(part) and part not in known | OF_OTHERS]


@pytest.fixture(scope="module")
def trees(root: Path) -> dict[str, ast.Module]:
    source = root / "src" / "everthread"
    return {str(file.relative_to(source)): ast.parse(file.read_text(encoding="utf-8")) for file in source.rglob("*.py")}


def test_every_name_that_a_module_says_of_our_code_exists(trees: dict[str, ast.Module]) -> None:
    modules = {part.removesuffix(".py") for path in trees for part in Path(path).parts}
    known = frozenset(modules.union(*map(names_in, trees.values())))
    wrong = {path: stale(ast.get_docstring(tree) or "", known) for path, tree in trees.items()}
    assert {path: names for path, names in wrong.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `store.LogStore` and `add_all(1)`", []),
        ("see `OldName`", ["OldName"]),
        ("see `store._old(x)`", ["_old"]),
        ("a word in `code`, a class in text OldName", []),
    ],
)
def test_a_name_that_is_gone_is_found(text: str, found: list[str]) -> None:
    assert stale(text, frozenset({"store", "LogStore", "add_all"})) == found
