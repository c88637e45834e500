"""Which tools a model is offered: the standard ones or those that are allowed, and those that are named with an @."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from langchain_core.tools import BaseTool

from everthread.turn.tools.shaping import WHEN_NAMED

_MENTION = re.compile(r"(?<![\w@./])@([A-Za-z][\w-]*(?:\.[\w-]+)*)")


class Chosen(NamedTuple):
    """What is offered, and which names nobody knows."""

    tools: tuple[BaseTool, ...]
    unknown: tuple[str, ...]


def mentions(text: str) -> list[str]:
    """The names that follow an @, each once, in their order; an address of mail names nobody."""
    return list(dict.fromkeys(_MENTION.findall(text)))


def choose(
    tools: Sequence[BaseTool],
    *,
    allowed: Iterable[str] = (),
    persistent: Iterable[str] = (),
    mentioned: Iterable[str] = (),
) -> Chosen:
    """The tools of a request, in the order in which they stand.

    Without `allowed` (names, or patterns such as `files_*`) these are all that need not be named. `persistent` ones are
    added for the whole conversation, `mentioned` ones for this turn; a mention that is no tool means somebody else.
    """
    wanted, added = list(allowed), [*persistent, *mentioned]
    offered = [one for one in tools if _is_wanted(one, wanted) or _matches(one.name, added)]
    unknown = [name for name in (*wanted, *persistent) if not any(_matches(one.name, [name]) for one in tools)]
    return Chosen(tuple(offered), tuple(unknown))


def _is_wanted(tool: BaseTool, wanted: Sequence[str]) -> bool:
    return _matches(tool.name, wanted) if wanted else WHEN_NAMED not in (tool.tags or ())


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
