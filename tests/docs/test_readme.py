"""What the documentation shows is what happens: each program in it is run, and its output compared."""

from __future__ import annotations

import asyncio
import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from everthread.demo import render, run
from tests.forkserver import WITH_LANGCHAIN, ForkServer

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "README.zh-CN.md",
    "docs/how-to/archive-a-langgraph-agent.md",
    "docs/how-to/keep-full-history.md",
    "docs/explanation/context-and-compaction.md",
    "docs/zh/archive-a-langgraph-agent.md",
    "docs/zh/keep-full-history.md",
    "docs/zh/context-and-compaction.md",
)
SHOWN = re.compile(r"^```python\n(?P<program>.*?)^```\n\n```text\n(?P<output>.*?)^```$", re.M | re.S)
EXAMPLE_OUTPUT = """\
in the checkpoint: 6
in the log: 24
first question: How high is Kunming?
chain verified: True
"""


def output_of(*arguments: str, forkserver: ForkServer, folder: Path) -> str:
    """What a program prints, run in an empty folder."""
    done = forkserver.run_program(*arguments, folder=folder, env=os.environ, needs=WITH_LANGCHAIN)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_program_prints(page: str, forkserver: ForkServer, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    programs = list(SHOWN.finditer(text))
    assert programs, "the page shows no program with its output"
    assert len(programs) == text.count("```python\n"), "a program has no output beside it"
    for program in programs:
        assert output_of("-c", program["program"], forkserver=forkserver, folder=tmp_path) == program["output"]


def test_the_readmes_show_the_demos_figures() -> None:
    page = io.StringIO()
    render(asyncio.run(run()), Console(file=page, width=100))
    printed = [line.rstrip() for line in page.getvalue().splitlines()]
    start = next(place for place, line in enumerate(printed) if line.startswith("messages really said"))
    counts = "\n".join(printed[start : start + 4])
    for name in ("README.md", "README.zh-CN.md"):
        assert f"```text\n{counts}\n```" in (ROOT / name).read_text(encoding="utf-8"), name


def test_both_readmes_have_the_same_parts() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))
    for mark in ("## ", "```", "| ", "]("):
        assert english.count(mark) == chinese.count(mark), mark


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_a_readme_is_short_and_begins_with_a_picture_and_a_way_to_try_it(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    first_screen = "\n".join(lines[:12])
    assert "](docs/images/" in first_screen
    assert "`make run`" in first_screen
    cells = [cell for line in lines if line.startswith("| ") for cell in line.strip("|").split("|")]
    assert cells
    assert all(cell.strip() for cell in cells)


def english_of(chinese: Path) -> Path:
    """The page that a Chinese one names as its original, in its first link."""
    target = re.search(r"^\[English\]\((?P<target>[^)]+)\)$", chinese.read_text(encoding="utf-8"), re.M)
    assert target is not None, f"{chinese.name} names no original"
    return chinese.parent / target["target"]


TRANSLATED = sorted(page for page in (ROOT / "docs" / "zh").glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("chinese", TRANSLATED, ids=lambda page: page.stem)
def test_a_chinese_page_has_the_sections_of_its_original(chinese: Path) -> None:
    original, translated = english_of(chinese).read_text(encoding="utf-8"), chinese.read_text(encoding="utf-8")
    assert translated.count("\n## ") == original.count("\n## ")


def test_the_example_runs(forkserver: ForkServer, tmp_path: Path) -> None:
    program = str(ROOT / "examples/langchain_archive.py")
    assert output_of(program, forkserver=forkserver, folder=tmp_path) == EXAMPLE_OUTPUT
