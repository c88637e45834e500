"""The text of a PDF, page by page, by pypdf. A file may be broken, locked, endless or malicious: it is read within
bounds, and whatever the reader stumbles over is said in one sentence.
"""

from __future__ import annotations

import io
import logging
import time

from pypdf import PdfReader

from everthread.core.errors import Invalid

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of every oddity of a file, and goes on

MOST_PAGES = 5_000
MOST_SECONDS = 120.0
MOST_CHARACTERS = 10_000_000


def pages(data: bytes) -> list[str]:
    """The text of each page; Invalid when the file cannot be read or has none."""
    try:
        found = _read(data)
    except Invalid:
        raise
    except Exception as problem:  # the edge of the reader: a broken file makes it raise anything
        raise Invalid(f"a damaged PDF ({type(problem).__name__}); save it again and retry", field="source") from problem
    if not any(page.strip() for page in found):
        raise Invalid("is a PDF without text, such as a scan; recognise its text first", field="source")
    return found


def _read(data: bytes) -> list[str]:
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Invalid("is a PDF that needs a password; save it without one", field="source")
    if len(reader.pages) > MOST_PAGES:
        raise Invalid(f"has {len(reader.pages)} pages, at most {MOST_PAGES} are read; split it", field="source")
    until = time.monotonic() + MOST_SECONDS
    found: list[str] = []
    left = MOST_CHARACTERS
    for page in reader.pages:
        found.append(_clean(page.extract_text()))
        left -= len(found[-1])
        if left < 0 or time.monotonic() > until:
            raise Invalid(f"too large: reading stopped at page {len(found)}; split the PDF", field="source")
    return found


def _clean(text: str) -> str:
    """What a database can hold: pypdf gives NUL and half surrogate pairs for fonts it does not know."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
