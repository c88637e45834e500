"""The reference names every command, option, setting and error there is, and none that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everthread.cli.commands import build_command
from everthread.cli.errors import EXIT_CODES, ExitCode
from everthread.compaction.policy import CompactionPolicy, apply_settings, policy_as_dict
from everthread.core.errors import Invalid
from everthread.settings import Settings, variables
from tests.cli.conftest import Quick

DOCS = Path(__file__).parents[2] / "docs" / "reference"
COMMON = {"--database", "--owner", "--config", "--json", "--help", "-h"}
SECTION = re.compile(r"^### everthread (?P<name>[a-z ]+)\n(?P<text>.*?)(?=^##|\Z)", re.M | re.S)
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(commands(build_command()))


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "cli.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sections(page: str) -> dict[str, str]:
    return {match["name"]: match["text"] for match in SECTION.finditer(page)}


def in_table(section: str) -> set[str]:
    """The options that a section's table documents."""
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `-")]
    return {option for row in rows for option in OPTION.findall(row)}


def test_every_command_has_a_section_and_every_section_a_command(sections: dict[str, str]) -> None:
    assert len(COMMANDS) > 20
    assert set(sections) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_exists(sections: dict[str, str], name: str) -> None:
    options = {
        opt
        for param in COMMANDS[name].params
        if param.param_type_name == "option"
        for opt in (*param.opts, *param.secondary_opts)
    }
    assert in_table(sections[name]) == options - COMMON


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_stands_in_the_usage(sections: dict[str, str], name: str) -> None:
    arguments = [param.metavar for param in COMMANDS[name].params if param.param_type_name == "argument"]
    if arguments:
        assert f"`everthread {name} {' '.join(arguments)}`" in sections[name]


def test_an_option_named_in_prose_exists(page: str) -> None:
    known = {
        opt for command in COMMANDS.values() for param in command.params for opt in (*param.opts, *param.secondary_opts)
    }
    named = {option for code in re.findall(r"`([^`\n]+)`", page) for option in OPTION.findall(code)}
    assert named - known - {"--version"} - COMMON == set()


def test_the_options_of_every_command_are_documented_once(page: str) -> None:
    assert in_table(page.partition("## Exit codes")[0]) == COMMON


def test_every_exit_code_and_error_is_documented(page: str) -> None:
    rows = re.findall(r"^\| (\d+) \|[^|]*\|([^|]*)\|$", page, re.M)
    documented = {int(code): set(re.findall(r"`([a-z_]+)`", errors)) for code, errors in rows}
    assert set(documented) == set(ExitCode)
    for kind, code in EXIT_CODES.items():
        assert kind.code in documented[code], kind


def test_every_setting_is_documented_and_exists() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| `(\w+)` \|", page, re.M))
    assert rows == variables()
    assert all(field.description for field in Settings.model_fields.values())


def test_the_default_and_the_range_of_each_setting_of_compaction_is_as_documented() -> None:
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `compaction\.(\w+)` \| `\w+` \| `?([^|`]*)`? \| ([^|]*) \|", page, re.M)
    defaults = policy_as_dict(CompactionPolicy())
    kinds = {name: type(default) for name, default in defaults.items()} | {
        "max_message_history": int
    }  # none by default
    for name, default, allowed in rows:
        assert default == ("none" if defaults[name] is None else str(defaults[name]).lower()), name
        ends = [float(end.replace(",", "")) for end in re.findall(r"\d[\d.,]*", allowed)]
        for end in ends:
            fitting = {"max_message_history": 100} if name == "keep_recent" else {"keep_recent": 1}
            apply_settings(CompactionPolicy(), {**fitting, name: kinds[name](end)})
        for beyond in (ends[0] - 1, ends[1] + 1) if ends else ():
            with pytest.raises(Invalid):
                apply_settings(CompactionPolicy(), {name: kinds[name](beyond)})


def test_the_example_prints_what_the_page_shows(page: str, quick: Quick) -> None:
    (given, conversation, shown) = re.findall(r"^\$ echo '(.*)' \| everthread append (\w+)\n(.*\n)", page, re.M)[0]
    assert quick("append", conversation, input=given).out == shown
