"""Skills: listed by name, read when used, broken ones told and not fatal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everthread import Everthread, Invalid, NotFound
from everthread.turn.skills import SHIPPED_SKILLS, list_names, load_skills
from everthread.turn.tools import ToolContext, make_tools
from tests.turn.tools.conftest import ToolCaller

GOOD = "---\nname: tidy\ndescription: Tidy up.\ntools: [list_files, read_file]\n---\n# Tidy\nStep one.\n"


def written(place: Path, folder: str, text: str | bytes) -> Path:
    (place / folder).mkdir(parents=True, exist_ok=True)
    (place / folder / "SKILL.md").write_bytes(text.encode() if isinstance(text, str) else text)
    return place / folder


def test_a_skill_is_its_front_matter_until_it_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path, "tidy", GOOD)
    (folder / "more").mkdir()
    (folder / "more" / "rules.md").write_text("rule one")
    (skill,) = load_skills(tmp_path).skills
    assert (skill.name, skill.description, skill.tools) == ("tidy", "Tidy up.", ("list_files", "read_file"))
    assert skill.text() == "# Tidy\nStep one."
    assert skill.files() == ["more/rules.md"]
    assert skill.read("more/rules.md") == "rule one"


@pytest.mark.parametrize(
    ("text", "name", "tools"),
    [
        ("---\ndescription: From the folder.\n---\nx", "folder", ()),
        ("\ufeff---\r\nname: w\r\ndescription: Windows.\r\n---\r\nx", "w", ()),
        ("---\nname: t\ndescription: >-\n  Two\n  lines.\ntools: a, b\n---\nx", "t", ("a", "b")),
        ("---\nname: t\ndescription: Theirs.\nallowed-tools:\n  - a\nlicense: MIT\n---\nx", "t", ("a",)),
    ],
)
def test_front_matter_is_taken_as_people_write_it(text: str, name: str, tools: tuple[str, ...], tmp_path: Path) -> None:
    written(tmp_path, "folder", text)
    (skill,) = load_skills(tmp_path).skills
    assert (skill.name, skill.tools) == (name, tools)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no front matter", "front matter"),
        ("---\nname: a\n---\nx", "description"),
        ("---\nname: a\ndescription: ''\n---\nx", "description"),
        ("---\nname: two words\ndescription: d\n---\nx", "name"),
        ("---\nname: [a]\ndescription: d\n---\nx", "name"),
        ("---\nname: a\ndescription: d\ntools: 7\n---\nx", "tools"),
        ("---\nname: a\ndescription: d\n---\n  \n", "has no text"),
        ("---\n: : :\n\t- x\n---\nx", "YAML"),
        ("---\n- a\n---\nx", "fields"),
        ("---\nname: !!python/object/apply:os.system ['true']\n---\nx", "YAML"),
        (b"---\nname: a\ndescription: \xff\n---\nx", "UTF-8"),
        ("---\nname: a\ndescription: d\n---\n" + "x" * 300_000, "more than"),
    ],
    ids=lambda given: given if isinstance(given, str) and len(given) < 20 else "text",
)
def test_a_broken_skill_is_told_and_the_others_stay(text: str | bytes, why: str, tmp_path: Path) -> None:
    written(tmp_path, "bad", text)
    written(tmp_path, "good", GOOD)
    book = load_skills(tmp_path)
    assert [skill.name for skill in book.skills] == ["tidy"]
    (problem,) = book.problems
    assert problem.folder == tmp_path / "bad"
    assert why in problem.reason


def test_a_folder_without_its_file_and_a_place_that_is_not_there_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "a file").write_text("x")
    book = load_skills(tmp_path / "nowhere", tmp_path)
    assert book.skills == ()
    assert [problem.reason for problem in book.problems] == ["has no SKILL.md"]


def test_ones_own_go_before_the_shipped(tmp_path: Path) -> None:
    written(tmp_path, "mine", GOOD.replace("name: tidy", "name: data-report"))
    mine = load_skills(SHIPPED_SKILLS, tmp_path).get("Data-Report")
    assert mine is not None
    assert mine.description == "Tidy up."


def test_i26_no_file_beside_a_skill_leads_out_of_it(tmp_path: Path) -> None:
    folder = written(tmp_path / "skills", "tidy", GOOD)
    (tmp_path / "secret").write_text("do not read me")
    (folder / "link").symlink_to(tmp_path / "secret")
    (skill,) = load_skills(tmp_path / "skills").skills
    assert skill.files() == []
    with pytest.raises(NotFound):
        skill.read("link")
    for path in ("../../secret", "/etc/passwd"):
        with pytest.raises(Invalid):
            skill.read(path)


def test_the_shipped_ones_are_whole() -> None:
    book = load_skills(SHIPPED_SKILLS)
    assert [skill.name for skill in book.skills] == ["data-report", "document-digest"]
    assert book.problems == ()
    assert all(len(skill.text()) > 1_000 for skill in book.skills)


async def test_the_tools_of_the_shipped_skills_exist(memory_et: Everthread) -> None:
    context = ToolContext.create(
        memory_et, await memory_et.conversations.create(), skills=load_skills(SHIPPED_SKILLS).skills
    )
    known = {tool.name for tool in make_tools(context)}
    assert {name for skill in context.skills for name in skill.tools} <= known


def test_a_model_is_told_names_only() -> None:
    told = list_names(load_skills(SHIPPED_SKILLS).skills)
    assert "@data-report, @document-digest" in told
    assert "trusted" not in told
    assert list_names(()) == ""


async def test_a_skill_is_read_when_it_is_chosen(toolbox: ToolCaller) -> None:
    told = await toolbox("use_skill", name="@data-report")
    assert "# From a table to a report" in told
    assert toolbox.changes == {"active_skill": "data-report"}
    assert "available: data-report, document-digest" in await toolbox.refused("use_skill", name="fly")


async def test_without_skills_there_is_no_tool_for_them(make_toolbox: Callable[..., Any]) -> None:
    assert "use_skill" not in {tool.name for tool in make_tools((await make_toolbox()).context)}
