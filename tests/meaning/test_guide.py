"""The guide to finding by meaning shows what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "find-by-meaning.md"
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```\n(?P<shown>.*?)^```$", re.M | re.S)


def test_the_example_prints_what_the_page_shows() -> None:
    (example,) = EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))
    ran = subprocess.run([sys.executable, "-c", example["code"]], capture_output=True, text=True, check=True)
    assert ran.stdout == example["shown"]
