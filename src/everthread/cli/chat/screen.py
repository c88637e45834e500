"""A turn's events on the screen: for people (Markdown as it comes, thinking and tool calls folded to a line each), as
plain text in a pipe, or as JSON lines.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.status import Status
from rich.text import Text

from everthread.cli.output import Output, counted, cut
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
from everthread.text.printable import one_line, printable

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_REDRAW_SECONDS = 0.08
"""The eye sees no more, and drawing takes time from the answer."""


def finished_length(text: str) -> int:
    """How many characters at the beginning are finished blocks, which nothing that follows can change: a block ends
    at a blank line outside a code fence."""
    end, position, fence = 0, 0, ""
    for line in text.splitlines(keepends=True):
        position += len(line)
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif found:
            fence = found[1]
        elif not line.strip() and line.endswith("\n"):
            end = position
    return end


class MarkdownStream:
    """Draws one answer as it comes: finished blocks are printed for good, and only the last, unfinished one is redrawn.
    Redrawing the whole answer would cost more with every word, and scroll."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._live: Live | None = None
        self._drawn_at = 0.0

    def feed(self, piece: str) -> None:
        """Add text."""
        self._text += printable(piece)
        cut = finished_length(self._text)
        if cut:
            self._print(self._text[:cut])
            self._text = self._text[cut:]
        self._draw()

    def end(self) -> None:
        """The answer is complete."""
        if self._text.strip():
            self._print(self._text)
        self._text = ""
        self._stop()

    def _print(self, block: str) -> None:
        self._stop()
        if block.strip():
            self._console.print(_markdown(block))
            self._console.print()

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn_at < _REDRAW_SECONDS or not self._text.strip():
            return
        self._drawn_at = now
        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False, vertical_overflow="ellipsis")
            self._live.start()
        self._live.update(_markdown(self._text), refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _markdown(text: str) -> Markdown:
    """A line that was begun anew stays a new line, as on the page: what is no list or paragraph may be a poem."""
    markdown = Markdown(text.strip("\n"), hyperlinks=False)
    for piece in (piece for token in markdown.parsed for piece in token.children or ()):
        if piece.type == "softbreak":
            piece.type = "hardbreak"
    return markdown


_ARGUMENTS_CHARACTERS = 70
_RESULT_CHARACTERS = 60


def thinking_line(text: str) -> str:
    """`thought for 120 words`."""
    return f"thought for {counted(len(text.split()), 'word')}"


def call_line(call: ToolCall) -> str:
    """`read_file(path="a.md")`."""
    given = call.arguments.items()
    arguments = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in given)
    return f"{one_line(call.name)}({cut(one_line(arguments), _ARGUMENTS_CHARACTERS)})"


def result_line(result: ToolResult) -> str:
    """`ok, 0.1 s: 3 files`."""
    first = cut(one_line(result.text.strip().partition("\n")[0]), _RESULT_CHARACTERS)
    return f"{'ok' if result.ok else 'failed'}, {result.seconds:.1f} s{f': {first}' if first else ''}"


def recall_line(recall: Recall) -> str:
    """What was recalled, and what failed."""
    found = [counted(len(recall.seqs), "earlier message")] if recall.seqs else []
    found += [counted(len(recall.memories), "memory", "memories")] if recall.memories else []
    if recall.collection is not None and not recall.degraded:
        why = f" ({recall.why})" if recall.why else ""
        found.append(f"{counted(recall.passages, 'passage')} of the knowledge base {recall.collection}{why}")
    said = f"recalled {', '.join(found)}" if found else ""
    missing = f"without {', '.join(recall.degraded)}, which failed or took too long" if recall.degraded else ""
    return "; ".join(part for part in (said, missing) if part)


def compaction_line(compaction: Compacted) -> str:
    return f"{compaction.messages:,} older messages are summarised now; nothing is lost"


def whole_call(call: ToolCall, result: ToolResult | None) -> str:
    """A call with all its arguments and its result."""
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, indent=2)
    return printable(f"{call.name} {arguments}\n{'(no result)' if result is None else result.text}")


class Screen(Protocol):
    """Where a turn is shown."""

    def show(self, event: TurnEvent) -> None:
        """Show the next event."""

    def note(self, text: str) -> None:
        """Show a note that is not part of the turn."""


def as_json(event: TurnEvent) -> dict[str, Any]:
    """An event as a document."""
    return {"kind": event.kind, **asdict(event)}


class JsonScreen:
    """One JSON document per event; nothing is folded."""

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
            self.note(call_line(event))

    def note(self, text: str) -> None:
        self._out.note(text)


def _ending(event: Done | Failed) -> Iterator[str]:
    if isinstance(event, Failed):
        yield f"failed: {event.message}"
        return
    if event.state != "complete":
        yield f"{event.state}; what was said so far is kept"
    yield from event.notices


@dataclass(slots=True)
class Details:
    """Thinking and tool calls of the last turn, which the screen shows as a line each."""

    thinking: list[str] = field(default_factory=list)
    calls: dict[str, tuple[ToolCall, ToolResult | None]] = field(default_factory=dict)

    def whole(self) -> str:
        """Everything, in full."""
        thought = ["".join(self.thinking)] if self.thinking else []
        return "\n\n".join([*thought, *(whole_call(*pair) for pair in self.calls.values())])


def _wrapped(line: str, console: Console) -> Text:
    """A line of ours, broken between words; of a table, what goes on stands below its last column. A path that is wider
    than that is left to the terminal, so that it can be copied in one piece."""
    column = re.match(rf".{{0,{console.width // 2}}} {{2}}(?=\S)", line)
    head, rest = (column[0], line[column.end() :]) if column else ("", line)
    width = console.width - cell_len(head)
    if any(cell_len(word) > width for word in rest.split()):
        return Text(line)
    return Text(head) + Text(f"\n{' ' * cell_len(head)}").join(Text(rest).wrap(console, width))


class TerminalScreen:
    """For people: Markdown as it comes, thinking and tool calls folded to a line each."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.details = Details()
        self._stream = MarkdownStream(console)
        self._thinking: list[str] = []
        self._waiting: Status | None = None

    def begin(self) -> None:
        """Start a new turn; until there is something to show, a sign says that it is at work."""
        self.details = Details()
        self._stream = MarkdownStream(self.console)
        self._thinking = []
        self._waiting = self.console.status(Text("thinking …", style="dim"))
        self._waiting.start()

    def stop_waiting(self) -> None:
        """There is something to show, or nothing will come."""
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def say(self, text: str) -> None:
        """A text of ours, as it is."""
        for line in printable(text).split("\n"):
            self.console.print(_wrapped(line, self.console), soft_wrap=True)

    def show(self, event: TurnEvent) -> None:
        if isinstance(event, Token | ToolCall | Recall | Compacted | Done | Failed):
            self.stop_waiting()
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
            self._dim(f"  {thinking_line(''.join(self._thinking))}")
            self._thinking = []

    def _folded(self, event: TurnEvent) -> str:
        if isinstance(event, ToolCall):
            self.details.calls[event.id] = (event, None)
            return f"▸ {call_line(event)}"
        if isinstance(event, ToolResult):
            with suppress(KeyError):
                self.details.calls[event.id] = (self.details.calls[event.id][0], event)
            return f"  {event.name}: {result_line(event)}"
        if isinstance(event, Recall):
            return recall_line(event)
        return compaction_line(event) if isinstance(event, Compacted) else ""

    def _dim(self, line: str) -> None:
        self.console.print(Text(printable(line), style="dim"))
