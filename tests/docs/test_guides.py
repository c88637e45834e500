"""A guide can be followed: its programs, files and commands, in their order and in one folder, print what it shows.

Words must be the same, figures about the same: a summary may have a few tokens more without the page being wrong.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from everthread.cli.commands import build_command
from tests.docs.test_readme import ROOT, output_of
from tests.forkserver import SERVING, ForkServer

GUIDES = ("docs/how-to/tune-compaction.md", "docs/zh/tune-compaction.md")
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.M)
FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
DRAWN = re.compile(r"[█▓▒░·│]+")
TOLERANCE = 0.1
NAMED = re.compile(r"`(?:\$ )?everthread (?P<words>[a-z][^`⏐\n]*)`|^\$ everthread (?P<typed>.*)$", re.M)
OPTION = re.compile(r"(?<!\S)--[a-z-]+")
EXPORT = re.compile(r"export (?P<name>\w+)=(?P<value>\S+)")


class Block(NamedTuple):
    language: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        yield Block(match["language"], match["text"])


def environment(folder: Path) -> dict[str, str]:
    """A home of its own, and the programs of this environment first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}


def printed(command: str, forkserver: ForkServer, folder: Path, env: dict[str, str]) -> str:
    """What a command of ours prints, notes included."""
    program, *arguments = shlex.split(command)
    assert program == "everthread", command
    with (folder / "printed").open("w+", encoding="utf-8") as written:
        file = written.fileno()
        named = ("-m", "everthread", *arguments)
        started = forkserver.start_program(*named, folder=folder, env=env, needs=SERVING, stdout=file, stderr=file)
        code = started.wait()
        written.seek(0)
        said = written.read()
    assert code == 0, (command, said)
    return said


def follow(page: str, forkserver: ForkServer, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each program and command with what it prints and what the page shows."""
    env = environment(folder)
    following = list(blocks(page))
    for block, after in zip(following, [*following[1:], Block("", "")], strict=True):
        if block.language == "python":
            yield block.text, output_of("-c", block.text, forkserver=forkserver, folder=folder), after.text
        elif block.language == "toml":
            (folder / block.text.split()[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for found in COMMAND.finditer(block.text):
                if export := EXPORT.fullmatch(found["command"]):
                    env[export["name"]] = export["value"]
                else:
                    yield found["command"], printed(found["command"], forkserver, folder, env), found["output"]


def words(text: str) -> list[str]:
    """The text without its figures and without the width that they give to columns and bars."""
    return FIGURE.sub("0", DRAWN.sub("", text)).split()


def figures(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in FIGURE.findall(text)]


def is_shown(printed_text: str, shown: str) -> bool:
    """Whether a page tells truly what is printed."""
    if words(printed_text) != words(shown):
        return False
    pairs = zip(figures(printed_text), figures(shown), strict=True)
    return all(abs(real - told) <= max(2, TOLERANCE * abs(told)) for real, told in pairs)


@pytest.mark.parametrize(
    ("real", "is_true"),
    [
        ("1,010 of 90 tokens", True),
        ("1,000 of  91 tokens", True),
        ("1,200 of 90 tokens", False),
        ("1,000 of 90", False),
    ],
)
def test_figures_may_differ_a_little_and_words_not_at_all(real: str, is_true: bool) -> None:
    assert is_shown(real, "1,000 of 90 tokens") is is_true


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_shows_what_happens(page: str, forkserver: ForkServer, tmp_path: Path) -> None:
    steps = 0
    for command, printed_text, shown in follow(page, forkserver, tmp_path):
        assert is_shown(printed_text, shown), (command, printed_text)
        steps += 1
    assert steps > 3


def unknown_words(line: str) -> list[str]:
    """What in a line after `everthread` is neither a command nor an option of it."""
    command: Any = build_command()
    words = line.split()
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name not in command.commands:
            return [name]
        command = command.commands[name]
    known = {opt for param in command.params for opt in param.opts} | {"--help"}
    return [option for option in OPTION.findall(line) if option not in known]


def test_every_command_and_option_named_in_the_docs_exists() -> None:
    pages = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
    found = [
        (page.name, line)
        for page in pages
        for match in NAMED.finditer(page.read_text(encoding="utf-8"))
        if (line := match["words"] or match["typed"])
    ]
    assert len(found) > 50
    assert [(page, line) for page, line in found if unknown_words(line.partition(" > ")[0])] == []


@pytest.mark.parametrize(
    ("line", "unknown"),
    [("show c --full", []), ("shew c", ["shew"]), ("show c --fool", ["--fool"]), ("erase message c m --yes", [])],
)
def test_a_command_that_does_not_exist_is_found(line: str, unknown: list[str]) -> None:
    assert unknown_words(line) == unknown
