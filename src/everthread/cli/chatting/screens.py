"""What a turn tells, shown: on a terminal with colours and Markdown, as plain text in a pipe, or as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from everthread.cli.chatting import folding
from everthread.cli.chatting.markdown import MarkdownStream
from everthread.cli.output import Output, printable
from everthread.core.turn_events import (
    Compacted,
    Done,
    Failed,
    Recall,
    Thinking,
    Token,
    ToolCall,
    ToolResult,
    TurnEvent,
)


class Screen(Protocol):
    """Somewhere to show a turn."""

    def show(self, event: TurnEvent) -> None:
        """The next thing that it tells."""

    def note(self, text: str) -> None:
        """Something beside it."""


def as_json(event: TurnEvent) -> dict[str, Any]:
    """An event as a document."""
    return {"kind": event.kind, **asdict(event)}


class JsonScreen:
    """One document a line; nothing is folded."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def show(self, event: TurnEvent) -> None:
        self._out.document(as_json(event))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Notes are for people."""


class PlainScreen:
    """The answer's text on stdout as it comes, everything else on stderr."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._message_id = ""

    def show(self, event: TurnEvent) -> None:
        if isinstance(event, Token):
            if self._message_id not in ("", event.message_id):
                sys.stdout.write("\n")
            self._message_id = event.message_id
            sys.stdout.write(printable(event.text))
            sys.stdout.flush()
        elif isinstance(event, Done | Failed):
            sys.stdout.write("\n" if self._message_id else "")
            sys.stdout.flush()
            for line in _ending(event):
                self.note(line)
        elif isinstance(event, ToolCall):
            self.note(folding.call_line(event))

    def note(self, text: str) -> None:
        self._out.note(text)


def _ending(event: Done | Failed) -> Iterator[str]:
    if isinstance(event, Failed):
        yield f"failed: {event.message}"
    elif event.state != "complete":
        yield f"{event.state}; what was said until then is kept"


@dataclass(slots=True)
class Details:
    """What was folded in the last turn."""

    thinking: list[str] = field(default_factory=list)
    calls: dict[str, tuple[ToolCall, ToolResult | None]] = field(default_factory=dict)

    def whole(self) -> str:
        """All of it."""
        thought = ["".join(self.thinking)] if self.thinking else []
        return "\n\n".join([*thought, *(folding.whole(*pair) for pair in self.calls.values())])


class TerminalScreen:
    """For people: Markdown as it comes, thinking and tool calls folded."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.details = Details()
        self._stream = MarkdownStream(console)
        self._thinking: list[str] = []

    def begin(self) -> None:
        """A turn begins."""
        self.details = Details()
        self._stream = MarkdownStream(self.console)
        self._thinking = []

    def show(self, event: TurnEvent) -> None:
        if isinstance(event, Thinking):
            self._thinking.append(event.text)
            self.details.thinking.append(event.text)
            return
        self._fold_thinking()
        if isinstance(event, Token):
            self._stream.feed(event.text)
        elif line := self._folded(event):
            self._stream.end()
            self._dim(f"  {line}")
        elif isinstance(event, Done | Failed):
            self._stream.end()
            for said in _ending(event):
                self.note(said)

    def note(self, text: str) -> None:
        self.console.print(Text(printable(text), style="yellow"))

    def _fold_thinking(self) -> None:
        if self._thinking:
            self._stream.end()
            self._dim(f"  {folding.thinking_line(''.join(self._thinking))}")
            self._thinking = []

    def _folded(self, event: TurnEvent) -> str:
        if isinstance(event, ToolCall):
            self.details.calls[event.id] = (event, None)
            return f"▸ {folding.call_line(event)}"
        if isinstance(event, ToolResult):
            with suppress(KeyError):
                self.details.calls[event.id] = (self.details.calls[event.id][0], event)
            return f"  {event.name}: {folding.result_line(event)}"
        if isinstance(event, Recall):
            return folding.recall_line(event)
        return folding.compaction_line(event) if isinstance(event, Compacted) else ""

    def _dim(self, line: str) -> None:
        self.console.print(Text(printable(line), style="dim"))
