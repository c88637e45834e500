"""The gauge of `everthread context`: how full a request is, part by part, and where compaction begins. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from everthread.cli.output import Styled

_STYLES = {
    "system": "magenta", "memory": "red", "pinned": "yellow", "summary": "cyan", "recalled": "blue", "window": "green",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """The characters of a gauge: a shade for each part in turn, so that it can be read without colours."""

    shades: str
    free: str
    mark: str


BLOCKS = Signs(shades="█▓▒░", free="·", mark="│")
ASCII = Signs(shades="#=+~", free=".", mark="|")


def signs_for(encoding: str | None) -> Signs:
    """Blocks where the terminal can show them."""
    try:
        (BLOCKS.shades + BLOCKS.free + BLOCKS.mark).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def gauge(parts: Sequence[tuple[str, int]], limit: int, mark: float, *, width: int, signs: Signs) -> Iterator[Styled]:
    """The bar: each part (kind, tokens) as wide as its share of the limit, a part that has any at least one cell."""
    cells = _cells([tokens for _, tokens in parts], limit, width)
    drawn = [(legend(at, signs), _STYLES.get(kind, "")) for at, (kind, _) in enumerate(parts) for _ in range(cells[at])]
    drawn += [(signs.free, "dim")] * (width - len(drawn))
    drawn.insert(min(width, round(mark * width)), (signs.mark, "bold red"))
    for (_, style), run in groupby(drawn):
        yield "".join(sign for sign, _ in run), style


def legend(at: int, signs: Signs) -> str:
    """The shade of the part in this place."""
    return signs.shades[at % len(signs.shades)]


def _cells(tokens: Sequence[int], limit: int, width: int) -> list[int]:
    cells = [max(1, round(width * size / limit)) if size else 0 for size in tokens]
    while sum(cells) > width:  # rounding up: the widest gives way
        cells[cells.index(max(cells))] -= 1
    return cells
