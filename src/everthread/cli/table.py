"""Tables that fit a terminal: what one copies or compares stays whole, and what has no room gives way in a known order.

A column's name may begin with marks: ">" aligns to the right, "^" holds ids, which are cut to a beginning that tells
them apart, "~" is cut at its end, "?" is left out where there is no room; in "*", **these words** are bold where there
are colours. If stdout is not a terminal, everything is printed as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_MARKS: Final = ">^~?*"
_GAP: Final = 2
_LEAST_WORDS: Final = 16
"""A column of words is not made narrower than this as long as another may be left out."""
_LEAST_ID: Final = 12
_LONG: Final = 20
"""A cell that is longer than this and has spaces may be folded; others are kept whole."""


class _Column:
    def __init__(self, name: str, cells: Sequence[str]) -> None:
        from rich.cells import cell_len  # noqa: PLC0415 - startup

        self.name = name.lstrip(_MARKS)
        self.marks = name[: len(name) - len(self.name)]
        self.cells = cells
        self.natural = max(cell_len(text) for text in (self.name, *cells))
        self.gives_way = "~" in self.marks or any(len(cell) > _LONG and " " in cell for cell in cells)
        self.least = min(self.natural, _LEAST_WORDS) if self.gives_way else self.natural

    def with_ids_cut(self) -> _Column:
        return _Column(f"{self.marks}{self.name}", _shortest_distinct(self.cells)) if "^" in self.marks else self


def build(columns: Sequence[str], rows: Iterable[Sequence[str]], width: int | None, has_colours: bool) -> Table:
    """The table for a terminal of this width; whole, if there is none."""
    from rich.table import Table  # noqa: PLC0415 - startup

    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    every = [_Column(name, texts) for name, texts in zip(columns, cells, strict=True)]
    if width is not None:
        every = _fit(every, width)
    widths = [None] * len(every) if width is None else _widths(every, width)
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(one.name for one in every))
    for one, room in zip(every, widths, strict=True):
        is_cut = width is not None and "~" in one.marks
        table.add_column(
            one.name,
            justify="right" if ">" in one.marks else "left",
            overflow="ellipsis" if is_cut else "fold",
            no_wrap=is_cut,
            width=room,
        )
    for row in zip(*(one.cells for one in every), strict=True):
        table.add_row(*(_styled(text, has_colours and "*" in one.marks) for one, text in zip(every, row, strict=True)))
    return table


def _styled(text: str, is_marked: bool) -> Text:
    from rich.text import Text  # noqa: PLC0415 - startup

    pieces = text.split("**") if is_marked else [text]
    return Text.assemble(*((piece, "bold yellow" if at % 2 else "") for at, piece in enumerate(pieces)))


def _fit(columns: list[_Column], width: int) -> list[_Column]:
    """The columns that fit: first ids are cut, then optional columns are left out, the last one first."""
    if _needed(columns) > width:
        columns = [one.with_ids_cut() for one in columns]
    while _needed(columns) > width and any("?" in one.marks for one in columns):
        columns.remove(next(one for one in reversed(columns) if "?" in one.marks))
    return columns


def _needed(columns: Sequence[_Column]) -> int:
    return sum(one.least for one in columns) + _GAP * (len(columns) - 1)


def _widths(columns: Sequence[_Column], width: int) -> list[int | None]:
    """The widths: whole columns get what they need, the others share the rest; None if even that does not fit."""
    if _needed(columns) > width:
        return [None] * len(columns)
    rest = width - _GAP * (len(columns) - 1) - sum(one.natural for one in columns if not one.gives_way)
    found: dict[int, int] = {}
    flexible = sorted((at for at, one in enumerate(columns) if one.gives_way), key=lambda at: columns[at].natural)
    for place, at in enumerate(flexible):
        found[at] = min(columns[at].natural, rest // (len(flexible) - place))
        rest -= found[at]
    return [found.get(at, one.natural) for at, one in enumerate(columns)]


def _shortest_distinct(ids: Sequence[str]) -> list[str]:
    """The beginnings of ids, as short as they can be while all are different. Behind the name of an agent as much is
    kept as of an id without one: a command takes what is shown."""
    different = len(set(ids))
    longest = max(map(len, ids), default=0)
    least = max((id.find(":") + 1 for id in ids), default=0) + _LEAST_ID
    most = next((n for n in range(least, longest) if len({id[:n] for id in ids}) == different), longest)
    return [id[:most] for id in ids]
