"""A reader who follows a link inside the documentation arrives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FENCED = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)", re.M | re.S)
INLINE_CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#+\s+(?P<title>.+?)\s*$", re.M)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)


def pages_of(root: Path) -> list[Path]:
    """The pages at the top and everything under docs/."""
    return sorted((*root.glob("*.md"), *(root / "docs").rglob("*.md")))


def prose_of(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors_in(page: Path) -> set[str]:
    """The names code hosts give to headings: lower case, punctuation gone, spaces as hyphens."""
    titles = (match["title"].lower() for match in HEADING.finditer(prose_of(page)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> list[str]:
    targets = (match["target"] for match in LINK.finditer(INLINE_CODE.sub("", prose_of(page))))
    return [f"{page.name}: {target}" for target in targets if not arrives(page, target)]


def arrives(page: Path, target: str) -> bool:
    """Whether a link leads to a file that exists and, with an anchor, to a heading in it."""
    if ELSEWHERE.match(target):
        return True
    path, _, anchor = target.partition("#")
    goal = page.parent / path if path else page
    return goal.exists() and (not anchor or anchor.lower() in anchors_in(goal))


def test_every_relative_link_leads_somewhere(root: Path) -> None:
    pages = pages_of(root)
    assert pages
    assert [broken for page in pages for broken in broken_links(page)] == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[a](there.md)", []),
        ("[a](there.md#two-words-历史)", []),
        ("[a](https://example.org/gone)", []),
        ("`[a](gone.md)`", []),
        ("```\n[a](gone.md)\n```", []),
        ("[a](gone.md)", ["page.md: gone.md"]),
        ("![a](gone.png)", ["page.md: gone.png"]),
        ("[a](there.md#gone)", ["page.md: there.md#gone"]),
    ],
)
def test_a_broken_link_is_found(text: str, broken: list[str], tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("## Two words: 历史\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert broken_links(page) == broken
