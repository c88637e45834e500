"""`plot`: numbers as a picture (PNG, PDF) with its table (CSV) in the workspace; needs the extra `plots`."""

from __future__ import annotations

import asyncio
import csv
import io
import re
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import count
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import quote

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread.core.errors import Invalid, MissingExtra
from everthread.core.workspaces import Workspace
from everthread.turn.tools.tool_context import ToolContext
from everthread.turn.tools.wrap import as_tool

ChartKind = Literal["line", "bar", "scatter", "histogram", "pie"]
Values = list[float | None]
FOLDER = "plots"
MAX_VALUES = 20_000
MAX_SERIES = 20
TIMEOUT_SECONDS = 180.0
"""The first plot on a machine waits for matplotlib's list of its fonts."""

_naming: Final = threading.Lock()
"""Two plots of one step must not find the same name free."""


class Chart(NamedTuple):
    """A chart to be rendered."""

    kind: ChartKind
    title: str
    x: Sequence[str | float]
    series: Mapping[str, Values]
    x_label: str
    y_label: str


class RenderedChart(NamedTuple):
    """The picture in two formats, and the characters that no font has."""

    png: bytes
    pdf: bytes
    missing_glyphs: str


def tools(tool_context: ToolContext) -> Sequence[BaseTool]:
    return [as_tool(plot, tool_context=tool_context, timeout_seconds=TIMEOUT_SECONDS)]


async def plot(
    tool_context: ToolContext,
    kind: ChartKind,
    title: Annotated[str, Field(min_length=1, max_length=200)],
    series: Annotated[
        dict[str, Values],
        Field(min_length=1, max_length=MAX_SERIES, description="the numbers of each line, by its name"),
    ],
    x: Annotated[list[str | float], Field(description="values of the x axis; 1, 2, 3 … if empty")] = [],  # noqa: B006
    x_label: str = "",
    y_label: str = "",
    name: Annotated[str, Field(description="name of the files; taken from the title if empty")] = "",
) -> str:
    """Draw numbers: a PNG, a PDF and a CSV with the same numbers, in the folder plots of the workspace."""
    chart = _check(Chart(kind, title, x, series, x_label, y_label))
    picture = await asyncio.to_thread(_render, chart)
    stem, table_body = _stem(name or title), _table(chart)

    def write(workspace: Workspace) -> list[str]:
        with _naming:
            free = f"{FOLDER}/{_free(workspace, stem)}"
            bodies = {f"{free}.png": picture.png, f"{free}.pdf": picture.pdf, f"{free}.csv": table_body}
            return [workspace.write(path, body).path for path, body in bodies.items()]

    png, pdf, table = paths = await tool_context.files.run(write)
    prefix = await tool_context.files.url_prefix()
    kinds = ("image", "pdf", "data")
    urls = {f"{kind}_url": f"{prefix}/{quote(path)}" for kind, path in zip(kinds, paths, strict=True)}
    named = {f"{kind}_path": path for kind, path in zip(kinds, paths, strict=True)}
    tool_context.state_changes.set_visualization({"success": True, "title": title, **urls, **named})
    note = f" No installed font has: {picture.missing_glyphs}." if picture.missing_glyphs else ""
    return f"Drawn: {png}, {pdf}; the numbers are in {table}.{note}"


def _render(chart: Chart) -> RenderedChart:
    try:
        renderer = import_module("everthread.turn.tools.plot_renderer")
    except ImportError as problem:
        raise MissingExtra("plots need an extra: pip install 'everthread[plots]'") from problem
    picture: RenderedChart = renderer.render(chart)
    return picture


def _check(chart: Chart) -> Chart:
    lengths = {len(values) for values in chart.series.values()}
    longest = max(lengths)
    if not longest or sum(map(len, chart.series.values())) > MAX_VALUES:
        raise Invalid(f"must hold 1 to {MAX_VALUES:,} numbers", field="series")
    if chart.kind != "histogram" and len(lengths) > 1:
        raise Invalid("must all have the same length; write null where there is none", field="series")
    if chart.x and len(chart.x) != longest:
        raise Invalid(f"must have {longest} values, as the series have, not {len(chart.x)}", field="x")
    if chart.kind == "pie":
        (values, *others) = chart.series.values()
        if others or any(value is None or value < 0 for value in values) or not sum(filter(None, values)):
            raise Invalid("must be a single series of numbers from 0 up for a pie chart", field="series")
    return chart if chart.x or chart.kind == "histogram" else chart._replace(x=list(range(1, longest + 1)))


def _stem(name: str) -> str:
    """A file's name that any system takes."""
    return re.sub(r"[^\w-]+", "-", name).strip("-_").lower()[:60] or "plot"


def _free(workspace: Workspace, stem: str) -> str:
    """A name that no picture has: one that an earlier answer shows stays as it was."""
    taken = {file.path for file in workspace.files()}
    names = (stem if at == 1 else f"{stem}-{at}" for at in count(1))
    return next(name for name in names if f"{FOLDER}/{name}.png" not in taken)


def _table(chart: Chart) -> bytes:
    """The numbers as they were given; a cell that a spreadsheet would take for a formula is escaped."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    longest = max(map(len, chart.series.values()))
    x = chart.x or list(range(1, longest + 1))
    writer.writerow([_escape_formula(chart.x_label or "x"), *map(_escape_formula, chart.series)])
    for at in range(longest):
        cells = [values[at] if at < len(values) else None for values in chart.series.values()]
        writer.writerow([_escape_formula(x[at]), *("" if cell is None else cell for cell in cells)])
    return out.getvalue().encode(errors="backslashreplace")


def _escape_formula(cell: str | float) -> str | float:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell
