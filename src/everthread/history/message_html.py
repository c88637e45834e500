"""The text of a message as HTML, for a page to be read: code as code and, in answers, bold words and code in a line.

Everything else stays as it was written, and nothing that was said becomes a tag.
"""

from __future__ import annotations

import html
import re
from typing import Final

_FENCED: Final = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`([^`\n]{1,500})`|\*\*(?=\S)([^*\n]{1,500}?)(?<=\S)\*\*")


def message_html(text: str, *, is_markdown: bool) -> str:
    """Paragraphs and blocks of code; the words as they are, or with their marks turned into tags."""
    parts, done = [], 0
    for block in _FENCED.finditer(text):
        parts += [_words(text[done : block.start()], is_markdown), f"<pre>{html.escape(block[2].rstrip())}</pre>\n"]
        done = block.end()
    parts.append(_words(text[done:], is_markdown))
    return "".join(parts)


def _words(text: str, is_markdown: bool) -> str:
    if not text.strip():
        return ""
    escaped = html.escape(text.strip("\n"))
    return f"<p>{_SPAN.sub(_tagged, escaped) if is_markdown else escaped}</p>\n"


def _tagged(span: re.Match[str]) -> str:
    return f"<code>{span[1]}</code>" if span[1] is not None else f"<strong>{span[2]}</strong>"
