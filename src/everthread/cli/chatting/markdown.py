"""An answer as it comes: paragraphs that are finished are printed once and for all, what follows is redrawn.

Drawing the whole answer again for each piece would cost more with every word, and scroll. Only the last, unfinished
block is live; its end is a blank line outside of a code block.
"""

from __future__ import annotations

import re
import time

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from everthread.cli.output import printable

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_BETWEEN_SECONDS = 0.08
"""No eye sees more often than that, and drawing takes time from the answer."""


def finished(text: str) -> int:
    """How many characters at the beginning are finished blocks: nothing that follows can change them."""
    end, place, fence = 0, 0, ""
    for line in text.splitlines(keepends=True):
        place += len(line)
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif found:
            fence = found[1]
        elif not line.strip() and line.endswith("\n"):
            end = place
    return end


class MarkdownStream:
    """Draws one answer."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._live: Live | None = None
        self._drawn_at = 0.0

    def feed(self, piece: str) -> None:
        """Some more of it."""
        self._text += printable(piece)
        cut = finished(self._text)
        if cut:
            self._print(self._text[:cut])
            self._text = self._text[cut:]
        self._draw()

    def end(self) -> None:
        """All of it is there."""
        if self._text.strip():
            self._print(self._text)
        self._text = ""
        self._stop()

    def _print(self, block: str) -> None:
        self._stop()
        if block.strip():
            self._console.print(_drawn(block))
            self._console.print()

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self._drawn_at < _BETWEEN_SECONDS or not self._text.strip():
            return
        self._drawn_at = now
        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False, vertical_overflow="ellipsis")
            self._live.start()
        self._live.update(_drawn(self._text), refresh=True)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _drawn(text: str) -> Markdown:
    return Markdown(text.strip("\n"), hyperlinks=False)
