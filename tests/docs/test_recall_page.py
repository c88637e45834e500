"""The page that tells how a rank is made: what it names is in the code, and every weight can be set."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from everthread.recall.policy import RecallWeights
from everthread.settings import Settings

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "everthread"
PAGES = [ROOT / "docs" / "explanation" / "recall.md", ROOT / "docs" / "zh" / "recall.md"]
_CODE = re.compile(r"`([^`]+)`")
_WEIGHT = re.compile(r"`(\w+)` ([\d.]+)")


def rows(page: Path, last: tuple[str, ...]) -> list[list[str]]:
    """The rows of the tables whose last column is called so, without their heads."""
    found: list[list[str]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            inside = False
        elif cells[-1].rstrip(" |") in last:
            inside = True
        elif inside and not line.startswith("|---"):
            found.append(cells)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_every_function_and_file_that_the_page_names_is_there(page: Path) -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    named = [name for row in rows(page, ("where", "位置")) for name in _CODE.findall(row[-1])]
    assert len(named) > 20
    missing = [name for name in named if not any(SOURCE.glob(name)) and not _is_defined(name.split(".")[-1], code)]
    assert missing == []


def _is_defined(name: str, code: str) -> bool:
    return re.search(rf"\b(?:def|class) {re.escape(name)}\b", code) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_weights_on_the_page_are_the_defaults(page: Path) -> None:
    named = {
        name: float(value)
        for row in rows(page, ("where", "位置"))
        for cell in row[1:-1]
        for name, value in _WEIGHT.findall(cell)
    }
    assert named == {field.name: float(getattr(RecallWeights(), field.name)) for field in fields(RecallWeights)}


@pytest.mark.parametrize("name", [field.name for field in fields(RecallWeights)])
def test_every_weight_can_be_set(name: str) -> None:
    other = getattr(RecallWeights(), name) / 2
    value = round(other) if name == "alone_tokens" else other
    settings = Settings.model_validate({f"recall_{name}": value})
    assert getattr(settings.recall.weights, name) == value
