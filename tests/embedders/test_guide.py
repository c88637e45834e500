"""The guide to finding by meaning shows what happens."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.forkserver import ForkServer

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "find-by-meaning.md"
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```\n(?P<shown>.*?)^```$", re.M | re.S)


def test_the_example_prints_what_the_page_shows(forkserver: ForkServer, tmp_path: Path) -> None:
    (example,) = EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))
    ran = forkserver.run_program("-c", example["code"], folder=tmp_path, env=os.environ, needs=())
    assert (ran.code, ran.out) == (0, example["shown"]), ran.err
