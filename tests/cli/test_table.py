"""Tables in terminals of several widths: what one copies stays whole or is cut where it still tells apart."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from everthread.cli.table import build

IDS = ("chat-2b87db28cfe32880d5ecd4ff3e1ba74e", "chat-2b87ffffcfe32880d5ecd4ff3e1ba74e")
LONG = "Compare three quiet guesthouses in Chengdu, close to a park"
ROWS = [[IDS[0], LONG, "372", "2026-11-19 20:32:47"], [IDS[1], "短标题", "1", "2026-11-19 20:32:47"]]
COLUMNS = ("^id", "~title", ">messages", "?last said")


def lines(columns: tuple[str, ...], rows: list[list[str]], width: int | None, *, colours: bool = False) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width or 100_000, force_terminal=colours, color_system="standard" if colours else None
    )
    with console.capture() as captured:
        console.print(build(columns, rows, width, colours))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_wide_terminal_shows_ids_whole_and_a_row_is_one_line() -> None:
    shown = lines(COLUMNS, ROWS, 120)
    assert len(shown) == 3
    assert all(id in line for id, line in zip(IDS, shown[1:], strict=True))


def test_in_a_narrow_terminal_ids_are_cut_but_still_differ() -> None:
    shown = lines(COLUMNS, ROWS, 80)
    assert len(shown) == 3
    beginnings = [line.split()[0] for line in shown[1:]]
    assert len(set(beginnings)) == 2
    assert all(id.startswith(beginning) for id, beginning in zip(IDS, beginnings, strict=True))
    assert "…" in shown[1]
    assert "2026-11-19 20:32:47" in shown[1]


def test_of_the_id_of_an_agents_session_more_is_kept_than_the_agent() -> None:
    id = "claude-code:5f1c0a11-1111-4222-8333-444455556666"
    columns = ("^conversation", "~title", ">seq", "role", "?said", "*text")
    shown = lines(columns, [[id, LONG, "3", "user", "2026-11-19 20:32:47", LONG]] * 2, 90)
    assert any(id[:24] in line for line in shown)


def test_columns_that_can_be_missed_are_left_out_last_first() -> None:
    shown = lines(COLUMNS, ROWS, 50)
    assert shown[0].split() == ["id", "title", "messages"]
    assert all(len(line) <= 50 for line in shown)


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_a_figure_or_a_time_is_never_folded(width: int) -> None:
    shown = lines(("text", ">tokens", "?made"), [[LONG * 3, "2,195 → 575", "2026-11-19 20:32:47"]], width)
    assert sum("2,195 → 575" in line for line in shown) == 1
    assert all("2026" not in line or "2026-11-19 20:32:47" in line for line in shown)


def test_where_there_is_no_terminal_all_is_printed_as_it_is() -> None:
    text = f"**{LONG}** " * 9
    assert lines(("^id", "*text", "?last"), [[IDS[0], text.strip(), "x"]], None)[1].split() == [
        IDS[0],
        *text.split(),
        "x",
    ]


def test_words_that_were_found_are_bold_where_there_are_colours() -> None:
    assert "**" in lines(("*text",), [["a peanut **allergy**"]], 80)[1]
    coloured = lines(("*text",), [["a peanut **allergy**"]], 80, colours=True)[1]
    assert "**" not in coloured
    assert "\x1b[1;33mallergy\x1b[0m" in coloured
