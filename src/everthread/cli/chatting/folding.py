"""Thinking and tool calls as a line each, and whole when they are asked for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from everthread.cli.output import one_line, printable
from everthread.core.turn_events import Compacted, Recall, ToolCall, ToolResult

_ARGUMENTS_CHARACTERS = 70
_RESULT_CHARACTERS = 60


def thinking_line(text: str) -> str:
    """How long it thought."""
    words = len(text.split())
    return f"thought for {words:,} word{'' if words == 1 else 's'}"


def call_line(call: ToolCall) -> str:
    """`read_file(path="a.md")`."""
    arguments = ", ".join(f"{name}={_value(value)}" for name, value in call.arguments.items())
    return f"{one_line(call.name)}({_cut(one_line(arguments), _ARGUMENTS_CHARACTERS)})"


def result_line(result: ToolResult) -> str:
    """`ok, 0.1 s: 3 files`."""
    first = _cut(one_line(result.text.strip().partition("\n")[0]), _RESULT_CHARACTERS)
    return f"{'ok' if result.ok else 'failed'}, {result.seconds:.1f} s{f': {first}' if first else ''}"


def recall_line(recall: Recall) -> str:
    """What came back from before, or could not."""
    found = [f"{len(recall.seqs)} earlier messages"] if recall.seqs else []
    found += [f"{len(recall.memories)} memories"] if recall.memories else []
    found += [f"{recall.passages} passages of documents"] if recall.passages else []
    said = f"recalled {', '.join(found)}" if found else ""
    missing = f"without {', '.join(recall.degraded)}, which failed or took too long" if recall.degraded else ""
    return "; ".join(part for part in (said, missing) if part)


def compaction_line(compaction: Compacted) -> str:
    return f"{compaction.messages:,} older messages are summed up now; nothing is lost"


def whole(call: ToolCall, result: ToolResult | None) -> str:
    """A call with everything in it."""
    told = json.dumps(_plain(call.arguments), ensure_ascii=False, indent=2)
    return printable(f"{call.name} {told}\n{'(no result)' if result is None else result.text}")


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
