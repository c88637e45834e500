"""How values are bound to statements, on whichever Python."""

from __future__ import annotations

import re
from pathlib import Path

import everthread


def test_no_statement_has_numbered_parameters() -> None:
    """Python 3.12 warns of them where values come as a sequence, and Python 3.14 refuses them."""
    sources = [path for path in Path(everthread.__file__).parent.rglob("*") if path.suffix in (".py", ".sql")]
    assert len(sources) > 100
    assert [path.name for path in sources if re.search(r"\?\d", path.read_text("utf-8"))] == []
