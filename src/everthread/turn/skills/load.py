"""Reading skill folders: the front matter when they are listed, the rest when one is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from everthread.core.errors import Invalid, NotFound
from everthread.core.workspaces import check_path

SHIPPED_SKILLS: Final = Path(__file__).parent / "shipped"
FILE_NAME: Final = "SKILL.md"
MAX_BYTES: Final = 256_000
MAX_DESCRIPTION_CHARACTERS: Final = 1_024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<fields>.*?)^---[ \t]*\r?$\n?", re.M | re.S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One kind of work, and where it is described."""

    name: str
    description: str
    tools: tuple[str, ...]
    """Tools that it needs: they are offered while it is active."""
    folder: Path

    def text(self) -> str:
        """How to do it: what follows the front matter."""
        return _split(_read(self.folder / FILE_NAME))[1].strip()

    def files(self) -> list[str]:
        """What lies beside it, by path."""
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != FILE_NAME)
        return [path.relative_to(self.folder).as_posix() for path in found if self._is_inside(path)]

    def read(self, path: str) -> str:
        """A text that lies beside it; NotFound, or Invalid for a path that leads out of the folder."""
        target = self.folder.joinpath(*check_path(path))
        if not target.is_file() or not self._is_inside(target):
            raise NotFound(f"the skill {self.name} has no file {path}; it has: {', '.join(self.files()) or 'none'}")
        return _read(target)

    def _is_inside(self, path: Path) -> bool:
        """A skill somebody else wrote may hold a link to anywhere."""
        return path.resolve().is_relative_to(self.folder.resolve())


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillProblem:
    """A folder that is no valid skill, and why."""

    folder: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSet:
    """The skills of a program."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[SkillProblem, ...] = ()

    def get(self, name: str) -> Skill | None:
        """By name, whatever the case."""
        return next((skill for skill in self.skills if skill.name.lower() == name.lower()), None)

    def select(self, names: Iterable[str | None]) -> tuple[Skill, ...]:
        """The skills among these names, each once."""
        found = [skill for name in names if name and (skill := self.get(name)) is not None]
        return tuple({skill.name: skill for skill in found}.values())


def load_skills(*places: Path) -> SkillSet:
    """The skills in these folders; a later folder overrides an earlier one. Broken skills are reported, not raised."""
    found: dict[str, Skill] = {}
    problems: list[SkillProblem] = []
    for folder in (folder for place in places for folder in _folders(place)):
        try:
            skill = _load_skill(folder)
        except (Invalid, OSError) as problem:
            problems.append(SkillProblem(folder=folder, reason=str(problem)))
        else:
            found[skill.name.lower()] = skill
    return SkillSet(skills=tuple(sorted(found.values(), key=lambda one: one.name)), problems=tuple(problems))


def list_names(skills: Iterable[Skill]) -> str:
    """What a model sees of them before it reads one: their names."""
    names = ", ".join(f"@{skill.name}" for skill in skills)
    return f"Skills: {names}. Read one with use_skill before doing that kind of work." if names else ""


def render_skill(skill: Skill) -> str:
    """A skill as a model reads it."""
    files = skill.files()
    beside = f'\n\nBeside it: {", ".join(files)}; use_skill(name="{skill.name}", file="…") shows one.' if files else ""
    return f"# Skill: {skill.name}\n\n{skill.text()}{beside}"


def skills_prompt(book: SkillSet, used: Iterable[Skill]) -> str:
    """What a request says of skills: the names of all, the text of those in use."""
    return "\n\n".join(filter(None, [list_names(book.skills), *map(render_skill, used)]))


def _folders(place: Path) -> Iterator[Path]:
    try:
        yield from (entry for entry in sorted(place.iterdir()) if entry.is_dir() and not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return


def _load_skill(folder: Path) -> Skill:
    file = folder / FILE_NAME
    if not file.is_file():
        raise Invalid(f"has no {FILE_NAME}")
    fields, body = _split(_read(file))
    if not body.strip():
        raise Invalid("has no text after its front matter")
    return Skill(
        name=_check_name(fields.get("name", folder.name)),
        description=_check_description(fields.get("description")),
        tools=tuple(_parse_tools(fields.get("tools", fields.get("allowed-tools")))),
        folder=folder,
    )


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        body = opened.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise Invalid(f"{file.name} has more than {MAX_BYTES:,} bytes")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{file.name} is not UTF-8 text") from None


def _split(text: str) -> tuple[Mapping[str, Any], str]:
    """The fields of the front matter, and what follows it."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise Invalid("does not begin with front matter: a line ---, name and description, a line ---")
    try:
        fields = yaml.safe_load(found["fields"])
    except (yaml.YAMLError, ValueError) as problem:
        raise Invalid(f"has front matter that is not valid YAML: {str(problem).splitlines()[0]}") from None
    if not isinstance(fields, Mapping):
        raise Invalid("has front matter without fields; it needs name and description")
    return fields, text[found.end() :]


def _check_name(given: object) -> str:
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise Invalid(f"must be letters, digits, - and _, at most 64, not {given!r}", field="name")
    return given


def _check_description(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise Invalid("is missing: say in a sentence what the skill is for", field="description")
    return " ".join(given.split())[:MAX_DESCRIPTION_CHARACTERS]


def _parse_tools(given: object) -> Sequence[str]:
    """A list, or names with commas between them."""
    if given is None:
        return ()
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise Invalid("must be a list of names", field="tools")
    return [name.strip() for name in names if name.strip()]
