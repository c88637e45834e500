"""Numbers as pictures with their table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turn.tools.conftest import ToolCaller


@pytest.mark.parametrize("kind", ["line", "bar", "scatter", "histogram"])
async def test_a_plot_is_a_png_a_pdf_and_a_csv(toolbox: ToolCaller, kind: str) -> None:
    told = await toolbox(
        "plot", kind=kind, title="Cost of $x$", x=["Jan", "Feb", "Mar"], series={"a": [1, 2.5, -3], "b": [3, None, 1]}
    )
    assert "plots/cost-of-x.png" in told
    workspace = await toolbox.context.files.workspace()
    assert workspace.read("plots/cost-of-x.png").startswith(b"\x89PNG")
    assert workspace.read("plots/cost-of-x.pdf").startswith(b"%PDF")
    assert workspace.read("plots/cost-of-x.csv") == b"x,a,b\nJan,1.0,3.0\nFeb,2.5,\nMar,-3.0,1.0\n"
    picture = toolbox.changes["result"]["visualization"]
    assert (picture["success"], picture["title"]) == (True, "Cost of $x$")
    for kind, suffix in (("image", "png"), ("pdf", "pdf"), ("data", "csv")):
        assert picture[f"{kind}_path"] == f"plots/cost-of-x.{suffix}"
        assert picture[f"{kind}_url"].endswith(f"/files/plots/cost-of-x.{suffix}")


async def test_a_pie_and_numbers_below(toolbox: ToolCaller) -> None:
    await toolbox("plot", kind="pie", title="Shares", x=["a", "b"], series={"s": [1, 3]})
    await toolbox("plot", kind="line", title="Years", x=[2020, 2021.5], series={"s": [1, 3]}, name="by year")
    assert "plots/by-year.png" in await toolbox("list_files")


async def test_words_that_no_font_has_are_told_and_the_table_keeps_them(toolbox: ToolCaller) -> None:
    await toolbox("plot", kind="bar", title="销量 😀", x=["一月"], series={"东": [1], "西": [2]})
    assert (await toolbox.context.files.workspace()).read("plots/销量.csv").decode() == "x,东,西\n一月,1.0,2.0\n"


async def test_a_table_holds_nothing_that_a_spreadsheet_would_run(toolbox: ToolCaller) -> None:
    await toolbox("plot", kind="bar", title="t", x=["=cmd()", "ok"], series={"@sum": [1, 2]})
    assert (await toolbox.context.files.workspace()).read("plots/t.csv").decode() == "x,'@sum\n'=cmd(),1.0\nok,2.0\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"series": {}},
        {"series": {"a": []}},
        {"series": {"a": [1], "b": [1, 2]}},
        {"x": ["one"], "series": {"a": [1, 2]}},
        {"kind": "pie", "series": {"a": [1, -1]}},
        {"kind": "pie", "series": {"a": [1], "b": [1]}},
        {"kind": "pie", "series": {"a": [0, 0]}},
        {"kind": "radar"},
        {"series": {"a": ["many"]}},
        {"series": {"a": [1.0] * 20_001}},
        {"title": ""},
    ],
)
async def test_what_cannot_be_drawn_is_told(toolbox: ToolCaller, wrong: dict[str, Any]) -> None:
    await toolbox.refused("plot", **{"kind": "line", "title": "t", "series": {"a": [1, 2]}, **wrong})
    assert toolbox.changes == {}


async def test_i26_a_plots_name_is_no_path(toolbox: ToolCaller) -> None:
    await toolbox("plot", kind="line", title="t", series={"a": [1]}, name="../../../evil")
    assert "plots/evil.png" in await toolbox("list_files")
