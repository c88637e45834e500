"""Drawing with matplotlib, without a screen and without its global state. Imported when the first plot is made."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font

from everthread.turn.tools.plot import Chart, RenderedChart

_INCHES = (8, 5)
_DOTS_PER_INCH = 120
_FAMILIES = (
    "DejaVu Sans", "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
    "PingFang SC", "Heiti SC", "Microsoft YaHei", "SimHei", "Arial Unicode MS",
)  # fmt: skip
"""Tried in this order for each character."""
_MAX_TICKS = 30
_lock = Lock()
"""Figures of their own are safe in threads, the font cache behind them is not."""


def render(chart: Chart) -> RenderedChart:
    """The chart as PNG and PDF."""
    with _lock:
        missing = sorted({character for text in _texts(chart) for character in text if not _has_glyph(character)})
        chart = _replace_glyphs(chart, set(missing))
        with rc_context({"font.family": list(_families()), "axes.unicode_minus": False, "text.parse_math": False}):
            figure = Figure(figsize=_INCHES, layout="constrained")
            _RENDERERS[chart.kind](figure.add_subplot(), chart)
            return RenderedChart(_save(figure, "png"), _save(figure, "pdf"), "".join(missing)[:40])


def _save(figure: Figure, kind: str) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=kind, dpi=_DOTS_PER_INCH, metadata={"CreationDate": None} if kind == "pdf" else None)
    return out.getvalue()


def _line(axes: Axes, chart: Chart) -> None:
    for name, values in chart.series.items():
        axes.plot(_positions(chart), _numbers(values), marker="o" if len(values) <= _MAX_TICKS else None, label=name)
    _finish(axes, chart)


def _scatter(axes: Axes, chart: Chart) -> None:
    for name, values in chart.series.items():
        axes.scatter(_positions(chart), _numbers(values), label=name)
    _finish(axes, chart)


def _bar(axes: Axes, chart: Chart) -> None:
    width = 0.8 / len(chart.series)
    places = np.arange(len(chart.x))
    for at, (name, values) in enumerate(chart.series.items()):
        axes.bar(
            places + (at - (len(chart.series) - 1) / 2) * width, np.nan_to_num(_numbers(values)), width, label=name
        )
    _finish(axes, chart, ticks=True)


def _histogram(axes: Axes, chart: Chart) -> None:
    for name, values in chart.series.items():
        axes.hist([value for value in values if value is not None], bins="auto", alpha=0.6, label=name)
    _finish(axes, chart)


def _pie(axes: Axes, chart: Chart) -> None:
    (values,) = chart.series.values()
    axes.pie(_numbers(values), labels=[str(one) for one in chart.x], autopct="%1.0f%%")
    axes.set_title(chart.title)


_RENDERERS = {"line": _line, "bar": _bar, "scatter": _scatter, "histogram": _histogram, "pie": _pie}


def _positions(chart: Chart) -> Sequence[float]:
    """Numbers stand where they belong, words one after the other."""
    return [float(one) for one in chart.x] if _is_numeric(chart) else list(map(float, range(len(chart.x))))


def _is_numeric(chart: Chart) -> bool:
    return all(isinstance(one, int | float) for one in chart.x)


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _finish(axes: Axes, chart: Chart, *, ticks: bool = False) -> None:
    if chart.kind != "histogram" and (ticks or not _is_numeric(chart)):
        step = max(1, len(chart.x) // _MAX_TICKS)
        words = [_short(one) for one in chart.x]
        axes.set_xticks(range(0, len(words), step), words[::step], rotation=0 if sum(map(len, words)) < 80 else 45)
    axes.set_title(chart.title)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(visible=True, alpha=0.3)
    if len(chart.series) > 1:
        axes.legend()


def _short(one: str | float) -> str:
    text = str(one)
    return text if len(text) <= 24 else f"{text[:23]}…"


# --- fonts ------------------------------------------------------------------------------------------


@cache
def _families() -> tuple[str, ...]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(name for name in _FAMILIES if name in installed) or ("sans-serif",)


@cache
def _fonts() -> tuple[FT2Font, ...]:
    return tuple(font_manager.get_font(font_manager.findfont(name)) for name in _families())


def _has_glyph(character: str) -> bool:
    """Whether a font here has it: matplotlib draws a box for the rest, and warns for each."""
    return character in "\n\t" or any(font.get_char_index(ord(character)) for font in _fonts())


def _texts(chart: Chart) -> Iterator[str]:
    yield from (chart.title, chart.x_label, chart.y_label, *chart.series)
    yield from (str(one) for one in chart.x)


def _replace_glyphs(chart: Chart, missing: set[str]) -> Chart:
    if not missing:
        return chart

    def clean(text: str) -> str:
        return "".join("?" if character in missing else character for character in text)

    named: dict[str, list[float | None]] = {}
    for name, values in chart.series.items():
        label = clean(name)
        named[label if label not in named else f"{label} ({len(named) + 1})"] = values
    return chart._replace(
        title=clean(chart.title),
        x_label=clean(chart.x_label),
        y_label=clean(chart.y_label),
        series=named,
        x=[clean(one) if isinstance(one, str) else one for one in chart.x],
    )
