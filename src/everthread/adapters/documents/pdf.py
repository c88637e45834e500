"""The text of a PDF, page by page, by pypdf. A file may be broken, locked, endless or malicious: it is read by a
process of its own, within bounds (`pdf_process`), and whatever the reader stumbles over is said in one sentence.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from everthread.core.errors import Invalid, MissingExtra

MOST_PAGES = 5_000
MOST_SECONDS = 120
MOST_CHARACTERS = 10_000_000
MOST_MEMORY_BYTES = 2 * 1024**3
"""Of addresses, which are more than it uses."""
_PROGRAM = Path(__file__).with_name("pdf_process.py")


def pages(data: bytes) -> list[str]:
    """The text of each page; Invalid when the file cannot be read or has none."""
    if find_spec("pypdf") is None:
        raise MissingExtra("PDF needs an extra: pip install 'everthread[documents]'")
    limits = map(str, (MOST_MEMORY_BYTES, MOST_SECONDS, MOST_PAGES, MOST_CHARACTERS))
    try:
        ended = subprocess.run(
            (sys.executable, "-I", str(_PROGRAM), *limits), input=data, capture_output=True, timeout=2 * MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise _too_large() from None
    said = _said(ended)
    if "error" in said:
        if said["error"] == MemoryError.__name__:
            raise _too_large()
        raise Invalid(f"a damaged PDF ({said['error']}); save it again and retry", field="source")
    if "problem" in said:
        raise Invalid(said["problem"], field="source")
    found: list[str] = said["pages"]
    if not any(page.strip() for page in found):
        raise Invalid("is a PDF without text, such as a scan; recognise its text first", field="source")
    return found


def _said(ended: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(ended.stdout)
    except ValueError:  # the system ended it: too long, or out of memory where Python could say so no more
        raise _too_large() from None
    return said


def _too_large() -> Invalid:
    return Invalid("too large: reading it takes too long or too much memory; split the PDF", field="source")
