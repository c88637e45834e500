"""`plot`: numbers as a picture (PNG, PDF) with its table (CSV) in the workspace; needs the extra `plots`."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Literal, NamedTuple

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread.core.errors import Invalid, MissingExtra
from everthread.core.workspaces import Workspace
from everthread.turn.tools.desk import Desk
from everthread.turn.tools.shaping import as_tool

Kind = Literal["line", "bar", "scatter", "histogram", "pie"]
Values = list[float | None]
FOLDER = "plots"
MAX_VALUES = 20_000
MAX_SERIES = 20
TIMEOUT_SECONDS = 180.0
"""The first plot on a machine waits for matplotlib's list of its fonts."""


class Chart(NamedTuple):
    """What is to be drawn."""

    kind: Kind
    title: str
    x: Sequence[str | float]
    series: Mapping[str, Values]
    x_label: str
    y_label: str


class Drawn(NamedTuple):
    """A picture, twice, and what of its words could not be written."""

    png: bytes
    pdf: bytes
    unwritten: str


def tools(desk: Desk) -> Sequence[BaseTool]:
    return [as_tool(plot, desk=desk, timeout_seconds=TIMEOUT_SECONDS)]


async def plot(
    desk: Desk,
    kind: Kind,
    title: Annotated[str, Field(min_length=1, max_length=200)],
    series: Annotated[
        dict[str, Values], Field(min_length=1, max_length=MAX_SERIES, description="numbers by the name of their line")
    ],
    x: Annotated[list[str | float], Field(description="what stands below; 1, 2, 3 … when empty")] = [],  # noqa: B006
    x_label: str = "",
    y_label: str = "",
    name: Annotated[str, Field(description="of the files; made from the title when empty")] = "",
) -> str:
    """Draw numbers: a PNG, a PDF and a CSV with the same numbers, in the folder plots of the workspace."""
    chart = _checked(Chart(kind, title, x, series, x_label, y_label))
    drawn = await asyncio.to_thread(_drawn, chart)
    stem = f"{FOLDER}/{_stem(name or title)}"
    bodies = {f"{stem}.png": drawn.png, f"{stem}.pdf": drawn.pdf, f"{stem}.csv": _table(chart)}

    def write(workspace: Workspace) -> None:
        for path, body in bodies.items():
            workspace.write(path, body)

    await desk.files.do(write)
    png, pdf, table = bodies
    desk.notes.drew({"success": True, "image_url": png, "pdf_url": pdf, "data_url": table})
    note = f" There is no font here for: {drawn.unwritten}." if drawn.unwritten else ""
    return f"Drawn: {png}, {pdf}; the numbers are in {table}.{note}"


def _drawn(chart: Chart) -> Drawn:
    try:
        drawing = import_module("everthread.turn.tools.drawing")
    except ImportError as problem:
        raise MissingExtra("plots need an extra: pip install 'everthread[plots]'") from problem
    drawn: Drawn = drawing.draw(chart)
    return drawn


def _checked(chart: Chart) -> Chart:
    lengths = {len(values) for values in chart.series.values()}
    count = max(lengths)
    if not count or sum(map(len, chart.series.values())) > MAX_VALUES:
        raise Invalid(f"must hold 1 to {MAX_VALUES:,} numbers", field="series")
    if chart.kind != "histogram" and len(lengths) > 1:
        raise Invalid("must all have the same length; write null where there is none", field="series")
    if chart.x and len(chart.x) != count:
        raise Invalid(f"must have {count} values, as the series have, not {len(chart.x)}", field="x")
    if chart.kind == "pie":
        (values, *others) = chart.series.values()
        if others or any(value is None or value < 0 for value in values) or not sum(filter(None, values)):
            raise Invalid("of a pie must be one, with numbers from 0 up", field="series")
    return chart if chart.x or chart.kind == "histogram" else chart._replace(x=list(range(1, count + 1)))


def _stem(name: str) -> str:
    """A file's name that any system takes."""
    return re.sub(r"[^\w-]+", "-", name).strip("-_").lower()[:60] or "plot"


def _table(chart: Chart) -> bytes:
    """The numbers as they were given; a cell that a spreadsheet would compute is made text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    count = max(map(len, chart.series.values()))
    x = chart.x or list(range(1, count + 1))
    writer.writerow([_plain(chart.x_label or "x"), *map(_plain, chart.series)])
    for at in range(count):
        cells = [values[at] if at < len(values) else None for values in chart.series.values()]
        writer.writerow([_plain(x[at]), *("" if cell is None else cell for cell in cells)])
    return out.getvalue().encode(errors="backslashreplace")


def _plain(cell: str | float) -> str | float:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell
