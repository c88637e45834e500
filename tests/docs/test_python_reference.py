"""The Python reference is complete and true: every public name is listed, explained and shown by an example.

Examples that are fenced as `python` are run, each in a small database of its own; those fenced as `py` need a provider,
a file or a failure, and are only parsed.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest

import everthread
from everthread.core import errors, turn_events
from everthread.core.embeddings import unit
from everthread.core.tools import unregister
from everthread.testing import ScriptedModel

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)


class Example(NamedTuple):
    where: str
    language: str
    code: str


def docstring(name: str) -> str:
    value = getattr(everthread, name)
    if value is everthread.TurnEvent:  # an alias has no docstring of its own: the text below it in the source is
        body = ast.parse(inspect.getsource(turn_events)).body
        place = next(
            at
            for at, node in enumerate(body)
            if isinstance(node, ast.AnnAssign) and "TurnEvent" in ast.unparse(node.target)
        )
        text = body[place + 1]
        assert isinstance(text, ast.Expr)
        return inspect.cleandoc(ast.literal_eval(text.value))
    own = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    return inspect.cleandoc(own or "")


def public_methods(name: str) -> Iterator[tuple[str, Any]]:
    """The methods and properties that a public class defines itself."""
    value = getattr(everthread, name)
    for member, found in vars(value).items() if isinstance(value, type) else ():
        function = getattr(found, "fget", None) or getattr(found, "func", None) or found
        if not member.startswith("_") and inspect.isfunction(function):
            yield f"{name}.{member}", function


def examples() -> Iterator[Example]:
    for name in everthread.__all__:
        texts = {name: docstring(name), **{where: inspect.getdoc(one) or "" for where, one in public_methods(name)}}
        for where, text in texts.items():
            for found in FENCE.finditer(text):
                yield Example(where, found["language"], found["code"])


def compiled(code: str | ast.Module, where: str) -> CodeType:
    result: CodeType = compile(code, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return result


EXAMPLES = list(examples())
ERROR_NAMES = {name for name in everthread.__all__ if name in vars(errors)}


def test_the_reference_lists_every_public_name_once() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: everthread\.(\w+)$", page, re.M)
    assert sorted(listed) == sorted(everthread.__all__)


def test_type_checkers_and_the_reference_find_each_name_where_it_is_defined() -> None:
    for_tools = {
        name.name: node.module.removeprefix("everthread.")
        for node in ast.walk(ast.parse(inspect.getsource(everthread)))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("everthread.")
        for name in node.names
        if name.asname is None
    }
    assert for_tools == everthread._HOMES


@pytest.mark.parametrize("name", everthread.__all__)
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    assert FENCE.search(docstring(name)), f"everthread.{name} has no example"


@pytest.mark.parametrize("name", everthread.__all__)
def test_a_public_method_has_a_docstring(name: str) -> None:
    assert [where for where, one in public_methods(name) if not inspect.getdoc(one)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.where)
def test_an_example_parses_and_names_what_exists(example: Example) -> None:
    assert example.language in ("python", "py")
    compiled(example.code, example.where)
    for name in re.findall(r"\beverthread\.([A-Za-z_]\w*)", example.code):
        assert hasattr(everthread, name) or name == "testing", f"there is no everthread.{name}"


@pytest.fixture
async def scene() -> AsyncIterator[dict[str, Any]]:
    """What examples start from: an open database with a conversation that is long enough to be compacted."""
    async with everthread.open("memory://", embedder=None, worker=False) as et:
        conv = await et.conversations.create(id="trip", title="Trip")
        talk = [
            {"role": role, "content": f"{number}: We looked at trains to Kunming and at what they cost. " * 4}
            for number in range(20)
            for role in ("assistant", "user")
        ]
        await conv.append([{"role": "user", "content": "My grandmother has a peanut allergy.", "id": "m1"}, *talk])
        await et.knowledge.add("local", "handbook", "Refunds are made within 30 days.", id="refunds.md")
        yield {"everthread": everthread, "et": et, "conv": conv, "vector": unit([1.0, 0.0])}


async def run(code: CodeType, scene: dict[str, Any]) -> None:
    if {"agent", "model"} & set(code.co_names):
        scene["model"] = ScriptedModel(["We were talking about the train to Kunming."])
        scene["agent"] = everthread.agent(scene["et"], model=scene["model"])
    result = eval(code, scene)
    if inspect.iscoroutine(result):
        await result


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.language == "python"], ids=lambda one: one.where)
async def test_an_example_runs(example: Example, scene: dict[str, Any]) -> None:
    try:
        await run(compiled(example.code, example.where), scene)
    finally:
        unregister("weather")


class WithoutHandlers(ast.NodeTransformer):
    """Leaves what is tried, and nobody to catch what it raises."""

    def visit_Try(self, node: ast.Try) -> list[ast.stmt]:
        return node.body


ERRORS = [one for one in EXAMPLES if one.language == "python" and one.where in ERROR_NAMES]


@pytest.mark.parametrize("example", ERRORS, ids=lambda one: one.where)
async def test_the_example_of_an_error_raises_it(example: Example, scene: dict[str, Any]) -> None:
    unguarded = WithoutHandlers().visit(ast.parse(example.code))
    with pytest.raises(getattr(everthread, example.where)):
        await run(compiled(unguarded, example.where), scene)
