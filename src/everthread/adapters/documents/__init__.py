"""Reading documents: texts and Markdown here, PDF by an extra. What is none of them, or broken, is Invalid."""

from __future__ import annotations

import codecs

from everthread.adapters.documents import pdf
from everthread.core.documents import ReadDocument
from everthread.core.errors import Invalid

_MARKDOWN = (".md", ".markdown", ".mdx")
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_MOST_CONTROLS = 0.01
"""The share of control characters above which bytes are no text, whatever they decode to."""


def read_document(data: bytes, name: str) -> ReadDocument:
    """What a file says, by what its bytes are; a name tells only whether a text is Markdown."""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return ReadDocument(media_type="application/pdf", pages=pdf.pages(data))
    media_type = "text/markdown" if name.lower().endswith(_MARKDOWN) else "text/plain"
    return ReadDocument(media_type=media_type, pages=[_text(data)])


def _text(data: bytes) -> str:
    encoding = next((name for bom, name in _BOMS.items() if data.startswith(bom)), None)
    if encoding is None and b"\x00" in data:
        raise _no_text()
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text = _of_old(data)
    controls = sum(char < " " and char not in "\t\n\r\f\v" for char in text)
    if controls > _MOST_CONTROLS * len(text):
        raise _no_text()
    return text.replace("\x00", "").replace("\r\n", "\n")


def _of_old(data: bytes) -> str:
    """Texts from before UTF-8: Chinese ones, else those of Western Europe."""
    try:
        text = data.decode("gb18030")
        han = sum("\u4e00" <= char <= "\u9fff" for char in text)
        if 2 * han >= sum(char > "\x7f" for char in text):
            return text
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        raise _no_text() from None


def _no_text() -> Invalid:
    return Invalid("is neither text, Markdown nor PDF; convert it to one of them first", field="source")
