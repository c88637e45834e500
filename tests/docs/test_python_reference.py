"""Every public name stands in the Python reference, and nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

import everthread

ROOT = Path(__file__).parents[2]


def test_the_reference_lists_every_public_name_once() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: everthread\.(\w+)$", page, re.M)
    assert sorted(listed) == sorted(everthread.__all__)
