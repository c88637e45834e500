"""Which tools a model is offered."""

from __future__ import annotations

import pytest
from langchain_core.tools import BaseTool

from everthread.turn.tools import choose, mentions
from everthread.turn.tools.shaping import as_tool


def a_tool(name: str, *, named_only: bool = False) -> BaseTool:
    async def nothing() -> None:
        """Does nothing."""

    return as_tool(nothing, name=name, offered="when_named" if named_only else "always")


TOOLS = [
    a_tool("read_file"),
    a_tool("write_file"),
    a_tool("deploy", named_only=True),
    a_tool("shop_add", named_only=True),
]


def names(**how: list[str]) -> list[str]:
    return [tool.name for tool in choose(TOOLS, **how).tools]


def test_without_a_word_the_standard_ones_are_offered() -> None:
    assert names() == ["read_file", "write_file"]


def test_allowed_ones_are_offered_and_no_others() -> None:
    assert names(allowed=["write_file"]) == ["write_file"]
    assert names(allowed=["shop_*", "deploy"]) == ["deploy", "shop_add"]


def test_persistent_and_mentioned_ones_are_added() -> None:
    assert names(persistent=["deploy"]) == ["read_file", "write_file", "deploy"]
    assert names(allowed=["read_file"], mentioned=["deploy"]) == ["read_file", "deploy"]


def test_names_that_nobody_knows_are_told_but_mentions_may_mean_somebody_else() -> None:
    chosen = choose(TOOLS, allowed=["read_file", "fly"], persistent=["swim"], mentioned=["alice"])
    assert chosen.unknown == ("fly", "swim")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@deploy please", ["deploy"]),
        ("please use @data-report and @plot, then @plot", ["data-report", "plot"]),
        ("用@plot画图", []),
        ("用 @plot 画图", ["plot"]),
        ("mail me@example.org or a@b", []),
        ("a @ b, @@x, @7", []),
        ("(@read_file)", ["read_file"]),
        ("end with @plot.", ["plot"]),
        ("", []),
    ],
)
def test_a_mention_is_a_name_after_an_at(text: str, found: list[str]) -> None:
    assert mentions(text) == found
