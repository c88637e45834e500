"""What kind of conversation a span is, for `strategy="auto"`: measured on its messages, never guessed by a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from everthread.compaction.sources import Source, is_empty

Kind = Literal["chat", "tool-heavy", "coding"]

# A third of the messages show code: someone is programming. Below that, code is only talked about.
CODING_SHARE = 0.3
# A quarter of the messages are calls or results: one turn in two goes through a tool.
TOOL_SHARE = 0.25

_READ_CHARS = 8_000
_CODE_SIGN = re.compile(
    r"^\s{0,8}(?:```|~~~)|^(?:\+\+\+|---) [ab]/|^@@ -\d|^\s*\$ \w|Traceback \(most recent call last\)"
    r"|^\s*(?:def|class|async def|function|import|from \w[\w.]* import|#include|package|public class|const|let|var)"
    r" ?\b.{0,80}[:;{(=]"
    r"|^\s*at [\w.$<>]{1,80}\([\w./]{1,80}:\d+"
    r"|\b[\w/-]{1,80}\.(?:py|ipynb|[jt]sx?|go|rs|rb|java|kt|swift|cc?|cpp|hpp?|cs|php|sh|sql|vue|toml|ya?ml)\b",
    re.MULTILINE,
)


def kind_of(sources: Sequence[Source]) -> Kind:
    """Coding when enough messages show code, else tool-heavy when enough are calls or results, else chat."""
    said = [source for source in sources if not is_empty(source)]
    if not said:
        return "chat"
    if sum(map(_shows_code, said)) >= CODING_SHARE * len(said):
        return "coding"
    using_tools = sum(source.is_tool_result or bool(source.calls) for source in said)
    return "tool-heavy" if using_tools >= TOOL_SHARE * len(said) else "chat"


def _shows_code(source: Source) -> bool:
    if _CODE_SIGN.search(source.text[:_READ_CHARS]):
        return True
    return any(_CODE_SIGN.search(call.arguments[:_READ_CHARS]) for call in source.calls)
