"""What is published names no machine: no path of the one it was written on, no place packages came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

MACHINE_PATH = re.compile(r"(?<![\w.~*$}])/(?:work|farm|root|(?:home|Users)/\w+)(?![\w-]|\.\w)")
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|npmmirror\.com", re.IGNORECASE
)
ADDRESS = re.compile(r"https?://|(?:git|hg|svn)\+\w+:|^\s*(?:--index-url|--extra-index-url|--find-links|-i|-f)\b", re.M)
RESOLVED_ADDRESS = re.compile(r'"resolved":\s*"(?:https?|file):')


def hits(pattern: re.Pattern[str], files: tuple[Path, ...]) -> list[str]:
    """Each match as file:line, over every file that is text."""
    return [hit for file in files for hit in _hits_in(pattern, file)]


def _hits_in(pattern: re.Pattern[str], file: Path) -> Iterator[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    for match in pattern.finditer(text):
        yield f"{file}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"


def test_no_file_holds_a_path_of_a_machine(tracked: tuple[Path, ...]) -> None:
    assert hits(MACHINE_PATH, tracked) == []


def test_no_file_names_a_package_registry(tracked: tuple[Path, ...]) -> None:
    assert hits(REGISTRY, tracked) == []


def test_no_lock_records_download_addresses(tracked: tuple[Path, ...]) -> None:
    requirements = tuple(file for file in tracked if file.parent.name == "requirements")
    npm_locks = tuple(file for file in tracked if file.name in {"package-lock.json", "npm-shrinkwrap.json"})
    assert requirements
    assert hits(ADDRESS, requirements) == []
    assert hits(RESOLVED_ADDRESS, npm_locks) == []
    assert [file for file in tracked if file.name == "uv.lock"] == []


def test_every_pinned_package_carries_a_hash(root: Path) -> None:
    for lock in (root / "requirements").glob("*.txt"):
        pins = re.findall(r"^\S+==.*(?:\n    .*)*", lock.read_text(), re.M)
        assert pins, f"{lock.name} pins nothing"
        assert [pin.splitlines()[0] for pin in pins if "--hash=sha256:" not in pin] == []


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        (MACHINE_PATH, ("see /", "root/notes")),
        (MACHINE_PATH, ('open("/', 'home/someone/x.db")')),
        (MACHINE_PATH, ("in /", "work.")),
        (REGISTRY, ("from py", "pi.org")),
        (ADDRESS, ("http", "://a.mirror/simple")),
        (ADDRESS, ("--index", "-url elsewhere")),
        (RESOLVED_ADDRESS, ('"resolved"', ': "https://a.mirror/x.tgz"')),
    ],
)
def test_a_planted_trace_is_found(pattern: re.Pattern[str], parts: tuple[str, str], tmp_path: Path) -> None:
    planted = tmp_path / "planted.txt"
    planted.write_text("first line\n" + "".join(parts))
    assert [hit.split(":")[1] for hit in hits(pattern, (planted,))] == ["2"]


@pytest.mark.parametrize("text", ["../../root", "a/work/b", "GET /workspaces", "https://host/root-causes"])
def test_ordinary_text_is_no_machine_path(text: str) -> None:
    assert MACHINE_PATH.search(text) is None
