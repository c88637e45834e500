"""Reads one PDF in a process of its own: `python pdf_process.py MEMORY_BYTES SECONDS PAGES CHARACTERS < file`.

Started by `pdf`: what a file makes the reader do is bounded by the system, in memory and time, and ends with the
process. It says one object of JSON: the `pages`, or the `problem` for people, or the name of an `error`. It imports
nothing of everthread, so that it starts fast.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys
from typing import Any

from pypdf import PdfReader


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _read(data: bytes, most_pages: int, most_characters: int) -> dict[str, Any]:
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"problem": "is a PDF that needs a password; save it without one"}
    if len(reader.pages) > most_pages:
        return {"problem": f"has {len(reader.pages)} pages, at most {most_pages} are read; split it"}
    found: list[str] = []
    left = most_characters
    for page in reader.pages:
        found.append(_clean(page.extract_text()))
        left -= len(found[-1])
        if left < 0:
            return {"problem": f"too large: reading stopped at page {len(found)}; split the PDF"}
    return {"pages": found}


def _clean(text: str) -> str:
    """What a database can hold: pypdf gives NUL and half surrogate pairs for fonts it does not know."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def main() -> None:
    memory_bytes, seconds, most_pages, most_characters = map(int, sys.argv[1:])
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of every oddity of a file, and goes on
    _limit(resource.RLIMIT_AS, memory_bytes)
    _limit(resource.RLIMIT_CPU, seconds)
    try:
        said = _read(sys.stdin.buffer.read(), most_pages, most_characters)
    except Exception as problem:  # noqa: BLE001 - the edge of the reader: a broken file makes it raise anything
        said = {"error": type(problem).__name__}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
